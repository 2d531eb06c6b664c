"""CloudWatch's answers that are paged, partial, late or refused."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from steward.errors import DeniedError, PermanentError, RetryableError
from steward.sources.container_insights.api import Asked, CloudWatchApi
from steward.sources.container_insights.naming import Metric

START = int(datetime(2026, 11, 5, 11, 0, tzinfo=UTC).timestamp())
HOUR = Asked("Maximum", range(START, START + 3600, 60))

type Script = Callable[[dict[str, Any]], dict[str, Any]]


def metric(number: int = 0) -> Metric:
    pairs = {("ClusterName", "eks"), ("GpuDevice", f"nvidia{number}")}
    return Metric("ContainerInsights", "pod_gpu_utilization", frozenset(pairs))


def when(minute: int) -> datetime:
    return datetime.fromtimestamp(START + 60 * minute, UTC)


def result(name: str, *points: tuple[int, float], status: str = "Complete") -> dict[str, Any]:
    return {
        "Id": name,
        "Timestamps": [when(minute) for minute, _ in points],
        "Values": [value for _, value in points],
        "StatusCode": status,
    }


@dataclass
class Scripted:
    """A session and its client: answers GetMetricData from a script, one entry a call."""

    answers: Iterator[dict[str, Any] | Exception]
    calls: list[dict[str, Any]] = field(default_factory=list)

    def client(self, service: str, **_: object) -> "Scripted":
        assert service == "cloudwatch"
        return self

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        self.calls.append(request)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    list_metrics = get_metric_data


def api(*answers: dict[str, Any] | Exception) -> tuple[CloudWatchApi, Scripted]:
    session = Scripted(iter(answers))
    reader = CloudWatchApi("eks in us-east-1", "us-east-1", lambda: session, lambda: 0.0)  # type: ignore[arg-type,return-value]
    return reader, session


def refused(code: str, status: int) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": "no"},
            "ResponseMetadata": {"HTTPStatusCode": status},  # type: ignore[typeddict-item]
        },
        "GetMetricData",
    )


def test_pages_are_put_together_and_the_last_one_tells_the_status() -> None:
    reader, session = api(
        {"MetricDataResults": [result("m0", (0, 1.0), status="PartialData")], "NextToken": "t"},
        {"MetricDataResults": [result("m0", (1, 2.0))]},
    )
    assert reader.points({metric(): HOUR}, 1.0) == {metric(): {START: 1.0, START + 60: 2.0}}
    assert [call.get("NextToken") for call in session.calls] == [None, "t"]
    first = session.calls[0]
    assert (first["StartTime"], first["EndTime"]) == (START, START + 3600)
    (query,) = first["MetricDataQueries"]
    assert query["MetricStat"]["Period"] == 60
    assert query["MetricStat"]["Metric"]["Dimensions"] == [
        {"Name": "ClusterName", "Value": "eks"},
        {"Name": "GpuDevice", "Value": "nvidia0"},
    ]


def test_what_is_not_complete_is_asked_for_once_more_and_only_that() -> None:
    reader, session = api(
        {"MetricDataResults": [result("m0", (0, 1.0)), result("m1", status="InternalError")]},
        {"MetricDataResults": [result("m0", (0, 2.0))]},
    )
    found = reader.points({metric(0): HOUR, metric(1): HOUR}, 1.0)
    assert found == {metric(0): {START: 1.0}, metric(1): {START: 2.0}}
    assert [len(call["MetricDataQueries"]) for call in session.calls] == [2, 1]


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ([result("m0", (0, 1.0), status="PartialData")], "is PartialData"),
        ([result("m0", status="InternalError")], "is InternalError"),
        ([], "is missing"),
        (
            [{"Id": "m0", "StatusCode": "Complete", "Timestamps": [when(0)], "Values": []}],
            "is malf",
        ),
    ],
)
def test_what_stays_incomplete_is_not_believed_and_named(answer: list[Any], named: str) -> None:
    reader, _ = api({"MetricDataResults": answer}, {"MetricDataResults": answer})
    with pytest.raises(RetryableError) as caught:
        reader.points({metric(): HOUR}, 1.0)
    assert f"pod_gpu_utilization (ClusterName eks, GpuDevice nvidia0) {named}" in str(caught.value)


def test_a_metric_of_an_account_that_is_not_shared_is_denied() -> None:
    answer = {"MetricDataResults": [result("m0", status="Forbidden")]}
    reader, _ = api(answer, answer)
    with pytest.raises(DeniedError, match="is Forbidden"):
        reader.points({metric(): HOUR}, 1.0)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (refused("AccessDeniedException", 403), DeniedError, "cloudwatch:GetMetricData and cloud"),
        (refused("AccessDenied", 400), DeniedError, "cloudwatch:ListMetrics on *"),
        (refused("ThrottlingException", 400), RetryableError, "eks in us-east-1"),
        (refused("InternalServiceFault", 500), RetryableError, "InternalServiceFault"),
        (refused("InvalidParameterValue", 400), PermanentError, "InvalidParameterValue"),
        (ReadTimeoutError(endpoint_url="http://x"), RetryableError, "GetMetricData of 1 metrics"),
    ],
)
def test_a_refusal_says_what_where_and_the_remedy(
    error: Exception, kind: type[Exception], said: str
) -> None:
    reader, _ = api(error)
    with pytest.raises(kind) as caught:
        reader.points({metric(): HOUR}, 1.0)
    assert said in str(caught.value)


def test_after_the_deadline_nothing_is_asked() -> None:
    reader, session = api()
    with pytest.raises(RetryableError, match="no answer before the deadline"):
        reader.points({metric(): HOUR}, reader.deadline(0))
    with pytest.raises(RetryableError, match="no answer before the deadline"):
        list(reader.listed("ContainerInsights", "x", {}, reader.deadline(0), recent=True))
    assert session.calls == []


@pytest.mark.parametrize(
    ("metrics", "minutes", "sizes"),
    [
        (500, 60, [500]),
        (501, 60, [1, 500]),  # 500 metrics a call
        (200, 1440, [60, 70, 70]),  # 100,800 points a call: 70 days of 1,440 minutes
        (11, 10_080, [1, 10]),
    ],
)
def test_calls_stay_within_500_metrics_and_100_800_points(
    metrics: int, minutes: int, sizes: list[int]
) -> None:
    asked = Asked("Maximum", range(START, START + 60 * minutes, 60))
    all_of_them = {"MetricDataResults": [result(f"m{n}") for n in range(500)]}
    reader, session = api(*[all_of_them] * len(sizes))
    found = reader.points({metric(n): asked for n in range(metrics)}, 1.0)
    assert found == {metric(n): {} for n in range(metrics)}
    assert sorted(len(call["MetricDataQueries"]) for call in session.calls) == sizes


def test_listing_follows_its_pages_and_filters_by_name_or_value() -> None:
    def page(number: int) -> dict[str, Any]:
        one = metric(number)
        pairs = [{"Name": key, "Value": value} for key, value in one.dimensions]
        return {"Metrics": [{"Namespace": one[0], "MetricName": one[1], "Dimensions": pairs}]}

    reader, session = api(page(0) | {"NextToken": "t"}, page(1))
    wanted = {"ClusterName": "eks", "GpuDevice": None}
    found = list(reader.listed("ContainerInsights", "x", wanted, 1.0, recent=True))
    assert found == [metric(0), metric(1)]
    assert session.calls[1] == {
        "Namespace": "ContainerInsights",
        "MetricName": "x",
        "Dimensions": [{"Name": "ClusterName", "Value": "eks"}, {"Name": "GpuDevice"}],
        "RecentlyActive": "PT3H",
        "NextToken": "t",
    }
    assert "NextToken" not in session.calls[0]
