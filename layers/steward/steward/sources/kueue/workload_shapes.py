"""Workloads as far as they are read, by the names of every API form."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from steward.sources.kubernetes.fields import MalformedError, Time, moment
from steward.sources.kubernetes.shapes import Container, Metadata, PodSpec, Shape
from steward.sources.kueue.fields import ConditionShape
from steward.sources.kueue.topology import Assignment


class Annotations(msgspec.Struct):
    """The one annotation that is read; all others stay in the bytes of the answer."""

    checkpoints: Any = msgspec.field(name="gpu-steward/checkpoints", default=None)


class TemplateMetadata(msgspec.Struct):
    """A pod set's template's `metadata`."""

    annotations: Annotations | None = None


class Mount(msgspec.Struct, rename="camel"):
    """Where a container mounts a volume, never what the volume is."""

    mount_path: str | None = None


class TemplateContainer(Container, rename="camel"):
    """A template's container."""

    volume_mounts: list[Mount] | None = None


class TemplateSpec(PodSpec, rename="camel"):
    """A template's `spec`."""

    containers: Sequence[TemplateContainer] | None = None


class Template(msgspec.Struct):
    """A pod set's template: its containers' resources and mounts, never what they run."""

    metadata: TemplateMetadata | None = None
    spec: TemplateSpec | None = None


class TopologyRequest(msgspec.Struct):
    """A pod set's topology request."""

    required: str | None = None
    preferred: str | None = None


class PodSetShape(msgspec.Struct, rename="camel"):
    """A pod set."""

    name: str | None = None
    count: int | None = None
    min_count: int | None = None
    template: Template | None = None
    topology_request: TopologyRequest | None = None


class PriorityClassRef(msgspec.Struct):
    """v1beta2's reference to a priority class."""

    kind: str | None = None
    name: str | None = None


class WorkloadSpec(msgspec.Struct, rename="camel"):
    """A Workload's `spec`."""

    pod_sets: list[PodSetShape] | None = None
    queue_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    priority_class_source: str | None = None
    priority_class_ref: PriorityClassRef | None = None
    active: bool | None = None
    maximum_execution_time_seconds: int | None = None


class PodSetAssignment(msgspec.Struct, rename="camel"):
    """What a pod set was admitted with."""

    name: str | None = None
    flavors: dict[str, str] | None = None
    resource_usage: dict[str, Any] | None = None
    count: int | None = None
    topology_assignment: Assignment | None = None


class Admission(msgspec.Struct, rename="camel"):
    """A Workload's admission."""

    cluster_queue: str | None = None
    pod_set_assignments: list[PodSetAssignment] | None = None


class PodSetCount(msgspec.Struct):
    """A pod set and a number of its pods."""

    name: str | None = None
    count: int = 0


class PodSetRequest(msgspec.Struct):
    """A pod set and what it asked for when it was last considered."""

    resources: dict[str, Any] | None = None


class EvictionShape(msgspec.Struct, rename="camel"):
    """A counter of evictions."""

    reason: str | None = None
    underlying_cause: str | None = None
    count: int = 0


class SchedulingStats(msgspec.Struct):
    """`schedulingStats`."""

    evictions: list[EvictionShape] | None = None


class RequeueShape(msgspec.Struct, rename="camel"):
    """`requeueState`."""

    count: int | None = None
    requeue_at: Time = None


class CheckState(msgspec.Struct):
    """The state of an admission check."""

    name: str | None = None
    state: str | None = None
    message: str | None = None


class UnhealthyNode(msgspec.Struct):
    """A node that Kueue looks for a replacement of."""

    name: str | None = None


class WorkloadStatus(msgspec.Struct, rename="camel"):
    """A Workload's `status`."""

    conditions: list[ConditionShape] | None = None
    admission: Admission | None = None
    reclaimable_pods: list[PodSetCount] | None = None
    resource_requests: list[PodSetRequest] | None = None
    scheduling_stats: SchedulingStats | None = None
    accumulated_past_execution_time_seconds: int | None = None
    # v1beta1 spells it so.
    accumulated_past_exexcution_time_seconds: int | None = None
    requeue_state: RequeueShape | None = None
    admission_checks: list[CheckState] | None = None
    unhealthy_nodes: list[UnhealthyNode] | None = None


class WorkloadMetadata(Metadata, rename="camel"):
    """A Workload's `metadata`."""

    annotations: Annotations | None = None


class WorkloadShape(Shape):
    """A Workload."""

    metadata: WorkloadMetadata = msgspec.field(default_factory=WorkloadMetadata)
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None


class _Glance(msgspec.Struct):
    conditions: list[ConditionShape] | None = None


class _Glimpsed(msgspec.Struct):
    """As much of a Workload as it takes to see that it has finished."""

    status: _Glance | None = None


_GLIMPSE = msgspec.json.Decoder(_Glimpsed)


def finished_before(item: bytes, limit: datetime | None) -> bool:
    """Tell from a Workload's bytes whether it finished before a time; what is malformed did not."""
    if limit is None or b'"Finished"' not in item:
        return False
    try:
        status = _GLIMPSE.decode(item).status or _Glance()
        ends = [
            moment(one.last_transition_time, "lastTransitionTime")
            for one in status.conditions or ()
            if one.type == "Finished" and one.status == "True"
        ]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MalformedError):
        return False  # it is read in full next, and then named
    return any(end is not None and end < limit for end in ends)
