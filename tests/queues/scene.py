"""A cluster with queues, written as a recording: its folders, its nodes, its control plane."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from tests.handmade import EKS, Object, controller, kubernetes, pod, write
from tests.queues.kit import (
    FLAVOR,
    GPU,
    Dialect,
    Job,
    by_resource,
    condition,
    local_queue,
    priority_class,
    resource_flavor,
)
from tests.recordings import iso

RECORDINGS = Path(__file__).resolve().parent.parent / "recordings" / "queues"

DAY = date(2026, 11, 5)
CLASSES = {"experimentation": 25, "production-training": 75, "inference-serving": 100}
ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/a1b2c3d4e5f6"
NODES = 4


class Recorded(NamedTuple):
    """A recording: its folder, its ticks, what happened and what is right, and how to write it."""

    folder: str
    start: datetime
    end: datetime
    tick: str
    note: str
    contents: Callable[[Path], None]

    def record(self, place: Path) -> Path:
        """Write the recording below a folder."""
        made = place / self.folder
        made.mkdir(parents=True)
        said = fill(self.note, 98, initial_indent="  ", subsequent_indent="  ")
        period = f"from: {iso(self.start)}\nto: {iso(self.end)}\ntick: {self.tick}\n"
        (made / "recording.yaml").write_text(f"cluster: ml-shared-01\n{period}note: >-\n{said}\n")
        self.contents(made)
        return made


def at(text: str, day: int = 0) -> datetime:
    """A time of the day that most of this happens on, or so many days from it."""
    return datetime.combine(DAY, time.fromisoformat(text), UTC) + timedelta(days=day)


def stamp(text: str, day: int = 0) -> str:
    """The same, as a line states it."""
    return iso(at(text, day))


def instance(number: int) -> str:
    """An instance's id."""
    return f"i-0{number:016x}"


def machine_name(number: int) -> str:
    """The node of an instance."""
    return f"hyperpod-{instance(number)}"


def machine(
    number: int,
    *,
    gpus: int = 8,
    kind: str = FLAVOR,
    ready: tuple[str, datetime] | None = None,
    health: str = "Schedulable",
) -> Object:
    """A node; `ready` is the status of its condition, and since when."""
    status, since = ready or ("True", at("00:00", -30))
    amounts = {GPU: str(gpus), "cpu": "192", "memory": "2097152Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine_name(number),
            "labels": {
                "node.kubernetes.io/instance-type": kind,
                "sagemaker.amazonaws.com/node-health-status": health,
            },
        },
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": status, "lastTransitionTime": iso(since)}],
        },
    }


def machines(count: int = NODES) -> list[Object]:
    """So many healthy nodes."""
    return [machine(number) for number in range(count)]


def control_plane(
    folder: Path,
    statuses: Sequence[str] = ("Running",) * NODES,
    *,
    target: int | None = None,
    events: Iterable[Object] = (),
    quotas: Iterable[Object] = (),
) -> None:
    """Write what SageMaker and EKS say: one group, an instance for each status."""
    running = sum(status == "Running" for status in statuses)
    group = {
        "InstanceGroupName": "gpu",
        "InstanceType": FLAVOR,
        "CurrentCount": running,
        "TargetCount": NODES if target is None else target,
        "Status": "InService",
    }
    nodes = [
        {
            "InstanceGroupName": "gpu",
            "InstanceId": instance(number),
            "InstanceType": FLAVOR,
            "LaunchTime": iso(at("00:00", -30)),
            "InstanceStatus": {"Status": status, "Message": ""},
        }
        for number, status in enumerate(statuses)
    ]
    answers = {
        "sagemaker/DescribeCluster": {
            "ClusterArn": ARN,
            "ClusterName": "ml-shared-01",
            "ClusterStatus": "InService",
            "NodeRecovery": "Automatic",
            "Orchestrator": {
                "Eks": {"ClusterArn": "arn:aws:eks:us-east-1:111122223333:cluster/ml-shared-01-eks"}
            },
            "InstanceGroups": [group],
        },
        "sagemaker/ListClusterNodes": {"ClusterNodeSummaries": nodes},
        "sagemaker/ListClusterEvents": {"Events": list(events)},
        "sagemaker/ListComputeQuotas": {"ComputeQuotaSummaries": list(quotas)},
        "sagemaker/ListClusterSchedulerConfigs": {"ClusterSchedulerConfigSummaries": []},
        "eks/DescribeCluster": EKS,
        "eks/ListAddons": {"addons": []},
        "eks/ListPodIdentityAssociations": {"associations": []},
    }
    for name, answer in answers.items():
        write(folder / f"{name}.json", answer)
    # A Prometheus that answers, and knows nothing.
    place = folder / "metrics"
    place.mkdir(exist_ok=True)
    (place / "nothing.om").write_text("# EOF\n")


def compute_quota(team: str, accelerators: int, borrow_limit: int) -> Object:
    """A compute quota of LendAndBorrow."""
    return {
        "ComputeQuotaArn": f"arn:aws:sagemaker:us-east-1:111122223333:compute-quota/{team}",
        "ComputeQuotaId": f"quota{team}",
        "Name": f"{team}-quota",
        "ComputeQuotaVersion": 1,
        "Status": "Created",
        "ClusterArn": ARN,
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": [{"InstanceType": FLAVOR, "Accelerators": accelerators}],
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": borrow_limit},
            "PreemptTeamTasks": "LowerPriority",
        },
        "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 0},
        "ActivationState": "Enabled",
        "CreationTime": iso(at("00:00", -30)),
        "LastModifiedTime": iso(at("00:00", -30)),
    }


def cluster(
    folder: Path,
    when: datetime,
    dialect: Dialect,
    *,
    queues: Sequence[Object],
    jobs: Sequence[Job] = (),
    local_queues: Sequence[Object] | None = None,
    nodes: Sequence[Object] | None = None,
    flavors: Sequence[str] = (FLAVOR,),
    without: Iterable[str] = (),
    **others: Sequence[Object],
) -> None:
    """Write a `kubernetes/<time>` folder; each queue of a team gets its LocalQueue."""
    suffix = "-clusterqueue"
    names = (queue["metadata"]["name"] for queue in queues)
    spaces = [name.removesuffix(suffix) for name in names if name.endswith(suffix)]
    teams = [space.removeprefix("hyperpod-ns-") for space in spaces]
    if local_queues is None:
        local_queues = [local_queue(dialect, team) for team in teams]
    made: dict[str, Sequence[Object]] = {
        "namespaces": [_namespace(space) for space in spaces],
        "clusterqueues": queues,
        "localqueues": local_queues,
        "resourceflavors": [resource_flavor(dialect, name) for name in flavors],
        "workloadpriorityclasses": [
            priority_class(dialect, f"{name}-priority", value) for name, value in CLASSES.items()
        ],
        "nodes": machines() if nodes is None else nodes,
        **by_resource(dialect, jobs),
        **others,
    }
    left_out = set(without)
    kept = {name: items for name, items in made.items() if name not in left_out}
    kubernetes(folder, when, without=left_out, **kept)


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def running_pod(job: Job, since: datetime, node: int = 0, number: int = 0) -> Object:
    """One pod of a job on a node."""
    return pod(
        f"{job.name}-{number}",
        iso(since),
        namespace=job.namespace,
        requests={GPU: str(job.gpus)},
        owner=controller("batch/v1", "Job", job.name),
        node_name=machine_name(node),
    )


def holds(since: datetime) -> list[Object]:
    """Conditions of a workload that runs."""
    return [
        condition("QuotaReserved", "True", "QuotaReserved", since, "Quota reserved"),
        condition("Admitted", "True", "Admitted", since, "The workload is admitted"),
    ]


def refused(since: datetime, message: str, reason: str = "Pending") -> list[Object]:
    """Conditions of a workload that the scheduler turned down."""
    return [condition("QuotaReserved", "False", reason, since, message)]


def finished(since: datetime, ended: datetime) -> list[Object]:
    """Conditions of a workload that has ended."""
    return [*holds(since), condition("Finished", "True", "Succeeded", ended, "Job finished")]


def metrics(folder: Path, lines: Iterable[str], name: str) -> None:
    """Write a metrics file."""
    (folder / "metrics" / name).write_text("\n".join([*lines, "# EOF", ""]))


def size(folder: Path) -> int:
    """Bytes of a recording."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
