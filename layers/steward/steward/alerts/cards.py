"""Cards: which alerts a reader sees together, in which channel, and when an edit is worth it.

Decides what each Slack message should show, as JSON facts; says nothing of how it looks.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from steward.alerts import decisions, holding, notes
from steward.alerts.facts import facts
from steward.alerts.inhibition import Inhibition
from steward.alerts.lifecycle import REOPEN
from steward.alerts.model import (
    KEPT,
    OPENINGS,
    Alert,
    AlertState,
    Card,
    CardKind,
    ReconcilerState,
    card_id,
    card_key,
)
from steward.alerts.ranks import rank
from steward.alerts.revisions import revision
from steward.cluster.figures import stamp
from steward.cluster.findings import Finding, Resolution
from steward.cluster.policy import ClusterPolicy, Severity

REFRESH = timedelta(hours=1)
"""Running numbers alone edit a card at most this often: they grow at every tick, and an edit a
tick a card would spend Slack's rate limit on what no reader waits for."""

FLAPS = 3
FLAP_SPAN = timedelta(hours=4)
"""So many openings in so long are flapping, until nothing has changed for :data:`REOPEN`."""

HANDED_OVER = timedelta(hours=24)
"""What could not be judged for this long is left to the weekly digest."""


def lay_out(state: ReconcilerState, cluster: ClusterPolicy, now: datetime) -> dict[str, Card]:
    """Say what every message of a cluster should show.

    Parameters
    ----------
    state : ReconcilerState
        Alerts as of `state.at`, and the cards so far.
    cluster : ClusterPolicy
        Teams, channels, and when people are told.
    now : datetime
        Decides what only time brings: ends of snoozes and quiet hours, escalation, reminders.

    Returns
    -------
    dict of str to Card
        By card key. A card begins with an alert of severity warn or page and follows its incident
        to the end, whatever the severity becomes; info alone is digest material. Delivered parts
        are as they were.
    """
    at = state.at
    if at is None:
        return state.cards
    incidents: dict[str, list[Alert]] = {}
    for alert in state.alerts.values():
        if (key := card_key(alert)) is not None:
            incidents.setdefault(key, []).append(alert)
    before = {key: card for key, card in state.cards.items() if card.kind is CardKind.CARD}
    layout = _Layout(state=state, cluster=cluster, at=at, now=now, inhibition=Inhibition(incidents))
    followed = [
        card
        for key in sorted(before.keys() | incidents.keys())
        if (card := layout.follow(before.get(key), incidents.get(key, ()), key))
    ]
    held = holding.hold(by_urgency(followed), cluster, now)
    cards = {card.key: layout.told(before.get(card.key), card) for card in held}
    messages = notes.lay_out(state.cards, cards, cluster, now)
    return {
        key: card
        for key, card in (cards | messages).items()
        if not _forgotten(cards.get(card.parent or key), now)
    }


def close(state: ReconcilerState, at: datetime) -> dict[str, Card]:
    """Say what every message should show of a cluster that is not watched any more: its end."""
    ended = {
        key: orphaned(card, at)
        for key, card in state.cards.items()
        if card.kind is not CardKind.NOTE
    }
    kept = {key: card for key, card in ended.items() if card}
    told = {k: c for k, c in state.cards.items() if c.kind is CardKind.NOTE and c.parent in kept}
    return kept | told


def by_urgency(cards: Iterable[Card]) -> list[Card]:
    """Order cards: most severe first, then the longest waiting."""
    return sorted(cards, key=lambda c: (-rank(c.severity), c.content["detected"], c.key))


def route(finding: Finding, cluster: ClusterPolicy) -> str:
    """Choose the channel (its id): the team's; the platform team's for what is theirs to mend."""
    team = cluster.team_named(finding.team)
    platform = finding.detector in {"telemetry", "governance", "steward"}
    if platform or team is None or team.channel is None:
        return cluster.platform_channel.id
    return team.channel.id


def orphaned(card: Card, at: datetime) -> Card | None:
    """End a card whose alerts are gone: it must not stay open for ever."""
    if card.content["state"] == "resolved":
        return card
    if not card.sent:
        return None
    ended = {"state": "resolved", "resolved": stamp(at), "resolution": Resolution.EXPIRED.value}
    content = {**card.content, **ended, "stale_since": None, "snoozed": None, "flapping": None}
    return replace(card, content=content, desired=revision(content), ended=at)


def flapping(card: Card, alerts: Iterable[Alert], at: datetime) -> bool:
    """Tell whether a card opens and ends again and again.

    It is over once nothing has changed for :data:`REOPEN`; what has ended and is still seen now and
    then, if never for long enough to open, has not come to rest.
    """
    recent = [opening for opening in card.openings if at - opening <= FLAP_SPAN]
    changed = max(card.openings, default=at)
    if card.ended is not None:
        changed = max(card.ended, *(alert.last_seen for alert in alerts))
    return len(recent) >= FLAPS and at - changed < REOPEN


def _forgotten(card: Card | None, now: datetime) -> bool:
    """Tell whether a card, or the one that a note speaks of, has been over for long."""
    if card is None:
        return True
    over = card.delivered_at if card.closed else None
    if card.waits:
        over = card.ended
    return over is not None and now - over > KEPT


class _Layout:
    """One run: what every card is followed with."""

    def __init__(
        self,
        *,
        state: ReconcilerState,
        cluster: ClusterPolicy,
        at: datetime,
        now: datetime,
        inhibition: Inhibition,
    ) -> None:
        self._waivers = tuple(state.waivers.values())
        self._cluster = cluster
        self._at = at
        self._now = now
        self._inhibition = inhibition

    def follow(self, before: Card | None, alerts: Sequence[Alert], key: str) -> Card | None:
        """Bring a card to where its alerts stand; None: there is none (any more)."""
        running = [alert for alert in alerts if alert.state is AlertState.OPEN]
        if before is None:
            news = [alert for alert in alerts if alert.resolved in {None, self._at}]
            if not any(map(_loud, news)) or self._inhibition.hides(key, alerts):
                return None
            before = Card(key=key, channel="", severity="", content={}, desired="")
        elif not alerts:
            return before if before.closed else orphaned(before, self._at)
        elif before.content["state"] == "resolved" and not any(map(_loud, running)):
            # Over, and what is left or came after is digest material.
            return before if before.closed or running else self._moved(before, alerts, running)
        return self._moved(before, alerts, running)

    def _moved(self, card: Card, alerts: Sequence[Alert], running: Sequence[Alert]) -> Card:
        was_running = bool(card.openings) and card.ended is None
        if (running and not was_running) or not card.openings:
            openings = (*card.openings, self._at)[-OPENINGS:]
            card = replace(card, openings=openings, times=card.times + 1, ended=None)
        if not running and card.ended is None:
            ends = [alert.resolved for alert in alerts if alert.resolved]
            card = replace(card, ended=max(ends, default=self._at))
        lead = _lead(alerts)
        content = facts(lead, alerts, self._cluster)
        exempted = lead.resolution is Resolution.EXEMPTED
        if exempted:
            content["exempted"] = self._waived(lead)
        if flapping(card, alerts, self._at) and not exempted:
            content = _flaps(card, content)
        elif _handed_over(running, self._at):
            content["state"] = "handed_over"
        content |= self._inhibition.told(card.key)
        opens = content["state"] == "open" and card.content.get("state") == "resolved"
        louder = card.severity != content["severity"]
        return replace(
            card,
            channel=card.channel
            if card.rerouted or card.sent
            else route(lead.finding, self._cluster),
            severity=content["severity"],
            severity_since=self._at if opens or louder else card.severity_since,
            content=content,
            closed=card.closed and not opens,
        )

    def _waived(self, alert: Alert) -> dict[str, Any] | None:
        """Say who exempted it in Slack; None: the policy does."""
        ended = alert.resolved or self._at
        waiver = next((w for w in self._waivers if w.covers(alert.finding, ended)), None)
        if waiver is None:
            return None
        return {"name": waiver.name, "reason": waiver.reason, "until": stamp(waiver.until)}

    def told(self, before: Card | None, card: Card) -> Card:
        """Add what people decided and what time brought, and settle whether it is worth an edit."""
        if card.closed or (before is not None and card is before):
            return card
        card = decisions.follow(before, card, self._cluster, self._now)
        content = {
            **card.content,
            **decisions.told(card),
            "card": card_id(self._cluster.name, card.key),
            "held": holding.told(card),
        }
        over = content["state"] == "resolved"
        if over and card.waits:
            return replace(card, content=content, desired=revision(content), closed=True)
        if before is not None and self._settled(before, content):
            return replace(card, content=before.content, desired=before.desired)
        return replace(card, content=content, desired=revision(content))

    def _settled(self, card: Card, content: Mapping[str, Any]) -> bool:
        """Tell whether what Slack shows is still good enough."""
        if card.delivered != card.desired or card.delivered_at is None:
            return False
        if {**content, "running": None} != {**card.content, "running": None}:
            return False
        # Their time alone is no news: it moves at every tick.
        as_of = {"as_of": card.content["running"]["as_of"]}
        same = {**content["running"], **as_of} == card.content["running"]
        return same or self._now - card.delivered_at < REFRESH


def _flaps(card: Card, content: dict[str, Any]) -> dict[str, Any]:
    """Freeze what a flapping card says, but for its numbers: each swing would be an edit."""
    known = card.content.get("flapping")
    frozen = card.content if known else content
    if rank(content["severity"]) > rank(frozen["severity"]):
        frozen = content
    ended = {"state": "open", "resolved": None, "resolution": None}
    running = {**content["running"], "openings": card.times}
    since = known or {"since": stamp(card.openings[0])}
    return {**frozen, **ended, "running": running, "flapping": since}


def _loud(alert: Alert) -> bool:
    return alert.finding.severity is not Severity.INFO


def _handed_over(running: Sequence[Alert], at: datetime) -> bool:
    return bool(running) and all(
        a.unknown_since is not None and at - a.unknown_since >= HANDED_OVER for a in running
    )


def _lead(alerts: Iterable[Alert]) -> Alert:
    """Choose the alert that heads the card: a running one, the most severe, the latest change."""

    def weight(alert: Alert) -> tuple[bool, datetime, int, str]:
        running = alert.state is AlertState.OPEN
        ended = alert.resolved or datetime.max.replace(tzinfo=UTC)
        return running, ended, rank(alert.finding.severity), alert.key

    return max(alerts, key=weight)
