"""Serve a batch of snapshot requests: many wishes, one snapshot a cluster."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from steward.cluster.policy import ClusterPolicy
from steward.errors import PermanentError, StewardError
from steward.events import QueueRecord, parse_request
from steward.telemetry import logger
from steward.usecases.take_snapshot import Outcome, clusters_wanted


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken, and the messages that the queue is to deliver again."""

    outcomes: tuple[Outcome, ...]
    failed_messages: tuple[str, ...]
    dropped: int


def serve_requests(
    records: Iterable[QueueRecord],
    clusters: Sequence[ClusterPolicy],
    now: datetime,
    take: Callable[[ClusterPolicy, datetime], Outcome],
) -> Served:
    """Reduce a batch to distinct clusters and take one snapshot of each.

    Parameters
    ----------
    records : iterable of QueueRecord
        Messages of `plan_ticks`, or events that a rule put on the queue.
    clusters : sequence of ClusterPolicy
        Every cluster of the policy.
    now : datetime
        Requests are dropped by their age against it.
    take : callable
        Takes the snapshot of a cluster, told when the newest request for it was made.

    Returns
    -------
    Served
        A malformed message is failed (it ends in the dead-letter queue, where it can be read); so
        are all messages for a cluster whose snapshot could not be stored. A request that is too
        old, or for a cluster that the policy does not know, is dropped and counted.
    """
    newest: dict[str, datetime] = {}
    messages: dict[str, list[str]] = {}
    failed: set[str] = set()
    dropped = 0
    for record in records:
        try:
            request = parse_request(record.body, f"message {record.message_id}")
        except PermanentError as error:
            logger.error("malformed snapshot request", error=str(error))
            failed.add(record.message_id)
            continue
        wanted = clusters_wanted(request, clusters, now)
        dropped += not wanted
        for cluster in wanted:
            newest[cluster.name] = max(request.at, newest.get(cluster.name, request.at))
            messages.setdefault(cluster.name, []).append(record.message_id)
    outcomes = []
    for cluster in clusters:
        if cluster.name not in newest:
            continue
        try:
            outcomes.append(take(cluster, newest[cluster.name]))
        except StewardError as error:
            logger.error("snapshot not stored", cluster=cluster.name, error=str(error))
            failed.update(messages[cluster.name])
    return Served(outcomes=tuple(outcomes), failed_messages=tuple(sorted(failed)), dropped=dropped)
