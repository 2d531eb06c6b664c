"""The Kubernetes stand-in keeps to the API's wire form, and to the recording that it serves."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client
from werkzeug.wrappers import Response

from local.standins.kubernetes import Fault, KubernetesStandin
from local.standins.kubernetes_resources import RESOURCES
from tests.contract.kubernetes_cluster import (
    NOW,
    Json,
    Recorded,
    basic_files,
    kueue_v1beta1,
    kueue_v1beta2,
    listed,
    refusal,
    thing,
)

BEARER = {"Authorization": "Bearer token"}
CONTRACT = """workloads, clusterqueues, localqueues, cohorts, topologies, resourceflavors,
workloadpriorityclasses, namespaces, nodes, pods, events, jobs, replicasets, deployments,
statefulsets, pytorchjobs, hyperpodpytorchjobs, rayclusters, rayjobs, jobsets, networkpolicies,
roles, rolebindings, clusterroles, clusterrolebindings, serviceaccounts, resourcequotas,
validatingadmissionpolicies, validatingadmissionpolicybindings"""
"""The resources of the recording format: without its file, each of these is forbidden."""


def client(files: dict[str, Json], now: datetime = NOW) -> Client:
    return Client(KubernetesStandin(Recorded(files), lambda: now))


def get(server: Client, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
    answer = server.get(path, headers=BEARER | headers)
    return answer.status_code, json.loads(answer.data)


def names(document: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in document["items"]]


def root(resource: str) -> str:
    group, version = RESOURCES[resource].group, RESOURCES[resource].version
    return f"/apis/{group}/{version}/{resource}" if group else f"/api/{version}/{resource}"


def test_the_resources_are_those_of_the_recording_format() -> None:
    assert set(RESOURCES) == set(CONTRACT.replace(",", " ").split())


@pytest.mark.parametrize("resource", sorted(RESOURCES))
def test_a_listed_resource_without_its_file_is_forbidden(resource: str) -> None:
    code, status = get(client({"unrelated": listed()}), root(resource))
    assert (code, status["kind"], status["reason"]) == (403, "Status", "Forbidden")
    assert resource in status["message"]


@pytest.mark.parametrize(
    "path",
    ["/api/v1/configmaps", "/apis/cert-manager.io/v1/issuers", "/apis/cert-manager.io", "/metrics"],
)
def test_anything_else_is_not_installed(path: str) -> None:
    code, status = get(client(basic_files()), path)
    assert (code, status["reason"]) == (404, "NotFound")


def test_any_other_resource_that_was_recorded_is_served() -> None:
    job = thing("kubeflow.org/v1", "MPIJob", "default", "old")
    code, document = get(client({"mpijobs": listed(job)}), "/apis/kubeflow.org/v1/mpijobs")
    assert (code, document["kind"], names(document)) == (200, "MPIJobList", ["old"])


def test_without_a_recorded_cluster_everything_is_denied() -> None:
    server = client({})
    assert get(server, "/api/v1/pods")[0] == 403
    assert get(server, "/apis/kueue.x-k8s.io")[0] == 403


def test_a_folder_that_is_later_than_now_is_not_shown() -> None:
    server = client(basic_files(), NOW - timedelta(seconds=1))
    assert get(server, "/api/v1/pods")[0] == 403


def test_an_empty_list_is_an_empty_list() -> None:
    code, document = get(client({"pods": listed()}), "/api/v1/pods?limit=500")
    assert code == 200
    assert document["items"] == []
    assert "continue" not in document["metadata"]


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Basic dTpw"}, {"Authorization": "Bearer "}]
)
def test_a_request_without_a_bearer_token_is_unauthorized(headers: dict[str, str]) -> None:
    answer = client(basic_files()).get("/api/v1/pods", headers=headers)
    assert answer.status_code == 401


def test_it_is_read_only() -> None:
    assert client(basic_files()).post("/api/v1/pods", headers=BEARER).status_code == 405


def test_a_recorded_status_is_that_error() -> None:
    server = client({"pods": refusal(504, "Timeout", "etcd is slow")})
    code, status = get(server, "/api/v1/pods")
    assert (code, status["reason"], status["message"]) == (504, "Timeout", "etcd is slow")


# --- discovery -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "preferred"),
    [
        (kueue_v1beta1(), "v1beta1"),
        (kueue_v1beta2(), "v1beta2"),
        # The clusterqueues decide, whatever other objects state …
        (kueue_v1beta2() | {"clusterqueues": kueue_v1beta1()["clusterqueues"]}, "v1beta1"),
        # … and where there are none, the workloads.
        ({"clusterqueues": listed(), "workloads": kueue_v1beta1()["workloads"]}, "v1beta1"),
        ({"pods": listed()}, "v1beta2"),
    ],
)
def test_kueue_prefers_the_version_of_the_recorded_clusterqueues(
    files: dict[str, Json], preferred: str
) -> None:
    code, group = get(client(files), "/apis/kueue.x-k8s.io")
    assert code == 200
    assert group["preferredVersion"]["version"] == preferred
    assert preferred in {one["version"] for one in group["versions"]}


def test_a_version_that_is_not_served_is_not_found() -> None:
    server = client(kueue_v1beta1())
    assert get(server, "/apis/kueue.x-k8s.io/v1beta1/workloads")[0] == 200
    assert get(server, "/apis/kueue.x-k8s.io/v1beta2/workloads")[0] == 404


def test_a_resource_with_a_version_of_its_own_is_served_in_that_one() -> None:
    # Kueue 0.12: the group prefers v1beta1, and cohorts are v1alpha1 only.
    cohort = thing("kueue.x-k8s.io/v1alpha1", "Cohort", "", "shared-pool")
    server = client(kueue_v1beta1() | {"cohorts": listed(cohort)})
    assert get(server, "/apis/kueue.x-k8s.io/v1alpha1/cohorts")[0] == 200
    group = get(server, "/apis/kueue.x-k8s.io")[1]
    assert [one["version"] for one in group["versions"]] == ["v1beta1", "v1alpha1"]


def test_kubectl_finds_every_resource_by_discovery() -> None:
    server = client(basic_files() | kueue_v1beta2())
    groups = get(server, "/apis")[1]["groups"]
    paths = [f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups]
    found = {
        resource["name"]
        for path in ["/api/v1", *paths]
        for resource in get(server, path)[1]["resources"]
    }
    assert found == set(RESOURCES)
    assert get(server, "/api")[1]["versions"] == ["v1"]
    assert get(server, "/version")[1]["major"] == "1"


# --- lists ---------------------------------------------------------------------------------------


def test_a_list_is_paged_by_limit_and_continue() -> None:
    jobs = listed(*(thing("batch/v1", "Job", "default", f"j{n}") for n in range(5)))
    server = client({"jobs": jobs})
    seen, query = [], "limit=2"
    left = []
    while query:
        document = get(server, f"/apis/batch/v1/jobs?{query}")[1]
        seen += names(document)
        left.append(document["metadata"].get("remainingItemCount", 0))
        token = document["metadata"].get("continue")
        query = f"limit=2&continue={token}" if token else ""
    assert seen == ["j0", "j1", "j2", "j3", "j4"]
    assert left == [3, 1, 0]


def test_a_list_is_of_one_moment_however_long_its_pages_take() -> None:
    times = [NOW, NOW + timedelta(hours=1)]
    jobs = [thing("batch/v1", "Job", "default", f"j{n}") for n in range(2)]

    class Changing(Recorded):
        def kubernetes(self, resource: str, at: datetime) -> Json | None:
            return listed(*jobs) if (resource, at) == ("jobs", NOW) else listed()

    server = Client(KubernetesStandin(Changing({"jobs": {}}), lambda: times.pop(0)))
    first = get(server, "/apis/batch/v1/jobs?limit=1")[1]
    second = get(server, f"/apis/batch/v1/jobs?limit=1&continue={first['metadata']['continue']}")[1]
    assert names(first) + names(second) == ["j0", "j1"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=many",
        "continue=nonsense",
        "fieldSelector=spec.host%3Dx",
        "labelSelector=a%3Db",
        "watch=1",
    ],
)
def test_a_query_that_is_not_served_is_refused_rather_than_ignored(query: str) -> None:
    assert get(client(basic_files()), f"/api/v1/pods?{query}")[0] == 400


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=", ["waiting-0"]),
        ("status.phase==Succeeded", ["done-0"]),
        ("metadata.namespace=default", ["notebook-0"]),
        ("spec.nodeName!=,status.phase!=Running", ["done-0"]),
    ],
)
def test_a_field_selector_is_applied(selector: str, expected: list[str]) -> None:
    server = client(basic_files())
    path = f"/api/v1/pods?fieldSelector={selector.replace('=', '%3D')}"
    assert names(get(server, path)[1]) == expected


def test_fields_are_selectable_where_a_real_server_knows_them() -> None:
    server = client(basic_files())
    path = "/api/v1/events?fieldSelector="
    found = get(server, f"{path}involvedObject.kind%3DWorkload")[1]
    assert names(found) == ["next.1", "next.2"]
    assert get(server, f"{path}spec.nodeName%3Dx")[0] == 400
    assert get(server, "/api/v1/pods?fieldSelector=involvedObject.kind%3DPod")[0] == 400


def test_a_refusal_says_whether_it_is_of_a_namespace_or_of_the_cluster() -> None:
    server = client({"unrelated": listed()})
    message = get(server, "/api/v1/namespaces/default/pods")[1]["message"]
    assert message.endswith('in the namespace "default"')
    assert get(server, "/api/v1/pods")[1]["message"].endswith("at the cluster scope")


def test_a_fault_can_strike_one_namespace() -> None:
    fault = Fault(resource="pods", namespace="default", status=503)
    server = Client(KubernetesStandin(Recorded(basic_files()), lambda: NOW, [fault]))
    assert get(server, "/api/v1/pods")[0] == 200
    assert get(server, "/api/v1/namespaces/hyperpod-ns-research/pods")[0] == 200
    assert get(server, "/api/v1/namespaces/default/pods")[0] == 503
    assert get(server, "/api/v1/namespaces/default/pods")[0] == 200


def test_one_namespace_and_one_object_can_be_asked_for() -> None:
    server = client(basic_files())
    assert names(get(server, "/api/v1/namespaces/default/pods")[1]) == ["notebook-0"]
    code, found = get(server, "/api/v1/namespaces/default/pods/notebook-0")
    assert (code, found["kind"]) == (200, "Pod")
    assert get(server, "/api/v1/nodes/hyperpod-i-0a")[0] == 200
    assert get(server, "/api/v1/namespaces/default")[0] == 200
    assert get(server, "/api/v1/namespaces/default/pods/pretrain-0")[0] == 404


def test_lists_of_built_in_resources_do_not_repeat_the_kind_in_their_items() -> None:
    # As a real server does it: a reader that relied on an item's kind would fail there only.
    server = client(basic_files() | kueue_v1beta2())
    pods = get(server, "/api/v1/pods")[1]
    assert (pods["kind"], pods["apiVersion"]) == ("PodList", "v1")
    assert not [one for one in pods["items"] if "kind" in one or "apiVersion" in one]
    workloads = get(server, "/apis/kueue.x-k8s.io/v1beta2/workloads")[1]
    assert {one["kind"] for one in workloads["items"]} == {"Workload"}


def test_a_client_that_asks_for_metadata_gets_nothing_else() -> None:
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
    document = get(client(basic_files()), "/apis/batch/v1/jobs", Accept=accept)[1]
    assert document["kind"] == "PartialObjectMetadataList"
    assert [set(one) for one in document["items"]] == [{"kind", "apiVersion", "metadata"}]


def test_it_can_be_mounted_below_a_path() -> None:
    standin = KubernetesStandin(Recorded(basic_files()), lambda: NOW)
    server = Client(DispatcherMiddleware(Response("root"), {"/kubernetes": standin}))
    assert get(server, "/kubernetes/api/v1/nodes")[0] == 200
