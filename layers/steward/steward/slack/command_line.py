"""What somebody typed after `/gpu`: words to a wish, or what could have been meant."""

from difflib import get_close_matches

import msgspec

from steward.slack.text import code

USAGES = {
    "status": "/gpu status",
    "why": "/gpu why <job>",
    "idle": "/gpu idle [team]",
    "team": "/gpu team <name>",
    "digest": "/gpu digest",
    "ack": "/gpu ack <card>",
    "snooze": "/gpu snooze <card> <4h | 2d | monday>",
    "exempt": "/gpu exempt <card> <7d> <reason>",
    "help": "/gpu help",
}
"""What can be typed, and how."""

_HIDDEN = {"evidence": "the card's button", "exempt-help": "the card's button"}
_LEAST = {
    "why": 1,
    "team": 1,
    "ack": 1,
    "snooze": 2,
    "exempt": 3,
    "evidence": 1,
    "exempt-help": 1,
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was understood.

    Attributes
    ----------
    words : tuple of str
        What follows the name; of `exempt` the third is the whole reason.
    cluster : str or None
        The cluster that is meant (`in <cluster>` at the end); None: every one.
    """

    name: str
    words: tuple[str, ...] = ()
    cluster: str | None = None


class Misunderstood(msgspec.Struct, frozen=True, kw_only=True):
    """One that was not: what it lacks, in a sentence that quotes nothing of it."""

    why: str


def parse(text: str) -> Asked | Misunderstood:
    """Read a command.

    Parameters
    ----------
    text : str
        Whatever was typed; nothing is help.
    """
    # A name that is copied from a card brings its backticks along.
    words = text.replace("`", " ").split()
    name = words[0].lower() if words else "help"
    if name not in USAGES and name not in _HIDDEN:
        near = get_close_matches(name, USAGES, n=1)
        meant = f"Did you mean {code(USAGES[near[0]])}?" if near else "`/gpu help` lists them."
        return Misunderstood(why=f"There is no such command. {meant}")
    given, cluster = words[1:], None
    if name not in {"exempt", "help"} and len(given) > 1 and given[-2].lower() == "in":
        given, cluster = given[:-2], given[-1]
    if len(given) < _LEAST.get(name, 0):
        return Misunderstood(why=f"Something is missing: {code(USAGES.get(name, name))}")
    if name == "exempt":
        given = [*given[:2], " ".join(given[2:])]
    return Asked(name=name, words=tuple(given), cluster=cluster)
