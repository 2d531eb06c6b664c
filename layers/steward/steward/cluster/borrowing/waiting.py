"""Who waits in which ClusterQueue, and what that is held against the queue's quota."""

from collections.abc import Mapping

import msgspec

from steward.cluster.kueue import ClusterQueue, Workload
from steward.cluster.lines import STRICT, lines
from steward.cluster.snapshot import Snapshot
from steward.cluster.weighing import Check, Quotas, Weighed


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that waits in a queue, and its request held against it."""

    workload: Workload
    weighed: Weighed

    def lacks(self, flavor: str, resource: str) -> Check | None:
        """Find what it lacks of a flavor and resource; None where that is not what it waits for."""
        checks = self.weighed.lacking
        return next((c for c in checks if (c.flavor, c.resource) == (flavor, resource)), None)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The workloads of a queue that wait for quota.

    Attributes
    ----------
    turn : tuple of Waiter
        Those that could be admitted, in the queue's order: with StrictFIFO only the head.
    length : int
        All that wait.
    """

    turn: tuple[Waiter, ...] = ()
    length: int = 0


def runs(queue: ClusterQueue) -> bool:
    """Whether a queue admits anything at all: it is neither stopped nor inactive."""
    active = next((c for c in queue.conditions if c.type == "Active"), None)
    return queue.stop_policy == "None" and (active is None or active.status is not False)


def held_lines(snapshot: Snapshot, quotas: Quotas) -> Mapping[str, Line]:
    """Hold what waits behind each ClusterQueue that runs against its quota.

    Leaves out what waits for something else than quota: a back-off that is not over, and a queue
    that is stopped or not there.
    """
    return {
        name: _line(quotas.queues[name], [w for w in line if not _backs_off(w, snapshot)], quotas)
        for name, line in lines(snapshot).items()
        if name in quotas.queues and runs(quotas.queues[name])
    }


def _backs_off(workload: Workload, snapshot: Snapshot) -> bool:
    later = workload.requeue.at if workload.requeue else None
    return later is not None and later > snapshot.at


def _line(queue: ClusterQueue, ordered: list[Workload], quotas: Quotas) -> Line:
    turn = ordered[:1] if queue.strategy == STRICT else ordered
    shapes: dict[frozenset[tuple[str, float]], Weighed] = {}
    for workload in turn:
        shape = frozenset(workload.requests.items())
        if shape not in shapes:
            shapes[shape] = quotas.weigh(queue.name, workload.requests)
    waiters = (Waiter(workload=w, weighed=shapes[frozenset(w.requests.items())]) for w in turn)
    return Line(turn=tuple(waiters), length=len(ordered))
