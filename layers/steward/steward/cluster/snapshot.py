"""Everything one tick saw of one cluster that is not secret, and what it could not see."""

from datetime import datetime
from enum import StrEnum

import msgspec

from steward.cluster.accelerators import Accelerator
from steward.cluster.audit import Audit
from steward.cluster.checkpoints import CheckpointEvidence
from steward.cluster.control_plane import ControlPlane
from steward.cluster.instance_types import InstanceType
from steward.cluster.kueue import (
    ClusterQueue,
    Cohort,
    KueueEvent,
    KueueMetrics,
    LocalQueue,
    ResourceFlavor,
    Taint,
    Topology,
    Workload,
    WorkloadPriorityClass,
)
from steward.cluster.planning import SnapshotScope
from steward.cluster.pods import Hourly

SCHEMA = 2
"""Version of the stored form; a reader refuses one it does not know."""


class PartStatus(StrEnum):
    """What became of one read: `absent` is "not installed", which is an answer, not a fault."""

    OK = "ok"
    DENIED = "denied"
    UNREADABLE = "unreadable"
    ABSENT = "absent"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One read of one source: its name is the subject that an unknown line uses.

    Attributes
    ----------
    name : str
        `kubernetes/<resource>`, `sagemaker/<Operation>`, `eks/<Operation>`, `prometheus` or
        `cloudwatch/GetMetricData`.
    detail : str
        For people: what the source said when it refused; empty when read.
    left_out : tuple of str
        Objects of a list that could not be read: `<namespace>/<name>`, else their position.
    """

    name: str
    status: PartStatus
    at: datetime
    detail: str = ""
    left_out: tuple[str, ...] = ()


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes node.

    Attributes
    ----------
    accelerators : int or None
        Capacity in whole devices; None if not known.
    since : datetime or None
        When its condition Ready last changed.
    health : str or None
        HyperPod's label: Schedulable, Unschedulable, UnschedulablePendingReboot or
        UnschedulablePendingReplacement.
    allocatable : dict of str to float
        cpu, memory and accelerators that pods may request, in Kubernetes base units.
    labels : dict of str to str
        Those that ResourceFlavors and Topologies go by.
    """

    name: str
    instance_type: str | None
    accelerators: int | None
    ready: bool
    schedulable: bool
    health: str | None
    allocatable: dict[str, float] = msgspec.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    since: datetime | None = None


class IdleEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a remembered stretch (idle, or of a hang) ended, from raw samples.

    Attributes
    ----------
    key : str
        Of the accelerator, as in :attr:`Accelerator.key`.
    last : datetime
        The last sample that showed the condition.
    observed_seconds : float
        Time of it that samples cover after what the memory had already counted.
    counted_seconds : float or None
        What that was: a snapshot may be taken before the one before it is evaluated. None: what
        the memory has counted when this is read.
    quiet : bool
        Of a hang: all of the job's newest samples are idle, so that it is not known to work again.
    """

    key: str
    last: datetime
    observed_seconds: float
    counted_seconds: float | None = None
    quiet: bool = False


class InvalidSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of one metric that cannot be true, dropped before any statistic.

    Attributes
    ----------
    first : datetime or None
        The oldest of them in the longest window; None where whole series were left out.
    """

    metric: str
    samples: int
    accelerators: int
    first: datetime | None = None


class LastSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The pointer that `take_snapshot` keeps for each cluster: when its last snapshot was taken.

    Attributes
    ----------
    audited : datetime or None
        When the last one of scope audit was begun.
    """

    key: str
    started: datetime
    finished: datetime
    audited: datetime | None = None
    hourly: Hourly | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster at one moment, each part with what became of it.

    Attributes
    ----------
    at : datetime
        When the reads began; detection windows end at `at` less the metric delay.
    window_end : datetime
        Where every window of this snapshot ends.
    namespaces : tuple of str, or None
        Names of those that exist, sorted; None where they could not be listed.
    kueue_metrics : KueueMetrics or None
        None where the metrics source could not be asked.
    audit : Audit or None
        None at a tick.
    metrics : str
        Name of the part that tells what became of the metrics source.
    idle_ends : tuple of IdleEnd
        For stretches that the memory knew and this tick no longer sees idle.
    checkpoints : tuple of CheckpointEvidence
        For preemptions that the memory has not settled yet.
    """

    schema: int = SCHEMA
    cluster: str
    scope: SnapshotScope
    at: datetime
    window_end: datetime
    metrics: str = "prometheus"
    parts: tuple[Part, ...]
    control_plane: ControlPlane
    nodes: tuple[Node, ...]
    namespaces: tuple[str, ...] | None
    workloads: tuple[Workload, ...]
    cluster_queues: tuple[ClusterQueue, ...]
    local_queues: tuple[LocalQueue, ...]
    cohorts: tuple[Cohort, ...] = ()
    resource_flavors: tuple[ResourceFlavor, ...] = ()
    priority_classes: tuple[WorkloadPriorityClass, ...] = ()
    topologies: tuple[Topology, ...] = ()
    kueue_events: tuple[KueueEvent, ...] = ()
    kueue_metrics: KueueMetrics | None = None
    audit: Audit | None = None
    instance_types: tuple[InstanceType, ...] = ()
    accelerators: tuple[Accelerator, ...]
    idle_ends: tuple[IdleEnd, ...] = ()
    invalid: tuple[InvalidSamples, ...] = ()
    checkpoints: tuple[CheckpointEvidence, ...] = ()

    def part(self, name: str) -> Part | None:
        """Find a part by its name."""
        return next((part for part in self.parts if part.name == name), None)

    def refused(self, *prefixes: str) -> tuple[Part, ...]:
        """Parts of that name or below it that were denied or unreadable."""
        bad = {PartStatus.DENIED, PartStatus.UNREADABLE}
        return tuple(
            p for p in self.parts if p.status in bad and any(_below(p.name, x) for x in prefixes)
        )

    def readable(self, name: str) -> bool:
        """Whether a part was read."""
        part = self.part(name)
        return part is not None and part.status is PartStatus.OK


def _below(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}/")
