"""What SageMaker and EKS say of a cluster: configuration and state, never usage."""

from datetime import datetime

import msgspec


class InstanceGroupState(msgspec.Struct, frozen=True, kw_only=True):
    """A HyperPod instance group as DescribeCluster reports it.

    Attributes
    ----------
    instance_types : tuple of str
        One, or those of a flexible group; empty where the answer names none.
    counts : dict of str to int
        Instances now, by type, as far as the answer tells them apart.
    restricted : bool
        Whether it is a restricted instance group.
    """

    name: str
    status: str | None
    current: int
    target: int
    instance_types: tuple[str, ...]
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    threads_per_core: int | None = None
    training_plan: str | None = None
    restricted: bool = False


class ClusterNode(msgspec.Struct, frozen=True, kw_only=True):
    """A HyperPod instance as ListClusterNodes reports it; its node is `hyperpod-<instance id>`."""

    instance_id: str
    group: str
    instance_type: str
    status: str
    message: str
    launched: datetime | None = None


class ClusterEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of ListClusterEvents (clusters with continuous provisioning only).

    Attributes
    ----------
    level : str or None
        Info, Warn or Error; older events name none.
    description : str
        Free text of the service: shown, never parsed.
    """

    id: str
    at: datetime
    level: str | None
    resource_type: str
    group: str | None
    instance_id: str | None
    description: str


class QuotaResource(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ComputeQuotaResources, as it was given: None is "not given", never zero."""

    instance_type: str
    count: int | None = None
    accelerators: int | None = None
    vcpu: float | None = None
    memory_gib: float | None = None
    partition: str | None = None
    partition_count: int | None = None


class ComputeQuota(msgspec.Struct, frozen=True, kw_only=True):
    """A compute allocation as ListComputeQuotas reports it (configuration, never usage).

    Attributes
    ----------
    accelerators : dict of str to (int or None)
        By instance type; from instances by the accelerators of their type; None is not known.
    absolute_borrow_limits : tuple of QuotaResource
        Limits in amounts, beside the percentage.
    """

    id: str
    name: str
    team: str
    status: str
    active: bool
    strategy: str | None
    borrow_limit_percent: int | None
    accelerators: dict[str, int | None]
    fair_share_weight: int | None
    version: int | None = None
    resources: tuple[QuotaResource, ...] = ()
    absolute_borrow_limits: tuple[QuotaResource, ...] = ()
    preempt_team_tasks: str | None = None
    modified: datetime | None = None


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster policy (ClusterSchedulerConfig): priority classes and fair sharing.

    Attributes
    ----------
    fair_share, idle_sharing : bool or None
        None where the answer does not say.
    details : dict of str to str
        StatusDetails: the status of each part (PriorityClasses, FairShare, IdleResourceSharing).
    """

    id: str
    name: str
    status: str
    fair_share: bool | None
    priority_classes: dict[str, int]
    version: int | None = None
    idle_sharing: bool | None = None
    details: dict[str, str] = msgspec.field(default_factory=dict)
    failure: str | None = None


class AddOn(msgspec.Struct, frozen=True, kw_only=True):
    """An EKS add-on that governance or telemetry rests on.

    Attributes
    ----------
    settings : dict of str to str
        Of its configuration only what is asked for, by dotted path, for example
        `metricsProvider.taskGovernanceMetrics.level`: a configuration may hold anything.
    settings_known : bool
        False where its configuration could not be read: what is not in `settings` is unknown then,
        not left at its default.
    issues : tuple of str
        Codes of its health issues.
    """

    name: str
    version: str | None
    status: str | None
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    settings_known: bool = True
    issues: tuple[str, ...] = ()


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """What SageMaker and EKS say of the cluster; None or empty where a part was not read.

    Attributes
    ----------
    add_ons : tuple of AddOn, or None
        Those that the product knows of and that are installed; None where they could not be listed.
    """

    status: str | None = None
    arn: str | None = None
    failure: str | None = None
    node_recovery: str | None = None
    provisioning_mode: str | None = None
    groups: tuple[InstanceGroupState, ...] = ()
    nodes: tuple[ClusterNode, ...] = ()
    events: tuple[ClusterEvent, ...] = ()
    quotas: tuple[ComputeQuota, ...] = ()
    scheduler: SchedulerConfig | None = None
    kubernetes_version: str | None = None
    add_ons: tuple[AddOn, ...] | None = None
