"""Writes small recordings: a cluster of one-GPU or many-GPU pods, with series of their own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

LISTED = [
    "workloads",
    "clusterqueues",
    "localqueues",
    "cohorts",
    "topologies",
    "resourceflavors",
    "workloadpriorityclasses",
    "namespaces",
    "nodes",
    "pods",
    "events",
    "jobs",
    "replicasets",
    "deployments",
    "statefulsets",
    "pytorchjobs",
    "hyperpodpytorchjobs",
    "rayclusters",
    "rayjobs",
    "jobsets",
    "networkpolicies",
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "serviceaccounts",
    "resourcequotas",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
]
"""What a recording holds of Kubernetes, from the recording format's own list."""

NODE_GPUS = 8


@dataclass(frozen=True, kw_only=True)
class RecordedPod:
    """A pod of a Job admitted by Kueue: one device a GPU, each with samples (time, percent).

    Tensor activity is 0-1, draw and limit are in watts.
    """

    name: str
    team: str = "research"
    node: int = 0
    start: datetime
    end: datetime | None = None
    samples: Mapping[str, Sequence[tuple[datetime, float]]] = field(default_factory=dict)
    held_mib: Mapping[str, Sequence[tuple[datetime, float]]] = field(default_factory=dict)
    tensor: Mapping[str, Sequence[tuple[datetime, float]]] = field(default_factory=dict)
    watts: Mapping[str, Sequence[tuple[datetime, float]]] = field(default_factory=dict)
    watts_limit: Mapping[str, Sequence[tuple[datetime, float]]] = field(default_factory=dict)
    model: str | None = None
    gpus: int = 1

    @property
    def namespace(self) -> str:
        return f"hyperpod-ns-{self.team}"


def write_recording(
    folder: Path,
    pods: Sequence[RecordedPod],
    start: datetime,
    end: datetime,
    *,
    tick: str = "5m",
    nodes: int = 4,
) -> Path:
    """Write a recording; Kubernetes changes whenever a pod starts or ends."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recording.yaml").write_text(
        f"cluster: ml-shared-01\nfrom: {iso(start)}\nto: {iso(end)}\ntick: {tick}\n"
    )
    changes = {start - timedelta(days=1)}
    changes |= {p.start for p in pods if p.start > start} | {p.end for p in pods if p.end}
    for when in sorted(changes):
        alive = [p for p in pods if p.start <= max(when, start) and (not p.end or when < p.end)]
        write_kubernetes(folder / "kubernetes" / f"{when:%Y%m%dT%H%M%SZ}", alive, nodes)
    write_control_plane(folder, nodes)
    (folder / "metrics").mkdir(exist_ok=True)
    (folder / "metrics" / "dcgm.om").write_text(open_metrics(pods))
    return folder


def write_kubernetes(folder: Path, pods: Sequence[RecordedPod], nodes: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    items: dict[str, list[Any]] = {resource: [] for resource in LISTED}
    for number in range(nodes):
        items["nodes"].append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": node_name(number),
                    "labels": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"},
                },
                "spec": {},
                "status": {
                    "capacity": {"nvidia.com/gpu": str(NODE_GPUS)},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )
    for team in sorted({pod.team for pod in pods} | {"research"}):
        namespace = f"hyperpod-ns-{team}"
        queue = {"clusterQueue": f"{namespace}-clusterqueue"}
        items["namespaces"].append(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        items["localqueues"].append(
            _kueue("LocalQueue", namespace, f"{namespace}-localqueue", queue)
        )
        items["clusterqueues"].append(
            _kueue("ClusterQueue", None, f"{namespace}-clusterqueue", {"resourceGroups": []})
        )
    for pod in pods:
        items["pods"].append(_pod(pod))
        items["jobs"].append(_job(pod))
        items["workloads"].append(_workload(pod))
    for resource, found in items.items():
        document = {"apiVersion": "v1", "kind": "List", "items": found}
        (folder / f"{resource}.json").write_text(json.dumps(document))


def write_control_plane(folder: Path, nodes: int) -> None:
    arn = "arn:aws:sagemaker:us-east-1:111122223333:cluster/a1b2c3d4e5f6"
    answers = {
        "sagemaker/DescribeCluster": {
            "ClusterArn": arn,
            "ClusterName": "ml-shared-01",
            "ClusterStatus": "InService",
            "InstanceGroups": [
                {
                    "InstanceGroupName": "gpu",
                    "InstanceType": "ml.p5.48xlarge",
                    "CurrentCount": nodes,
                    "TargetCount": nodes,
                    "Status": "InService",
                }
            ],
        },
        "sagemaker/ListClusterNodes": {"ClusterNodeSummaries": []},
        "sagemaker/ListComputeQuotas": {"ComputeQuotaSummaries": []},
        "sagemaker/ListClusterSchedulerConfigs": {"ClusterSchedulerConfigSummaries": []},
        "eks/DescribeCluster": {
            "cluster": {
                "name": "ml-shared-01-eks",
                "version": "1.33",
                "endpoint": "https://EXAMPLE.gr7.us-east-1.eks.amazonaws.com",
                "certificateAuthority": {"data": "LS0t"},
            }
        },
    }
    for name, answer in answers.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(answer))


def about_gpus(told: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the lines of a replay that speak of GPUs and their telemetry, or of no detector.

    These recordings hold no more of Kueue and SageMaker than their cases need, and the detectors
    that live on the rest say so.
    """
    ours = {None, "idle_gpus", "telemetry"}
    kept = [line for line in told if line.get("detector") in ours]
    summary = kept[-1]
    parts = {key: [x for x in summary[key] if x["detector"] in ours] for key in ("open", "unknown")}
    return [*kept[:-1], summary | parts]


def open_metrics(pods: Iterable[RecordedPod]) -> str:
    families: dict[str, list[str]] = {}
    for pod in pods:
        for family, series in (
            ("DCGM_FI_DEV_GPU_UTIL", pod.samples),
            ("DCGM_FI_DEV_FB_USED", pod.held_mib),
            ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", pod.tensor),
            ("DCGM_FI_DEV_POWER_USAGE", pod.watts),
            ("DCGM_FI_DEV_POWER_MGMT_LIMIT", pod.watts_limit),
        ):
            for uuid, points in series.items():
                model = f',modelName="{pod.model}"' if pod.model else ""
                labels = (
                    f'Hostname="{node_name(pod.node)}",UUID="{uuid}",'
                    f'namespace="{pod.namespace}",pod="{pod.name}"{model}'
                )
                families.setdefault(family, []).extend(
                    f"{family}{{{labels}}} {value!r} {when.timestamp():.0f}"
                    for when, value in points
                )
    lines = []
    for family, samples in families.items():
        lines += [f"# TYPE {family} gauge", *samples]
    return "\n".join([*lines, "# EOF", ""])


def node_name(number: int) -> str:
    return f"hyperpod-i-{number:017x}"


def job_subject(pod: RecordedPod) -> str:
    return f"Job/{pod.namespace}/{pod.name}-job"


def iso(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pod(pod: RecordedPod) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": f"uid-{pod.name}",
            "creationTimestamp": iso(pod.start),
            "ownerReferences": [_owner("batch/v1", "Job", f"{pod.name}-job")],
        },
        "spec": {
            "nodeName": node_name(pod.node),
            "containers": [
                {"name": "main", "resources": {"requests": {"nvidia.com/gpu": str(pod.gpus)}}}
            ],
        },
        "status": {"phase": "Running", "startTime": iso(pod.start)},
    }


def _job(pod: RecordedPod) -> dict[str, Any]:
    name = f"{pod.name}-job"
    metadata = {"name": name, "namespace": pod.namespace, "uid": f"uid-{name}"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}}


def _workload(pod: RecordedPod) -> dict[str, Any]:
    queue = f"{pod.namespace}-clusterqueue"
    spec = {
        "queueName": f"{pod.namespace}-localqueue",
        "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}],
    }
    workload = _kueue("Workload", pod.namespace, f"job-{pod.name}-a1b2c", spec)
    workload["metadata"] |= {
        "uid": f"uid-w-{pod.name}",
        "creationTimestamp": iso(pod.start),
        "ownerReferences": [_owner("batch/v1", "Job", f"{pod.name}-job")],
    }
    admitted = {
        "type": "Admitted",
        "status": "True",
        "reason": "Admitted",
        "message": "The workload is admitted",
        "lastTransitionTime": iso(pod.start),
    }
    assignment = {
        "name": "main",
        "count": 1,
        "flavors": {"nvidia.com/gpu": "ml.p5.48xlarge"},
        "resourceUsage": {"nvidia.com/gpu": str(pod.gpus)},
    }
    workload["status"] = {
        "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
        "conditions": [admitted],
    }
    return workload


def _owner(version: str, kind: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }


def _kueue(kind: str, namespace: str | None, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-{kind}-{name}"}
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }
