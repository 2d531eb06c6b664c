"""The steward's own troubles, told as findings: a cluster that cannot be read, a detector that failed.

They live and are shown as other findings are, so that whoever relies on the cards learns that there
may be none.
"""

from copy import replace

from steward.cluster.findings import DetectorStatus, Evaluation, Finding
from steward.cluster.policy import Severity

DETECTOR = "steward"
UNREACHABLE = "cluster_unreachable"
FAILED = "detector_failed"

DAMPING_MINUTES = 15
"""As long as an alert may be unknown before it says so."""

_EYES = frozenset({"idle_gpus", "pending", "capacity"})
"""Detectors that between them look at every part of a cluster: where all are blind, nothing is seen."""


def added(evaluation: Evaluation) -> Evaluation:
    """Add what the steward has to say of itself to what its detectors say."""
    found = [_failed(evaluation, name) for name, s in evaluation.detectors.items() if _down(s)]
    blind = {line.detector for line in evaluation.unknown if line.blind}
    refused = sorted({line.subject for line in evaluation.unknown if line.blind})
    if blind >= _EYES and not any(_down(status) for status in evaluation.detectors.values()):
        found.append(_unreachable(evaluation, refused))
    return replace(
        evaluation,
        detectors={**evaluation.detectors, DETECTOR: DetectorStatus.EVALUATED},
        findings=(*evaluation.findings, *found),
    )


def _down(status: DetectorStatus) -> bool:
    return status is DetectorStatus.FAILED


def _unreachable(evaluation: Evaluation, refused: list[str]) -> Finding:
    return _finding(
        evaluation,
        UNREACHABLE,
        f"Cluster/{evaluation.cluster}",
        "Check the access entry of the steward's role, its network path and the cluster itself "
        "(docs/access): nothing of this cluster can be judged.",
        {"refused": refused},
    )


def _failed(evaluation: Evaluation, name: str) -> Finding:
    return _finding(
        evaluation,
        FAILED,
        f"Detector/{name}",
        "Look for 'detector failed' in the log of evaluate_snapshot, and report it with the "
        "recording that `make fetch-tick` makes of this tick.",
        {},
    )


def _finding(
    evaluation: Evaluation, reason: str, subject: str, action: str, evidence: dict[str, object]
) -> Finding:
    return Finding(
        detector=DETECTOR,
        subject=subject,
        reason=reason,
        severity=Severity.WARN,
        team=None,
        since=evaluation.at,
        gpus=0,
        gpu_hours=None,
        cost_usd=None,
        action=action,
        evidence=evidence,
        damping_minutes=DAMPING_MINUTES,
        one_reason=False,
    )
