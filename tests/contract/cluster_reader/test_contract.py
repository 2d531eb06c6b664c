"""The ClusterReader port: the adapter over HTTP, the adapter under Stubber, and a fake, alike."""

from collections.abc import Mapping
from copy import replace
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import msgspec
import pytest

from steward.cluster.snapshot import ControlPlane, Part, PartStatus
from steward.ports import ClusterReader, ControlPlaneReading
from tests.contract.cluster_reader.answers import NOW, OPERATIONS, WELL, error, group, node, world
from tests.contract.cluster_reader.readers import ReaderOf, Serve, statuses, stub


@dataclass(frozen=True)
class FakeReader:
    """The in-memory twin: what there is, less what is refused."""

    whole: ControlPlane
    refused: Mapping[str, PartStatus]

    TELLS: ClassVar = {
        "sagemaker/DescribeCluster": ("status", "arn", "groups"),
        "sagemaker/ListClusterNodes": ("nodes",),
        "sagemaker/ListComputeQuotas": ("quotas",),
        "sagemaker/ListClusterSchedulerConfigs": ("scheduler",),
        "sagemaker/DescribeClusterSchedulerConfig": ("scheduler",),
        "eks/DescribeCluster": ("kubernetes_version",),
    }

    def read(self) -> ControlPlaneReading:
        blank = {f.name: f.default for f in msgspec.structs.fields(ControlPlane)}
        seen, parts = self.whole, []
        for name, told in self.TELLS.items():
            if name == "sagemaker/DescribeClusterSchedulerConfig" and seen.scheduler is None:
                continue
            status = self.refused.get(name, PartStatus.OK)
            parts.append(Part(name=name, status=status, at=NOW))
            if status is not PartStatus.OK:
                seen = replace(seen, **{key: blank[key] for key in told})
        return ControlPlaneReading(control_plane=seen, parts=tuple(parts))


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
        refused = {
            name: PartStatus.DENIED
            if answer["Error"]["Code"] == "AccessDeniedException"
            else PartStatus.UNREADABLE
            for name, answer in answers.items()
            if "Error" in answer
        }
        return FakeReader(whole, refused)

    makers: dict[str, Make] = {"stand-in": over_http, "stubber": stubbed, "fake": in_memory}
    return makers[request.param]


def test_every_operation_is_a_part_and_the_nouns_say_what_was_answered(make: Make) -> None:
    reading = make(world()).read()
    assert reading.control_plane == WELL
    assert reading.parts == tuple(
        Part(name=name, status=PartStatus.OK, at=NOW) for name in OPERATIONS
    )


@pytest.mark.parametrize(
    ("operation", "lost"),
    [
        ("sagemaker/ListClusterNodes", {"nodes": ()}),
        ("sagemaker/ListComputeQuotas", {"quotas": ()}),
        ("sagemaker/DescribeClusterSchedulerConfig", {"scheduler": None}),
        ("eks/DescribeCluster", {"kubernetes_version": None}),
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
    assert statuses(reading) == dict.fromkeys(OPERATIONS, "ok") | {operation: status}


def test_a_cluster_that_may_not_be_described_still_has_nodes_and_quotas(make: Make) -> None:
    # Without the ARN the lists cannot be filtered; here they name one cluster only.
    answers = world() | {"sagemaker/DescribeCluster": error("AccessDeniedException")}
    reading = make(answers).read()
    assert reading.control_plane == replace(WELL, status=None, arn=None, groups=())
    assert statuses(reading)["sagemaker/DescribeCluster"] == "denied"


def test_a_configuration_is_not_described_where_the_list_is_refused(make: Make) -> None:
    answers = world() | {"sagemaker/ListClusterSchedulerConfigs": error("AccessDeniedException")}
    del answers["sagemaker/DescribeClusterSchedulerConfig"]
    reading = make(answers).read()
    assert reading.control_plane.scheduler is None
    # A call that was not made was not refused either: it is no part.
    assert "sagemaker/DescribeClusterSchedulerConfig" not in statuses(reading)
    assert statuses(reading)["sagemaker/ListClusterSchedulerConfigs"] == "denied"


def test_a_cluster_without_policy_is_an_answer(make: Make) -> None:
    answers = world() | {
        "sagemaker/ListClusterSchedulerConfigs": {"ClusterSchedulerConfigSummaries": []}
    }
    del answers["sagemaker/DescribeClusterSchedulerConfig"]
    whole = replace(WELL, scheduler=None)
    reading = make(answers, whole).read()
    assert reading.control_plane == whole
    assert set(statuses(reading).values()) == {"ok"}


def test_every_page_of_a_long_list_is_read(make: Make) -> None:
    answers = world() | {
        "sagemaker/ListClusterNodes": {"ClusterNodeSummaries": [node(n) for n in range(1, 232)]}
    }
    nodes = tuple(replace(WELL.nodes[0], instance_id=f"i-{n:017x}") for n in range(1, 232))
    reading = make(answers, replace(WELL, nodes=nodes)).read()
    assert reading.control_plane.nodes == nodes


def test_a_flexible_instance_group_has_several_types(make: Make) -> None:
    flexible = group(
        InstanceRequirements={"DesiredInstanceTypes": ["ml.p5.48xlarge", "ml.p4d.24xlarge"]},
        InstanceTypeDetails=[
            {"InstanceType": "ml.p5.48xlarge", "CurrentCount": 1, "ThreadsPerCore": 1},
            {"InstanceType": "ml.p4d.24xlarge", "CurrentCount": 2, "ThreadsPerCore": 1},
        ],
    )
    del flexible["InstanceType"]
    answers = world()
    answers["sagemaker/DescribeCluster"]["InstanceGroups"] = [flexible]
    types = ("ml.p5.48xlarge", "ml.p4d.24xlarge")
    whole = replace(WELL, groups=(replace(WELL.groups[0], instance_types=types),))
    assert make(answers, whole).read().control_plane == whole
