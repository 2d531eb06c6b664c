"""Kubernetes' own objects (pods, nodes, namespaces, owners) reduced to nouns: pure.

Nothing of an object survives but what the nouns hold; of a pod's labels only those in
:data:`POD_LABELS`, and who made it.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from fractions import Fraction

import msgspec

from steward.cluster.accelerators import Owner
from steward.cluster.kueue import Taint
from steward.cluster.pods import GpuPod
from steward.cluster.snapshot import Node
from steward.sources.kubernetes.fields import MalformedError, amount, moment, required
from steward.sources.kubernetes.requests import (
    GPU,
    NEURON_DEVICES,
    effective_requests,
    is_accelerator,
)
from steward.sources.kubernetes.shapes import (
    Metadata,
    NodeShape,
    NodeSpec,
    NodeStatus,
    PodShape,
    PodSpec,
    PodStatus,
    Shape,
    TaintShape,
)

POD_LABELS = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class")
"""Labels of a pod that are kept: which queue it asked for, and with which priority."""

CREATED_BY = ("sagemaker.user/created-by",)
"""Labels that name who made an object, the most trusted first; `hyp` sets this one on jobs."""

_INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_HEALTH = "sagemaker.amazonaws.com/node-health-status"
_COUNT, _PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.product"
NODE_LABELS = (*_INSTANCE_TYPES, _HEALTH, _COUNT, _PRODUCT)
"""Labels of a node that are read."""

_FINISHED = ("Succeeded", "Failed")
_MOST = 1024
"""More accelerators than any node has: a pod that requests as many is a mistake of its author."""


class Reference(msgspec.Struct, frozen=True):
    """The controller that an object names as its owner; its namespace is the object's own."""

    group: str
    kind: str
    name: str


class Controlled(msgspec.Struct, frozen=True):
    """An object that may be an owner itself: who it is, who controls it, and who made it."""

    namespace: str
    name: str
    controller: Reference | None
    created_by: str | None = None


class BoundPod(msgspec.Struct, frozen=True):
    """A GPU pod before its owners are known: `pod.owner` is still the pod itself."""

    pod: GpuPod
    controller: Reference | None


def read_pod(item: PodShape, created_by: Sequence[str] = CREATED_BY) -> BoundPod | None:
    """Reduce a pod; None where it holds no accelerator.

    A pod holds its accelerators from the moment it is bound to a node until it has finished: also
    while it pulls images (Pending), while its node is silent (Unknown) and while it terminates.

    Raises
    ------
    MalformedError
        A field is not what the API promises.
    """
    spec, status = item.spec or PodSpec(), item.status or PodStatus()
    if not spec.node_name:
        return None
    requests = effective_requests(spec, is_accelerator)
    if not requests or status.phase in _FINISHED:
        return None
    count = sum(requests.values(), Fraction())
    if count.denominator != 1 or not 0 < count <= _MOST:
        raise MalformedError(f"resources: {float(count):g} accelerators, not 1 to {_MOST}")
    metadata = item.metadata
    namespace, name = required(metadata.namespace, "namespace"), required(metadata.name, "name")
    since = moment(status.start_time, "startTime") or _created(metadata)
    pod = GpuPod(
        namespace=namespace,
        name=name,
        uid=required(metadata.uid, "uid"),
        node=spec.node_name,
        accelerators=int(count),
        # A pod that mixes MIG profiles is named after the one that it holds most of.
        resource=min(requests, key=lambda resource: (-requests[resource], resource)),
        since=since,
        owner=Owner(kind="Pod", namespace=namespace, name=name),
        owner_chain=(),
        labels={key: value for key in POD_LABELS if (value := metadata.label(key))},
        created_by=maker(metadata, created_by),
    )
    return BoundPod(pod, read_controller(metadata))


def maker(metadata: Metadata, names: Sequence[str]) -> str | None:
    """Tell who made an object, as the first of the labels that it has says."""
    return next(filter(None, map(metadata.label, names)), None)


def read_controller(metadata: Metadata) -> Reference | None:
    """Find who controls an object: the reference that says so, else the only one there is.

    Raises
    ------
    MalformedError
        A reference lacks its API version, kind or name.
    """
    references = metadata.owner_references or []
    found = [one for one in references if one.controller] or references
    if len(found) != 1:
        return None
    group, _, version = required(found[0].api_version, "apiVersion").rpartition("/")
    if not version:
        raise MalformedError("ownerReferences: apiVersion names no version")
    kind, name = required(found[0].kind, "kind"), required(found[0].name, "name")
    return Reference(group=group, kind=kind, name=name)


def read_controlled(item: Shape, created_by: Sequence[str] = CREATED_BY) -> Controlled:
    """Reduce an object to its place in a chain of owners; raises MalformedError."""
    return Controlled(
        namespace=required(item.metadata.namespace, "namespace"),
        name=required(item.metadata.name, "name"),
        controller=read_controller(item.metadata),
        created_by=maker(item.metadata, created_by),
    )


def read_namespace(item: Shape) -> tuple[str, dict[str, str]]:
    """Reduce a namespace to its name and labels; raises MalformedError."""
    found = item.metadata.labels or {}
    texts = {key: value for key, value in found.items() if isinstance(value, str)}
    return required(item.metadata.name, "name"), texts


def read_taints(shapes: list[TaintShape] | None) -> tuple[Taint, ...]:
    """Reduce taints or tolerations."""
    return tuple(
        Taint(
            key=one.key or "",
            value=one.value or "",
            effect=one.effect or "",
            operator=one.operator or "",
        )
        for one in shapes or ()
    )


def read_node(item: NodeShape, kept: Collection[str] = ()) -> Node:
    """Reduce a node, with the labels `kept`.

    Raises
    ------
    MalformedError
        A field is not what the API promises.
    """
    metadata, status, spec = item.metadata, item.status or NodeStatus(), item.spec or NodeSpec()
    ready = next((one for one in status.conditions or () if one.type == "Ready"), None)
    return Node(
        name=required(metadata.name, "name"),
        instance_type=next(filter(None, map(metadata.label, _INSTANCE_TYPES)), None),
        accelerators=_capacity(metadata, status),
        ready=ready is not None and ready.status == "True",
        since=moment(ready.last_transition_time, "lastTransitionTime") if ready else None,
        schedulable=not spec.unschedulable,
        health=metadata.label(_HEALTH),
        allocatable=_allocatable(status),
        taints=read_taints(spec.taints),
        labels={key: value for key in sorted(kept) if (value := metadata.label(key))},
    )


def _created(metadata: Metadata) -> datetime:
    when = moment(metadata.creation_timestamp, "creationTimestamp")
    if when is None:
        raise MalformedError("creationTimestamp is missing")
    return when


def _allocatable(status: NodeStatus) -> dict[str, float]:
    return {
        resource: float(amount(value, f"allocatable: {resource}") or 0)
        for resource, value in (status.allocatable or {}).items()
        if resource in {"cpu", "memory"} or is_accelerator(resource)
    }


def _capacity(metadata: Metadata, status: NodeStatus) -> int | None:
    """Count a node's whole devices; None where its labels and capacity speak of slices only."""
    if "-MIG-" in (metadata.label(_PRODUCT) or ""):
        # MIG strategy "single": slices pose as whole GPUs, in the count label and in capacity.
        return None
    labelled = metadata.label(_COUNT) or ""
    if labelled.isdecimal():
        # Before capacity: time slicing multiplies capacity, never this label.
        return int(labelled)
    if status.capacity is None:
        return None
    amounts = {
        resource: found
        for resource, value in status.capacity.items()
        if is_accelerator(resource) and (found := amount(value, f"capacity: {resource}"))
    }
    whole = next((amounts[name] for name in (GPU, *NEURON_DEVICES) if name in amounts), None)
    if whole is None and amounts:
        return None
    return int(whole or 0)
