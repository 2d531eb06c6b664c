"""Quota arithmetic: what may be borrowed, what is left, and which limit stands in the way.

Kueue's own rules for one flavor and one resource over the tree of cohorts and ClusterQueues
(`pkg/cache/scheduler/resource_node.go`, 0.12 to 0.19). Amounts are in base units throughout.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import msgspec

from steward.cluster.kueue import ClusterQueue, Cohort, QuotaRow


class NodeKind(StrEnum):
    """What a node of the tree is."""

    QUEUE = "ClusterQueue"
    COHORT = "Cohort"


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A borrowing limit on the way from a queue to the root, and what a request needs of it.

    Attributes
    ----------
    limit : float
        As it is set.
    needed : float
        What it would have to be for the request to pass; the request passes where that is not more.
    """

    kind: NodeKind
    name: str
    limit: float
    needed: float


def finite_limit(limit: float | None) -> float | None:
    """Read a limit: one that is no amount (infinite, not a number, below 0) limits nothing."""
    return limit if limit is not None and math.isfinite(limit) and limit >= 0 else None


class _Node:
    """A ClusterQueue or Cohort; sums are computed when first asked for."""

    def __init__(self, kind: NodeKind, name: str, row: QuotaRow | None, usage: float) -> None:
        self.kind = kind
        self.name = name
        self.nominal = row.nominal if row else 0.0
        self.borrowing_limit = finite_limit(row.borrowing_limit) if row else None
        self.lending_limit = finite_limit(row.lending_limit) if row else None
        self.own_usage = usage
        self.parent: _Node | None = None
        self.children: list[_Node] = []

    @cached_property
    def subtree_quota(self) -> float:
        """Nominal quota, and what its children let out of their hands."""
        return self.nominal + sum(c.subtree_quota - c.local_quota for c in self.children)

    @cached_property
    def local_quota(self) -> float:
        """Quota that it keeps to itself."""
        if self.parent is None or self.lending_limit is None:
            return 0.0
        return max(0.0, self.subtree_quota - self.lending_limit)

    @cached_property
    def usage(self) -> float:
        """Its own usage, or what its children use beyond what they keep to themselves."""
        return self.own_usage + sum(max(0.0, c.usage - c.local_quota) for c in self.children)

    @property
    def local_available(self) -> float:
        return max(0.0, self.local_quota - self.usage)

    @property
    def shared_left(self) -> float:
        """What it has given to the pool and not yet taken from there; below 0 it borrows."""
        return (self.subtree_quota - self.local_quota) - max(0.0, self.usage - self.local_quota)

    def path(self) -> Iterator["_Node"]:
        """Walk from here to the root."""
        node: _Node | None = self
        while node is not None:
            yield node
            node = node.parent


class _Idle(NamedTuple):
    """Who has something left: a queue, a cohort with all below it, or its own quota alone."""

    node: _Node
    alone: bool

    @property
    def name(self) -> tuple[str, str]:
        return self.node.kind, self.node.name


class QuotaTree:
    """One flavor and resource over all ClusterQueues and Cohorts of a cluster.

    Parameters
    ----------
    queues : iterable of ClusterQueue
        One without a row for the flavor and resource has no quota of it.
    cohorts : iterable of Cohort
        The declared ones. One that is only named has no quota, no limits and no parent.
    flavor, resource : str
        Which row of each.
    usage : mapping of str to float
        ClusterQueue to what it uses: what its workloads have reserved.
    """

    def __init__(
        self,
        queues: Iterable[ClusterQueue],
        cohorts: Iterable[Cohort],
        flavor: str,
        resource: str,
        usage: Mapping[str, float],
    ) -> None:
        def row(rows: Iterable[QuotaRow]) -> QuotaRow | None:
            return next((r for r in rows if (r.flavor, r.resource) == (flavor, resource)), None)

        queues, declared = list(queues), {cohort.name: cohort for cohort in cohorts}
        named = {queue.cohort for queue in queues} | {c.parent for c in declared.values()}
        self._cohorts = {
            name: _Node(
                NodeKind.COHORT, name, row(declared[name].rows) if name in declared else None, 0.0
            )
            for name in sorted({*declared, *filter(None, named)})
        }
        self._queues = {
            queue.name: _Node(
                NodeKind.QUEUE, queue.name, row(queue.rows), usage.get(queue.name, 0.0)
            )
            for queue in queues
        }
        parents = {cohort.name: cohort.parent for cohort in declared.values()}
        for name, parent in sorted(parents.items()):
            if not _in_cycle(name, parents):
                self._hang(self._cohorts[name], parent)
        for queue in sorted(queues, key=lambda queue: queue.name):
            self._hang(self._queues[queue.name], queue.cohort)

    def _hang(self, node: _Node, parent: str | None) -> None:
        if parent:
            node.parent = self._cohorts[parent]
            node.parent.children.append(node)

    def nominal(self, queue: str) -> float:
        """Tell the nominal quota of a queue."""
        return self._queues[queue].nominal

    def usage(self, queue: str) -> float:
        """Tell what a queue uses."""
        return _decimal(self._queues[queue].usage)

    def borrowed(self, queue: str) -> float:
        """Tell what a queue uses above its nominal quota."""
        node = self._queues[queue]
        return _decimal(max(0.0, node.usage - node.nominal))

    def idle(self, queue: str) -> float:
        """Tell what a queue would lend if nobody had borrowed yet."""
        return _decimal(max(0.0, self._queues[queue].shared_left))

    def kept(self, queue: str) -> float:
        """Tell what a queue has left of the quota that it keeps to itself."""
        return _decimal(self._queues[queue].local_available)

    def available(self, queue: str, *, limits: bool = True) -> float:
        """Tell what a queue may still reserve now.

        Parameters
        ----------
        limits : bool
            False: as though no borrowing limit stood between it and what others leave idle.
        """
        return _decimal(max(0.0, _available(self._queues[queue], limits=limits)))

    def potential(self, queue: str, *, limits: bool = True) -> float:
        """Tell the most that a queue could ever reserve, were nothing in use."""
        return _decimal(_potential(self._queues[queue], limits=limits))

    def path_limits(self, queue: str, request: float) -> tuple[Limit, ...]:
        """Borrowing limits on the way to the root, and what a request would need of each."""
        found = []
        need = request
        for node in self._queues[queue].path():
            if node.parent is None:
                break
            if node.borrowing_limit is not None:
                needed = need - node.local_available - node.shared_left
                found.append(
                    Limit(
                        kind=node.kind,
                        name=node.name,
                        limit=node.borrowing_limit,
                        needed=_decimal(max(0.0, needed)),
                    )
                )
            # What it keeps to itself serves the request first; the rest is asked of the cohort.
            need = max(0.0, need - node.local_available)
        return tuple(found)

    def lenders(self, queue: str) -> dict[tuple[NodeKind, str], float]:
        """Who could still lend to a queue, and how much.

        Kueue does not say whose quota is lent (#4039): a queue borrows from the nearest cohort
        first, and there from all that lie idle in proportion, in whole units where all amounts are
        whole. Together they are what the queue could borrow if nothing limited it. A cohort with a
        lending limit lends no more than that, whatever lies idle below it.
        """
        own = self._queues[queue]
        spare = max(0.0, own.nominal - own.usage)
        given: dict[_Idle, float] = {}
        have = kept = 0.0
        for below, cohort in pairwise(own.path()):
            kept += below.local_available
            reach = max(0.0, kept + cohort.subtree_quota - cohort.usage - spare)
            if reach >= have:
                given |= _lend(reach - have, _idle_in(cohort, but=below))
            else:  # queues from further away have borrowed of what lies idle down here
                given = _share_out(reach, given)
            have = reach
        return {
            (one.node.kind, one.node.name): _decimal(amount)
            for one, amount in sorted(given.items(), key=lambda item: item[0].name)
        }

    def siblings(self, queue: str) -> tuple[str, ...]:
        """Name the other queues of its tree."""
        own = self._queues[queue]
        root = list(own.path())[-1]
        nodes = (n for n in _below(root) if n.kind is NodeKind.QUEUE and n is not own)
        return tuple(sorted(node.name for node in nodes))


def _in_cycle(name: str, parents: Mapping[str, str | None]) -> bool:
    """Whether a cohort is its own ancestor: Kueue takes none of such cohorts into account."""
    seen: set[str] = set()
    above = parents[name]
    while above and above not in seen:
        if above == name:
            return True
        seen.add(above)
        above = parents.get(above)
    return False


def _available(node: _Node, *, limits: bool) -> float:
    if node.parent is None:
        return node.subtree_quota - node.usage
    above = _available(node.parent, limits=limits)
    if limits and node.borrowing_limit is not None:
        above = min(above, node.shared_left + node.borrowing_limit)
    return node.local_available + above


def _potential(node: _Node, *, limits: bool) -> float:
    if node.parent is None:
        return node.subtree_quota
    most = node.local_quota + _potential(node.parent, limits=limits)
    if limits and node.borrowing_limit is not None:
        most = min(most, node.subtree_quota + node.borrowing_limit)
    return most


def _below(root: _Node) -> Iterator[_Node]:
    yield root
    for child in root.children:
        yield from _below(child)


def _idle_in(cohort: _Node, but: _Node | None = None) -> dict[_Idle, float]:
    """Tell what a cohort's own quota and its children would lend if nobody had borrowed yet."""
    idle = {_Idle(child, alone=False): child.shared_left for child in cohort.children}
    idle[_Idle(cohort, alone=True)] = cohort.nominal
    return {one: amount for one, amount in idle.items() if amount > 0 and one.node is not but}


def _lend(total: float, idle: Mapping[_Idle, float]) -> dict[_Idle, float]:
    """Share a total out; what a child cohort gives comes from what lies idle below it."""
    given: dict[_Idle, float] = {}
    for one, amount in _share_out(total, idle).items():
        whole_cohort = one.node.kind is NodeKind.COHORT and not one.alone
        given |= _lend(amount, _idle_in(one.node)) if whole_cohort else {one: amount}
    return given


def _share_out(total: float, idle: Mapping[_Idle, float]) -> dict[_Idle, float]:
    """Cut a total up in proportion; whole amounts stay whole (largest remainder)."""
    gross = sum(idle.values())
    if gross <= total:
        return dict(idle)
    if not all(float(amount).is_integer() for amount in (total, *idle.values())):
        shares = {one: _decimal(amount * total / gross) for one, amount in idle.items()}
        return {one: share for one, share in shares.items() if share > 0}
    parts = {one: divmod(int(amount) * int(total), int(gross)) for one, amount in idle.items()}
    whole = {one: float(share) for one, (share, _) in parts.items()}
    left = int(total) - int(sum(whole.values()))
    for one in sorted(parts, key=lambda one: (-parts[one][1], one.name))[:left]:
        whole[one] += 1.0
    return {one: share for one, share in whole.items() if share > 0}


def _decimal(amount: float) -> float:
    """Take off what adding binary fractions leaves: Kueue counts in whole thousandths."""
    return round(amount, 6)


def reservations(queues: Iterable[ClusterQueue], flavor: str, resource: str) -> dict[str, float]:
    """Read from the ClusterQueues' status what is reserved; what it does not say is left out."""
    return {
        queue.name: row.reserved
        for queue in queues
        for row in queue.rows
        if (row.flavor, row.resource) == (flavor, resource) and row.reserved is not None
    }
