"""Replies in a card's thread: one change of state each, in a line that stands alone."""

from collections.abc import Mapping
from typing import Any

from steward.slack.stories import title
from steward.slack.text import mention, number, safe, when

_LINES = {
    "reopened": ":leftwards_arrow_with_hook: *Open again* {at}",
    "flapping": ":left_right_arrow: *Flapping*: it opens and ends again and again, {times} times by "
    "{at}. The card stays open, and is edited at most once an hour, until it has come to rest for an hour.",
    "acknowledged": ":eyes: *Acknowledged* by {name} {at}",
    "snoozed": ":zzz: *Snoozed* by {name} until {until}",
    "snooze_ended": ":alarm_clock: *The snooze has ended, and it is still so*",
    "reminder": ":bell: *Still so, and nobody has acknowledged it*",
    "escalated": ":rotating_light: *Nobody has acknowledged this page*",
    "louder": ":chart_with_upwards_trend: *It got worse* since {name} decided about it",
    "resolved": ":white_check_mark: *Resolved* {at}",
    "handed_over": ":grey_question: *Could not be judged for a day*: left to the weekly digest until it can",
}

_ALONE = frozenset({"flapping"})
"""Written over a reply that the channel shows already, so it names its subject as that one did."""


def render_note(content: Mapping[str, Any]) -> dict[str, Any]:
    """Render a note: `text`, and the same as one section."""
    text = note_text(content)
    section = {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}
    return {"text": text, "blocks": [section]}


def note_text(content: Mapping[str, Any]) -> str:
    """Write a note as text; what the channel sees names what it is about."""
    line = _LINES[content["note"]].format(
        at=when(content["at"]),
        name=safe(content["name"], 80),
        until=when(content["until"]) if content["until"] else "",
        times=number(content["times"]) if content["times"] else "several",
    )
    called = f"{mention(content['mention'])} " if content["mention"] else ""
    alone = content["broadcast"] or content["note"] in _ALONE
    about = f"\n{title(content['about'])}" if alone else ""
    return f"{called}{line}{about}"
