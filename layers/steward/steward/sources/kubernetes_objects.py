"""Kubernetes' own objects (pods, nodes, namespaces, owners) reduced to nouns: pure.

Nothing of an object survives but what the nouns hold: no environment values, arguments, commands
or annotations, and of a pod's labels only those in :data:`POD_LABELS`.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from steward.cluster.accelerators import Owner
from steward.cluster.snapshot import Node
from steward.ports import GpuPod
from steward.sources.kubernetes_fields import (
    MalformedError,
    labels,
    mapping,
    objects,
    optional_text,
    optional_time,
    text,
    time,
)
from steward.sources.kubernetes_requests import (
    GPU,
    NEURON_DEVICES,
    effective_requests,
    is_accelerator,
)
from steward.sources.quantity import parse

POD_LABELS = frozenset(
    {
        "kueue.x-k8s.io/queue-name",
        "kueue.x-k8s.io/priority-class",
        "sagemaker.user/created-by",
    }
)
"""Labels of a pod that are kept: who queued it, and who made it. Nothing else of them is read."""

_INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_HEALTH = "sagemaker.amazonaws.com/node-health-status"
_FINISHED = ("Succeeded", "Failed")
_MOST = 1024
"""More accelerators than any node has: a pod that requests as many is a mistake of its author."""


class Reference(msgspec.Struct, frozen=True):
    """The controller that an object names as its owner; its namespace is the object's own."""

    group: str
    kind: str
    name: str


class Controlled(msgspec.Struct, frozen=True):
    """An object that may be an owner itself: who it is, and who controls it."""

    namespace: str
    name: str
    controller: Reference | None


class BoundPod(msgspec.Struct, frozen=True):
    """A GPU pod before its owners are known: `pod.owner` is still the pod itself."""

    pod: GpuPod
    controller: Reference | None


def read_pod(item: Mapping[str, Any]) -> BoundPod | None:
    """Reduce a pod; None where it holds no accelerator.

    A pod holds its accelerators from the moment it is bound to a node until it has finished: also
    while it pulls images (Pending), while its node is silent (Unknown) and while it terminates.

    Raises
    ------
    MalformedError
        A field is not what the API promises.
    """
    spec, status = mapping(item, "spec"), mapping(item, "status")
    node = optional_text(spec, "nodeName")
    if node is None:
        return None
    requests = effective_requests(spec, is_accelerator)
    if not requests or optional_text(status, "phase") in _FINISHED:
        return None
    count = sum(requests.values(), Fraction())
    if count.denominator != 1 or not 0 < count <= _MOST:
        raise MalformedError(f"resources: {float(count):g} accelerators, not 1 to {_MOST}")
    metadata = mapping(item, "metadata")
    namespace, name = text(metadata, "namespace"), text(metadata, "name")
    kept = {k: v for k, v in labels(metadata).items() if k in POD_LABELS}
    pod = GpuPod(
        namespace=namespace,
        name=name,
        uid=text(metadata, "uid"),
        node=node,
        accelerators=int(count),
        # A pod that mixes MIG profiles is named after the one that it holds most of.
        resource=min(requests, key=lambda resource: (-requests[resource], resource)),
        since=optional_time(status, "startTime") or time(metadata, "creationTimestamp"),
        owner=Owner(kind="Pod", namespace=namespace, name=name),
        owner_chain=(),
        labels=kept,
    )
    return BoundPod(pod, read_controller(metadata))


def read_controller(metadata: Mapping[str, Any]) -> Reference | None:
    """Find who controls an object: the reference that says so, else the only one there is.

    Raises
    ------
    MalformedError
        A reference lacks its API version, kind or name.
    """
    references = list(objects(metadata, "ownerReferences"))
    controllers = [one for one in references if one.get("controller") is True]
    found = controllers or references
    if len(found) != 1:
        return None
    group, _, version = text(found[0], "apiVersion").rpartition("/")
    if not version:
        raise MalformedError("ownerReferences: apiVersion names no version")
    return Reference(group=group, kind=text(found[0], "kind"), name=text(found[0], "name"))


def read_controlled(item: Mapping[str, Any]) -> Controlled:
    """Reduce an object to its place in a chain of owners; raises MalformedError."""
    metadata = mapping(item, "metadata")
    return Controlled(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        controller=read_controller(metadata),
    )


def read_namespace(item: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Reduce a namespace to its name and labels; raises MalformedError."""
    metadata = mapping(item, "metadata")
    return text(metadata, "name"), labels(metadata)


def read_node(item: Mapping[str, Any]) -> Node:
    """Reduce a node; raises MalformedError where a field is not what the API promises."""
    metadata, status = mapping(item, "metadata"), mapping(item, "status")
    found = labels(metadata)
    return Node(
        name=text(metadata, "name"),
        instance_type=next((found[key] for key in _INSTANCE_TYPES if found.get(key)), None),
        accelerators=_capacity(found, status),
        ready=any(
            one.get("type") == "Ready" and one.get("status") == "True"
            for one in objects(status, "conditions")
        ),
        schedulable=mapping(item, "spec").get("unschedulable") is not True,
        health=found.get(_HEALTH) or None,
    )


def _capacity(found: Mapping[str, str], status: Mapping[str, Any]) -> int | None:
    """Count a node's whole devices; None where its labels and capacity speak of slices only."""
    if "-MIG-" in found.get("nvidia.com/gpu.product", ""):
        # MIG strategy "single": slices pose as whole GPUs, in the count label and in capacity.
        return None
    labelled = found.get("nvidia.com/gpu.count", "")
    if labelled.isdecimal():
        # Before capacity: time slicing multiplies capacity, never this label.
        return int(labelled)
    if "capacity" not in status:
        return None
    try:
        amounts = {
            resource: parse(value)
            for resource, value in mapping(status, "capacity").items()
            if is_accelerator(resource)
        }
    except ValueError as error:
        raise MalformedError(f"capacity: {error}") from error
    whole = next((amounts[name] for name in (GPU, *NEURON_DEVICES) if amounts.get(name)), None)
    if whole is None and any(amounts.values()):
        return None
    return int(whole or 0)
