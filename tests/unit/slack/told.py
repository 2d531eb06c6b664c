"""A card's facts as its renderer gets them, from alerts."""

from typing import Any

from steward.alerts.facts import facts
from steward.alerts.model import Alert
from tests.builders import a_cluster

UNTOUCHED: dict[str, Any] = {
    "card": "3f9a2c1b0d",
    "acknowledged": None,
    "snoozed": None,
    "escalated": None,
    "held": None,
    "follows": [],
    "follows_omitted": 0,
    "delivered": "2026-11-05T12:01:00Z",
    "rerouted": None,
    "mentions": [],
}
"""What a card says that nobody has touched."""


def card_of(alert: Alert, *others: Alert, **told: Any) -> dict[str, Any]:
    return {**facts(alert, [alert, *others], a_cluster()), **UNTOUCHED, **told}
