"""Every Kubernetes object of the demo as it was at a time, by resource."""

from collections import Counter
from datetime import datetime

from local.demo_recording import workloads
from local.demo_recording.documents import SETUP, Json, fill
from local.demo_recording.script import CLASSES, JOBS, NODES, QUOTAS, Job, Run, uid
from local.demo_recording.workloads import COHORTS, quantity
from local.standins.kubernetes_resources import RESOURCES
from steward.cluster.figures import stamp

PER_GPU = {"nvidia.com/gpu": 1, "cpu": 24, "memory": 256, "vpc.amazonaws.com/efa": 4}
"""What a quota of one GPU of the instance comes with: vCPU, GiB and EFA interfaces."""

SHARE_WITHOUT_WEIGHT = 2**63 - 1
"""How Kueue writes the share of a queue of weight 0 that borrows."""

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
        if job.created <= at:
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


def _quota(team: str, at: datetime) -> Json:
    """Give a team's queues their quota, and what its jobs that hold quota or wait add up to."""
    lends = COHORTS[team] == "shared-pool"
    jobs = [job for job in JOBS if job.team == team and job.created <= at and not job.finish(at)]
    holding = [job for job in jobs if job.run(at)]
    used: Counter[str] = Counter()
    for job in holding:
        used.update(workloads.used(job))
    quota, usage = [], []
    for name, each in PER_GPU.items():
        nominal = each * QUOTAS[team]
        # BorrowLimit 50 is half of the own quota; DontLend is nothing out and nothing in.
        limit = {"borrowingLimit": quantity(name, nominal // 2 if lends else 0)}
        limit |= {} if lends else {"lendingLimit": "0"}
        quota.append({"name": name, "nominalQuota": quantity(name, nominal)} | limit)
        borrowed = quantity(name, max(0, used[name] - nominal))
        usage.append({"name": name, "total": quantity(name, used[name]), "borrowed": borrowed})
    borrows = any(one["borrowed"] != "0" for one in usage)
    return {
        "team": team,
        "cohort": COHORTS[team],
        "covered": list(PER_GPU),
        "quota": quota,
        "usage": usage,
        "local": [{"name": one["name"], "total": one["total"]} for one in usage],
        "count": len(holding),
        "pending": len(jobs) - len(holding),
        "share": SHARE_WITHOUT_WEIGHT if borrows else 0,
    }


def _job_objects(job: Job, at: datetime) -> list[Json]:
    """Build a job's controllers, the pods of its run if it has one, and its Workload."""
    labels = {
        "app": job.name,
        "kueue.x-k8s.io/queue-name": f"{job.namespace}-localqueue",
        "kueue.x-k8s.io/priority-class": f"{job.priority}-priority",
        "sagemaker.user/created-by": job.created_by,
    }
    spec = _pod_spec(job)
    template = {"metadata": {"labels": labels}, "spec": spec}
    run = job.run(at) or job.finish(at)
    made = _controllers(job, labels, template, at)
    if run:
        made += _pods(job, run, labels, spec, at)
    return [*made, workloads.workload(job, template, at)]


def _controllers(job: Job, labels: dict[str, str], template: Json, at: datetime) -> list[Json]:
    """Build what a job's owner made, and what a controller made of that."""
    metadata = {
        "namespace": job.namespace,
        "creationTimestamp": stamp(job.created),
        "labels": labels,
    }
    running = job.run(at) is not None
    values = {
        "name": job.name,
        "meta": metadata | {"name": job.name},
        "replica_set_meta": metadata | {"name": job.replica_set},
        "count": len(job.places),
        "selector": {"matchLabels": {"app": job.name}},
        "template": template,
        "suspend": not running and not job.finish(at),
        "status": _status(job, at),
    }
    return fill(f"manifests/{job.kind}", values)


def _status(job: Job, at: datetime) -> Json:
    """Say what a Job or PyTorchJob says of itself; the other kinds' templates say it themselves."""
    finish, past = job.finish(at), job.preempted(at)
    run = job.run(at) or finish
    state = "finished" if finish else "running" if run else "suspended"
    values = {
        "start": stamp(run.start) if run else "",
        "end": stamp(run.end) if run else "",
        "waiting": stamp(past[-1].end if past else job.created),
        "count": len(job.places),
    }
    (states,) = fill("manifests/status", values)
    return dict(states.get(job.kind, {}).get(state, {}))


def _pod_spec(job: Job) -> Json:
    requests = {name: quantity(name, amount) for name, amount in job.requests.items()}
    container = {
        "name": job.container,
        "image": f"111122223333.dkr.ecr.us-east-1.amazonaws.com/{job.image}",
        "args": job.args.split(),
        "env": [{"name": name, "value": value} for name, value in job.env.items()],
        "resources": {"requests": requests, "limits": requests},
    }
    return {"serviceAccountName": f"{job.team}-jobs", "containers": [container]}


def _pods(job: Job, run: Run, labels: dict[str, str], spec: Json, at: datetime) -> list[Json]:
    """Build the pods of a run, each on its node; those of a finished job have succeeded."""
    finished = job.finish(at) is not None
    own = _JOB_NAME_LABELS.get(job.kind)
    values = {
        "namespace": job.namespace,
        "start": stamp(run.start),
        "owner": workloads.owner(job),
        "workload": workloads.name_of(job),
        "podset": job.podset,
        "container": job.container,
        "phase": "Succeeded" if finished else "Running",
        "ready": str(not finished),
        # The labels that Kueue and the job's controller put on a pod.
        "pod_labels": labels
        | {
            "kueue.x-k8s.io/podset": job.podset,
            "kueue.x-k8s.io/cluster-queue-name": f"{job.namespace}-clusterqueue",
            "kueue.x-k8s.io/local-queue-name": f"{job.namespace}-localqueue",
            **({own: job.name} if own else {}),
        },
    }
    return [
        pod
        for index, (node, _) in enumerate(job.places)
        for pod in fill(
            "manifests/pod",
            values | {"pod": job.pod_name(index, run), "spec": spec | {"nodeName": NODES[node]}},
        )
    ]
