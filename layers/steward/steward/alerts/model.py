"""An alert is a finding's life; a card is what Slack shows of some alerts."""

import hashlib
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from steward.cluster.findings import Finding, Resolution
from steward.cluster.policy import Severity

KEPT = timedelta(days=30)
"""Ended alerts and closed cards are kept this long: a digest or a review may still ask for them."""


OPENINGS = 10
"""Openings of a card that are remembered: flapping needs three."""

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
        When it opened: the time of detection. It stays while an alert that has ended is seen again
        and not yet open again, and so do `resolved`, `resolution` and the finding it ended with.
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

    Idleness and preemptions are one problem a job; jobs that wait, one a team, reason and queue;
    telemetry and the steward's own troubles, one a reason. Everything else is one a subject: the
    queue's resource, the node, the rule and object.
    """
    match finding.detector:
        case "idle_gpus" | "preemptions":
            return f"job|{finding.subject}"
        case "pending":
            queue = finding.evidence.get("queue")
            return f"pending|{finding.team or ''}|{finding.reason}|{queue or ''}"
        case "telemetry" | "steward":
            return f"{finding.detector}|{finding.reason}"
    return f"{finding.detector}|{finding.subject}"


def card_key(alert: Alert) -> str | None:
    """Name the card that an alert stands on: its group and incident; None before it has opened."""
    if alert.incident is None:
        return None
    return f"{alert.group}|{alert.incident.astimezone(UTC):%Y%m%dT%H%M%SZ}"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try to bring a card's revision to a channel; travels in the message's metadata.

    Attributes
    ----------
    thread : str or None
        `ts` of the message whose thread it goes to.
    """

    cluster: str
    card: str
    channel: str
    revision: str
    id: str
    at: datetime
    thread: str | None = None


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message stands in Slack."""

    channel: str
    ts: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody decided about a card in Slack.

    Attributes
    ----------
    id : str
        Of the action: the same one again changes nothing.
    user, name : str
        Slack user id, and what people call them.
    severity : Severity
        The card's at that time: what is more severe breaks through.
    until : datetime or None
        End of a snooze.
    """

    id: str
    user: str
    name: str
    at: datetime
    severity: Severity
    until: datetime | None = None


class Waiver(msgspec.Struct, frozen=True, kw_only=True):
    """An exemption made in Slack: a problem that nobody wants to hear of until then.

    Attributes
    ----------
    group : str
        As :func:`group_of` names it: new subjects of the same problem are exempt as well.
    detectors : tuple of str
        Those that had something to say of it; another one's findings are not exempt.
    """

    id: str
    group: str
    detectors: tuple[str, ...]
    reason: str
    user: str
    name: str
    at: datetime
    until: datetime

    def covers(self, finding: Finding, at: datetime) -> bool:
        """Tell whether it speaks of a finding and has not ended."""
        return (
            at < self.until
            and finding.detector in self.detectors
            and group_of(finding) == self.group
        )


class Held(StrEnum):
    """Why a card is not posted for now."""

    QUIET_HOURS = "quiet_hours"
    DAILY_CAP = "daily_cap"


class CardKind(StrEnum):
    """What a message is: a card, a reply in the thread of one, or word of one in a second channel."""

    CARD = "card"
    NOTE = "note"
    COPY = "copy"


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What one Slack message should show and what it shows.

    Attributes
    ----------
    key : str
        Stable identity of the card (detector family and grouping subject, and its incident); of a
        note or a copy, that of its card and what it tells.
    parent : str or None
        Key of the card that a note or a copy speaks of.
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
    openings : tuple of datetime
        When it went from not running to running, the last :data:`OPENINGS` times.
    times : int
        How often it did in all.
    ended : datetime or None
        When the last of its alerts ended; None while one is open.
    severity_since : datetime or None
        Since when it has had its severity, and been open: what escalation counts from.
    acknowledged, snoozed : Decision or None
        Decisions in force.
    held, held_at : Held and datetime, or None
        Why the card had to wait, and since when.
    let_at : datetime or None
        When it was let through; None: it waits. A card that ends while it waits is never posted.
    reminded_at : datetime or None
        When it was last brought up again.
    escalated_at, paged_at : datetime or None
        When nobody had acknowledged for too long, and when the pager's topic took the word of it.
    mentions : tuple of str or None
        Slack ids of the owners to mention; None: not looked up yet.
    """

    key: str
    channel: str
    severity: str
    content: dict[str, Any]
    desired: str
    kind: CardKind = CardKind.CARD
    parent: str | None = None
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
    openings: tuple[datetime, ...] = ()
    times: int = 0
    ended: datetime | None = None
    severity_since: datetime | None = None
    acknowledged: Decision | None = None
    snoozed: Decision | None = None
    held: Held | None = None
    held_at: datetime | None = None
    let_at: datetime | None = None
    reminded_at: datetime | None = None
    escalated_at: datetime | None = None
    paged_at: datetime | None = None
    mentions: tuple[str, ...] | None = None

    @property
    def waits(self) -> bool:
        """Whether it is held back: quiet hours, or enough cards for one day."""
        return self.held is not None and self.let_at is None

    @property
    def sent(self) -> bool:
        """Whether Slack shows it, or may show it."""
        return bool(self.posted or self.intent or self.doubtful)


def card_id(cluster: str, key: str) -> str:
    """Give a card a short name that people can type: ten hexadecimal digits."""
    return hashlib.sha256(f"{cluster}|{key}".encode()).hexdigest()[:10]


class ReconcilerState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the reconciler knows of one cluster.

    Attributes
    ----------
    at : datetime or None
        Of the evaluation that was folded last.
    waivers : dict of str to Waiver
        By their id.
    """

    cluster: str
    at: datetime | None = None
    alerts: dict[str, Alert] = msgspec.field(default_factory=dict)
    cards: dict[str, Card] = msgspec.field(default_factory=dict)
    waivers: dict[str, Waiver] = msgspec.field(default_factory=dict)

    def card_named(self, short: str) -> Card | None:
        """Find a card by the short name that it shows (:func:`card_id`)."""
        return next(
            (
                card
                for card in self.cards.values()
                if card.kind is CardKind.CARD and card_id(self.cluster, card.key) == short
            ),
            None,
        )
