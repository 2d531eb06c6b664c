"""A cluster's messages along a timeline: evaluations, presses, and Slack that takes everything."""

from collections.abc import Iterator
from copy import replace
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from steward.alerts.actions import ActionKind, CardAction
from steward.alerts.cards import lay_out
from steward.alerts.deciding import Answer, decide
from steward.alerts.lifecycle import advance
from steward.alerts.model import Card, CardKind, Posted, ReconcilerState, card_id
from steward.cluster.findings import Evaluation
from steward.cluster.policy import ClusterPolicy
from tests.builders import a_cluster, at


@dataclass
class Timeline:
    """What reconciling does to a cluster's messages, without its stores and its Slack."""

    cluster: ClusterPolicy = field(default_factory=a_cluster)
    delivering: bool = True
    state: ReconcilerState = field(default_factory=lambda: ReconcilerState(cluster="ml-shared-01"))
    posts: list[str] = field(default_factory=list)
    edits: list[str] = field(default_factory=list)

    def play(self, *evaluations: Evaluation) -> "Timeline":
        for evaluation in evaluations:
            self.state = advance(self.state, evaluation, self.cluster)
            self.settle(evaluation.at)
        return self

    def settle(self, now: datetime) -> None:
        self.state = replace(self.state, cards=lay_out(self.state, self.cluster, now))
        if self.delivering:
            delivered = {k: self._shown(c, now) for k, c in self.state.cards.items()}
            self.state = replace(self.state, cards=delivered)

    def _shown(self, card: Card, now: datetime) -> Card:
        if card.waits or card.desired == card.delivered:
            return card
        (self.posts if card.posted is None else self.edits).append(card.key)
        return replace(
            card,
            delivered=card.desired,
            delivered_at=now,
            announced_at=card.announced_at or now,
            posted=card.posted or Posted(channel=card.channel, ts=f"{len(self.posts)}.0"),
            closed=card.content["state"] in {"resolved", "note"},
        )

    def press(
        self,
        kind: ActionKind,
        when: str,
        *,
        key: str | None = None,
        user: str = "U1",
        span: str = "",
    ) -> Answer:
        card = key or self.card.key
        action = CardAction(
            kind=kind,
            id=f"{kind}-{user}-{when}",
            cluster="ml-shared-01",
            card=card_id("ml-shared-01", card),
            user=user,
            name={"U1": "ana", "U2": "bo"}[user],
            at=at(when),
            span=span,
            reason="known",
        )
        self.state, answer = decide(self.state, action, self.cluster.time_zone, at(when))
        self.settle(at(when))
        return answer

    @property
    def cards(self) -> list[Card]:
        return [card for card in self.state.cards.values() if card.kind is CardKind.CARD]

    @property
    def card(self) -> Card:
        (card,) = self.cards
        return card

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Kind and time of every note, oldest first."""
        notes = [c for c in self.state.cards.values() if c.kind is CardKind.NOTE]
        told = sorted((c.content["at"], c.content["note"]) for c in notes)
        return [(kind, when[11:16]) for when, kind in told]

    @property
    def loud(self) -> list[str]:
        """Notes that the whole channel sees."""
        notes = [c.content for c in self.state.cards.values() if c.kind is CardKind.NOTE]
        return sorted(note["note"] for note in notes if note["broadcast"])


def every(minutes: int, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Ticks from begin to end, both included."""
    now = begin
    while now <= end:
        yield now
        now += timedelta(minutes=minutes)
