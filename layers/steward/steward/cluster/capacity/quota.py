"""Quotas of accelerators held against the nodes that are left to serve them."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from steward.cluster.amounts import accelerators_each
from steward.cluster.capacity.inventory import FAILED, LEAVING, UNHEALTHY, Inventory
from steward.cluster.capacity.nodes import GONE, NOT_READY, NodeFault
from steward.cluster.kueue import QuotaRow
from steward.cluster.snapshot import Node, Snapshot

QUEUES, COHORTS = "kubernetes/clusterqueues", "kubernetes/cohorts"
FLAVORS = "kubernetes/resourceflavors"
CORDONED = "cordoned"
UNALLOCATABLE = "not allocatable"

_TYPE_PREFIX = "ml."
_TYPE_LABEL = "node.kubernetes.io/instance-type"
_SLACK = 1e-6


class Unusable(msgspec.Struct, frozen=True, kw_only=True):
    """Accelerators of a node that no pod can be given now, and why; since None: nobody says."""

    node: str
    why: str
    accelerators: float
    since: datetime | None = None


class FlavorCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """The quota of one flavor and what is there for it, in accelerators.

    Attributes
    ----------
    queues, cohorts : dict of str to float
        Whose nominal quota it is.
    usable : float
        On nodes that are Ready, schedulable and healthy.
    """

    flavor: str
    queues: dict[str, float]
    cohorts: dict[str, float]
    usable: float
    unusable: tuple[Unusable, ...]

    @property
    def quota(self) -> float:
        """Sum of the nominal quotas."""
        return sum((*self.queues.values(), *self.cohorts.values()))

    @property
    def capacity(self) -> float:
        """What all of its nodes have, those that are lost included."""
        return self.usable + sum(one.accelerators for one in self.unusable)

    @property
    def missing(self) -> float:
        """What the quotas promise and the nodes have not."""
        short = self.quota - self.usable
        return short if short > _SLACK else 0.0

    @property
    def began(self) -> datetime | None:
        """When the loss of nodes left less than the quotas promise; None where nobody says.

        What is lost since a time that nobody says counts as lost last.
        """
        left = self.capacity
        if self.quota - left > _SLACK:
            return None
        for since, lost in sorted((u.since, u.accelerators) for u in self.unusable if u.since):
            left -= lost
            if self.quota - left > _SLACK:
                return since
        return None


class QuotasJudged(msgspec.Struct, frozen=True, kw_only=True):
    """Every flavor with a quota of accelerators.

    Attributes
    ----------
    flavors : dict of str to FlavorCapacity
        By name; without those that are undecided.
    undecided : frozenset of str
        Names of flavors of which the nodes are not known.
    exact : bool
        False: some quotas could not be read, so that there may be more than is summed up.
    """

    flavors: dict[str, FlavorCapacity]
    undecided: frozenset[str]
    exact: bool


def judge_quotas(
    snapshot: Snapshot, inventory: Inventory, faults: Mapping[str, NodeFault]
) -> QuotasJudged:
    """Hold the quotas of every flavor against its nodes.

    Parameters
    ----------
    snapshot : Snapshot
        With ClusterQueues, Cohorts and ResourceFlavors.
    inventory : Inventory
        Of the snapshot.
    faults : mapping of str to NodeFault
        By node name.
    """
    queues: dict[str, dict[str, float]] = defaultdict(dict)
    cohorts: dict[str, dict[str, float]] = defaultdict(dict)
    for queue in sorted(snapshot.cluster_queues, key=lambda queue: queue.name):
        if not queue.shares_idle:
            _add(queues, queue.name, queue.rows)
    for cohort in sorted(snapshot.cohorts, key=lambda cohort: cohort.name):
        _add(cohorts, cohort.name, cohort.rows)
    labels = {flavor.name: flavor.node_labels for flavor in snapshot.resource_flavors}
    flavors = {}
    undecided = set()
    for flavor in sorted({*queues, *cohorts}):
        typed = flavor.startswith(_TYPE_PREFIX)
        if not inventory.nodes_whole or not (typed or flavor in labels):
            undecided.add(flavor)
            continue
        wanted = labels.get(flavor) or {}
        names = _matching(inventory, wanted, flavor if typed else None)
        usable, unusable = _usable(inventory, names, faults)
        flavors[flavor] = FlavorCapacity(
            flavor=flavor,
            queues=queues[flavor],
            cohorts=cohorts[flavor],
            usable=usable,
            unusable=unusable,
        )
    return QuotasJudged(flavors=flavors, undecided=frozenset(undecided), exact=_exact(snapshot))


def _exact(snapshot: Snapshot) -> bool:
    parts = [snapshot.part(name) for name in (QUEUES, COHORTS)]
    return not snapshot.refused(QUEUES, COHORTS) and not any(p and p.left_out for p in parts)


def _add(total: dict[str, dict[str, float]], name: str, rows: Collection[QuotaRow]) -> None:
    """Add up the nominal accelerators of a queue or cohort by flavor."""
    for row in rows:
        if counted := row.nominal * accelerators_each(row.resource):
            total[row.flavor][name] = total[row.flavor].get(name, 0.0) + counted


def _matching(inventory: Inventory, labels: Mapping[str, str], kind: str | None) -> list[str]:
    """Name the nodes of a flavor: by its labels, else by its type, else all of them.

    A node that is gone is told by what the memory knew of it; one whose type nobody says may be of
    any.
    """
    names = sorted({*inventory.nodes, *inventory.known})
    if labels:
        return [name for name in names if _labelled(inventory, name, labels)]
    if kind is not None:
        return [name for name in names if inventory.type_of(name) in {kind, None}]
    return names


def _labelled(inventory: Inventory, name: str, labels: Mapping[str, str]) -> bool:
    node = inventory.nodes.get(name) or inventory.known[name]
    told = {_TYPE_LABEL: inventory.type_of(name)} | node.labels
    unsaid = {_TYPE_LABEL} if told[_TYPE_LABEL] is None else set()
    return all(told.get(key) == value for key, value in labels.items() if key not in unsaid)


def _usable(
    inventory: Inventory, names: Collection[str], faults: Mapping[str, NodeFault]
) -> tuple[float, tuple[Unusable, ...]]:
    """Add up what some nodes offer, and list what they do not."""
    usable = 0.0
    unusable = []
    for name in names:
        node = inventory.nodes.get(name)
        has = inventory.accelerators_of(name)
        if node is None:
            why, offered = (GONE if name in faults else None), 0.0
            if why is None:
                continue  # it was taken out, or nobody says so
        else:
            offered = inventory.offered(node)
            has = max(has, offered)
            why = _why_unusable(inventory, node)
        left = 0.0 if why else offered
        usable += left
        if has - left > _SLACK:
            fault = faults.get(name) if why else None
            unusable.append(
                Unusable(
                    node=name,
                    why=why or UNALLOCATABLE,
                    accelerators=has - left,
                    since=fault.since if fault else None,
                )
            )
    return usable, tuple(unusable)


def _why_unusable(inventory: Inventory, node: Node) -> str | None:
    """Say why nothing can be started on a node; None where it can."""
    instance = inventory.instances.get(node.name)
    if not node.ready:
        return NOT_READY
    if node.health in UNHEALTHY:
        return node.health
    if instance and instance.status in {FAILED, *LEAVING}:
        return instance.status
    return None if node.schedulable else CORDONED
