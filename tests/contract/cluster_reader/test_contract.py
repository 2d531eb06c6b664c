"""The ClusterReader port: the adapter over HTTP, the adapter under Stubber, and a fake, alike."""

from collections.abc import Mapping
from copy import replace
from datetime import timedelta
from typing import Any, Protocol

import pytest

from steward.cluster.control_plane import AddOn, ControlPlane
from steward.cluster.snapshot import Part, PartStatus
from steward.ports import ClusterReader
from tests.contract.cluster_reader.answers import (
    GOVERNANCE,
    HEALTHY,
    NOW,
    PARTS,
    WELL,
    error,
    event,
    group,
    node,
    world,
)
from tests.contract.cluster_reader.fake import FakeReader
from tests.contract.cluster_reader.readers import ReaderOf, Serve, statuses, stub


class Make(Protocol):
    """Builds a reader of a world, whose nouns the caller knows."""

    def __call__(self, answers: Mapping[str, Any], whole: ControlPlane = WELL) -> ClusterReader: ...


@pytest.fixture(params=["stand-in", "stubber", "fake"])
def make(request: pytest.FixtureRequest, serve: Serve, reader_of: ReaderOf) -> Make:
    """Build each of the three readers from the same world."""

    def over_http(answers: Mapping[str, Any], whole: ControlPlane = WELL) -> ClusterReader:
        serve(answers)
        return reader_of()

    def stubbed(answers: Mapping[str, Any], whole: ControlPlane = WELL) -> ClusterReader:
        return stub(reader_of(), answers)

    def in_memory(answers: Mapping[str, Any], whole: ControlPlane = WELL) -> ClusterReader:
        return FakeReader(whole, answers)

    makers: dict[str, Make] = {"stand-in": over_http, "stubber": stubbed, "fake": in_memory}
    return makers[request.param]


def test_every_operation_is_a_part_and_the_nouns_say_what_was_answered(make: Make) -> None:
    reading = make(world()).read()
    assert reading.control_plane == WELL
    assert reading.parts == tuple(Part(name=name, status=PartStatus.OK, at=NOW) for name in PARTS)


UNDESCRIBED = AddOn(name=GOVERNANCE, version=None, status=None, settings_known=False)


@pytest.mark.parametrize(
    ("operation", "lost"),
    [
        ("sagemaker/ListClusterNodes", {"nodes": ()}),
        ("sagemaker/ListComputeQuotas", {"quotas": ()}),
        ("sagemaker/DescribeClusterSchedulerConfig", {"scheduler": None}),
        ("sagemaker/ListClusterEvents", {"events": ()}),
        ("eks/DescribeCluster", {"kubernetes_version": None}),
        # An add-on that may not be described is installed all the same.
        (f"eks/DescribeAddon.{GOVERNANCE}", {"add_ons": (UNDESCRIBED, (WELL.add_ons or ())[1])}),
    ],
)
@pytest.mark.parametrize(
    ("code", "status"),
    [("AccessDeniedException", "denied"), ("ThrottlingException", "unreadable")],
)
def test_a_refused_operation_becomes_a_part_and_the_rest_is_read(
    make: Make, operation: str, lost: dict[str, Any], code: str, status: str
) -> None:
    reading = make(world() | {operation: error(code)}).read()
    assert reading.control_plane == replace(WELL, **lost)
    part = operation.partition(".")[0]
    assert statuses(reading) == dict.fromkeys(PARTS, "ok") | {part: status}


def test_add_ons_are_left_alone_where_nobody_asks_for_them(make: Make) -> None:
    reading = make(world()).read(add_ons=False)
    assert reading.control_plane == replace(WELL, add_ons=None)
    read = [name for name in PARTS if name not in {"eks/ListAddons", "eks/DescribeAddon"}]
    assert statuses(reading) == dict.fromkeys(read, "ok")


def test_a_cluster_that_may_not_be_described_still_has_nodes_and_quotas(make: Make) -> None:
    # Without the ARN the lists cannot be filtered; here they name one cluster only.
    answers = world() | {"sagemaker/DescribeCluster": error("AccessDeniedException")}
    reading = make(answers).read()
    assert reading.control_plane == replace(
        WELL, status=None, arn=None, groups=(), node_recovery=None, provisioning_mode=None
    )
    assert statuses(reading) == dict.fromkeys(PARTS, "ok") | {"sagemaker/DescribeCluster": "denied"}


@pytest.mark.parametrize(
    ("listing", "described", "lost"),
    [
        (
            "sagemaker/ListClusterSchedulerConfigs",
            "sagemaker/DescribeClusterSchedulerConfig",
            {"scheduler": None},
        ),
        ("eks/ListAddons", "eks/DescribeAddon", {"add_ons": None}),
    ],
)
def test_nothing_is_described_where_its_list_is_refused(
    make: Make, listing: str, described: str, lost: dict[str, Any]
) -> None:
    answers = {name: answer for name, answer in world().items() if not name.startswith(described)}
    reading = make(answers | {listing: error("AccessDeniedException")}).read()
    assert reading.control_plane == replace(WELL, **lost)
    # A call that was not made was not refused either: it is no part.
    expected = dict.fromkeys(PARTS, "ok") | {listing: "denied"}
    del expected[described]
    assert statuses(reading) == expected


def test_a_cluster_without_policy_is_an_answer(make: Make) -> None:
    answers = world() | {
        "sagemaker/ListClusterSchedulerConfigs": {"ClusterSchedulerConfigSummaries": []}
    }
    del answers["sagemaker/DescribeClusterSchedulerConfig"]
    whole = replace(WELL, scheduler=None)
    reading = make(answers, whole).read()
    assert reading.control_plane == whole
    assert set(statuses(reading).values()) == {"ok"}


def test_a_cluster_without_the_known_add_ons_has_none_of_them(make: Make) -> None:
    answers = world() | {"eks/ListAddons": {"addons": ["kube-proxy", "vpc-cni"]}}
    whole = replace(WELL, add_ons=())
    reading = make(answers, whole).read()
    # None of them is an answer; None would be "could not be listed".
    assert reading.control_plane == whole
    assert "eks/DescribeAddon" not in statuses(reading)
    assert statuses(reading)["eks/ListAddons"] == "ok"


@pytest.mark.parametrize(
    ("mode", "status"),
    # A cluster without continuous provisioning has no events: that is an answer. One with it that
    # answers the same was asked in a way that the service does not take: that is a fault.
    [(None, "absent"), ("Continuous", "unreadable")],
)
def test_events_are_absent_without_continuous_provisioning(
    make: Make, mode: str | None, status: str
) -> None:
    answers = world() | {"sagemaker/ListClusterEvents": error("ValidationException")}
    if mode is None:
        del answers["sagemaker/DescribeCluster"]["NodeProvisioningMode"]
    whole = replace(WELL, provisioning_mode=mode)
    reading = make(answers, whole).read()
    assert reading.control_plane == replace(whole, events=())
    assert statuses(reading) == dict.fromkeys(PARTS, "ok") | {"sagemaker/ListClusterEvents": status}


def test_every_page_of_a_long_list_is_read(make: Make) -> None:
    answers = world() | {
        "sagemaker/ListClusterNodes": {"ClusterNodeSummaries": [node(n) for n in range(1, 232)]}
    }
    answers["eks/ListAddons"]["addons"] = [f"other-{n}" for n in range(150)] + [GOVERNANCE]
    nodes = tuple(replace(HEALTHY, instance_id=f"i-{n:017x}") for n in range(1, 232))
    whole = replace(WELL, nodes=nodes, add_ons=(WELL.add_ons or ())[:1])
    assert make(answers, whole).read().control_plane == whole


def test_events_come_newest_first(make: Make) -> None:
    minutes = [30, 20, 10]
    events = [event(n, NOW - timedelta(minutes=n), EventLevel="Info") for n in minutes]
    answers = world() | {"sagemaker/ListClusterEvents": {"Events": events}}
    newest = tuple(
        replace(WELL.events[0], id=f"e-{n}", at=NOW - timedelta(minutes=n), level="Info")
        for n in reversed(minutes)
    )
    assert make(answers, replace(WELL, events=newest)).read().control_plane.events == newest


def test_a_flexible_instance_group_has_several_types(make: Make) -> None:
    flexible = group(
        InstanceRequirements={
            "CurrentInstanceTypes": ["ml.p5.48xlarge"],
            "DesiredInstanceTypes": ["ml.p5.48xlarge", "ml.p5en.48xlarge"],
        },
        InstanceTypeDetails=[
            {"InstanceType": "ml.p5.48xlarge", "CurrentCount": 1, "ThreadsPerCore": 1},
            {"InstanceType": "ml.p4d.24xlarge", "CurrentCount": 2, "ThreadsPerCore": 1},
        ],
    )
    del flexible["InstanceType"]
    answers = world()
    answers["sagemaker/DescribeCluster"]["InstanceGroups"] = [flexible]
    held = replace(
        WELL.groups[0],
        # Those that it holds, then those that it may hold.
        instance_types=("ml.p5.48xlarge", "ml.p4d.24xlarge", "ml.p5en.48xlarge"),
        counts={"ml.p5.48xlarge": 1, "ml.p4d.24xlarge": 2},
    )
    whole = replace(WELL, groups=(held,))
    assert make(answers, whole).read().control_plane == whole


def test_a_restricted_group_is_a_group_that_says_so(make: Make) -> None:
    answers = world()
    answers["sagemaker/DescribeCluster"]["RestrictedInstanceGroups"] = [
        group(InstanceGroupName="customised", Status="Degraded")
    ]
    restricted = replace(WELL.groups[0], name="customised", status="Degraded", restricted=True)
    whole = replace(WELL, groups=(WELL.groups[0], restricted))
    assert make(answers, whole).read().control_plane == whole


def test_a_cluster_and_a_policy_that_failed_say_why(make: Make) -> None:
    answers = world()
    answers["sagemaker/DescribeCluster"] |= {
        "ClusterStatus": "Failed",
        "FailureMessage": "no capacity in use1-az2",
    }
    answers["sagemaker/DescribeClusterSchedulerConfig"] |= {
        "Status": "UpdateRollbackFailed",
        "FailureReason": "the add-on is not up",
    }
    assert WELL.scheduler is not None
    failed = replace(WELL.scheduler, status="UpdateRollbackFailed", failure="the add-on is not up")
    whole = replace(WELL, status="Failed", failure="no capacity in use1-az2", scheduler=failed)
    assert make(answers, whole).read().control_plane == whole
