"""Serve a batch of snapshot requests: many wishes, one snapshot a cluster."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from math import inf

import msgspec

from steward.cluster.planning import SnapshotScope
from steward.cluster.policy import ClusterPolicy
from steward.errors import PermanentError, StewardError
from steward.events import QueueRecord, Request, parse_request
from steward.telemetry import logger
from steward.usecases.coalescing import LONGEST_SECONDS, Turn, Turns, Wish
from steward.usecases.take_snapshot import OLDEST_REQUEST, Outcome, clusters_wanted


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken, and the messages that the queue is to deliver again.

    Attributes
    ----------
    answered : int
        Clusters for which another run takes, or took, the snapshot that was asked for.
    """

    outcomes: tuple[Outcome, ...]
    failed_messages: tuple[str, ...]
    dropped: int
    answered: int


def serve_requests(
    records: Iterable[QueueRecord],
    clusters: Sequence[ClusterPolicy],
    now: datetime,
    take: Callable[[ClusterPolicy, datetime, SnapshotScope], Outcome],
    turns: Turns,
    left: Callable[[], float] = lambda: inf,
) -> Served:
    """Reduce a batch to distinct clusters and take one snapshot of each.

    Parameters
    ----------
    records : iterable of QueueRecord
        Messages of `plan_ticks`, events that a rule put on the queue, or alerts that a topic sent.
    clusters : sequence of ClusterPolicy
        The clusters of the policy that this stack reads; another stack reads the others.
    now : datetime
        Requests are dropped by their age against it.
    take : callable
        Takes the snapshot of a cluster, unless one of that scope began at a time or after it.
    turns : Turns
        Keeps several runs from taking the same snapshot, and gathers what events ask for.
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
    batch = _Batch()
    for record in records:
        batch.add(record, clusters, now)
    run = _Run(batch, take, turns, left)
    run.serve(_turns(clusters, now))
    return Served(
        outcomes=tuple(run.outcomes),
        failed_messages=tuple(sorted(batch.failed)),
        dropped=batch.dropped,
        answered=len(run.answered - {outcome.cluster for outcome in run.outcomes}),
    )


class _Batch:
    """What a batch asks of each cluster, and what becomes of its messages."""

    def __init__(self) -> None:
        self._wishes: dict[str, dict[SnapshotScope, list[Request]]] = {}
        self._messages: dict[str, list[str]] = {}
        self.failed: set[str] = set()
        self.dropped = 0

    def add(self, record: QueueRecord, clusters: Sequence[ClusterPolicy], now: datetime) -> None:
        """Read a message."""
        try:
            request = parse_request(record.body, f"message {record.message_id}", record.sent)
        except PermanentError as error:
            logger.error("malformed snapshot request", error=str(error))
            self.failed.add(record.message_id)
            return
        wanted = clusters_wanted(request, clusters, now)
        if not wanted:
            self.dropped += 1
            reason = "too old" if now - request.at > OLDEST_REQUEST else "not read by this stack"
            logger.warning("request dropped", cluster=request.cluster, reason=reason)
        for cluster in wanted:
            scopes = self._wishes.setdefault(cluster.name, {})
            scopes.setdefault(request.scope, []).append(request)
            self._messages.setdefault(cluster.name, []).append(record.message_id)

    def of(self, cluster: ClusterPolicy) -> list[Wish]:
        """List what is asked of a cluster; the audit first: it answers the ticks that came with it."""
        scopes = self._wishes.get(cluster.name, {})
        # Where plan_ticks asks as well, or an audit is due, nobody waits.
        patient = SnapshotScope.AUDIT not in scopes and not any(
            request.planned for requests in scopes.values() for request in requests
        )
        return [
            Wish(
                cluster=cluster.name,
                asked=max(request.at for request in scopes[scope]),
                scope=scope,
                patient=patient,
            )
            for scope in (SnapshotScope.AUDIT, SnapshotScope.TICK)
            if scope in scopes
        ]

    def drop(self, cluster: str) -> None:
        """Leave a cluster's wishes to the next tick."""
        self.dropped += len(self._messages[cluster])
        logger.warning("request dropped", cluster=cluster, reason="no time left")

    def fail(self, cluster: str, error: StewardError) -> None:
        """Have a cluster's messages delivered again."""
        logger.error("snapshot not stored", cluster=cluster, error=str(error))
        self.failed.update(self._messages[cluster])


class _Run:
    """One run over a batch."""

    def __init__(
        self,
        batch: _Batch,
        take: Callable[[ClusterPolicy, datetime, SnapshotScope], Outcome],
        turns: Turns,
        left: Callable[[], float],
    ) -> None:
        self._batch = batch
        self._take = take
        self._turns = turns
        self._left = left
        self._begun = False
        self.outcomes: list[Outcome] = []
        self.answered: set[str] = set()

    def serve(self, clusters: Iterable[ClusterPolicy]) -> None:
        """Serve who need not wait, the impatient first; then the others, each in its turn."""
        asked = [(cluster, wishes) for cluster in clusters if (wishes := self._batch.of(cluster))]
        later: list[tuple[ClusterPolicy, Turn]] = []
        for cluster, wishes in sorted(asked, key=lambda pair: pair[1][0].patient):
            if not self._in_time():
                self._batch.drop(cluster.name)
                continue
            for wish in wishes:
                turn = self._claim(cluster, wish)
                if turn is not None and self._turns.is_later(turn):
                    later.append((cluster, turn))
                elif turn is not None:
                    self._serve(cluster, turn)
        for cluster, turn in sorted(later, key=lambda pair: pair[1].start):
            self._serve_later(cluster, turn)

    def _in_time(self) -> bool:
        """Tell whether a snapshot may be begun; the first may always try."""
        return not self._begun or self._left() >= LONGEST_SECONDS

    def _claim(self, cluster: ClusterPolicy, wish: Wish) -> Turn | None:
        try:
            turn = self._turns.claim(wish)
        except StewardError as error:
            self._batch.fail(cluster.name, error)
            return None
        if turn is None:
            self.answered.add(cluster.name)
        return turn

    def _serve_later(self, cluster: ClusterPolicy, turn: Turn) -> None:
        try:
            if not self._in_time():
                self._turns.give_up(turn)
                self._batch.drop(cluster.name)
            elif (ready := self._turns.wait(turn)) is not None:
                self._serve(cluster, ready)
            else:
                self.answered.add(cluster.name)
        except StewardError as error:
            self._batch.fail(cluster.name, error)

    def _serve(self, cluster: ClusterPolicy, turn: Turn) -> None:
        self._begun = True
        try:
            outcome = self._take(cluster, turn.start, turn.wish.scope)
        except StewardError as error:
            self._batch.fail(cluster.name, error)
            self._turns.give_up(turn)
        else:
            self.outcomes.append(outcome)


def _turns(clusters: Sequence[ClusterPolicy], now: datetime) -> Sequence[ClusterPolicy]:
    """Begin anywhere: where time runs out, it must not always be for the same cluster.

    The microsecond is as good as chance; the hour and the minute are those of the schedule.
    """
    first = now.microsecond % max(1, len(clusters))
    return (*clusters[first:], *clusters[:first])
