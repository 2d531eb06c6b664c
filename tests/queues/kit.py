"""Kueue's objects as either API writes them, to put recordings of queues together from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.handmade import Object, controller
from tests.recordings import iso

GPU = "nvidia.com/gpu"
FLAVOR = "ml.p5.48xlarge"


@dataclass(frozen=True)
class Dialect:
    """A Kueue version: which API it serves, and how it words what it says."""

    version: str
    api: str

    @property
    def new(self) -> bool:
        return self.api == "v1beta2"

    @property
    def fits_never(self) -> str:
        """The text for a request that is above the maximum capacity; `{0}` asked, `{1}` possible."""
        if self.version == "0.12":
            return "insufficient quota for {res} in flavor {flavor}, request > maximum capacity ({0} > {1})"
        return (
            "insufficient quota for {res} in flavor {flavor}, previously considered podsets "
            "requests (0) + current podset request ({0}) > maximum capacity ({1})"
        )

    def preempted(self, by: str, why: str, paths: tuple[str, str] = ("/pool/b", "/pool/a")) -> str:
        """The message of a preemption."""
        text = f"Preempted to accommodate a workload (UID: {by}, JobUID: job-{by}) due to {why}"
        if not self.new:
            return text
        return f"{text}; preemptor path: {paths[0]}; preemptee path: {paths[1]}"


K12 = Dialect("0.12", "v1beta1")
K18 = Dialect("0.18", "v1beta2")
K19 = Dialect("0.19", "v1beta2")


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One flavor and resource; None is a limit that is not set, and use that equals what is reserved."""

    nominal: object
    borrowing: object = None
    lending: object = None
    reserved: object = "0"
    borrowed: object = "0"
    used: object = None


def _made(dialect: Dialect, kind: str, name: str, spec: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": f"kueue.x-k8s.io/{dialect.api}",
        "kind": kind,
        "metadata": {
            "name": name,
            "uid": f"uid-{kind}-{name}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": spec,
    }


def _flavors(rows: Mapping[str, Mapping[str, Quota]]) -> list[Object]:
    def row(resource: str, quota: Quota) -> Object:
        told = {"name": resource, "nominalQuota": quota.nominal}
        told |= {} if quota.borrowing is None else {"borrowingLimit": quota.borrowing}
        return told | ({} if quota.lending is None else {"lendingLimit": quota.lending})

    return [
        {"name": flavor, "resources": [row(*one) for one in resources.items()]}
        for flavor, resources in rows.items()
    ]


def _held(rows: Mapping[str, Mapping[str, Quota]], *, used: bool = False) -> list[Object]:
    def row(name: str, quota: Quota) -> Object:
        total = quota.used if used and quota.used is not None else quota.reserved
        return {"name": name, "total": total, "borrowed": quota.borrowed}

    return [
        {"name": flavor, "resources": [row(*one) for one in resources.items()]}
        for flavor, resources in rows.items()
    ]


def cluster_queue(
    dialect: Dialect,
    name: str,
    cohort: str | None,
    rows: Mapping[str, Mapping[str, Quota]],
    *,
    strategy: str = "BestEffortFIFO",
    active: tuple[str, str] = ("True", "Ready"),
    stop: str = "None",
    preemption: Object | None = None,
) -> Object:
    """A ClusterQueue with its status; `active` is status and reason of its condition."""
    resources = list(dict.fromkeys(name for quotas in rows.values() for name in quotas))
    spec: Object = {
        "queueingStrategy": strategy,
        "stopPolicy": stop,
        "preemption": preemption or {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": resources, "flavors": _flavors(rows)}],
    }
    if cohort:
        spec["cohortName" if dialect.new else "cohort"] = cohort
    queue = _made(dialect, "ClusterQueue", name, spec)
    status, reason = active
    queue["status"] = {
        "conditions": [{"type": "Active", "status": status, "reason": reason, "message": reason}],
        "flavorsReservation": _held(rows),
        "flavorsUsage": _held(rows, used=True),
    }
    return queue


def local_queue(
    dialect: Dialect, team: str, *, name: str | None = None, stop: str = "None"
) -> Object:
    """A team's LocalQueue."""
    namespace = f"hyperpod-ns-{team}"
    spec = {"clusterQueue": f"{namespace}-clusterqueue", "stopPolicy": stop}
    return _made(
        dialect, "LocalQueue", name or f"{namespace}-localqueue", spec, namespace=namespace
    )


def cohort(
    dialect: Dialect,
    name: str,
    parent: str | None = None,
    rows: Mapping[str, Mapping[str, Quota]] | None = None,
) -> Object:
    """A Cohort; its API went its own way up to 0.13."""
    spec: Object = {}
    if parent:
        spec["parentName" if dialect.new else "parent"] = parent
    if rows:
        resources = list(dict.fromkeys(name for quotas in rows.values() for name in quotas))
        spec["resourceGroups"] = [{"coveredResources": resources, "flavors": _flavors(rows)}]
    made = _made(dialect, "Cohort", name, spec)
    if not dialect.new:
        made["apiVersion"] = "kueue.x-k8s.io/v1alpha1"
    return made


def resource_flavor(dialect: Dialect, name: str) -> Object:
    """A ResourceFlavor of the nodes of an instance type."""
    labels = {"node.kubernetes.io/instance-type": name}
    return _made(dialect, "ResourceFlavor", name, {"nodeLabels": labels})


def priority_class(dialect: Dialect, name: str, value: int) -> Object:
    """A WorkloadPriorityClass; its value stands beside its metadata."""
    made = _made(dialect, "WorkloadPriorityClass", name, {}) | {"value": value}
    del made["spec"]
    return made


def condition(kind: str, status: str, reason: str, since: datetime, message: str = "") -> Object:
    """A condition of a Workload; `status` is True, False or Unknown, as text."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": iso(since),
    }


@dataclass(frozen=True, kw_only=True)
class Job:
    """A Job whose Workload is queued, admitted, evicted or finished.

    Attributes
    ----------
    conditions : sequence
        Of the Workload.
    admitted : bool
        Whether it carries an admission.
    evictions : int or None
        Preemptions that its counter says; None: no counter.
    """

    name: str
    team: str
    created: datetime
    gpus: int
    pods: int = 1
    priority: int = 25
    priority_class: str | None = "experimentation-priority"
    conditions: Sequence[Object] = ()
    admitted: bool = False
    evictions: int | None = None
    past_seconds: int | None = None
    uid: str | None = None
    queue: str | None = None
    requests: Mapping[str, str] = field(default_factory=dict)
    flavor: str = FLAVOR
    template: Object = field(default_factory=dict)
    active: bool = True

    @property
    def namespace(self) -> str:
        return f"hyperpod-ns-{self.team}"

    @property
    def subject(self) -> str:
        return f"Job/{self.namespace}/{self.name}"

    def objects(self, dialect: Dialect) -> dict[str, Object]:
        """The Job and its Workload."""
        owner = controller("batch/v1", "Job", self.name)
        metadata = {"name": self.name, "namespace": self.namespace, "uid": f"uid-Job-{self.name}"}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}}
        return {"jobs": job, "workloads": self._workload(dialect, owner)}

    def _workload(self, dialect: Dialect, owner: Object) -> Object:
        each = {GPU: str(self.gpus), **self.requests}
        container = {"name": "c", "resources": {"requests": each}}
        spec: Object = {
            "active": self.active,
            "priority": self.priority,
            "queueName": self.queue or f"{self.namespace}-localqueue",
            "podSets": [
                {
                    "name": "main",
                    "count": self.pods,
                    "template": {"spec": {"containers": [container]}} | self.template,
                }
            ],
        }
        if self.priority_class:
            spec |= _priority_class(dialect, self.priority_class)
        made = _made(
            dialect,
            "Workload",
            f"job-{self.name}-a1b2c",
            spec,
            namespace=self.namespace,
            ownerReferences=[owner],
        )
        made["metadata"] |= {
            "uid": self.uid or f"uid-w-{self.name}",
            "creationTimestamp": iso(self.created),
        }
        status: Object = {"conditions": list(self.conditions)}
        if self.admitted:
            status["admission"] = self._admission(each)
        if self.evictions is not None:
            counted = {"reason": "Preempted", "underlyingCause": "", "count": self.evictions}
            status["schedulingStats"] = {"evictions": [counted]}
        if self.past_seconds is not None:
            # v1beta1 spells it so.
            spelled = "Execution" if dialect.new else "Exexcution"
            status[f"accumulatedPast{spelled}TimeSeconds"] = self.past_seconds
        return made | {"status": status}

    def _admission(self, each: Mapping[str, str]) -> Object:
        usage = {
            name: str(self.pods * int(amount)) if amount.isdecimal() else amount
            for name, amount in each.items()
        }
        assignment = {
            "name": "main",
            "count": self.pods,
            "flavors": dict.fromkeys(each, self.flavor),
            "resourceUsage": usage,
        }
        queue = f"{self.namespace}-clusterqueue"
        return {"clusterQueue": queue, "podSetAssignments": [assignment]}


def _priority_class(dialect: Dialect, name: str) -> Object:
    if dialect.new:
        reference = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": name}
        return {"priorityClassRef": reference}
    return {
        "priorityClassName": name,
        "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
    }


def by_resource(dialect: Dialect, jobs: Iterable[Job]) -> dict[str, list[Object]]:
    """The objects of some jobs, by resource."""
    made: dict[str, list[Object]] = {"jobs": [], "workloads": []}
    for job in jobs:
        for resource, one in job.objects(dialect).items():
            made[resource].append(one)
    return made
