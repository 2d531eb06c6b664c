"""Findings and evaluations with defaults, and the timeline that a list of them makes."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from steward.alerts.lifecycle import advance
from steward.alerts.model import Alert, ReconcilerState
from steward.cluster.accelerators import UnknownReason
from steward.cluster.findings import (
    Cleared,
    DetectorStatus,
    Evaluation,
    Finding,
    Resolution,
    Unknown,
)
from steward.cluster.policy import ClusterPolicy, Severity
from tests.builders import a_cluster, at

SUBJECT = "PyTorchJob/hyperpod-ns-research/sweep-a"
KEY = f"idle_gpus|{SUBJECT}|idle"
JUDGED = dict.fromkeys(
    ("idle_gpus", "borrowing", "preemptions", "pending", "telemetry", "capacity", "governance"),
    DetectorStatus.EVALUATED,
)


def a_finding(**changes: Any) -> Finding:
    """One of eight GPUs of sweep-a, idle since nine."""
    given: dict[str, Any] = {
        "detector": "idle_gpus",
        "subject": SUBJECT,
        "reason": "idle",
        "severity": Severity.WARN,
        "team": "research",
        "owner": "alice",
        "since": at("09:00"),
        "gpus": 1.0,
        "gpu_hours": 3.0,
        "cost_usd": 24.0,
        "action": "kubectl -n hyperpod-ns-research exec sweep-a-0 -- nvidia-smi",
        "parts": ("uid-sweep/GPU-1",),
        "evidence": {
            "accelerators": [
                {
                    "node": "hyperpod-i-0a",
                    "uuid": "GPU-1",
                    "mig": None,
                    "pod": "sweep-a-0",
                    "idle_since": "2026-11-05T09:00:00Z",
                    "at_least": False,
                    "held_bytes": 0,
                    "gpu_hours": 3.0,
                }
            ],
            "coverage": 0.983333,
            "samples": {"present": 59, "expected": 60, "invalid": 0},
            "window_minutes": 60,
            "activity_metric": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
            "activity_max": 0.0,
            "activity_limit": 0.01,
            "at_least": False,
            "job_gpus": 8,
            "busy": 7,
            "idle_held": 0,
            "unknown": 0,
            "instance_type": "ml.p5.48xlarge",
            "price": {"usd_per_gpu_hour": 8, "source": "a list", "date": "2026-09-01"},
            "workload": "pytorchjob-sweep-a-a1b2c",
            "queue": "hyperpod-ns-research-localqueue",
            "priority_class": "experimentation",
            "created_by": "alice",
        },
    }
    return Finding(**(given | changes))


def lost_telemetry(**changes: Any) -> Finding:
    """A damped finding: telemetry of two GPUs has stopped."""
    given: dict[str, Any] = {
        "detector": "telemetry",
        "subject": "Cluster/ml-shared-01",
        "reason": "telemetry_lost",
        "severity": Severity.WARN,
        "team": None,
        "owner": None,
        "gpus": 2.0,
        "gpu_hours": None,
        "cost_usd": None,
        "action": "kubectl get pods -A -l app.kubernetes.io/name=dcgm-exporter -o wide",
        "parts": (),
        "damping_minutes": 10,
        "one_reason": False,
        "evidence": {
            "accelerators": [
                {
                    "node": "hyperpod-i-0a",
                    "uuid": f"GPU-{n}",
                    "mig": None,
                    "namespace": "hyperpod-ns-research",
                    "pod": "sweep-a-0",
                }
                for n in (1, 2)
            ],
            "workloads": [SUBJECT],
            "judged_gpus": 8,
            "share": 0.25,
            "what_to_check": "Series that were there have stopped.",
        },
    }
    return a_finding(**(given | changes))


def an_unknown(**changes: Any) -> Unknown:
    given: dict[str, Any] = {
        "detector": "idle_gpus",
        "subject": SUBJECT,
        "reason": UnknownReason.LOW_COVERAGE,
    }
    return Unknown(**(given | changes))


def ended(resolution: Resolution = Resolution.ACTIVE_AGAIN, **changes: Any) -> Cleared:
    return Cleared(resolution=resolution, finding=a_finding(**changes))


def an_evaluation(when: datetime | str, *findings: Finding, **changes: Any) -> Evaluation:
    given: dict[str, Any] = {
        "snapshot": "snapshots/1",
        "cluster": "ml-shared-01",
        "scope": "tick",
        "at": at(when) if isinstance(when, str) else when,
        "detectors": JUDGED,
        "findings": findings,
        "cleared": (),
        "unknown": (),
    }
    return Evaluation(**(given | changes))


def failed(when: str) -> Evaluation:
    """An evaluation whose idle_gpus detector failed."""
    return an_evaluation(when, detectors={**JUDGED, "idle_gpus": DetectorStatus.FAILED})


def fold(
    evaluations: Iterable[Evaluation],
    cluster: ClusterPolicy | None = None,
    state: ReconcilerState | None = None,
) -> ReconcilerState:
    folded = state or ReconcilerState(cluster="ml-shared-01")
    for evaluation in evaluations:
        folded = advance(folded, evaluation, cluster or a_cluster())
    return folded


def after(*evaluations: Evaluation, key: str = KEY) -> Alert:
    """The alert that a timeline leaves."""
    return fold(evaluations).alerts[key]
