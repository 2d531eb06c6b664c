"""What waits: new cards in quiet hours, and more of them in a day than a team wants."""

from collections import Counter
from collections.abc import Iterable
from copy import replace
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from steward.alerts.model import Card, Held
from steward.cluster.figures import stamp
from steward.cluster.policy import Alerting, ClusterPolicy, QuietHours, Severity


def hold(cards: Iterable[Card], cluster: ClusterPolicy, now: datetime) -> list[Card]:
    """Let new cards through, or have them wait.

    Parameters
    ----------
    cards : iterable of Card
        In the order in which they are to be let through.
    cluster : ClusterPolicy
        Its quiet hours, holidays and daily cap.

    Returns
    -------
    list of Card
        Only what is not yet in Slack can wait; a page never does.
    """
    cards = list(cards)
    local = now.astimezone(ZoneInfo(cluster.time_zone))
    quiet = is_quiet(cluster.alerting, local)
    cap = cluster.alerting.daily_cap
    used = Counter(
        card.content["team"]
        for card in cards
        if card.let_at is not None
        and card.severity != Severity.PAGE
        and card.let_at.astimezone(local.tzinfo).date() == local.date()
    )
    held: list[Card] = []
    for card in cards:
        if card.let_at is not None or card.closed:
            held.append(card)
            continue
        team = card.content["team"]
        reason = None
        if card.severity != Severity.PAGE and not card.sent:
            full = bool(cap) and team is not None and used[team] >= cap
            reason = Held.QUIET_HOURS if quiet else Held.DAILY_CAP if full else None
        if reason is not None:
            held.append(replace(card, held=reason, held_at=card.held_at or now))
        elif card.held is not None and card.ended is not None:
            held.append(card)  # it ended while it waited: there is nothing to let through
        else:
            used[team] += card.severity != Severity.PAGE
            held.append(replace(card, let_at=now))
    return held


def told(card: Card) -> dict[str, Any] | None:
    """State, for a card's facts, that it was held back until it was let through."""
    if card.held is None or card.held_at is None:
        return None
    return {"why": card.held.value, "since": stamp(card.held_at)}


def is_quiet(alerting: Alerting, local: datetime) -> bool:
    """Tell whether a local time lies in quiet hours or on a holiday."""
    return local.date().isoformat() in alerting.holidays or any(
        _within(hours, local) for hours in alerting.quiet_hours
    )


def _within(hours: QuietHours, local: datetime) -> bool:
    begin, end = time.fromisoformat(hours.begin), time.fromisoformat(hours.end)
    clock = local.time().replace(second=0, microsecond=0, tzinfo=None)  # the last minute belongs
    if begin <= end:
        return begin <= clock <= end and _begins(hours, local)
    yesterday = local - timedelta(days=1)
    return (clock >= begin and _begins(hours, local)) or (
        clock <= end and _begins(hours, yesterday)
    )


def _begins(hours: QuietHours, local: datetime) -> bool:
    return not hours.days or local.weekday() in hours.days
