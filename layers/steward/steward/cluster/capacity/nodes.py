"""Which nodes are unhealthy or lost, and which cannot be judged."""

from collections.abc import Collection, Mapping
from copy import replace
from datetime import datetime, timedelta

import msgspec

from steward.cluster.capacity.inventory import (
    FAILED,
    LEAVING,
    RUNNING,
    UNHEALTHY,
    WORKING,
    Inventory,
)
from steward.cluster.capacity.memory import KnownNode
from steward.cluster.snapshot import Node

JOINING = timedelta(minutes=10)
"""How long an instance may run before it should be a node."""

FORGOTTEN = timedelta(hours=24)
"""How long a node that is gone is remembered where nobody says whether it is missed."""

GONE = "gone from Kubernetes"
NEVER_JOINED = "runs and is no node"
NOT_READY = "not Ready"


class NodeFault(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a node or an instance that should be one."""

    name: str
    why: tuple[str, ...]
    since: datetime


class NodesJudged(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the nodes, and what the memory keeps of them.

    Attributes
    ----------
    faults : dict of str to NodeFault
        By node name.
    undecided : frozenset of str
        Names of nodes of which the lists do not say enough.
    """

    faults: dict[str, NodeFault]
    undecided: frozenset[str]
    known: tuple[KnownNode, ...]
    joining: dict[str, datetime]


def judge_nodes(
    inventory: Inventory, joining: Mapping[str, datetime], running: Collection[str]
) -> NodesJudged:
    """Judge every node that is, was or should be there.

    Parameters
    ----------
    inventory : Inventory
        Of the snapshot.
    joining : mapping of str to datetime
        As in the memory.
    running : collection of str
        Names of the nodes that a finding is told of already: what SageMaker does to mend one does
        not end it.
    """
    faults: dict[str, NodeFault] = {}
    undecided: set[str] = set()
    now_joining: dict[str, datetime] = {}
    names = {*inventory.nodes, *inventory.known, *inventory.instances}
    surplus = _surplus(inventory, names)
    for name in sorted(names):
        why = _why(inventory, name, surplus)
        since = _since(inventory, name, joining)
        if why == [NEVER_JOINED]:
            now_joining[name] = since
            if inventory.at - since < JOINING:
                continue
        if why is None:
            undecided.add(name)
        elif why and not (_being_mended(inventory, name, why) and name not in running):
            faults[name] = NodeFault(name=name, why=tuple(why), since=min(since, inventory.at))
    if not inventory.joins or not inventory.instances_whole:
        now_joining = {**joining, **now_joining}
    return NodesJudged(
        faults=faults,
        undecided=frozenset(undecided),
        known=_known(inventory, faults, undecided),
        joining=now_joining,
    )


def _why(inventory: Inventory, name: str, surplus: Collection[str]) -> list[str] | None:
    """Say what is wrong with a node; None where that cannot be judged."""
    node, instance = inventory.nodes.get(name), inventory.instances.get(name)
    status = instance.status if instance else None
    if status in LEAVING or inventory.unlisted(name):
        # On its way out, or out: a fault only where its group still wants it.
        missing = inventory.missing(inventory.group_of(name))
        if not missing:
            return None if missing is None else []
        if name in surplus:
            return []
    if node is None:
        return _absent(inventory, name, status)
    return [*_conditions(node), *_said(status)]


def _absent(inventory: Inventory, name: str, status: str | None) -> list[str] | None:
    """Say what is wrong with what is not among Kubernetes' nodes."""
    known = inventory.known.get(name)
    if not inventory.nodes_whole:
        return [FAILED] if status == FAILED else None
    if known is None:
        if status == RUNNING and inventory.joins:
            return [NEVER_JOINED]
        return [FAILED] if status == FAILED else []
    if status is None and (known.group is None or not inventory.instances_whole):
        # Only the group's own count tells; a node that no group claims is nobody's to miss.
        wanted = inventory.claims(name)
        return None if wanted is None else [GONE] if wanted else []
    return [GONE, *_said(status)]


def _said(status: str | None) -> list[str]:
    return [status] if status is not None and status in {FAILED, *LEAVING} else []


def _conditions(node: Node) -> list[str]:
    ready = [] if node.ready else [NOT_READY]
    return [*ready, *([node.health] if node.health in UNHEALTHY else [])]


def _being_mended(inventory: Inventory, name: str, why: Collection[str]) -> bool:
    """Whether SageMaker works on the instance, which takes its node away for a while."""
    instance = inventory.instances.get(name)
    passing = {NOT_READY, GONE, "Unschedulable"}
    return instance is not None and instance.status in WORKING and passing.issuperset(why)


def _surplus(inventory: Inventory, names: Collection[str]) -> frozenset[str]:
    """Name nodes that are listed no more and that their group has no vacancy for.

    Of those that left, the earliest are the ones that it lacks.
    """
    left: dict[str, list[tuple[datetime, str]]] = {}
    for name in names:
        if inventory.unlisted(name):
            known = inventory.known.get(name)
            gone = (known.gone if known else None) or inventory.at
            left.setdefault(inventory.group_of(name) or "", []).append((gone, name))
    return frozenset(
        name
        for group, leavers in left.items()
        for _, name in sorted(leavers)[inventory.vacancies(group) :]
    )


def _since(inventory: Inventory, name: str, joining: Mapping[str, datetime]) -> datetime:
    node, known = inventory.nodes.get(name), inventory.known.get(name)
    if node is not None:
        return inventory.at if node.ready else node.since or inventory.at
    if known is not None:
        return known.gone or inventory.at
    return joining.get(name, inventory.at)


def _known(
    inventory: Inventory, faults: Collection[str], undecided: Collection[str]
) -> tuple[KnownNode, ...]:
    """Remember the nodes with accelerators, and those of them that are missed."""
    kept = []
    for name in sorted({*inventory.nodes, *inventory.known}):
        node, before = inventory.nodes.get(name), inventory.known.get(name)
        if node is not None and (accelerators := inventory.accelerators_of(name)):
            kept.append(
                KnownNode(
                    name=name,
                    group=inventory.group_of(name),
                    instance_type=inventory.type_of(name),
                    accelerators=accelerators,
                    labels=node.labels,
                )
            )
        elif node is None and before is not None and not inventory.nodes_whole:
            kept.append(before)
        elif node is None and before is not None:
            instance = inventory.instances.get(name)
            worked_on = instance is not None and instance.status in WORKING
            gone = before.gone or inventory.at
            unsaid = name in undecided and gone > inventory.at - FORGOTTEN
            if name in faults or worked_on or unsaid:
                kept.append(replace(before, gone=gone))
    return tuple(kept)
