"""SageMaker's answers, read into the nouns.

Every reader raises MalformedError where a member that it needs is missing or of another type.
"""

from collections.abc import Mapping

from steward.cluster.snapshot import ClusterNode, ComputeQuota, InstanceGroupState, SchedulerConfig
from steward.sources.control_plane_fields import each, get, need


def read_group(item: object) -> InstanceGroupState:
    """Read an instance group of DescribeCluster."""
    return InstanceGroupState(
        name=need(item, "InstanceGroupName", str),
        status=get(item, "Status", str),
        current=need(item, "CurrentCount", int),
        target=need(item, "TargetCount", int),
        instance_types=_instance_types(item),
    )


def _instance_types(group: object) -> tuple[str, ...]:
    """One type, or those that a flexible group holds; empty where the answer names none."""
    if (only := get(group, "InstanceType", str)) is not None:
        return (only,)
    if get(group, "InstanceTypeDetails", list):
        return each(group, "InstanceTypeDetails", lambda d: need(d, "InstanceType", str))
    wanted = get(group, "InstanceRequirements", dict) or {}
    return tuple(get(wanted, "DesiredInstanceTypes", list) or ())


def read_node(item: object) -> ClusterNode:
    """Read a summary of ListClusterNodes."""
    status = need(item, "InstanceStatus", dict)
    return ClusterNode(
        instance_id=need(item, "InstanceId", str),
        group=need(item, "InstanceGroupName", str),
        instance_type=need(item, "InstanceType", str),
        status=need(status, "Status", str),
        message=get(status, "Message", str) or "",
    )


def read_quota(item: object) -> ComputeQuota:
    """Read a summary of ListComputeQuotas."""
    target = need(item, "ComputeQuotaTarget", dict)
    # Not promised by the model: without it the quota says nothing of resources or sharing.
    config = get(item, "ComputeQuotaConfig", dict) or {}
    sharing = get(config, "ResourceSharingConfig", dict) or {}
    accelerators: dict[str, int | None] = {}
    if "ComputeQuotaResources" in config:
        for kind, count in each(config, "ComputeQuotaResources", _resource):
            before = accelerators.get(kind, 0)
            accelerators[kind] = None if count is None or before is None else before + count
    return ComputeQuota(
        id=need(item, "ComputeQuotaId", str),
        name=need(item, "Name", str),
        team=need(target, "TeamName", str),
        status=need(item, "Status", str),
        active=(get(item, "ActivationState", str) or "Enabled") == "Enabled",
        strategy=get(sharing, "Strategy", str),
        borrow_limit_percent=get(sharing, "BorrowLimit", int),
        accelerators=accelerators,
        fair_share_weight=get(target, "FairShareWeight", int),
    )


def _resource(item: object) -> tuple[str, int | None]:
    """Accelerators of one row; None where they follow from instances or MIG slices."""
    count = get(item, "Accelerators", int)
    if count is None and isinstance(item, Mapping):
        # vCPU or memory alone means no accelerators (the API's own rule).
        count = None if {"Count", "AcceleratorPartition"} & item.keys() else 0
    return need(item, "InstanceType", str), count


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
    fair_share = get(config, "FairShare", str)
    return SchedulerConfig(
        id=read_config_id(item),
        name=need(item, "Name", str),
        status=need(item, "Status", str),
        fair_share=None if fair_share is None else fair_share == "Enabled",
        priority_classes=dict(classes),
    )
