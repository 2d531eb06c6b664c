"""One row of a ClusterQueue's quota as the borrowing detector looks at it: who waits, and for what."""

from collections.abc import Callable
from datetime import datetime
from functools import cached_property

from steward.cluster.amounts import accelerators_each
from steward.cluster.borrowing.holdings import Holdings
from steward.cluster.borrowing.waiting import Line, Waiter, held_lines
from steward.cluster.kueue import ClusterQueue, QuotaRow
from steward.cluster.policy import BorrowingLimits, ClusterPolicy, Team
from steward.cluster.queue_teams import scope_of_queue, team_of_queue
from steward.cluster.quota import Limit, NodeKind, QuotaTree, finite_limit
from steward.cluster.snapshot import Snapshot
from steward.cluster.weighing import Check, Quotas
from steward.cluster.workloads import waiting_since

type Asking = tuple[Waiter, Check]
"""A workload that waits, and what it lacks of the row."""


class Scene:
    """A snapshot's quotas, lines and reservations."""

    def __init__(self, snapshot: Snapshot, cluster: ClusterPolicy) -> None:
        self.snapshot = snapshot
        self.cluster = cluster
        self.quotas = Quotas(snapshot.cluster_queues, snapshot.cohorts, snapshot.workloads)
        self.lines = held_lines(snapshot, self.quotas)
        self.holdings = Holdings(snapshot.workloads, snapshot.at)
        self._past: dict[tuple[str, str, datetime], QuotaTree] = {}

    def team_of(self, queue: str) -> Team | None:
        """Find the team of a queue."""
        return team_of_queue(self.quotas.queues[queue], self.snapshot, self.cluster)

    def past(self, row: QuotaRow, when: datetime) -> QuotaTree:
        """Return the tree of a row with what was in use at the least at some time."""
        key = (row.flavor, row.resource, when)
        if key not in self._past:
            queues, cohorts = self.snapshot.cluster_queues, self.snapshot.cohorts
            used = self.holdings.used(*key)
            self._past[key] = QuotaTree(queues, cohorts, row.flavor, row.resource, used)
        return self._past[key]


class Place:
    """A row of a ClusterQueue."""

    def __init__(self, queue: ClusterQueue, row: QuotaRow, scene: Scene) -> None:
        self.queue = queue
        self.row = row
        self.scene = scene
        self.tree = scene.quotas.tree(row.flavor, row.resource)
        self.line = scene.lines.get(queue.name, Line())

    @property
    def subject(self) -> str:
        """Name of the row as findings use it."""
        return f"ClusterQueue/{self.queue.name}/{self.row.flavor}/{self.row.resource}"

    @cached_property
    def team(self) -> Team | None:
        """Whose queue it is."""
        return self.scene.team_of(self.queue.name)

    @cached_property
    def limits(self) -> BorrowingLimits:
        """Limits in force for the queue."""
        snapshot, cluster = self.scene.snapshot, self.scene.cluster
        return cluster.limits(scope_of_queue(self.queue, snapshot, cluster)).borrowing

    @property
    def limit(self) -> float | None:
        """The queue's borrowing limit; None where it has none."""
        return finite_limit(self.row.borrowing_limit)

    @property
    def borrowed(self) -> float:
        """What it has reserved above its nominal quota."""
        return self.tree.borrowed(self.queue.name)

    @property
    def each(self) -> float:
        """Accelerators that one unit is."""
        return accelerators_each(self.row.resource)

    @property
    def enough(self) -> float | None:
        """What it has reserved where it counts as at its limit; None where no limit can bind."""
        if not self.limit:
            return None
        return round(self.row.nominal + self.limits.share * self.limit, 6)

    @property
    def at_limit(self) -> bool:
        """Whether it borrows up to its limit."""
        return self.enough is not None and self.tree.usage(self.queue.name) >= self.enough

    @property
    def others_lend(self) -> float:
        """The most that it could ever take from others."""
        return max(0.0, self.tree.potential(self.queue.name) - self.row.nominal)

    @cached_property
    def asking(self) -> tuple[Asking, ...]:
        """Workloads whose turn it is and that lack something of the row, in the queue's order."""
        key = (self.row.flavor, self.row.resource)
        return tuple(
            (waiter, check)
            for waiter in self.line.turn
            if not waiter.weighed.uncovered and (check := waiter.lacks(*key))
        )

    @cached_property
    def held_back(self) -> Asking | None:
        """The first that only borrowing limits hold back, this queue's own among them."""
        return next(
            (
                (waiter, check)
                for waiter, check in self.asking
                if waiter.weighed.limited and (own := own_limit(check)) and own.needed > own.limit
            ),
            None,
        )

    @cached_property
    def blocked(self) -> tuple[Asking, ...]:
        """Those that their queue's own quota would do for, were it not out at others."""
        return tuple(one for one in self.asking if one[0].weighed.within_nominal)

    @cached_property
    def crowded_out(self) -> tuple[Asking, ...]:
        """Those that would borrow, limit or no limit, and find too little left in the pool."""
        most = self.tree.potential(self.queue.name, limits=False)
        if self.limit == 0 or most <= self.row.nominal:
            return ()  # it never borrows, or there is nobody to borrow from
        return tuple(
            (waiter, check)
            for waiter, check in self.asking
            if not check.within_nominal and check.unlimited < check.need <= most
        )

    def at_limit_since(self) -> datetime | None:
        """Tell since when reservations prove that it borrows up to its limit."""
        enough = self.enough
        return self._since(lambda t: enough is not None and t.usage(self.queue.name) >= enough)

    def lacking_since(self, asking: tuple[Asking, ...], *, limits: bool) -> datetime | None:
        """Tell since when waiting times and reservations prove that one of some lacks the row."""
        first: dict[float, datetime] = {}
        for waiter, check in asking:
            since = waiting_since(waiter.workload)
            first[check.need] = min(since, first.get(check.need, since))
        proven = [
            max(waits, lacks)
            for need, waits in first.items()
            if (lacks := self._short_since(need, limits=limits))
        ]
        return min(proven, default=None)

    def _short_since(self, need: float, *, limits: bool) -> datetime | None:
        return self._since(lambda tree: need > tree.available(self.queue.name, limits=limits))

    def _since(self, holds: Callable[[QuotaTree], bool]) -> datetime | None:
        def then(when: datetime) -> bool:
            return holds(self.scene.past(self.row, when))

        return self.scene.holdings.since(self.row.flavor, self.row.resource, then)


def own_limit(check: Check) -> Limit | None:
    """Find the queue's own borrowing limit among those on the way."""
    return next((limit for limit in check.limits if limit.kind is NodeKind.QUEUE), None)
