"""Kueue's Workloads of the demo as they were at a time: admission, conditions, counters."""

from collections import Counter
from datetime import datetime

from local.demo_recording.documents import Json, fill
from local.demo_recording.script import CLASSES, NODES, Job, namespace_of, uid
from steward.cluster.figures import stamp

FLAVOR = "ml.p5.48xlarge"

COHORTS = {
    "platform-mlops": "shared-pool",
    "research": "shared-pool",
    "product-genai": "no-sharing",
}

_API_VERSIONS = {"StatefulSet": "apps/v1", "Job": "batch/v1", "PyTorchJob": "kubeflow.org/v1"}


def quantity(resource: str, amount: int) -> str:
    """Write an amount as Kubernetes does; memory is in GiB."""
    return f"{amount}Gi" if resource == "memory" and amount else str(amount)


def owner(job: Job) -> Json:
    """Refer to what a job's pods belong to."""
    if job.kind == "Deployment":
        return reference("apps/v1", "ReplicaSet", job.replica_set)
    return reference(_API_VERSIONS[job.kind], job.kind, job.name)


def reference(api_version: str, kind: str, name: str) -> Json:
    """Refer to an owner."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "controller": True}


def name_of(job: Job) -> str:
    """Name a job's Workload."""
    queued = _queued(job)
    return _name(queued["kind"], queued["name"])


def used(job: Job) -> dict[str, int]:
    """Add up what a job's pods request."""
    return {name: len(job.places) * amount for name, amount in job.requests.items()}


def workload(job: Job, template: Json, at: datetime) -> Json:
    """Build a job's Workload."""
    queued = _queued(job)
    (built,) = fill(
        "manifests/workload",
        {
            "workload": name_of(job),
            "namespace": job.namespace,
            "created": stamp(job.created),
            "queued": queued,
            "queued_uid": uid(queued["kind"], job.namespace, queued["name"]),
            "weight": CLASSES[job.priority],
            "priority": job.priority,
            "podset": job.podset,
            "count": len(job.places),
            "template": template,
            "status": _status(job, at),
        },
    )
    return dict(built)


def _queued(job: Job) -> Json:
    """Refer to what Kueue queues: of a Deployment every pod by itself."""
    if job.kind == "Deployment":
        return reference("v1", "Pod", job.pod_name(0, job.runs[0]))
    return owner(job)


def _name(kind: str, name: str) -> str:
    plain = f"{kind.lower()}-{name}"
    return f"{plain}-{uid('Workload', plain)[-5:]}"


def _status(job: Job, at: datetime) -> Json:
    held, past = job.run(at) or job.finish(at), job.preempted(at)
    status: Json = {"conditions": _conditions(job, at)}
    if held:
        status["admission"] = _admission(job)
    else:
        status["resourceRequests"] = [{"name": job.podset, "resources": _amounts(job)}]
    if past:
        seconds = sum((run.released - run.start).total_seconds() for run in past)
        counted = {"reason": "Preempted", "underlyingCause": "", "count": len(past)}
        status["schedulingStats"] = {"evictions": [counted]}
        status["accumulatedPastExecutionTimeSeconds"] = int(seconds)
    return status


def _conditions(job: Job, at: datetime) -> list[Json]:
    finish, past = job.finish(at), job.preempted(at)
    held = job.run(at) or finish
    # Whenever a job waits nothing is left for it: all that it asks for is missing.
    values = {"namespace": job.namespace, "podset": job.podset, "start": "", "end": ""}
    values |= {"missing": str(used(job).get("nvidia.com/gpu", 0)), "waiting": stamp(job.created)}
    values |= dict.fromkeys(("evicted", "requeued", "preemption"), "")
    if held:
        values |= {"start": stamp(held.start), "end": stamp(held.end)}
    if past:
        values |= {"evicted": stamp(past[-1].end), "waiting": stamp(past[-1].released)}
        values |= {"requeued": stamp(past[0].released)}
        values |= {"preemption": _preemption(job, past[-1].preemptor)}
    wanted = {
        "admitted": held,
        "waiting": not held,
        "preempted": past and not held,
        "readmitted": past and held,
        "requeued": past,
        "finished": finish,
    }
    (conditions,) = fill("manifests/conditions", values)
    return [one for name, holds in wanted.items() if holds for one in conditions[name]]


def _preemption(job: Job, preemptor: str) -> str:
    """Say what Kueue says of a preemption by a job of research, the only ones that reclaim."""
    namespace = namespace_of("research")
    workload_uid = uid("Workload", namespace, _name("PyTorchJob", preemptor))
    paths = [f"/{COHORTS[t]}/{namespace_of(t)}-clusterqueue" for t in ("research", job.team)]
    return (
        f"Preempted to accommodate a workload (UID: {workload_uid}, "
        f"JobUID: {uid('PyTorchJob', namespace, preemptor)}) due to reclamation within the cohort; "
        f"preemptor path: {paths[0]}; preemptee path: {paths[1]}"
    )


def _amounts(job: Job) -> dict[str, str]:
    return {name: quantity(name, amount) for name, amount in used(job).items()}


def _admission(job: Job) -> Json:
    usage = _amounts(job)
    pods = Counter(NODES[node] for node, _ in job.places)
    (admission,) = fill(
        "manifests/admission",
        {
            "namespace": job.namespace,
            "podset": job.podset,
            "count": len(job.places),
            "flavors": dict.fromkeys(usage, FLAVOR),
            "usage": usage,
            "domains": len(pods),
            "nodes": list(pods),
            "counts": list(pods.values()),
        },
    )
    return dict(admission)
