"""Accelerators of an instance type, with who says so: an unknown type is unknown, never zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import replace
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.accelerated_types import tabled_accelerators

if TYPE_CHECKING:
    from steward.cluster.control_plane import ControlPlane, QuotaResource
    from steward.cluster.policy import ClusterPolicy, InstanceGroup
    from steward.cluster.snapshot import Node


class KnownFrom(StrEnum):
    """Who told the accelerators of an instance type."""

    NODE = "node"
    POLICY = "policy"
    TABLE = "table"
    UNKNOWN = "unknown"


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """An instance type that a group, a node or a quota of the cluster names.

    Attributes
    ----------
    accelerators : int or None
        Of one instance; None where nobody says.
    nodes : int or None
        Nodes of that type that Kubernetes shows; None where nodes could not be listed, or where
        none of that type is seen and some node does not tell its type.
    """

    name: str
    accelerators: int | None
    known_from: KnownFrom
    nodes: int | None


def accelerators_of(
    instance_type: str, capacity: Iterable[InstanceGroup], nodes: Iterable[Node]
) -> tuple[int | None, KnownFrom]:
    """Tell the accelerators of one instance, and who says so.

    Parameters
    ----------
    instance_type : str
        As SageMaker and the nodes' labels write it, for example `ml.p5.48xlarge`.
    capacity : iterable of InstanceGroup
        The policy's capacity.
    nodes : iterable of Node
        Kubernetes' nodes; those of other types are passed over.

    Returns
    -------
    int or None
        The most that a node of the type has: one with fewer has lost some, and one with none may
        be without its device plugin, so that zero is never taken from a node. Else what the policy
        says, else the table; None where nobody says.
    KnownFrom
        Who.
    """
    seen = max((n.accelerators or 0 for n in nodes if n.instance_type == instance_type), default=0)
    if seen:
        return seen, KnownFrom.NODE
    rows = (g.accelerators_per_instance for g in capacity if g.instance_type == instance_type)
    if (told := next(rows, None)) is not None:
        return told, KnownFrom.POLICY
    if (told := tabled_accelerators(instance_type)) is not None:
        return told, KnownFrom.TABLE
    return None, KnownFrom.UNKNOWN


def known_types(
    control_plane: ControlPlane, nodes: Sequence[Node] | None, cluster: ClusterPolicy
) -> tuple[InstanceType, ...]:
    """Find the instance types that the cluster names, by name.

    Parameters
    ----------
    control_plane : ControlPlane
        Its groups, instances and quotas name types; an instance also tells that of its node where
        the node's labels do not.
    nodes : sequence of Node, or None
        Kubernetes' nodes; None where they could not be listed.
    cluster : ClusterPolicy
        With its capacity.
    """
    typed = _typed(nodes or (), control_plane)
    by_type: dict[str, list[Node]] = {name: [] for name in _named(control_plane)}
    for node in typed:
        if node.instance_type is not None:
            by_type.setdefault(node.instance_type, []).append(node)
    all_told = nodes is not None and all(node.instance_type is not None for node in typed)
    types = []
    for name, members in sorted(by_type.items()):
        accelerators, known_from = accelerators_of(name, cluster.capacity, members)
        types.append(
            InstanceType(
                name=name,
                accelerators=accelerators,
                known_from=known_from,
                nodes=len(members) if members or all_told else None,
            )
        )
    return tuple(types)


def quota_accelerators(
    resources: Iterable[QuotaResource], per_instance: Callable[[str], int | None]
) -> dict[str, int | None]:
    """Sum the accelerators of a quota's rows by instance type; None where a row leaves it open.

    Parameters
    ----------
    resources : iterable of QuotaResource
        Rows as they were given.
    per_instance : callable
        Accelerators of one instance of a type; None where that is not known.

    Notes
    -----
    A row of vCPU or memory alone has no accelerators: the API's own rule. Open are instances of an
    unknown type; instances and accelerators that contradict each other, for which one wins is not
    documented; and MIG slices: a slice is a share of an accelerator, and which slices one
    accelerator can hold together is not the sum of their shares.
    """
    totals: dict[str, int | None] = {}
    for row in resources:
        count = _row_accelerators(row, per_instance)
        before = totals.get(row.instance_type, 0)
        totals[row.instance_type] = None if count is None or before is None else before + count
    return totals


def with_accelerators(control_plane: ControlPlane, types: Iterable[InstanceType]) -> ControlPlane:
    """Count the quotas' accelerators again, now that nodes may have told what a type has."""
    known = {one.name: one.accelerators for one in types}
    quotas = tuple(
        replace(quota, accelerators=quota_accelerators(quota.resources, known.get))
        for quota in control_plane.quotas
    )
    return replace(control_plane, quotas=quotas)


def usd_per_accelerator(
    instance_type: str | None, accelerators: Mapping[str, int | None], cluster: ClusterPolicy
) -> float | None:
    """Price of an accelerator hour: the instance's over its accelerators; unknown is None.

    Parameters
    ----------
    instance_type : str or None
        Of the node; None where nobody tells.
    accelerators : mapping of str to (int or None)
        Of one instance, by type (see :func:`known_types`).
    cluster : ClusterPolicy
        With its prices.
    """
    price = cluster.price_of(instance_type)
    size = accelerators.get(instance_type) if instance_type is not None else None
    return price.usd_per_hour / size if price and size else None


def _row_accelerators(row: QuotaResource, per_instance: Callable[[str], int | None]) -> int | None:
    if row.partition is not None:
        return None
    if row.count is None:
        only_others = row.vcpu is not None or row.memory_gib is not None
        return 0 if row.accelerators is None and only_others else row.accelerators
    each = per_instance(row.instance_type) if row.count else 0
    counted = None if each is None else row.count * each
    if row.accelerators is None or counted == row.accelerators:
        return counted
    return row.accelerators if counted is None else None


def _named(control_plane: ControlPlane) -> set[str]:
    groups = (name for group in control_plane.groups for name in group.instance_types)
    instances = (node.instance_type for node in control_plane.nodes)
    quotas = (name for quota in control_plane.quotas for name in quota.accelerators)
    return {*groups, *instances, *quotas}


def _typed(nodes: Iterable[Node], control_plane: ControlPlane) -> list[Node]:
    """Complete the nodes' types from the instances that they are."""
    told = {f"hyperpod-{one.instance_id}": one.instance_type for one in control_plane.nodes}
    return [
        node if node.instance_type else replace(node, instance_type=told.get(node.name))
        for node in nodes
    ]
