"""Preempted workloads, and ports that say what they were asked."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from steward.cluster.accelerators import Owner
from steward.cluster.checkpoints import Written, WrittenBy
from steward.cluster.kueue import Condition, Workload
from steward.cluster.policy import CheckpointLocation, ClusterPolicy
from steward.errors import StewardError
from tests.builders import NOON

NS = "hyperpod-ns-research"


def a_condition(**changes: Any) -> Condition:
    given: dict[str, Any] = {
        "type": "Evicted",
        "status": True,
        "reason": "Preempted",
        "message": "",
        "since": NOON - timedelta(minutes=3),
    }
    return Condition(**(given | changes))


def a_workload(job: str = "train", *conditions: Condition, **changes: Any) -> Workload:
    owner = Owner(kind="PyTorchJob", namespace=NS, name=job)
    given: dict[str, Any] = {
        "namespace": NS,
        "name": f"pytorchjob-{job}-1a2b3",
        "uid": f"uid-{job}",
        "created": NOON - timedelta(hours=6),
        "queue": f"{NS}-localqueue",
        "priority": 25,
        "priority_class": "experimentation-priority",
        "active": True,
        "owner": owner,
        "cluster_queue": None,
        "requests": {"nvidia.com/gpu": 8.0},
        "assigned": {},
        "conditions": conditions or (a_condition(),),
    }
    return Workload(**(given | changes))


def a_checkpoint(
    minutes_ago: float = 10, by: WrittenBy = WrittenBy.STORAGE, **more: Any
) -> Written:
    given: dict[str, Any] = {"uri": "s3://bkt/x", "at": NOON - timedelta(minutes=minutes_ago)}
    return Written(**(given | {"by": by} | more))


@dataclass
class FakeStorage:
    """Sources of which only checkpoints may be asked: the newest by the location's URI."""

    newest_of: dict[str, Written | StewardError] = field(default_factory=dict)
    asked: list[tuple[str, str, datetime]] = field(default_factory=list)
    made: list[str] = field(default_factory=list)

    def checkpoints(self, cluster: ClusterPolicy) -> "FakeStorage":
        self.made.append(cluster.name)
        return self

    def newest(self, location: CheckpointLocation, job: str, before: datetime) -> Written | None:
        self.asked.append((location.uri, job, before))
        found = self.newest_of.get(location.uri)
        if isinstance(found, StewardError):
            raise found
        return found


@dataclass
class FakeTold:
    """What was told, by job; `broken` is raised instead."""

    known: dict[tuple[str, str, str], tuple[Written, ...]] = field(default_factory=dict)
    broken: StewardError | None = None
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def told(self, cluster: str, namespace: str, job: str) -> tuple[Written, ...]:
        self.asked.append((cluster, namespace, job))
        if self.broken:
            raise self.broken
        return self.known.get((cluster, namespace, job), ())

    def record(self, cluster: str, namespace: str, job: str, *written: Written) -> None:
        self.asked.append((cluster, namespace, job))
        if self.broken and job == "unlucky":
            raise self.broken
        before = self.known.get((cluster, namespace, job), ())
        self.known[cluster, namespace, job] = (*before, *written)


def uris(written: Iterable[Written]) -> list[str]:
    return [one.uri for one in written]
