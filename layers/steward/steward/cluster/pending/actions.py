"""The command on a pending workload's card: what shows more, or mends it."""

from shlex import quote

from steward.cluster.kueue import Workload
from steward.cluster.pending.reasons import Reason
from steward.cluster.pending.shown import Shown

_QUEUE_NAME = "kueue.x-k8s.io/queue-name"
_LABELLED = {
    "HyperPodPyTorchJob": "hyperpodpytorchjobs.sagemaker.amazonaws.com",
    "Job": "jobs.batch",
    "JobSet": "jobsets.jobset.x-k8s.io",
    "PyTorchJob": "pytorchjobs.kubeflow.org",
    "RayCluster": "rayclusters.ray.io",
    "RayJob": "rayjobs.ray.io",
}
"""Kinds whose own label names the queue, and may be changed while they are suspended."""


def action(workload: Workload, shown: Shown) -> str:
    """Give one line to paste."""
    namespace = quote(workload.namespace)
    fault = shown.evidence.get("queue_fault", {})
    name = quote(fault.get("name") or "")
    if shown.reason is Reason.MISSING_QUEUE and fault:
        return _missing_queue(workload, shown, fault["kind"])
    if shown.reason is Reason.QUEUE_INACTIVE and fault.get("kind") == "LocalQueue":
        return f"kubectl -n {namespace} describe localqueues.kueue.x-k8s.io {name}"
    if shown.reason in {Reason.QUEUE_INACTIVE, Reason.UNKNOWN_FLAVOR} and fault:
        return f"kubectl describe clusterqueues.kueue.x-k8s.io {name}"
    if shown.reason is Reason.NO_PRIORITY_CLASS:
        return "kubectl get workloadpriorityclasses.kueue.x-k8s.io"
    return f"kubectl -n {namespace} describe workloads.kueue.x-k8s.io {quote(workload.name)}"


def _missing_queue(workload: Workload, shown: Shown, kind: str) -> str:
    namespace = quote(workload.namespace)
    if kind == "ClusterQueue":
        return "kubectl get clusterqueues.kueue.x-k8s.io"
    owner, nearest = workload.owner, shown.evidence.get("nearest")
    # What has an owner of its own is labelled by it: a change here would not last.
    on_top = owner in workload.owner_chain[-1:] or not workload.owner_chain
    here = shown.evidence.get("nearest_namespace") == workload.namespace
    if owner is None or not (nearest and here and on_top) or owner.kind not in _LABELLED:
        return f"kubectl -n {namespace} get localqueues.kueue.x-k8s.io"
    target = quote(f"{_LABELLED[owner.kind]}/{owner.name}")
    return f"kubectl -n {namespace} label {target} {quote(f'{_QUEUE_NAME}={nearest}')} --overwrite"
