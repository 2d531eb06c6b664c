"""What is said of a job that is suspected to hang."""

from collections.abc import Iterable, Sequence
from typing import Any

from steward.cluster.accelerators import State, Window
from steward.cluster.commands import release, stacks
from steward.cluster.figures import dollars, tidy
from steward.cluster.findings import Finding
from steward.cluster.hanging import Sign, find
from steward.cluster.idle_findings import NAME, about, devices
from steward.cluster.judging import Judged, size
from steward.cluster.memory import IdleIncident
from steward.cluster.policy import ClusterPolicy, HangLimits


def hang_finding(
    incident: IdleIncident,
    shown: Sequence[Judged],
    judged: Sequence[Judged],
    cluster: ClusterPolicy,
) -> Finding:
    """Say of a job that it is suspected to hang.

    Parameters
    ----------
    incident : IdleIncident
        Brought up to date.
    shown : sequence of Judged
        What shows it now, at least one.
    judged : sequence of Judged
        All accelerators of the job: a pod may have joined since.
    cluster : ClusterPolicy
        Teams and prices.
    """
    first = shown[0].accelerator
    holder, limits = first.holder, shown[0].thresholds.hang
    team = cluster.team_of(holder.namespace)
    return Finding(
        detector=NAME,
        subject=incident.subject,
        reason=State.SUSPECTED_HANG.value,
        severity=limits.severity,
        team=team.name if team else None,
        owner=holder.created_by,
        since=min(stretch.since for stretch in incident.stretches),
        gpus=tidy(size(shown)),
        gpu_hours=tidy(incident.gpu_hours),
        cost_usd=dollars(incident.cost_usd),
        action=stacks(one.accelerator.holder for one in shown),
        parts=tuple(sorted(stretch.key for stretch in incident.running)),
        evidence=_accelerators(incident, shown)
        | _measured(shown, limits)
        | {
            "job_gpus": tidy(size(judged)),
            "not_judged": tidy(size(judged) - size(shown)),
            "release": release(holder.owner, holder.workload),
        }
        | about(first, cluster),
    )


def _accelerators(incident: IdleIncident, shown: Sequence[Judged]) -> dict[str, Any]:
    keys = {one.accelerator.key for one in shown}
    running = [stretch for stretch in incident.running if stretch.key in keys]
    listed = devices(running, shown)
    return {
        # One key for the beginning, whatever the reason, and one that says what began.
        "accelerators": [device | {"hung_since": device["idle_since"]} for device in listed],
        "at_least": any(not stretch.exact for stretch in running),
    }


def _measured(shown: Sequence[Judged], limits: HangLimits) -> dict[str, Any]:
    """Say what the windows showed: of each signal the value that comes nearest to its limit."""
    activity = _windows((one.accelerator.windows for one in shown), limits)
    tensor = [one.accelerator.tensor for one in shown if one.signs.tensor is Sign.SUPPORTS]
    power = [one.accelerator.power for one in shown if one.signs.power is Sign.SUPPORTS]
    cards = [w for one in shown if (w := one.accelerator.power_limit_watts) is not None]
    return {
        "coverage": tidy(sum(w.coverage for w in activity) / len(activity)),
        "samples": {
            "present": sum(w.present for w in activity),
            "expected": sum(w.expected for w in activity),
            "invalid": sum(w.invalid for w in activity),
        },
        "window_minutes": limits.window_minutes,
        "activity_min": tidy(min(w.minimum for w in activity if w.minimum is not None)),
        "activity_limit": limits.activity_min,
        "tensor_max": _highest(_windows(tensor, limits)),
        "tensor_limit": limits.tensor_max,
        "power_max_watts": _highest(_windows(power, limits)),
        "power_limit_watts": tidy(min(cards, default=None)),
        "power_limit": limits.power_max,
        "supports": _signals(shown, Sign.SUPPORTS),
        "silent": _signals(shown, Sign.SILENT),
    }


def _windows(each: Iterable[Iterable[Window]], limits: HangLimits) -> list[Window]:
    return [w for windows in each if (w := find(windows, limits.window_minutes))]


def _highest(windows: Iterable[Window]) -> Any:
    return tidy(max((w.maximum for w in windows if w.maximum is not None), default=None))


def _signals(shown: Iterable[Judged], sign: Sign) -> dict[str, Any]:
    """Count the accelerators that a signal says this of; a signal that says it of none is left out."""
    counted = {
        "tensor_activity": size(one for one in shown if one.signs.tensor is sign),
        "power": size(one for one in shown if one.signs.power is sign),
    }
    return {signal: tidy(count) for signal, count in counted.items() if count}
