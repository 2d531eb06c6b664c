"""What stands in a card's thread, and in a second channel: changes of state, each told once.

Each message is named by what it tells (a decision, an opening, the end of a snooze), never by when it
was written: a run that is repeated after it broke off finds its own.
"""

from collections.abc import Iterator, Mapping
from copy import replace
from datetime import datetime, timedelta
from typing import Any

from steward.alerts.model import Card, CardKind, Decision
from steward.alerts.ranks import rank
from steward.alerts.revisions import revision
from steward.cluster.figures import stamp
from steward.cluster.policy import ClusterPolicy, Severity

RECENT = timedelta(days=1)
"""A decision that is older has its note, or had it: notes are kept for as long as cards."""

_ABOUT = (
    "reason",
    "subject",
    "subjects",
    "team",
    "severity",
    "state",
    "gpus",
    "group_gpus",
    "since",
    "resolved",
    "resolution",
)
_ACTED = ("acknowledged", "snoozed", "snooze_ended", "reminder", "escalated", "louder")
"""Notes that tell that somebody cares: then the end is told too."""


def lay_out(
    before: Mapping[str, Card], cards: Mapping[str, Card], cluster: ClusterPolicy, now: datetime
) -> dict[str, Card]:
    """Say what stands beside the cards.

    Parameters
    ----------
    before : mapping of str to Card
        Every message as it was when it was last laid out.
    cards : mapping of str to Card
        The cards as they stand now.

    Returns
    -------
    dict of str to Card
        Notes and copies by their keys, those of before included.
    """
    messages = {key: card for key, card in before.items() if card.kind is not CardKind.CARD}
    for card in cards.values():
        was = before.get(card.key)
        told = _Thread(card, was, messages, cluster, now)
        messages |= {note.key: note for note in told.notes()}
        copy_key = f"{card.key}#copy"
        if copied := _copy(card, messages.get(copy_key), copy_key, cluster):
            messages[copy_key] = copied
    return messages


class _Thread:
    """One card's thread."""

    def __init__(
        self,
        card: Card,
        was: Card | None,
        messages: Mapping[str, Card],
        cluster: ClusterPolicy,
        now: datetime,
    ) -> None:
        self._card = card
        self._was = was
        self._messages = messages
        self._cluster = cluster
        self._now = now

    def notes(self) -> Iterator[Card]:
        """Give the notes that are due and do not stand there yet."""
        for key, note in self._due():
            if key not in self._messages:
                yield note

    def _due(self) -> Iterator[tuple[str, Card]]:
        card, was = self._card, self._was
        if was is not None and card.sent:
            yield from self._decided(was)
            yield from self._states(was)
        if card.escalated_at is not None and (was is None or was.escalated_at is None):
            mention = self._cluster.alerting.escalation.mention
            yield self._note("escalated", card.severity_since, broadcast=True, mention=mention)

    def _decided(self, was: Card) -> Iterator[tuple[str, Card]]:
        card = self._card
        for kind, decision in (("acknowledged", card.acknowledged), ("snoozed", card.snoozed)):
            if decision is not None and self._now - decision.at < RECENT:
                yield self._note(kind, decision.id, name=decision.name, until=decision.until)
        decision = was.snoozed or was.acknowledged
        if decision is None or card.content["state"] == "resolved":
            return
        if rank(card.severity) > rank(decision.severity):
            yield self._note("louder", card.severity_since, broadcast=True, name=decision.name)
        elif _ended(was.snoozed, card):
            until = was.snoozed.until if was.snoozed else None
            yield self._note("snooze_ended", until, broadcast=True, name=decision.name)

    def _states(self, was: Card) -> Iterator[tuple[str, Card]]:
        card = self._card
        before, state = was.content["state"], card.content["state"]
        times = card.times
        if card.content["flapping"] and not was.content["flapping"]:
            yield self._flapping(times)
        elif state == "open" and before == "resolved" and card.snoozed is None:
            yield self._note("reopened", card.openings[-1], broadcast=True, times=times)
        if state == "resolved" and before != "resolved" and self._cared():
            yield self._note("resolved", card.ended)
        if state == "handed_over" and before != "handed_over":
            yield self._note("handed_over", card.content["running"]["as_of"])
        ended = _ended(was.snoozed, card)
        if card.reminded_at != was.reminded_at and not ended:
            last = was.reminded_at or was.announced_at
            yield self._note("reminder", last, broadcast=True)

    def _flapping(self, times: int) -> tuple[str, Card]:
        """Let the note that it is open again say that it flaps: one note for all of it."""
        key, note = self._note("flapping", self._card.openings[-1], times=times)
        again = f"{self._card.key}#reopened-{stamp(self._card.openings[-2])}"
        told = self._messages.get(again)
        if told is None or told.content["note"] == "flapping":
            return (key if told is None else again), note
        edited = replace(told, content=note.content, desired=note.desired)
        return "", edited  # an edit, whatever stands there

    def _cared(self) -> bool:
        if self._card.severity == Severity.PAGE:
            return True
        return any(
            note.parent == self._card.key and note.content["note"] in _ACTED
            for note in self._messages.values()
        )

    def _note(
        self,
        kind: str,
        told: datetime | str | None,
        *,
        broadcast: bool = False,
        name: str | None = None,
        until: datetime | None = None,
        times: int | None = None,
        mention: str | None = None,
    ) -> tuple[str, Card]:
        card = self._card
        mark = stamp(told) if isinstance(told, datetime) else told
        key = f"{card.key}#{kind}-{mark}"
        content = {
            "note": kind,
            "state": "note",
            "card": card.content["card"],
            "cluster": self._cluster.name,
            "at": stamp(self._now),
            "name": name,
            "until": stamp(until) if until else None,
            "times": times,
            "mention": mention,
            "broadcast": broadcast,
            "about": _about(card.content),
        }
        return key, Card(
            key=key,
            kind=CardKind.NOTE,
            parent=card.key,
            channel=card.channel,
            severity=card.severity,
            content=content,
            desired=revision(content),
        )


def _ended(snooze: Decision | None, card: Card) -> bool:
    """Tell whether a snooze has run out over a condition that still is."""
    return snooze is not None and card.snoozed is None and card.content["state"] != "resolved"


def _about(content: Mapping[str, Any]) -> dict[str, Any]:
    about = {name: content[name] for name in _ABOUT}
    return {**about, "evidence": {"job_gpus": content["evidence"].get("job_gpus")}}


def _copy(card: Card, copied: Card | None, key: str, cluster: ClusterPolicy) -> Card | None:
    """Tell a second channel of a card that nobody acknowledged, and keep what it says true."""
    channel = cluster.alerting.escalation.channel
    if copied is None and (card.escalated_at is None or channel is None):
        return None
    home = {"channel": card.posted.channel, "ts": card.posted.ts} if card.posted else None
    content = {**card.content, "note": "copy", "home": home}
    if copied is None:
        copied = Card(
            key=key,
            kind=CardKind.COPY,
            parent=card.key,
            channel=channel.id if channel else card.channel,
            severity=card.severity,
            content=content,
            desired="",
        )
    return replace(
        copied,
        severity=card.severity,
        content=content,
        desired=revision(content),
        closed=copied.closed and content["state"] == "resolved",
    )
