"""reconcile_alerts: moves Slack towards what the last evaluation says, and survives its absence.

Order: fold the evaluation, say what every card should show, save both, then deliver card by card:
record the intent, deliver, record the outcome. Whatever is left undelivered the next run delivers.
"""

from __future__ import annotations

from copy import replace
from typing import TYPE_CHECKING, Any

from steward.alerts.cards import lay_out
from steward.alerts.lifecycle import advance
from steward.alerts.model import AlertState, ReconcilerState
from steward.cluster.figures import stamp
from steward.cluster.findings import Evaluation
from steward.cluster.policy import Policy
from steward.telemetry import logger
from steward.usecases.card_delivery import Delivery

if TYPE_CHECKING:
    from steward.ports import AlertStore, Clock, Messenger


def reconcile(
    evaluation: Evaluation,
    *,
    policy: Policy,
    alerts: AlertStore,
    messenger: Messenger,
    clock: Clock,
) -> dict[str, Any]:
    """Fold one evaluation and deliver what it changes, and what earlier runs left undelivered.

    Parameters
    ----------
    evaluation : Evaluation
        May be repeated or late: then it changes nothing, and delivery goes on.
    policy : Policy
        A cluster that has left it is dropped.
    alerts, messenger, clock : AlertStore, Messenger, Clock
        A failure of the store raises; a failure of Slack never does.

    Returns
    -------
    dict
        Counts for the outcome line; `undelivered` cards are the next run's, `troubles` says why.
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
    if applied:
        after = replace(after, cards=lay_out(after, cluster))
        alerts.save(before, after)
    delivery = Delivery(cluster=cluster, alerts=alerts, messenger=messenger, clock=clock)
    undelivered = delivery.run(after.cards.values())
    return {
        "cluster": cluster.name,
        "at": stamp(evaluation.at),
        "applied": applied,
        **_changes(before, after),
        "posts": delivery.posts,
        "updates": delivery.updates,
        "recovered": delivery.recovered,
        "deleted": delivery.deleted,
        "undelivered": undelivered,
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
