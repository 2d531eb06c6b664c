"""What is said of a job with idle accelerators, and the numbers of any incident that ended."""

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import replace
from datetime import timedelta
from typing import Any

from steward.cluster.accelerators import Accelerator, State
from steward.cluster.commands import look, release
from steward.cluster.figures import dollars, stamp, tidy
from steward.cluster.findings import Cleared, Finding, Resolution
from steward.cluster.judging import Judged, size
from steward.cluster.memory import IdleIncident, IdleStretch
from steward.cluster.policy import ClusterPolicy, IdleLimits, Severity

NAME = "idle_gpus"
"""The detector that says it."""

_LAST_WORDS = (Resolution.ACTIVE_AGAIN, Resolution.REASON_CHANGED, Resolution.RELEASED)
"""Of stretches that ended together, what the incident is said to have ended with."""


def idle_finding(
    incident: IdleIncident, judged: Sequence[Judged], cluster: ClusterPolicy
) -> Finding:
    """Say of a job that some of its accelerators are idle; names only those."""
    idle = [one for one in judged if one.verdict.idle]
    keys = {one.accelerator.key for one in idle}
    running = [s for s in incident.running if s.key in keys]
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
        gpu_hours=tidy(incident.gpu_hours),
        cost_usd=dollars(incident.cost_usd),
        action=release(holder.owner, holder.workload) if whole_job else look(holder),
        # Also what cannot be judged now: it was idle, and nobody has seen it work since.
        parts=tuple(sorted(s.key for s in incident.running)),
        evidence=_evidence(idle, judged, running, limits) | about(idle[0].accelerator, cluster),
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
) -> dict[str, Any]:
    windows = [w for one in idle if (w := one.accelerator.window(limits.window_minutes))]
    states = Counter(one.verdict.state for one in judged)
    return {
        "accelerators": devices(running, idle),
        "coverage": tidy(sum(w.coverage for w in windows) / len(windows)),
        "samples": {
            "present": sum(w.present for w in windows),
            "expected": sum(w.expected for w in windows),
            "invalid": sum(w.invalid for w in windows),
        },
        "window_minutes": limits.window_minutes,
        "activity_max": tidy(max(w.maximum for w in windows if w.maximum is not None)),
        "activity_limit": limits.activity_max,
        "at_least": any(not s.exact for s in running),
        "job_gpus": tidy(size(judged)),
        "busy": states[State.BUSY],
        "idle_held": states[State.IDLE_HELD],
        "unknown": states[State.UNKNOWN],
    }


def devices(running: Iterable[IdleStretch], judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """Name the accelerators of running stretches, each with its own beginning and hours."""
    held = {one.accelerator.key: one.accelerator.held_bytes for one in judged}
    return [
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
    ]


def about(first: Accelerator, cluster: ClusterPolicy) -> dict[str, Any]:
    """Say what a job runs on, as what, and at which price."""
    return {
        "activity_metric": first.activity_metric,
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


def final(incident: IdleIncident, finding: Finding, until: str) -> Cleared:
    """Close the books: the final numbers, counted to the last sample that showed the condition.

    Parameters
    ----------
    incident : IdleIncident
        With every stretch ended.
    finding : Finding
        As it was last told.
    until : str
        Evidence key that the time of that sample is told under.
    """
    newest = max(stretch.last for stretch in incident.stretches)
    ended = {stretch.ended for stretch in incident.stretches if stretch.last == newest}
    return Cleared(
        resolution=next(words for words in _LAST_WORDS if words in ended),
        finding=counted(incident, finding, until),
    )


def counted(incident: IdleIncident, finding: Finding, until: str) -> Finding:
    """Give a finding, as it was last told, the numbers that its incident has come to since."""
    newest = max(stretch.last for stretch in incident.stretches)
    listed = finding.evidence["accelerators"]
    evidence = {"accelerators": _spent(incident, listed), until: stamp(newest)}
    return replace(
        finding,
        gpu_hours=tidy(incident.gpu_hours),
        cost_usd=dollars(incident.cost_usd),
        evidence=finding.evidence | evidence,
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
