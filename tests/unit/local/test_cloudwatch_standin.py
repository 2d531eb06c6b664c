"""`cloudwatch/`: which results it may hold, and what the stand-in answers from them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.recording.cloudwatch import read_cloudwatch
from steward.errors import ConfigError, DeniedError, RetryableError
from steward.sources.container_insights.reader import ContainerInsightsMetrics
from tests.contract.cloudwatch import gpu, minutes, record, standin

END = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)
NOW = END + timedelta(minutes=5)
DIMENSIONS = {
    "ClusterName": "eks",
    "Namespace": "hyperpod-ns-research",
    "PodName": "train",
    "FullPodName": "train-0",
    "GpuDevice": "nvidia0",
}
AS_LIST = [{"Name": key, "Value": value} for key, value in DIMENSIONS.items()]


def a_result(**changes: Any) -> dict[str, Any]:
    result = {
        "Label": "pod_gpu_utilization",
        "Dimensions": AS_LIST,
        "Timestamps": ["2026-11-05T12:59:00+01:00"],
        "Values": [5],
        "StatusCode": "Complete",
    } | changes
    return {key: value for key, value in result.items() if value is not None}


def write(folder: Path, document: object, name: str = "results.json") -> Path:
    path = folder / "cloudwatch" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def read(folder: Path, **options: int) -> list[tuple[str, float | None]]:
    with standin(folder, NOW, **options) as session:
        reader = ContainerInsightsMetrics("eks", "us-east-1", lambda: session)
        return [(d.uuid, d.windows[0].maximum) for d in reader.read(END, [60]).devices]


THE_DEVICE = [("hyperpod-ns-research/train-0/nvidia0", 0.05)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"Dimensions": DIMENSIONS},
        {"Id": "m1", "Label": None, "MetricName": "pod_gpu_utilization"},
        {"Label": "eks hyperpod-ns-research train-0 nvidia0 pod_gpu_utilization Maximum"},
        {"Namespace": "ContainerInsights", "StatusCode": None},
        {"Timestamps": [1793879940]},
        {"Dimensions": {key: v for key, v in DIMENSIONS.items() if key != "ClusterName"}},
    ],
)
def test_a_result_in_any_of_its_forms(changes: dict[str, Any], tmp_path: Path) -> None:
    # 1793879940 is 2026-11-05T11:59:00Z
    write(tmp_path, {"MetricDataResults": [a_result(**changes)]})
    assert read(tmp_path) == THE_DEVICE


def test_a_bare_list_of_results_will_do(tmp_path: Path) -> None:
    write(tmp_path, [a_result()])
    assert read(tmp_path) == THE_DEVICE


def test_files_are_merged_and_a_point_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    write(tmp_path, [a_result(MetricName="kueue_pending_workloads", Values=[2])], "a.json")
    write(tmp_path, [a_result(MetricName="kueue_pending_workloads", Values=[2])], "b.json")
    ((metric, points),) = read_cloudwatch(tmp_path / "cloudwatch").points.items()
    assert metric[:2] == ("ContainerInsights/Prometheus", "kueue_pending_workloads")
    assert points == {datetime(2026, 11, 5, 11, 59, tzinfo=UTC): 2.0}


def test_an_absent_folder_is_no_metrics_at_all_and_not_a_refusal(tmp_path: Path) -> None:
    assert read(tmp_path) == []


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"Metrics": []}, "holds no MetricDataResults"),
        ({"MetricDataResults": [a_result(Dimensions=None)]}, "[0]: has no Dimensions"),
        ({"MetricDataResults": [a_result(), a_result(Label="m1")]}, "[1]: Label 'm1' does not nam"),
        ({"MetricDataResults": [a_result(Values=[])]}, "1 Timestamps and 0 Values"),
        ({"MetricDataResults": [a_result(Timestamps=None)]}, "'Timestamps' is missing"),
        ({"MetricDataResults": [a_result(Timestamps=["noon"])]}, "'noon' is not a time"),
        ({"MetricDataResults": [a_result(Dimensions=[{"Name": "x"}])]}, "'Value' is missing"),
        ({"MetricDataResults": ["x"]}, "MetricDataResults[0]"),
    ],
)
def test_a_malformed_file_is_one_line(document: object, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, document)
    with pytest.raises(ConfigError) as caught:
        read_cloudwatch(tmp_path / "cloudwatch")
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "code", "kind"),
    [
        ("denied.json", "AccessDeniedException", DeniedError),
        ("GetMetricData.json", "AccessDeniedException", DeniedError),
        ("ListMetrics.json", "ThrottlingException", RetryableError),
    ],
)
def test_a_file_that_holds_an_error_is_that_error(
    name: str, code: str, kind: type[Exception], tmp_path: Path
) -> None:
    write(tmp_path, [a_result()])
    write(tmp_path, {"Error": {"Code": code, "Message": "no"}}, name)
    with pytest.raises(kind, match=code):
        read(tmp_path)


def test_an_error_of_one_operation_leaves_the_other(tmp_path: Path) -> None:
    error = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}
    write(tmp_path, [a_result()])
    write(tmp_path, error, "GetMetricData.json")
    with standin(tmp_path, NOW) as session:
        client = session.client("cloudwatch")
        assert len(client.list_metrics()["Metrics"]) == 1
        with pytest.raises(ClientError, match="AccessDenied"):
            client.get_metric_data(MetricDataQueries=[], StartTime=0, EndTime=60)


def test_a_result_that_was_not_complete_is_not_complete(tmp_path: Path) -> None:
    write(tmp_path, [a_result(StatusCode="InternalError")])
    with pytest.raises(RetryableError, match="is InternalError, not complete"):
        read(tmp_path)
    # A merged answer has the partial pages of a metric before its last.
    later = a_result(Timestamps=["2026-11-05T11:58:00Z"])
    write(tmp_path, [a_result(StatusCode="PartialData"), later])
    assert read(tmp_path) == THE_DEVICE


def test_lists_and_answers_come_in_pages(tmp_path: Path) -> None:
    devices = [f"nvidia{n}" for n in range(5)]
    values = [float(n) for n in range(60)]
    record(tmp_path, [gpu(minutes(END, values), cluster="eks", device=d) for d in devices])
    whole = read(tmp_path)
    assert [maximum for _, maximum in whole] == [0.59] * 5
    assert read(tmp_path, page=2, datapoints=47) == whole


def test_an_answer_that_goes_on_is_partial_until_its_last_page(tmp_path: Path) -> None:
    record(tmp_path, [gpu(minutes(END, [1.0, 2.0, 3.0]), cluster="eks")])
    named = {"Namespace": "ContainerInsights", "MetricName": "pod_gpu_utilization"}
    stat = {"Metric": named | {"Dimensions": AS_LIST}, "Period": 60, "Stat": "Maximum"}
    asked = {
        "MetricDataQueries": [{"Id": "a", "MetricStat": stat}],
        "StartTime": END - timedelta(minutes=5),
        "EndTime": END + timedelta(minutes=1),
    }
    with standin(tmp_path, NOW, datapoints=2) as session:
        client: Any = session.client("cloudwatch")
        first = client.get_metric_data(**asked)
        last = client.get_metric_data(**asked, NextToken=first["NextToken"])
    results = [page["MetricDataResults"][0] for page in (first, last)]
    assert [(r["StatusCode"], r["Values"]) for r in results] == [
        ("PartialData", [1.0, 2.0]),
        ("Complete", [3.0]),
    ]
    assert "NextToken" not in last


def test_nothing_later_than_now_is_there(tmp_path: Path) -> None:
    record(tmp_path, [gpu(minutes(END, [7.0] * 10), cluster="eks")])
    with standin(tmp_path, END - timedelta(minutes=4)) as session:
        reader = ContainerInsightsMetrics("eks", "us-east-1", lambda: session)
        (device,) = reader.read(END, [60]).devices
        # 11:51 ... 12:00 less the last four
        assert device.windows[0].present == 6
        assert device.last_sample == END - timedelta(minutes=4)
    with standin(tmp_path, END - timedelta(minutes=10)) as session:
        assert session.client("cloudwatch").list_metrics()["Metrics"] == []


def test_recently_active_are_those_of_three_hours_and_listed_those_of_two_weeks(
    tmp_path: Path,
) -> None:
    ages = {"now": timedelta(0), "morning": timedelta(hours=4), "autumn": timedelta(days=15)}
    record(
        tmp_path,
        [gpu([(NOW - age, 1.0)], cluster="eks", pod=f"{pod}-0") for pod, age in ages.items()],
    )
    with standin(tmp_path, NOW) as session:
        client = session.client("cloudwatch")

        def pods(**options: Any) -> list[str]:
            listed = client.list_metrics(**options)["Metrics"]
            return [d["Value"] for m in listed for d in m["Dimensions"] if d["Name"] == "PodName"]

        assert pods(RecentlyActive="PT3H") == ["now"]
        assert pods() == ["morning", "now"]


@pytest.mark.parametrize(
    ("statistic", "value"),
    [("Sum", 90.0), ("Average", 30.0), ("Maximum", 60.0), ("Minimum", 10.0), ("SampleCount", 3.0)],
)
def test_statistics_are_of_a_period(statistic: str, value: float, tmp_path: Path) -> None:
    start = END - timedelta(minutes=1)
    points = [(start + timedelta(seconds=s), v) for s, v in ((0, 10.0), (20, 60.0), (59, 20.0))]
    record(tmp_path, [gpu(points, cluster="eks")])
    with standin(tmp_path, NOW) as session:
        named = {"Namespace": "ContainerInsights", "MetricName": "pod_gpu_utilization"}
        stat = {"Metric": named | {"Dimensions": AS_LIST}, "Period": 60, "Stat": statistic}
        answer = session.client("cloudwatch").get_metric_data(
            MetricDataQueries=[{"Id": "a", "MetricStat": stat}],
            StartTime=start,
            EndTime=END,
        )
    (result,) = answer["MetricDataResults"]
    assert (result["Timestamps"], result["Values"]) == ([start], [value])


@pytest.mark.parametrize(
    "request_",
    [
        {"MetricDataQueries": [{"Id": "a", "Expression": "1"}], "StartTime": 0, "EndTime": 60},
        {"MetricDataQueries": [], "StartTime": 60, "EndTime": 60},
    ],
)
def test_what_the_stand_in_cannot_answer_is_refused(
    request_: dict[str, Any], tmp_path: Path
) -> None:
    with standin(tmp_path, NOW) as session, pytest.raises(ClientError, match="ValidationError"):
        session.client("cloudwatch").get_metric_data(**request_)
