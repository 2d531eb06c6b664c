"""Whose quotas are read, and details of the nouns."""

from copy import replace
from typing import Any

import pytest

from steward.cluster.control_plane import ComputeQuota
from steward.cluster.policy import InstanceGroup
from steward.ports import ControlPlaneReading
from tests.contract.cluster_reader.answers import (
    ARN,
    CLUSTER,
    WELL,
    error,
    group,
    quota,
    scheduler,
    world,
)
from tests.contract.cluster_reader.readers import ReaderOf, Serve, details, statuses


def other_cluster(tail: str) -> dict[str, Any]:
    """Make a quota of another cluster, whose ARN ends in `tail`."""
    return quota("q99999999999", "others", []) | {
        "ClusterArn": f"arn:aws:sagemaker:us-east-1:111122223333:cluster/{tail}"
    }


def teams(reading: ControlPlaneReading) -> list[str]:
    return [quota.team for quota in reading.control_plane.quotas]


def test_quotas_of_another_cluster_are_left_out(serve: Serve, reader_of: ReaderOf) -> None:
    answers = world()
    answers["sagemaker/ListComputeQuotas"]["ComputeQuotaSummaries"] += [
        other_cluster("zzz999zzz999"),
        other_cluster("ml-other-02"),
    ]
    serve(answers)
    # An ARN that ends in a name is told apart by the name, one that ends in an id by the id.
    assert teams(reader_of().read()) == ["research", "genai"]


@pytest.mark.parametrize(
    ("described", "listed"),
    [
        ("abc123def456", "ml-shared-01"),
        ("ml-shared-01", "abc123def456"),
        ("ml-shared-01", "ml-shared-01"),
    ],
)
def test_an_arn_may_end_in_the_name_or_in_the_id(
    serve: Serve, reader_of: ReaderOf, described: str, listed: str
) -> None:
    base = "arn:aws:sagemaker:us-east-1:111122223333:cluster/"
    answers = world()
    answers["sagemaker/DescribeCluster"]["ClusterArn"] = base + described
    for summary in answers["sagemaker/ListComputeQuotas"]["ComputeQuotaSummaries"]:
        summary["ClusterArn"] = base + listed
    serve(answers)
    assert teams(reader_of().read()) == ["research", "genai"]


def test_a_name_that_looks_like_an_id_is_still_the_name(serve: Serve, reader_of: ReaderOf) -> None:
    cluster = replace(CLUSTER, name="mlsharedprod")  # twelve letters, as an id has
    answers = world()
    answers["sagemaker/DescribeCluster"]["ClusterArn"] = ARN.replace("abc123def456", cluster.name)
    serve(answers, cluster)
    assert teams(reader_of(cluster).read()) == ["research", "genai"]


def test_without_the_arn_quotas_of_several_clusters_are_not_guessed_apart(
    serve: Serve, reader_of: ReaderOf
) -> None:
    answers = world() | {"sagemaker/DescribeCluster": error("AccessDeniedException")}
    answers["sagemaker/ListComputeQuotas"]["ComputeQuotaSummaries"].append(
        other_cluster("zzz999zzz999")
    )
    serve(answers)
    reading = reader_of().read()
    assert statuses(reading)["sagemaker/ListComputeQuotas"] == "unreadable"
    assert "allow sagemaker:DescribeCluster" in details(reading)["sagemaker/ListComputeQuotas"]
    assert reading.control_plane.quotas == ()


def test_without_the_arn_quotas_that_name_the_cluster_are_its_own(
    serve: Serve, reader_of: ReaderOf
) -> None:
    answers = world() | {"sagemaker/DescribeCluster": error("AccessDeniedException")}
    summaries = answers["sagemaker/ListComputeQuotas"]["ComputeQuotaSummaries"]
    summaries[0]["ClusterArn"] = "arn:aws:sagemaker:us-east-1:111122223333:cluster/ml-shared-01"
    serve(answers)
    assert teams(reader_of().read()) == ["research"]


def quota_read(serve: Serve, reader_of: ReaderOf, summary: dict[str, Any]) -> ComputeQuota:
    serve(world() | {"sagemaker/ListComputeQuotas": {"ComputeQuotaSummaries": [summary]}})
    (found,) = reader_of().read().control_plane.quotas
    return found


def test_a_type_in_several_rows_is_their_sum(serve: Serve, reader_of: ReaderOf) -> None:
    rows: list[dict[str, Any]] = [
        {"InstanceType": "ml.p5.48xlarge", "Accelerators": 3},
        {"InstanceType": "ml.p5.48xlarge", "Accelerators": 4},
        {"InstanceType": "ml.p4d.24xlarge", "Accelerators": 8},
        {
            "InstanceType": "ml.p4d.24xlarge",
            "AcceleratorPartition": {"Type": "mig-3g.20gb", "Count": 2},
        },
    ]
    found = quota_read(serve, reader_of, quota("q12345678901", "research", rows))
    # 3 + 4; MIG slices are no whole accelerators, so with them the sum is not known.
    assert found.accelerators == {"ml.p5.48xlarge": 7, "ml.p4d.24xlarge": None}


STATUSES = (
    *("Creating", "CreateFailed", "CreateRollbackFailed", "Created", "Updating", "UpdateFailed"),
    *("UpdateRollbackFailed", "Updated", "Deleting", "DeleteFailed", "DeleteRollbackFailed"),
    *("Deleted", "SomethingNew"),
)


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_passes_as_text_also_one_that_is_new(
    serve: Serve, reader_of: ReaderOf, status: str
) -> None:
    answers = world()
    answers["sagemaker/ListComputeQuotas"]["ComputeQuotaSummaries"][0]["Status"] = status
    answers["sagemaker/DescribeClusterSchedulerConfig"]["Status"] = status
    answers["sagemaker/DescribeClusterSchedulerConfig"]["StatusDetails"] = {"FairShare": status}
    serve(answers)
    read = reader_of().read().control_plane
    assert read.quotas[0].status == status
    assert read.scheduler is not None
    assert read.scheduler.status == status
    assert read.scheduler.details == {"FairShare": status}


def test_the_policys_own_capacity_counts_before_the_table(
    serve: Serve, reader_of: ReaderOf
) -> None:
    capacity = (
        InstanceGroup(instance_type="ml.p5.48xlarge", count=1, accelerators_per_instance=7),
    )
    cluster = replace(CLUSTER, capacity=capacity)
    serve(world(), cluster)
    # Two instances of seven, as the policy has it.
    assert reader_of(cluster).read().control_plane.quotas[0].accelerators == {"ml.p5.48xlarge": 14}


@pytest.mark.parametrize(
    "row",
    [
        {"Count": -1},
        {"Accelerators": 1.5},
        {"VCpu": "4"},
        {"MemoryInGiB": -0.5},
        {"AcceleratorPartition": {"Count": 2}},
        {"InstanceType": None},
    ],
)
def test_a_row_that_cannot_be_leaves_its_quota_out_and_names_it(
    serve: Serve, reader_of: ReaderOf, row: dict[str, Any]
) -> None:
    answers = world()
    rows = answers["sagemaker/ListComputeQuotas"]["ComputeQuotaSummaries"][0]
    rows["ComputeQuotaConfig"]["ComputeQuotaResources"][0] |= row
    serve(answers)
    reading = reader_of().read()
    assert teams(reading) == ["genai"]
    part = next(p for p in reading.parts if p.name == "sagemaker/ListComputeQuotas")
    assert (part.status, part.left_out) == ("ok", ("research-quota",))
    (member,) = row
    assert f"ComputeQuotaResources[0].{member}" in part.detail


def test_an_inactive_quota_without_sharing_says_so(serve: Serve, reader_of: ReaderOf) -> None:
    summary = quota("q12345678901", "research", [])
    summary["ActivationState"] = "Disabled"
    del summary["ComputeQuotaConfig"]
    found = quota_read(serve, reader_of, summary)
    assert not found.active
    assert (found.strategy, found.borrow_limit_percent, found.accelerators) == (None, None, {})


def test_an_activation_state_that_is_absent_is_enabled(serve: Serve, reader_of: ReaderOf) -> None:
    summary = quota("q12345678901", "research", [])
    del summary["ActivationState"]  # the API's default is Enabled
    assert quota_read(serve, reader_of, summary).active


def test_a_group_that_holds_nothing_yet_names_the_types_it_wants(
    serve: Serve, reader_of: ReaderOf
) -> None:
    wanting = group(InstanceRequirements={"DesiredInstanceTypes": ["ml.p5.48xlarge"]})
    del wanting["InstanceType"]
    answers = world()
    answers["sagemaker/DescribeCluster"]["InstanceGroups"] = [wanting]
    serve(answers)
    assert reader_of().read().control_plane.groups[0].instance_types == ("ml.p5.48xlarge",)


def test_of_several_policies_the_one_in_force_is_taken(serve: Serve, reader_of: ReaderOf) -> None:
    answers = world()
    healthy = answers.pop("sagemaker/DescribeClusterSchedulerConfig")
    failed = healthy | {"ClusterSchedulerConfigId": "s99999999999", "Status": "CreateFailed"}
    answers["sagemaker/DescribeClusterSchedulerConfig.s99999999999"] = failed
    answers["sagemaker/DescribeClusterSchedulerConfig.s12345678901"] = healthy
    answers["sagemaker/ListClusterSchedulerConfigs"]["ClusterSchedulerConfigSummaries"] = [
        scheduler("s99999999999", "CreateFailed"),
        scheduler("s12345678901", "Created"),
    ]
    serve(answers)
    assert reader_of().read().control_plane.scheduler == WELL.scheduler


def two_policies() -> dict[str, Any]:
    """Answers of a cluster that has an old policy beside the one in force."""
    answers = world()
    answers["sagemaker/DescribeClusterSchedulerConfig.s12345678901"] = answers.pop(
        "sagemaker/DescribeClusterSchedulerConfig"
    )
    answers["sagemaker/ListClusterSchedulerConfigs"]["ClusterSchedulerConfigSummaries"] = [
        scheduler("s99999999999", "Deleting"),
        scheduler("s12345678901", "Created"),
    ]
    return answers


@pytest.mark.parametrize(
    "other", [error("ResourceNotFound"), {"ClusterSchedulerConfigId": "s99999999999"}]
)
def test_a_policy_that_is_gone_or_malformed_does_not_hide_the_one_in_force(
    serve: Serve, reader_of: ReaderOf, other: dict[str, Any]
) -> None:
    operation = "sagemaker/DescribeClusterSchedulerConfig"
    serve(two_policies() | {f"{operation}.s99999999999": other})
    reading = reader_of().read()
    assert reading.control_plane.scheduler == WELL.scheduler
    assert statuses(reading)[operation] == "ok"
    assert details(reading)[operation]  # and it says which was lost


def test_where_the_policy_in_force_is_refused_the_failed_one_does_not_stand_for_it(
    serve: Serve, reader_of: ReaderOf
) -> None:
    operation = "sagemaker/DescribeClusterSchedulerConfig"
    answers = two_policies()
    old = answers[f"{operation}.s12345678901"] | {"Status": "Deleting"}
    answers[f"{operation}.s99999999999"] = old
    answers[f"{operation}.s12345678901"] = error("AccessDeniedException")
    serve(answers)
    reading = reader_of().read()
    assert reading.control_plane.scheduler is None
    assert statuses(reading)[operation] == "denied"
