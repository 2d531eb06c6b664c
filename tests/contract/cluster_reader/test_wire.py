"""What only the wire can say: members that are new, missing or of another form, and no answer."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from werkzeug.wrappers import Response

from local.standins.aws import AwsStandin
from steward.cluster.control_plane import ControlPlane
from tests.contract.cluster_reader.answers import (
    CALLS,
    NOW,
    PARTS,
    WELL,
    error,
    group,
    node,
    world,
)
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
        # The one group there is: nothing of the list was understood.
        ("sagemaker/DescribeCluster", ["InstanceGroups", 0], "TargetCount"),
        ("sagemaker/ListClusterNodes", [], "ClusterNodeSummaries"),
        (
            "sagemaker/DescribeClusterSchedulerConfig",
            ["SchedulerConfig", "PriorityClasses", 1],
            "Weight",
        ),
        ("sagemaker/ListClusterEvents", [], "Events"),
        ("sagemaker/ListClusterEvents", ["Events", 0], "EventId"),
        ("eks/DescribeCluster", ["cluster"], "version"),
        ("eks/ListAddons", [], "addons"),
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
    expected = dict.fromkeys(PARTS, "ok") | {operation: "unreadable"}
    if operation == "eks/ListAddons":
        del expected["eks/DescribeAddon"]
    assert statuses(reading) == expected
    assert f"{missing} is missing" in details(reading)[operation]


def test_a_malformed_item_is_left_out_and_named_and_the_rest_is_read(
    serve: Serve, reader_of: ReaderOf
) -> None:
    answers = world()
    nodes = [node(n) for n in range(1, 151)]
    del nodes[120]["InstanceType"]  # on the second page of 100
    nodes[130] = {"InstanceStatus": {"Status": "Running"}}
    answers["sagemaker/ListClusterNodes"]["ClusterNodeSummaries"] = nodes
    serve(answers)
    reading = reader_of().read()
    part = next(p for p in reading.parts if p.name == "sagemaker/ListClusterNodes")
    assert part.status == "ok"
    assert part.left_out == ("i-00000000000000079", "item 130")  # 121 is 0x79
    assert part.detail == (
        "left out 2 malformed of 150 objects: i-00000000000000079: InstanceType is missing; "
        "item 130: InstanceId is missing"
    )
    assert len(reading.control_plane.nodes) == 148


def test_items_of_one_name_are_told_apart(serve: Serve, reader_of: ReaderOf) -> None:
    answers = world()
    broken = node(1, InstanceStatus=None)
    answers["sagemaker/ListClusterNodes"]["ClusterNodeSummaries"] = [broken, broken]
    serve(answers)
    reading = reader_of().read()
    # Both are at fault: nothing could be read, however they are called.
    part = next(p for p in reading.parts if p.name == "sagemaker/ListClusterNodes")
    assert part.status == "unreadable"
    assert part.left_out == ("i-00000000000000001", "i-00000000000000001 (item 1)")
    assert "left out 2 malformed of 2" in details(reading)["sagemaker/ListClusterNodes"]


def test_a_group_that_is_malformed_does_not_hide_the_others(
    serve: Serve, reader_of: ReaderOf
) -> None:
    answers = world()
    answers["sagemaker/DescribeCluster"]["InstanceGroups"].append(
        group(InstanceGroupName="odd", CurrentCount="3")
    )
    answers["sagemaker/DescribeCluster"]["RestrictedInstanceGroups"] = [None]
    serve(answers)
    reading = reader_of().read()
    assert reading.control_plane == WELL
    part = next(p for p in reading.parts if p.name == "sagemaker/DescribeCluster")
    assert (part.status, part.left_out) == ("ok", ("odd", "item 2"))


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        ("sagemaker/DescribeCluster", {"InstanceGroups": ["gpu-a"]}),
        ("sagemaker/DescribeCluster", {"InstanceGroups": "gpu-a"}),
        ("sagemaker/DescribeCluster", {"InstanceGroups": [group(CurrentCount="3")]}),
        ("sagemaker/DescribeCluster", {"InstanceGroups": [group(CurrentCount=True)]}),
        ("sagemaker/DescribeCluster", {"InstanceGroups": [None]}),
        ("sagemaker/DescribeCluster", {"CreationTime": "last year"}),
        ("sagemaker/DescribeCluster", {"CreationTime": 1e30}),
        ("sagemaker/ListClusterNodes", {"ClusterNodeSummaries": {"0": node(1)}}),
        ("sagemaker/DescribeClusterSchedulerConfig", {"SchedulerConfig": [1]}),
        ("eks/DescribeCluster", {"cluster": "ml-shared-01-eks"}),
        ("eks/ListAddons", {"addons": [1]}),
    ],
)
def test_an_answer_of_another_form_is_unreadable_and_raises_nothing(
    serve: Serve, reader_of: ReaderOf, operation: str, answer: dict[str, Any]
) -> None:
    answers = world()
    answers[operation] |= answer
    serve(answers)
    assert statuses(reader_of().read())[operation] == "unreadable"


@pytest.mark.parametrize(
    ("member", "value", "fault"),
    [
        ("LaunchTime", "soon", "LaunchTime is 'soon', not a time"),
        ("LaunchTime", 1e30, "LaunchTime is 1e+30, not a time"),
        ("InstanceStatus", "Running", "InstanceStatus is 'Running', not a structure"),
        ("UltraServerInfo", [1], "UltraServerInfo is [1], not a structure"),
    ],
)
def test_an_item_that_botocore_cannot_parse_is_left_out_by_its_name(
    serve: Serve, reader_of: ReaderOf, member: str, value: object, fault: str
) -> None:
    answers = world()
    answers["sagemaker/ListClusterNodes"]["ClusterNodeSummaries"][1][member] = value
    serve(answers)
    reading = reader_of().read()
    assert statuses(reading) == dict.fromkeys(PARTS, "ok")
    assert reading.control_plane == replace(WELL, nodes=WELL.nodes[:1])
    part = next(p for p in reading.parts if p.name == "sagemaker/ListClusterNodes")
    assert part.left_out == ("i-00000000000000002",)
    assert part.detail.startswith(f"ClusterNodeSummaries[1].{fault}; left out 1 malformed of 2")


@pytest.mark.parametrize(
    ("operation", "key"),
    [
        ("sagemaker/ListComputeQuotas", "ComputeQuotaSummaries"),
        ("sagemaker/ListClusterEvents", "Events"),
        ("sagemaker/DescribeCluster", "InstanceGroups"),
    ],
)
@pytest.mark.parametrize("item", [None, "text", 5, [], {}])
def test_an_item_that_is_nothing_at_all_does_not_hide_the_others(
    serve: Serve, reader_of: ReaderOf, operation: str, key: str, item: object
) -> None:
    answers = world()
    answers[operation][key].append(item)
    serve(answers)
    reading = reader_of().read()
    assert reading.control_plane == WELL
    assert statuses(reading) == dict.fromkeys(PARTS, "ok")


def test_a_part_tells_a_few_faults_and_names_every_item(serve: Serve, reader_of: ReaderOf) -> None:
    answers = world()
    answers["sagemaker/ListClusterNodes"]["ClusterNodeSummaries"] = [
        node(n, LaunchTime="soon" if n > 1 else "2026-10-01T08:00:00Z") for n in range(1, 7)
    ]
    serve(answers)
    reading = reader_of().read()
    part = next(p for p in reading.parts if p.name == "sagemaker/ListClusterNodes")
    assert part.left_out == tuple(f"i-{n:017x}" for n in range(2, 7))
    # Three faults of the form, then three of the names, each with a sign that there is more.
    assert part.detail.count("not a time") == 3
    assert part.detail.count("…") == 2


def test_a_refusal_is_not_mended(serve: Serve, reader_of: ReaderOf) -> None:
    # An error has another form than the operation's answer.
    answers = world() | {"sagemaker/ListClusterNodes": error("ThrottlingException", "slower")}
    serve(answers)
    assert "slower" in details(reader_of().read())["sagemaker/ListClusterNodes"]


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
    # Every look at the clock takes 7 s; the deadline of 30 s begins with the first, at 0 s. The
    # first operation begins at 7 s, has time at 14 s and sends at 21 s; the second begins at 28 s
    # and has no time left at 35 s.
    reading = reader_of(clock=StepClock(step=timedelta(seconds=7)), deadline_seconds=30).read()
    expected = dict.fromkeys(PARTS, "unreadable") | {"sagemaker/DescribeCluster": "ok"}
    # What could not be listed was not described either.
    for part in ("sagemaker/DescribeClusterSchedulerConfig", "eks/DescribeAddon"):
        del expected[part]
    assert statuses(reading) == expected
    assert details(reading)["eks/DescribeCluster"].startswith("no time left")
    assert reading.control_plane.add_ons is None


THROTTLED = '{"__type":"ThrottlingException","message":"Rate exceeded"}'


@pytest.fixture
def throttling(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[int], list[str]]]:
    """Throttle the first so many requests of each operation; returns what is asked for."""
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    standin = AwsStandin(record(tmp_path, world()), lambda: NOW, "http://rig/kubernetes")
    with ExitStack() as running:

        def throttle(times: int) -> list[str]:
            asked: list[str] = []

            def app(environ: Any, start_response: Any) -> Any:
                target = environ.get("HTTP_X_AMZ_TARGET", environ["PATH_INFO"])
                asked.append(target)
                if asked.count(target) <= times:
                    return Response(THROTTLED, status=400)(environ, start_response)
                return standin(environ, start_response)

            monkeypatch.setenv("AWS_ENDPOINT_URL", running.enter_context(served(app)))
            return asked

        yield throttle


def test_a_call_that_is_throttled_twice_is_read_at_the_third_attempt(
    reader_of: ReaderOf, throttling: Callable[[int], list[str]]
) -> None:
    asked = throttling(2)
    assert reader_of().read().control_plane == WELL
    assert len(asked) == 3 * CALLS


def test_a_call_that_stays_throttled_is_unreadable_and_the_others_are_tried(
    reader_of: ReaderOf, throttling: Callable[[int], list[str]]
) -> None:
    throttling(3)
    reading = reader_of().read()
    assert set(statuses(reading).values()) == {"unreadable"}
    assert "Rate exceeded" in details(reading)["sagemaker/ListComputeQuotas"]
    assert "the next run tries again" in details(reading)["sagemaker/ListComputeQuotas"]


def test_the_deadline_holds_between_the_attempts_of_one_call(
    reader_of: ReaderOf, throttling: Callable[[int], list[str]]
) -> None:
    asked = throttling(2)
    # The deadline of 30 s begins at 0 s; at 10 s each look at the clock, the first attempt leaves
    # at 30 s, in time, and the second would leave at 40 s.
    reading = reader_of(clock=StepClock(step=timedelta(seconds=10)), deadline_seconds=30).read()
    assert asked == ["SageMaker.DescribeCluster"]
    assert set(statuses(reading).values()) == {"unreadable"}
    assert details(reading)["sagemaker/DescribeCluster"].startswith("no time left")


def test_a_second_read_has_a_deadline_of_its_own(serve: Serve, reader_of: ReaderOf) -> None:
    serve(world())
    clock = StepClock()
    reader = reader_of(clock=clock, deadline_seconds=30)
    assert reader.read().control_plane == WELL
    clock.at += timedelta(hours=1)
    assert reader.read().control_plane.quotas == WELL.quotas
    # Outside a read there is none.
    assert reader.kubernetes_endpoint().name == "ml-shared-01-eks"
