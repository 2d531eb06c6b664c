"""ClusterQueues, LocalQueues and Cohorts of any API form reduced to one model: pure.

The forms differ in names only (`cohort` and `cohortName`, `parent` and `parentName`), so an object
is read by the names it has, whatever version it states.
"""

from collections.abc import Iterator
from fractions import Fraction

from steward.cluster.kueue import (
    ClusterQueue,
    Cohort,
    Fungibility,
    LocalQueue,
    Preemption,
    QueueCounts,
    QuotaRow,
)
from steward.cluster.namespaces import MANAGED
from steward.sources.kubernetes.fields import MalformedError, amount, required
from steward.sources.kueue.fields import number, read_conditions
from steward.sources.kueue.queue_shapes import (
    BorrowWithin,
    CheckStrategy,
    ClusterQueueShape,
    CohortShape,
    CohortSpec,
    FlavorUsage,
    FungibilityShape,
    LocalQueueShape,
    LocalQueueSpec,
    LocalQueueStatus,
    PreemptionShape,
    QueueSpec,
    QueueStatus,
    Quota,
    ResourceGroup,
    Sharing,
    Used,
)

IDLE_SHARING = "hyperpod-ns-idle-resource-sharing-cq-"
"""How HyperPod names its queues for unallocated capacity, which are no team's."""

_FUNGIBILITY = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
"""v1beta1's words."""


def read_cluster_queue(item: ClusterQueueShape) -> ClusterQueue:
    """Reduce a ClusterQueue; raises MalformedError where a field is not what the API promises."""
    spec, status = item.spec or QueueSpec(), item.status or QueueStatus()
    name = required(item.metadata.name, "name")
    return ClusterQueue(
        name=name,
        cohort=spec.cohort_name or spec.cohort or None,
        rows=tuple(_rows(spec.resource_groups, status)),
        conditions=read_conditions(status.conditions),
        strategy=spec.queueing_strategy or "BestEffortFIFO",
        stop_policy=spec.stop_policy or "None",
        preemption=_preemption(spec.preemption or PreemptionShape()),
        fungibility=_fungibility(spec.flavor_fungibility or FungibilityShape()),
        weight=_weight(spec.fair_sharing),
        weighted_share=status.fair_sharing.weighted_share if status.fair_sharing else None,
        admission_checks=_checks(spec),
        counts=_counts(status),
        managed=item.metadata.label(MANAGED) == "true",
        shares_idle=name.startswith(IDLE_SHARING),
    )


def read_local_queue(item: LocalQueueShape) -> LocalQueue:
    """Reduce a LocalQueue; raises MalformedError where a field is not what the API promises."""
    spec, status = item.spec or LocalQueueSpec(), item.status or LocalQueueStatus()
    return LocalQueue(
        namespace=required(item.metadata.namespace, "namespace"),
        name=required(item.metadata.name, "name"),
        cluster_queue=required(spec.cluster_queue, "clusterQueue"),
        conditions=read_conditions(status.conditions),
        stop_policy=spec.stop_policy or "None",
        counts=_counts(status),
    )


def read_cohort(item: CohortShape) -> Cohort:
    """Reduce a Cohort; raises MalformedError where a field is not what the API promises."""
    spec = item.spec or CohortSpec()
    return Cohort(
        name=required(item.metadata.name, "name"),
        parent=spec.parent_name or spec.parent or None,
        rows=tuple(_rows(spec.resource_groups, QueueStatus())),
        weight=_weight(spec.fair_sharing),
    )


def _rows(groups: list[ResourceGroup] | None, status: QueueStatus) -> Iterator[QuotaRow]:
    reserved = _usage(status.flavors_reservation)
    used = _usage(status.flavors_usage)
    for position, group in enumerate(groups or ()):
        for flavor in group.flavors or ():
            for quota in flavor.resources or ():
                key = required(flavor.name, "flavor: name"), required(quota.name, "resource: name")
                yield _row(key, position, quota, reserved.get(key), used.get(key))


def _row(
    key: tuple[str, str], group: int, quota: Quota, reserved: Used | None, used: Used | None
) -> QuotaRow:
    flavor, resource = key
    nominal = amount(quota.nominal_quota, "nominalQuota")
    if nominal is None:
        raise MalformedError(f"nominalQuota of {resource} in {flavor} is missing")
    return QuotaRow(
        group=group,
        flavor=flavor,
        resource=resource,
        nominal=float(nominal),
        borrowing_limit=number(amount(quota.borrowing_limit, "borrowingLimit")),
        lending_limit=number(amount(quota.lending_limit, "lendingLimit")),
        reserved=number(amount(reserved.total, "total")) if reserved else None,
        used=number(amount(used.total, "total")) if used else None,
        borrowed=number(_borrowed(reserved or used or Used(), nominal)),
    )


def _usage(flavors: list[FlavorUsage] | None) -> dict[tuple[str, str], Used]:
    return {
        (required(flavor.name, "flavor: name"), required(resource.name, "resource: name")): resource
        for flavor in flavors or ()
        for resource in flavor.resources or ()
    }


def _borrowed(usage: Used, nominal: Fraction) -> Fraction | None:
    """Give what is borrowed: as stated, else by Kueue's own definition, max(0, total - nominal)."""
    stated, total = amount(usage.borrowed, "borrowed"), amount(usage.total, "total")
    if stated is not None or total is None:
        return stated
    return max(Fraction(), total - nominal)


def _preemption(shape: PreemptionShape) -> Preemption:
    borrowing = shape.borrow_within_cohort or BorrowWithin()
    return Preemption(
        within_cluster_queue=shape.within_cluster_queue or "Never",
        reclaim_within_cohort=shape.reclaim_within_cohort or "Never",
        borrow_within_cohort=borrowing.policy or "Never",
        max_priority_threshold=borrowing.max_priority_threshold,
    )


def _fungibility(shape: FungibilityShape) -> Fungibility:
    borrow = shape.when_can_borrow or "MayStopSearch"
    preempt = shape.when_can_preempt or "TryNextFlavor"
    return Fungibility(
        when_can_borrow=_FUNGIBILITY.get(borrow, borrow),
        when_can_preempt=_FUNGIBILITY.get(preempt, preempt),
        preference=shape.preference or None,
    )


def _weight(shape: Sharing | None) -> float:
    weight = amount(shape.weight, "fairSharing: weight") if shape else None
    return 1.0 if weight is None else float(weight)


def _checks(spec: QueueSpec) -> tuple[str, ...]:
    """Name the admission checks: v1beta1's list, and the strategy's; never both in a valid queue."""
    strategy = spec.admission_checks_strategy or CheckStrategy()
    rules = (required(one.name, "admissionCheck: name") for one in strategy.admission_checks or ())
    return tuple(dict.fromkeys((*(spec.admission_checks or ()), *rules)))


def _counts(status: QueueStatus | LocalQueueStatus) -> QueueCounts:
    return QueueCounts(
        pending=status.pending_workloads,
        reserving=status.reserving_workloads,
        admitted=status.admitted_workloads,
    )
