"""Kueue's objects of a generated cluster: Workloads and queues, of the newest API."""

import json
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from local.generated.cluster import FLAVORS, NOW, GeneratedCluster, Queued, namespace_of, uid
from local.generated.listed import SETUP, VERSIONS, Listed, manifest, small
from local.generated.manifests import LONG, Manifest, Text, document, plain
from steward.cluster.figures import stamp

RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "vpc.amazonaws.com/efa")
"""What every queue has a quota of."""

_VERSION = "kueue.x-k8s.io/v1beta2"
_CLASSES = {"inference-serving": 100, "production-training": 75}
_OF_NO_POD = {"owner": "job", "node": ""}
"""What a pod template leaves open."""


def workloads(cluster: GeneratedCluster) -> Iterator[Listed]:
    """List every Workload, finished ones and all."""
    for queued in cluster.workloads:
        named = {"metadata.name": queued.name}
        yield Listed(queued.namespace, named, partial(_workload, queued))


def cluster_queues(cluster: GeneratedCluster) -> Iterator[Listed]:
    """List a queue a team: every flavor, every resource, with quota and usage."""
    quota = _flavors({"nominalQuota": "8", "borrowingLimit": "4"})
    held = Text(json.dumps(_flavors({"total": "8", "borrowed": "0"})))
    covered = [{"coveredResources": list(RESOURCES), "flavors": quota}]
    groups = Text(json.dumps(covered))
    for team in cluster.teams:
        name = f"{namespace_of(team)}-clusterqueue"
        values = {"name": name, "uid": uid(name), "created": SETUP, "long": LONG}
        fill = partial(manifest("cluster_queue").fill, {**values, "groups": groups, "held": held})
        yield Listed("", {"metadata.name": name}, fill)


def local_queues(cluster: GeneratedCluster) -> Iterator[Listed]:
    """List the one queue of each team's namespace."""
    for team in cluster.teams:
        namespace = namespace_of(team)
        spec = {"clusterQueue": f"{namespace}-clusterqueue"}
        yield small("LocalQueue", _VERSION, namespace, f"{namespace}-localqueue", spec=spec)


def flavors(_: GeneratedCluster) -> Iterator[Listed]:
    """List a flavor an instance type."""
    for flavor in FLAVORS:
        spec = {
            "nodeLabels": {"node.kubernetes.io/instance-type": flavor},
            "topologyName": "hyperpod-default",
        }
        yield small("ResourceFlavor", _VERSION, "", flavor, spec=spec)


def classes(_: GeneratedCluster) -> Iterator[Listed]:
    """List the priority classes."""
    for name, value in _CLASSES.items():
        yield small("WorkloadPriorityClass", _VERSION, "", f"{name}-priority", value=value)


def topologies(_: GeneratedCluster) -> Iterator[Listed]:
    """List the one topology."""
    spec = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
    yield small("Topology", _VERSION, "", "hyperpod-default", spec=spec)


def _flavors(amounts: Mapping[str, str]) -> list[dict[str, Any]]:
    resources = [{"name": name, **amounts} for name in RESOURCES]
    return [{"name": flavor, "resources": resources} for flavor in FLAVORS]


def _workload(queued: Queued) -> str:
    template = _template().fill({"gpus": str(queued.gpus_a_pod), **_OF_NO_POD})
    return manifest("workload").fill(
        {
            "name": queued.name,
            "namespace": queued.namespace,
            "uid": uid("Workload", queued.namespace, queued.name),
            "created": stamp(queued.created),
            "owner": queued.owner,
            "owner_version": VERSIONS.get(queued.owner_kind, "v1"),
            "owner_kind": queued.owner_kind,
            "owner_uid": uid(queued.owner_kind, queued.namespace, queued.owner),
            "pods": queued.pods,
            "template": Text(template),
            "status": Text(_status(queued)),
            "long": LONG,
        }
    )


@cache
def _template() -> Manifest:
    return Manifest(document("pod")["spec"])


def _status(queued: Queued) -> str:
    state = "pending" if queued.pending else "finished" if queued.finished else "admitted"
    return _statuses()[state].fill(
        {
            "queue": f"{queued.namespace}-clusterqueue",
            "since": stamp(queued.created),
            "ended": stamp(queued.finished or NOW),
            "pods": queued.pods,
            "gpus": str(queued.pods * queued.gpus_a_pod),
            "flavor": FLAVORS[0],
        }
    )


@cache
def _statuses() -> Mapping[str, Manifest]:
    return {state: Manifest(status) for state, status in plain("workload_status").items()}
