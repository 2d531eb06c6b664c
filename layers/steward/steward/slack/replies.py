"""Answers to a press or a command about a card, which only the person sees."""

from collections.abc import Callable, Mapping
from typing import Any

from steward.slack.text import code, safe, when

_HELP = "`/gpu help` lists what can be typed."


def reply(kind: str, **facts: Any) -> dict[str, Any]:
    """Answer an action.

    Parameters
    ----------
    kind : str
        What became of it: `done_acknowledge`, `done_snooze`, `done_exempt`, `already`, `closed`,
        `not_found`, `not_permitted`, `bad_span`.
    **facts
        `card`, and what the kind speaks of.
    """
    return ephemeral(_ANSWERS[kind](facts))


def ephemeral(text: str) -> dict[str, Any]:
    """Make a message that only the person sees, and that leaves the card where it is."""
    return {"response_type": "ephemeral", "replace_original": False, "text": text}


def _acknowledged(facts: Mapping[str, Any]) -> str:
    return (
        f"You acknowledged card {code(facts['card'])}: no reminders and no escalation until it gets "
        "worse, or ends and begins again."
    )


def _snoozed(facts: Mapping[str, Any]) -> str:
    return (
        f"You snoozed card {code(facts['card'])} until {when(facts['until'])}. The card stays "
        "true meanwhile; if it is still so then, its thread says so."
    )


def _exempted(facts: Mapping[str, Any]) -> str:
    return (
        f"You exempted card {code(facts['card'])} until {when(facts['until'])}: "
        f"{safe(facts['reason'])}. What is to stay exempt belongs in the policy."
    )


def _already(facts: Mapping[str, Any]) -> str:
    done = f"snoozed it until {when(facts['until'])}" if facts["until"] else "acknowledged it"
    return (
        f"{safe(facts['name'], 80)} {done}, at {when(facts['at'])}. Nothing changed on card "
        f"{code(facts['card'])}."
    )


def _closed(facts: Mapping[str, Any]) -> str:
    return f"Card {code(facts['card'])} is over since {when(facts['since'])}. Nothing changed."


def _not_found(facts: Mapping[str, Any]) -> str:
    return (
        f"There is no card {code(facts['card'])}: its name stands in the last line of every card, "
        f"and cards are kept for 30 days. {_HELP}"
    )


def _not_permitted(facts: Mapping[str, Any]) -> str:
    who = ", ".join(safe(email, 120) for email in facts["who"][:10]) or "nobody yet"
    return (
        f"You may not exempt card {code(facts['card'])}. These may: {who} (owners of the team, and "
        "`slack.may_exempt` in the policy). If you are one of them, your address must be in "
        "`slack.users`, or `slack.lookup_users` be on."
    )


def _bad_span(facts: Mapping[str, Any]) -> str:
    return f"{safe(facts['error'])}. Nothing changed on card {code(facts['card'])}."


_ANSWERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "done_acknowledge": _acknowledged,
    "done_snooze": _snoozed,
    "done_exempt": _exempted,
    "already": _already,
    "closed": _closed,
    "not_found": _not_found,
    "not_permitted": _not_permitted,
    "bad_span": _bad_span,
}
