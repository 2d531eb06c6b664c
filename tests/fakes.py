"""Hand-written fakes of the ports that read a cluster; metrics come from plain lists of samples."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from steward.cluster.accelerators import Window
from steward.cluster.control_plane import AddOn, ControlPlane
from steward.cluster.kueue import KueueMetrics, Workload
from steward.cluster.namespaces import governed
from steward.cluster.planning import Planned, SnapshotScope
from steward.cluster.pods import GpuPod
from steward.cluster.snapshot import Node, Part, PartStatus
from steward.errors import RetryableError
from steward.ports import (
    ControlPlaneReading,
    DeviceName,
    DeviceReading,
    KubernetesReading,
    MetricsReading,
    Samples,
    Signal,
    Wanted,
)
from tests.builders import NOON


@dataclass
class FakeMetrics:
    """Samples (time, activity 0-1) by device, one every minute at most; tensor and power likewise."""

    series: dict[DeviceName, list[tuple[datetime, float]]] = field(default_factory=dict)
    tensor: dict[DeviceName, list[tuple[datetime, float]]] = field(default_factory=dict)
    power: dict[DeviceName, list[tuple[datetime, float]]] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    nameless: list[tuple[str, str]] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def _check(self, question: str) -> None:
        self.asked.append(question)
        if question in self.broken:
            raise RetryableError(f"{question}: no answer")

    @property
    def part(self) -> str:
        return "prometheus"

    def kueue(self, end: datetime) -> KueueMetrics:
        self._check("kueue")
        return KueueMetrics()

    def read(
        self, end: datetime, minutes: Sequence[int], signal_minutes: Sequence[int] = ()
    ) -> MetricsReading:
        self._check("read")
        devices = [
            reading
            for device, points in self.series.items()
            if (reading := self._reading(device, points, end, minutes, signal_minutes))
        ]
        for node, uuid in self.nameless:
            devices.append(
                DeviceReading(
                    node=node,
                    namespace=None,
                    pod=None,
                    uuid=uuid,
                    mig=None,
                    activity_metric="DCGM_FI_DEV_GPU_UTIL",
                    windows=(),
                    last_sample=end,
                    held_bytes=None,
                )
            )
        return MetricsReading(devices=tuple(devices), invalid=())

    def _reading(
        self,
        device: DeviceName,
        points: list[tuple[datetime, float]],
        end: datetime,
        minutes: Sequence[int],
        signal_minutes: Sequence[int],
    ) -> DeviceReading | None:
        windows = _windows(points, end, minutes)
        tensor, power = self.tensor.get(device), self.power.get(device)
        if not any(window.present for window in windows):
            return None
        recent = [t for t, _ in points if end - timedelta(minutes=5) < t <= end]
        return DeviceReading(
            node=self.nodes.get(device.uuid, "hyperpod-i-0a"),
            namespace=device.namespace,
            pod=device.pod,
            uuid=device.uuid,
            mig=device.mig,
            activity_metric="DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            windows=windows,
            last_sample=max(recent, default=None),
            held_bytes=self.held.get(device.uuid),
            tensor=_windows(tensor, end, signal_minutes) if tensor else (),
            power=_windows(power, end, signal_minutes) if power else (),
            power_limit_watts=self.limits.get(device.uuid),
            model=self.models.get(device.uuid),
        )

    def samples(
        self,
        end: datetime,
        span_seconds: float,
        devices: Collection[DeviceName],
        signals: Sequence[Signal] = (Signal.ACTIVITY,),
    ) -> tuple[Samples, ...]:
        self._check("samples")
        start = end - timedelta(seconds=span_seconds)
        told = {Signal.ACTIVITY: self.series, Signal.TENSOR: self.tensor, Signal.POWER: self.power}
        found = []
        for device in devices:
            for signal in signals:
                inside = [(t, v) for t, v in told[signal].get(device, []) if start < t <= end]
                found.append(
                    Samples(
                        device=device,
                        times=tuple(t for t, _ in inside),
                        values=tuple(v for _, v in inside),
                        signal=signal,
                    )
                )
        return tuple(found)

    def seen(
        self, end: datetime, span_seconds: float, pods: Collection[tuple[str, str]]
    ) -> tuple[DeviceReading, ...]:
        self._check("seen")
        start = end - timedelta(seconds=span_seconds)
        return tuple(
            DeviceReading(
                node=None,
                namespace=device.namespace,
                pod=device.pod,
                uuid=device.uuid,
                mig=device.mig,
                activity_metric="DCGM_FI_PROF_GR_ENGINE_ACTIVE",
                windows=(),
                last_sample=None,
                held_bytes=None,
            )
            for device, points in self.series.items()
            if (device.namespace, device.pod) in set(pods)
            and any(start < t <= end for t, _ in points)
        )


def _windows(
    points: Sequence[tuple[datetime, float]], end: datetime, minutes: Sequence[int]
) -> tuple[Window, ...]:
    windows = []
    for length in minutes:
        inside = [v for t, v in points if end - timedelta(minutes=length) < t <= end]
        windows.append(
            Window(
                minutes=length,
                expected=length,
                present=len(inside),
                maximum=max(inside, default=None),
                minimum=min(inside, default=None),
                mean=sum(inside) / len(inside) if inside else None,
            )
        )
    return tuple(windows)


@dataclass
class FakeKubernetes:
    """A cluster's pods and nodes; `labels` are those of namespaces."""

    pods: tuple[GpuPod, ...] = ()
    nodes: tuple[Node, ...] = ()
    refused: dict[str, PartStatus] = field(default_factory=dict)
    workloads: tuple[Workload, ...] = ()
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    wanted: list[Wanted] = field(default_factory=list)

    def read(self, wanted: Wanted) -> KubernetesReading:
        self.wanted.append(wanted)
        ours = None if wanted.everywhere else governed(self.labels, wanted.namespaces)
        names = ("pods", "nodes", "workloads", "clusterqueues", "localqueues", "namespaces")
        parts = tuple(
            Part(name=f"kubernetes/{name}", status=self.refused.get(name, PartStatus.OK), at=NOON)
            for name in names
        )
        return KubernetesReading(
            pods=()
            if "pods" in self.refused
            else tuple(pod for pod in self.pods if ours is None or pod.namespace in ours),
            governed=ours,
            nodes=() if "nodes" in self.refused else self.nodes,
            namespaces=self.labels,
            workloads=self.workloads,
            cluster_queues=(),
            local_queues=(),
            parts=parts,
        )


@dataclass
class FakeSources:
    """Readers of one cluster."""

    kube: FakeKubernetes
    prometheus: FakeMetrics

    def cluster(self, cluster: object) -> "FakeSources":
        return self

    def read(self, *, add_ons: bool = True) -> ControlPlaneReading:
        installed = (AddOn(name="observability", version="v1", status="ACTIVE"),)
        control_plane = ControlPlane(add_ons=installed if add_ons else None)
        return ControlPlaneReading(control_plane=control_plane, parts=())

    def kubernetes(self, cluster: object) -> FakeKubernetes:
        return self.kube

    def metrics(self, cluster: object) -> FakeMetrics:
        return self.prometheus


@dataclass
class FixedTime:
    """A clock that stands where it was put."""

    at: datetime = NOON

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@dataclass
class Recorder:
    """Bus and queues that remember what they were given."""

    published: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    sent: list[tuple[str, str, datetime]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    scopes: list[SnapshotScope] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    planned: dict[str, Planned] = field(default_factory=dict)

    def publish(self, detail_type: str, detail: dict[str, object]) -> None:
        self.published.append((detail_type, dict(detail)))

    def send(self, cluster: str, key: str, when: datetime) -> None:
        self.sent.append((cluster, key, when))

    def ask(self, cluster: str, when: datetime, reason: str, scope: SnapshotScope) -> None:
        if cluster in self.broken:
            raise RetryableError(f"{cluster}: the queue did not answer")
        self.asked.append(cluster)
        self.scopes.append(scope)

    def last(self, cluster: str) -> Planned:
        return self.planned.get(cluster, Planned())

    def mark(self, cluster: str, planned: Planned) -> None:
        self.planned[cluster] = planned
