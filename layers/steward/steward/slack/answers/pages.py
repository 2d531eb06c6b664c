"""Lines of an answer as messages: a response address takes five, each of a length that Slack shows."""

from collections.abc import Sequence
from typing import Any

from steward.slack.limits import shorten
from steward.slack.replies import ephemeral
from steward.slack.text import length, number

MESSAGES = 4
"""One fewer than a response address takes: the fifth is left for whoever answers next."""

LONGEST = 3_500
"""Characters of one message."""


def pages(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Lay lines out over as few messages as hold them; what is left out is counted."""
    texts: list[str] = []
    page: list[str] = []
    room = LONGEST
    rest = list(lines)
    while rest:
        line = shorten(rest[0], LONGEST)
        if page and length(line) + 1 > room:
            if len(texts) == MESSAGES - 1:
                break
            texts.append("\n".join(page))
            page, room = [], LONGEST
        page.append(line)
        room -= length(line) + 1
        rest = rest[1:]
    if rest:
        page.append(f"+{number(len(rest))} more lines: ask for less, a team or a job")
    texts.append("\n".join(page))
    return [ephemeral(text) for text in texts]
