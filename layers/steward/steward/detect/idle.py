"""Idle-but-allocated accelerators: judges each by itself, speaks of the job that holds it.

Decides which allocated accelerators have shown no activity over their detection window, since
when, and what that cost. Claims nothing about the CPU, and never takes missing telemetry for
idleness. Page: docs/detectors/idle.md.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import replace
from datetime import timedelta
from typing import Any

from steward.cluster.accelerators import State, UnknownReason
from steward.cluster.commands import look, release
from steward.cluster.figures import dollars, stamp, tidy
from steward.cluster.findings import UNSEEN, Cleared, Finding, Resolution, Unknown
from steward.cluster.judging import Judged, by_subject, judge_snapshot, size
from steward.cluster.memory import Detection, IdleIncident, IdleStretch, Memory
from steward.cluster.policy import ClusterPolicy, IdleLimits, Severity
from steward.cluster.refusals import refusals
from steward.cluster.snapshot import Snapshot
from steward.cluster.stretches import advance

NAME = "idle_gpus"

_BLIND = ("kubernetes/pods", "prometheus")
_OWNERS = (
    "kubernetes/replicasets",
    "kubernetes/deployments",
    "kubernetes/statefulsets",
    "kubernetes/jobs",
    "kubernetes/jobsets",
    "kubernetes/pytorchjobs",
    "kubernetes/hyperpodpytorchjobs",
    "kubernetes/rayclusters",
    "kubernetes/rayjobs",
)
_USEFUL = ("kubernetes/workloads", "kubernetes/nodes", *_OWNERS)


def detect(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> Detection:
    """Find idle accelerators, job by job.

    Parameters
    ----------
    snapshot : Snapshot
        Allocated accelerators with their windows; `idle_since` for the newly idle ones and
        `idle_ends` for the stretches that ended.
    memory : Memory
        Incidents so far.
    cluster : ClusterPolicy
        Thresholds, teams and prices.

    Returns
    -------
    Detection
        One finding a job with idle accelerators; one unknown line a job with accelerators that
        cannot be judged, and one a refused call; without pods nothing but that.
    """
    refused = refusals(snapshot, NAME, blind=_BLIND, useful=_USEFUL)
    if not snapshot.readable("kubernetes/pods"):
        return Detection(memory=memory, unknown=refused)
    known = {incident.subject: incident for incident in memory.idle}
    # While owners cannot be read, a Deployment's pod seems to be its ReplicaSet's: what is known of
    # an accelerator stays with the job that it was known by.
    jobs = by_subject(
        judge_snapshot(snapshot, cluster),
        _subjects(memory) if snapshot.refused(*_OWNERS) else None,
    )
    ends = {end.key: end for end in snapshot.idle_ends}
    left_out = _left_out(snapshot, memory, cluster)
    hidden = {key for line in left_out for key in line.parts}
    incidents: list[IdleIncident] = []
    findings: list[Finding] = []
    cleared: list[Cleared] = []
    for subject in sorted(known.keys() | jobs.keys()):
        judged = jobs.get(subject, ())
        incident = advance(known.get(subject), subject, judged, ends, snapshot, hidden)
        if incident is None:
            continue
        if any(one.verdict.idle for one in judged):
            finding = _finding(incident, judged, cluster)
            incident = replace(incident, finding=finding, held_until=snapshot.at)
            findings.append(finding)
        elif (last := incident.finding) and all(s.ended is not None for s in incident.stretches):
            if snapshot.at - incident.held_until >= UNSEEN:
                incident = replace(incident, cleared=incident.cleared or snapshot.at)
            cleared.append(_final(incident, last))
        else:
            incident = replace(incident, held_until=snapshot.at)
        incidents.append(incident)
    dark = (_unknown(subject, judged, cluster) for subject, judged in jobs.items())
    return Detection(
        memory=replace(memory, idle=tuple(incidents)),
        findings=tuple(findings),
        cleared=tuple(cleared),
        unknown=(*refused, *left_out, *(line for line in dark if line)),
    )


def _left_out(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> tuple[Unknown, ...]:
    """Say which pods were listed and could not be read: they may hold accelerators all the same."""
    subjects = _subjects(memory)
    running = memory.running_stretches()
    pods = snapshot.part("kubernetes/pods")
    lines = []
    for name in pods.left_out if pods else ():
        namespace, _, pod = name.rpartition("/")
        keys = sorted(k for k, s in running.items() if (s.namespace, s.pod) == (namespace, pod))
        itself = f"Pod/{name}" if namespace else "kubernetes/pods"
        team = cluster.team_of(namespace)
        lines.append(
            Unknown(
                detector=NAME,
                subject=subjects[keys[0]] if keys else itself,
                reason=UnknownReason.UNREADABLE,
                team=team.name if team else None,
                parts=tuple(keys),
            )
        )
    return tuple(lines)


def _subjects(memory: Memory) -> dict[str, str]:
    return {
        stretch.key: incident.subject
        for incident in memory.idle
        for stretch in incident.stretches
        if stretch.ended is None
    }


def _finding(incident: IdleIncident, judged: Sequence[Judged], cluster: ClusterPolicy) -> Finding:
    idle = [one for one in judged if one.verdict.idle]
    keys = {one.accelerator.key for one in idle}
    running = [s for s in incident.stretches if s.ended is None and s.key in keys]
    holder = idle[0].accelerator.holder
    limits = idle[0].limits
    team = cluster.team_of(holder.namespace)
    held = all(one.verdict.state is State.IDLE_HELD for one in idle)
    whole_job = len(idle) == len(judged)
    return Finding(
        detector=NAME,
        subject=incident.subject,
        reason=(State.IDLE_HELD if held else State.IDLE).value,
        severity=_severity(idle, running, limits),
        team=team.name if team else None,
        owner=holder.created_by,
        since=min(stretch.since for stretch in incident.stretches),
        gpus=tidy(size(idle)),
        gpu_hours=_hours(incident.stretches),
        cost_usd=_cost(incident.stretches),
        action=release(holder.owner, holder.workload) if whole_job else look(holder),
        # Also what cannot be judged now: it was idle, and nobody has seen it work since.
        parts=tuple(sorted(s.key for s in incident.stretches if s.ended is None)),
        evidence=_evidence(idle, judged, running, limits, cluster),
    )


def _severity(
    idle: Iterable[Judged], running: Iterable[IdleStretch], limits: IdleLimits
) -> Severity:
    patience = timedelta(hours=limits.page_after_hours)
    long = {stretch.key for stretch in running if stretch.last - stretch.since > patience}
    truly_idle = size(
        one for one in idle if one.verdict.state is State.IDLE and one.accelerator.key in long
    )
    pages = limits.page_accelerators > 0 and truly_idle >= limits.page_accelerators
    return Severity.PAGE if pages else limits.severity


def _evidence(
    idle: Sequence[Judged],
    judged: Sequence[Judged],
    running: Sequence[IdleStretch],
    limits: IdleLimits,
    cluster: ClusterPolicy,
) -> dict[str, Any]:
    held = {one.accelerator.key: one.accelerator.held_bytes for one in idle}
    windows = [w for one in idle if (w := one.accelerator.window(limits.window_minutes))]
    states = Counter(one.verdict.state for one in judged)
    first = idle[0].accelerator
    return {
        "accelerators": [
            {
                "node": s.node,
                "uuid": s.uuid,
                "mig": s.mig,
                "pod": s.pod,
                "idle_since": stamp(s.since),
                "at_least": not s.exact,
                "held_bytes": held[s.key],
                "gpu_hours": tidy(s.gpu_hours),
            }
            for s in sorted(running, key=lambda s: (s.node or "", s.pod, s.uuid or "", s.mig or ""))
        ],
        "coverage": tidy(sum(w.coverage for w in windows) / len(windows)),
        "samples": {
            "present": sum(w.present for w in windows),
            "expected": sum(w.expected for w in windows),
            "invalid": sum(w.invalid for w in windows),
        },
        "window_minutes": limits.window_minutes,
        "activity_metric": first.activity_metric,
        "activity_max": tidy(max(w.maximum for w in windows if w.maximum is not None)),
        "activity_limit": limits.activity_max,
        "at_least": any(not s.exact for s in running),
        "job_gpus": tidy(size(judged)),
        "busy": states[State.BUSY],
        "idle_held": states[State.IDLE_HELD],
        "unknown": states[State.UNKNOWN],
        "instance_type": first.instance_type,
        "price": _price(first.instance_type, first.usd_per_hour, cluster),
        "workload": first.holder.workload,
        "queue": first.holder.queue,
        "priority_class": first.holder.priority_class,
        "created_by": first.holder.created_by,
    }


def _price(
    instance_type: str | None, usd_per_hour: float | None, cluster: ClusterPolicy
) -> dict[str, Any] | None:
    price = cluster.price_of(instance_type)
    if price is None or usd_per_hour is None:
        return None
    return {
        "usd_per_gpu_hour": tidy(usd_per_hour),
        "source": price.source,
        "date": price.date,
    }


def _final(incident: IdleIncident, finding: Finding) -> Cleared:
    """Close the books: the final numbers, counted to the last sample that showed the condition."""
    newest = max(stretch.last for stretch in incident.stretches)
    last_words = {stretch.ended for stretch in incident.stretches if stretch.last == newest}
    active = Resolution.ACTIVE_AGAIN in last_words
    return Cleared(
        resolution=Resolution.ACTIVE_AGAIN if active else Resolution.RELEASED,
        finding=replace(
            finding,
            gpu_hours=_hours(incident.stretches),
            cost_usd=_cost(incident.stretches),
            evidence=finding.evidence
            | {
                "accelerators": _spent(incident, finding.evidence["accelerators"]),
                "idle_until": stamp(newest),
            },
        ),
    )


def _spent(incident: IdleIncident, listed: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give each accelerator that the finding last named the hours that its stretch came to."""
    hours = {(s.pod, s.uuid, s.mig, stamp(s.since)): tidy(s.gpu_hours) for s in incident.stretches}
    return [
        one
        | {
            "gpu_hours": hours.get(
                (one["pod"], one["uuid"], one["mig"], one["idle_since"]), one["gpu_hours"]
            )
        }
        for one in listed
    ]


def _unknown(subject: str, judged: Sequence[Judged], cluster: ClusterPolicy) -> Unknown | None:
    dark = [one for one in judged if one.unknown]
    if not dark:
        return None
    counts = Counter(one.verdict.reason for one in dark)
    reason = max(counts, key=lambda name: (counts[name], str(name)))
    team = cluster.team_of(dark[0].accelerator.holder.namespace)
    return Unknown(
        detector=NAME,
        subject=subject,
        reason=reason or UnknownReason.UNREADABLE,
        team=team.name if team else None,
        gpus=tidy(size(dark)),
        parts=tuple(sorted(one.accelerator.key for one in dark)),
    )


def _hours(stretches: Iterable[IdleStretch]) -> Any:
    return tidy(sum(stretch.gpu_hours for stretch in stretches))


def _cost(stretches: Iterable[IdleStretch]) -> Any:
    costs = [stretch.cost_usd for stretch in stretches]
    known = [cost for cost in costs if cost is not None]
    return dollars(sum(known)) if len(known) == len(costs) else None
