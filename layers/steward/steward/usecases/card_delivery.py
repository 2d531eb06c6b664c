"""Delivery of cards: each is tried in every way its failure allows, and none holds up another.

Record the intent, deliver, record the outcome; an intent without an outcome looks the channel's
history up before anything is posted again. What a history does not show yet stays in doubt: where
such a post appears beside the card, it is deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from copy import replace
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from steward.alerts.cards import by_urgency
from steward.alerts.errors import (
    ChannelError,
    CredentialsError,
    DeliveryError,
    MessageGoneError,
    NotAcceptedError,
    RefusedContentError,
    UnknownOutcomeError,
)
from steward.alerts.model import Attempt, Card, Posted
from steward.cluster.figures import stamp
from steward.cluster.policy import ClusterPolicy
from steward.errors import PermanentError
from steward.slack.cards import render, render_text
from steward.telemetry import logger

if TYPE_CHECKING:
    from steward.ports import AlertStore, Clock, Messenger

UNANSWERED = 2
"""Calls without an answer after which a run stops: each costs the messenger's whole timeout, and
an invocation that runs out of time delivers nothing else either."""

DOUBT = timedelta(hours=1)
"""A post that the history of its channel does not show this long after the attempt never was."""


@dataclass(kw_only=True)
class Delivery:
    """One run's deliveries to one cluster's channels.

    Attributes
    ----------
    posts, updates, recovered, deleted : int
        Messages posted and edited, posts that the history showed to have arrived, and those of
        them that were one too many.
    troubles : dict of str to str
        By card key: why it is not, or not fully, delivered.

    Notes
    -----
    What a run learns about Slack (a channel that is closed, a rate limit, a bad token) holds for
    that run only: the next one finds out anew.
    """

    cluster: ClusterPolicy
    alerts: AlertStore
    messenger: Messenger
    clock: Clock
    posts: int = 0
    updates: int = 0
    recovered: int = 0
    deleted: int = 0
    troubles: dict[str, str] = field(default_factory=dict)
    _stopped: bool = False
    _unanswered: int = 0
    _resting: set[str] = field(default_factory=set)
    _bad: dict[str, str] = field(default_factory=dict)

    def run(self, cards: Iterable[Card]) -> int:
        """Deliver what Slack does not show as it should, most severe first; count what is left."""
        pending = by_urgency(c for c in cards if c.desired != c.delivered or c.doubtful)
        return sum(not self._deliver(card) for card in pending)

    def _may_call(self, card: Card) -> bool:
        silent = self._unanswered >= UNANSWERED
        return not (self._stopped or silent or card.channel in self._resting)

    def _deliver(self, card: Card) -> bool:
        if not self._may_call(card):
            return card.desired == card.delivered
        if card.intent is not None and card.posted is None:
            card = replace(card, doubtful=(*card.doubtful, card.intent), intent=None)
        for attempt in card.doubtful:
            try:
                card = self._look_up(card, attempt)
            except ChannelError as error:
                return self._elsewhere(card, error)
            except DeliveryError as error:
                # What only the history refuses, a scope for example, must not stop other cards.
                self._unanswered += isinstance(error, UnknownOutcomeError)
                if card.posted is None:
                    return self._note(card, error)
                logger.warning("a doubtful post stays open", card=card.key, error=str(error))
                break
        return card.desired == card.delivered or (self._may_call(card) and self._send(card))

    def _look_up(self, card: Card, attempt: Attempt) -> Card:
        """Settle a post of unknown outcome: it is the card, one too many, or never was."""
        try:
            found = self.messenger.find(attempt)
        except ChannelError:
            if card.posted is None and attempt.channel == card.channel:
                raise
            found = None  # where nothing can be read, nothing can be tidied up either
        if found is None:
            if self.clock.now() - attempt.at < DOUBT:
                return card
        elif card.posted is not None:
            self._delete(card, found)
        elif attempt.channel == card.channel:
            card = _shown(card, found, attempt)
            self.recovered += 1
        else:
            return card  # the card is about to stand elsewhere: then this one may go
        card = replace(card, doubtful=tuple(a for a in card.doubtful if a.id != attempt.id))
        self._save(card)
        return card

    def _delete(self, card: Card, found: Posted) -> None:
        try:
            self.messenger.delete(found)
        except (ChannelError, MessageGoneError) as error:
            logger.warning("duplicate not deleted", card=card.key, error=str(error))
        else:
            self.deleted += 1

    def _send(self, card: Card, refusal: RefusedContentError | None = None) -> bool:
        """Try one way, then the one that its failure leaves; every way is taken at most once."""
        if card.posted is None and (known := self._bad.get(card.channel)):
            return self._elsewhere(card, ChannelError(known), refusal)
        attempt = self._attempt(card)
        card = replace(card, attempts=card.attempts + 1, intent=attempt)
        self._save(card)
        try:
            posted = self._call(card, attempt, refusal)
        except UnknownOutcomeError as error:
            self._unanswered += 1
            return self._note(card, error)
        except DeliveryError as error:
            return self._not_taken(replace(card, intent=None), error, refusal)
        card = _shown(card, posted, attempt)
        if refusal:
            card = replace(card, trouble=f"sent as text: {refusal}")
            self.troubles[card.key] = str(refusal)
        self._save(card)
        return True

    def _not_taken(
        self, card: Card, error: DeliveryError, refusal: RefusedContentError | None
    ) -> bool:
        match error:
            case RefusedContentError() if refusal is None:
                logger.error("Slack refused a card's blocks", card=card.key, error=str(error))
                return self._send(card, error)
            case MessageGoneError() if card.posted is not None:
                return self._send(replace(card, posted=None), refusal)
            case ChannelError():
                self._bad[card.channel] = str(error)
                return self._elsewhere(card, error, refusal)
            case CredentialsError():
                self._stopped = True
            case NotAcceptedError() if error.retry_after_seconds is not None:
                self._resting.add(card.channel)
        return self._note(card, error)

    def _elsewhere(
        self, card: Card, error: ChannelError, refusal: RefusedContentError | None = None
    ) -> bool:
        """Send a card whose channel is closed to the platform channel, with the reason."""
        platform = self.cluster.platform_channel
        if card.channel == platform.id:
            return self._note(card, error)
        why = f"Meant for {self._name(card.channel)}, which cannot be reached: {error}"
        card = replace(card, channel=platform.id, posted=None, rerouted=why)
        return self._send(card, refusal)

    def _name(self, channel: str) -> str:
        names = {team.channel.id: team.channel.name for team in self.cluster.teams if team.channel}
        return f"#{names[channel]}" if channel in names else channel

    def _attempt(self, card: Card) -> Attempt:
        """Give a try an id of its own: another try of the same revision has another one."""
        parts = (self.cluster.name, card.key, card.desired, str(card.attempts))
        return Attempt(
            cluster=self.cluster.name,
            card=card.key,
            channel=card.channel,
            revision=card.desired,
            id=hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20],
            at=self.clock.now(),
        )

    def _call(self, card: Card, attempt: Attempt, refusal: RefusedContentError | None) -> Posted:
        told = {"delivered": stamp(card.announced_at or attempt.at), "rerouted": card.rerouted}
        content = {**card.content, **told}
        message = {"text": render_text(content)} if refusal else render(content)
        if card.posted is None:
            posted = self.messenger.post(message, attempt)
            self.posts += 1
        else:
            posted = self.messenger.update(card.posted, message, attempt)
            self.updates += 1
        return posted

    def _note(self, card: Card, error: DeliveryError) -> bool:
        """Record why a card is not delivered; the next run tries again."""
        log = logger.error if isinstance(error, PermanentError) else logger.warning
        log("card not delivered", card=card.key, channel=card.channel, error=str(error))
        self.troubles[card.key] = str(error)
        self._save(replace(card, trouble=str(error)))
        return False

    def _save(self, card: Card) -> None:
        self.alerts.save_card(self.cluster.name, card)


def _shown(card: Card, posted: Posted, attempt: Attempt) -> Card:
    """Record that Slack shows an attempt; a card whose end it shows is closed."""
    ended = attempt.revision == card.desired and card.content["state"] == "resolved"
    return replace(
        card,
        posted=posted,
        delivered=attempt.revision,
        delivered_at=attempt.at,
        announced_at=card.announced_at or attempt.at,
        intent=None,
        closed=ended,
        trouble=None,
    )
