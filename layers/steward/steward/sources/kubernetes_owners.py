"""From a pod to who would have to act: chains of controllers, followed to the top; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import replace
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.accelerators import Owner
from steward.sources.kubernetes_objects import BoundPod, Reference

if TYPE_CHECKING:
    from steward.ports import GpuPod

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

type Controllers = Mapping[OwnerKey, Reference | None]
"""Who controls each owner that was listed."""


def follow(
    pod: BoundPod, controllers: Controllers
) -> tuple[tuple[Reference, ...], Reference | None]:
    """Follow a pod's controllers as far as they are known.

    Returns
    -------
    tuple of Reference
        From the direct owner upwards, at most `DEPTH` long.
    Reference or None
        The last of them, where it has not been listed: it may have an owner of its own.
    """
    chain: list[Reference] = []
    reference = pod.controller
    while reference is not None and reference not in chain and len(chain) < DEPTH:
        chain.append(reference)
        key = (reference, pod.pod.namespace)
        if key not in controllers:
            return tuple(chain), reference
        reference = controllers[key]
    return tuple(chain), None


def missing(
    pods: Iterable[BoundPod], controllers: Controllers, listed: set[OwnerKind]
) -> list[OwnerKind]:
    """Name the kinds, not listed yet, that would lead further up; in the order of the table."""
    open_ends = {end for pod in pods if (end := follow(pod, controllers)[1]) is not None}
    kinds = {(end.group, end.kind) for end in open_ends}
    return [one for one in OWNER_KINDS if (one.group, one.kind) in kinds and one not in listed]


def attach(pod: BoundPod, controllers: Controllers) -> GpuPod:
    """Give a pod its chain of owners, and the last of them as the one who would have to act."""
    chain = tuple(
        Owner(kind=one.kind, namespace=pod.pod.namespace, name=one.name)
        for one in follow(pod, controllers)[0]
    )
    return replace(pod.pod, owner=chain[-1], owner_chain=chain) if chain else pod.pod
