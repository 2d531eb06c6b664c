"""Kueue's objects, read from either API form (v1beta1, v1beta2) into one model."""

from datetime import datetime

import msgspec

from steward.cluster.accelerators import Owner


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes condition; `status` is True, False or None (Unknown)."""

    type: str
    status: bool | None
    reason: str
    message: str
    since: datetime | None


class PodSet(msgspec.Struct, frozen=True, kw_only=True):
    """A pod set of a Workload.

    Attributes
    ----------
    count, min_count : int, int or None
        Pods wanted; the least that partial admission accepts.
    per_pod : dict of str to float
        Resource to amount of one pod, in Kubernetes base units; empty where the template names none.
    admitted, reclaimable : int or None, int
        Pods that its admission counts; those of them that have finished for good.
    flavors : dict of str to str
        Resource to the flavor assigned.
    topology : str or None
        Topology level that its pods must, or would rather, share; see `topology_required`.
    nodes : dict of str to int
        Node name to pods, where its topology assignment reaches down to nodes.
    """

    name: str
    count: int
    min_count: int | None = None
    per_pod: dict[str, float] = msgspec.field(default_factory=dict)
    admitted: int | None = None
    reclaimable: int = 0
    flavors: dict[str, str] = msgspec.field(default_factory=dict)
    topology: str | None = None
    topology_required: bool = False
    nodes: dict[str, int] = msgspec.field(default_factory=dict)


class Evictions(msgspec.Struct, frozen=True, kw_only=True):
    """Kueue's own counter of a Workload's evictions (0.12 and later); lost when it is re-created."""

    reason: str
    underlying_cause: str
    count: int


class AdmissionCheck(msgspec.Struct, frozen=True, kw_only=True):
    """State of an admission check of a Workload: Pending, Ready, Retry or Rejected."""

    name: str
    state: str
    message: str


class Requeue(msgspec.Struct, frozen=True, kw_only=True):
    """Back-off after PodsReadyTimeout or a failed admission check; preemption sets none."""

    count: int
    at: datetime | None


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A Kueue Workload: a job in the eyes of the quota.

    Attributes
    ----------
    priority_class_kind : str or None
        WorkloadPriorityClass or PriorityClass; None without a class.
    job_uid : str or None
        UID of the object that Kueue queued.
    created_by : str or None
        Person or team that a label of the Workload, else of one of its owners, names.
    owner_chain : tuple of Owner
        From the queued object upwards, as far as it could be read; the last is the top owner.
    requests : dict of str to float
        Resource to amount over all pod sets, in Kubernetes base units (bytes, cores, devices).
    assigned : dict of str to dict of str to float
        Flavor to resource to amount reserved by its admission; empty while not admitted.
    past_seconds : int or None
        Admitted seconds of earlier rounds; None where Kueue does not say.
    declared_checkpoints : str or None
        Where its pods are said to write checkpoints: an annotation's value, else the path of a
        mount that is called so. A declaration, never a proof.
    """

    namespace: str
    name: str
    uid: str
    created: datetime
    queue: str | None
    priority: int
    priority_class: str | None
    active: bool
    owner: Owner | None
    cluster_queue: str | None
    requests: dict[str, float]
    assigned: dict[str, dict[str, float]]
    conditions: tuple[Condition, ...]
    priority_class_kind: str | None = None
    job_uid: str | None = None
    created_by: str | None = None
    owner_chain: tuple[Owner, ...] = ()
    pod_sets: tuple[PodSet, ...] = ()
    evictions: tuple[Evictions, ...] = ()
    past_seconds: int | None = None
    max_execution_seconds: int | None = None
    requeue: Requeue | None = None
    admission_checks: tuple[AdmissionCheck, ...] = ()
    unhealthy_nodes: tuple[str, ...] = ()
    declared_checkpoints: str | None = None

    def condition(self, kind: str) -> Condition | None:
        """Find a condition by its type."""
        return next((c for c in self.conditions if c.type == kind), None)

    def holds(self, kind: str) -> bool:
        """Whether a condition of that type is True."""
        found = self.condition(kind)
        return found is not None and found.status is True


class QuotaRow(msgspec.Struct, frozen=True, kw_only=True):
    """One flavor and resource of a ClusterQueue or Cohort; amounts in base units.

    Attributes
    ----------
    group : int
        Position of its resource group; flavors of a group are tried in the order of the rows.
    borrowing_limit, lending_limit : float or None
        None where unset.
    reserved, used, borrowed : float or None
        None where the status does not say (a Cohort's never does).
    """

    flavor: str
    resource: str
    nominal: float
    borrowing_limit: float | None
    lending_limit: float | None
    reserved: float | None
    used: float | None
    borrowed: float | None
    group: int = 0


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """A ClusterQueue's preemption policies, with Kueue's defaults where it names none."""

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: str = "Never"
    max_priority_threshold: int | None = None


class Fungibility(msgspec.Struct, frozen=True, kw_only=True):
    """When the next flavor is tried; v1beta1's Borrow and Preempt are read as MayStopSearch."""

    when_can_borrow: str = "MayStopSearch"
    when_can_preempt: str = "TryNextFlavor"
    preference: str | None = None


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Workloads of a queue, as its status counts them; None where it does not say."""

    pending: int | None = None
    reserving: int | None = None
    admitted: int | None = None


class ClusterQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A ClusterQueue with its quota rows.

    Attributes
    ----------
    weight : float
        Of fair sharing; 0 is an infinite share.
    weighted_share : int or None
        From the status; the largest 64-bit integer at weight 0 while borrowing.
    managed : bool
        Whether HyperPod made it (label `sagemaker.amazonaws.com/sagemaker-managed-queue`).
    shares_idle : bool
        Whether it is HyperPod's queue for unallocated capacity, which is no team's.
    """

    name: str
    cohort: str | None
    rows: tuple[QuotaRow, ...]
    conditions: tuple[Condition, ...]
    strategy: str = "BestEffortFIFO"
    stop_policy: str = "None"
    preemption: Preemption = Preemption()
    fungibility: Fungibility = Fungibility()
    weight: float = 1.0
    weighted_share: int | None = None
    admission_checks: tuple[str, ...] = ()
    counts: QueueCounts = QueueCounts()
    managed: bool = False
    shares_idle: bool = False


class LocalQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A LocalQueue: the name that jobs use, and the ClusterQueue behind it."""

    namespace: str
    name: str
    cluster_queue: str
    conditions: tuple[Condition, ...]
    stop_policy: str = "None"
    counts: QueueCounts = QueueCounts()


class Cohort(msgspec.Struct, frozen=True, kw_only=True):
    """A Cohort: a pool of its own beside those of its queues, and its place in the tree."""

    name: str
    parent: str | None
    rows: tuple[QuotaRow, ...] = ()
    weight: float = 1.0


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    """A taint of nodes, or what tolerates one (then `operator` says how)."""

    key: str
    value: str
    effect: str
    operator: str = ""


class ResourceFlavor(msgspec.Struct, frozen=True, kw_only=True):
    """A ResourceFlavor: which nodes its quota is of. HyperPod names it after the instance type."""

    name: str
    node_labels: dict[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Taint, ...] = ()
    topology: str | None = None


class WorkloadPriorityClass(msgspec.Struct, frozen=True, kw_only=True):
    """A WorkloadPriorityClass; changing its value leaves existing workloads as they are."""

    name: str
    value: int


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """A Topology: node labels from the widest domain to the node."""

    name: str
    levels: tuple[str, ...]


class KueueEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes event about a Workload: lives an hour in the cluster, so it is kept here.

    Attributes
    ----------
    at : datetime
        Of its last occurrence, whichever form it was written in.
    """

    namespace: str
    workload: str
    workload_uid: str | None
    reason: str
    message: str
    at: datetime
    count: int


class QueueMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What the metrics say of a ClusterQueue: a cross-check of the objects, never the first source.

    Attributes
    ----------
    pending : dict of str to float
        By status: active, inadmissible.
    evicted : dict of str to float
        Increase over the last hour by reason, resets allowed for.
    usage, nominal : dict of str to dict of str to float
        By flavor and resource, where the cluster exports them.
    """

    cluster_queue: str
    pending: dict[str, float] = msgspec.field(default_factory=dict)
    admitted: float | None = None
    evicted: dict[str, float] = msgspec.field(default_factory=dict)
    usage: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    nominal: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)


class KueueMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Kueue's own metrics of a cluster; `version` is None where none says it (0.12 and older)."""

    version: str | None = None
    queues: tuple[QueueMetrics, ...] = ()
