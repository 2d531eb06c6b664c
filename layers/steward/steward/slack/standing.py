"""Where a card stands: what a reader must know of it before anything else."""

from collections.abc import Iterator, Mapping
from typing import Any

from steward.slack.text import channel, number, safe, when

_ENDINGS = {
    "active_again": "active again",
    "released": "released: the GPUs are no longer held",
    "admitted": "admitted",
    "finished": "finished",
    "quota_changed": "the quota changed",
    "fixed": "fixed",
    "exempted": "exempted",
    "expired": "no longer tracked",
    "reason_changed": "goes on for another reason",
}

_HELD = {
    "quiet_hours": "quiet hours",
    "daily_cap": "the team had as many new cards that day as the policy allows",
}


def standing(content: Mapping[str, Any]) -> list[str]:
    """Say how a card stands, a line a fact: its end, decisions, doubts, and why it is where it is."""
    return [*_copied(content), *_decided(content), *_doubted(content), *_placed(content)]


def ending(told: Mapping[str, Any]) -> str:
    """Say why something ended."""
    return _ENDINGS.get(told["resolution"], safe(told["resolution"]))


def _copied(content: Mapping[str, Any]) -> Iterator[str]:
    if content.get("note") == "copy":
        home = content["home"]
        where = f" in {channel(home['channel'])}" if home else " nowhere yet"
        known = content["state"] == "resolved" or content["acknowledged"]
        why = "." if known else ", where nobody has acknowledged it: answer there, or here."
        yield f"A copy: the card stands{where}{why}"


def _decided(content: Mapping[str, Any]) -> Iterator[str]:
    if content["state"] == "resolved":
        yield f"*Resolved* {when(content['resolved'])}: {ending(content)}{_waived(content)}"
    elif known := content["acknowledged"]:
        yield f":eyes: *Acknowledged* by {safe(known['name'], 80)} {when(known['at'])}"
    elif content["escalated"]:
        yield f":rotating_light: *Nobody acknowledged it*: escalated {when(content['escalated'])}"
    if snoozed := content["snoozed"]:
        yield f":zzz: *Snoozed* by {safe(snoozed['name'], 80)} until {when(snoozed['until'])}"
    if flapping := content["flapping"]:
        times = number(content["running"]["openings"])
        yield (
            f":left_right_arrow: *Flapping* since {when(flapping['since'])}: opened {times} times. "
            "What stands here is brought up to date once an hour."
        )


def _doubted(content: Mapping[str, Any]) -> Iterator[str]:
    as_of = when(content["running"]["as_of"])
    if content["state"] == "handed_over":
        yield (
            ":grey_question: *Could not be judged for a day*: the weekly digest names it, and this "
            f"card goes on when it can be. What stands here is as of {as_of}."
        )
    elif content["stale_since"]:
        yield (
            f":grey_question: *Could not be judged* since {when(content['stale_since'])}: it may "
            f"have ended or got worse. What stands here is as of {as_of}."
        )


def _placed(content: Mapping[str, Any]) -> Iterator[str]:
    if held := content["held"]:
        yield f":crescent_moon: Held back since {when(held['since'])}: {_HELD[held['why']]}"
    if content["rerouted"]:
        yield f":warning: {safe(content['rerouted'], 500)}"


def _waived(content: Mapping[str, Any]) -> str:
    if (waiver := content["exempted"]) is None:
        return ""
    until = when(waiver["until"])
    return f", by {safe(waiver['name'], 80)} until {until}: {safe(waiver['reason'])}"
