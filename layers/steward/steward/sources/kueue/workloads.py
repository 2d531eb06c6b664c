"""Workloads of either API form (v1beta1, v1beta2) reduced to one model: pure.

The forms differ in names only (`priorityClassName` and `priorityClassRef`, `domains` and
`slices`), so an object is read by the names it has, whatever version it states.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from steward.cluster.accelerators import Owner
from steward.cluster.kueue import AdmissionCheck, Evictions, PodSet, Requeue, Workload
from steward.sources.kubernetes.fields import MalformedError, amounts, moment, required
from steward.sources.kubernetes.objects import CREATED_BY, Reference, maker, read_controller
from steward.sources.kubernetes.requests import Amounts, effective_requests
from steward.sources.kubernetes.shapes import Metadata, PodSpec
from steward.sources.kueue.declared import declared_checkpoints
from steward.sources.kueue.fields import numbers, read_conditions
from steward.sources.kueue.topology import nodes_of
from steward.sources.kueue.workload_shapes import (
    Admission,
    PodSetAssignment,
    PodSetShape,
    PriorityClassRef,
    SchedulingStats,
    Template,
    TopologyRequest,
    WorkloadShape,
    WorkloadSpec,
    WorkloadStatus,
)

JOB_UID = "kueue.x-k8s.io/job-uid"

_CLASS_KINDS = {
    "kueue.x-k8s.io/workloadpriorityclass": "WorkloadPriorityClass",
    "scheduling.k8s.io/priorityclass": "PriorityClass",
}
"""v1beta1's sources of a priority class, as the kinds that v1beta2 names."""

_DEACTIVATED = "Deactivated"
_COMPOSITE = f"{_DEACTIVATED}DueTo"
_MAIN = "main"
"""Name of a pod set that names none."""


class QueuedWorkload(msgspec.Struct, frozen=True):
    """A Workload before the owners above the object that was queued are known."""

    workload: Workload
    controller: Reference | None


def read_workload(item: WorkloadShape, created_by: Sequence[str] = CREATED_BY) -> QueuedWorkload:
    """Reduce a Workload.

    Its owner is the object that Kueue queued (a Job, not the CronJob above it): several Workloads
    may share what stands above.

    Raises
    ------
    MalformedError
        A field is not what the API promises.
    """
    metadata, spec = item.metadata, item.spec or WorkloadSpec()
    status = item.status or WorkloadStatus()
    admission = status.admission or Admission()
    namespace = required(metadata.namespace, "namespace")
    created = moment(metadata.creation_timestamp, "creationTimestamp")
    if created is None:
        raise MalformedError("creationTimestamp is missing")
    conditions = read_conditions(status.conditions)
    finished = any(one.type == "Finished" and one.status is True for one in conditions)
    controller = read_controller(metadata)
    owner = (
        Owner(kind=controller.kind, namespace=namespace, name=controller.name)
        if controller
        else None
    )
    per_pod = [_per_pod(pod_set) for pod_set in spec.pod_sets or ()]
    kind, name = _priority_class(spec)
    workload = Workload(
        namespace=namespace,
        name=required(metadata.name, "name"),
        uid=required(metadata.uid, "uid"),
        created=created,
        queue=spec.queue_name or None,
        priority=spec.priority or 0,
        priority_class=name,
        priority_class_kind=kind,
        active=spec.active is not False,
        owner=owner,
        job_uid=metadata.label(JOB_UID) or _owner_uid(metadata, controller),
        created_by=maker(metadata, created_by),
        cluster_queue=admission.cluster_queue or None,
        requests=numbers(_requests(spec, status, per_pod)),
        # The admission of a finished workload stays on record; its quota is free again.
        assigned={} if finished else _assigned(spec, status),
        pod_sets=_pod_sets(spec, status, per_pod),
        conditions=conditions,
        evictions=_evictions(status.scheduling_stats or SchedulingStats()),
        past_seconds=_past_seconds(status),
        max_execution_seconds=spec.maximum_execution_time_seconds,
        requeue=_requeue(status),
        admission_checks=tuple(
            AdmissionCheck(
                name=required(one.name, "admissionCheck: name"),
                state=one.state or "Pending",
                message=one.message or "",
            )
            for one in status.admission_checks or ()
        ),
        unhealthy_nodes=tuple(
            required(one.name, "unhealthyNodes: name") for one in status.unhealthy_nodes or ()
        ),
        declared_checkpoints=declared_checkpoints(item),
    )
    return QueuedWorkload(workload, controller)


def _priority_class(spec: WorkloadSpec) -> tuple[str | None, str | None]:
    """Give kind and name of a Workload's priority class, of either form."""
    reference = spec.priority_class_ref or PriorityClassRef()
    if reference.name:
        return reference.kind or None, reference.name
    if spec.priority_class_name:
        return _CLASS_KINDS.get(spec.priority_class_source or ""), spec.priority_class_name
    return None, None


def _owner_uid(metadata: Metadata, controller: Reference | None) -> str | None:
    found = (
        one.uid
        for one in metadata.owner_references or ()
        if controller and one.name == controller.name
    )
    return next(filter(None, found), None)


def _per_pod(pod_set: PodSetShape) -> Amounts:
    template = pod_set.template or Template()
    return effective_requests(template.spec or PodSpec())


def _pod_sets(
    spec: WorkloadSpec, status: WorkloadStatus, per_pod: Sequence[Amounts]
) -> tuple[PodSet, ...]:
    """Join what was asked for with what was admitted, by the pod sets' names."""
    admission = status.admission or Admission()
    admitted = {one.name or _MAIN: one for one in admission.pod_set_assignments or ()}
    reclaimable = {one.name or _MAIN: one.count for one in status.reclaimable_pods or ()}
    return tuple(
        _pod_set(shape, asked, admitted.get(shape.name or _MAIN), reclaimable)
        for shape, asked in zip(spec.pod_sets or (), per_pod, strict=True)
    )


def _pod_set(
    shape: PodSetShape,
    per_pod: Amounts,
    admitted: PodSetAssignment | None,
    reclaimable: Mapping[str, int],
) -> PodSet:
    name, request = shape.name or _MAIN, shape.topology_request or TopologyRequest()
    count = 1 if shape.count is None else shape.count
    given = admitted or PodSetAssignment()
    return PodSet(
        name=name,
        count=count,
        min_count=shape.min_count,
        per_pod=numbers(per_pod),
        admitted=(count if given.count is None else given.count) if admitted else None,
        reclaimable=reclaimable.get(name, 0),
        flavors=given.flavors or {},
        topology=request.required or request.preferred or None,
        topology_required=bool(request.required),
        nodes=nodes_of(given.topology_assignment),
    )


def _requests(
    spec: WorkloadSpec, status: WorkloadStatus, per_pod: Sequence[Amounts]
) -> dict[str, Fraction]:
    """Add up the pod sets: as admitted, else as Kueue last considered them, else as specified."""
    admission = status.admission or Admission()
    found: dict[str, Fraction] = {}
    for assignment in admission.pod_set_assignments or ():
        _add(found, amounts(assignment.resource_usage, "resourceUsage"))
    if not found:
        for request in status.resource_requests or ():
            _add(found, amounts(request.resources, "resourceRequests"))
    if not found:
        for pod_set, asked in zip(spec.pod_sets or (), per_pod, strict=True):
            _add(found, asked, 1 if pod_set.count is None else pod_set.count)
    return found


def _assigned(spec: WorkloadSpec, status: WorkloadStatus) -> dict[str, dict[str, float]]:
    """Give what an admission reserves; pods that have finished for good give theirs back.

    `resourceUsage` is the pod set's total and never shrinks: `reclaimablePods` says how many of
    its pods Kueue no longer counts.
    """
    specified = {one.name or _MAIN: one.count for one in spec.pod_sets or ()}
    reclaimable = {one.name or _MAIN: one.count for one in status.reclaimable_pods or ()}
    total: dict[str, dict[str, Fraction]] = {}
    for one in (status.admission or Admission()).pod_set_assignments or ():
        name, flavors = one.name or _MAIN, one.flavors or {}
        count = one.count if one.count is not None else specified.get(name)
        count = 1 if count is None else count
        left = Fraction(max(0, count - reclaimable.get(name, 0)), count or 1)
        for resource, amount in amounts(one.resource_usage, "resourceUsage").items():
            if flavor := flavors.get(resource):
                _add(total.setdefault(flavor, {}), {resource: amount * left})
    return {flavor: numbers(held) for flavor, held in total.items()}


def _evictions(stats: SchedulingStats) -> tuple[Evictions, ...]:
    """Count evictions by reason and cause; 0.12's composite reasons split as later versions do."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in stats.evictions or ():
        reason, cause = required(one.reason, "evictions: reason"), one.underlying_cause or ""
        if reason.startswith(_COMPOSITE):
            reason, cause = _DEACTIVATED, cause or reason.removeprefix(_COMPOSITE)
        counts[reason, cause] += one.count
    return tuple(
        Evictions(reason=reason, underlying_cause=cause, count=count)
        for (reason, cause), count in counts.items()
    )


def _past_seconds(status: WorkloadStatus) -> int | None:
    spelled = status.accumulated_past_execution_time_seconds
    return status.accumulated_past_exexcution_time_seconds if spelled is None else spelled


def _requeue(status: WorkloadStatus) -> Requeue | None:
    state = status.requeue_state
    if state is None:
        return None
    return Requeue(count=state.count or 0, at=moment(state.requeue_at, "requeueAt"))


def _add(total: dict[str, Fraction], more: Mapping[str, Fraction], times: int = 1) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, Fraction()) + amount * times
