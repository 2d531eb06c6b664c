"""What people decided about cards, how long it holds, and what comes of nobody deciding."""

from copy import replace
from datetime import datetime, timedelta
from typing import Any

from steward.alerts.model import Card, Decision
from steward.alerts.ranks import rank
from steward.cluster.figures import stamp
from steward.cluster.policy import ClusterPolicy, Severity


def follow(before: Card | None, card: Card, cluster: ClusterPolicy, now: datetime) -> Card:
    """Lift decisions that have ended, and escalate what nobody decided about.

    Parameters
    ----------
    before : Card or None
        As it was when it was last laid out.
    card : Card
        Where its alerts stand now.
    now : datetime
        What snoozes, escalation and reminders go by.
    """
    opened = before is not None and before.content["state"] == "resolved"
    is_open = card.content["state"] != "resolved"
    decision = card.snoozed or card.acknowledged
    if opened and is_open:
        # Back again is news, whoever knew of it before; a snooze says until when it is not.
        card = replace(card, acknowledged=None, escalated_at=None, paged_at=None)
    if decision is not None and is_open and rank(card.severity) > rank(decision.severity):
        lifted: dict[str, Any] = {"escalated_at": None, "paged_at": None}
        card = replace(card, acknowledged=None, snoozed=None, **lifted)
    if card.snoozed is not None and card.snoozed.until is not None and now >= card.snoozed.until:
        card = replace(card, snoozed=None, reminded_at=now)
    if _escalates(card, cluster, now):
        card = replace(card, escalated_at=now)
    elif _reminds(card, cluster, now):
        card = replace(card, reminded_at=now)
    return card


def told(card: Card) -> dict[str, Any]:
    """State decisions and escalation, for a card's facts."""
    over = card.content["state"] == "resolved"
    return {
        "acknowledged": _told(card.acknowledged),
        "snoozed": None if over else _told(card.snoozed),
        "escalated": stamp(card.escalated_at) if card.escalated_at else None,
    }


def _told(decision: Decision | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    return {
        "user": decision.user,
        "name": decision.name,
        "at": stamp(decision.at),
        "until": stamp(decision.until) if decision.until else None,
    }


def _undecided(card: Card) -> bool:
    quiet = card.acknowledged is not None or card.snoozed is not None
    return card.content["state"] == "open" and not quiet


def _escalates(card: Card, cluster: ClusterPolicy, now: datetime) -> bool:
    if card.severity != Severity.PAGE or card.escalated_at is not None or not _undecided(card):
        return False
    after = timedelta(minutes=cluster.alerting.escalation.after_minutes)
    return card.severity_since is not None and now - card.severity_since >= after


def _reminds(card: Card, cluster: ClusterPolicy, now: datetime) -> bool:
    every = timedelta(hours=cluster.alerting.reminder_hours)
    last = card.reminded_at or card.announced_at
    return bool(every) and _undecided(card) and last is not None and now - last >= every
