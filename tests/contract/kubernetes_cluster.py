"""A small cluster as `kubectl get -o json` prints it, in either dialect of Kueue, and its server."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from werkzeug.serving import WSGIRequestHandler, make_server

from local.standins.kubernetes import Fault, KubernetesStandin
from steward.clock import FixedClock
from steward.ports import Clock, KubernetesReading, Wanted
from steward.sources.control_plane.reader import EksEndpoint
from steward.sources.kubernetes.objects import CREATED_BY
from steward.sources.kubernetes.reader import KubernetesApi

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
CREATED = "2026-11-02T06:00:00Z"
STARTED = "2026-11-02T06:01:30Z"

type Json = dict[str, Any]


class Recorded:
    """A recording in memory: one folder of files, in force from a time on."""

    def __init__(self, files: dict[str, Json], since: datetime = NOW) -> None:
        self._files = files
        self._since = since

    def kubernetes(self, resource: str, at: datetime) -> Json | None:
        return self._files.get(resource) if self.has_kubernetes(at) else None

    def has_kubernetes(self, at: datetime) -> bool:
        return bool(self._files) and at >= self._since


def listed(*items: Any) -> Json:
    """`kubectl get -o json` prints a v1 List whatever it holds."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}


def refusal(code: int, reason: str, message: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }


def owned(api_version: str, kind: str, name: str) -> list[Json]:
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}"}
    return [reference | {"controller": True, "blockOwnerDeletion": True}]


def thing(
    api_version: str, kind: str, namespace: str, name: str, owners: Sequence[Json] = ()
) -> Json:
    metadata: Json = {"namespace": namespace, "name": name, "uid": f"uid-{name}"}
    metadata |= {"creationTimestamp": CREATED, "ownerReferences": list(owners)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"secret": "x"}}


def pod(
    namespace: str,
    name: str,
    gpus: int,
    owners: Sequence[Json] = (),
    *,
    node: str = "hyperpod-i-0a",
    phase: str = "Running",
) -> Json:
    amounts = {"cpu": "8", "nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    container = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    body = thing("v1", "Pod", namespace, name, owners)
    body["spec"] = {"nodeName": node, "containers": [container]} if node else {"containers": []}
    body["status"] = {"phase": phase, "startTime": STARTED}
    return body


def node(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"},
        },
        "spec": {},
        "status": {
            "capacity": {"cpu": "192", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def namespace(name: str) -> Json:
    body = thing("v1", "Namespace", "", name)
    del body["metadata"]["namespace"]
    return body


def basic_files() -> dict[str, Json]:
    """Pods of every kind of owner, beside pods that hold nothing."""
    research, genai = "hyperpod-ns-research", "hyperpod-ns-genai"
    return {
        "nodes": listed(node("hyperpod-i-0a"), node("hyperpod-i-0b")),
        "namespaces": listed(namespace(research), namespace(genai), namespace("default")),
        "pods": listed(
            pod(research, "pretrain-0", 8, owned("kubeflow.org/v1", "PyTorchJob", "pretrain")),
            pod(research, "sweep-a-0", 2, owned("batch/v1", "Job", "sweep-a")),
            pod(genai, "chat-7d9f-x", 1, owned("apps/v1", "ReplicaSet", "chat-7d9f")),
            pod(genai, "ray-head", 4, owned("ray.io/v1", "RayCluster", "tune-raycluster-1")),
            pod("default", "notebook-0", 2),
            pod(research, "done-0", 8, phase="Succeeded"),
            pod(research, "waiting-0", 8, node="", phase="Pending"),
            pod("kube-system", "coredns-1", 0, owned("apps/v1", "ReplicaSet", "coredns")),
        ),
        "pytorchjobs": listed(thing("kubeflow.org/v1", "PyTorchJob", research, "pretrain")),
        "jobs": listed(
            thing(
                "batch/v1",
                "Job",
                research,
                "sweep-a",
                owned("jobset.x-k8s.io/v1alpha2", "JobSet", "sweep"),
            )
        ),
        "jobsets": listed(thing("jobset.x-k8s.io/v1alpha2", "JobSet", research, "sweep")),
        "replicasets": listed(
            thing(
                "apps/v1", "ReplicaSet", genai, "chat-7d9f", owned("apps/v1", "Deployment", "chat")
            )
        ),
        "deployments": listed(thing("apps/v1", "Deployment", genai, "chat")),
        "rayclusters": listed(
            thing(
                "ray.io/v1",
                "RayCluster",
                genai,
                "tune-raycluster-1",
                owned("ray.io/v1", "RayJob", "tune"),
            )
        ),
        "rayjobs": listed(thing("ray.io/v1", "RayJob", genai, "tune")),
        "events": kueue_events(),
    }


# --- the same queues and workloads, as Kueue 0.12 and as Kueue 0.19 print them --------------------

_PENDING = (
    "couldn't assign flavors to pod set worker: insufficient unused quota for "
    "nvidia.com/gpu in flavor ml.p5.48xlarge, 4 more needed"
)
_CONDITIONS = [
    {
        "type": "QuotaReserved",
        "status": "False",
        "reason": "Pending",
        "message": _PENDING,
        "lastTransitionTime": "2026-11-02T08:20:04Z",
    },
    {"type": "Requeued", "status": "Unknown", "reason": "Preempted", "message": ""},
]


def kueue_v1beta1() -> dict[str, Json]:
    api = "kueue.x-k8s.io/v1beta1"
    waiting = thing(api, "Workload", "hyperpod-ns-research", "pytorchjob-next-a41c9")
    waiting["metadata"]["ownerReferences"] = owned("kubeflow.org/v1", "PyTorchJob", "next")
    waiting["spec"] = {
        "active": True,
        "priority": 40,
        "priorityClassName": "training-priority",
        "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
        "queueName": "hyperpod-ns-research-localqueue",
        "podSets": [
            {
                "name": "worker",
                "count": 3,
                "minCount": 2,
                "topologyRequest": {"required": "topology.k8s.aws/network-node-layer-3"},
                "template": {
                    "spec": {
                        "containers": [
                            {
                                "name": "c",
                                "env": [{"name": "TOKEN", "value": "s3cret"}],
                                "resources": {
                                    "requests": {"nvidia.com/gpu": "4", "cpu": "1500m"},
                                    "limits": {"nvidia.com/gpu": "4"},
                                },
                            }
                        ]
                    }
                },
            }
        ],
    }
    waiting["status"] = {
        "conditions": _CONDITIONS,
        "schedulingStats": {
            "evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 2}]
        },
        "accumulatedPastExexcutionTimeSeconds": 5400,
    }
    running = thing(api, "Workload", "hyperpod-ns-research", "pytorchjob-pretrain-0be12")
    running["metadata"]["ownerReferences"] = owned("kubeflow.org/v1", "PyTorchJob", "pretrain")
    running["spec"] = {
        "queueName": "hyperpod-ns-research-localqueue",
        "podSets": [{"name": "worker", "count": 1}],
    }
    running["status"] = _admitted()
    queue = thing(api, "ClusterQueue", "", "hyperpod-ns-research-clusterqueue")
    del queue["metadata"]["namespace"]
    queue["metadata"]["labels"] = {"sagemaker.amazonaws.com/sagemaker-managed-queue": "true"}
    # 0.12: quotas of hand-applied objects may be numbers, and `cohort` is the field's name.
    quotas = [
        {
            "name": "nvidia.com/gpu",
            "nominalQuota": 14,
            "borrowingLimit": 7,
            "lendingLimit": None,
        }
    ]
    queue["spec"] = {
        "cohort": "shared-pool",
        **_groups(quotas),
        "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
        "admissionChecks": ["capacity"],
    }
    queue["status"] = _usage() | {"pendingWorkloadsStatus": {"clusterQueuePendingWorkload": []}}
    local = thing(api, "LocalQueue", "hyperpod-ns-research", "hyperpod-ns-research-localqueue")
    local["spec"] = {"clusterQueue": "hyperpod-ns-research-clusterqueue"}
    local["status"] = {"conditions": _active(), "flavorUsage": [], "pendingWorkloads": 1}
    flavor = _global(api, "ResourceFlavor", "ml.p5.48xlarge")
    flavor["spec"] = {"topologyName": "hyperpod-default", "nodeLabels": _INSTANCE}
    priority = _global(api, "WorkloadPriorityClass", "training-priority")
    priority["value"] = 40
    # 0.12 serves these two in a version of their own.
    older = "kueue.x-k8s.io/v1alpha1"
    cohort = _global(older, "Cohort", "shared-pool")
    cohort["spec"] = {"parent": "company"}
    topology = _global(older, "Topology", "hyperpod-default")
    topology["spec"] = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
    return {
        "workloads": listed(waiting, running),
        "clusterqueues": listed(queue),
        "localqueues": listed(local),
        "resourceflavors": listed(flavor),
        "workloadpriorityclasses": listed(priority),
        "cohorts": listed(cohort),
        "topologies": listed(topology),
    }


def kueue_v1beta2() -> dict[str, Json]:
    files = kueue_v1beta1()
    for file in files.values():
        for item in file["items"]:
            item["apiVersion"] = "kueue.x-k8s.io/v1beta2"
    first, second = files["workloads"]["items"]
    waiting = first["spec"]
    del waiting["priorityClassName"], waiting["priorityClassSource"]
    waiting["priorityClassRef"] = {
        "group": "kueue.x-k8s.io",
        "kind": "WorkloadPriorityClass",
        "name": "training-priority",
    }
    status = first["status"]
    seconds = status.pop("accumulatedPastExexcutionTimeSeconds")
    status["accumulatedPastExecutionTimeSeconds"] = seconds
    (assignment,) = second["status"]["admission"]["podSetAssignments"]
    assignment["topologyAssignment"] = {
        "levels": ["kubernetes.io/hostname"],
        "slices": [
            {
                "domainCount": 1,
                "valuesPerLevel": [{"individual": {"prefix": "hyperpod-i-", "roots": ["0a"]}}],
                "podCounts": {"universal": 1},
            }
        ],
    }
    (queue,) = files["clusterqueues"]["items"]
    quotas = [{"name": "nvidia.com/gpu", "nominalQuota": "14", "borrowingLimit": "7"}]
    queue["spec"] = {
        "cohortName": "shared-pool",
        **_groups(quotas),
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
        "admissionChecksStrategy": {"admissionChecks": [{"name": "capacity", "onFlavors": []}]},
    }
    del queue["status"]["pendingWorkloadsStatus"]
    (local,) = files["localqueues"]["items"]
    del local["status"]["flavorUsage"]
    local["status"]["flavorsUsage"] = []
    (cohort,) = files["cohorts"]["items"]
    cohort["spec"] = {"parentName": "company"}
    return files


def kueue_events() -> Json:
    """One event in the form of Kueue 0.12, one in that of 0.18 and later, and one of a pod."""
    about = {
        "kind": "Workload",
        "namespace": "hyperpod-ns-research",
        "name": "pytorchjob-next-a41c9",
        "uid": "uid-pytorchjob-next-a41c9",
    }
    old = thing("v1", "Event", "hyperpod-ns-research", "next.1") | {
        "involvedObject": about | {"apiVersion": "kueue.x-k8s.io/v1beta1"},
        "reason": "Preempted",
        "message": "Preempted to accommodate a workload",
        "count": 3,
        "firstTimestamp": "2026-11-02T08:00:00Z",
        "lastTimestamp": "2026-11-02T08:20:00Z",
        "eventTime": None,
        "source": {"component": "kueue-admission"},
    }
    new = thing("v1", "Event", "hyperpod-ns-research", "next.2") | {
        "involvedObject": about | {"apiVersion": "kueue.x-k8s.io/v1beta2"},
        "reason": "Pending",
        "message": _PENDING,
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": "2026-11-02T08:20:04.512345Z",
        "reportingComponent": "kueue-admission",
        "source": {},
    }
    pods = thing("v1", "Event", "hyperpod-ns-research", "pretrain-0.1") | {
        "involvedObject": {"kind": "Pod", "namespace": "hyperpod-ns-research", "name": "x"},
        "reason": "Pulled",
        "lastTimestamp": "2026-11-02T08:20:00Z",
    }
    return listed(old, new, pods)


_INSTANCE = {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"}


def _global(api: str, kind: str, name: str) -> Json:
    body = thing(api, kind, "", name)
    del body["metadata"]["namespace"], body["spec"]
    return body


def _groups(quotas: list[Json]) -> Json:
    flavors = [{"name": "ml.p5.48xlarge", "resources": quotas}]
    return {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]}


def _admitted() -> Json:
    return {
        "admission": {
            "clusterQueue": "hyperpod-ns-research-clusterqueue",
            "podSetAssignments": [
                {
                    "name": "worker",
                    "count": 1,
                    "flavors": {"nvidia.com/gpu": "ml.p5.48xlarge"},
                    "resourceUsage": {"nvidia.com/gpu": "8"},
                    "topologyAssignment": {
                        "levels": ["kubernetes.io/hostname"],
                        "domains": [{"values": ["hyperpod-i-0a"], "count": 1}],
                    },
                }
            ],
        },
        "conditions": [
            {
                "type": "Admitted",
                "status": "True",
                "reason": "Admitted",
                "message": "The workload is admitted",
                "lastTransitionTime": STARTED,
            }
        ],
    }


def _usage() -> Json:
    def flavor(total: str, borrowed: str) -> list[Json]:
        used = {"name": "nvidia.com/gpu", "total": total, "borrowed": borrowed}
        return [{"name": "ml.p5.48xlarge", "resources": [used]}]

    return {
        "flavorsReservation": flavor("17", "3"),
        "flavorsUsage": flavor("14", "0"),
        "conditions": _active(),
    }


def _active() -> list[Json]:
    return [{"type": "Active", "status": "True", "reason": "Ready", "message": "ready"}]


# --- serving and reading it -----------------------------------------------------------------------


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002  # werkzeug's name
        pass


class Observed:
    """Remembers what a WSGI application was asked for."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self.requests: list[tuple[str, str]] = []
        self.accepted: dict[str, str] = {}
        self.encodings: set[str] = set()

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterator[bytes]:
        path = environ["PATH_INFO"]
        self.requests.append((path, environ["QUERY_STRING"]))
        self.accepted[path] = environ.get("HTTP_ACCEPT", "")
        self.encodings.add(environ.get("HTTP_ACCEPT_ENCODING", ""))
        return iter(self._application(environ, start_response))

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]


@contextmanager
def served(application: "WSGIApplication", tls: SSLContext | None = None) -> Iterator[str]:
    """Serve on a free port of 127.0.0.1; gives the base URL."""
    server = make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=_Quiet, ssl_context=tls
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def standin(files: dict[str, Json], *faults: Fault) -> Observed:
    return Observed(KubernetesStandin(Recorded(files), lambda: NOW, faults))


def read(
    application: "WSGIApplication",
    clock: Clock | None = None,
    deadline_seconds: float = 30.0,
    wanted: Wanted | None = None,
) -> KubernetesReading:
    """Read a served cluster once, as the local rig does."""
    with served(application) as url:
        return api(url, clock, deadline_seconds).read(wanted or Wanted())


def api(
    url: str,
    clock: Clock | None = None,
    deadline_seconds: float = 30.0,
    ca_data: str = "",
    created_by: Sequence[str] = CREATED_BY,
) -> KubernetesApi:
    return KubernetesApi(
        lambda: EksEndpoint(endpoint=url, ca_data=ca_data, name="ml-shared-01-eks"),
        lambda: "k8s-aws-v1.dG9rZW4",
        clock or FixedClock(NOW),
        deadline_seconds,
        created_by=created_by,
        plain_http=url.startswith("http://"),
    )
