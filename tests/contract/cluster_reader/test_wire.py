"""What only the wire can say: members that are new, missing or of another form, and no answer."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from werkzeug.wrappers import Response

from local.standins.aws import AwsStandin
from steward.cluster.snapshot import ControlPlane
from tests.contract.cluster_reader.answers import NOW, OPERATIONS, WELL, error, group, node, world
from tests.contract.cluster_reader.readers import (
    ReaderOf,
    Serve,
    StepClock,
    details,
    record,
    served,
    statuses,
)


def test_members_that_botocore_does_not_know_pass(serve: Serve, reader_of: ReaderOf) -> None:
    answers = world()
    for answer in answers.values():
        answer["Novelty"] = {"From": "next year"}
    answers["sagemaker/DescribeCluster"]["InstanceGroups"][0]["Novelty"] = [1]
    serve(answers)
    assert reader_of().read().control_plane == WELL


@pytest.mark.parametrize(
    ("operation", "path", "missing"),
    [
        ("sagemaker/DescribeCluster", [], "ClusterStatus"),
        ("sagemaker/DescribeCluster", ["InstanceGroups", 0], "TargetCount"),
        ("sagemaker/ListClusterNodes", [], "ClusterNodeSummaries"),
        ("sagemaker/ListClusterNodes", ["ClusterNodeSummaries", 0], "InstanceStatus"),
        ("sagemaker/ListComputeQuotas", ["ComputeQuotaSummaries", 1], "ComputeQuotaTarget"),
        (
            "sagemaker/DescribeClusterSchedulerConfig",
            ["SchedulerConfig", "PriorityClasses", 1],
            "Weight",
        ),
        ("eks/DescribeCluster", ["cluster"], "version"),
    ],
)
def test_a_missing_member_makes_its_operation_unreadable_and_is_named(
    serve: Serve,
    reader_of: ReaderOf,
    operation: str,
    path: list[str | int],
    missing: str,
) -> None:
    answers = world()
    place: Any = answers[operation]
    for step in path:
        place = place[step]
    del place[missing]
    serve(answers)
    reading = reader_of().read()
    assert statuses(reading) == dict.fromkeys(OPERATIONS, "ok") | {operation: "unreadable"}
    assert f"{missing} is missing" in details(reading)[operation]


def test_the_path_of_a_missing_member_tells_which_item(serve: Serve, reader_of: ReaderOf) -> None:
    answers = world()
    nodes = [node(n) for n in range(1, 151)]
    del nodes[120]["InstanceType"]  # on the second page of 100
    answers["sagemaker/ListClusterNodes"]["ClusterNodeSummaries"] = nodes
    serve(answers)
    detail = details(reader_of().read())["sagemaker/ListClusterNodes"]
    assert detail == "ClusterNodeSummaries[120].InstanceType is missing"


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        ("sagemaker/DescribeCluster", {"InstanceGroups": ["gpu-a"]}),
        ("sagemaker/DescribeCluster", {"InstanceGroups": "gpu-a"}),
        ("sagemaker/DescribeCluster", {"InstanceGroups": [group(CurrentCount="3")]}),
        ("sagemaker/DescribeCluster", {"InstanceGroups": [group(CurrentCount=True)]}),
        ("sagemaker/DescribeCluster", {"InstanceGroups": [None]}),
        ("sagemaker/DescribeCluster", {"CreationTime": "last year"}),
        ("sagemaker/ListClusterNodes", {"ClusterNodeSummaries": {"0": node(1)}}),
        ("eks/DescribeCluster", {"cluster": "ml-shared-01-eks"}),
    ],
)
def test_an_answer_of_another_form_is_unreadable_and_raises_nothing(
    serve: Serve, reader_of: ReaderOf, operation: str, answer: dict[str, Any]
) -> None:
    answers = world()
    answers[operation] |= answer
    serve(answers)
    assert statuses(reader_of().read())[operation] == "unreadable"


def test_a_cluster_that_does_not_exist_is_unreadable_with_what_was_said(
    serve: Serve, reader_of: ReaderOf
) -> None:
    gone = error("ResourceNotFound", "Cluster ml-shared-01 is not found")
    serve(world() | {"sagemaker/DescribeCluster": gone})
    reading = reader_of().read()
    assert statuses(reading)["sagemaker/DescribeCluster"] == "unreadable"
    assert "Cluster ml-shared-01 is not found" in details(reading)["sagemaker/DescribeCluster"]


def test_a_refusal_says_which_action_was_refused(serve: Serve, reader_of: ReaderOf) -> None:
    said = "User: arn:aws:sts::111122223333:assumed-role/x is not authorized to perform: y"
    serve(world() | {"eks/DescribeCluster": error("AccessDeniedException", said)})
    detail = details(reader_of().read())["eks/DescribeCluster"]
    assert "DescribeCluster" in detail
    assert said in detail


def test_an_endpoint_that_does_not_answer_makes_every_part_unreadable(
    reader_of: ReaderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(Response("")) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    # The server is gone, its port is closed.
    reading = reader_of().read()
    assert set(statuses(reading).values()) == {"unreadable"}
    assert all("Could not connect" in text for text in details(reading).values())
    assert reading.control_plane == ControlPlane()


def test_a_page_that_is_no_json_is_unreadable(
    reader_of: ReaderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(Response("<html>proxy login</html>")) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        reading = reader_of().read()
    assert set(statuses(reading).values()) == {"unreadable"}


def test_a_read_that_takes_too_long_leaves_the_rest_unreadable(
    serve: Serve, reader_of: ReaderOf
) -> None:
    serve(world())
    # Every look at the clock takes 7 s. The deadline of 30 s begins with the first, at 0 s; the
    # second operation begins at 21 s and looks again at 28 s (in time) and after its page, at 35 s.
    reading = reader_of(clock=StepClock(step=timedelta(seconds=7)), deadline_seconds=30).read()
    assert statuses(reading) == {
        "sagemaker/DescribeCluster": "ok",
        "sagemaker/ListClusterNodes": "unreadable",
        "sagemaker/ListComputeQuotas": "unreadable",
        "sagemaker/ListClusterSchedulerConfigs": "unreadable",
        "eks/DescribeCluster": "unreadable",
    }
    assert details(reading)["eks/DescribeCluster"].startswith("no time left")


def test_a_throttled_call_is_tried_again(
    serve: Serve,
    reader_of: ReaderOf,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    standin = AwsStandin(record(tmp_path, world()), lambda: NOW, "http://rig/kubernetes")
    asked: list[str] = []

    def throttle_each_once(environ: Any, start_response: Any) -> Any:
        target = environ.get("HTTP_X_AMZ_TARGET", environ["PATH_INFO"])
        asked.append(target)
        if asked.count(target) == 1:
            refusal = Response('{"__type":"ThrottlingException"}', status=400)
            return refusal(environ, start_response)
        return standin(environ, start_response)

    with served(throttle_each_once) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        reading = reader_of().read()
    assert reading.control_plane == WELL
    assert len(asked) == 2 * len(OPERATIONS)
