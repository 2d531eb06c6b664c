"""What the steward is refused for a while, and what that changes: nothing but what it knows."""

from pathlib import Path

from tests.queues.kit import FLAVOR, GPU, K19, Job, Quota, cluster_queue, condition
from tests.queues.scene import Recorded, at, cluster, control_plane, holds, machine, refused

TEXT = (
    f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in flavor "
    f"{FLAVOR}, 4 more needed"
)


def _record(folder: Path) -> None:
    control_plane(folder)
    why = K19.preempted("uid-w-other", "prioritization in the ClusterQueue")
    evicted = [
        *refused(at("11:50"), TEXT),
        condition("Evicted", "True", "Preempted", at("11:50"), why),
        condition("Preempted", "True", "InClusterQueue", at("11:50"), why),
    ]
    created = {"team": "research", "created": at("06:00")}
    jobs = [
        Job(name="waits", team="research", created=at("09:00"), gpus=8, conditions=refused(at("09:00"), TEXT)),
        Job(name="hit", gpus=8, conditions=evicted, evictions=3, **created),  # type: ignore[arg-type]
        Job(name="runs", gpus=8, pods=3, conditions=holds(at("10:00")), admitted=True, **created),  # type: ignore[arg-type]
    ]  # fmt: skip
    quotas = {
        "research": Quota(nominal="14", borrowing="10", reserved="24", borrowed="10"),
        "platform-mlops": Quota(nominal="14", borrowing="0"),
    }
    queues = [
        cluster_queue(K19, f"hyperpod-ns-{team}-clusterqueue", "pool", {FLAVOR: {GPU: quota}})
        for team, quota in quotas.items()
    ]
    nodes = [machine(0, ready=("False", at("11:30"))), *(machine(n) for n in (1, 2, 3))]
    kept = {"queues": queues, "jobs": jobs, "nodes": nodes}
    cluster(folder, at("11:55"), K19, **kept)  # type: ignore[arg-type]
    denied = ("workloads", "clusterqueues", "nodes")
    cluster(folder, at("12:12"), K19, without=denied, **kept)  # type: ignore[arg-type]
    cluster(folder, at("12:32"), K19, **kept)  # type: ignore[arg-type]


RECORDINGS = (
    Recorded(
        "refused-for-a-while",
        at("12:00"),
        at("12:50"),
        "5m",
        "A job waits, one was preempted three times, one has no pods, a pool is full, and a node is "
        "away. "
        "From 12:12 to 12:32 workloads, queues and nodes are denied. Right: each detector that "
        "needs them says so once for each, at 12:15 and at 12:35, and nothing ends or begins anew.",
        _record,
    ),
)
