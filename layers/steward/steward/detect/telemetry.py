"""Telemetry that is missing, lost, impossible or unattributed: one finding a cluster and reason.

Decides nothing about idleness; it says where the other detectors are blind, and how much of the
cluster that is. Page: docs/detectors/telemetry.md.
"""

from collections.abc import Sequence
from copy import replace
from datetime import datetime
from shlex import quote
from typing import Any

from steward.cluster.accelerators import State, UnknownReason
from steward.cluster.control_plane import AddOn
from steward.cluster.figures import tidy
from steward.cluster.findings import Finding
from steward.cluster.judging import Judged, judge_snapshot, size
from steward.cluster.memory import Detection, Device, Memory
from steward.cluster.policy import ClusterPolicy, Severity
from steward.cluster.refusals import refusals
from steward.cluster.snapshot import Snapshot

NAME = "telemetry"

_EXPORTER = "app.kubernetes.io/name=dcgm-exporter"
_ACTIONS = {
    UnknownReason.NO_TELEMETRY: f"kubectl get pods -A -l {_EXPORTER} -o wide",
    UnknownReason.TELEMETRY_LOST: f"kubectl get pods -A -l {_EXPORTER} -o wide",
    UnknownReason.INVALID_SAMPLES: f"kubectl logs -A -l {_EXPORTER} --tail=50 --prefix",
    UnknownReason.UNATTRIBUTED: f"kubectl get daemonsets -A -l {_EXPORTER} -o yaml",
}
_CHECK = {
    UnknownReason.NO_TELEMETRY: "No series has ever named these GPUs' pods: is the exporter running on their nodes, and does it attribute GPUs to pods?",
    UnknownReason.TELEMETRY_LOST: "Series that were there have stopped: exporter, scraper or remote write.",
    UnknownReason.INVALID_SAMPLES: "Impossible values were dropped before any statistic; an exporter or driver restart usually ends them.",
    UnknownReason.UNATTRIBUTED: "GPU series exist but name no pod: the exporter needs Kubernetes mode and access to the kubelet's pod resources.",
}
_CONTAINER_INSIGHTS = "cloudwatch/GetMetricData"
_ADD_ONS = {
    "prometheus": "amazon-sagemaker-hyperpod-observability",
    _CONTAINER_INSIGHTS: "amazon-cloudwatch-observability",
}
"""Which add-on brings the metrics of each source."""

_LEVEL = "metricsProvider.acceleratedComputeMetrics.level"


def detect(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> Detection:
    """Find where telemetry fails.

    Parameters
    ----------
    snapshot : Snapshot
        Allocated accelerators, and the invalid samples that were dropped.
    memory : Memory
        Devices seen so far, and since when each reason has been seen.
    cluster : ClusterPolicy
        Thresholds.

    Returns
    -------
    Detection
        At most one finding a reason. A refused call is an unknown line, not a finding: what could
        not be asked is not known to be lost.
    """
    refused = refusals(snapshot, NAME, blind=("kubernetes/pods", snapshot.metrics))
    if any(line.blind for line in refused):
        return Detection(memory=memory, unknown=refused)
    judged = [
        one for one in judge_snapshot(snapshot, cluster) if one.verdict.state is not State.YOUNG
    ]
    devices = _devices(snapshot, memory)
    since: dict[str, datetime] = {}
    findings = []
    for reason in _ACTIONS:
        dark = [one for one in judged if one.verdict.reason is reason]
        if not dark and not (reason is UnknownReason.INVALID_SAMPLES and snapshot.invalid):
            continue
        since[reason.value] = memory.telemetry_since.get(
            reason.value, _began(reason, dark, memory, snapshot)
        )
        findings.append(_finding(reason, dark, judged, since[reason.value], snapshot, cluster))
    return Detection(
        memory=replace(memory, devices=devices, telemetry_since=since),
        findings=tuple(findings),
        unknown=refused,
    )


def _devices(snapshot: Snapshot, memory: Memory) -> tuple[Device, ...]:
    """Remember which devices each live pod has been seen to hold, and when last."""
    known = {(d.pod_uid, d.uuid, d.mig): d for d in memory.devices}
    kept = []
    for accelerator in snapshot.accelerators:
        if accelerator.uuid is None:
            continue
        before = known.get((accelerator.holder.pod_uid, accelerator.uuid, accelerator.mig))
        seen = accelerator.last_sample or (before.seen if before else None)
        kept.append(
            Device(
                node=accelerator.node,
                uuid=accelerator.uuid,
                mig=accelerator.mig,
                pod_uid=accelerator.holder.pod_uid,
                seen=seen or accelerator.holder.since,
            )
        )
    return tuple(kept)


def _began(
    reason: UnknownReason, dark: Sequence[Judged], memory: Memory, snapshot: Snapshot
) -> datetime:
    """When it began: a lost series with its last sample, a missing one with its pod."""
    if reason is UnknownReason.NO_TELEMETRY:
        return min(one.accelerator.holder.since for one in dark)
    if reason is UnknownReason.TELEMETRY_LOST:
        keys = {(one.accelerator.holder.pod_uid, one.accelerator.uuid) for one in dark}
        seen = [d.seen for d in memory.devices if (d.pod_uid, d.uuid) in keys]
        return min(seen, default=snapshot.window_end)
    if reason is UnknownReason.INVALID_SAMPLES:
        return min((i.first for i in snapshot.invalid if i.first), default=snapshot.window_end)
    return snapshot.window_end


def _finding(
    reason: UnknownReason,
    dark: Sequence[Judged],
    judged: Sequence[Judged],
    since: datetime,
    snapshot: Snapshot,
    cluster: ClusterPolicy,
) -> Finding:
    return Finding(
        detector=NAME,
        subject=f"Cluster/{snapshot.cluster}",
        reason=reason.value,
        severity=_severity(reason, dark, judged),
        team=None,
        since=since,
        gpus=tidy(_concerned(reason, dark, snapshot)),
        gpu_hours=None,
        cost_usd=None,
        action=_action(reason, snapshot, cluster),
        damping_minutes=cluster.thresholds.telemetry.damping_minutes,
        one_reason=False,
        evidence=_evidence(reason, dark, judged, snapshot),
    )


def _concerned(reason: UnknownReason, dark: Sequence[Judged], snapshot: Snapshot) -> float:
    """Count accelerators; dropped samples concern also those whose verdict survived them."""
    if reason is not UnknownReason.INVALID_SAMPLES:
        return size(dark)
    concerned = {one.accelerator.key for one in dark}
    held = sum(
        one.fraction
        for one in snapshot.accelerators
        if one.key in concerned or any(w.invalid for w in (*one.windows, *one.tensor, *one.power))
    )
    # Devices that nobody holds, or whose memory samples alone were dropped, are in no window.
    return max([held, *(float(line.accelerators) for line in snapshot.invalid)])


def _severity(reason: UnknownReason, dark: Sequence[Judged], judged: Sequence[Judged]) -> Severity:
    if reason is UnknownReason.NO_TELEMETRY:
        return Severity.WARN
    if reason is UnknownReason.TELEMETRY_LOST:
        # The whole cluster: nothing that ever had telemetry still has it.
        had = [one for one in judged if one.verdict.reason is not UnknownReason.NO_TELEMETRY]
        return Severity.PAGE if len(dark) == len(had) else Severity.INFO
    return Severity.INFO


def _evidence(
    reason: UnknownReason,
    dark: Sequence[Judged],
    judged: Sequence[Judged],
    snapshot: Snapshot,
) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "accelerators": [
            {
                "node": one.accelerator.node,
                "uuid": one.accelerator.uuid,
                "mig": one.accelerator.mig,
                "namespace": one.accelerator.holder.namespace,
                "pod": one.accelerator.holder.pod,
            }
            for one in dark
        ],
        "workloads": sorted({one.accelerator.holder.owner.subject for one in dark}),
        "judged_gpus": tidy(size(judged)),
        "share": tidy(size(dark) / size(judged)) if judged else None,
        "what_to_check": _what_to_check(reason, snapshot),
        "add_on": _add_on(snapshot),
    }
    if reason is UnknownReason.INVALID_SAMPLES:
        evidence["dropped"] = {line.metric: line.samples for line in snapshot.invalid}
    return evidence


def _action(reason: UnknownReason, snapshot: Snapshot, cluster: ClusterPolicy) -> str:
    if snapshot.metrics == _CONTAINER_INSIGHTS:
        # Its agent is the add-on's: what it does not publish, its configuration leaves out.
        return (
            f"aws eks describe-addon --region {quote(cluster.region)} "
            f"--cluster-name {quote(cluster.eks_name)} --addon-name {_ADD_ONS[snapshot.metrics]}"
        )
    return _ACTIONS[reason]


def _what_to_check(reason: UnknownReason, snapshot: Snapshot) -> str:
    """Say what usually is the cause, and what the add-on's own settings say of it."""
    add_on = _installed(snapshot)
    if snapshot.control_plane.add_ons is not None and add_on is None:
        return f"{_CHECK[reason]} The add-on {_ADD_ONS[snapshot.metrics]} is not installed."
    if add_on and add_on.settings.get(_LEVEL) == "DISABLED":
        return f"{_CHECK[reason]} The add-on {add_on.name} has {_LEVEL} DISABLED."
    if add_on and add_on.status not in {"ACTIVE", None}:
        return f"{_CHECK[reason]} The add-on {add_on.name} is {add_on.status}."
    return _CHECK[reason]


def _installed(snapshot: Snapshot) -> AddOn | None:
    name = _ADD_ONS[snapshot.metrics]
    return next((one for one in snapshot.control_plane.add_ons or () if one.name == name), None)


def _add_on(snapshot: Snapshot) -> dict[str, Any] | None:
    """Give the add-on that brings the metrics, as far as it was read."""
    found = _installed(snapshot)
    if found is None:
        return None
    return {
        "name": found.name,
        "version": found.version,
        "status": found.status,
        "settings": found.settings,
    }
