"""reconcile_alerts: moves Slack towards what is known, and survives its absence.

What arrives is an evaluation, an action of somebody in Slack, or word that a cluster left the policy.
Order: fold it, say what every message should show, save both, then deliver message by message: record
the intent, deliver, record the outcome. Whatever is left undelivered the next run delivers.
"""

from __future__ import annotations

from copy import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from steward.alerts.actions import ActionKind, CardAction
from steward.alerts.cards import close, lay_out
from steward.alerts.deciding import Answer, decide
from steward.alerts.lifecycle import advance, depart_alerts
from steward.alerts.model import AlertState, Card, CardKind, ReconcilerState
from steward.cluster.figures import stamp
from steward.cluster.findings import Evaluation
from steward.cluster.policy import ClusterPolicy, Policy, Severity
from steward.errors import StewardError
from steward.slack.replies import reply
from steward.slack.stories import title
from steward.telemetry import logger
from steward.usecases.card_delivery import Channels, Delivery
from steward.usecases.owners import Owners

if TYPE_CHECKING:
    from steward.ports import AlertStore, Clock, Directory, Messenger, Pager, Responder


def reconcile(
    evaluation: Evaluation,
    *,
    policy: Policy,
    alerts: AlertStore,
    messenger: Messenger,
    directory: Directory,
    pager: Pager,
    clock: Clock,
) -> dict[str, Any]:
    """Fold one evaluation and deliver what it changes, and what earlier runs left undelivered.

    Parameters
    ----------
    evaluation : Evaluation
        May be repeated or late: then it changes nothing, and delivery goes on.
    policy : Policy
        A cluster that has left it is dropped.
    alerts, messenger, directory, pager, clock
        Ports. A failure of the store raises; a failure of Slack or of a pager never does.

    Returns
    -------
    dict
        Counts for the outcome line; `undelivered` messages are the next run's, `troubles` says why.
    """
    cluster = policy.cluster(evaluation.cluster)
    if cluster is None:
        logger.warning(
            "evaluation of a cluster that the policy does not know", cluster=evaluation.cluster
        )
        return {"cluster": evaluation.cluster, "reason": "cluster not in the policy"}
    before = alerts.load(evaluation.cluster)
    after = advance(before, evaluation, cluster)
    applied = after is not before
    after = replace(after, cards=lay_out(after, cluster, clock.now()))
    alerts.save(before, after)
    owners = Owners(people=policy.people, cluster=cluster, directory=directory)
    delivery = _delivery(policy, cluster.name, owners, alerts, messenger, clock)
    undelivered = delivery.run(after.cards)
    page(after, cluster, alerts=alerts, pager=pager, clock=clock, delivery=delivery)
    return {
        "cluster": cluster.name,
        "at": stamp(evaluation.at),
        "applied": applied,
        **_changes(before, after),
        **_delivered(delivery, undelivered),
    }


def act(
    action: CardAction,
    *,
    policy: Policy,
    alerts: AlertStore,
    messenger: Messenger,
    directory: Directory,
    pager: Pager,
    responder: Responder,
    clock: Clock,
) -> dict[str, Any]:
    """Apply what somebody wants done with a card, show it, and answer them.

    Repeated, it changes nothing more and answers the same.
    """
    told = {"cluster": action.cluster, "action": action.kind.value, "card": action.card}
    cluster = policy.cluster(action.cluster)
    if cluster is None:
        _answer(Answer(kind="not_found", facts={"card": action.card}), action, responder)
        return {**told, "answer": "not_found"}
    before = alerts.load(cluster.name)
    owners = Owners(people=policy.people, cluster=cluster, directory=directory)
    after, answer = _decided(before, action, cluster, owners, clock.now())
    after = replace(after, cards=lay_out(after, cluster, clock.now()))
    alerts.save(before, after)
    delivery = _delivery(policy, cluster.name, owners, alerts, messenger, clock)
    undelivered = delivery.run(after.cards)
    page(after, cluster, alerts=alerts, pager=pager, clock=clock, delivery=delivery)
    _answer(answer, action, responder)
    return {**told, "answer": answer.kind, **_delivered(delivery, undelivered)}


def depart(
    cluster: str,
    at: datetime,
    *,
    policy: Policy,
    alerts: AlertStore,
    messenger: Messenger,
    directory: Directory,
    clock: Clock,
) -> dict[str, Any]:
    """Close the alerts and cards of a cluster that left the policy; one that is back is left alone."""
    if policy.cluster(cluster) is not None:
        return {"cluster": cluster, "reason": "cluster is in the policy again"}
    before = alerts.load(cluster)
    after = replace(depart_alerts(before, at), cards=close(before, at))
    alerts.save(before, after)
    owners = Owners(people=policy.people, cluster=None, directory=directory)
    delivery = _delivery(policy, cluster, owners, alerts, messenger, clock)
    undelivered = delivery.run(after.cards)
    return {"cluster": cluster, "closed": len(after.cards), **_delivered(delivery, undelivered)}


def page(
    state: ReconcilerState,
    cluster: ClusterPolicy,
    *,
    alerts: AlertStore,
    pager: Pager,
    clock: Clock,
    delivery: Delivery,
) -> None:
    """Tell the pager's topic of every page that nobody acknowledged, once; a refusal is tried again."""
    topic = cluster.alerting.escalation.topic_arn
    if topic is None:
        return
    for card in delivery.current(state.cards):
        if not _pages(card):
            continue
        line = title(card.content)
        try:
            pager.publish(topic, f"GPU Steward: {cluster.name} {card.content['card']}", line)
        except StewardError as error:
            logger.error("the pager's topic was not told", card=card.key, error=str(error))
            delivery.troubles[card.key] = str(error)
            continue
        alerts.save_card(cluster.name, replace(card, paged_at=clock.now()))


def _pages(card: Card) -> bool:
    """Tell whether a pager is still to hear of a card."""
    escalated = card.escalated_at is not None and card.paged_at is None
    decided = card.acknowledged is not None or card.snoozed is not None
    running = card.content["state"] == "open" and card.severity == Severity.PAGE
    return card.kind is CardKind.CARD and escalated and running and not decided


def _decided(
    state: ReconcilerState,
    action: CardAction,
    cluster: ClusterPolicy,
    owners: Owners,
    now: datetime,
) -> tuple[ReconcilerState, Answer]:
    card = state.card_named(action.card)
    if action.kind is ActionKind.EXEMPT and card is not None:
        team = card.content["team"]
        if not owners.may_exempt(action.user, team):
            who = list(owners.allowed(team))
            return state, Answer(kind="not_permitted", facts={"card": action.card, "who": who})
    return decide(state, action, cluster.time_zone, now)


def _answer(answer: Answer, action: CardAction, responder: Responder) -> None:
    if action.response_url is None:
        return
    try:
        responder.respond(action.response_url, reply(answer.kind, **answer.facts))
    except StewardError as error:
        logger.warning("an answer was not delivered", action=action.id, error=str(error))


def _delivery(
    policy: Policy,
    cluster: str,
    owners: Owners,
    alerts: AlertStore,
    messenger: Messenger,
    clock: Clock,
) -> Delivery:
    return Delivery(
        cluster=cluster,
        channels=_channels(policy),
        alerts=alerts,
        messenger=messenger,
        owners=owners,
        clock=clock,
    )


def _channels(policy: Policy) -> Channels:
    """Name every channel of the policy; all clusters share one platform channel."""
    teams = [team for cluster in policy.clusters for team in cluster.teams]
    platform = policy.clusters[0].platform_channel
    known = [platform, *(team.channel for team in teams if team.channel)]
    return Channels(platform=platform.id, names={c.id: c.name for c in known})


def _delivered(delivery: Delivery, undelivered: int) -> dict[str, Any]:
    return {
        "posts": delivery.posts,
        "updates": delivery.updates,
        "recovered": delivery.recovered,
        "deleted": delivery.deleted,
        "undelivered": undelivered,
        "refusals": delivery.refusals,
        "late_seconds": delivery.lateness(),
        "troubles": delivery.troubles,
    }


def _changes(before: ReconcilerState, after: ReconcilerState) -> dict[str, int]:
    opened = resolved = stale = running = damped = 0
    for key, alert in after.alerts.items():
        was = before.alerts.get(key)
        opened += alert.opened is not None and (was is None or was.opened != alert.opened)
        resolved += alert.resolved is not None and (was is None or was.resolved != alert.resolved)
        running += alert.state is AlertState.OPEN
        damped += alert.state is AlertState.DAMPED
        stale += alert.stale
    return {
        "opened": opened,
        "resolved": resolved,
        "open": running,
        "damped": damped,
        "stale": stale,
    }
