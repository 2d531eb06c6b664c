"""`/gpu digest`: the alerts of this week so far, and what could not be seen."""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from steward.alerts.model import Card, CardKind
from steward.cluster.figures import stamp
from steward.slack.answers.status import blind_spots
from steward.slack.answers.view import ClusterView
from steward.slack.text import number, safe, when

LATE = timedelta(minutes=3)
"""As on cards: from here on a message is late."""


def digest(views: Sequence[ClusterView], now: datetime) -> list[str]:
    """Count what happened since Monday, in each cluster's own time zone."""
    return [line for view in views for line in _cluster(view, now)]


def _cluster(view: ClusterView, now: datetime) -> list[str]:
    begin = _monday(now, view.policy.time_zone)
    alerts = view.state.alerts.values()
    cards = [c for c in view.state.cards.values() if c.kind is CardKind.CARD]
    counts = (
        ("alerts opened", sum(a.opened is not None and a.opened >= begin for a in alerts)),
        ("resolved", sum(a.resolved is not None and a.resolved >= begin for a in alerts)),
        ("cards held back", sum(c.held_at is not None and c.held_at >= begin for c in cards)),
        ("late", sum(_late(card, begin) for card in cards)),
        ("not judged now", sum(alert.stale for alert in alerts)),
        ("left to the digest", sum(c.content["state"] == "handed_over" for c in cards)),
    )
    told = ", ".join(f"{what} {number(count)}" for what, count in counts)
    lines = [f"*{safe(view.name)}*, since {when(stamp(begin))}: {told}"]
    alive = f"I am alive: {view.looked_at()}."
    unseen = blind_spots(view) or ["There was nothing that I could not see at that time."]
    return [*lines, alive, *unseen]


def _late(card: Card, begin: datetime) -> bool:
    if card.announced_at is None or card.let_at is None or card.announced_at < begin:
        return False
    return card.announced_at - card.let_at >= LATE


def _monday(now: datetime, zone: str) -> datetime:
    local = now.astimezone(ZoneInfo(zone))
    day = local.date() - timedelta(days=local.weekday())
    return datetime.combine(day, time(), local.tzinfo)
