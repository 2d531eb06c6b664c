"""What an API server should never send, each with its own outcome; whatever else it sent is read."""

import gzip
import json
from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from local.standins.kubernetes import Fault
from steward.clock import SystemClock
from steward.cluster.snapshot import Part, PartStatus
from steward.ports import KubernetesReading, Wanted
from steward.sources.kubernetes import session as kubernetes_http
from tests.contract.kubernetes_cluster import (
    NOW,
    Json,
    api,
    basic_files,
    kueue_v1beta2,
    listed,
    namespace,
    owned,
    pod,
    read,
    served,
    standin,
    thing,
)

RESEARCH = "hyperpod-ns-research"
NONSENSE = {
    "nodeName": "hyperpod-i-0a",
    "containers": "two",
    "podSets": "two",
    "unschedulable": "two",
    "resourceGroups": "two",
    "clusterQueue": 2,
}
"""A spec of no resource."""


def everything() -> dict[str, Json]:
    return basic_files() | kueue_v1beta2()


def part(reading: KubernetesReading, resource: str) -> Part:
    (found,) = [one for one in reading.parts if one.name == f"kubernetes/{resource}"]
    return found


def others_ok(reading: KubernetesReading, but: str) -> bool:
    rest = [one for one in reading.parts if one.name != f"kubernetes/{but}"]
    return {one.status for one in rest} == {PartStatus.OK}


# --- whole answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["pods", "workloads", "nodes", "clusterqueues", "events"])
def test_a_body_cut_off_in_the_middle_is_unreadable_and_says_so(resource: str) -> None:
    files = everything()
    whole = json.dumps({"kind": "List", "metadata": {}, **files[resource]}).encode()
    fault = Fault(resource=resource, status=200, body=whole[: len(whole) // 2])
    reading = read(standin(files, fault))
    found = part(reading, resource)
    assert found.status is PartStatus.UNREADABLE
    assert f"cut off ({len(whole) // 2} bytes)" in found.detail
    assert others_ok(reading, resource)


def test_the_second_page_cut_off_is_no_shorter_list() -> None:
    files = everything()
    files["pods"] = listed(*(pod("default", f"p-{number}", 1) for number in range(501)))
    fault = Fault(resource="pods", status=200, body=b'{"items":[{"meta', continued=True)
    reading = read(standin(files, fault))
    assert reading.pods == ()
    assert part(reading, "pods").status is PartStatus.UNREADABLE


@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_beyond_the_limit_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
    compressed: bool,  # noqa: FBT001  # a case
) -> None:
    monkeypatch.setattr(kubernetes_http, "LARGEST_ANSWER", 2**20)
    files = everything()
    # One more chunk than fits; of a gigabyte no more would have been read either. Compressed it is
    # a kilobyte: what counts is what it unfolds to.
    body = b'{"items":[' + b" " * (2**20 + 2**16) + b"]}"
    headers = {"Content-Encoding": "gzip"} if compressed else {}
    body = gzip.compress(body) if compressed else body
    fault = Fault(resource="pods", status=200, body=body, headers=headers)
    reading = read(standin(files, fault))
    found = part(reading, "pods")
    assert found.status is PartStatus.UNREADABLE
    assert "larger than 1 MiB" in found.detail
    assert others_ok(reading, "pods")


def test_a_null_list_is_an_empty_one() -> None:
    # Go prints an empty slice that was never made as null.
    body = b'{"kind":"EventList","metadata":{},"items":null}'
    reading = read(standin(everything(), Fault(resource="events", status=200, body=body)))
    assert part(reading, "events").status is PartStatus.OK
    assert reading.events == ()


@pytest.mark.parametrize("resource", ["nodes", "workloads", "pods", "events"])
def test_a_stalled_request_ends_and_the_rest_is_still_read(
    monkeypatch: pytest.MonkeyPatch, resource: str
) -> None:
    # A server that takes thirty seconds for an answer, each second of them 1/75 of one here.
    monkeypatch.setattr(kubernetes_http, "REQUEST_SECONDS", 0.13)
    server = standin(everything(), Fault(resource=resource, stall_seconds=0.4))
    with served(server) as url:
        reading = api(url, SystemClock()).read(Wanted())
    found = part(reading, resource)
    assert found.status is PartStatus.UNREADABLE
    assert "no answer" in found.detail
    assert others_ok(reading, resource)


# --- single objects ------------------------------------------------------------------------------


def test_a_label_value_of_five_megabytes_is_dropped_and_its_object_named() -> None:
    files = everything()
    huge = "x" * 5_000_000
    first, second = files["pods"]["items"][:2]
    first["metadata"]["labels"] = {
        "kueue.x-k8s.io/queue-name": huge,
        "kueue.x-k8s.io/priority-class": "training-priority",
        "unread": huge,
    }
    second["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q" * 63}  # as long as they get
    reading = read(standin(files))
    found = part(reading, "pods")
    assert found.status is PartStatus.OK
    assert found.left_out == ()
    assert found.detail == (
        "dropped labels over 63 characters of 1 objects: "
        "hyperpod-ns-research/pretrain-0: kueue.x-k8s.io/queue-name"
    )
    assert dict(reading.pods[0].labels) == {"kueue.x-k8s.io/priority-class": "training-priority"}
    assert dict(reading.pods[1].labels) == {"kueue.x-k8s.io/queue-name": "q" * 63}
    assert len(msgspec.json.encode(reading.pods)) < 10_000


def test_long_labels_of_makers_owners_and_namespaces_are_dropped_too() -> None:
    files = everything()
    long = {"sagemaker.user/created-by": "m" * 64}
    files["pytorchjobs"]["items"][0]["metadata"]["labels"] = long
    files["workloads"]["items"][0]["metadata"]["labels"] = long
    marked = namespace("marked")
    marked["metadata"]["labels"] = {"sagemaker.amazonaws.com/quota-allocation-id": "a" * 64}
    files["namespaces"]["items"] = [*files["namespaces"]["items"], marked]
    reading = read(standin(files))
    assert reading.pods[0].created_by is None
    assert {one.created_by for one in reading.workloads} == {None}
    assert (reading.namespaces or {})["marked"] == {}
    for resource in ("pytorchjobs", "workloads", "namespaces"):
        assert "over 63 characters of 1 objects" in part(reading, resource).detail


def test_a_workload_without_status_is_one_that_nobody_has_looked_at() -> None:
    files = everything()
    for item in files["workloads"]["items"]:
        del item["status"]
    reading = read(standin(files))
    assert part(reading, "workloads") == part(read(standin(everything())), "workloads")
    assert [(one.conditions, one.cluster_queue) for one in reading.workloads] == [((), None)] * 2


@pytest.mark.parametrize("resource", ["pods", "workloads"])
def test_of_two_objects_with_one_uid_the_first_is_kept_and_the_second_named(resource: str) -> None:
    files = everything()
    first, second = files[resource]["items"][:2]
    second["metadata"]["uid"] = first["metadata"]["uid"]
    reading = read(standin(files))
    found = part(reading, resource)
    name, lost = (f"{RESEARCH}/{one['metadata']['name']}" for one in (first, second))
    assert found.status is PartStatus.OK
    assert found.left_out == (lost,)
    assert f"{lost}: its UID is that of {name}, which was kept" in found.detail
    kept = reading.pods if resource == "pods" else reading.workloads
    assert first["metadata"]["name"] in {one.name for one in kept}
    assert second["metadata"]["name"] not in {one.name for one in kept}


def test_one_object_that_two_pages_both_hold_is_one_object() -> None:
    files = everything()
    files["pods"]["items"] = [*files["pods"]["items"], files["pods"]["items"][0]]
    reading = read(standin(files))
    assert [one.name for one in reading.pods].count("pretrain-0") == 1
    assert part(reading, "pods").detail == ""


@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        (timedelta(minutes=-10), ""),
        (timedelta(seconds=60), ""),
        (timedelta(seconds=61), "created up to 61 s after they were read"),
        (timedelta(minutes=10), "created up to 600 s after they were read"),
    ],
)
def test_objects_from_the_future_are_kept_and_tell_that_clocks_differ(
    ahead: timedelta, told: str
) -> None:
    files = everything()
    created = (NOW + ahead).isoformat()
    for one in (files["pods"]["items"][0], files["workloads"]["items"][1]):
        one["metadata"]["creationTimestamp"] = created
    reading = read(standin(files))
    assert len(reading.pods) == 5
    assert len(reading.workloads) == 2
    for resource, name in (("pods", "pretrain-0"), ("workloads", "pytorchjob-pretrain-0be12")):
        found = part(reading, resource)
        assert found.status is PartStatus.OK
        assert (told in found.detail) if told else (found.detail == "")
        assert (
            not told
            or f"1 objects were created up to {ahead.total_seconds():.0f} s" in found.detail
        )
        assert not told or f"{RESEARCH}/{name}" in found.detail


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: one.update(metadata=None),
        lambda one: one.update(metadata="gone"),
        lambda one: one["metadata"].update(name=7),
        lambda one: one["metadata"].update(labels=["a"]),
        lambda one: one["metadata"].update(ownerReferences={"kind": "Job"}),
        lambda one: one.update(spec=NONSENSE),
        lambda one: one.update(status="Running"),
    ],
)
@pytest.mark.parametrize("resource", ["pods", "workloads", "nodes", "clusterqueues", "localqueues"])
def test_one_malformed_object_never_loses_its_page(
    resource: str, spoil: Callable[[Json], None]
) -> None:
    whole = read(standin(everything()))
    files = everything()
    broken = json.loads(json.dumps(files[resource]["items"][0]))
    broken["metadata"] |= {"name": "broken", "uid": "uid-broken"}
    # A pod without a trace of an accelerator cannot hold one, and is passed over unread.
    broken["trace"] = "nvidia.com/gpu"
    spoil(broken)
    files[resource]["items"] = [broken, *files[resource]["items"]]
    reading = read(standin(files))
    found = part(reading, resource)
    assert found.status is PartStatus.OK
    assert len(found.left_out) == 1
    assert "left out 1 malformed" in found.detail
    assert msgspec.json.encode(reading.pods) == msgspec.json.encode(whole.pods)
    assert msgspec.json.encode(reading.workloads) == msgspec.json.encode(whole.workloads)
    assert reading.nodes == whole.nodes
    assert reading.cluster_queues == whole.cluster_queues


def test_nothing_secret_survives_the_read() -> None:
    files = everything()
    secret = "hunter2"
    files["pods"]["items"][0]["spec"]["containers"][0] |= {
        "env": [{"name": "TOKEN", "value": secret}],
        "args": [secret],
        "command": [secret],
        "image": secret,
    }
    for document in files.values():
        for item in document["items"]:
            item["metadata"].setdefault("annotations", {})["note"] = secret
            item["metadata"]["managedFields"] = [{"manager": secret}]
            item["metadata"].setdefault("labels", {})["hunter"] = "a label of nobody's"
            item["secret"] = {"value": secret}
    job = thing("batch/v1", "Job", RESEARCH, "leak", owned("batch/v1", "CronJob", "nightly"))
    job["spec"] = {"template": {"spec": {"containers": [{"env": [{"value": secret}]}]}}}
    files["jobs"]["items"] = [*files["jobs"]["items"], job]
    reading = read(standin(files))
    assert len(reading.pods) == 5
    stored = msgspec.json.encode(msgspec.structs.replace(reading, namespaces=None))
    assert secret.encode() not in stored
    assert b"a label of nobody" not in stored
