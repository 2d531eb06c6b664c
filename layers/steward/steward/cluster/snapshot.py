"""Everything one tick saw of one cluster that is not secret, and what it could not see."""

from datetime import datetime
from enum import StrEnum

import msgspec

from steward.cluster.accelerators import Accelerator
from steward.cluster.kueue import ClusterQueue, LocalQueue, Workload

SCHEMA = 1
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
        `kubernetes/<resource>`, `sagemaker/<Operation>`, `eks/<Operation>` or `prometheus`.
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
    """A Kubernetes node; `accelerators` is its capacity in whole devices, None if not known."""

    name: str
    instance_type: str | None
    accelerators: int | None
    ready: bool
    schedulable: bool
    health: str | None


class InstanceGroupState(msgspec.Struct, frozen=True, kw_only=True):
    """A HyperPod instance group as DescribeCluster reports it."""

    name: str
    status: str | None
    current: int
    target: int
    instance_types: tuple[str, ...]


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True):
    """A HyperPod instance as ListClusterNodes reports it; its node is `hyperpod-<instance id>`."""

    instance_id: str
    group: str
    instance_type: str
    status: str
    message: str


class ComputeQuota(msgspec.Struct, frozen=True, kw_only=True):
    """A compute allocation as ListComputeQuotas reports it (configuration, never usage)."""

    id: str
    name: str
    team: str
    status: str
    active: bool
    strategy: str | None
    borrow_limit_percent: int | None
    accelerators: dict[str, int | None]
    fair_share_weight: int | None


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster policy (ClusterSchedulerConfig): priority classes and fair sharing."""

    id: str
    name: str
    status: str
    fair_share: bool | None
    priority_classes: dict[str, int]


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """What SageMaker and EKS say of the cluster; None or empty where a part was not read."""

    status: str | None = None
    arn: str | None = None
    groups: tuple[InstanceGroupState, ...] = ()
    nodes: tuple[ClusterNode, ...] = ()
    quotas: tuple[ComputeQuota, ...] = ()
    scheduler: SchedulerConfig | None = None
    kubernetes_version: str | None = None


class IdleEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a remembered idle stretch ended, from raw samples.

    Attributes
    ----------
    key : str
        Of the accelerator, as in :attr:`Accelerator.key`.
    last : datetime
        The last sample that showed the condition.
    observed_seconds : float
        Idle time that samples cover after what the memory had already counted.
    """

    key: str
    last: datetime
    observed_seconds: float


class InvalidSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of one metric that cannot be true, dropped before any statistic."""

    metric: str
    samples: int
    accelerators: int


class LastSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The pointer that `take_snapshot` keeps for each cluster: when its last snapshot was taken."""

    key: str
    started: datetime
    finished: datetime


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
    idle_ends : tuple of IdleEnd
        For stretches that the memory knew and this tick no longer sees idle.
    """

    schema: int = SCHEMA
    cluster: str
    scope: str
    at: datetime
    window_end: datetime
    parts: tuple[Part, ...]
    control_plane: ControlPlane
    nodes: tuple[Node, ...]
    namespaces: tuple[str, ...] | None
    workloads: tuple[Workload, ...]
    cluster_queues: tuple[ClusterQueue, ...]
    local_queues: tuple[LocalQueue, ...]
    accelerators: tuple[Accelerator, ...]
    idle_ends: tuple[IdleEnd, ...] = ()
    invalid: tuple[InvalidSamples, ...] = ()

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
