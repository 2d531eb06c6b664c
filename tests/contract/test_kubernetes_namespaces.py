"""Which pods are listed: those of governed namespaces, or those of every namespace."""

import pytest

from local.standins.kubernetes import Fault
from steward.cluster.snapshot import Part, PartStatus
from steward.ports import KubernetesReading, Wanted
from tests.contract.kubernetes_cluster import (
    Json,
    Observed,
    basic_files,
    kueue_v1beta2,
    listed,
    namespace,
    pod,
    read,
    standin,
)

RESEARCH, GENAI, AUDIO = "hyperpod-ns-research", "hyperpod-ns-genai", "hyperpod-ns-audio"
GOVERNED = Wanted(namespaces=(RESEARCH,), everywhere=False)


def cluster(**labels: dict[str, str]) -> dict[str, Json]:
    """The basic cluster, nothing queued; keyword arguments label its namespaces (genai, default)."""
    files = basic_files() | kueue_v1beta2() | {"workloads": listed()}
    names = {"genai": GENAI, "default": "default"}
    for short, found in labels.items():
        (one,) = [i for i in files["namespaces"]["items"] if i["metadata"]["name"] == names[short]]
        one["metadata"]["labels"] = found
    return files


def pods(reading: KubernetesReading) -> Part:
    (found,) = [one for one in reading.parts if one.name == "kubernetes/pods"]
    return found


def names(reading: KubernetesReading) -> list[str]:
    return [one.name for one in reading.pods]


def lists_of_pods(server: Observed) -> list[str]:
    return [path for path in server.paths if path.endswith("/pods")]


def test_pods_of_the_policys_namespaces_are_listed_namespace_by_namespace() -> None:
    server = standin(cluster())
    reading = read(server, wanted=GOVERNED)
    assert lists_of_pods(server) == [f"/api/v1/namespaces/{RESEARCH}/pods"]
    assert names(reading) == ["pretrain-0", "sweep-a-0"]
    assert reading.governed == frozenset({RESEARCH})
    assert pods(reading).status is PartStatus.OK


@pytest.mark.parametrize(
    ("labels", "governed"),
    [
        ({"sagemaker.amazonaws.com/sagemaker-managed-queue": "true"}, True),
        ({"sagemaker.amazonaws.com/quota-allocation-id": "genai"}, True),
        ({"sagemaker.amazonaws.com/sagemaker-managed-queue": "false"}, False),
        ({"sagemaker.amazonaws.com/quota-allocation-id": ""}, False),
        ({"team": "genai"}, False),
    ],
)
def test_namespaces_that_hyperpods_labels_govern_are_listed_as_well(
    labels: dict[str, str],
    governed: bool,  # noqa: FBT001  # a case's expectation
) -> None:
    reading = read(standin(cluster(genai=labels)), wanted=GOVERNED)
    assert (GENAI in (reading.governed or ())) is governed
    assert ("chat-7d9f-x" in names(reading)) is governed


@pytest.mark.parametrize(
    ("conditions", "governed"),
    [
        ([], True),
        ([{"type": "Admitted", "status": "True"}], True),
        # What has finished has no pods to wait for.
        ([{"type": "Finished", "status": "True"}], False),
    ],
)
def test_a_namespace_that_kueue_queues_jobs_of_is_listed_whoever_governs_it(
    conditions: list[Json],
    governed: bool,  # noqa: FBT001  # a case's expectation
) -> None:
    """Else a job that was just admitted seems to have no pods until the next hourly list."""
    metadata = {
        "name": "job-chat-1a2b3",
        "namespace": GENAI,
        "uid": "uid-w",
        "creationTimestamp": "2026-11-05T10:00:00Z",
    }
    files = cluster()
    files["workloads"] = listed(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": metadata,
            "spec": {},
            "status": {"conditions": conditions},
        }
    )
    reading = read(standin(files), wanted=GOVERNED)
    assert (GENAI in (reading.governed or ())) is governed
    assert ("chat-7d9f-x" in names(reading)) is governed


def test_the_server_leaves_out_finished_and_unbound_pods_of_a_namespace_too() -> None:
    server = standin(cluster())
    reading = read(server, wanted=GOVERNED)
    assert not {"done-0", "waiting-0"} & set(names(reading))
    (query,) = [query for path, query in server.requests if path.endswith("/pods")]
    assert "fieldSelector=spec.nodeName%21%3D" in query


def test_a_namespace_that_does_not_exist_has_no_pods() -> None:
    # Asked all the same: it may have been made since namespaces were listed.
    server = standin(cluster())
    reading = read(server, wanted=Wanted(namespaces=(RESEARCH, AUDIO), everywhere=False))
    assert lists_of_pods(server) == [
        f"/api/v1/namespaces/{AUDIO}/pods",
        f"/api/v1/namespaces/{RESEARCH}/pods",
    ]
    assert reading.governed == frozenset({RESEARCH, AUDIO})
    assert names(reading) == ["pretrain-0", "sweep-a-0"]
    assert pods(reading).status is PartStatus.OK


def test_no_governed_namespace_at_all_is_no_pods_and_no_fault() -> None:
    server = standin(cluster())
    reading = read(server, wanted=Wanted(everywhere=False))
    assert lists_of_pods(server) == []
    assert (reading.pods, reading.governed) == ((), frozenset())
    assert pods(reading).status is PartStatus.OK


def test_everywhere_is_one_list() -> None:
    server = standin(cluster())
    reading = read(server, wanted=Wanted(namespaces=(RESEARCH,), everywhere=True))
    assert lists_of_pods(server) == ["/api/v1/pods"]
    assert "notebook-0" in names(reading)
    assert reading.governed is None


@pytest.mark.parametrize("status", [403, 503])
def test_where_namespaces_were_refused_every_namespace_is_listed(status: int) -> None:
    # Which namespaces are governed is not known: the whole truth rather than half of it.
    server = standin(cluster(), Fault(resource="namespaces", status=status))
    reading = read(server, wanted=GOVERNED)
    assert lists_of_pods(server) == ["/api/v1/pods"]
    assert reading.governed is None
    assert reading.namespaces is None
    assert "notebook-0" in names(reading)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(resource="pods", namespace=RESEARCH, status=403), PartStatus.DENIED),
        (Fault(resource="pods", namespace=RESEARCH, status=503), PartStatus.UNREADABLE),
        (Fault(resource="pods", namespace=RESEARCH, status=404), PartStatus.UNREADABLE),
        (
            Fault(resource="pods", namespace=RESEARCH, status=200, body=b'{"items'),
            PartStatus.UNREADABLE,
        ),
    ],
)
def test_one_refused_namespace_is_no_half_a_list_but_none(
    fault: Fault, expected: PartStatus
) -> None:
    wanted = Wanted(namespaces=(GENAI, RESEARCH), everywhere=False)
    server = standin(cluster(), fault)
    reading = read(server, wanted=wanted)
    assert f"/api/v1/namespaces/{GENAI}/pods" in server.paths  # which had pods, and was read
    assert reading.pods == ()
    assert pods(reading).status is expected
    assert RESEARCH in pods(reading).detail
    assert [one.name for one in reading.parts].count("kubernetes/pods") == 1
    assert {one.status for one in reading.parts} == {PartStatus.OK, expected}


def test_a_refused_list_says_which_namespace_it_was_refused_in() -> None:
    files = cluster()
    del files["pods"]
    found = pods(read(standin(files), wanted=GOVERNED))
    assert found.status is PartStatus.DENIED
    assert f'in the namespace "{RESEARCH}"' in found.detail


def test_a_list_that_expires_in_one_namespace_starts_again_and_counts_nothing_twice() -> None:
    files = cluster()
    many = [pod(RESEARCH, f"p-{number:04}", 1) for number in range(501)]
    files["pods"] = listed(*many, pod(GENAI, "chat", 1))
    fault = Fault(resource="pods", namespace=RESEARCH, status=410, continued=True)
    wanted = Wanted(namespaces=(GENAI, RESEARCH), everywhere=False)
    reading = read(standin(files, fault), wanted=wanted)
    assert pods(reading).status is PartStatus.OK
    assert len(reading.pods) == 502


def test_objects_left_out_are_counted_over_all_namespaces() -> None:
    files = cluster()
    broken = [pod(where, "broken", 1) for where in (GENAI, RESEARCH)]
    for one in broken:
        one["metadata"]["uid"] = None
    files["pods"]["items"] = [*files["pods"]["items"], *broken]
    files["namespaces"]["items"] = [*files["namespaces"]["items"], namespace(AUDIO)]
    reading = read(standin(files), wanted=Wanted(namespaces=(GENAI, RESEARCH), everywhere=False))
    assert pods(reading).left_out == (f"{GENAI}/broken", f"{RESEARCH}/broken")
    # Two pods that can be read and a broken one in each.
    assert pods(reading).detail.startswith("left out 2 malformed of 6 objects")
