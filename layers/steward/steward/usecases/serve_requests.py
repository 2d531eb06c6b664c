"""Serve a batch of snapshot requests: many wishes, one snapshot a cluster."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from math import inf

import msgspec

from steward.cluster.planning import SnapshotScope
from steward.cluster.policy import ClusterPolicy
from steward.errors import PermanentError, StewardError
from steward.events import QueueRecord, parse_request
from steward.telemetry import logger
from steward.usecases.take_snapshot import OLDEST_REQUEST, Outcome, clusters_wanted

LONGEST_SECONDS = 240.0
"""What one snapshot may take where every source hangs: the deadlines of the control plane, of the
Kubernetes endpoint, of the Kubernetes API and of the metrics (30, 10, 30 and 60 s), each with a
request that outlasts it."""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken, and the messages that the queue is to deliver again."""

    outcomes: tuple[Outcome, ...]
    failed_messages: tuple[str, ...]
    dropped: int


def serve_requests(
    records: Iterable[QueueRecord],
    clusters: Sequence[ClusterPolicy],
    now: datetime,
    take: Callable[[ClusterPolicy, datetime, SnapshotScope], Outcome],
    left: Callable[[], float] = lambda: inf,
) -> Served:
    """Reduce a batch to distinct clusters and take one snapshot of each.

    Parameters
    ----------
    records : iterable of QueueRecord
        Messages of `plan_ticks`, or events that a rule put on the queue.
    clusters : sequence of ClusterPolicy
        The clusters of the policy that this stack reads; another stack reads the others.
    now : datetime
        Requests are dropped by their age against it.
    take : callable
        Takes the snapshot of a cluster, told when the newest request of that scope was made.
    left : callable
        Seconds that this run still has. A snapshot that might not end within them is not begun:
        one that is cut off costs all of the batch.

    Returns
    -------
    Served
        A malformed message is failed (it ends in the dead-letter queue, where it can be read); so
        are all messages for a cluster whose snapshot could not be stored. A request that is too
        old, for a cluster that this stack does not read, or for which no time is left, is dropped,
        named and counted: the next tick asks again.
    """
    newest: dict[tuple[str, SnapshotScope], datetime] = {}
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
        if not wanted:
            dropped += 1
            reason = "too old" if now - request.at > OLDEST_REQUEST else "not read by this stack"
            logger.warning("request dropped", cluster=request.cluster, reason=reason)
        for cluster in wanted:
            key = (cluster.name, request.scope)
            newest[key] = max(request.at, newest.get(key, request.at))
            messages.setdefault(cluster.name, []).append(record.message_id)
    outcomes = []
    wishes = [cluster for cluster in _turns(clusters, now) if cluster.name in messages]
    for turn, cluster in enumerate(wishes):
        if turn and left() < LONGEST_SECONDS:
            dropped += len(messages[cluster.name])
            logger.warning("request dropped", cluster=cluster.name, reason="no time left")
            continue
        # The audit first: it answers the wishes for a tick that came with it.
        for scope in (SnapshotScope.AUDIT, SnapshotScope.TICK):
            asked = newest.get((cluster.name, scope))
            if asked is None:
                continue
            try:
                outcomes.append(take(cluster, asked, scope))
            except StewardError as error:
                logger.error("snapshot not stored", cluster=cluster.name, error=str(error))
                failed.update(messages[cluster.name])
    return Served(outcomes=tuple(outcomes), failed_messages=tuple(sorted(failed)), dropped=dropped)


def _turns(clusters: Sequence[ClusterPolicy], now: datetime) -> Sequence[ClusterPolicy]:
    """Begin anywhere: where time runs out, it must not always be for the same cluster.

    The microsecond is as good as chance; the hour and the minute are those of the schedule.
    """
    first = now.microsecond % max(1, len(clusters))
    return (*clusters[first:], *clusters[:first])
