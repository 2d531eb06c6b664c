"""Who waits behind which ClusterQueue, in its order."""

from collections import defaultdict

from steward.cluster.kueue import Workload
from steward.cluster.snapshot import Snapshot
from steward.cluster.workloads import in_queue_order, pending

STRICT = "StrictFIFO"
"""Strategy of a queue whose head nobody may pass."""


def lines(snapshot: Snapshot) -> dict[str, tuple[Workload, ...]]:
    """Line up pending workloads by ClusterQueue; those of a stopped LocalQueue are in no line."""
    behind = {
        (queue.namespace, queue.name): queue.cluster_queue
        for queue in snapshot.local_queues
        if queue.stop_policy == "None"
    }
    waiting: dict[str, list[Workload]] = defaultdict(list)
    for workload in snapshot.workloads:
        name = behind.get((workload.namespace, workload.queue or ""))
        if name is not None and pending(workload):
            waiting[name].append(workload)
    return {name: tuple(in_queue_order(waiting[name])) for name in sorted(waiting)}
