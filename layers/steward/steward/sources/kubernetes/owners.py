"""From a pod or a Workload to who would have to act: chains of controllers, to the top; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import replace
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.accelerators import Owner
from steward.sources.kubernetes.objects import BoundPod, Reference

if TYPE_CHECKING:
    from steward.cluster.kueue import Workload
    from steward.cluster.pods import GpuPod
    from steward.sources.kueue.workloads import QueuedWorkload

DEPTH = 5
"""Longest chain that is followed; RayJob, RayCluster and Pod make two."""


class OwnerKind(msgspec.Struct, frozen=True):
    """Where a kind of owner is listed; without a version, the API group is asked for it."""

    group: str
    kind: str
    resource: str
    version: str | None = None


OWNER_KINDS = (
    OwnerKind("apps", "ReplicaSet", "replicasets", "v1"),
    OwnerKind("apps", "Deployment", "deployments", "v1"),
    OwnerKind("apps", "StatefulSet", "statefulsets", "v1"),
    OwnerKind("batch", "Job", "jobs", "v1"),
    OwnerKind("jobset.x-k8s.io", "JobSet", "jobsets"),
    OwnerKind("kubeflow.org", "PyTorchJob", "pytorchjobs"),
    OwnerKind("sagemaker.amazonaws.com", "HyperPodPyTorchJob", "hyperpodpytorchjobs"),
    OwnerKind("ray.io", "RayCluster", "rayclusters"),
    OwnerKind("ray.io", "RayJob", "rayjobs"),
)
"""Owners that may have an owner themselves; any other kind ends a chain as its top."""

type OwnerKey = tuple[Reference, str]
"""An owner and its namespace. By name: a reference outlives the object that it names by UID."""


class Link(msgspec.Struct, frozen=True):
    """What is known of an owner: who controls it, and who made it."""

    controller: Reference | None
    created_by: str | None = None


type Links = Mapping[OwnerKey, Link]
"""The owners that were listed."""


def follow(
    controller: Reference | None, namespace: str, links: Links
) -> tuple[tuple[Reference, ...], Reference | None]:
    """Follow controllers as far as they are known.

    Returns
    -------
    tuple of Reference
        From the direct owner upwards, at most `DEPTH` long.
    Reference or None
        The last of them, where it has not been listed: it may have an owner of its own.
    """
    chain: list[Reference] = []
    while controller is not None and controller not in chain and len(chain) < DEPTH:
        chain.append(controller)
        link = links.get((controller, namespace))
        if link is None:
            return tuple(chain), controller
        controller = link.controller
    return tuple(chain), None


def missing(
    owned: Iterable[tuple[Reference | None, str]], links: Links, listed: set[OwnerKind]
) -> list[OwnerKind]:
    """Name the kinds, not listed yet, that would lead further up; in the order of the table.

    `owned` are controllers of pods and Workloads, each with its namespace.
    """
    ends = (follow(controller, namespace, links)[1] for controller, namespace in owned)
    kinds = {(end.group, end.kind) for end in ends if end is not None}
    return [one for one in OWNER_KINDS if (one.group, one.kind) in kinds and one not in listed]


def attach(pod: BoundPod, links: Links) -> GpuPod:
    """Give a pod its chain of owners, the last of them as who would have to act, and its maker."""
    chain, made_by = _resolve(pod.controller, pod.pod.namespace, links)
    if not chain:
        return pod.pod
    created_by = pod.pod.created_by or made_by
    return replace(pod.pod, owner=chain[-1], owner_chain=chain, created_by=created_by)


def attach_workload(queued: QueuedWorkload, links: Links) -> Workload:
    """Give a Workload the chain above the object that was queued, and its maker."""
    workload = queued.workload
    chain, made_by = _resolve(queued.controller, workload.namespace, links)
    if not chain:
        return workload
    return replace(workload, owner_chain=chain, created_by=workload.created_by or made_by)


def _resolve(
    controller: Reference | None, namespace: str, links: Links
) -> tuple[tuple[Owner, ...], str | None]:
    """Give a chain as owners, and what the nearest of them that says so names as maker."""
    references, _ = follow(controller, namespace, links)
    known = (links.get((one, namespace)) for one in references)
    makers = (link.created_by for link in known if link)
    chain = tuple(Owner(kind=one.kind, namespace=namespace, name=one.name) for one in references)
    return chain, next(filter(None, makers), None)
