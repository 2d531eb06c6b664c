"""What Kueue's queues refer to: ResourceFlavors and WorkloadPriorityClasses, reduced to nouns: pure."""

import msgspec

from steward.cluster.kueue import ResourceFlavor, WorkloadPriorityClass
from steward.sources.kubernetes.fields import MalformedError, required
from steward.sources.kubernetes.objects import read_taints
from steward.sources.kubernetes.shapes import Shape, TaintShape


class FlavorSpec(msgspec.Struct, rename="camel"):
    """A ResourceFlavor's `spec`."""

    node_labels: dict[str, str] | None = None
    node_taints: list[TaintShape] | None = None
    tolerations: list[TaintShape] | None = None
    topology_name: str | None = None


class ResourceFlavorShape(Shape):
    """A ResourceFlavor."""

    spec: FlavorSpec | None = None


class PriorityClassShape(Shape):
    """A WorkloadPriorityClass."""

    value: int | None = None


def read_flavor(item: ResourceFlavorShape) -> ResourceFlavor:
    """Reduce a ResourceFlavor; raises MalformedError."""
    spec = item.spec or FlavorSpec()
    return ResourceFlavor(
        name=required(item.metadata.name, "name"),
        node_labels=spec.node_labels or {},
        taints=read_taints(spec.node_taints),
        tolerations=read_taints(spec.tolerations),
        topology=spec.topology_name or None,
    )


def read_priority_class(item: PriorityClassShape) -> WorkloadPriorityClass:
    """Reduce a WorkloadPriorityClass; raises MalformedError, as a class without value is none."""
    if item.value is None:
        raise MalformedError("value is missing")
    return WorkloadPriorityClass(name=required(item.metadata.name, "name"), value=item.value)
