"""Evaluate a snapshot: a fold of (snapshot, memory, policy) into (evaluation, memory)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import replace
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.accelerators import UnknownReason
from steward.cluster.findings import Cleared, DetectorStatus, Evaluation, Finding, Unknown
from steward.cluster.idle_findings import NAME as IDLE_GPUS
from steward.cluster.memory import Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import Snapshot
from steward.detect import DETECTORS, Detector
from steward.errors import ConflictError
from steward.events import SNAPSHOT_EVALUATED
from steward.telemetry import logger

if TYPE_CHECKING:
    from steward.ports import Bus, EvaluationQueue, EvaluationStore, MemoryStore, SnapshotStore

_TRIES = 3
"""Folds over a memory that others write too: the FIFO group makes a second rare, a third rarer."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a snapshot.

    Attributes
    ----------
    key : str or None
        Of the evaluation; None where the snapshot was dropped, with the reason.
    applied : bool
        Whether it was evaluated now: the counts of a repeat, or of one that was dropped, say nothing.
    coverage : float or None
        As :func:`coverage` says.
    """

    key: str | None
    reason: str
    applied: bool = False
    findings: int = 0
    unknown: int = 0
    failed: tuple[str, ...] = ()
    coverage: float | None = None


def fold(
    key: str,
    snapshot: Snapshot,
    memory: Memory,
    cluster: ClusterPolicy,
    detectors: Sequence[tuple[str, Detector]] = DETECTORS,
) -> tuple[Evaluation, Memory]:
    """Run every detector, each in its own guard.

    A detector that fails leaves its memory and, because it is not marked evaluated, its alerts as
    they are; the others go on.
    """
    statuses: dict[str, DetectorStatus] = {}
    findings: list[Finding] = []
    cleared: list[Cleared] = []
    unknown: list[Unknown] = []
    for name, detect in detectors:
        try:
            detection = detect(snapshot, memory, cluster)
        except Exception:  # noqa: BLE001 - the guard: a bug in one detector must not silence the rest
            logger.exception("detector failed", detector=name, snapshot=key)
            statuses[name] = DetectorStatus.FAILED
            unknown.append(
                Unknown(
                    detector=name,
                    subject=f"Cluster/{snapshot.cluster}",
                    reason=UnknownReason.FAILED,
                    blind=True,
                )
            )
            continue
        statuses[name] = DetectorStatus.EVALUATED
        memory = detection.memory
        findings += detection.findings
        cleared += detection.cleared
        unknown += detection.unknown
    evaluation = Evaluation(
        snapshot=key,
        cluster=snapshot.cluster,
        scope=snapshot.scope,
        at=snapshot.at,
        detectors=statuses,
        findings=tuple(findings),
        cleared=tuple(cleared),
        unknown=tuple(unknown),
    )
    return evaluation, replace(memory, at=snapshot.at)


def coverage(evaluation: Evaluation, snapshot: Snapshot, cluster: ClusterPolicy) -> float | None:
    """Tell which share (0-1) of the accelerators that governed pods hold could be judged.

    A pod younger than the window counts as judged. 0 where the detector was blind or failed; None
    where nothing is held: a share of nothing is no news, good or bad.
    """
    lines = [line for line in evaluation.unknown if line.detector == IDLE_GPUS]
    if any(line.blind for line in lines):
        return 0.0
    governed = set(cluster.namespaces())
    held = sum(a.fraction for a in snapshot.accelerators if a.holder.namespace in governed)
    dark = sum(line.gpus or 0.0 for line in lines if line.team is not None)
    return max(0.0, 1.0 - dark / held) if held else None


def evaluate_snapshot(
    key: str,
    cluster: ClusterPolicy,
    *,
    snapshots: SnapshotStore,
    memories: MemoryStore,
    evaluations: EvaluationStore,
    queue: EvaluationQueue,
    bus: Bus,
) -> Outcome:
    """Fold one snapshot into the cluster's memory, once, and hand its evaluation on.

    The memory's write is what makes a snapshot evaluated. A repeat of the newest one only hands
    its evaluation on again (the reconciler knows what it has seen); an older one is dropped.

    Raises
    ------
    ConflictError
        The memory kept changing underneath; the invocation is to be repeated.
    """
    snapshot = snapshots.get(key)
    for _ in range(_TRIES):
        memory, tag = memories.load(cluster.name)
        if memory.at is not None and snapshot.at <= memory.at:
            stored = (
                evaluations.find(cluster.name, snapshot.at) if snapshot.at == memory.at else None
            )
            if stored is None:
                return Outcome(key=None, reason="not newer than the memory")
            queue.send(cluster.name, stored, snapshot.at)
            return Outcome(key=stored, reason="repeated")
        evaluation, after = fold(key, snapshot, memory, cluster)
        stored = evaluations.put(evaluation)
        try:
            memories.save(after, tag)
        except ConflictError:
            continue
        queue.send(cluster.name, stored, snapshot.at)
        bus.publish(
            SNAPSHOT_EVALUATED,
            {"cluster": cluster.name, "key": stored, "at": snapshot.at.isoformat()},
        )
        return Outcome(
            key=stored,
            reason="evaluated",
            applied=True,
            findings=len(evaluation.findings),
            unknown=len(evaluation.unknown),
            failed=tuple(n for n, s in evaluation.detectors.items() if s is DetectorStatus.FAILED),
            coverage=coverage(evaluation, snapshot, cluster),
        )
    raise ConflictError(f"memory/{cluster.name}: changed {_TRIES} times while {key} was folded in")
