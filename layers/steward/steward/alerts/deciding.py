"""Applies what somebody wants done with a card: pure, and harmless when repeated."""

from collections.abc import Mapping
from copy import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from steward.alerts.actions import ActionKind, CardAction, SpanError, end_of
from steward.alerts.lifecycle import ended
from steward.alerts.model import Alert, AlertState, Card, Decision, ReconcilerState, Waiver
from steward.cluster.figures import stamp
from steward.cluster.findings import Resolution
from steward.cluster.policy import Severity

TOGETHER = timedelta(minutes=10)
"""Two people who snooze at once mean the same: only an end that is later by this is another."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the person is told: which answer, and its facts."""

    kind: str
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)


def decide(
    state: ReconcilerState, action: CardAction, zone: str, now: datetime
) -> tuple[ReconcilerState, Answer]:
    """Apply an action to a cluster's state.

    Parameters
    ----------
    state : ReconcilerState
        Of the action's cluster.
    action : CardAction
        Whoever may not do it has been turned away before.
    zone : str
        Time zone of the cluster.

    Returns
    -------
    ReconcilerState, Answer
        The state is the same object where nothing changes: there is no such card, it is over,
        somebody else was first, or the span is none.
    """
    if (known := state.waivers.get(action.id)) is not None:
        # It comes again: half of it may have been stored, and its card may be over because of it.
        return _waived(state, action, known, now)
    card = state.card_named(action.card)
    if card is None:
        return state, Answer(kind="not_found", facts={"card": action.card})
    if card.content["state"] == "resolved":
        since = card.content["resolved"]
        return state, Answer(kind="closed", facts={"card": action.card, "since": since})
    if action.kind is ActionKind.ACKNOWLEDGE:
        return _acknowledge(state, card, action, now)
    try:
        until = end_of(action.span, now, zone)
    except SpanError as error:
        return state, Answer(kind="bad_span", facts={"card": action.card, "error": str(error)})
    lasting = _snooze if action.kind is ActionKind.SNOOZE else _exempt
    return lasting(state, card, action, now, until)


def _decision(card: Card, action: CardAction, now: datetime, until: datetime | None) -> Decision:
    return Decision(
        id=action.id,
        user=action.user,
        name=action.name,
        at=now,
        severity=Severity(card.severity),
        until=until,
    )


def _with(state: ReconcilerState, card: Card) -> ReconcilerState:
    return replace(state, cards={**state.cards, card.key: card})


def _acknowledge(
    state: ReconcilerState, card: Card, action: CardAction, now: datetime
) -> tuple[ReconcilerState, Answer]:
    known = card.acknowledged
    if known is not None and known.id != action.id:
        return state, _already(action, known)
    if known is None:
        known = _decision(card, action, now, None)
        state = _with(state, replace(card, acknowledged=known))
    return state, Answer(kind="done_acknowledge", facts={"card": action.card})


def _snooze(
    state: ReconcilerState, card: Card, action: CardAction, now: datetime, until: datetime
) -> tuple[ReconcilerState, Answer]:
    known = card.snoozed
    if known is not None and known.until is not None:
        until = known.until if known.id == action.id else until
        if known.id != action.id and until - known.until < TOGETHER:
            return state, _already(action, known)
    if known is None or known.id != action.id:
        state = _with(state, replace(card, snoozed=_decision(card, action, now, until)))
    return state, Answer(kind="done_snooze", facts={"card": action.card, "until": stamp(until)})


def _exempt(
    state: ReconcilerState, card: Card, action: CardAction, now: datetime, until: datetime
) -> tuple[ReconcilerState, Answer]:
    group, _, _ = card.key.rpartition("|")
    running = [a for a in state.alerts.values() if a.group == group and _open(a)]
    waiver = Waiver(
        id=action.id,
        group=group,
        detectors=tuple(sorted({a.finding.detector for a in running})),
        reason=action.reason,
        user=action.user,
        name=action.name,
        at=now,
        until=until,
    )
    state = replace(state, waivers={**state.waivers, waiver.id: waiver})
    return _waived(state, action, waiver, now)


def _waived(
    state: ReconcilerState, action: CardAction, waiver: Waiver, now: datetime
) -> tuple[ReconcilerState, Answer]:
    """End what an exemption covers."""
    over = {
        key: ended(alert, now, Resolution.EXEMPTED)
        for key, alert in state.alerts.items()
        if _open(alert) and waiver.covers(alert.finding, now)
    }
    facts = {"card": action.card, "until": stamp(waiver.until), "reason": waiver.reason}
    answer = Answer(kind="done_exempt", facts=facts)
    return replace(state, alerts={**state.alerts, **over}) if over else state, answer


def _open(alert: Alert) -> bool:
    return alert.state is AlertState.OPEN


def _already(action: CardAction, known: Decision) -> Answer:
    until = stamp(known.until) if known.until else None
    facts = {"card": action.card, "name": known.name, "at": stamp(known.at), "until": until}
    return Answer(kind="already", facts=facts)
