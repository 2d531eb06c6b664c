"""What arrives at `reconcile_alerts`: an evaluation, an action on a card, a cluster that left."""

from typing import Any

import msgspec

from steward.alerts.actions import CardAction
from steward.events import AwareDatetime, EvaluationReady, parse


class ClusterLeft(msgspec.Struct, frozen=True, kw_only=True):
    """Message on the evaluations queue: a cluster is in the policy no more."""

    cluster: str
    at: AwareDatetime
    kind: str = "departed"


def parse_work(body: str, where: str) -> EvaluationReady | CardAction | ClusterLeft:
    """Read a message of the evaluations queue.

    Raises
    ------
    PermanentError
        It is none of the three.
    """
    value = parse(dict[str, Any], body, where)
    if "key" in value:
        return parse(EvaluationReady, value, where)
    if value.get("kind") == "departed":
        return parse(ClusterLeft, value, where)
    return parse(CardAction, value, where)
