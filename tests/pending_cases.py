"""A cluster with one queue, and workloads that wait in it: a test names what its case is about."""

from copy import replace
from datetime import timedelta
from typing import Any

from steward.cluster.accelerators import Owner
from steward.cluster.kueue import (
    ClusterQueue,
    Condition,
    LocalQueue,
    PodSet,
    QuotaRow,
    ResourceFlavor,
    Workload,
    WorkloadPriorityClass,
)
from steward.cluster.memory import Memory
from steward.cluster.snapshot import Node, PartStatus, Snapshot
from steward.detect.pending import detect
from tests.builders import NOON, a_cluster, a_holder, a_part, a_snapshot, an_accelerator

GPU = "nvidia.com/gpu"
P5 = "ml.p5.48xlarge"
SPACE = "hyperpod-ns-research"
LOCAL, QUEUE = f"{SPACE}-localqueue", f"{SPACE}-clusterqueue"
READ = (
    "workloads",
    "localqueues",
    "clusterqueues",
    "cohorts",
    "resourceflavors",
    "workloadpriorityclasses",
    "nodes",
    "pods",
)


def hours_ago(hours: float) -> Any:
    return NOON - timedelta(hours=hours)


def a_condition(kind: str, *, true: bool = True, **changes: Any) -> Condition:
    given = {"reason": kind, "message": "", "since": hours_ago(3)}
    return Condition(type=kind, status=true, **(given | changes))


def refused_with(message: str) -> Condition:
    """QuotaReserved=False, as the scheduler writes it."""
    return a_condition("QuotaReserved", true=False, reason="Pending", message=message)


def a_workload(name: str = "train", *, message: str | None = None, **changes: Any) -> Workload:
    """Waits since 09:00, three hours ago, for 8 GPUs in one pod."""
    gpus, pods = changes.pop("gpus", 8), changes.pop("pods", 1)
    requests = {GPU: float(gpus), **changes.pop("more", {})}
    owner = Owner(kind="PyTorchJob", namespace=changes.get("namespace", SPACE), name=name)
    given: dict[str, Any] = {
        "namespace": SPACE,
        "name": f"pytorchjob-{name}-a1b2c",
        "uid": f"uid-{name}",
        "created": hours_ago(3),
        "queue": LOCAL,
        "priority": 75,
        "priority_class": "production-training",
        "priority_class_kind": "WorkloadPriorityClass",
        "active": True,
        "owner": owner,
        "owner_chain": (owner,),
        "created_by": "ana",
        "cluster_queue": None,
        "requests": requests,
        "assigned": {},
        "conditions": (refused_with(message),) if message is not None else (),
        "pod_sets": (
            PodSet(name="worker", count=pods, per_pod={k: v / pods for k, v in requests.items()}),
        ),
    }
    return Workload(**(given | changes))


def an_admitted(name: str = "running", *, hours: float = 3, **changes: Any) -> Workload:
    """Holds 8 GPUs of the queue since so many hours."""
    since = hours_ago(hours)
    given: dict[str, Any] = {
        "cluster_queue": QUEUE,
        "assigned": {P5: {GPU: float(changes.get("gpus", 8))}},
        "conditions": (
            a_condition("QuotaReserved", since=since),
            a_condition("Admitted", since=since),
        ),
    }
    return a_workload(name, **(given | changes))


def a_row(nominal: float, reserved: float = 0, **changes: Any) -> QuotaRow:
    given: dict[str, Any] = {
        "flavor": P5,
        "resource": GPU,
        "nominal": nominal,
        "borrowing_limit": None,
        "lending_limit": None,
        "reserved": reserved,
        "used": reserved,
        "borrowed": None,
    }
    return QuotaRow(**(given | changes))


def a_queue(*rows: QuotaRow, **changes: Any) -> ClusterQueue:
    given: dict[str, Any] = {
        "name": QUEUE,
        "cohort": None,
        "rows": rows or (a_row(16),),
        "conditions": (a_condition("Active"),),
    }
    return ClusterQueue(**(given | changes))


def a_local_queue(name: str = LOCAL, namespace: str = SPACE, **changes: Any) -> LocalQueue:
    given: dict[str, Any] = {"cluster_queue": QUEUE, "conditions": (a_condition("Active"),)}
    return LocalQueue(name=name, namespace=namespace, **(given | changes))


def a_node(name: str, gpus: float = 8, **changes: Any) -> Node:
    given: dict[str, Any] = {
        "instance_type": P5,
        "accelerators": 8,
        "ready": True,
        "schedulable": True,
        "health": "Schedulable",
        "allocatable": {GPU: float(gpus), "cpu": 190.0},
    }
    return Node(name=name, **(given | changes))


def in_use(node: str, count: int, name: str = "other") -> tuple[Any, ...]:
    """Accelerators on a node that some other job's pods hold."""
    holder = a_holder(name, pod_uid=f"{name}-{node}")
    return tuple(
        an_accelerator(f"{node}-{index}", node=node, holder=holder) for index in range(count)
    )


def a_world(*workloads: Workload, **changes: Any) -> Snapshot:
    """Everything read, one queue of 16 GPUs with nothing in use, no nodes."""
    refused = changes.pop("refused", {})
    left_out = changes.pop("left_out", {})
    parts = tuple(
        a_part(f"kubernetes/{name}", refused.get(name, PartStatus.OK))
        if name not in left_out
        else replace_left_out(name, left_out[name])
        for name in READ
    )
    given: dict[str, Any] = {
        "parts": (*parts, a_part("prometheus")),
        "workloads": workloads,
        "local_queues": (a_local_queue(),),
        "cluster_queues": (a_queue(),),
        "resource_flavors": (ResourceFlavor(name=P5),),
        "priority_classes": (WorkloadPriorityClass(name="production-training", value=75),),
    }
    held = changes.pop("accelerators", ())
    return a_snapshot(*held, **(given | changes))


def replace_left_out(name: str, left_out: tuple[str, ...]) -> Any:
    return replace(a_part(f"kubernetes/{name}"), left_out=left_out)


CLUSTER = a_cluster()
EMPTY = Memory(cluster="ml-shared-01")
REFUSED = "couldn't assign flavors to pod set worker: "
LACKS_8 = f"{REFUSED}insufficient unused quota for {GPU} in flavor {P5}, 8 more needed"
FULL = (a_queue(a_row(16, reserved=16)),)


PIECES: dict[str, Any] = {
    "nodes": (a_node("a"), a_node("b"), a_node("c")),
    "accelerators": (*in_use("a", 6), *in_use("b", 6), *in_use("c", 6)),
    "cluster_queues": (a_queue(a_row(24, reserved=18)),),
}
"""Six GPUs free, two on each of three nodes."""


def found(snapshot, memory=EMPTY, cluster=CLUSTER):
    """The one finding of a snapshot."""
    (finding,) = detect(snapshot, memory, cluster).findings
    return finding


def reason_of(*workloads, **changes):
    return found(a_world(*workloads, **changes)).reason
