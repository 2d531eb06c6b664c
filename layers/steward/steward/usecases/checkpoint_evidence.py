"""Look for the checkpoints of jobs that were just preempted: in storage, and in what was told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from steward.cluster.checkpoints import CheckpointEvidence, Look, LookStatus, Written, WrittenBy
from steward.cluster.preemptions.shown import (
    last_words,
    latest_end,
    preemptions_counted,
    shown,
)
from steward.cluster.workloads import subject_of
from steward.errors import DeniedError, StewardError
from steward.telemetry import logger
from steward.usecases.checkpoint_places import S3, of_job, of_namespace

if TYPE_CHECKING:
    from steward.cluster.kueue import KueueEvent, Workload
    from steward.cluster.policy import CheckpointLocation, ClusterPolicy
    from steward.cluster.preemptions.memory import Looked
    from steward.ports import CheckpointReader, CheckpointStore, Clock, Sources

MOST_EVICTIONS = 50
LOOKING_TIME = timedelta(seconds=20)
"""What one tick looks up at most, and for how long; the next tick looks up what was left."""


def find_evidence(
    workloads: Sequence[Workload],
    events: Sequence[KueueEvent],
    looked: Looked,
    cluster: ClusterPolicy,
    *,
    sources: Sources,
    store: CheckpointStore | None,
    clock: Clock,
) -> tuple[CheckpointEvidence, ...]:
    """Find what is known of the checkpoints of every preemption that is not settled.

    Parameters
    ----------
    workloads : sequence of Workload
        As Kueue has them now: each knows its last eviction, until it is admitted again.
    events : sequence of KueueEvent
        Of the last hour: they also tell of what was admitted again between two ticks.
    looked : Looked
        What needs no look any more, and what needs another one.
    cluster : ClusterPolicy
        Whose teams say where they write.
    sources, store, clock
        Ports; without evictions none of them is asked.

    Returns
    -------
    tuple of CheckpointEvidence
        By time of the eviction; of one that nobody saw, the latest that it can have been. Those of
        the newest evictions, where not all could be looked up: storage changes, and tells less of
        an older one.
    """
    evictions = _evictions(workloads, events, looked, clock.now())
    if not evictions:
        return ()
    until = clock.now() + LOOKING_TIME
    search = _Search(cluster, sources, store)
    found: list[CheckpointEvidence] = []
    for eviction in evictions[:MOST_EVICTIONS]:
        if clock.now() >= until:
            break
        found.append(search.evidence(eviction))
    if len(found) < len(evictions):
        left = len(evictions) - len(found)
        logger.warning("checkpoints not looked for", cluster=cluster.name, left=left)
    return tuple(sorted(found, key=lambda one: (one.evicted, one.workload_uid)))


class _Eviction(NamedTuple):
    at: datetime
    uid: str
    namespace: str
    job: str


def _evictions(
    workloads: Sequence[Workload],
    events: Sequence[KueueEvent],
    looked: Looked,
    now: datetime,
) -> list[_Eviction]:
    """Evictions to be looked up: those with a time first, of each kind the newest first."""
    by_uid = {workload.uid: workload for workload in workloads}
    seen = shown(workloads, events)
    timed = {(uid, one.at) for uid, several in seen.items() for one in several}
    unseen = {*looked.waiting, *_unseen(by_uid.values(), looked, now)} - timed
    return [
        _Eviction(at, uid, by_uid[uid].namespace, subject_of(by_uid[uid]).rpartition("/")[2])
        for several in (timed - looked.settled, unseen)
        for uid, at in sorted(several, key=lambda one: (one[1], one[0]), reverse=True)
        if uid in by_uid
    ]


def _unseen(
    workloads: Iterable[Workload], looked: Looked, now: datetime
) -> Iterator[tuple[str, datetime]]:
    """Find what Kueue counted, or tells of, since a Workload was last seen."""
    for workload in workloads:
        known, seen = looked.counted.get(workload.uid, (0, workload.created))
        counted, words = preemptions_counted(workload), last_words(workload)
        told = counted != known if counted else words is not None and words.at > seen
        if told:
            latest = latest_end(workload)
            yield workload.uid, latest if latest and seen < latest <= now else now


class _Search:
    """One tick's search: each location of a job is listed once for each time."""

    def __init__(
        self, cluster: ClusterPolicy, sources: Sources, store: CheckpointStore | None
    ) -> None:
        self._cluster = cluster
        self._sources = sources
        self._store = store
        self._reader: CheckpointReader | None = None
        self._looks: dict[tuple[CheckpointLocation, str, datetime], Look] = {}

    def evidence(self, eviction: _Eviction) -> CheckpointEvidence:
        team = self._cluster.team_of(eviction.namespace)
        locations = (
            {of_namespace(one, team, eviction.namespace): None for one in team.checkpoints}
            if team
            else {}
        )
        looks = [self._look(one, eviction) for one in locations]
        told: tuple[Written, ...] = ()
        if team and self._store is not None:
            try:
                told = self._told(eviction, self._store)
            except StewardError as error:
                # Nobody can say then that nothing was told.
                logger.error("told checkpoints not read", error=str(error))
                looks.append(_failed("markers and heartbeats", error))
        return CheckpointEvidence(
            workload_uid=eviction.uid, evicted=eviction.at, looks=tuple(looks), told=told
        )

    def _look(self, location: CheckpointLocation, eviction: _Eviction) -> Look:
        asked = (location, eviction.job, eviction.at)
        if asked not in self._looks:
            self._looks[asked] = self._listed(location, eviction.job, eviction.at)
        return self._looks[asked]

    def _listed(self, location: CheckpointLocation, job: str, before: datetime) -> Look:
        uri = of_job(location, job)
        if not uri.startswith(S3):
            detail = "only objects in S3 can be listed; a heartbeat can tell of this one"
            return Look(uri=uri, status=LookStatus.UNLISTABLE, detail=detail)
        if self._reader is None:
            self._reader = self._sources.checkpoints(self._cluster)
        try:
            newest = self._reader.newest(location, job, before)
        except StewardError as error:
            return _failed(uri, error)
        return Look(uri=uri, status=LookStatus.OK, newest=newest)

    def _told(self, eviction: _Eviction, store: CheckpointStore) -> tuple[Written, ...]:
        """Return the newest marker and the newest heartbeat that are not later than the eviction."""
        told = store.told(self._cluster.name, eviction.namespace, eviction.job)
        earlier = [one for one in told if one.at <= eviction.at]
        kinds = (WrittenBy.MARKER, WrittenBy.HEARTBEAT)
        newest = ([one for one in earlier if one.by is kind][-1:] for kind in kinds)
        return tuple(one for few in newest for one in few)


def _failed(uri: str, error: StewardError) -> Look:
    denied = isinstance(error, DeniedError)
    status = LookStatus.DENIED if denied else LookStatus.UNREADABLE
    return Look(uri=uri, status=status, detail=str(error))
