"""What Kueue's Workloads mean to the detectors: whose they are, whether they wait, and since when."""

from collections.abc import Iterable
from datetime import datetime

from steward.cluster.accelerators import Owner
from steward.cluster.amounts import accelerators_in
from steward.cluster.kueue import Workload

ADMITTED, QUOTA_RESERVED, FINISHED, EVICTED = "Admitted", "QuotaReserved", "Finished", "Evicted"
PREEMPTED = "Preempted"
"""Type of a condition, and reason of an eviction."""


def top_owner(workload: Workload) -> Owner | None:
    """Find what stands above everything that a Workload is of, as far as it could be read."""
    return workload.owner_chain[-1] if workload.owner_chain else workload.owner


def subject_of(workload: Workload) -> str:
    """Name the job that a Workload is of: its top owner, else itself."""
    owner = top_owner(workload)
    return owner.subject if owner else f"Workload/{workload.namespace}/{workload.name}"


def finished(workload: Workload) -> bool:
    """Whether it has ended, well or not."""
    return workload.holds(FINISHED)


def reserves(workload: Workload) -> bool:
    """Whether it holds quota now: what is admitted holds it, whatever else is said."""
    held = workload.holds(QUOTA_RESERVED) or workload.holds(ADMITTED)
    return held and not finished(workload)


def reserved_since(workload: Workload) -> datetime | None:
    """Tell since when it holds quota: since its reservation, at the latest since its admission."""
    held = (workload.condition(kind) for kind in (QUOTA_RESERVED, ADMITTED))
    return next((one.since for one in held if one and one.status and one.since), None)


def pending(workload: Workload) -> bool:
    """Whether it waits for quota; one that was deactivated waits for nothing."""
    return workload.active and not finished(workload) and not reserves(workload)


def waiting_since(workload: Workload) -> datetime:
    """Tell since when a pending workload waits: its creation, else its last eviction."""
    evicted = workload.condition(EVICTED)
    moved = evicted.since if evicted and evicted.status else None
    return max(workload.created, moved) if moved else workload.created


def queue_time(workload: Workload) -> datetime:
    """Tell the time that a queue orders a workload by, behind its priority.

    Its creation; after PodsReadyTimeout or a failed admission check the eviction. A preempted one
    keeps its place (Kueue, `workload.Ordering.GetQueueOrderTimestamp`).
    """
    evicted = workload.condition(EVICTED)
    if evicted and evicted.status and evicted.reason in {"PodsReadyTimeout", "AdmissionCheck"}:
        return evicted.since or workload.created
    return workload.created


def in_queue_order(workloads: Iterable[Workload]) -> list[Workload]:
    """Sort as a ClusterQueue does: priority, then queue time, then UID."""
    return sorted(workloads, key=lambda w: (-w.priority, queue_time(w), w.uid))


def accelerators_of(workload: Workload) -> float:
    """Accelerators that it asks for, or was admitted with."""
    return accelerators_in(workload.requests)
