"""Kubernetes' own objects as far as they are read: what a shape does not name is never decoded.

So no environment value, argument, command or annotation (but one, of Workloads, that is read on
purpose: :mod:`steward.sources.kueue.workload_shapes`) leaves the bytes of an answer, and the larger part of every object (managed fields, volumes, image lists) costs no more than its bytes.
Every field may be null: for Kubernetes, null is absent.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from steward.sources.kubernetes.fields import Time

LONGEST_LABEL = 63
"""Characters that Kubernetes allows the value of a label."""


class OwnerReference(msgspec.Struct, rename="camel"):
    """An entry of `metadata.ownerReferences`."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class Metadata(msgspec.Struct, rename="camel"):
    """An object's `metadata`; values of labels may be anything, as nobody checked a recording."""

    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    creation_timestamp: Time = None
    labels: dict[str, Any] | None = None
    owner_references: list[OwnerReference] | None = None

    def label(self, key: str) -> str | None:
        """Return a label; None where it is absent, empty or no text."""
        value = (self.labels or {}).get(key)
        return value if isinstance(value, str) and value else None


class Shape(msgspec.Struct):
    """Any object; a list that is read for names, labels and owners only needs no more."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


class Resources(msgspec.Struct):
    """A container's `resources`."""

    requests: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None


class Container(msgspec.Struct, rename="camel"):
    """A container as far as it matters to the scheduler."""

    resources: Resources | None = None
    restart_policy: str | None = None


class PodSpec(msgspec.Struct, rename="camel"):
    """A pod's, or a pod template's, `spec`."""

    node_name: str | None = None
    containers: Sequence[Container] | None = None
    init_containers: Sequence[Container] | None = None


class PodStatus(msgspec.Struct, rename="camel"):
    """A pod's `status`."""

    phase: str | None = None
    start_time: Time = None


class PodShape(Shape):
    """A pod."""

    spec: PodSpec | None = None
    status: PodStatus | None = None


class TaintShape(msgspec.Struct):
    """A taint or a toleration; a toleration may leave all of it out, and then tolerates all."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeSpec(msgspec.Struct):
    """A node's `spec`."""

    unschedulable: bool | None = None
    taints: list[TaintShape] | None = None


class NodeCondition(msgspec.Struct, rename="camel"):
    """A node's condition."""

    type: str | None = None
    status: str | None = None
    last_transition_time: Time = None


class NodeStatus(msgspec.Struct):
    """A node's `status`."""

    capacity: dict[str, Any] | None = None
    allocatable: dict[str, Any] | None = None
    conditions: list[NodeCondition] | None = None


class NodeShape(Shape):
    """A node."""

    spec: NodeSpec | None = None
    status: NodeStatus | None = None
