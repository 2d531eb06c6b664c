"""SageMaker's answers, read into the nouns.

Every reader raises MalformedError where a member that it needs is missing or of another type. What
the service may write there later (a status, a level) passes as text.
"""

from collections.abc import Callable
from copy import replace

from steward.cluster.control_plane import (
    ClusterEvent,
    ClusterNode,
    ComputeQuota,
    InstanceGroupState,
    QuotaResource,
    SchedulerConfig,
)
from steward.cluster.instance_types import quota_accelerators
from steward.sources.control_plane.fields import (
    MalformedError,
    amount,
    count,
    each,
    get,
    moment,
    need,
)


def read_group(item: object) -> InstanceGroupState:
    """Read an instance group of DescribeCluster."""
    current = need(item, "CurrentCount", int)
    only = get(item, "InstanceType", str)
    types, counts = ((only,), {only: current}) if only is not None else _flexible(item)
    return InstanceGroupState(
        name=need(item, "InstanceGroupName", str),
        status=get(item, "Status", str),
        current=current,
        target=need(item, "TargetCount", int),
        instance_types=types,
        counts=counts,
        threads_per_core=get(item, "ThreadsPerCore", int),
        training_plan=get(item, "TrainingPlanArn", str),
    )


def read_restricted_group(item: object) -> InstanceGroupState:
    """Read a restricted instance group of DescribeCluster."""
    return replace(read_group(item), restricted=True)


def _flexible(group: object) -> tuple[tuple[str, ...], dict[str, int]]:
    """Types that a flexible group holds, then those that it may hold; instances by type."""
    details: tuple[tuple[str, int | None], ...] = ()
    if get(group, "InstanceTypeDetails", list):
        details = each(
            group,
            "InstanceTypeDetails",
            lambda one: (need(one, "InstanceType", str), count(one, "CurrentCount")),
        )
    types = [kind for kind, _ in details]
    wanted = get(group, "InstanceRequirements", dict) or {}
    for key in ("CurrentInstanceTypes", "DesiredInstanceTypes"):
        types += each(wanted, key, _text) if key in wanted else ()
    return tuple(dict.fromkeys(types)), {kind: n for kind, n in details if n is not None}


def _text(item: object) -> str:
    if not isinstance(item, str):
        raise MalformedError(f"not text but {item!r:.40}")
    return item


def read_node(item: object) -> ClusterNode:
    """Read a summary of ListClusterNodes."""
    status = need(item, "InstanceStatus", dict)
    return ClusterNode(
        instance_id=need(item, "InstanceId", str),
        group=need(item, "InstanceGroupName", str),
        instance_type=need(item, "InstanceType", str),
        status=need(status, "Status", str),
        message=get(status, "Message", str) or "",
        launched=moment(item, "LaunchTime"),
    )


def read_event(item: object) -> ClusterEvent:
    """Read a summary of ListClusterEvents."""
    at = moment(item, "EventTime")
    if at is None:
        raise MalformedError("EventTime is missing")
    return ClusterEvent(
        id=need(item, "EventId", str),
        at=at,
        level=get(item, "EventLevel", str),
        resource_type=need(item, "ResourceType", str),
        group=get(item, "InstanceGroupName", str),
        instance_id=get(item, "InstanceId", str),
        description=get(item, "Description", str) or "",
    )


def read_quota(item: object, per_instance: Callable[[str], int | None]) -> ComputeQuota:
    """Read a summary of ListComputeQuotas; `per_instance` tells accelerators of a type."""
    target = need(item, "ComputeQuotaTarget", dict)
    # Not promised by the model: without it the quota says nothing of resources or sharing.
    config = get(item, "ComputeQuotaConfig", dict) or {}
    sharing = get(config, "ResourceSharingConfig", dict) or {}
    resources = _resources(config, "ComputeQuotaResources")
    return ComputeQuota(
        id=need(item, "ComputeQuotaId", str),
        name=need(item, "Name", str),
        team=need(target, "TeamName", str),
        status=need(item, "Status", str),
        active=(get(item, "ActivationState", str) or "Enabled") == "Enabled",
        strategy=get(sharing, "Strategy", str),
        borrow_limit_percent=count(sharing, "BorrowLimit"),
        accelerators=quota_accelerators(resources, per_instance),
        fair_share_weight=count(target, "FairShareWeight"),
        version=get(item, "ComputeQuotaVersion", int),
        resources=resources,
        absolute_borrow_limits=_resources(sharing, "AbsoluteBorrowLimits"),
        preempt_team_tasks=get(config, "PreemptTeamTasks", str),
        modified=moment(item, "LastModifiedTime"),
    )


def _resources(config: dict[str, object], key: str) -> tuple[QuotaResource, ...]:
    return each(config, key, _resource) if key in config else ()


def _resource(item: object) -> QuotaResource:
    partition = get(item, "AcceleratorPartition", dict)
    return QuotaResource(
        instance_type=need(item, "InstanceType", str),
        count=count(item, "Count"),
        accelerators=count(item, "Accelerators"),
        vcpu=amount(item, "VCpu"),
        memory_gib=amount(item, "MemoryInGiB"),
        partition=None if partition is None else _partition_type(partition),
        partition_count=None if partition is None else count(partition, "Count"),
    )


def _partition_type(partition: object) -> str:
    try:
        return need(partition, "Type", str)
    except MalformedError as error:
        raise MalformedError(f"AcceleratorPartition.{error}") from error


def read_config_id(item: object) -> str:
    """Read the id of a summary of ListClusterSchedulerConfigs."""
    return need(item, "ClusterSchedulerConfigId", str)


def read_config(item: object) -> SchedulerConfig:
    """Read the answer of DescribeClusterSchedulerConfig."""
    config = get(item, "SchedulerConfig", dict) or {}
    classes: tuple[tuple[str, int], ...] = ()
    if "PriorityClasses" in config:
        classes = each(
            config, "PriorityClasses", lambda c: (need(c, "Name", str), need(c, "Weight", int))
        )
    details = get(item, "StatusDetails", dict) or {}
    return SchedulerConfig(
        id=read_config_id(item),
        name=need(item, "Name", str),
        status=need(item, "Status", str),
        fair_share=_enabled(config, "FairShare"),
        priority_classes=dict(classes),
        version=get(item, "ClusterSchedulerConfigVersion", int),
        idle_sharing=_enabled(config, "IdleResourceSharing"),
        details={str(part): need(details, part, str) for part in details},
        failure=get(item, "FailureReason", str) or None,
    )


def _enabled(config: dict[str, object], key: str) -> bool | None:
    said = get(config, key, str)
    return None if said is None else said == "Enabled"
