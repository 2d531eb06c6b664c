"""What is said of a job that is preempted again and again, or of two that preempt each other."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steward.cluster.figures import dollars, stamp, tidy
from steward.cluster.findings import Finding
from steward.cluster.kueue import Workload
from steward.cluster.policy import ClusterPolicy, PreemptionLimits, Severity
from steward.cluster.preemptions.jobs import (
    Job,
    Losses,
    Pricing,
    by_cause,
    by_preemptor,
    gets_nowhere,
    losses,
    needed_minutes,
    preemptor_of,
    sole_type,
)
from steward.cluster.preemptions.memory import Eviction, Proof
from steward.cluster.preemptions.pairs import Pair, pairs
from steward.cluster.preemptions.runs import proof_of, time_of

NAME = "preemptions"
"""The detector that says it."""

WITHOUT, WITH, THRASH = "without_checkpoint", "with_checkpoint", "thrash"

_SHOWN = 20
"""Newest preemptions that the evidence lists one by one."""

_RECLAIMED = frozenset({"InCohortReclamation", "InCohortFairSharing"})


def findings(jobs: Mapping[str, Job], usd: Pricing, cluster: ClusterPolicy) -> tuple[Finding, ...]:
    """Say what is to be said of preempted jobs, in the order of their names.

    Parameters
    ----------
    jobs : mapping of str to Job
        Those that are there and were preempted in the period.
    usd : callable
        Dollars an accelerator hour of an instance type; None without a price.
    cluster : ClusterPolicy
        Teams and prices.
    """
    both = pairs(jobs)
    taken = {job.subject for pair in both for job in (pair.one, pair.other)}
    alone = (_of_job(job, usd, cluster) for subject, job in jobs.items() if subject not in taken)
    told = (*(_of_pair(pair, usd, cluster) for pair in both), *filter(None, alone))
    return tuple(sorted(told, key=lambda one: one.key))


def _of_job(job: Job, usd: Pricing, cluster: ClusterPolicy) -> Finding | None:
    limits = job.limits
    spent = losses(job.counted, usd)
    costly = limits.lost_gpu_hours > 0 and (spent.gpu_hours or 0) >= limits.lost_gpu_hours
    longest = gets_nowhere(job)
    if job.count < limits.count and not costly:
        return None
    proof = best(job.counted)
    reason, severity = WITHOUT, limits.severity
    if proof is Proof.PROVEN:
        reason, severity = WITH, Severity.INFO
    evidence: dict[str, Any] = {"advice": _advice(job.counted, proof, limits)}
    if longest is not None:
        reason, severity = THRASH, Severity.PAGE
        evidence = {
            "loop": "short_runs",
            "longest_run_minutes": tidy(longest),
            "needed_minutes": needed_minutes(limits),
            "advice": _short_runs(limits, longest),
        }
    workload = job.workload
    return Finding(
        detector=NAME,
        subject=job.subject,
        reason=reason,
        severity=severity,
        team=_team(job, cluster),
        owner=workload.created_by,
        since=time_of(job.counted[0]) or job.counted[0].at,
        gpus=tidy(job.gpus),
        gpu_hours=tidy(spent.gpu_hours),
        cost_usd=dollars(spent.cost_usd),
        action=_describe([workload]),
        evidence=_counted(job.counted, spent, job.limits)
        | {"at_least": job.at_least, "other_evictions": job.others}
        | _about(workload, job.counted, usd, cluster)
        | evidence,
    )


def _of_pair(pair: Pair, usd: Pricing, cluster: ClusterPolicy) -> Finding:
    subjects = [pair.one.subject, pair.other.subject]
    spent = losses(pair.counted, usd)
    workload = pair.one.workload
    both = (pair.one, pair.other)
    causes = by_cause(pair.counted)
    lost = (pair.ones, pair.others)
    jobs = [
        {
            "subject": job.subject,
            "team": _team(job, cluster),
            "count": sum(one.count for one in own),
            "gpus": tidy(job.gpus),
            "lost_gpu_hours": tidy(losses(own, usd).gpu_hours),
            "priority_class": job.workload.priority_class,
        }
        for job, own in zip(both, lost, strict=True)
    ]
    return Finding(
        detector=NAME,
        subject=pair.one.subject,
        reason=THRASH,
        severity=Severity.PAGE,
        team=_team(pair.one, cluster),
        owner=workload.created_by,
        since=time_of(pair.counted[0]) or pair.counted[0].at,
        gpus=tidy(max(job.gpus for job in both)),
        gpu_hours=tidy(spent.gpu_hours),
        cost_usd=dollars(spent.cost_usd),
        action=_describe([job.workload for job in both]),
        evidence=_counted(pair.counted, spent, pair.one.limits)
        | {
            "at_least": any(job.at_least for job in both),
            "other_evictions": sum(job.others for job in both),
        }
        | _about(workload, pair.counted, usd, cluster)
        | {"loop": "pair", "jobs": jobs, "advice": _pair_advice(subjects, causes)},
    )


def best(counted: Iterable[Eviction]) -> Proof:
    """Tell the most that is known of the checkpoints of any of some runs."""
    found = {proof_of(one) for one in counted}
    return next(proof for proof in Proof if proof in found)


def _team(job: Job, cluster: ClusterPolicy) -> str | None:
    team = cluster.team_of(job.workload.namespace)
    return team.name if team else None


def _describe(workloads: Sequence[Workload]) -> str:
    lines = [
        f"kubectl -n {shlex.quote(one.namespace)} describe "
        f"{shlex.quote(f'workloads.kueue.x-k8s.io/{one.name}')}"
        for one in workloads
    ]
    return "; ".join(lines)


def _counted(
    counted: Sequence[Eviction], spent: Losses, limits: PreemptionLimits
) -> dict[str, Any]:
    newest = counted[-_SHOWN:]
    each = spent.each[-_SHOWN:]
    return {
        "count": sum(one.count for one in counted),
        "period_hours": limits.period_hours,
        "limit": limits.count,
        "causes": by_cause(counted),
        "preemptors": by_preemptor(counted),
        "lost_gpu_hours": tidy(spent.gpu_hours),
        "lost_at_least": spent.at_least,
        "checkpoint": best(counted).value,
        "evictions": [_one(e, hours) for e, hours in zip(newest, each, strict=True)],
        "checkpoints": [_checkpoint(e) for e in newest if e.after is None or e.proof],
    }


def _one(one: Eviction, hours: float | None) -> dict[str, Any]:
    alone = one.count == 1 or one.ran is None
    return {
        "at": stamp(one.at),
        "after": None if one.after is None else stamp(one.after),
        "count": one.count,
        "workload_uid": one.uid,
        "cause": one.words.cause,
        "preemptor": preemptor_of(one),
        "preemptor_queue": one.words.queue,
        "run_minutes": None if one.ran is None else tidy(one.ran / one.count / 60),
        "run_mean": not alone,
        "lost_gpu_hours": tidy(hours),
    }


def _checkpoint(one: Eviction) -> dict[str, Any]:
    return {
        "at": stamp(one.at),
        "status": proof_of(one).value,
        "run_start": None if one.started is None else stamp(one.started),
        "written": stamp(one.written.at) if one.written else None,
        "source": one.written.by.value if one.written else None,
        "uri": one.written.uri if one.written else None,
        "step": one.written.step if one.written else None,
        "declared": one.declared,
    }


def _about(
    workload: Workload, counted: Sequence[Eviction], usd: Pricing, cluster: ClusterPolicy
) -> dict[str, Any]:
    instance_type = counted[-1].instance_type or sole_type(cluster)
    return {
        "workload": workload.name,
        "queue": workload.queue,
        "priority_class": workload.priority_class,
        "instance_type": instance_type,
        "price": _price(instance_type, usd(instance_type), cluster),
    }


def _price(
    instance_type: str | None, usd_per_gpu_hour: float | None, cluster: ClusterPolicy
) -> dict[str, Any] | None:
    price = cluster.price_of(instance_type)
    if price is None or usd_per_gpu_hour is None:
        return None
    return {
        "usd_per_gpu_hour": tidy(usd_per_gpu_hour),
        "source": price.source,
        "date": price.date,
    }


_PROTECT = (
    "What must not be interrupted belongs into a high priority class, in a team that does not lend "
    "(DontLend) with a quota of just that size."
)
_BORROWED = "It ran on quota borrowed from others, who take it back when they need it."


def _advice(counted: Sequence[Eviction], proof: Proof, limits: PreemptionLimits) -> list[str]:
    every = f"at least every {limits.checkpoint_minutes} minutes"
    first = {
        Proof.PROVEN: f"Checkpoints are written; {every} bounds what a preemption costs.",
        Proof.DECLARED: "Checkpoints are declared, but no write was found in a run: check that the "
        f"job writes them, {every}.",
        Proof.ABSENT: f"Nothing was written in a run: write checkpoints {every}.",
        Proof.UNREADABLE: "No place with checkpoints could be looked at: name one in the policy "
        f"(`checkpoints` of the team), or send heartbeats, and write {every}.",
    }
    borrowed = [_BORROWED] if _RECLAIMED & by_cause(counted).keys() else []
    return [first[proof], *borrowed, _PROTECT]


def _short_runs(limits: PreemptionLimits, longest: float) -> list[str]:
    why = (
        f"No progress is possible: the longest of the last {limits.count} runs took "
        f"{tidy(round(longest, 1))} minutes, and {needed_minutes(limits)} are needed to start and "
        "to reach a checkpoint."
    )
    return [
        why,
        "Suspend it until there is room, checkpoint sooner, or ask for fewer accelerators.",
        _PROTECT,
    ]


def _pair_advice(subjects: Sequence[str], causes: Mapping[str, int]) -> list[str]:
    rules = ", ".join(causes)
    return [
        f"{subjects[0]} and {subjects[1]} preempt each other in turn (rule: {rules}).",
        "Suspend one until the other has finished, or give both the same priority class.",
        "If it comes back: compare the preemption rules of their queues with their own quotas.",
    ]


def covers(finding: Finding) -> tuple[str, ...]:
    """Jobs that a finding, as it was told, is about."""
    named = [str(job["subject"]) for job in finding.evidence.get("jobs") or ()]
    return tuple(named) or (finding.subject,)
