"""Delivery of messages: each is tried in every way its failure allows, and none holds up another.

Record the intent, deliver, record the outcome; an intent without an outcome looks the channel's
history up before anything is posted again. What a history does not show yet stays in doubt: where
such a post appears beside the card, it is deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from copy import replace
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from steward.alerts.errors import (
    ChannelError,
    CredentialsError,
    DeliveryError,
    MessageGoneError,
    NotAcceptedError,
    RefusedContentError,
    UnknownOutcomeError,
)
from steward.alerts.model import Attempt, Card, CardKind, Posted
from steward.alerts.ranks import rank
from steward.cluster.figures import stamp
from steward.errors import PermanentError
from steward.slack.cards import render, render_text
from steward.telemetry import logger
from steward.usecases.owners import Owners

if TYPE_CHECKING:
    from steward.ports import AlertStore, Clock, Messenger

UNANSWERED = 2
"""Calls without an answer after which a run stops: each costs the messenger's whole timeout, and
an invocation that runs out of time delivers nothing else either."""

DOUBT = timedelta(hours=1)
"""A post that the history of its channel does not show this long after the attempt never was."""


@dataclass(frozen=True, kw_only=True)
class Channels:
    """Where messages may go.

    Attributes
    ----------
    platform : str
        Id of the channel that gets what cannot be delivered elsewhere.
    names : mapping of str to str
        Name of each channel by its id, for people.
    """

    platform: str
    names: Mapping[str, str]


@dataclass(kw_only=True)
class Delivery:
    """One run's deliveries of one cluster's messages.

    Attributes
    ----------
    refusals : int
        Calls that Slack refused for good: content, channels, credentials.
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

    cluster: str
    channels: Channels
    alerts: AlertStore
    messenger: Messenger
    owners: Owners
    clock: Clock
    refusals: int = 0
    posts: int = 0
    updates: int = 0
    recovered: int = 0
    deleted: int = 0
    troubles: dict[str, str] = field(default_factory=dict)
    _cards: dict[str, Card] = field(default_factory=dict)
    _late: list[float] = field(default_factory=list)
    _stopped: bool = False
    _unanswered: int = 0
    _resting: set[str] = field(default_factory=set)
    _bad: dict[str, str] = field(default_factory=dict)

    def run(self, cards: Mapping[str, Card]) -> int:
        """Deliver what Slack does not show as it should, most severe first; count what is left.

        What stands in a thread follows its card.
        """
        self._cards = dict(cards)
        pending = [c for c in cards.values() if not c.waits and (_differs(c) or c.doubtful)]
        return sum(not self._deliver(card) for card in sorted(pending, key=_urgency))

    def current(self, cards: Mapping[str, Card]) -> list[Card]:
        """Give cards as this run left them."""
        return [self._cards.get(key, card) for key, card in cards.items()]

    def lateness(self) -> float | None:
        """Give the longest time (seconds) from when a card could be posted to when it was.

        None: this run announced none.
        """
        return max(self._late, default=None)

    def _may_call(self, card: Card) -> bool:
        silent = self._unanswered >= UNANSWERED
        return not (self._stopped or silent or card.channel in self._resting)

    def _deliver(self, card: Card) -> bool:
        if not self._may_call(card):
            return not _differs(card)
        if card.kind is CardKind.NOTE and card.posted is None:
            if (stands := self._threaded(card)) is None:
                return False
            card = stands
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
        return not _differs(card) or (self._may_call(card) and self._send(card))

    def _threaded(self, note: Card) -> Card | None:
        """Put a note where its card stands now; None: it stands nowhere yet."""
        parent = self._parent(note)
        if parent is None or parent.posted is None:
            return None
        return replace(note, channel=parent.posted.channel)

    def _parent(self, card: Card) -> Card | None:
        return self._cards.get(card.parent or "")

    def _thread(self, card: Card) -> str | None:
        parent = self._parent(card) if card.kind is CardKind.NOTE else None
        return parent.posted.ts if parent is not None and parent.posted is not None else None

    def _look_up(self, card: Card, attempt: Attempt) -> Card:
        """Settle a post of unknown outcome: it is the card, one too many, or never was."""
        try:
            found = self.messenger.find(attempt)
        except ChannelError:
            if card.posted is None and attempt.channel == card.channel:
                raise
            found = None  # where nothing can be read, nothing can be tidied up either
        except MessageGoneError:
            found = None  # its thread is not there any more
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
        if card.kind is CardKind.NOTE and card.posted is None and self._thread(card) is None:
            return False  # it has no thread to stand in
        if card.mentions is None:
            card = replace(card, mentions=self.owners.mentioned(card))
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
        if card.announced_at is None and card.kind is CardKind.CARD:
            begun = card.let_at or attempt.at
            self._late.append((attempt.at - begun).total_seconds())
        card = _shown(card, posted, attempt)
        if refusal:
            card = replace(card, trouble=f"sent as text: {refusal}")
            self.troubles[card.key] = str(refusal)
        self._save(card)
        return True

    def _not_taken(
        self, card: Card, error: DeliveryError, refusal: RefusedContentError | None
    ) -> bool:
        self.refusals += isinstance(error, PermanentError)
        match error:
            case RefusedContentError() if refusal is None:
                logger.error("Slack refused a card's blocks", card=card.key, error=str(error))
                return self._send(card, error)
            case MessageGoneError() if card.posted is not None:
                return self._send(replace(card, posted=None), refusal)
            case MessageGoneError():
                self._doubt_parent(card)
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
        if card.kind is CardKind.NOTE:
            self._doubt_parent(card)
            return self._note(card, error)
        if card.channel == self.channels.platform:
            return self._note(card, error)
        name = self.channels.names.get(card.channel)
        named = f"#{name}" if name else card.channel
        why = f"Meant for {named}, which cannot be reached: {error}"
        card = replace(card, channel=self.channels.platform, posted=None, rerouted=why)
        return self._send(card, refusal)

    def _doubt_parent(self, note: Card) -> None:
        """Have the next run see whether a note's card is where it was, and send it anew if not."""
        if (parent := self._parent(note)) is not None:
            self._save(replace(parent, delivered=None))

    def _attempt(self, card: Card) -> Attempt:
        """Give a try an id of its own: another try of the same revision has another one."""
        parts = (self.cluster, card.key, card.desired, str(card.attempts))
        return Attempt(
            cluster=self.cluster,
            card=card.key,
            channel=card.channel,
            revision=card.desired,
            id=hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20],
            at=self.clock.now(),
            thread=self._thread(card),
        )

    def _call(self, card: Card, attempt: Attempt, refusal: RefusedContentError | None) -> Posted:
        told = {
            "delivered": stamp(card.announced_at or attempt.at),
            "rerouted": card.rerouted,
            "mentions": list(card.mentions or ()),
        }
        content = {**card.content, **told}
        message = {"text": render_text(content)} if refusal else render(content)
        if card.posted is None:
            if attempt.thread is not None:
                broadcast = {"reply_broadcast": True} if content["broadcast"] else {}
                message = {**message, "thread_ts": attempt.thread, **broadcast}
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
        self._cards[card.key] = card
        self.alerts.save_card(self.cluster, card)


def _differs(card: Card) -> bool:
    return card.desired != card.delivered


def _urgency(card: Card) -> tuple[bool, int, str, str]:
    """Order messages: cards first, the most severe first, then the longest waiting."""
    told = card.content.get("detected") or card.content.get("at", "")
    return card.kind is CardKind.NOTE, -rank(card.severity), told, card.key


def _shown(card: Card, posted: Posted, attempt: Attempt) -> Card:
    """Record that Slack shows an attempt; a card whose end it shows is closed."""
    over = card.content["state"] in {"resolved", "note"}
    ended = attempt.revision == card.desired and over
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
