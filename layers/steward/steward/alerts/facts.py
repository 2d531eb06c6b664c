"""What a card says, as JSON facts: everything measured anew at every tick stands apart."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from steward.alerts import troubles
from steward.alerts.model import Alert, AlertState
from steward.cluster.figures import stamp
from steward.cluster.findings import Finding
from steward.cluster.policy import ClusterPolicy

LISTED = 20
"""Items of a list that a card's facts keep. A cluster without telemetry names every one of its
devices, while nobody reads more than these and a stored item has a size limit."""

_RUNNING = frozenset(
    {
        "activity_max",
        "activity_min",
        "ahead",
        "api",
        "available",
        "borrowers",
        "contradiction",
        "coverage",
        "dropped",
        "head",
        "hung_until",
        "idle_not_lent",
        "idle_until",
        "judged_gpus",
        "lenders",
        "missing",
        "nodes",
        "nodes_with_room",
        "position",
        "power_max_watts",
        "reserved",
        "samples",
        "sentence",
        "share",
        "tensor_max",
        "used",
        "waiting",
        "waits",
    }
)
"""Evidence that is measured anew at every tick."""

_RUNNING_DEVICE = frozenset({"gpu_hours", "held_bytes"})
"""Likewise, of each device."""


def facts(lead: Alert, alerts: Sequence[Alert], cluster: ClusterPolicy) -> dict[str, Any]:
    """State what a card says, as JSON values.

    Parameters
    ----------
    lead : Alert
        What the card is about.
    alerts : sequence of Alert
        All of its incident, the lead included: other subjects of the same problem, other reasons,
        running or ended.
    cluster : ClusterPolicy
        Whose names, owners and channels are meant.

    Returns
    -------
    dict
        Times as `YYYY-MM-DDTHH:MM:SSZ`. Everything measured anew at every tick stands under
        `running` (of each device listed, in their order, `device_gpu_hours`); lists are cut to
        :data:`LISTED`, devices that are idle the longest first, with what was left out in
        `omitted`.
    """
    finding = lead.finding
    members = [a for a in alerts if _running(a) and a.finding.subject != finding.subject]
    others = [a for a in alerts if a is not lead and a not in members]
    together = [lead.finding, *(a.finding for a in members)]
    team = cluster.team_named(finding.team)
    devices = _longest_first(finding.evidence.get("accelerators", ()))
    left_out = finding.evidence.get("omitted", {})
    stable = {k: v for k, v in finding.evidence.items() if k not in {*_RUNNING, "omitted"}}
    stable |= {"accelerators": devices} if devices else {}
    measured = {k: _bounded(v) for k, v in finding.evidence.items() if k in _RUNNING}
    omitted = {
        k: len(v) - LISTED + left_out.get(k, 0) for k, v in stable.items() if isinstance(v, list)
    }
    return {
        "cluster": cluster.name,
        "detector": finding.detector,
        "reason": finding.reason,
        "subject": finding.subject,
        "team": finding.team,
        "owner": finding.owner,
        "team_owners": list(team.owners) if team else [],
        "severity": finding.severity.value,
        "state": "open" if lead.resolved is None else "resolved",
        "since": stamp(_since(lead)),
        "detected": stamp(lead.incident or lead.first_seen),
        "resolved": stamp(lead.resolved) if lead.resolved else None,
        "resolution": lead.resolution.value if lead.resolution else None,
        "stale_since": stamp(lead.unknown_since) if lead.stale and lead.unknown_since else None,
        "gpus": finding.gpus,
        "action": finding.action,
        "evidence": {k: _bounded(v) for k, v in stable.items()},
        "omitted": {k: count for k, count in omitted.items() if count > 0},
        "subjects": len(together),
        "group_gpus": sum(each.gpus for each in together),
        "members": [_member(alert) for alert in sorted(members, key=_oldest_first)[:LISTED]],
        "members_omitted": max(0, len(members) - LISTED),
        "others": [_brief(alert) for alert in sorted(others, key=_newest_first)[:LISTED]],
        "others_omitted": max(0, len(others) - LISTED),
        "flapping": None,
        "exempted": None,
        "running": {
            "as_of": _until(finding) or stamp(lead.last_seen),
            "gpu_hours": finding.gpu_hours,
            "cost_usd": finding.cost_usd,
            "group_gpu_hours": _sum(each.gpu_hours for each in together),
            "group_cost_usd": _sum(each.cost_usd for each in together),
            "held_bytes": _held(devices),
            "device_gpu_hours": [device.get("gpu_hours") for device in devices[:LISTED]],
            **measured,
        },
    }


def _running(alert: Alert) -> bool:
    return alert.state is AlertState.OPEN


def _since(alert: Alert) -> datetime:
    # The steward's own troubles know no beginning but when they were first seen.
    own = alert.finding.detector == troubles.DETECTOR
    return alert.first_seen if own else alert.finding.since


def _oldest_first(alert: Alert) -> tuple[datetime, str]:
    return alert.finding.since, alert.key


def _newest_first(alert: Alert) -> tuple[bool, float, str]:
    """Put running ones first, then those that ended last."""
    ended = alert.resolved.timestamp() if alert.resolved else 0.0
    return alert.resolved is not None, -ended, alert.key


def _sum(values: Iterable[float | None]) -> float | None:
    """Sum what is known; None: nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _until(finding: Finding) -> str | None:
    """Tell the last sample that showed what is over."""
    return finding.evidence.get("idle_until") or finding.evidence.get("hung_until")


def _bounded(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [
        {k: v for k, v in item.items() if k not in _RUNNING_DEVICE}
        if isinstance(item, dict)
        else item
        for item in value[:LISTED]
    ]


def _longest_first(devices: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(devices, key=lambda device: device.get("idle_since") or "")


def _held(devices: Iterable[Mapping[str, Any]]) -> int | None:
    """Sum the memory known to be held (bytes) on some devices; None: not measured."""
    known = [held for device in devices if (held := device.get("held_bytes")) is not None]
    return sum(known) if known else None


def _member(alert: Alert) -> dict[str, Any]:
    """Name another subject of the same problem."""
    finding = alert.finding
    return {
        "subject": finding.subject,
        "owner": finding.owner,
        "reason": finding.reason,
        "since": stamp(finding.since),
        "gpus": finding.gpus,
    }


def _brief(alert: Alert) -> dict[str, Any]:
    """Name another alert of the incident: what it was, and once it has ended its final numbers."""
    ended = alert.resolved is not None
    return {
        "reason": alert.finding.reason,
        "subject": alert.finding.subject,
        "since": stamp(alert.finding.since),
        "gpus": alert.finding.gpus,
        "resolved": stamp(alert.resolved) if alert.resolved else None,
        "resolution": alert.resolution.value if alert.resolution else None,
        "gpu_hours": alert.finding.gpu_hours if ended else None,
        "cost_usd": alert.finding.cost_usd if ended else None,
    }
