"""ClusterQueues, LocalQueues and Cohorts as far as they are read, by the names of every API form."""

from typing import Any

import msgspec

from steward.sources.kubernetes.shapes import Shape
from steward.sources.kueue.fields import ConditionShape


class Quota(msgspec.Struct, rename="camel"):
    """A resource of a flavor of a resource group."""

    name: str | None = None
    nominal_quota: Any = None
    borrowing_limit: Any = None
    lending_limit: Any = None


class FlavorQuotas(msgspec.Struct):
    """A flavor of a resource group."""

    name: str | None = None
    resources: list[Quota] | None = None


class ResourceGroup(msgspec.Struct):
    """A resource group; its flavors are tried in order."""

    flavors: list[FlavorQuotas] | None = None


class Used(msgspec.Struct):
    """A resource of a flavor in use."""

    name: str | None = None
    total: Any = None
    borrowed: Any = None


class FlavorUsage(msgspec.Struct):
    """A flavor in use."""

    name: str | None = None
    resources: list[Used] | None = None


class BorrowWithin(msgspec.Struct, rename="camel"):
    """`borrowWithinCohort`."""

    policy: str | None = None
    max_priority_threshold: int | None = None


class PreemptionShape(msgspec.Struct, rename="camel"):
    """A ClusterQueue's `preemption`."""

    within_cluster_queue: str | None = None
    reclaim_within_cohort: str | None = None
    borrow_within_cohort: BorrowWithin | None = None


class FungibilityShape(msgspec.Struct, rename="camel"):
    """A ClusterQueue's `flavorFungibility`."""

    when_can_borrow: str | None = None
    when_can_preempt: str | None = None
    preference: str | None = None


class CheckRule(msgspec.Struct):
    """An admission check of a strategy."""

    name: str | None = None


class CheckStrategy(msgspec.Struct, rename="camel"):
    """`admissionChecksStrategy`."""

    admission_checks: list[CheckRule] | None = None


class Sharing(msgspec.Struct, rename="camel"):
    """`fairSharing`: a weight in the spec, a share in the status."""

    weight: Any = None
    weighted_share: int | None = None


class QueueSpec(msgspec.Struct, rename="camel"):
    """A ClusterQueue's `spec`."""

    cohort: str | None = None
    cohort_name: str | None = None
    resource_groups: list[ResourceGroup] | None = None
    queueing_strategy: str | None = None
    stop_policy: str | None = None
    preemption: PreemptionShape | None = None
    flavor_fungibility: FungibilityShape | None = None
    fair_sharing: Sharing | None = None
    admission_checks: list[str] | None = None
    admission_checks_strategy: CheckStrategy | None = None


class QueueStatus(msgspec.Struct, rename="camel"):
    """A ClusterQueue's or LocalQueue's `status`."""

    conditions: list[ConditionShape] | None = None
    flavors_reservation: list[FlavorUsage] | None = None
    flavors_usage: list[FlavorUsage] | None = None
    pending_workloads: int | None = None
    reserving_workloads: int | None = None
    admitted_workloads: int | None = None
    fair_sharing: Sharing | None = None


class ClusterQueueShape(Shape):
    """A ClusterQueue."""

    spec: QueueSpec | None = None
    status: QueueStatus | None = None


class LocalQueueSpec(msgspec.Struct, rename="camel"):
    """A LocalQueue's `spec`."""

    cluster_queue: str | None = None
    stop_policy: str | None = None


class LocalQueueStatus(msgspec.Struct, rename="camel"):
    """A LocalQueue's `status`."""

    conditions: list[ConditionShape] | None = None
    pending_workloads: int | None = None
    reserving_workloads: int | None = None
    admitted_workloads: int | None = None


class LocalQueueShape(Shape):
    """A LocalQueue."""

    spec: LocalQueueSpec | None = None
    status: LocalQueueStatus | None = None


class CohortSpec(msgspec.Struct, rename="camel"):
    """A Cohort's `spec`."""

    parent: str | None = None
    parent_name: str | None = None
    resource_groups: list[ResourceGroup] | None = None
    fair_sharing: Sharing | None = None


class CohortShape(Shape):
    """A Cohort."""

    spec: CohortSpec | None = None
