"""Who waits in which ClusterQueue, and what that is held against the queue's quota."""

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from steward.cluster.kueue import ClusterQueue, Workload
from steward.cluster.snapshot import Snapshot
from steward.cluster.weighing import Check, Quotas, Weighed
from steward.cluster.workloads import in_queue_order, pending


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


def lines(snapshot: Snapshot, quotas: Quotas) -> Mapping[str, Line]:
    """Line up what waits behind each ClusterQueue that runs.

    Leaves out what waits for something else than quota: a LocalQueue that is stopped or not there,
    and a back-off that is not over.
    """
    behind = {
        (queue.namespace, queue.name): queue.cluster_queue
        for queue in snapshot.local_queues
        if queue.stop_policy == "None"
    }
    waiting: dict[str, list[Workload]] = defaultdict(list)
    for workload in snapshot.workloads:
        name = behind.get((workload.namespace, workload.queue or ""))
        backs_off = workload.requeue and workload.requeue.at and workload.requeue.at > snapshot.at
        if name in quotas.queues and pending(workload) and not backs_off:
            waiting[name].append(workload)
    return {
        name: _line(quotas.queues[name], in_queue_order(workloads), quotas)
        for name, workloads in sorted(waiting.items())
        if runs(quotas.queues[name])
    }


def _line(queue: ClusterQueue, ordered: list[Workload], quotas: Quotas) -> Line:
    turn = ordered[:1] if queue.strategy == "StrictFIFO" else ordered
    shapes: dict[frozenset[tuple[str, float]], Weighed] = {}
    for workload in turn:
        shape = frozenset(workload.requests.items())
        if shape not in shapes:
            shapes[shape] = quotas.weigh(queue.name, workload.requests)
    waiters = (Waiter(workload=w, weighed=shapes[frozenset(w.requests.items())]) for w in turn)
    return Line(turn=tuple(waiters), length=len(ordered))
