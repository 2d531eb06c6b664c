"""The command on a card: one line to paste, every name quoted for the shell."""

import json
import shlex
from collections.abc import Iterable
from typing import Any

from steward.cluster.accelerators import Holder, Owner

_SCALED = {"Deployment": "deployment", "StatefulSet": "statefulset", "ReplicaSet": "replicaset"}
_SUSPENDED: dict[str, tuple[str, dict[str, Any]]] = {
    # Suspending keeps the job object, so that nothing but the pods is lost.
    "Job": ("jobs.batch", {"spec": {"suspend": True}}),
    "JobSet": ("jobsets.jobset.x-k8s.io", {"spec": {"suspend": True}}),
    "PyTorchJob": ("pytorchjobs.kubeflow.org", {"spec": {"runPolicy": {"suspend": True}}}),
    "RayCluster": ("rayclusters.ray.io", {"spec": {"suspend": True}}),
    "RayJob": ("rayjobs.ray.io", {"spec": {"suspend": True}}),
}


def release(owner: Owner, workload: str | None) -> str:
    """Give the kubectl line that frees everything an owner holds, as gently as its kind allows.

    Parameters
    ----------
    owner : Owner
        Top owner of the pods.
    workload : str or None
        Name of the admitted Kueue Workload. Deactivating it evicts the job and keeps it, while
        Kueue would start a merely suspended job again.

    Returns
    -------
    str
        Scale a Deployment, StatefulSet or ReplicaSet to zero; else deactivate the Workload; else suspend a job
        that knows how; else, for anything without a gentler way, delete it.
    """
    namespace = shlex.quote(owner.namespace)
    if owner.kind in _SCALED:
        target = shlex.quote(f"{_SCALED[owner.kind]}/{owner.name}")
        return f"kubectl -n {namespace} scale {target} --replicas=0"
    if workload is not None:
        return _patch(namespace, "workloads.kueue.x-k8s.io", workload, {"spec": {"active": False}})
    if owner.kind in _SUSPENDED:
        resource, change = _SUSPENDED[owner.kind]
        return _patch(namespace, resource, owner.name, change)
    return f"kubectl -n {namespace} delete {shlex.quote(f'{owner.kind.lower()}/{owner.name}')}"


def look(holder: Holder) -> str:
    """Give the kubectl line that shows what a pod's accelerators do right now."""
    return (
        f"kubectl -n {shlex.quote(holder.namespace)} exec {shlex.quote(holder.pod)} -- nvidia-smi"
    )


_STACKS = (
    # Found by what they run, as PyTorch renames its main thread; `[p]` keeps the shell itself out.
    'for p in /proc/[0-9]*; do grep -qa "[p]ython" "$p/cmdline" 2>/dev/null '
    '&& py-spy dump --pid "${p#/proc/}"; done; ls -l /tmp/nccl_trace_rank_* 2>/dev/null; true'
)
_PODS = 8
"""Pods whose ranks one line looks at: a line for a thousand does not fit on a card."""


def stacks(holders: Iterable[Holder]) -> str:
    """Give the shell line that shows where the ranks of a job stand; it changes nothing.

    Prints the Python stack of every rank and names the dumps of PyTorch's flight recorder. Where
    one rank stands elsewhere than the rest, the rest wait for it.
    """
    pods = sorted({(holder.namespace, holder.pod) for holder in holders})[:_PODS]
    namespace = shlex.quote(pods[0][0])
    names = " ".join(shlex.quote(pod) for _, pod in pods)
    script = shlex.quote(_STACKS)
    return f'for pod in {names}; do kubectl -n {namespace} exec "$pod" -- sh -c {script}; done'


def _patch(namespace: str, resource: str, name: str, change: dict[str, Any]) -> str:
    body = shlex.quote(json.dumps(change, separators=(",", ":")))
    return f"kubectl -n {namespace} patch {resource} {shlex.quote(name)} --type=merge -p {body}"
