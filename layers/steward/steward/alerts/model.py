"""An alert is a finding's life; a card is what Slack shows of some alerts."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from steward.cluster.findings import Finding, Resolution

KEPT = timedelta(days=30)
"""Ended alerts and closed cards are kept this long: a digest or a review may still ask for them."""


REMEMBERED = 500
"""Items of a list of evidence that an alert keeps. A cluster of 10,000 accelerators that loses its
telemetry names them all, and a stored item holds 400 KB (DynamoDB)."""


class AlertState(StrEnum):
    """Where a finding's life stands."""

    DAMPED = "damped"
    OPEN = "open"
    RESOLVED = "resolved"


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """A finding's life.

    Attributes
    ----------
    finding : Finding
        As last seen; with its final numbers once resolved. Lists of evidence are cut to
        :data:`REMEMBERED`, and what was left out is counted under `omitted`.
    first_seen, last_seen : datetime
        Times of the first and last evaluation that showed it.
    held_until : datetime
        Last evaluation that showed it or could not judge it: nothing resolves before it has been
        known to be absent for the damping time after this.
    opened : datetime or None
        When it opened: the time of detection.
    incident : datetime or None
        When the first alert of its incident opened. An alert that takes over from another reason
        of the same group carries that one's incident on, and so stays on its card.
    unknown_since : datetime or None
        First evaluation of those, without a gap up to now, that could not judge it.
    stale : bool
        It could not be judged for long enough that a reader must be told.
    clearing : Resolution or None
        Why it will resolve, once it has been unseen for long enough.
    """

    finding: Finding
    state: AlertState
    first_seen: datetime
    last_seen: datetime
    held_until: datetime
    opened: datetime | None = None
    incident: datetime | None = None
    resolved: datetime | None = None
    resolution: Resolution | None = None
    clearing: Resolution | None = None
    unknown_since: datetime | None = None
    stale: bool = False

    @property
    def key(self) -> str:
        """Identity: detector, subject and reason."""
        return self.finding.key

    @property
    def group(self) -> str:
        """What a reader sees as one problem: alerts of one group and incident share a card."""
        return group_of(self.finding)


def group_of(finding: Finding) -> str:
    """Name the problem that a finding belongs to, from stable identity only.

    Telemetry is one problem a reason, whatever it hides. Everything else is one a subject: the
    job, the queue's resource, the node, the rule and object.
    """
    if finding.detector == "telemetry":
        return f"{finding.detector}|{finding.reason}"
    return f"{finding.detector}|{finding.subject}"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try to bring a card's revision to a channel; travels in the message's metadata."""

    cluster: str
    card: str
    channel: str
    revision: str
    id: str
    at: datetime


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message stands in Slack."""

    channel: str
    ts: str


class Card(msgspec.Struct, frozen=True, kw_only=True):
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
        When that revision was delivered.
    announced_at : datetime or None
        When the message was first delivered: what lateness is measured by.
    attempts : int
        Tries so far; numbers them, so that each has an id of its own.
    intent : Attempt or None
        A try whose outcome is not recorded: the history is looked up before another post.
    doubtful : tuple of Attempt
        Posts that no look-up has shown yet and that may still appear: where the card stands by
        then, what appears is a duplicate.
    posted : Posted or None
        Where the message stands; None before the first delivery.
    rerouted : str or None
        Why the message stands in the platform channel and not in the one it was meant for.
    closed : bool
        Slack shows the end of it; nothing is left to do.
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
    announced_at: datetime | None = None
    attempts: int = 0
    intent: Attempt | None = None
    doubtful: tuple[Attempt, ...] = ()
    posted: Posted | None = None
    rerouted: str | None = None
    closed: bool = False
    trouble: str | None = None


class ReconcilerState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the reconciler knows of one cluster."""

    cluster: str
    at: datetime | None = None
    alerts: dict[str, Alert] = msgspec.field(default_factory=dict)
    cards: dict[str, Card] = msgspec.field(default_factory=dict)
