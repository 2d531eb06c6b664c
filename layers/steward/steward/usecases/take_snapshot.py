"""Take a snapshot: read every source of one cluster, each on its own, and store what was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.accelerators import Accelerator
from steward.cluster.memory import Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import ControlPlane, IdleEnd, LastSnapshot, Part, PartStatus, Snapshot
from steward.errors import DeniedError, StewardError
from steward.events import SNAPSHOT_TAKEN, Request
from steward.usecases.allocation import allocate, pods_without_device
from steward.usecases.idle_history import LOOK_BACK, find_beginnings, find_ends

if TYPE_CHECKING:
    from steward.ports import (
        Bus,
        Clock,
        DeviceReading,
        KubernetesReading,
        MemoryStore,
        MetricsReader,
        MetricsReading,
        SnapshotStore,
        Sources,
    )

SCOPE = "tick"
"""What a snapshot reads; a wider scope may follow."""

OLDEST_REQUEST = timedelta(minutes=15)
"""A request older than this is dropped: the ticks since have repaired whatever it was about."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a wish for a snapshot; `key` is None where none was taken, with the reason."""

    cluster: str
    key: str | None
    reason: str
    refused: tuple[str, ...] = ()


def clusters_wanted(
    request: Request, clusters: Sequence[ClusterPolicy], now: datetime
) -> tuple[ClusterPolicy, ...]:
    """Resolve a request to clusters of the policy.

    A request too old names none. One that names a cluster (by name or ARN) means that one; one
    that names none means every cluster of its account and region.
    """
    if now - request.at > OLDEST_REQUEST:
        return ()
    if request.cluster:
        name = request.cluster.rpartition("/")[2]
        return tuple(c for c in clusters if c.name in {request.cluster, name})
    return tuple(
        c
        for c in clusters
        if request.region in {"", c.region}
        and (c.account is None or request.account in {"", c.account})
    )


def take_snapshot(
    cluster: ClusterPolicy,
    asked: datetime,
    *,
    sources: Sources,
    snapshots: SnapshotStore,
    memories: MemoryStore,
    bus: Bus,
    clock: Clock,
) -> Outcome:
    """Read a cluster and announce the snapshot.

    Parameters
    ----------
    cluster : ClusterPolicy
        Which cluster, and how it is reached.
    asked : datetime
        When the newest request for it was made; older than the last snapshot's start, it is
        already answered.
    sources, snapshots, memories, bus, clock
        Ports.

    Returns
    -------
    Outcome
        A cluster that cannot be read is a snapshot with unknown parts, never an error.

    Raises
    ------
    StewardError
        The bucket or the bus failed: nothing was announced, and the request may be repeated.
    """
    last = snapshots.last(cluster.name)
    if last and asked < last.started:
        return Outcome(cluster=cluster.name, key=None, reason="already answered")
    started = clock.now()
    memory, _ = memories.load(cluster.name)
    snapshot = read_cluster(cluster, memory, sources, clock)
    key = snapshots.put(snapshot)
    bus.publish(
        SNAPSHOT_TAKEN,
        {"cluster": cluster.name, "key": key, "at": snapshot.at.isoformat(), "scope": SCOPE},
    )
    snapshots.finish(cluster.name, LastSnapshot(key=key, started=started, finished=clock.now()))
    refused = tuple(part.name for part in snapshot.refused(*(p.name for p in snapshot.parts)))
    return Outcome(cluster=cluster.name, key=key, reason="taken", refused=refused)


def read_cluster(
    cluster: ClusterPolicy, memory: Memory, sources: Sources, clock: Clock
) -> Snapshot:
    """Read every source of a cluster into one snapshot; what was refused is a named part."""
    at = clock.now()
    control = sources.cluster(cluster).read()
    kubernetes = sources.kubernetes(cluster).read()
    metrics = _Metrics(sources.metrics(cluster), clock)
    reading, accelerators, ends = _accelerators(
        cluster, memory, kubernetes, control.control_plane, metrics, at
    )
    namespaces = kubernetes.namespaces
    return Snapshot(
        cluster=cluster.name,
        scope=SCOPE,
        at=at,
        window_end=cluster.window_end(at),
        parts=(*control.parts, *kubernetes.parts, metrics.part()),
        control_plane=control.control_plane,
        nodes=kubernetes.nodes,
        namespaces=None if namespaces is None else tuple(sorted(namespaces)),
        workloads=kubernetes.workloads,
        cluster_queues=kubernetes.cluster_queues,
        local_queues=kubernetes.local_queues,
        accelerators=accelerators,
        idle_ends=ends,
        invalid=reading.invalid if reading else (),
    )


class _Metrics:
    """The metrics source, asked several times a tick: a refusal is noted, the rest goes on."""

    def __init__(self, reader: MetricsReader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._asked_at = clock.now()
        self._refusal: StewardError | None = None
        self._notes: list[str] = []

    def ask[T](self, question: Callable[[MetricsReader], T], *, needed: bool = False) -> T | None:
        """Ask; None where the source refused. Without a needed answer the part is unreadable."""
        try:
            return question(self._reader)
        except StewardError as error:
            if needed:
                self._refusal = error
            else:
                self._notes.append(str(error))
            return None

    def part(self) -> Part:
        """Say what became of the source."""
        status = PartStatus.OK
        if self._refusal is not None:
            denied = isinstance(self._refusal, DeniedError)
            status = PartStatus.DENIED if denied else PartStatus.UNREADABLE
        detail = "; ".join([str(self._refusal)] if self._refusal else self._notes)
        return Part(name="prometheus", status=status, at=self._asked_at, detail=detail)


def _accelerators(
    cluster: ClusterPolicy,
    memory: Memory,
    kubernetes: KubernetesReading,
    control_plane: ControlPlane,
    metrics: _Metrics,
    at: datetime,
) -> tuple[MetricsReading | None, tuple[Accelerator, ...], tuple[IdleEnd, ...]]:
    """Read the windows, allocate, and look back for those that need it."""
    end = cluster.window_end(at)
    reading = metrics.ask(lambda source: source.read(end, cluster.windows()), needed=True)
    looked_up: tuple[DeviceReading, ...] | None = ()
    if reading is not None:
        born_before = end - timedelta(minutes=min(cluster.windows()))
        missing = pods_without_device(kubernetes, reading, memory, born_before)
        if missing:
            names = [(pod.namespace, pod.name) for pod in missing]
            span = min(LOOK_BACK, end - min(pod.since for pod in missing))
            looked_up = metrics.ask(lambda source: source.seen(end, span.total_seconds(), names))
    accelerators = allocate(kubernetes, control_plane, reading, looked_up, memory, cluster)
    if reading is None or not _read(kubernetes, "kubernetes/pods"):
        return reading, accelerators, ()
    ends = metrics.ask(
        lambda source: find_ends(accelerators, kubernetes.workloads, memory, cluster, source, at)
    )
    begun = metrics.ask(lambda source: find_beginnings(accelerators, memory, cluster, source, end))
    return reading, begun or accelerators, ends or ()


def _read(kubernetes: KubernetesReading, name: str) -> bool:
    return any(p.name == name and p.status is PartStatus.OK for p in kubernetes.parts)
