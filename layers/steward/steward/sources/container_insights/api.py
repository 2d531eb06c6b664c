"""The two calls of CloudWatch that are made: pages, parts that are not complete, deadlines, errors."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import batched
from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.config import Config

from steward.aws_errors import aws_call
from steward.errors import DeniedError, RetryableError
from steward.sources.container_insights.naming import Metric

if TYPE_CHECKING:
    import boto3

QUERIES = 500
"""Metrics that one GetMetricData call may ask for."""

DATAPOINTS = 100_800
"""Points that one answer holds; a call that would have more is split, so that none is paged."""

AT_ONCE = 4
"""Calls under way at the same time: far below the 50 a second that an account has."""

_COMPLETE, _FORBIDDEN = "Complete", "Forbidden"
_LEAVE = "allow cloudwatch:GetMetricData and cloudwatch:ListMetrics on * to the role that reads it"


class Asked(NamedTuple):
    """What is asked of a metric: a statistic of each period that begins in the range."""

    statistic: str
    periods: range

    @property
    def period(self) -> int:
        """Seconds of a period."""
        return self.periods.step


class _Answer(NamedTuple):
    status: str
    points: dict[int, float]


class CloudWatchApi:
    """Lists metrics and gets their points.

    Parameters
    ----------
    where : str
        Cluster and region, for error texts.
    region : str
        Region of the metrics.
    session : callable
        Gives the session to make the client from; asked once, when the first call is made.
    monotonic : callable
        Seconds of a clock that never goes back.

    Notes
    -----
    Every method raises DeniedError, RetryableError (throttled after botocore's own attempts, no
    answer, no time left before the deadline, an answer that stays incomplete) or PermanentError. A
    call that has begun may outlast the deadline by its own time-outs.
    """

    def __init__(
        self,
        where: str,
        region: str,
        session: Callable[[], boto3.Session],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._where = where
        self._region = region
        self._session = session
        self._monotonic = monotonic

    @cached_property
    def _client(self) -> Any:
        # Attempts: three, or AWS_MAX_ATTEMPTS. An answer of 500 metrics takes seconds, not one.
        limits = Config(connect_timeout=2, read_timeout=10, retries={"mode": "standard"})
        return self._session().client("cloudwatch", region_name=self._region, config=limits)

    def deadline(self, seconds: float) -> float:
        """Tell when so many seconds from now are over, for the calls of one task."""
        return self._monotonic() + seconds

    def listed(
        self,
        namespace: str,
        name: str,
        dimensions: Mapping[str, str | None],
        deadline: float,
        *,
        recent: bool,
    ) -> Iterator[Metric]:
        """List the metrics of a name that have these dimensions (None: with any value).

        `recent` are those with points in the last three hours; else in the last two weeks.
        """
        filters = [
            {"Name": key} if value is None else {"Name": key, "Value": value}
            for key, value in dimensions.items()
        ]
        asked: dict[str, Any] = {"Namespace": namespace, "MetricName": name, "Dimensions": filters}
        if recent:
            asked["RecentlyActive"] = "PT3H"
        for page in self._pages("list_metrics", f"ListMetrics of {name}", asked, deadline):
            for metric in page.get("Metrics", []):
                pairs = frozenset((d["Name"], d["Value"]) for d in metric.get("Dimensions", []))
                yield Metric(metric["Namespace"], metric["MetricName"], pairs)

    def points(
        self, metrics: Mapping[Metric, Asked], deadline: float
    ) -> dict[Metric, dict[int, float]]:
        """Get the points of metrics, by the second at which their period begins.

        Metrics without points have none. An answer that CloudWatch does not call complete is asked
        for once more, and then not believed.
        """
        answers = self._round(metrics, deadline)
        doubtful = [metric for metric in metrics if answers[metric].status != _COMPLETE]
        if doubtful:
            answers |= self._round({metric: metrics[metric] for metric in doubtful}, deadline)
        for metric in doubtful:
            self._believe(metric, answers[metric].status)
        return {metric: answer.points for metric, answer in answers.items()}

    def _believe(self, metric: Metric, status: str) -> None:
        if status == _COMPLETE:
            return
        said = ", ".join(f"{key} {value}" for key, value in sorted(metric.dimensions))
        message = f"cloudwatch GetMetricData of {self._where}: {metric.name} ({said}) is {status}"
        if status == _FORBIDDEN:
            raise DeniedError(f"{message}; {_LEAVE}")
        raise RetryableError(f"{message}, not complete; asked again next tick")

    def _round(self, metrics: Mapping[Metric, Asked], deadline: float) -> dict[Metric, _Answer]:
        together: dict[range, list[Metric]] = defaultdict(list)
        for metric, asked in metrics.items():
            together[asked.periods].append(metric)
        batches = [
            {metric: metrics[metric] for metric in batch}
            for periods, some in together.items()
            for batch in batched(some, _size(periods), strict=False)
        ]
        if len(batches) < 2:
            found = [self._batch(batch, deadline) for batch in batches]
        else:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few ticks need it

            _ = self._client  # made by one thread
            with ThreadPoolExecutor(AT_ONCE) as pool:
                found = list(pool.map(lambda batch: self._batch(batch, deadline), batches))
        return {metric: answer for batch in found for metric, answer in batch.items()}

    def _batch(self, metrics: Mapping[Metric, Asked], deadline: float) -> dict[Metric, _Answer]:
        """Ask for metrics over one range."""
        names = {f"m{number}": metric for number, metric in enumerate(metrics)}
        periods = next(iter(metrics.values())).periods
        request = {
            "MetricDataQueries": [
                {"Id": name, "MetricStat": _stat(metric, metrics[metric])}
                for name, metric in names.items()
            ],
            "StartTime": periods.start,
            "EndTime": periods.stop,
            "ScanBy": "TimestampAscending",
        }
        answers = {name: _Answer("missing", {}) for name in names}
        what = f"GetMetricData of {len(names)} metrics"
        for page in self._pages("get_metric_data", what, request, deadline):
            for result in page.get("MetricDataResults", []):
                if (name := result.get("Id")) in answers:
                    # The last page tells the status: those before it are partial by their nature.
                    answers[name] = _added(answers[name], result, periods)
        return {names[name]: answer for name, answer in answers.items()}

    def _pages(
        self, operation: str, what: str, request: dict[str, Any], deadline: float
    ) -> Iterator[dict[str, Any]]:
        doing = f"cloudwatch {what}, {self._where}"
        token = None
        while True:
            if self._monotonic() >= deadline:
                raise RetryableError(f"{doing}: no answer before the deadline; asked next tick")
            with aws_call(doing, denied=_LEAVE):
                page: dict[str, Any] = getattr(self._client, operation)(
                    **request, **({"NextToken": token} if token else {})
                )
            yield page
            token = page.get("NextToken")
            if not token:
                return


def _stat(metric: Metric, asked: Asked) -> dict[str, Any]:
    dimensions = [{"Name": key, "Value": value} for key, value in sorted(metric.dimensions)]
    named = {
        "Namespace": metric.namespace,
        "MetricName": metric.name,
        "Dimensions": dimensions,
    }
    return {"Metric": named, "Period": asked.period, "Stat": asked.statistic}


def _size(periods: range) -> int:
    return max(1, min(QUERIES, DATAPOINTS // max(1, len(periods))))


def _added(before: _Answer, result: Mapping[str, Any], periods: range) -> _Answer:
    times: Sequence[Any] = result.get("Timestamps", [])
    values: Sequence[float] = result.get("Values", [])
    if len(times) != len(values):
        return _Answer("malformed", before.points)
    points = {math.floor(at.timestamp()): value for at, value in zip(times, values, strict=True)}
    inside = {at: value for at, value in points.items() if at in periods}
    return _Answer(str(result.get("StatusCode", "")), before.points | inside)
