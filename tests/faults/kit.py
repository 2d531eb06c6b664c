"""What the recordings of faults are put together from: jobs of one pod, and their series."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from tests.handmade import (
    NAMESPACE,
    NODE,
    Object,
    controller,
    kubernetes,
    node,
    owned,
    pod,
    write,
)
from tests.recordings import iso, write_control_plane

RECORDINGS = Path(__file__).resolve().parent.parent / "recordings" / "faults"

DAY = date(2026, 11, 5)
MINUTE = timedelta(minutes=1)
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
POWER = "DCGM_FI_DEV_POWER_USAGE"
POWER_LIMIT = "DCGM_FI_DEV_POWER_MGMT_LIMIT"
HELD = "DCGM_FI_DEV_FB_USED"

POLICY = """\
schema: 1
slack:
  channels: {gpu-platform: C0GPUPLATF01, gpu-research: C0GPURESEA01}
  platform_channel: gpu-platform
clusters:
  - name: ml-shared-01
    eks_name: ml-shared-01-eks
    region: us-east-1
    time_zone: UTC
    tick: 5m
    digest: {day: Monday, time: "09:00"}
    metrics:
      backend: prometheus
      endpoint: https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-00000000-0000-0000-0000-000000000000
      sigv4: true
      scrape_interval: 60s
      delay: 2m
    capacity:
      - {instance_type: ml.p5.48xlarge, count: 4, accelerators_per_instance: 8}
    prices:
      - {instance_type: ml.p5.48xlarge, usd_per_hour: 63.296, source: a list of rates, date: 2026-09-01}
    fair_share: true
    buffer_accelerators: 18
    priority_classes:
      - {name: experimentation, weight: 25}
    teams:
      - name: research
        accelerators: 14
        sharing: {strategy: LendAndBorrow, borrow_limit_percent: 50}
        owners: [research-oncall@example.com]
        channel: gpu-research
    thresholds:
      idle:
        window: 60m
"""
"""A policy for the cases that need one of their own; each changes the line that it is about."""

type Points = list[tuple[datetime, object]]


class Fault(NamedTuple):
    """A recording: its folder, its period, what happened and what is right, and how to write it."""

    folder: str
    start: str
    end: str
    note: str
    contents: Callable[[Path], None]

    def record(self, place: Path) -> Path:
        """Write the recording below a folder."""
        made = place / self.folder
        made.mkdir(parents=True)
        said = fill(self.note, 98, initial_indent="  ", subsequent_indent="  ")
        period = f"from: {iso(at(self.start))}\nto: {iso(at(self.end))}\n"
        (made / "recording.yaml").write_text(
            f"cluster: ml-shared-01\n{period}tick: 5m\nnote: >-\n{said}\n"
        )
        self.contents(made)
        return made


@dataclass(frozen=True, kw_only=True)
class Job:
    """A Job of one pod, admitted by Kueue."""

    name: str
    born: str
    amounts: Mapping[str, str]
    ended: str | None = None
    place: str = NODE

    @property
    def objects(self) -> Mapping[str, Object]:
        """The objects of a job, by resource."""
        born = iso(at(self.born))
        owner = controller("batch/v1", "Job", self.name)
        workload = owned("kueue.x-k8s.io/v1beta2", "Workload", f"job-{self.name}-a1b2c", owner)
        workload["metadata"]["creationTimestamp"] = born
        workload["spec"] = {
            "queueName": f"{NAMESPACE}-localqueue",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}],
        }
        assigned = {
            "name": "main",
            "count": 1,
            "flavors": dict.fromkeys(self.amounts, "ml.p5.48xlarge"),
            "resourceUsage": dict(self.amounts),
        }
        conditions = [("QuotaReserved", "QuotaReserved", born), ("Admitted", "Admitted", born)]
        if self.ended:
            conditions.append(("Finished", "Succeeded", iso(at(self.ended))))
        workload["status"] = {
            "admission": {
                "clusterQueue": f"{NAMESPACE}-clusterqueue",
                "podSetAssignments": [assigned],
            },
            "conditions": [
                {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": since}
                for kind, reason, since in conditions
            ],
        }
        return {
            "pods": pod(
                f"{self.name}-0",
                born,
                requests=self.amounts,
                owner=owner,
                phase="Succeeded" if self.ended else "Running",
                node_name=self.place,
            ),
            "jobs": owned("batch/v1", "Job", self.name),
            "workloads": workload,
        }


def job(name: str, born: str, gpus: int = 1, *, ended: str | None = None, place: str = NODE) -> Job:
    """A job that holds whole GPUs."""
    amounts = {"nvidia.com/gpu": str(gpus)}
    return Job(name=name, born=born, amounts=amounts, ended=ended, place=place)


def subject(name: str) -> str:
    """The subject of a job's lines."""
    return f"Job/{NAMESPACE}/{name}"


def cluster(
    folder: Path,
    since: str,
    jobs: Sequence[Job],
    *,
    nodes: Sequence[Object] | None = None,
    without: Iterable[str] = (),
) -> Path:
    """Write what Kubernetes shows from some time on, and the control plane; gives its folder."""
    write_control_plane(folder, 1)
    write(folder / "sagemaker" / "ListClusterEvents.json", {"Events": []})
    write(folder / "eks" / "ListAddons.json", {"addons": []})
    write(folder / "eks" / "ListPodIdentityAssociations.json", {"associations": []})
    queue = {
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu"],
                "flavors": [
                    {
                        "name": "ml.p5.48xlarge",
                        "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}],
                    }
                ],
            }
        ],
    }
    when = at(since)
    kubernetes(
        folder,
        when,
        without=without,
        nodes=[node()] if nodes is None else nodes,
        namespaces=[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}],
        clusterqueues=[_kueue("ClusterQueue", f"{NAMESPACE}-clusterqueue", queue)],
        localqueues=[
            _kueue(
                "LocalQueue",
                f"{NAMESPACE}-localqueue",
                {"clusterQueue": f"{NAMESPACE}-clusterqueue"},
                namespace=NAMESPACE,
            )
        ],
        resourceflavors=[_kueue("ResourceFlavor", "ml.p5.48xlarge", {})],
        **{
            resource: [one.objects[resource] for one in jobs]
            for resource in ("pods", "jobs", "workloads")
            if resource not in without
        },
    )
    return folder / "kubernetes" / f"{when:%Y%m%dT%H%M%SZ}"


def _kueue(kind: str, name: str, spec: Object, **metadata: str) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", **metadata},
        "spec": spec,
    }


def at(text: str) -> datetime:
    """A time of the one day that all of this happens on."""
    return datetime.combine(DAY, time.fromisoformat(text), UTC)


def stamp(text: str) -> str:
    """The same, as a line states it."""
    return iso(at(text))


def every_minute(start: str, stop: str, value: object) -> Points:
    """A sample a minute from `start` to `stop`, both included."""
    count = int((at(stop) - at(start)) / MINUTE) + 1
    return [(at(start) + n * MINUTE, value) for n in range(count)]


def with_readings(points: Points, readings: Mapping[str, object]) -> Points:
    """The same samples, some of which read otherwise."""
    others = {at(when): value for when, value in readings.items()}
    return [(when, others.get(when, value)) for when, value in points]
