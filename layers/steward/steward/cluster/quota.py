"""Quota arithmetic: what may be borrowed, what is left, and which limit stands in the way.

Kueue's own rules for one flavor and one resource over the tree of cohorts and ClusterQueues
(`pkg/cache/scheduler/resource_node.go`, 0.12 to 0.19). Amounts are in base units throughout.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property

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


class _Node:
    """A ClusterQueue or Cohort; sums are computed when first asked for."""

    def __init__(self, kind: NodeKind, name: str, row: QuotaRow | None, usage: float) -> None:
        self.kind = kind
        self.name = name
        self.nominal = row.nominal if row else 0.0
        self.borrowing_limit = row.borrowing_limit if row else None
        self.lending_limit = row.lending_limit if row else None
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
        """Walk from here to the root; a cycle, which Kueue refuses, ends where it closes."""
        node: _Node | None = self
        seen: set[int] = set()
        while node is not None and id(node) not in seen:
            seen.add(id(node))
            yield node
            node = node.parent


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
        for cohort in declared.values():
            self._hang(self._cohorts[cohort.name], cohort.parent)
        for queue in queues:
            self._hang(self._queues[queue.name], queue.cohort)

    def _hang(self, node: _Node, parent: str | None) -> None:
        if not parent:
            return
        above = self._cohorts[parent]
        if any(one is node for one in above.path()):
            return  # a cycle: Kueue takes none of it into account, and neither is it followed here
        node.parent = above
        above.children.append(node)

    def nominal(self, queue: str) -> float:
        """Tell the nominal quota of a queue."""
        return self._queues[queue].nominal

    def usage(self, queue: str) -> float:
        """Tell what a queue uses."""
        return self._queues[queue].usage

    def borrowed(self, queue: str) -> float:
        """Tell what a queue uses above its nominal quota."""
        node = self._queues[queue]
        return max(0.0, node.usage - node.nominal)

    def available(self, queue: str, *, limits: bool = True) -> float:
        """Tell what a queue may still reserve now.

        Parameters
        ----------
        limits : bool
            False: as though no borrowing limit stood between it and what others leave idle.
        """
        return max(0.0, _available(self._queues[queue], limits=limits))

    def potential(self, queue: str, *, limits: bool = True) -> float:
        """Tell the most that a queue could ever reserve, were nothing in use."""
        return _potential(self._queues[queue], limits=limits)

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
                        needed=max(0.0, needed),
                    )
                )
            # What it keeps to itself serves the request first; the rest is asked of the cohort.
            need = max(0.0, need - node.local_available)
        return tuple(found)

    def lenders(self, queue: str) -> dict[tuple[NodeKind, str], float]:
        """Who could still lend to a queue, and how much.

        Kueue does not say whose quota is lent (#4039): what is lent already is taken from all that
        lie idle in proportion, and in whole units where all amounts are whole. Together they are
        what the queue could borrow if nothing limited it.
        """
        own = self._queues[queue]
        root = list(own.path())[-1]
        idle = {
            (node.kind, node.name): spare
            for node in _below(root)
            if node is not own and (spare := _spare(node)) > 0
        }
        left = max(0.0, self.available(queue, limits=False) - max(0.0, own.nominal - own.usage))
        return _share_out(left, idle)

    def siblings(self, queue: str) -> tuple[str, ...]:
        """Name the other queues of its tree."""
        own = self._queues[queue]
        root = list(own.path())[-1]
        nodes = (n for n in _below(root) if n.kind is NodeKind.QUEUE and n is not own)
        return tuple(sorted(node.name for node in nodes))


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


def _spare(node: _Node) -> float:
    """Tell what a node's own quota would lend if nobody had borrowed yet."""
    if node.kind is NodeKind.COHORT:
        return node.nominal  # a pool of its own, in nobody's use
    return max(0.0, node.shared_left)


def _share_out[K](total: float, idle: Mapping[K, float]) -> dict[K, float]:
    """Cut a total up in proportion; whole amounts stay whole (largest remainder)."""
    gross = sum(idle.values())
    if gross <= total:
        return dict(idle)
    shares = {key: amount * total / gross for key, amount in idle.items()}
    if not all(float(amount).is_integer() for amount in (total, *idle.values())):
        return {key: share for key, share in shares.items() if share > 0}
    whole = {key: float(int(share)) for key, share in shares.items()}
    left = round(total - sum(whole.values()))
    for key in sorted(shares, key=lambda key: (whole[key] - shares[key], str(key)))[:left]:
        whole[key] += 1.0
    return {key: share for key, share in whole.items() if share > 0}


def reservations(queues: Iterable[ClusterQueue], flavor: str, resource: str) -> dict[str, float]:
    """Read from the ClusterQueues' status what is reserved; what it does not say is left out."""
    return {
        queue.name: row.reserved
        for queue in queues
        for row in queue.rows
        if (row.flavor, row.resource) == (flavor, resource) and row.reserved is not None
    }
