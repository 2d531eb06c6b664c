"""A job as Kueue shows it at any moment, from the times at which it was admitted and preempted."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from steward.cluster.accelerators import Owner
from steward.cluster.checkpoints import CheckpointEvidence, Look, LookStatus, Written, WrittenBy
from steward.cluster.kueue import Condition, Evictions, KueueEvent, Workload
from steward.cluster.memory import Memory
from steward.cluster.policy import ClusterPolicy, InstanceGroup, PreemptionLimits, Thresholds
from steward.cluster.snapshot import PartStatus
from steward.detect.preemption import detect
from tests.builders import NOON, a_cluster, a_part, a_snapshot

NS = "hyperpod-ns-research"
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
DAY = 24 * HOUR
TICK = 5 * MINUTE
CAUSE = "InCohortReclamation"
P5 = InstanceGroup(instance_type="ml.p5.48xlarge", count=4, accelerators_per_instance=8)
CLUSTER = a_cluster(capacity=(P5,))
EMPTY = Memory(cluster="ml-shared-01")
SUBJECT = f"PyTorchJob/{NS}/train"
WHY = {
    "InClusterQueue": "prioritization in the ClusterQueue",
    "InCohortReclamation": "reclamation within the cohort",
    "InCohortFairSharing": "Fair Sharing within the cohort",
    "InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
}


def message(uid: str = "uid-urgent", job: str = "job-urgent", cause: str = CAUSE) -> str:
    return (
        f"Preempted to accommodate a workload (UID: {uid}, JobUID: {job}) due to {WHY[cause]}; "
        "preemptor path: /pool/hyperpod-ns-speech-clusterqueue; "
        "preemptee path: /pool/hyperpod-ns-research-clusterqueue"
    )


def a_condition(kind: str, since: datetime, **changes: Any) -> Condition:
    given: dict[str, Any] = {
        "type": kind,
        "status": True,
        "reason": kind,
        "message": "",
        "since": since,
    }
    return Condition(**(given | changes))


@dataclass
class Kueue:
    """A Workload's life: runs from admission to preemption; the last may still go on (None)."""

    runs: list[tuple[datetime, datetime | None]] = field(default_factory=list)
    name: str = "train"
    uid: str = "uid-train"
    created: datetime = NOON - 24 * HOUR
    gpus: float = 8.0
    counts: bool = True
    counter_lost: datetime | None = None
    message: str = field(default_factory=message)
    cause: str = CAUSE
    finished: datetime | None = None
    changes: dict[str, Any] = field(default_factory=dict)

    def ended(self, now: datetime) -> list[datetime]:
        return [end for _, end in self.runs if end is not None and end <= now]

    def counter(self, now: datetime) -> int:
        since = self.counter_lost if self.counter_lost and self.counter_lost <= now else None
        return len([end for end in self.ended(now) if since is None or end > since])

    def at(self, now: datetime) -> Workload:
        begun = [run for run in self.runs if run[0] <= now]
        ended = self.ended(now)
        running = bool(begun) and (begun[-1][1] is None or begun[-1][1] > now)
        over = self.finished is not None and self.finished <= now
        past = sum((end - start).total_seconds() for start, end in begun if end and end <= now)
        counted = self.counter(now)
        given: dict[str, Any] = {
            "namespace": NS,
            "name": f"pytorchjob-{self.name}-{self.uid}",
            "uid": self.uid,
            "job_uid": f"job-of-{self.uid}",
            "created": self.created,
            "queue": f"{NS}-localqueue",
            "priority": 25,
            "priority_class": "experimentation-priority",
            "active": True,
            "owner": Owner(kind="PyTorchJob", namespace=NS, name=self.name),
            "cluster_queue": f"{NS}-clusterqueue" if running else None,
            "requests": {"nvidia.com/gpu": self.gpus, "cpu": 4.0},
            "assigned": (
                {"ml.p5.48xlarge": {"nvidia.com/gpu": self.gpus}} if running and not over else {}
            ),
            "conditions": tuple(self._conditions(begun, ended, running=running, over=over)),
            "evictions": (
                (Evictions(reason="Preempted", underlying_cause="", count=counted),)
                if self.counts and counted
                else ()
            ),
            "past_seconds": int(past) if ended else None,  # Kueue: none before the first end
        }
        return Workload(**(given | self.changes))

    def _conditions(self, begun, ended, *, running, over):
        if over:
            yield a_condition("Finished", self.finished, reason="Succeeded")
        if running:
            yield a_condition("QuotaReserved", begun[-1][0])
            yield a_condition("Admitted", begun[-1][0])
        if not ended:
            return
        if running:
            back = {"status": False, "reason": "QuotaReserved"}
            back["message"] = f"Previously: {self.message}"
            yield a_condition("Evicted", begun[-1][0], **back)
            yield a_condition("Preempted", begun[-1][0], **back)
        else:
            told = {"message": self.message}
            yield a_condition("QuotaReserved", ended[-1], status=False, reason="Pending")
            yield a_condition("Admitted", ended[-1], status=False, reason="NoReservation")
            yield a_condition("Evicted", ended[-1], reason="Preempted", **told)
            yield a_condition("Preempted", ended[-1], reason=self.cause, **told)

    def events(self, now: datetime) -> tuple[KueueEvent, ...]:
        """Of the last hour, in both of Kueue's words for it."""
        return tuple(
            an_event(self, end + lag * timedelta(seconds=1), reason)
            for end in self.ended(now)
            if now - end < HOUR
            for lag, reason in ((0, "EvictedDueToPreempted"), (1, "Preempted"))
        )


def an_event(job: Kueue, when: datetime, reason: str = "Preempted", **changes: Any) -> KueueEvent:
    given: dict[str, Any] = {
        "namespace": NS,
        "workload": f"pytorchjob-{job.name}-{job.uid}",
        "workload_uid": job.uid,
        "reason": reason,
        "message": job.message,
        "at": when,
        "count": 1,
    }
    return KueueEvent(**(given | changes))


def seen(now: datetime, *workloads: Workload, **changes: Any):
    """A snapshot of Workloads; refuse a part with `refused`, leave Workloads out with `hidden`."""
    refused = changes.pop("refused", {})
    hidden = changes.pop("hidden", ())
    names = {"kubernetes/workloads", "kubernetes/events", "kubernetes/pytorchjobs", *refused}
    parts = tuple(a_part(name, refused.get(name, PartStatus.OK)) for name in sorted(names))
    parts = tuple(
        part
        if part.name != "kubernetes/workloads"
        else type(part)(name=part.name, status=part.status, at=now, left_out=tuple(hidden))
        for part in parts
    )
    return a_snapshot(at=now, workloads=workloads, parts=parts, **changes)


def told(snapshots, memory: Memory = EMPTY, cluster: ClusterPolicy = CLUSTER):
    """Fold snapshots one after the other; the last detection."""
    detection = None
    for snapshot in snapshots:
        detection = detect(snapshot, memory, cluster)
        memory = detection.memory
    assert detection is not None
    return detection


def evidence(
    job: Kueue, evicted: datetime, *looks: Look, told: tuple[Written, ...] = ()
) -> CheckpointEvidence:
    return CheckpointEvidence(workload_uid=job.uid, evicted=evicted, looks=looks, told=told)


def written(when: datetime, by: WrittenBy = WrittenBy.STORAGE) -> Written:
    return Written(uri=f"s3://bkt/train/{by.value}", at=when, by=by)


def a_look(newest: Written | None = None, status: LookStatus = LookStatus.OK) -> Look:
    return Look(uri="s3://bkt/train/", status=status, newest=newest)


def runs_of(minutes, *ends):
    """Runs of the same length, each ended by a preemption at one of these times."""
    return [(end - minutes * MINUTE, end) for end in ends]


def ticks(job, *times, **changes):
    return [seen(when, job.at(when), **changes) for when in times]


def with_limits(**changes):
    limits = Thresholds(preemptions=PreemptionLimits(**changes))
    return a_cluster(capacity=(P5,), thresholds=limits)


ONCE = with_limits(count=1)
