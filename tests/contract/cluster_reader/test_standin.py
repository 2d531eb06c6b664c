"""The stand-in of SageMaker and EKS by itself, as boto3 meets it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from werkzeug.wrappers import Request, Response

from local.standins.aws import AwsStandin
from tests.contract.cluster_reader.answers import NOW, error, node, world
from tests.contract.cluster_reader.readers import ReaderOf, Serve, record, statuses


def test_absent_folders_deny_everything(serve: Serve, reader_of: ReaderOf) -> None:
    serve({})
    reading = reader_of().read()
    assert set(statuses(reading).values()) == {"denied"}


def test_an_absent_file_is_denied_where_the_folder_is_there(
    serve: Serve, reader_of: ReaderOf
) -> None:
    answers = world()
    del answers["sagemaker/ListComputeQuotas"]
    serve(answers)
    assert statuses(reader_of().read())["sagemaker/ListComputeQuotas"] == "denied"


def test_lists_are_paged_by_ten_where_no_size_is_asked_for(
    serve: Serve, reader_of: ReaderOf
) -> None:
    nodes = [node(n) for n in range(25)]
    serve({"sagemaker/ListClusterNodes": {"ClusterNodeSummaries": nodes, "NextToken": "stale"}})
    pages = reader_of()._sagemaker.get_paginator("list_cluster_nodes").paginate(ClusterName="x")
    assert [len(page["ClusterNodeSummaries"]) for page in pages] == [10, 10, 5]


@pytest.mark.parametrize("members", [{"MaxResults": 500}, {"NextToken": "never given"}])
def test_a_page_that_cannot_be_is_refused(
    serve: Serve, reader_of: ReaderOf, members: dict[str, Any]
) -> None:
    serve(world())
    client = reader_of()._sagemaker
    with pytest.raises(client.exceptions.ClientError, match="ValidationException"):
        client.list_cluster_nodes(ClusterName="ml-shared-01", **members)


@pytest.mark.parametrize("written", ["2026-11-01T17:00:00+09:00", 1793520000, 1793520000.0])
def test_a_time_is_the_same_however_it_was_recorded(
    serve: Serve, reader_of: ReaderOf, written: object
) -> None:
    answers = world()
    answers["sagemaker/DescribeCluster"]["CreationTime"] = written
    answers["eks/DescribeCluster"]["cluster"]["createdAt"] = written
    serve(answers)
    reader = reader_of()
    # 17:00 at +09:00 is 08:00 UTC, 1793520000 seconds after the epoch.
    expected = datetime(2026, 11, 1, 8, tzinfo=UTC)
    sagemaker = reader._sagemaker.describe_cluster(ClusterName="ml-shared-01")
    assert sagemaker["CreationTime"] == expected
    assert reader._eks.describe_cluster(name="x")["cluster"]["createdAt"] == expected


def test_the_wire_carries_epoch_seconds(tmp_path: Path) -> None:
    standin = AwsStandin(record(tmp_path, world()), lambda: NOW, "http://rig/kubernetes")
    request = Request.from_values(
        method="POST",
        headers={"X-Amz-Target": "SageMaker.DescribeCluster"},
        data='{"ClusterName": "ml-shared-01"}',
    )
    answer = Response.from_app(standin, request.environ)
    assert answer.content_type == "application/x-amz-json-1.1"
    assert answer.get_json(force=True)["CreationTime"] == 1790841600.0  # 2026-10-01T08:00:00Z


def test_add_ons_are_listed_described_and_not_found(serve: Serve, reader_of: ReaderOf) -> None:
    serve(
        {
            "eks/ListAddons": {"addons": ["kube-proxy", "vpc-cni"]},
            "eks/DescribeAddon.kube-proxy": {"addon": {"addonVersion": "v1.33.0-eksbuild.2"}},
        }
    )
    eks = reader_of()._eks
    assert eks.list_addons(clusterName="x")["addons"] == ["kube-proxy", "vpc-cni"]
    described = eks.describe_addon(clusterName="x", addonName="kube-proxy")
    assert described["addon"]["addonVersion"] == "v1.33.0-eksbuild.2"
    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        eks.describe_addon(clusterName="x", addonName="amazon-sagemaker-hyperpod-taskgovernance")
    with pytest.raises(eks.exceptions.ClientError, match="AccessDenied"):
        eks.describe_addon(clusterName="x", addonName="vpc-cni")  # listed, not recorded


def test_pod_identity_associations_are_paged(serve: Serve, reader_of: ReaderOf) -> None:
    associations = [{"associationId": f"a-{n}", "namespace": "ns"} for n in range(3)]
    serve({"eks/ListPodIdentityAssociations": {"associations": associations}})
    paginator = reader_of()._eks.get_paginator("list_pod_identity_associations")
    pages = list(paginator.paginate(clusterName="x", PaginationConfig={"PageSize": 2}))
    assert [len(page["associations"]) for page in pages] == [2, 1]


def test_no_event_is_shown_before_it_happened(serve: Serve, reader_of: ReaderOf) -> None:
    def event(minutes: int) -> dict[str, Any]:
        when = (NOW + timedelta(minutes=minutes)).timestamp()
        return {"EventId": str(minutes), "EventTime": when, "ResourceType": "Cluster"}

    serve({"sagemaker/ListClusterEvents": {"Events": [event(-60), event(0), event(1)]}})
    client = reader_of()._sagemaker
    shown = client.list_cluster_events(ClusterName="x")["Events"]
    assert [one["EventId"] for one in shown] == ["0", "-60"]  # newest first, as the service does
    shown = client.list_cluster_events(ClusterName="x", SortOrder="Ascending")["Events"]
    assert [one["EventId"] for one in shown] == ["-60", "0"]
    after = NOW - timedelta(minutes=5)
    shown = client.list_cluster_events(ClusterName="x", EventTimeAfter=after)["Events"]
    assert [one["EventId"] for one in shown] == ["0"]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("AccessDeniedException", 403),
        ("ResourceNotFoundException", 404),
        ("ThrottlingException", 429),
        ("InternalFailure", 500),
        ("ServiceUnavailable", 503),
        ("ValidationException", 400),
    ],
)
def test_a_recorded_error_is_answered_as_that_error(
    serve: Serve, reader_of: ReaderOf, code: str, status: int
) -> None:
    serve({"eks/ListAddons": error(code, "as recorded")})
    client = reader_of()._eks
    with pytest.raises(client.exceptions.ClientError) as caught:
        client.list_addons(clusterName="x")
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["Error"]["Message"] == "as recorded"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_a_call_that_no_recording_holds_is_refused(serve: Serve, reader_of: ReaderOf) -> None:
    serve(world())
    client = reader_of()._eks
    with pytest.raises(client.exceptions.ClientError, match="UnknownOperation"):
        client.delete_cluster(name="ml-shared-01-eks")
