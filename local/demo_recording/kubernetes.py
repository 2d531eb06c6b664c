"""Every Kubernetes object of the demo as it was at a time, by resource."""

from collections import Counter
from datetime import datetime

from local.demo_recording.documents import SETUP, Json, fill
from local.demo_recording.script import CLASSES, JOBS, NODES, QUOTAS, Job, uid, utc
from local.standins.kubernetes_resources import RESOURCES
from steward.cluster.figures import stamp

PER_GPU = {"nvidia.com/gpu": 1, "cpu": 24, "memory": 256, "vpc.amazonaws.com/efa": 4}
"""What a quota of one GPU of the instance comes with: vCPU, GiB and EFA interfaces."""

FLAVOR = "ml.p5.48xlarge"

_API_VERSIONS = {"StatefulSet": "apps/v1", "Job": "batch/v1", "PyTorchJob": "kubeflow.org/v1"}
_JOB_NAME_LABELS = {
    "Job": "batch.kubernetes.io/job-name",
    "PyTorchJob": "training.kubeflow.org/job-name",
}


def objects(at: datetime) -> dict[str, list[Json]]:
    """Build every object as it was at a time, by resource; resources without any are empty."""
    made = fill("manifests/cluster")
    for index, name in enumerate(NODES):
        made += fill("manifests/node", {"name": name, "address": f"10.2.64.{21 + index}"})
    for name, weight in CLASSES.items():
        made += fill("manifests/priority_class", {"name": name, "weight": weight})
    for team in QUOTAS:
        made += fill("manifests/team", _quota(team, at))
    for job in JOBS:
        made += _job_objects(job, at)
    listed: dict[str, list[Json]] = {name: [] for name in RESOURCES}
    plurals = {resource.kind: name for name, resource in RESOURCES.items()}
    for one in made:
        listed[plurals[one["kind"]]].append(_complete(one))
    return listed


def _complete(one: Json) -> Json:
    """Add what the API server adds: a UID, also of the owners, a time and a version."""
    metadata = one["metadata"]
    namespace = metadata.get("namespace", "")
    metadata["uid"] = uid(one["kind"], namespace, metadata["name"])
    metadata.setdefault("creationTimestamp", SETUP)
    metadata["resourceVersion"] = "48210"
    for owner in metadata.get("ownerReferences", []):
        owner["uid"] = uid(owner["kind"], namespace, owner["name"])
    return one


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}Gi" if resource == "memory" and amount else str(amount)


def _quota(team: str, at: datetime) -> Json:
    """Give a team's queues their quota, and the usage that its Workloads add up to."""
    lends = team != "product-genai"
    jobs = [job for job in JOBS if job.team == team and job.running(at)]
    used: Counter[str] = Counter()
    for job in jobs:
        used.update({name: amount * job.pods for name, amount in job.requests.items()})
    quota, usage = [], []
    for name, each in PER_GPU.items():
        nominal = each * QUOTAS[team]
        # BorrowLimit 50 is half of the own quota; DontLend is nothing out and nothing in.
        limit = {"borrowingLimit": _quantity(name, nominal // 2 if lends else 0)}
        limit |= {} if lends else {"lendingLimit": "0"}
        quota.append({"name": name, "nominalQuota": _quantity(name, nominal)} | limit)
        usage.append({"name": name, "total": _quantity(name, used[name]), "borrowed": "0"})
    local = [{"name": one["name"], "total": one["total"]} for one in usage]
    cohort = "shared-pool" if lends else "no-sharing"
    values = {"team": team, "cohort": cohort, "count": len(jobs), "covered": list(PER_GPU)}
    return values | {"quota": quota, "usage": usage, "local": local}


def _job_objects(job: Job, at: datetime) -> list[Json]:
    """Build a job's controllers, its pods and its Workload."""
    running = job.running(at)
    values = _names(job) | _pods(job)
    values |= {"phase": "Running" if running else "Succeeded", "ready": str(running)}
    controllers = fill(f"manifests/{job.kind}", values)
    (workload,) = fill("manifests/workload", values)
    if not running:
        (end,) = fill("manifests/finished", values)
        controllers[0]["status"] = end["job"]
        workload["status"]["conditions"].append(end["workload"])
    pods = [
        pod
        for index in range(job.pods)
        for pod in fill("manifests/pod", values | {"pod": job.pod_name(index)})
    ]
    return [*controllers, *pods, workload]


def _names(job: Job) -> Json:
    """Name a job and its Workload, what its pods belong to, and what Kueue queues."""
    # A Deployment's pods belong to its ReplicaSet, and Kueue queues them one by one.
    if job.kind == "Deployment":
        owner = ("apps/v1", "ReplicaSet", job.replica_set)
        queued = ("v1", "Pod", job.pod_name(0))
    else:
        owner = queued = (_API_VERSIONS[job.kind], job.kind, job.name)
    workload = f"{queued[1].lower()}-{queued[2]}"
    return {
        "name": job.name,
        "namespace": job.namespace,
        "owner": _owner(*owner),
        "queued": _owner(*queued),
        "queued_uid": uid(queued[1], job.namespace, queued[2]),
        "workload": f"{workload}-{uid('Workload', workload)[-5:]}",
        "created": stamp(utc(job.created)),
        "ended": stamp(utc(job.finished or job.created)),
        "priority": job.priority,
        "weight": CLASSES[job.priority],
    }


def _owner(api_version: str, kind: str, name: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "controller": True}


def _pods(job: Job) -> Json:
    """Describe a job's pods: how many there are, what they are labelled, run and request."""
    labels = {
        "app": job.name,
        "kueue.x-k8s.io/queue-name": f"{job.namespace}-localqueue",
        "kueue.x-k8s.io/priority-class": f"{job.priority}-priority",
        "sagemaker.user/created-by": job.created_by,
    }
    requests = {name: _quantity(name, amount) for name, amount in job.requests.items()}
    container = {
        "name": job.container,
        "image": f"111122223333.dkr.ecr.us-east-1.amazonaws.com/{job.image}",
        "args": job.args.split(),
        "env": [{"name": name, "value": value} for name, value in job.env.items()],
        "resources": {"requests": requests, "limits": requests},
    }
    spec = {"serviceAccountName": f"{job.team}-jobs", "containers": [container]}
    usage = {name: _quantity(name, job.pods * each) for name, each in job.requests.items()}
    metadata = {
        "namespace": job.namespace,
        "creationTimestamp": stamp(utc(job.created)),
        "labels": labels,
    }
    return {
        "meta": metadata | {"name": job.name},
        "replica_set_meta": metadata | {"name": job.replica_set},
        "count": job.pods,
        "pod_labels": labels | _pod_labels(job),
        "selector": {"matchLabels": {"app": job.name}},
        "template": {"metadata": {"labels": labels}, "spec": spec},
        "spec": spec | {"nodeName": NODES[job.node]},
        "container": job.container,
        "podset": job.podset,
        "usage": usage,
        "flavors": dict.fromkeys(usage, FLAVOR),
        "node": NODES[job.node],
    }


def _pod_labels(job: Job) -> dict[str, str]:
    """Give the labels that Kueue and the job's controller put on a pod."""
    own = _JOB_NAME_LABELS.get(job.kind)
    return {
        "kueue.x-k8s.io/podset": job.podset,
        "kueue.x-k8s.io/cluster-queue-name": f"{job.namespace}-clusterqueue",
        "kueue.x-k8s.io/local-queue-name": f"{job.namespace}-localqueue",
        **({own: job.name} if own else {}),
    }
