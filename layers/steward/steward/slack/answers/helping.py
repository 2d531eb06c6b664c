"""`/gpu help`, and how to do without the dialog."""

from steward.slack.command_line import USAGES
from steward.slack.text import code

_ABOUT = {
    "status": "is anything wrong, and what could not be seen",
    "why": "everything that is said of a job, pending reasons included",
    "idle": "allocated and unused GPUs, the costliest first",
    "team": "a team's open cards, and what else is said of it",
    "digest": "this week's alerts so far",
    "ack": "no reminders, no escalation",
    "snooze": "quiet until then; the card stays true",
    "exempt": "the problem is known and wanted, until then",
    "help": "this list",
}


def helping() -> list[str]:
    """List what can be typed."""
    lines = [f"{code(usage)}: {_ABOUT[name]}" for name, usage in USAGES.items()]
    return [
        *lines,
        f"{code('in <cluster>')} at the end asks about one cluster. The name of a card stands in its last line.",
    ]


def exempt_help(card: str) -> list[str]:
    """Say how to exempt a card where Slack did not open the dialog."""
    return [
        f"Slack did not open the dialog in time. Type it: {code(f'/gpu exempt {card} 7d <reason>')}"
    ]
