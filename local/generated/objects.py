"""Every Kubernetes object of a generated cluster: where it is listed, and its JSON when asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

from local.generated import queueing
from local.generated.cluster import (
    SYSTEM_NAMESPACES,
    SYSTEM_PODS,
    GeneratedCluster,
    Holder,
    namespace_of,
    uid,
)
from local.generated.listed import SETUP, VERSIONS, Listed, event, manifest, small
from local.generated.manifests import LONG, Text, Value
from steward.cluster.figures import stamp

_IMAGES = Text(
    "["
    + ",".join(
        f'{{"names":["registry.example.com/team/image-{n}@sha256:{uid(n)}{uid(n, n)}",'
        f'"registry.example.com/team/image-{n}:2026.10.{n}"],"sizeBytes":{10**9 + n}}}'
        for n in range(30)
    )
    + "]"
)
_REVISION = "6f7d9c8b54"
_OLD_REVISIONS = 4
_EVENTS_A_NODE = 4


class Objects:
    """The objects of a cluster by resource; written out only when they are asked for."""

    def __init__(self, cluster: GeneratedCluster) -> None:
        self._cluster = cluster
        self._listed = cache(self._list)

    def of(self, resource: str) -> Sequence[Listed]:
        """Return the objects of a resource; none of what this cluster does not use."""
        return self._listed(resource)

    def _list(self, resource: str) -> Sequence[Listed]:
        make = _MAKERS.get(resource)
        return list(make(self._cluster)) if make else ()


def _pods(cluster: GeneratedCluster) -> Iterator[Listed]:
    running = {"status.phase": "Running"}
    for holder in cluster.holders:
        fields = running | {"metadata.name": holder.name, "spec.nodeName": holder.node}
        yield Listed(holder.namespace, fields, partial(_gpu_pod, holder))
    for node in cluster.nodes:
        for number in range(SYSTEM_PODS):
            namespace = SYSTEM_NAMESPACES[number % len(SYSTEM_NAMESPACES)]
            name = f"agent-{number}-{uid(node, number)[:5]}"
            fields = running | {"metadata.name": name, "spec.nodeName": node}
            yield Listed(namespace, fields, partial(_system_pod, namespace, name, node, number))


def _nodes(cluster: GeneratedCluster) -> Iterator[Listed]:
    for name in cluster.nodes:
        values: dict[str, Value] = {"name": name, "uid": uid("Node", name), "created": SETUP}
        values |= {"long": LONG, "images": _IMAGES}
        yield Listed("", {"metadata.name": name}, partial(manifest("node").fill, values))


def _namespaces(cluster: GeneratedCluster) -> Iterator[Listed]:
    for team in cluster.teams:
        labels = {
            "kubernetes.io/metadata.name": namespace_of(team),
            "sagemaker.amazonaws.com/sagemaker-managed-queue": "true",
            "sagemaker.amazonaws.com/quota-allocation-id": team,
        }
        yield small("Namespace", "v1", "", namespace_of(team), labels=labels)
    for name in SYSTEM_NAMESPACES:
        yield small("Namespace", "v1", "", name, labels={"kubernetes.io/metadata.name": name})


def _training_jobs(cluster: GeneratedCluster) -> Iterator[Listed]:
    for queued in cluster.workloads:
        if queued.owner_kind == "PyTorchJob":
            yield small("PyTorchJob", VERSIONS["PyTorchJob"], queued.namespace, queued.owner)


def _deployments(cluster: GeneratedCluster) -> Iterator[Listed]:
    for namespace, name in _serving(cluster):
        yield small("Deployment", "apps/v1", namespace, name)
    for namespace in SYSTEM_NAMESPACES:
        yield small("Deployment", "apps/v1", namespace, "operator")


def _replica_sets(cluster: GeneratedCluster) -> Iterator[Listed]:
    """List the present revision of each Deployment, and the old ones that it keeps."""
    for namespace, name in _serving(cluster):
        for revision in (_REVISION, *(f"old{n}" for n in range(_OLD_REVISIONS))):
            owner = ("Deployment", name)
            yield small("ReplicaSet", "apps/v1", namespace, f"{name}-{revision}", owner=owner)


def _serving(cluster: GeneratedCluster) -> Sequence[tuple[str, str]]:
    pods = (pod for pod in cluster.holders if not pod.training)
    return list(dict.fromkeys((pod.namespace, pod.owner) for pod in pods))


def _events(cluster: GeneratedCluster) -> Iterator[Listed]:
    """Tell of the last hour: admissions of Workloads, and as much of everything else."""
    for queued in cluster.workloads:
        if queued.finished is None:
            reason = "Pending" if queued.pending else "QuotaReserved"
            yield event(queued.namespace, "Workload", queued.name, reason)
    for node in cluster.nodes:
        for number in range(_EVENTS_A_NODE):
            yield event("kube-system", "Pod", f"agent-{number}-{node}", "Pulled")


def _gpu_pod(holder: Holder) -> str:
    kind = "PyTorchJob" if holder.training else "ReplicaSet"
    owner = holder.owner if holder.training else f"{holder.owner}-{_REVISION}"
    return manifest("pod").fill(
        {
            "name": holder.name,
            "namespace": holder.namespace,
            "uid": uid("Pod", holder.namespace, holder.name),
            "created": stamp(holder.born),
            "owner": holder.owner,
            "owner_version": VERSIONS[kind],
            "owner_kind": kind,
            "owner_name": owner,
            "owner_uid": uid(kind, holder.namespace, owner),
            "node": holder.node,
            "gpus": str(holder.gpus),
            "long": LONG,
        }
    )


def _system_pod(namespace: str, name: str, node: str, number: int) -> str:
    return manifest("system_pod").fill(
        {
            "name": name,
            "namespace": namespace,
            "uid": uid("Pod", namespace, name),
            "created": SETUP,
            "owner": f"agent-{number}",
            "owner_uid": uid("DaemonSet", namespace, number),
            "node": node,
            "long": LONG,
        }
    )


_MAKERS: Mapping[str, Callable[[GeneratedCluster], Iterator[Listed]]] = {
    "pods": _pods,
    "nodes": _nodes,
    "namespaces": _namespaces,
    "workloads": queueing.workloads,
    "clusterqueues": queueing.cluster_queues,
    "localqueues": queueing.local_queues,
    "resourceflavors": queueing.flavors,
    "workloadpriorityclasses": queueing.classes,
    "topologies": queueing.topologies,
    "pytorchjobs": _training_jobs,
    "deployments": _deployments,
    "replicasets": _replica_sets,
    "events": _events,
}
