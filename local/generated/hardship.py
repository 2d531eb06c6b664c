"""A generated cluster's snapshot with everything that the queue detectors have to work at.

Every team's queue borrows up to its limit while others leave quota idle, deep queues wait, jobs
were preempted (some by each other, some without an end), and nodes are lost.
"""

from collections import Counter
from copy import replace
from datetime import datetime, timedelta

from steward.cluster.kueue import (
    ClusterQueue,
    Condition,
    Evictions,
    QuotaRow,
    Workload,
)
from steward.cluster.snapshot import Snapshot
from steward.cluster.workloads import pending, reserves

GPU = "nvidia.com/gpu"
BORROWED = 8.0
DEPTH = 5
"""Copies of each pending Workload: how deep the queues are."""

LENDER_EVERY = 4
"""Of so many queues one lends and the others borrow up to their limit."""

PREEMPTED_EVERY = 7
LOST_EVERY = 50


def hardened(snapshot: Snapshot) -> Snapshot:
    """Make a snapshot hard; the same one gives the same one."""
    workloads = [_preempted(w, n, snapshot.at) for n, w in enumerate(snapshot.workloads)]
    waiting = [
        replace(w, name=f"{w.name}-{copy}", uid=f"{w.uid}-{copy}", owner=None, owner_chain=())
        for w in workloads
        if pending(w)
        for copy in range(1, DEPTH)
    ]
    held: Counter[tuple[str, str, str]] = Counter()
    for workload in workloads:
        for flavor, amounts in workload.assigned.items():
            for resource, amount in amounts.items():
                held[workload.cluster_queue or "", flavor, resource] += amount  # type: ignore[assignment]
    return replace(
        snapshot,
        workloads=(*workloads, *waiting),
        cluster_queues=tuple(
            replace(queue, rows=tuple(_row(queue, n, row, held) for row in queue.rows))
            for n, queue in enumerate(snapshot.cluster_queues)
        ),
        nodes=tuple(
            replace(node, ready=n % LOST_EVERY != 0) for n, node in enumerate(snapshot.nodes)
        ),
    )


def _row(
    queue: ClusterQueue, number: int, row: QuotaRow, held: Counter[tuple[str, str, str]]
) -> QuotaRow:
    reserved = float(held[queue.name, row.flavor, row.resource])
    lends = number % LENDER_EVERY == 0
    borrowed = 0.0 if lends or reserved < BORROWED else BORROWED
    nominal = reserved + 4 * BORROWED if lends else reserved - borrowed
    return replace(
        row,
        nominal=nominal,
        borrowing_limit=BORROWED if row.resource == GPU else None,
        reserved=reserved,
        used=reserved,
        borrowed=borrowed,
    )


def _preempted(workload: Workload, number: int, at: datetime) -> Workload:
    """Let some live Workloads have been preempted again and again, and some wait because of it."""
    if number % PREEMPTED_EVERY or not reserves(workload):
        return workload
    counted = Evictions(reason="Preempted", underlying_cause="", count=3 + number % 5)
    if number % (2 * PREEMPTED_EVERY):
        return replace(workload, evictions=(counted,), past_seconds=3600)
    moved = at - timedelta(minutes=number % 60)
    message = (
        f"Preempted to accommodate a workload (UID: uid-{number}, JobUID: UNKNOWN) due to "
        "reclamation within the cohort"
    )
    reasons = {"Evicted": "Preempted", "Preempted": "InCohortReclamation"}
    conditions = tuple(
        Condition(type=kind, status=True, reason=reason, message=message, since=moved)
        for kind, reason in reasons.items()
    )
    waits = Condition(
        type="QuotaReserved", status=False, reason="Pending", message=message, since=moved
    )
    return replace(
        workload,
        evictions=(counted,),
        past_seconds=3600,
        assigned={},
        cluster_queue=None,
        conditions=(waits, *conditions),
    )
