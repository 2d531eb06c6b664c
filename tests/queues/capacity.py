"""Nodes that fail and come back, instances that do not come, quotas above what is left."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.handmade import Object, write
from tests.queues.kit import FLAVOR, GPU, K12, K19, Dialect, Job, Quota, cluster_queue
from tests.queues.scene import (
    NODES,
    Recorded,
    at,
    cluster,
    control_plane,
    holds,
    instance,
    machine,
    machines,
    running_pod,
)
from tests.recordings import iso

QUOTAS = {"platform-mlops": 4, "research": 14, "product-genai": 10}
"""28 of the 32 accelerators that there are: the example policy's."""


def _queues(dialect: Dialect, quotas: dict[str, int]) -> list[Object]:
    return [
        cluster_queue(
            dialect,
            f"hyperpod-ns-{team}-clusterqueue",
            "shared-pool",
            {FLAVOR: {GPU: Quota(nominal=str(quota))}},
        )
        for team, quota in quotas.items()
    ]


def _folder(
    folder: Path,
    when: str,
    dialect: Dialect,
    nodes: Sequence[Object],
    jobs: Sequence[Job] = (),
    quotas: dict[str, int] = QUOTAS,
) -> None:
    cluster(
        folder,
        at(when),
        dialect,
        queues=_queues(dialect, quotas),
        nodes=nodes,
        jobs=jobs,
        pods=[running_pod(job, at("08:00")) for job in jobs],
    )


def _unhealthy(dialect: Dialect, folder: Path) -> None:
    """Node 0 is away from 10:03 to 10:27, node 1 from 10:03 to 10:08."""
    control_plane(folder)
    train = Job(
        name="train", team="research", created=at("08:00"), gpus=8, admitted=True,
        conditions=holds(at("08:00")),
    )  # fmt: skip
    lost = machine(0, ready=("False", at("10:03")), health="UnschedulablePendingReplacement")
    shaken = machine(1, ready=("Unknown", at("10:03")))
    back = machine(0, ready=("True", at("10:27")))
    others = machines()[2:]
    _folder(folder, "09:00", dialect, machines(), [train])
    _folder(folder, "10:04", dialect, [lost, shaken, *others], [train])
    _folder(folder, "10:08", dialect, [lost, *machines()[1:]], [train])
    _folder(folder, "10:28", dialect, [back, *machines()[1:]], [train])


PAIR = (
    ("9a-1", "10:01:00", "Lifecycle script on_create.sh failed with exit code 1."),
    ("9a-2", "10:01:02", "Instance creation failed."),
)
"""Two seconds apart, with ids of their own."""


def cluster_event(identifier: str, when: str, text: str, number: int = 3) -> Object:
    """An entry of ListClusterEvents about an instance."""
    return {
        "EventId": identifier,
        "ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/a1b2c3d4e5f6",
        "ClusterName": "ml-shared-01",
        "InstanceGroupName": "gpu",
        "InstanceId": instance(number),
        "ResourceType": "Instance",
        "EventTime": iso(at(when)),
        "EventLevel": "Error",
        "Description": text,
    }


def _not_coming(folder: Path) -> None:
    """The fourth instance does not come; SageMaker says so twice, and lists both ever since."""
    nodes = [machine(number) for number in range(NODES - 1)]
    control_plane(folder, ("Running", "Running", "Running", "Pending"))
    listed = [cluster_event(*one) for one in PAIR]
    # In force from their times on.
    plane = folder / "sagemaker"
    (plane / "20261105T090000Z").mkdir()
    (plane / "20261105T100100Z").mkdir()
    for path in sorted(plane.glob("*.json")):
        for when in ("20261105T090000Z", "20261105T100100Z"):
            (plane / when / path.name).write_bytes(path.read_bytes())
        path.unlink()
    write(plane / "20261105T100100Z" / "ListClusterEvents.json", {"Events": listed})
    _folder(folder, "09:00", K19, nodes, quotas={"research": 14, "product-genai": 10})
    write(folder / "events" / "failed.json", [_told(one) for one in PAIR])


def _told(one: tuple[str, str, str]) -> Object:
    """The same entry as EventBridge delivers it."""
    entry = cluster_event(*one)
    arn = entry["ClusterArn"]
    return {
        "version": "0",
        "id": f"7bf73129-1428-4cd3-a780-{one[0]:>012}",
        "detail-type": "SageMaker HyperPod Cluster Event",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "time": iso(at(one[1])),
        "region": "us-east-1",
        "resources": [arn],
        "detail": {"EventDetails": entry | {"EventTime": at(one[1]).timestamp() * 1000}},
    }


def _promised(folder: Path) -> None:
    """All nodes are well; 40 are promised of 32. At 10:22 the quotas go down to 32."""
    control_plane(folder)
    _folder(folder, "09:00", K19, machines(), quotas={**QUOTAS, "research": 26})
    _folder(folder, "10:22", K19, machines(), quotas={**QUOTAS, "research": 18})


RECORDINGS = (
    *(
        Recorded(
            f"capacity-node-{dialect.version}",
            at("10:00"),
            at("10:45"),
            "5m",
            "Four nodes of 8, quotas of 28. One node is not Ready from 10:03 to 10:27 and to be "
            "replaced, another for five minutes. Right: the first is told at 10:15, ten minutes "
            "after it was first seen, since 10:03, with the quotas that 24 cannot serve; the second "
            "is not told; all is over at 10:35.",
            partial(_unhealthy, dialect),
        )
        for dialect in (K12, K19)
    ),
    Recorded(
        "capacity-provisioning",
        at("10:00"),
        at("10:20"),
        "5m",
        "An instance does not come. A lifecycle script fails, and so the creation, in two events "
        "two seconds apart with ids of their own, which are also delivered. Right: one finding "
        "since 10:01, ten minutes after it was first seen, with both events.",
        _not_coming,
    ),
    Recorded(
        "capacity-quotas",
        at("10:00"),
        at("10:35"),
        "5m",
        "Four healthy nodes of 8, and quotas of 40; from 10:22 on quotas of 32. Right: 8 too many, "
        "told at 10:10, ended as quota_changed at 10:30.",
        _promised,
    ),
)
