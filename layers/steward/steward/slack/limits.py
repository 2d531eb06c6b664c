"""Slack's limits, kept before Slack keeps them: one bad element would cost the whole message.

Source of the numbers: docs.slack.dev (Block Kit reference, chat.postMessage), except the total,
which is undocumented: messages of about 13,000 characters are refused although each block is legal.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from steward.slack.text import cut, length

BLOCKS = 50
TOTAL = 12_000
"""Of all blocks together, as JSON: what is measured where is not known, so the larger number."""

TEXT = 4_000
HEADER = 150
SECTION = 3_000
FIELD = 2_000
FIELDS = 10
ELEMENTS = 10
"""Of a context block."""

_STEPS = (2_000, 1_200, 700, 400, 200, 100)
"""Longest text that blocks may keep, tried in order, where all of them together are too long."""


def fit(message: Mapping[str, Any]) -> dict[str, Any]:
    """Cut a message until Slack must accept its size.

    Parameters
    ----------
    message : mapping
        `text`, and `blocks` of the types header, section, actions, context and divider.

    Returns
    -------
    dict
        The same message with over-long texts cut, blank elements left out, and blocks above the
        limit counted in a last line. The longest texts shrink first, so that no block is lost to
        the total while there is another way.
    """
    blocks = [fitted for block in message["blocks"] if (fitted := _block(block, SECTION))]
    for longest in _STEPS:
        if _total(_bounded(blocks)) <= TOTAL:
            break
        blocks = [fitted for block in blocks if (fitted := _block(block, longest))]
    most = min(BLOCKS, len(blocks))
    while most > 1 and _total(_bounded(blocks, most)) > TOTAL:
        most -= 1
    text = cut(message["text"].strip(), TEXT) or "GPU Steward: see the message"
    return {**message, "text": text, "blocks": _bounded(blocks, most)}


def _total(blocks: Sequence[Mapping[str, Any]]) -> int:
    return length(json.dumps(blocks, ensure_ascii=False))


def _bounded(blocks: list[dict[str, Any]], most: int = BLOCKS) -> list[dict[str, Any]]:
    """Keep the first blocks, the most important ones, and say how many there are besides."""
    if len(blocks) <= most:
        return blocks
    note = {"type": "mrkdwn", "text": f"+{len(blocks) - most + 1} more parts left out"}
    return [*blocks[: most - 1], {"type": "context", "elements": [note]}]


def _block(block: Mapping[str, Any], longest: int) -> dict[str, Any] | None:
    """Bring one block within its limits; None where nothing of it is left to show."""
    if block["type"] == "actions":
        return dict(block)  # our own words and spans: nothing foreign, and far from any limit
    kept = dict(block)
    if "text" in block:
        kept["text"] = _text(block["text"], HEADER if block["type"] == "header" else longest)
    if "fields" in block:
        kept["fields"] = _texts(block["fields"], FIELDS, min(FIELD, longest))
    if "elements" in block:
        kept["elements"] = _texts(block["elements"], ELEMENTS, longest)
    kept = {key: value for key, value in kept.items() if value}
    return kept if len(kept) > 1 or block["type"] == "divider" else None


def _texts(items: Sequence[Mapping[str, Any]], most: int, longest: int) -> list[dict[str, Any]]:
    texts = [text for item in items if (text := _text(item, longest))]
    if len(texts) <= most:
        return texts
    more = {"type": "mrkdwn", "text": f"+{len(texts) - most + 1} more"}
    return [*texts[: most - 1], more]


def _text(item: Mapping[str, Any], longest: int) -> dict[str, Any] | None:
    text = shorten(item["text"].strip(), longest)
    return {**item, "text": text} if text else None


def shorten(text: str, longest: int) -> str:
    """Cut a text that is too long, and close the code block or span that the cut leaves open."""
    if length(text) <= longest:
        return text
    if text.startswith("```"):
        return f"{cut(text, longest - 4)}\n```"
    short = cut(text, longest - 1)
    return f"{short}`" if short.count("`") % 2 else short
