"""What is said of a queue that borrows, would like to, or cannot get its own quota back."""

from datetime import datetime
from math import ceil
from shlex import quote
from typing import Any

from steward.cluster.borrowing.memory import IdleStep, idle_since
from steward.cluster.borrowing.places import Asking, Place, own_limit
from steward.cluster.borrowing.sources import differences, quota_of, told_by_api, told_by_policy
from steward.cluster.figures import stamp, tidy
from steward.cluster.findings import Finding
from steward.cluster.policy import Severity
from steward.cluster.quota import NodeKind
from steward.cluster.workloads import EVICTED, accelerators_of, reserves, subject_of

NAME = "borrowing"
"""The detector that says it."""

LIMIT_BINDING, AT_LIMIT, CLUSTER_FULL = "limit_binding", "at_limit", "cluster_full"
RECLAIM_BLOCKED, UNBOUNDED = "reclaim_blocked", "unbounded"
"""Reasons."""

Idle = dict[str, tuple[IdleStep, ...]]
"""What lies idle, as the memory keeps it."""

_RECLAIM = {
    "Never": "The queue takes nothing back from borrowers (reclaimWithinCohort: Never).",
    "LowerPriority": "The queue takes back from workloads of lower priority only (reclaimWithinCohort: LowerPriority).",
    "Any": "The queue may take back from any borrower (reclaimWithinCohort: Any), and has not yet.",
}


def idle_key(queue: str, flavor: str, resource: str) -> str:
    """Name a row in the memory of what lies idle."""
    return f"{queue}/{flavor}/{resource}"


def limit_binding(place: Place, first: Asking, since: datetime, idle: Idle) -> Finding:
    """Say that a team's own limit keeps it from what others leave idle."""
    _, check = first
    own = own_limit(check)
    needed = own.needed if own else 0.0
    others = [
        {"cohort": limit.name, "limit": tidy(limit.limit), "needed": tidy(limit.needed)}
        for limit in check.limits
        if limit.kind is NodeKind.COHORT and limit.needed > limit.limit
    ]
    evidence = {
        "raise_by": tidy(needed - (place.limit or 0.0)),
        "raise_percent_to": ceil(needed * 100 / place.row.nominal) if place.row.nominal else None,
        "admits": [_ask(first)],
        "cohort_limits": others,
    }
    borrowed = place.each * place.borrowed
    return _finding(LIMIT_BINDING, place, since, borrowed, idle, evidence)


def at_limit(place: Place, since: datetime, idle: Idle) -> Finding:
    """Say that a team borrows all it may, and nobody of it waits for more."""
    return _finding(AT_LIMIT, place, since, place.each * place.borrowed, idle, {})


def cluster_full(place: Place, since: datetime, idle: Idle) -> Finding:
    """Say that the pool has too little left, whatever the limit."""
    evidence = {"waits": _ask(place.crowded_out[0]), "idle_not_lent": _not_lent(place)}
    return _finding(CLUSTER_FULL, place, since, place.each * place.borrowed, idle, evidence)


def reclaim_blocked(place: Place, since: datetime, idle: Idle) -> Finding:
    """Say that an owner waits for quota of its own that others have borrowed."""
    waiter, check = place.blocked[0]
    names = place.tree.siblings(place.queue.name)
    borrowers = [
        {"team": _team(place, name), "queue": name, "borrowed": tidy(place.tree.borrowed(name))}
        for name in names
        if place.tree.borrowed(name) > 0
    ]
    queues = {one["queue"] for one in borrowers}
    leaving = [
        w
        for w in place.scene.snapshot.workloads
        if w.cluster_queue in queues and reserves(w) and w.holds(EVICTED)
    ]
    policy = place.queue.preemption
    evidence = {
        "waits": _ask((waiter, check)),
        "borrowers": borrowers,
        "policies": {
            "within_cluster_queue": policy.within_cluster_queue,
            "reclaim_within_cohort": policy.reclaim_within_cohort,
            "borrow_within_cohort": policy.borrow_within_cohort,
        },
        "why": _RECLAIM.get(policy.reclaim_within_cohort),
        "evicting": sorted(subject_of(workload) for workload in leaving),
    }
    gpus = accelerators_of(waiter.workload)
    return _finding(RECLAIM_BLOCKED, place, since, gpus, idle, evidence)


def unbounded(place: Place, since: datetime, idle: Idle) -> Finding:
    """Say that nothing but the pool limits what a team can take."""
    most = place.others_lend
    return _finding(UNBOUNDED, place, since, place.each * most, idle, {"could_borrow": tidy(most)})


def _finding(
    reason: str,
    place: Place,
    since: datetime,
    gpus: float,
    idle: Idle,
    evidence: dict[str, Any],
) -> Finding:
    loud = reason in {LIMIT_BINDING, RECLAIM_BLOCKED}
    return Finding(
        detector=NAME,
        subject=place.subject,
        reason=reason,
        severity=place.limits.severity if loud else Severity.INFO,
        team=place.team.name if place.team else None,
        since=since,
        gpus=tidy(gpus),
        gpu_hours=None,
        cost_usd=None,
        action=_action(reason, place),
        evidence=_common(place, idle) | evidence,
        one_reason=reason != UNBOUNDED,
    )


def _common(place: Place, idle: Idle) -> dict[str, Any]:
    lenders = _lenders(place, idle)
    quota = quota_of(place, place.scene.snapshot)
    lent = place.tree.lenders(place.queue.name)
    return {
        "limit": tidy(place.limit),
        "borrowed": tidy(place.borrowed),
        "lenders": lenders,
        "raise_by": None,
        "admits": [],
        "cohort_limits": [],
        "nominal": tidy(place.row.nominal),
        "reserved": tidy(place.tree.usage(place.queue.name)),
        "used": tidy(place.row.used),
        "measured": "reservations",
        "waiting": place.line.length,
        "window_minutes": place.limits.window_minutes,
        "share": tidy(place.limits.share),
        "queue": place.queue.name,
        "flavor": place.row.flavor,
        "resource": place.row.resource,
        "api": told_by_api(place, quota, sum(lent.values())),
        "policy": told_by_policy(place.team),
        "differs": differences(place, quota),
    }


def _lenders(place: Place, idle: Idle) -> list[dict[str, Any]]:
    found = []
    for (kind, name), amount in place.tree.lenders(place.queue.name).items():
        queue = name if kind is NodeKind.QUEUE else None
        step = _since(place, name, amount, idle) if queue else None
        found.append(
            {
                "team": _team(place, name) if queue else None,
                "queue": queue,
                "cohort": None if queue else name,
                "idle": tidy(amount),
                "since": stamp(step.since) if step else None,
                "at_least": step.at_least if step else None,
            }
        )
    return found


def _since(place: Place, queue: str, amount: float, idle: Idle) -> IdleStep:
    """Tell since when; only accelerators are remembered, else the last release must do."""
    row, at = place.row, place.scene.snapshot.at
    step = idle_since(idle.get(idle_key(queue, row.flavor, row.resource), ()), amount)
    released = place.scene.holdings.released(queue, row.flavor, row.resource)
    return step or IdleStep(amount=amount, since=released or at, at_least=released is None)


def _not_lent(place: Place) -> list[dict[str, Any]]:
    """Name what lies idle beside the pool: kept at home, or outside it altogether."""
    related = set(place.tree.siblings(place.queue.name))
    found = []
    for name, queue in sorted(place.scene.quotas.queues.items()):
        has = any(
            (r.flavor, r.resource) == (place.row.flavor, place.row.resource) for r in queue.rows
        )
        if name == place.queue.name or not has:
            continue
        kept = place.tree.kept(name)
        if name not in related:
            kept = max(0.0, place.tree.nominal(name) - place.tree.usage(name))
        if kept > 0:
            found.append({"team": _team(place, name), "queue": name, "idle": tidy(kept)})
    return found


def _ask(asking: Asking) -> dict[str, Any]:
    waiter, check = asking
    return {
        "subject": subject_of(waiter.workload),
        "workload": f"{waiter.workload.namespace}/{waiter.workload.name}",
        "need": tidy(check.need),
        "missing": tidy(check.missing),
    }


def _team(place: Place, queue: str) -> str | None:
    team = place.scene.team_of(queue)
    return team.name if team else None


def _action(reason: str, place: Place) -> str:
    """Give the line that shows what would have to change: the quota, else the queue itself."""
    arn = place.scene.snapshot.control_plane.arn
    if arn and place.queue.managed and reason in {LIMIT_BINDING, AT_LIMIT, UNBOUNDED}:
        region = quote(place.scene.cluster.region)
        return f"aws sagemaker list-compute-quotas --region {region} --cluster-arn {quote(arn)}"
    return f"kubectl get clusterqueues.kueue.x-k8s.io {quote(place.queue.name)} -o yaml"
