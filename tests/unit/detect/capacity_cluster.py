"""The cluster of the capacity tests: four ml.p5.48xlarge of one group, and the quotas on them."""

from typing import Any

from steward.cluster.control_plane import (
    ClusterEvent,
    ClusterNode,
    ControlPlane,
    InstanceGroupState,
)
from steward.cluster.instance_types import InstanceType, KnownFrom
from steward.cluster.kueue import ClusterQueue, LocalQueue, QuotaRow, ResourceFlavor
from steward.cluster.memory import Detection, Memory
from steward.cluster.policy import InstanceGroup, SharingStrategy
from steward.cluster.snapshot import Node, PartStatus, Snapshot
from steward.detect.capacity import detect
from tests.builders import NOON, a_cluster, a_part, a_snapshot, a_team

P5 = "ml.p5.48xlarge"
CPU = "ml.m5.4xlarge"
LABEL = "node.kubernetes.io/instance-type"
EMPTY = Memory(cluster="ml-shared-01")
PARTS = (
    "kubernetes/nodes",
    "kubernetes/clusterqueues",
    "kubernetes/cohorts",
    "kubernetes/resourceflavors",
    "sagemaker/DescribeCluster",
    "sagemaker/ListClusterNodes",
    "sagemaker/ListClusterEvents",
)
TYPES = (
    InstanceType(name=P5, accelerators=8, known_from=KnownFrom.NODE, nodes=4),
    InstanceType(name=CPU, accelerators=None, known_from=KnownFrom.UNKNOWN, nodes=1),
)
CLUSTER = a_cluster(
    capacity=(InstanceGroup(instance_type=P5, count=4, accelerators_per_instance=8),),
    teams=(
        a_team("platform-mlops", accelerators=4),
        a_team("research", accelerators=14),
        a_team(
            "product-genai",
            accelerators=10,
            strategy=SharingStrategy.DONT_LEND,
            borrow_limit_percent=None,
        ),
    ),
)


def node(name: str = "a", /, **changes: Any) -> Node:
    given: dict[str, Any] = {
        "name": f"hyperpod-i-{name}",
        "instance_type": P5,
        "accelerators": 8,
        "ready": True,
        "schedulable": True,
        "health": "Schedulable",
        "allocatable": {"cpu": 190.0, "memory": 2.0e12, "nvidia.com/gpu": 8.0},
        "since": NOON.replace(hour=6),
        "labels": {LABEL: P5},
    }
    return Node(**(given | changes))


def instance(name: str = "a", status: str = "Running", **changes: Any) -> ClusterNode:
    given: dict[str, Any] = {
        "instance_id": f"i-{name}",
        "group": "gpu",
        "instance_type": P5,
        "status": status,
        "message": "",
    }
    return ClusterNode(**(given | changes))


def group(current: int = 4, target: int = 4, **changes: Any) -> InstanceGroupState:
    given: dict[str, Any] = {
        "name": "gpu",
        "status": "InService",
        "current": current,
        "target": target,
        "instance_types": (P5,),
    }
    return InstanceGroupState(**(given | changes))


def event(number: int, when: Any, instance_id: str | None = "i-d", **changes: Any) -> ClusterEvent:
    given: dict[str, Any] = {
        "id": f"event-{number}",
        "at": when,
        "level": "Error",
        "resource_type": "Instance" if instance_id else "InstanceGroup",
        "group": "gpu",
        "instance_id": instance_id,
        "description": "text of the service",
    }
    return ClusterEvent(**(given | changes))


def queue(name: str, nominal: float, resource: str = "nvidia.com/gpu", **changes: Any) -> Any:
    """A ClusterQueue with a quota of one resource, beside the CPUs that HyperPod gives it."""
    given: dict[str, Any] = {
        "name": f"hyperpod-ns-{name}-clusterqueue",
        "cohort": "shared-pool",
        "rows": (row(nominal, resource), row(0.0, "nvidia.com/gpu", CPU), row(96.0, "cpu", CPU)),
        "conditions": (),
    }
    return ClusterQueue(**(given | changes))


def row(nominal: float, resource: str = "nvidia.com/gpu", flavor: str = P5) -> QuotaRow:
    return QuotaRow(
        flavor=flavor,
        resource=resource,
        nominal=nominal,
        borrowing_limit=None,
        lending_limit=None,
        reserved=None,
        used=None,
        borrowed=None,
    )


def local_queue(team: str) -> LocalQueue:
    namespace = f"hyperpod-ns-{team}"
    return LocalQueue(
        namespace=namespace,
        name=f"{namespace}-localqueue",
        cluster_queue=f"{namespace}-clusterqueue",
        conditions=(),
    )


QUEUES = (queue("platform-mlops", 4.0), queue("research", 14.0), queue("product-genai", 10.0))
"""4 + 14 + 10 = 28, as in the example policy; product-genai neither lends nor borrows."""

FLAVORS = (ResourceFlavor(name=P5, node_labels={LABEL: P5}), ResourceFlavor(name=CPU))
LETTERS = ("a", "b", "c", "d")
NODES = tuple(node(letter) for letter in LETTERS)
ABC = NODES[:3]
D = "Node/hyperpod-i-d"
FLAVOR = f"ResourceFlavor/{P5}"


def with_d(**changes: Any) -> tuple[Node, ...]:
    """Four nodes, the last of them changed."""
    return (*ABC, node("d", **changes))


def running(*names: str) -> tuple[ClusterNode, ...]:
    return tuple(instance(name) for name in names)


def taken(
    nodes: tuple[Node, ...] = NODES,
    instances: tuple[ClusterNode, ...] | None = None,
    groups: tuple[InstanceGroupState, ...] | None = None,
    **changes: Any,
) -> Snapshot:
    """A snapshot; every node is a running instance of the group, which wants four, if not given."""
    if instances is None:
        instances = tuple(
            instance(one.name.removeprefix("hyperpod-i-"), instance_type=one.instance_type)
            for one in nodes
        )
    plane = ControlPlane(
        node_recovery="Automatic",
        groups=(group(current=len(instances)),) if groups is None else groups,
        nodes=instances,
        events=changes.pop("events", ()),
    )
    refused = {
        f"kubernetes/{n}" if "/" not in n else n: PartStatus.DENIED
        for n in changes.pop("denied", ())
    }
    given: dict[str, Any] = {
        "nodes": nodes,
        "control_plane": plane,
        "parts": tuple(a_part(name, refused.get(name, PartStatus.OK)) for name in PARTS),
        "instance_types": TYPES,
        "cluster_queues": QUEUES,
        "local_queues": tuple(local_queue(team.name) for team in CLUSTER.teams),
        "resource_flavors": FLAVORS,
    }
    return a_snapshot(**(given | changes))


def run(*snapshots: Snapshot, memory: Memory = EMPTY) -> list[Detection]:
    """Evaluate snapshots one after the other."""
    found = []
    for snapshot in snapshots:
        found.append(detect(snapshot, memory, CLUSTER))
        memory = found[-1].memory
    return found


def of(detection: Detection, reason: str) -> list[Any]:
    return [finding for finding in detection.findings if finding.reason == reason]


def ended(detection: Detection) -> dict[str, str]:
    return {one.finding.subject: one.resolution.value for one in detection.cleared}
