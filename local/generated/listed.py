"""An object of a list, and the small ones that need no manifest of their own."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from local.generated.cluster import NOW, uid
from local.generated.manifests import LONG, Manifest, document, with_managed_fields

SETUP = "2026-09-01T08:00:00Z"
"""When the cluster was set up."""

VERSIONS = {"Deployment": "apps/v1", "PyTorchJob": "kubeflow.org/v1", "ReplicaSet": "apps/v1"}
"""API versions of owners; every other kind is in the core API."""


class Listed(NamedTuple):
    """An object of a list: its namespace, what a field selector may ask of it, and its JSON."""

    namespace: str
    fields: Mapping[str, str]
    text: Callable[[], str]


@cache
def manifest(name: str) -> Manifest:
    """Load a manifest, cut up and with managed fields."""
    return Manifest(document(name))


def small(
    kind: str,
    version: str,
    namespace: str,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    owner: tuple[str, str] | None = None,
    **more: Any,
) -> Listed:
    """Make an object that is little more than its metadata; `owner` is a kind and a name."""

    def text() -> str:
        metadata: dict[str, Any] = {
            "name": name,
            "uid": uid(kind, namespace, name),
            "creationTimestamp": SETUP,
            "labels": dict(labels or {}),
            "annotations": {"example.com/rendered-values": LONG},
        }
        if namespace:
            metadata["namespace"] = namespace
        if owner:
            metadata["ownerReferences"] = [_controller(namespace, *owner)]
        made = {"apiVersion": version, "kind": kind, "metadata": metadata, **more}
        return Manifest(with_managed_fields(made)).fill({})

    return Listed(namespace, {"metadata.name": name}, text)


def event(namespace: str, kind: str, name: str, reason: str) -> Listed:
    """Make an event about a Workload (by Kueue) or about a pod (by a kubelet)."""
    about = {"kind": kind, "namespace": namespace, "name": name, "uid": uid(kind, namespace, name)}
    component = "kueue-admission" if kind == "Workload" else "kubelet"
    made = small(
        "Event",
        "v1",
        namespace,
        f"{name}.{uid(reason)[:16]}",
        involvedObject=about,
        regarding=about,
        reason=reason,
        message="Quota reserved in ClusterQueue, wait time since queued was 12s",
        type="Normal",
        eventTime=NOW.strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
        reportingComponent=component,
        reportingInstance=f"{component}-0",
        firstTimestamp=None,
        lastTimestamp=None,
    )
    fields = {
        "reason": reason,
        "type": "Normal",
        "involvedObject.kind": kind,
        "regarding.kind": kind,
        "reportingComponent": component,
        "reportingController": component,
        "source": component,
    }
    return made._replace(fields=fields)


def _controller(namespace: str, kind: str, name: str) -> Mapping[str, Any]:
    return {
        "apiVersion": VERSIONS[kind],
        "kind": kind,
        "name": name,
        "uid": uid(kind, namespace, name),
        "controller": True,
    }
