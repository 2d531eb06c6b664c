"""Read every source of one cluster into one snapshot; what was refused is a named part of it."""

from __future__ import annotations

from collections.abc import Callable
from copy import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from steward.cluster.accelerators import Accelerator
from steward.cluster.control_plane import ControlPlane
from steward.cluster.instance_types import InstanceType, known_types, with_accelerators
from steward.cluster.memory import Memory
from steward.cluster.planning import SnapshotScope
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import IdleEnd, Part, PartStatus, Snapshot
from steward.errors import DeniedError, StewardError
from steward.ports import Wanted
from steward.usecases.allocation import allocate, pods_without_device
from steward.usecases.checkpoint_evidence import find_evidence
from steward.usecases.elsewhere import listing_due, with_elsewhere
from steward.usecases.idle_history import find_beginnings, find_ends
from steward.usecases.raw_samples import LOOK_BACK

if TYPE_CHECKING:
    from steward.cluster.pods import Hourly
    from steward.ports import (
        CheckpointStore,
        Clock,
        ClusterReader,
        ControlPlaneReading,
        DeviceReading,
        KubernetesReading,
        MetricsReader,
        MetricsReading,
        Sources,
    )

REMEMBERED = timedelta(days=7)
"""Workloads that finished before are dropped on sight: no detector looks further back, and Kueue
keeps them for ever by default."""


METRICS_TIME = timedelta(seconds=60)
"""After so much time the metrics source is asked nothing more in this tick; a question that is
under way has a deadline of its own."""


def read_cluster(
    cluster: ClusterPolicy,
    memory: Memory,
    sources: Sources,
    clock: Clock,
    last: Hourly | None = None,
    scope: SnapshotScope = SnapshotScope.TICK,
    *,
    checkpoints: CheckpointStore | None = None,
) -> tuple[Snapshot, Hourly | None]:
    """Read a cluster.

    Parameters
    ----------
    cluster : ClusterPolicy
        Which cluster, and how it is reached.
    memory : Memory
        What is known of its accelerators.
    sources, clock
        Ports.
    last : Hourly or None
        GPU pods outside governed namespaces, as the last list of every namespace showed them.
    scope : SnapshotScope
        An audit lists every namespace, and what only an audit reads.
    checkpoints : CheckpointStore or None
        What markers and heartbeats told of; None: nobody tells.

    Returns
    -------
    Snapshot
        A cluster that cannot be read is a snapshot with unknown parts, never an error.
    Hourly or None
        To be given to the next tick.
    """
    at = clock.now()
    end = cluster.window_end(at)
    metrics = _Metrics(sources.metrics(cluster), clock)
    reading = metrics.ask(
        lambda source: source.read(end, cluster.windows(), cluster.hang_windows()), needed=True
    )
    policy = cluster.namespaces()
    everywhere = scope is SnapshotScope.AUDIT or listing_due(last, reading, memory, policy, at)
    control = _control_plane(sources.cluster(cluster), last, everywhere=everywhere)
    wanted = Wanted(
        namespaces=policy,
        everywhere=everywhere,
        finished_after=at - REMEMBERED,
        audit=scope is SnapshotScope.AUDIT,
    )
    kubernetes = sources.kubernetes(cluster).read(wanted)
    if _read(kubernetes, "kubernetes/pods"):
        kubernetes, last = with_elsewhere(kubernetes, last, reading, policy, at)
    if last is not None and everywhere:
        last = replace(last, add_ons=control.control_plane.add_ons)
    nodes = kubernetes.nodes if _read(kubernetes, "kubernetes/nodes") else None
    types = known_types(control.control_plane, nodes, cluster)
    control_plane = with_accelerators(control.control_plane, types)
    read = _Read(control_plane, kubernetes, reading, types)
    accelerators, ends = _accelerators(cluster, memory, read, metrics, at)
    namespaces = kubernetes.namespaces
    kueue = metrics.ask(lambda source: source.kueue(end)) if reading else None
    snapshot = Snapshot(
        cluster=cluster.name,
        scope=scope,
        at=at,
        window_end=end,
        metrics=metrics.name,
        parts=(*control.parts, *kubernetes.parts, metrics.part()),
        control_plane=control_plane,
        instance_types=types,
        nodes=kubernetes.nodes,
        namespaces=None if namespaces is None else tuple(sorted(namespaces)),
        workloads=kubernetes.workloads,
        cluster_queues=kubernetes.cluster_queues,
        local_queues=kubernetes.local_queues,
        cohorts=kubernetes.cohorts,
        resource_flavors=kubernetes.resource_flavors,
        priority_classes=kubernetes.priority_classes,
        topologies=kubernetes.topologies,
        kueue_events=kubernetes.events,
        kueue_metrics=kueue,
        audit=kubernetes.audit,
        accelerators=accelerators,
        idle_ends=ends,
        invalid=reading.invalid if reading else (),
        checkpoints=find_evidence(
            kubernetes.workloads,
            kubernetes.events,
            memory.preemptions.settled(),
            cluster,
            sources=sources,
            store=checkpoints,
            clock=clock,
        ),
    )
    return snapshot, last


def _control_plane(
    reader: ClusterReader, last: Hourly | None, *, everywhere: bool
) -> ControlPlaneReading:
    """Read the control plane; add-ons hourly, as in between they are carried."""
    reading = reader.read(add_ons=everywhere)
    if everywhere or last is None:
        return reading
    return replace(reading, control_plane=replace(reading.control_plane, add_ons=last.add_ons))


class _Read(NamedTuple):
    """What the sources answered."""

    control_plane: ControlPlane
    kubernetes: KubernetesReading
    metrics: MetricsReading | None
    types: tuple[InstanceType, ...]


class _Metrics:
    """The metrics source, asked several times a tick: a refusal is noted, the rest goes on."""

    def __init__(self, reader: MetricsReader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._asked_at = clock.now()
        self._spent = timedelta()
        self._refusal: StewardError | None = None
        self._notes: list[str] = []

    def ask[T](self, question: Callable[[MetricsReader], T], *, needed: bool = False) -> T | None:
        """Ask; None where the source refused. Without a needed answer the part is unreadable."""
        if self._spent >= METRICS_TIME:
            self._notes.append("no time left for another question; the next tick asks again")
            return None
        begun = self._clock.now()
        try:
            return question(self._reader)
        except StewardError as error:
            if needed:
                self._refusal = error
            else:
                self._notes.append(str(error))
            return None
        finally:
            self._spent += self._clock.now() - begun

    @property
    def name(self) -> str:
        """Name of its part."""
        return self._reader.part

    def part(self) -> Part:
        """Say what became of the source."""
        status = PartStatus.OK
        if self._refusal is not None:
            denied = isinstance(self._refusal, DeniedError)
            status = PartStatus.DENIED if denied else PartStatus.UNREADABLE
        detail = "; ".join([str(self._refusal)] if self._refusal else self._notes)
        return Part(name=self.name, status=status, at=self._asked_at, detail=detail)


def _accelerators(
    cluster: ClusterPolicy,
    memory: Memory,
    read: _Read,
    metrics: _Metrics,
    at: datetime,
) -> tuple[tuple[Accelerator, ...], tuple[IdleEnd, ...]]:
    """Allocate, and look back for those that need it."""
    control_plane, kubernetes, reading, types = read
    end = cluster.window_end(at)
    looked_up: tuple[DeviceReading, ...] | None = ()
    if reading is not None:
        born_before = end - timedelta(minutes=min(cluster.idle_windows()))
        missing = pods_without_device(kubernetes, reading, memory, born_before)
        if missing:
            names = [(pod.namespace, pod.name) for pod in missing]
            span = min(LOOK_BACK, end - min(pod.since for pod in missing))
            looked_up = metrics.ask(lambda source: source.seen(end, span.total_seconds(), names))
    accelerators = allocate(
        kubernetes,
        control_plane,
        reading,
        looked_up,
        memory,
        cluster,
        per_instance={one.name: one.accelerators for one in types},
    )
    if reading is None or not _read(kubernetes, "kubernetes/pods"):
        return accelerators, ()
    ends = metrics.ask(
        lambda source: find_ends(accelerators, kubernetes.workloads, memory, cluster, source, at)
    )
    begun = metrics.ask(lambda source: find_beginnings(accelerators, memory, cluster, source, end))
    return begun or accelerators, ends or ()


def _read(kubernetes: KubernetesReading, name: str) -> bool:
    return any(p.name == name and p.status is PartStatus.OK for p in kubernetes.parts)
