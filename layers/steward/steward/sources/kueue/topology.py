"""Where Kueue placed a pod set, in either API form, as nodes; and the levels of a Topology."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from steward.cluster.kueue import Topology
from steward.sources.kubernetes.fields import MalformedError, required
from steward.sources.kubernetes.shapes import Shape

NODE_LEVEL = "kubernetes.io/hostname"
"""The level whose values are node names; Kueue names no other where a Topology reaches down to it."""

_MOST = 100_000
"""Domains that Kueue allows a slice; a list is never made longer on an object's word."""


class Domain(msgspec.Struct):
    """A domain of the v1beta1 form: one value a level."""

    values: list[str] | None = None
    count: int = 1


class Individual(msgspec.Struct):
    """Values that differ in their middle."""

    prefix: str | None = None
    suffix: str | None = None
    roots: list[str] | None = None


class LevelValues(msgspec.Struct):
    """The values of a slice's domains at one level: one for all, or one each."""

    universal: str | None = None
    individual: Individual | None = None


class PodCounts(msgspec.Struct):
    """The pods of a slice's domains: one number for all, or one each."""

    universal: int | None = None
    individual: list[int] | None = None


class Slice(msgspec.Struct, rename="camel"):
    """Several domains of the v1beta2 form, compressed."""

    domain_count: int = 0
    values_per_level: list[LevelValues] | None = None
    pod_counts: PodCounts | None = None


class Assignment(msgspec.Struct):
    """A `topologyAssignment`: `domains` in v1beta1, `slices` in v1beta2."""

    levels: list[str] | None = None
    domains: list[Domain] | None = None
    slices: list[Slice] | None = None


class Level(msgspec.Struct, rename="camel"):
    """A level of a Topology."""

    node_label: str | None = None


class TopologySpec(msgspec.Struct):
    """A Topology's `spec`."""

    levels: list[Level] | None = None


class TopologyShape(Shape):
    """A Topology."""

    spec: TopologySpec | None = None


def read_topology(item: TopologyShape) -> Topology:
    """Reduce a Topology; raises MalformedError."""
    levels = (item.spec or TopologySpec()).levels or ()
    return Topology(
        name=required(item.metadata.name, "name"),
        levels=tuple(required(one.node_label, "nodeLabel") for one in levels),
    )


def nodes_of(assignment: Assignment | None) -> dict[str, int]:
    """Count the pods that each node was assigned.

    Parameters
    ----------
    assignment : Assignment or None
        In either form.

    Returns
    -------
    dict of str to int
        Empty where the assignment does not reach down to nodes.

    Raises
    ------
    MalformedError
        A domain has no value at that level, or a slice's lists are not as long as it says.
    """
    if assignment is None or not assignment.levels or assignment.levels[-1] != NODE_LEVEL:
        return {}
    nodes: Counter[str] = Counter()
    for domain in assignment.domains or ():
        if not domain.values:
            raise MalformedError("topologyAssignment: a domain without values")
        nodes[domain.values[-1]] += domain.count
    for one in assignment.slices or ():
        for node, pods in zip(_values(one), _counts(one), strict=True):
            nodes[node] += pods
    return dict(nodes)


def _values(one: Slice) -> Iterator[str]:
    """Yield the lowest level's value of every domain of a slice."""
    if not 0 <= one.domain_count <= _MOST:
        raise MalformedError(f"topologyAssignment: {one.domain_count} domains, not 0 to {_MOST}")
    found = one.values_per_level[-1] if one.values_per_level else LevelValues()
    if found.universal is not None:
        return iter([found.universal] * one.domain_count)
    individual = found.individual or Individual()
    roots = individual.roots or []
    if len(roots) != one.domain_count:
        raise MalformedError(
            f"topologyAssignment: {len(roots)} values of {one.domain_count} domains"
        )
    prefix, suffix = individual.prefix or "", individual.suffix or ""
    return (f"{prefix}{root}{suffix}" for root in roots)


def _counts(one: Slice) -> list[int]:
    found = one.pod_counts or PodCounts()
    if found.universal is not None:
        return [found.universal] * one.domain_count
    counts = found.individual or []
    if len(counts) != one.domain_count:
        raise MalformedError(
            f"topologyAssignment: {len(counts)} pod counts of {one.domain_count} domains"
        )
    return counts
