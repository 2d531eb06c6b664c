"""The KubernetesReader port: the adapter against the stand-in, over HTTP on loopback.

What the cluster holds is written in `kubernetes_cluster.py`, in Kubernetes' own words; the nouns
expected of it are written out here by hand.
"""

import base64
import gzip
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from ruamel.yaml import YAML
from werkzeug.test import Client

from local.standins.kubernetes import Fault
from steward.clock import FixedClock, SystemClock
from steward.cluster.accelerators import Owner
from steward.cluster.audit import Audit
from steward.cluster.kueue import Taint
from steward.cluster.pods import GpuPod
from steward.cluster.snapshot import Node, Part, PartStatus
from steward.errors import ConfigError, DeniedError, PermanentError, StewardError
from steward.ports import KubernetesReading, Wanted
from steward.sources.control_plane.reader import EksEndpoint
from steward.sources.kubernetes.reader import KubernetesApi
from steward.sources.kubernetes.session import PAGE
from tests.contract.kubernetes_cluster import (
    NOW,
    Json,
    Observed,
    api,
    basic_files,
    kueue_v1beta2,
    listed,
    owned,
    pod,
    read,
    refusal,
    served,
    standin,
    thing,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ROOT = Path(__file__).parents[2]
RESEARCH, GENAI = "hyperpod-ns-research", "hyperpod-ns-genai"
STARTED = datetime(2026, 11, 2, 6, 1, 30, tzinfo=UTC)


TICK = [
    "nodes",
    "namespaces",
    "cohorts",
    "topologies",
    "clusterqueues",
    "localqueues",
    "resourceflavors",
    "workloadpriorityclasses",
    "workloads",
    "pods",
    "events",
]


def everything() -> dict[str, Json]:
    return basic_files() | kueue_v1beta2()


def statuses(reading: KubernetesReading) -> dict[str, PartStatus]:
    return {part.name.removeprefix("kubernetes/"): part.status for part in reading.parts}


def part(reading: KubernetesReading, resource: str) -> Part:
    (found,) = [one for one in reading.parts if one.name == f"kubernetes/{resource}"]
    return found


def many_pods(count: int) -> Json:
    return listed(*(pod("default", f"p-{number:04}", 1) for number in range(count)))


def owner(kind: str, namespace: str, name: str) -> Owner:
    return Owner(kind=kind, namespace=namespace, name=name)


def certificate(folder: Path) -> tuple[str, SSLContext]:
    """Make a certificate for 127.0.0.1 that signs itself: as EKS hands it out, and to serve with."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    begun = datetime.now(UTC) - timedelta(hours=1)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begun, begun + timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = signed.public_bytes(Encoding.PEM)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "both.pem").write_bytes(pem + secret)
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return base64.b64encode(pem).decode(), context


# --- what is read --------------------------------------------------------------------------------


def test_live_gpu_pods_are_read_with_their_owners_up_to_the_top() -> None:
    # Finished, unbound and GPU-less pods hold no accelerator. Owners by the controller references:
    # ReplicaSet -> Deployment, Job -> JobSet, RayCluster -> RayJob; a bare pod is its own owner.
    reading = read(standin(everything()))
    expected = {
        "pretrain-0": (8, [owner("PyTorchJob", RESEARCH, "pretrain")]),
        "sweep-a-0": (2, [owner("Job", RESEARCH, "sweep-a"), owner("JobSet", RESEARCH, "sweep")]),
        "chat-7d9f-x": (
            1,
            [owner("ReplicaSet", GENAI, "chat-7d9f"), owner("Deployment", GENAI, "chat")],
        ),
        "ray-head": (
            4,
            [owner("RayCluster", GENAI, "tune-raycluster-1"), owner("RayJob", GENAI, "tune")],
        ),
        "notebook-0": (2, []),
    }
    found = {one.name: (one.accelerators, list(one.owner_chain)) for one in reading.pods}
    assert found == expected
    tops = {one.name: one.owner for one in reading.pods}
    assert tops["chat-7d9f-x"] == owner("Deployment", GENAI, "chat")
    assert tops["notebook-0"] == owner("Pod", "default", "notebook-0")


def test_a_pod_carries_what_the_port_promises_and_nothing_else() -> None:
    reading = read(standin(everything()))
    assert reading.pods[0] == GpuPod(
        namespace=RESEARCH,
        name="pretrain-0",
        uid="uid-pretrain-0",
        node="hyperpod-i-0a",
        accelerators=8,
        resource="nvidia.com/gpu",
        since=STARTED,
        owner=owner("PyTorchJob", RESEARCH, "pretrain"),
        owner_chain=(owner("PyTorchJob", RESEARCH, "pretrain"),),
        labels={},
    )


def test_nodes_and_namespaces_are_read() -> None:
    # Labels: those that a flavor or topology goes by, and no others.
    files = everything()
    spec = {"nodeLabels": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"}}
    flavor = thing("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "", "ml.p5.48xlarge") | {
        "spec": spec
    }
    files["resourceflavors"] = listed(flavor)
    levels = {"levels": [{"nodeLabel": "example.com/rack"}]}
    files["topologies"] = listed(
        thing("kueue.x-k8s.io/v1beta2", "Topology", "", "racks") | {"spec": levels}
    )
    first = files["nodes"]["items"][0]
    first["metadata"]["labels"] |= {"example.com/rack": "r1", "example.com/other": "hidden"}
    first["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    first["status"]["allocatable"] = {
        "cpu": "191500m",
        "memory": "2Ti",
        "nvidia.com/gpu": "8",
        "ephemeral-storage": "1Ti",
    }
    reading = read(standin(files))
    assert reading.nodes[0] == Node(
        name="hyperpod-i-0a",
        instance_type="ml.p5.48xlarge",
        accelerators=8,
        ready=True,
        schedulable=True,
        health=None,
        allocatable={"cpu": 191.5, "memory": 2.0**41, "nvidia.com/gpu": 8.0},
        taints=(Taint(key="gpu", value="", effect="NoSchedule"),),
        labels={
            "example.com/rack": "r1",
            "node.kubernetes.io/instance-type": "ml.p5.48xlarge",
        },
    )
    assert reading.namespaces == {RESEARCH: {}, GENAI: {}, "default": {}}


def test_owner_lists_are_read_only_where_gpu_pods_lead_to_them() -> None:
    # CoreDNS is owned by a ReplicaSet too, but holds no GPU; here nothing that does is owned.
    files = everything()
    files["workloads"] = listed()
    files["pods"] = listed(
        pod("default", "notebook-0", 2),
        pod("kube-system", "coredns-1", 0, owned("apps/v1", "ReplicaSet", "coredns")),
    )
    server = standin(files)
    reading = read(server)
    assert set(statuses(reading)) == set(TICK)
    assert not [path for path in server.paths if path.startswith("/apis/apps")]


@pytest.mark.parametrize(
    ("resource", "followed", "top"),
    [
        # CronJobs, notebooks and spaces are not listed, yet the reference to each names it.
        ("jobs", ("batch/v1", "Job"), ("batch/v1", "CronJob")),
        ("statefulsets", ("apps/v1", "StatefulSet"), ("kubeflow.org/v1", "Notebook")),
        ("statefulsets", ("apps/v1", "StatefulSet"), ("workspace.jupyter.org/v1alpha1", "Space")),
        (
            "hyperpodpytorchjobs",
            ("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob"),
            ("example.com/v1", "Pipeline"),
        ),
    ],
)
def test_a_kind_that_is_not_followed_ends_the_chain_as_the_top_owner(
    resource: str, followed: tuple[str, str], top: tuple[str, str]
) -> None:
    files = everything()
    files["pods"] = listed(pod(RESEARCH, "x-0", 1, owned(*followed, "x")))
    files[resource] = listed(thing(*followed, RESEARCH, "x", owned(*top, "above")))
    (found,) = read(standin(files)).pods
    assert found.owner == owner(top[1], RESEARCH, "above")
    assert [one.kind for one in found.owner_chain] == [followed[1], top[1]]


def test_only_metadata_of_owners_and_namespaces_leaves_the_server() -> None:
    server = standin(everything())
    read(server)
    reduced = {
        p for p, accept in server.accepted.items() if "as=PartialObjectMetadataList" in accept
    }
    assert reduced == {
        "/api/v1/namespaces",
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/replicasets",
        "/apis/batch/v1/jobs",
        "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
        "/apis/kubeflow.org/v1/pytorchjobs",
        "/apis/ray.io/v1/rayclusters",
        "/apis/ray.io/v1/rayjobs",
    }


def test_the_cluster_roles_grant_exactly_what_is_listed() -> None:
    # Asked for by a cluster whose pods lead to every kind of owner that is followed.
    kinds = {
        "ReplicaSet": ("apps", "v1", "replicasets"),
        "Deployment": ("apps", "v1", "deployments"),
        "StatefulSet": ("apps", "v1", "statefulsets"),
        "Job": ("batch", "v1", "jobs"),
        "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets"),
        "PyTorchJob": ("kubeflow.org", "v1", "pytorchjobs"),
        "HyperPodPyTorchJob": ("sagemaker.amazonaws.com", "v1", "hyperpodpytorchjobs"),
        "RayCluster": ("ray.io", "v1", "rayclusters"),
        "RayJob": ("ray.io", "v1", "rayjobs"),
    }
    files = everything()
    files["pods"] = listed(
        *(
            pod("default", f"p-{kind.lower()}", 1, owned(f"{group}/{version}", kind, "x"))
            for kind, (group, version, _) in kinds.items()
        )
    )
    for kind, (group, version, resource) in kinds.items():
        files[resource] = listed(thing(f"{group}/{version}", kind, "default", "x"))
    tick, audit = standin(files), standin(files)
    read(tick)
    assert granted("tick") == asked(tick)
    # Pods of one namespace are the same permission: the rule names no namespace.
    governed = standin(files)
    read(governed, wanted=Wanted(namespaces=(RESEARCH,), everywhere=False))
    assert asked(governed) <= granted("tick")
    read(audit, wanted=Wanted(audit=True))
    assert granted("audit") == asked(audit) - asked(tick)


def test_an_audit_is_read_beside_the_tick_and_a_tick_reads_none() -> None:
    files = everything() | {"roles": listed(), "serviceaccounts": listed()}
    reading = read(standin(files), wanted=Wanted(audit=True))
    assert reading.audit is not None
    assert reading.audit.roles == ()  # read, and empty
    assert reading.audit.cluster_roles is None  # refused
    assert statuses(reading)["roles"] is PartStatus.OK
    assert statuses(reading)["clusterroles"] is PartStatus.DENIED
    assert len(reading.pods) == 5
    assert read(standin(files)).audit is None


def asked(server: Observed) -> set[tuple[str, str]]:
    """Give the group and resource of every list that was asked for."""
    found = set()
    for path in server.paths:
        match path.strip("/").split("/"):
            case ["api", _, resource] | ["api", _, "namespaces", _, resource]:
                found.add(("", resource))
            case ["apis", group, _, resource]:
                found.add((group, resource))
    return found


def granted(scope: str) -> set[tuple[str, str]]:
    """Give the groups and resources of a scope's ClusterRole, which is bound, and only lists."""
    file = ROOT / f"docs/access/clusterrole-{scope}.yaml"
    role, binding = YAML(typ="safe").load_all(file)
    assert (role["kind"], binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == f"gpu-steward-{scope}"
    assert [(one["kind"], one["name"]) for one in binding["subjects"]] == [("Group", "gpu-steward")]
    rules = role["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list"}
    return {(g, r) for rule in rules for g in rule["apiGroups"] for r in rule["resources"]}


# --- paging --------------------------------------------------------------------------------------


def test_a_long_list_is_read_page_by_page_to_its_end() -> None:
    files = everything() | {"pods": many_pods(2 * PAGE + 1)}
    server = standin(files)
    reading = read(server)
    assert [one.name for one in reading.pods] == [f"p-{n:04}" for n in range(2 * PAGE + 1)]
    asked = [query for path, query in server.requests if path == "/api/v1/pods"]
    assert [("continue=" in query, f"limit={PAGE}" in query) for query in asked] == [
        (False, True),
        (True, True),
        (True, True),
    ]


def test_a_list_that_expires_while_it_is_paged_starts_again_from_its_beginning() -> None:
    # The first page is read twice: nothing of the first attempt may be counted again.
    server = standin(
        everything() | {"pods": many_pods(PAGE + 1)},
        Fault(resource="pods", status=410, continued=True),
    )
    reading = read(server)
    assert len(reading.pods) == PAGE + 1
    assert part(reading, "pods").status is PartStatus.OK
    assert server.paths.count("/api/v1/pods") == 4  # page 1, 410, page 1, page 2


def test_a_list_that_expires_twice_is_unreadable() -> None:
    faults = Fault(resource="pods", status=410, continued=True, times=2)
    reading = read(standin(everything() | {"pods": many_pods(PAGE + 1)}, faults))
    assert reading.pods == ()
    assert part(reading, "pods").status is PartStatus.UNREADABLE


def test_a_compressed_page_is_read() -> None:
    # 500 pods are far over the 128 KiB from which a server compresses.
    server = standin(everything() | {"pods": many_pods(PAGE)})
    assert len(read(server).pods) == PAGE
    assert server.encodings == {"gzip"}


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["pods", "nodes", "namespaces", "workloads", "localqueues"])
def test_a_denied_resource_becomes_a_part_and_leaves_the_others(resource: str) -> None:
    files = everything()
    del files[resource]
    reading = read(standin(files))
    found = statuses(reading)
    assert found[resource] is PartStatus.DENIED
    assert "cannot list resource" in part(reading, resource).detail
    assert "docs/access/" in part(reading, resource).detail
    del found[resource]
    assert set(found.values()) == {PartStatus.OK}


def test_namespaces_that_were_refused_are_not_an_empty_cluster() -> None:
    files = everything()
    del files["namespaces"]
    assert read(standin(files)).namespaces is None


def test_without_the_upper_owner_the_nearest_known_one_stands_for_it() -> None:
    files = everything()
    del files["replicasets"], files["deployments"]
    reading = read(standin(files))
    (chat,) = [one for one in reading.pods if one.name == "chat-7d9f-x"]
    assert chat.owner == owner("ReplicaSet", GENAI, "chat-7d9f")
    assert statuses(reading)["replicasets"] is PartStatus.DENIED
    assert "deployments" not in statuses(reading)  # nothing leads there any more


def test_a_cluster_without_kueue_says_so_and_is_otherwise_read() -> None:
    fault = Fault(resource="kueue.x-k8s.io", status=404, times=9)
    reading = read(standin(everything(), fault))
    for resource in ("workloads", "clusterqueues", "localqueues"):
        assert part(reading, resource).status is PartStatus.ABSENT
    assert len(reading.pods) == 5


def test_an_owner_whose_api_group_does_not_exist_is_the_top() -> None:
    reading = read(standin(everything(), Fault(resource="ray.io", status=404, times=9)))
    assert part(reading, "rayclusters").status is PartStatus.ABSENT
    (head,) = [one for one in reading.pods if one.name == "ray-head"]
    assert head.owner == owner("RayCluster", GENAI, "tune-raycluster-1")


def test_a_resource_that_the_server_does_not_know_is_absent() -> None:
    reading = read(standin(everything(), Fault(resource="localqueues", status=404)))
    assert part(reading, "localqueues").status is PartStatus.ABSENT


@pytest.mark.parametrize("resource", ["pods", "nodes", "namespaces"])
def test_a_server_without_the_core_api_is_no_cluster_without_pods(resource: str) -> None:
    # A proxy that answers 404 to everything: "nothing there" would resolve every open alert.
    reading = read(standin(everything(), Fault(resource=resource, status=404, body=b"nginx")))
    assert part(reading, resource).status is PartStatus.UNREADABLE
    assert "404 nginx" in part(reading, resource).detail


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [
        (403, "Forbidden", PartStatus.DENIED),
        (401, "Unauthorized", PartStatus.DENIED),
        (404, "NotFound", PartStatus.ABSENT),
        (503, "ServiceUnavailable", PartStatus.UNREADABLE),
        (400, "BadRequest", PartStatus.UNREADABLE),
    ],
)
def test_a_recorded_status_object_is_that_refusal(
    code: int, reason: str, status: PartStatus
) -> None:
    files = everything() | {"workloads": refusal(code, reason, "as recorded")}
    found = part(read(standin(files)), "workloads")
    assert found.status is status
    assert "as recorded" in found.detail


def test_a_status_object_in_an_answer_that_claims_success_is_still_a_refusal() -> None:
    body = b'{"kind":"Status","status":"Failure","code":403,"message":"behind a proxy"}'
    reading = read(standin(everything(), Fault(resource="pods", status=200, body=body)))
    assert part(reading, "pods").status is PartStatus.DENIED


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>oops",
        b'{"items": [',
        b"[]",
        b'{"kind":"PodList"}',
        b'{"items":{}}',
        b"\xff\xfe",
    ],
)
def test_an_answer_that_is_not_a_list_is_unreadable(body: bytes) -> None:
    reading = read(standin(everything(), Fault(resource="pods", status=200, body=body)))
    assert reading.pods == ()
    assert part(reading, "pods").status is PartStatus.UNREADABLE
    assert part(reading, "nodes").status is PartStatus.OK


@pytest.mark.parametrize("status", [500, 502, 503, 504, 302])
def test_a_server_error_is_unreadable(status: int) -> None:
    fault = Fault(resource="nodes", status=status, body=b"upstream went away")
    found = part(read(standin(everything(), fault)), "nodes")
    assert found.status is PartStatus.UNREADABLE
    assert f"{status} upstream went away" in found.detail


def test_a_redirect_is_not_followed_so_the_token_goes_nowhere_else() -> None:
    other = standin(everything())
    with served(other) as elsewhere:
        headers = {"Location": f"{elsewhere}/api/v1/pods"}
        reading = read(standin(everything(), Fault(resource="pods", status=307, headers=headers)))
    assert other.requests == []
    assert part(reading, "pods").status is PartStatus.UNREADABLE


def test_an_unknown_identity_is_denied_everywhere() -> None:
    faults = [
        Fault(resource=resource, status=401)
        for resource in ("nodes", "namespaces", "kueue.x-k8s.io", "pods", "events")
    ]
    reading = read(standin(everything(), *faults))
    assert set(statuses(reading).values()) == {PartStatus.DENIED}
    assert set(statuses(reading)) == set(TICK)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DeniedError("eks:DescribeCluster refused"), PartStatus.DENIED),
        (PermanentError("no such cluster"), PartStatus.UNREADABLE),
    ],
)
def test_an_endpoint_that_cannot_be_found_refuses_every_resource(
    error: StewardError, status: PartStatus
) -> None:
    def endpoint() -> EksEndpoint:
        raise error

    reading = KubernetesApi(endpoint, lambda: "t", FixedClock(NOW)).read(Wanted())
    assert {one.status for one in reading.parts} == {status}
    assert {one.detail for one in reading.parts} == {str(error)}
    assert set(statuses(reading)) == set(TICK)
    assert reading.namespaces is None
    # An audit that could not begin has read nothing, and every one of its resources says so.
    audit = KubernetesApi(endpoint, lambda: "t", FixedClock(NOW)).read(Wanted(audit=True))
    assert audit.audit == Audit()
    assert len(audit.parts) == len(TICK) + 9
    assert statuses(audit)["validatingadmissionpolicybindings"] is status


# --- malformed objects ---------------------------------------------------------------------------


def test_one_malformed_object_never_loses_the_rest_and_is_named() -> None:
    files = everything()
    broken = pod("default", "broken-0", 1)
    broken["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "many"
    files["pods"]["items"] = [broken, *files["pods"]["items"]]
    files["nodes"]["items"] = [*files["nodes"]["items"], "not an object"]
    reading = read(standin(files))
    assert len(reading.pods) == 5
    assert len(reading.nodes) == 2
    pods, nodes = part(reading, "pods"), part(reading, "nodes")
    assert pods.status is nodes.status is PartStatus.OK
    # 9 pods, of which the server holds back the finished and the unbound one.
    assert pods.detail.startswith("left out 1 malformed of 7 objects: default/broken-0: ")
    assert "'many'" in pods.detail
    assert nodes.detail == "left out 1 malformed of 3 objects: item 2: not an object"


def test_a_nameless_object_is_named_by_its_position_in_the_whole_list() -> None:
    nodes = listed(*({"metadata": {"name": f"n-{number}"}} for number in range(PAGE)), "broken")
    reading = read(standin(everything() | {"nodes": nodes}))
    assert f"item {PAGE}: not an object" in part(reading, "nodes").detail


def test_a_list_without_one_readable_object_is_unreadable() -> None:
    files = everything()
    for queue in files["clusterqueues"]["items"]:
        queue["spec"]["resourceGroups"] = "all of them"
    reading = read(standin(files))
    assert part(reading, "clusterqueues").status is PartStatus.UNREADABLE
    assert "hyperpod-ns-research-clusterqueue" in part(reading, "clusterqueues").detail
    assert reading.cluster_queues == ()


# --- time ----------------------------------------------------------------------------------------


def test_a_throttled_request_waits_as_long_as_it_is_told() -> None:
    clock = FixedClock(NOW)
    fault = Fault(resource="pods", status=429, headers={"Retry-After": "7"})
    reading = read(standin(everything(), fault), clock)
    assert len(reading.pods) == 5
    assert clock.now() == NOW + timedelta(seconds=7)


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    clock = FixedClock(NOW)
    fault = Fault(resource="nodes", status=429, headers={"Retry-After": "60"})
    reading = read(standin(everything(), fault), clock)
    assert part(reading, "nodes").status is PartStatus.UNREADABLE
    assert "60 s" in part(reading, "nodes").detail
    assert clock.now() == NOW  # the others are read at once
    assert part(reading, "pods").status is PartStatus.OK


def test_a_server_that_throttles_for_ever_is_given_up_at_the_deadline() -> None:
    clock = FixedClock(NOW)
    fault = Fault(resource="nodes", status=429, headers={"Retry-After": "0"}, times=1000)
    reading = read(standin(everything(), fault), clock, deadline_seconds=20)
    assert statuses(reading)["nodes"] is PartStatus.UNREADABLE
    assert clock.now() <= NOW + timedelta(seconds=20)


def test_a_stall_ends_at_the_deadline_and_what_was_read_before_it_stays() -> None:
    server = standin(everything(), Fault(resource="workloads", stall_seconds=2))
    with served(server) as url:
        begun = time.monotonic()
        reading = api(url, SystemClock(), deadline_seconds=0.7).read(Wanted())
        took = time.monotonic() - begun
    found = statuses(reading)
    assert took < 1.5
    assert found["nodes"] is found["clusterqueues"] is PartStatus.OK
    assert found["workloads"] is found["pods"] is PartStatus.UNREADABLE
    assert "deadline" in part(reading, "pods").detail
    assert reading.nodes


def test_an_answer_that_trickles_in_ends_at_the_deadline_too() -> None:
    # Each byte comes well within any socket time-out: only the deadline can end this.
    def drip(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        for _ in range(40):
            time.sleep(0.05)
            yield b" "

    begun = time.monotonic()
    with served(drip) as url:
        reading = api(url, SystemClock(), deadline_seconds=0.3).read(Wanted())
        took = time.monotonic() - begun
    assert took < 1.5
    assert set(statuses(reading).values()) == {PartStatus.UNREADABLE}


def test_a_server_that_cannot_be_reached_is_tried_once(tmp_path: Path) -> None:
    # A vain attempt for each list to connect would use up the deadline and say nothing more.
    callers: list[object] = []

    class HangUp(BaseRequestHandler):
        def handle(self) -> None:
            callers.append(self.client_address)

    with TCPServer(("127.0.0.1", 0), HangUp) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{server.server_address[1]}"
        reading = api(url, ca_data=certificate(tmp_path)[0]).read(Wanted())
        server.shutdown()
        thread.join()
    assert len(callers) == 1
    assert {one.status for one in reading.parts} == {PartStatus.UNREADABLE}
    assert set(statuses(reading)) == set(TICK)
    assert "is not reachable" in reading.parts[0].detail


def test_a_port_where_nobody_listens_is_unreadable() -> None:
    with served(standin(everything())) as url:
        pass
    reading = api(url).read(Wanted())
    assert {one.status for one in reading.parts} == {PartStatus.UNREADABLE}
    assert "is not reachable" in reading.parts[0].detail


def test_a_broken_compressed_body_is_unreadable() -> None:
    fault = Fault(
        resource="nodes",
        status=200,
        headers={"Content-Encoding": "gzip"},
        body=gzip.compress(b'{"items":[]}')[:-9] + b"!",
    )
    assert part(read(standin(everything(), fault)), "nodes").status is PartStatus.UNREADABLE


# --- the way there -------------------------------------------------------------------------------


def test_a_token_never_travels_in_the_clear() -> None:
    server = standin(everything())
    with served(server) as url:
        endpoint = EksEndpoint(endpoint=url, ca_data="", name="ml-shared-01-eks")
        reader = KubernetesApi(lambda: endpoint, lambda: "secret", FixedClock(NOW))
        with pytest.raises(ConfigError, match="not https"):
            reader.read(Wanted())
    assert server.requests == []


def test_an_endpoint_without_an_authority_trusts_nobody() -> None:
    # Left to its library, it would trust whoever the system trusts.
    endpoint = EksEndpoint(endpoint="https://127.0.0.1:9", ca_data="", name="ml-shared-01-eks")
    reading = KubernetesApi(lambda: endpoint, lambda: "secret", FixedClock(NOW)).read(Wanted())
    assert {one.status for one in reading.parts} == {PartStatus.UNREADABLE}
    assert all("names no certificate authority" in one.detail for one in reading.parts)


def test_the_clusters_own_authority_is_trusted(tmp_path: Path) -> None:
    ca_data, context = certificate(tmp_path)
    with served(standin(everything()), context) as url:
        reading = api(url, ca_data=ca_data).read(Wanted())
    assert len(reading.pods) == 5


def test_no_other_authority_is_trusted_and_no_token_sent(tmp_path: Path) -> None:
    _, context = certificate(tmp_path)
    ca_data, _ = certificate(tmp_path)
    server = standin(everything())
    with served(server, context) as url:
        reading = api(url, ca_data=ca_data).read(Wanted())
    assert {one.status for one in reading.parts} == {PartStatus.UNREADABLE}
    assert "CERTIFICATE_VERIFY_FAILED" in reading.parts[0].detail
    assert server.requests == []


def test_an_authority_that_is_not_base64_is_unreadable_not_ignored() -> None:
    reading = api("https://127.0.0.1:1", ca_data="-----BEGIN CERTIFICATE-----").read(Wanted())
    assert {one.status for one in reading.parts} == {PartStatus.UNREADABLE}
    assert "certificate authority" in reading.parts[0].detail


def test_requests_share_one_connection() -> None:
    # A handshake a list would cost more than most lists; the other servers here always hang up.
    server, connections = Client(standin(everything())), []

    class KeepAlive(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            connections.append(self.client_address)
            super().setup()

        def do_GET(self) -> None:
            answer = server.get(self.path, headers=dict(self.headers))
            self.send_response(answer.status_code)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), KeepAlive) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        reading = api(f"http://127.0.0.1:{listening.server_port}").read(Wanted())
        listening.shutdown()
        thread.join()
    assert len(reading.pods) == 5
    assert len(reading.parts) > len(TICK)
    assert len(connections) == 1
