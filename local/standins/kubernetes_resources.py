"""The Kubernetes resources that a recording may hold, and how an API server's discovery lists them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from local.standins.kubernetes_wire import Document, field_of, not_found


class RecordedKubernetes(Protocol):
    """The part of a recording that is served."""

    def kubernetes(self, resource: str, at: datetime) -> dict[str, Any] | None:
        """Return what `kubectl get <resource> -A -o json` printed; None where it is missing."""
        ...

    def has_kubernetes(self, at: datetime) -> bool:
        """Whether anything of the cluster is recorded."""
        ...


@dataclass(frozen=True, slots=True)
class Resource:
    """Where a resource is served; `version` is what it is served in unless the recording differs."""

    group: str
    version: str
    kind: str
    namespaced: bool

    @property
    def custom(self) -> bool:
        """Whether it is defined by a CustomResourceDefinition rather than built in."""
        return "." in self.group and not self.group.endswith(_BUILT_IN)


_BUILT_IN = ("networking.k8s.io", "rbac.authorization.k8s.io", "admissionregistration.k8s.io")
_KUEUE, _RBAC = "kueue.x-k8s.io", "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_APART = ("cohorts", "topologies")
"""Of Kueue, what older releases serve in a version of its own (v1alpha1)."""

RESOURCES = {
    # The first of a group that is recorded decides the version that the group prefers.
    "clusterqueues": Resource(_KUEUE, "v1beta2", "ClusterQueue", namespaced=False),
    "workloads": Resource(_KUEUE, "v1beta2", "Workload", namespaced=True),
    "localqueues": Resource(_KUEUE, "v1beta2", "LocalQueue", namespaced=True),
    "resourceflavors": Resource(_KUEUE, "v1beta2", "ResourceFlavor", namespaced=False),
    "workloadpriorityclasses": Resource(
        _KUEUE, "v1beta2", "WorkloadPriorityClass", namespaced=False
    ),
    "topologies": Resource(_KUEUE, "v1beta2", "Topology", namespaced=False),
    "cohorts": Resource(_KUEUE, "v1beta2", "Cohort", namespaced=False),
    "namespaces": Resource("", "v1", "Namespace", namespaced=False),
    "nodes": Resource("", "v1", "Node", namespaced=False),
    "pods": Resource("", "v1", "Pod", namespaced=True),
    "events": Resource("", "v1", "Event", namespaced=True),
    "serviceaccounts": Resource("", "v1", "ServiceAccount", namespaced=True),
    "resourcequotas": Resource("", "v1", "ResourceQuota", namespaced=True),
    "deployments": Resource("apps", "v1", "Deployment", namespaced=True),
    "replicasets": Resource("apps", "v1", "ReplicaSet", namespaced=True),
    "statefulsets": Resource("apps", "v1", "StatefulSet", namespaced=True),
    "jobs": Resource("batch", "v1", "Job", namespaced=True),
    "jobsets": Resource("jobset.x-k8s.io", "v1alpha2", "JobSet", namespaced=True),
    "pytorchjobs": Resource("kubeflow.org", "v1", "PyTorchJob", namespaced=True),
    "hyperpodpytorchjobs": Resource(
        "sagemaker.amazonaws.com", "v1", "HyperPodPyTorchJob", namespaced=True
    ),
    "rayclusters": Resource("ray.io", "v1", "RayCluster", namespaced=True),
    "rayjobs": Resource("ray.io", "v1", "RayJob", namespaced=True),
    "networkpolicies": Resource("networking.k8s.io", "v1", "NetworkPolicy", namespaced=True),
    "roles": Resource(_RBAC, "v1", "Role", namespaced=True),
    "rolebindings": Resource(_RBAC, "v1", "RoleBinding", namespaced=True),
    "clusterroles": Resource(_RBAC, "v1", "ClusterRole", namespaced=False),
    "clusterrolebindings": Resource(_RBAC, "v1", "ClusterRoleBinding", namespaced=False),
    "validatingadmissionpolicies": Resource(
        _ADMISSION, "v1", "ValidatingAdmissionPolicy", namespaced=False
    ),
    "validatingadmissionpolicybindings": Resource(
        _ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", namespaced=False
    ),
}
"""Exactly the resources of the recording format: without its file, one of these is forbidden."""


class Discovery:
    """What a server says that it serves at one moment of a recording."""

    def __init__(self, recording: RecordedKubernetes, at: datetime) -> None:
        self._recording = recording
        self._at = at

    def version(self, resource: str) -> str:
        """Give the version that a resource is served in: its objects' own, else its group's.

        Kueue's are in the version of its ClusterQueues, whatever they state: a real server
        converts them.
        """
        group = RESOURCES[resource].group
        follows = group == _KUEUE and resource not in _APART
        return (not follows and self._stated(resource)) or self._preferred(group)

    def groups(self) -> Document:
        """Answer `/apis`."""
        names = dict.fromkeys(one.group for one in RESOURCES.values() if one.group)
        found = [self.group(name) for name in names]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}

    def group(self, name: str) -> Document:
        """Answer `/apis/<group>`; 404 where there is no such group."""
        versions = [self._preferred(name), *(self.version(one) for one in _of(name))]
        listed = [{"groupVersion": f"{name}/{v}", "version": v} for v in dict.fromkeys(versions)]
        return {
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": name,
            "versions": listed,
            "preferredVersion": listed[0],
        }

    def resources(self, group: str, version: str) -> Document:
        """Answer `/api/v1` or `/apis/<group>/<version>`."""
        served = [name for name in _of(group) if self.version(name) == version]
        if not served:
            raise not_found(f"{group}/{version}")
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}".lstrip("/"),
            "resources": [
                {
                    "name": name,
                    "singularName": RESOURCES[name].kind.lower(),
                    "kind": RESOURCES[name].kind,
                    "namespaced": RESOURCES[name].namespaced,
                    "verbs": ["get", "list"],
                }
                for name in served
            ],
        }

    def _stated(self, resource: str) -> str:
        """Give the version that recorded objects state; empty where there are none."""
        document = self._recording.kubernetes(resource, self._at) or {}
        # `kubectl get` prints a v1 List whose items state their own version.
        first = next(iter(document.get("items") or ()), document)
        group, _, version = field_of(first, "apiVersion").rpartition("/")
        return version if group == RESOURCES[resource].group else ""

    def _preferred(self, group: str) -> str:
        names = _of(group)
        if not names:
            raise not_found(f"/apis/{group}")
        stated = (self._stated(name) for name in names)
        return next(filter(None, stated), RESOURCES[names[0]].version)


def _of(group: str) -> list[str]:
    return [name for name, one in RESOURCES.items() if one.group == group]
