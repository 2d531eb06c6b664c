"""Findings of the `pending` detector: one a job, led by its longest waiting workload."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from steward.cluster import commands
from steward.cluster.amounts import accelerators_each
from steward.cluster.figures import stamp, tidy
from steward.cluster.findings import Finding
from steward.cluster.kueue import Workload
from steward.cluster.pending.actions import action
from steward.cluster.pending.explaining import Explained
from steward.cluster.pending.pods import assigned, contradictory
from steward.cluster.pending.reasons import NEVER, Reason
from steward.cluster.pending.shown import Shown
from steward.cluster.policy import ClusterPolicy, PendingLimits, Scope, Severity
from steward.cluster.workloads import accelerators_of, subject_of, top_owner, waiting_since

NAME = "pending"
"""Of the detector."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that waits, or that has its quota and no pods, and why.

    Attributes
    ----------
    since : datetime
        When the waiting began, or since when it has no pods.
    """

    workload: Workload
    since: datetime
    explained: Explained

    @property
    def reason(self) -> Reason | None:
        """Why, as far as it is known."""
        return self.explained.shown.reason

    @property
    def gpus(self) -> float:
        """Accelerators that it asks for, or holds in vain."""
        held = self.reason is Reason.RESERVED_WITHOUT_PODS
        return assigned(self.workload) if held else accelerators_of(self.workload)


def limits_of(workload: Workload, cluster: ClusterPolicy) -> PendingLimits:
    """Find the limits in force for a workload."""
    team = cluster.team_of(workload.namespace)
    owner = top_owner(workload)
    scope = Scope(
        team=team.name if team else None,
        namespace=workload.namespace,
        priority_class=workload.priority_class,
        owner_kind=owner.kind if owner else None,
    )
    return cluster.limits(scope).pending


def minutes(case: Case, limits: PendingLimits) -> int:
    """Tell how long a case must have lasted before it is told."""
    if case.reason in NEVER:
        return 0
    if case.reason is Reason.RESERVED_WITHOUT_PODS:
        return limits.without_pods_minutes
    return limits.wait_minutes


def without_pods(workload: Workload, since: datetime) -> Case:
    """Make the case of a workload that holds its quota in vain."""
    held = assigned(workload)
    devices = {
        (flavor, name): amount
        for flavor, amounts in sorted(workload.assigned.items())
        for name, amount in sorted(amounts.items())
        if accelerators_each(name) and amount
    }
    flavor, resource = next(iter(devices))
    told = contradictory(workload)
    also = f" Its conditions contradict each other: {', '.join(told)} are all true." if told else ""
    evidence: dict[str, Any] = {"conditions": told} if told else {}
    if (top := top_owner(workload)) is not None:
        evidence["release"] = commands.release(top, workload.name)
    gpus = f"{held:g} accelerator{'' if held == 1 else 's'}"
    shown = Shown(
        reason=Reason.RESERVED_WITHOUT_PODS,
        sentence=f"Holds quota for {gpus} of {flavor} while none of its pods holds any.{also} Nobody else can use them until its pods start or its quota is given back.",
        resource=resource,
        flavor=flavor,
        need=devices[flavor, resource],
        evidence=evidence,
    )
    explained = Explained(shown=shown, cluster_queue=workload.cluster_queue)
    return Case(workload=workload, since=since, explained=explained)


def pending_finding(
    lead: Case, cases: Sequence[Case], at: datetime, cluster: ClusterPolicy
) -> Finding:
    """Tell of a job.

    Parameters
    ----------
    lead : Case
        The longest waiting of those that are told.
    cases : sequence of Case
        All of the job that wait, or hold quota in vain, as the lead does.
    at : datetime
        The snapshot's time.
    cluster : ClusterPolicy
        Teams and limits.
    """
    workload, reason = lead.workload, lead.reason or Reason.NOT_EVALUATED
    team = cluster.team_of(workload.namespace)
    hours = sum((at - case.since).total_seconds() / 3600 * case.gpus for case in cases)
    held = reason is Reason.RESERVED_WITHOUT_PODS
    severity = limits_of(workload, cluster).severity if reason in NEVER else Severity.INFO
    return Finding(
        detector=NAME,
        subject=subject_of(workload),
        reason=reason.value,
        severity=severity,
        team=team.name if team else None,
        since=lead.since,
        gpus=tidy(sum(case.gpus for case in cases)),
        gpu_hours=tidy(hours) if held else None,
        cost_usd=None,
        action=action(workload, lead.explained.shown),
        evidence=_evidence(lead, cases),
        owner=workload.created_by,
    )


def _evidence(lead: Case, cases: Sequence[Case]) -> dict[str, Any]:
    workload, explained = lead.workload, lead.explained
    shown, place = explained.shown, explained.place
    evidence: dict[str, Any] = {
        "sentence": shown.sentence,
        "message": explained.message,
        "need": tidy(shown.need),
        "available": tidy(shown.available),
        "resource": shown.resource,
        "flavor": shown.flavor,
        "missing": [],
        "workload": workload.name,
        "queue": workload.queue,
        "cluster_queue": explained.cluster_queue,
        "priority": workload.priority,
        "priority_class": workload.priority_class,
        "waiting_since": stamp(waiting_since(workload)),
        "position": place.ahead + 1 if place else None,
        "ahead": place.ahead if place else None,
        "workloads": len(cases),
        **shown.evidence,
    }
    if explained.message_reason and explained.objects_reason:
        evidence |= {
            "contradiction": explained.contradiction,
            "message_class": explained.message_reason.value,
            "objects_class": explained.objects_reason.value,
        }
    return evidence
