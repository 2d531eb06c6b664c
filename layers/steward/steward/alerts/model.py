"""An alert is a finding's life; a card is what Slack shows of some alerts."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from steward.cluster.findings import Finding, Resolution


class AlertState(StrEnum):
    """Where a finding's life stands."""

    DAMPED = "damped"
    OPEN = "open"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A finding's life.

    Attributes
    ----------
    finding : Finding
        As last seen; with its final numbers once resolved.
    first_seen, last_seen : datetime
        Times of the first and last evaluation that showed it.
    held_until : datetime
        Last evaluation that showed it or could not judge it: nothing resolves before it has been
        known to be absent for the damping time after this.
    unknown_since : datetime or None
        Since when it could not be judged.
    clearing : Resolution or None
        Why it will resolve, once it has been unseen for long enough.
    """

    finding: Finding
    state: AlertState
    first_seen: datetime
    last_seen: datetime
    held_until: datetime
    opened: datetime | None = None
    resolved: datetime | None = None
    resolution: Resolution | None = None
    clearing: Resolution | None = None
    unknown_since: datetime | None = None
    stale: bool = False

    @property
    def key(self) -> str:
        """Identity: detector, subject and reason."""
        return self.finding.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try to bring a card's revision to Slack; travels in the message's metadata."""

    cluster: str
    card: str
    revision: str
    id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """Where a message stands in Slack."""

    channel: str
    ts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What one Slack message should show and what it shows.

    Attributes
    ----------
    key : str
        Stable identity of the card (detector family and grouping subject, and its incident).
    content : dict
        JSON facts that the message is rendered from.
    desired : str
        Revision (digest of the content) that Slack should show.
    delivered : str or None
        Revision that Slack is known to show.
    delivered_at : datetime or None
        When it was delivered.
    intent : Attempt or None
        A try whose outcome is not recorded: the history is looked up before another post.
    posted : Posted or None
        Where the message stands; None before the first delivery.
    trouble : str or None
        Why the last try failed, for people.
    """

    key: str
    channel: str
    severity: str
    content: dict[str, Any]
    desired: str
    delivered: str | None = None
    delivered_at: datetime | None = None
    intent: Attempt | None = None
    posted: Posted | None = None
    closed: bool = False
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerState:
    """Everything the reconciler knows of one cluster."""

    cluster: str
    at: datetime | None = None
    alerts: dict[str, Alert] = field(default_factory=dict)
    cards: dict[str, Card] = field(default_factory=dict)
