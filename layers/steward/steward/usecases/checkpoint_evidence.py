"""Look for the checkpoints of jobs that were just preempted: in storage, and in what was told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from steward.cluster.checkpoints import CheckpointEvidence, Look, LookStatus, Written, WrittenBy
from steward.cluster.preemptions.shown import shown
from steward.cluster.workloads import subject_of
from steward.errors import DeniedError, StewardError
from steward.telemetry import logger
from steward.usecases.checkpoint_places import S3, of_job, of_namespace

if TYPE_CHECKING:
    from steward.cluster.kueue import KueueEvent, Workload
    from steward.cluster.policy import CheckpointLocation, ClusterPolicy
    from steward.ports import CheckpointReader, CheckpointStore, Clock, Sources

MOST_EVICTIONS = 50
LOOKING_TIME = timedelta(seconds=20)
"""What one tick looks up at most, and for how long; the next tick looks up what was left."""


def find_evidence(
    workloads: Sequence[Workload],
    events: Sequence[KueueEvent],
    settled: Collection[tuple[str, datetime]],
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
    settled : collection of (str, datetime)
        Evictions (Workload UID, time) that need no look any more.
    cluster : ClusterPolicy
        Whose teams say where they write.
    sources, store, clock
        Ports; without evictions none of them is asked.

    Returns
    -------
    tuple of CheckpointEvidence
        By time of the eviction. Those of the newest evictions, where not all could be looked up:
        storage changes, and tells less of an older one.
    """
    evictions = _evictions(workloads, events, settled)
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
    settled: Collection[tuple[str, datetime]],
) -> list[_Eviction]:
    """Evictions to be looked up, the newest first."""
    by_uid = {workload.uid: workload for workload in workloads}
    found = [
        _Eviction(one.at, uid, by_uid[uid].namespace, subject_of(by_uid[uid]).rpartition("/")[2])
        for uid, several in shown(workloads, events).items()
        if uid in by_uid
        for one in several
        if (uid, one.at) not in settled
    ]
    return sorted(found, reverse=True)


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
