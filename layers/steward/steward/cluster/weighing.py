"""What a workload asks for, held against what its queue may still reserve.

Says for every resource which flavor would serve it, how much is missing, and whether a limit, the
cluster or the request itself stands in the way. One flavor a resource group for the whole workload:
Kueue may split pod sets over flavors, which no object says before it happens.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from steward.cluster.amounts import accelerators_each
from steward.cluster.kueue import ClusterQueue, Cohort, QuotaRow, Workload
from steward.cluster.quota import Limit, QuotaTree, reservations


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of a request on one flavor; amounts in base units.

    Attributes
    ----------
    reserved : float
        What the queue holds of it already.
    available : float
        What it may still reserve now.
    unlimited : float
        What it could reserve now if no borrowing limit stood in the way.
    potential : float
        The most it could ever hold.
    limits : tuple of Limit
        Borrowing limits from the queue to the root, with what the request needs of each.
    """

    flavor: str
    resource: str
    need: float
    nominal: float
    reserved: float
    available: float
    unlimited: float
    potential: float
    limits: tuple[Limit, ...]

    @property
    def fits(self) -> bool:
        """Whether it may be reserved now."""
        return self.need <= self.available

    @property
    def ever(self) -> bool:
        """Whether it could be reserved if nothing else were in use."""
        return self.need <= self.potential

    @property
    def limited(self) -> bool:
        """Whether it would fit but for borrowing limits."""
        return not self.fits and self.need <= self.unlimited

    @property
    def within_nominal(self) -> bool:
        """Whether it needs nothing but the queue's own quota."""
        return round(self.reserved + self.need, 6) <= self.nominal

    @property
    def missing(self) -> float:
        """What is missing now."""
        return round(max(0.0, self.need - self.available), 6)


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """A request held against a queue.

    Attributes
    ----------
    checks : tuple of Check
        One a resource that some group of the queue covers: accelerators first, then by name.
    uncovered : tuple of str
        Resources that no group of the queue covers.
    """

    checks: tuple[Check, ...]
    uncovered: tuple[str, ...] = ()

    @property
    def lacking(self) -> tuple[Check, ...]:
        """What does not fit now."""
        return tuple(check for check in self.checks if not check.fits)

    @property
    def fits(self) -> bool:
        """Whether all of it may be reserved now."""
        return not self.lacking and not self.uncovered

    @property
    def limited(self) -> bool:
        """Whether nothing but borrowing limits stands in the way."""
        lacking = self.lacking
        return bool(lacking) and not self.uncovered and all(check.limited for check in lacking)

    @property
    def within_nominal(self) -> bool:
        """Whether the queue's own quota would do for all of it."""
        return not self.uncovered and all(check.within_nominal for check in self.checks)


class Quotas:
    """The quotas of a cluster's queues, tree by tree as they are asked for.

    Parameters
    ----------
    queues, cohorts : sequence
        As they were listed.
    workloads : iterable of Workload
        Their reservations stand in where a queue's status does not say what is reserved.
    """

    def __init__(
        self,
        queues: Sequence[ClusterQueue],
        cohorts: Sequence[Cohort],
        workloads: Iterable[Workload] = (),
    ) -> None:
        self.queues = {queue.name: queue for queue in queues}
        self._cohorts = cohorts
        self._workloads = tuple(workloads)
        self._trees: dict[tuple[str, str], QuotaTree] = {}

    @cached_property
    def _assigned(self) -> Mapping[tuple[str, str, str], float]:
        """What workloads hold, by queue, flavor and resource."""
        total: dict[tuple[str, str, str], float] = {}
        for workload in self._workloads:
            for flavor, held in workload.assigned.items():
                for resource, amount in held.items():
                    key = (workload.cluster_queue or "", flavor, resource)
                    total[key] = total.get(key, 0.0) + amount
        return total

    def tree(self, flavor: str, resource: str) -> QuotaTree:
        """Return the tree of a flavor and resource."""
        key = (flavor, resource)
        if key not in self._trees:
            told = reservations(self.queues.values(), flavor, resource)
            usage = {
                name: told[name] if name in told else self._assigned.get((name, *key), 0.0)
                for name in self.queues
            }
            self._trees[key] = QuotaTree(self.queues.values(), self._cohorts, *key, usage)
        return self._trees[key]

    def weigh(
        self, queue: str, requests: Mapping[str, float], flavors: Mapping[str, str] | None = None
    ) -> Weighed:
        """Hold a request against a queue.

        Parameters
        ----------
        queue : str
            A ClusterQueue that was listed.
        requests : mapping of str to float
            Resource to amount, in base units.
        flavors : mapping of str to str, or None
            Resource to the flavor that is known to be meant, as a message names it. Else the first
            flavor of the group on which all of it fits now; else the first on which it fits without
            limits; else on which it could ever fit; else the one with the largest quota.
        """
        rows = self.queues[queue].rows
        wanted = {resource: amount for resource, amount in requests.items() if amount > 0}
        groups: dict[int, list[QuotaRow]] = {}
        for row in rows:
            if row.resource in wanted:
                groups.setdefault(row.group, []).append(row)
        checks: list[Check] = []
        for group in groups.values():
            meant = {f for r in group for f in [(flavors or {}).get(r.resource)] if f}
            names = dict.fromkeys(row.flavor for row in group)
            known = [name for name in names if name in meant] or list(names)
            tried = [self._checks(queue, name, group, wanted) for name in known]
            checks += min(tried, key=_rank)  # the first of equals, in the queue's own order
        covered = {check.resource for check in checks}
        checks.sort(key=lambda check: (accelerators_each(check.resource) == 0, check.resource))
        return Weighed(checks=tuple(checks), uncovered=tuple(sorted(wanted.keys() - covered)))

    def _checks(
        self, queue: str, flavor: str, group: Iterable[QuotaRow], wanted: Mapping[str, float]
    ) -> list[Check]:
        return [
            self._check(queue, flavor, row.resource, wanted[row.resource])
            for row in group
            if row.flavor == flavor
        ]

    def _check(self, queue: str, flavor: str, resource: str, need: float) -> Check:
        tree = self.tree(flavor, resource)
        return Check(
            flavor=flavor,
            resource=resource,
            need=need,
            nominal=tree.nominal(queue),
            reserved=tree.usage(queue),
            available=tree.available(queue),
            unlimited=tree.available(queue, limits=False),
            potential=tree.potential(queue),
            limits=tree.path_limits(queue, need),
        )


def _rank(checks: Iterable[Check]) -> tuple[int, float]:
    """Order flavors by how near a request is to being served on them."""
    checks = list(checks)
    if all(check.fits for check in checks):
        return 0, 0.0
    if all(check.fits or check.limited for check in checks):
        return 1, 0.0
    if all(check.ever for check in checks):
        return 2, 0.0
    return 3, -sum(check.nominal for check in checks if accelerators_each(check.resource))
