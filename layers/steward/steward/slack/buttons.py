"""The buttons of a card, and how a press finds its card again."""

from collections.abc import Mapping
from typing import Any

PREFIX = "card"
"""First part of the block id of a card's buttons: `card/<cluster>/<card>`."""

SPANS = (("1h", "1 hour"), ("4h", "4 hours"), ("monday", "until Monday 09:00"))
"""How long a card may be snoozed from its own menu; `/gpu snooze` takes any span."""


def buttons(content: Mapping[str, Any]) -> dict[str, Any]:
    """Give the block of buttons of an open card."""
    elements = [] if content["acknowledged"] else [_button("acknowledge", "Acknowledge", "primary")]
    elements += [_snooze(), _button("exempt", "Exempt…"), _button("evidence", "Show evidence")]
    return {
        "type": "actions",
        "block_id": f"{PREFIX}/{content['cluster']}/{content['card']}",
        "elements": elements,
    }


def card_of(block_id: str) -> tuple[str, str] | None:
    """Read cluster and card from the block id of a press; None: it is no card of ours."""
    head, _, rest = block_id.partition("/")
    cluster, _, card = rest.rpartition("/")
    return (cluster, card) if head == PREFIX and cluster and card else None


def _button(action: str, text: str, style: str | None = None) -> dict[str, Any]:
    button = {"type": "button", "action_id": action, "text": _plain(text)}
    return {**button, "style": style} if style else button


def _snooze() -> dict[str, Any]:
    options = [{"text": _plain(text), "value": span} for span, text in SPANS]
    return {
        "type": "static_select",
        "action_id": "snooze",
        "placeholder": _plain("Snooze"),
        "options": options,
    }


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": True}
