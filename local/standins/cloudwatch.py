"""CloudWatch's metrics: JSON 1.0 over POST, the operation in a header; answered from a recording.

A recording holds results, so this aggregates them again over the periods that are asked for: where
it was recorded with a period of a minute, one value a minute.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property

from werkzeug.wrappers import Request, Response

from local.recording import Recording, moment
from local.recording.cloudwatch import Metric
from local.standins.aws_wire import Document, RefusedError, json_response, recorded

TARGET = "GraniteServiceVersion20100801."

JSON_1_0 = "application/x-amz-json-1.0"
MOST_QUERIES = 500
RECENT, LISTED_FOR = timedelta(hours=3), timedelta(days=14)
"""How long ago a metric had its newest point that is listed: with RecentlyActive, and without."""

_REDUCE: dict[str, Callable[[Sequence[float]], float]] = {
    "Average": lambda values: sum(values) / len(values),
    "Maximum": max,
    "Minimum": min,
    "SampleCount": len,
    "Sum": sum,
}

type Reduced = list[tuple[int, float]]


class CloudWatchStandin:
    """Answers GetMetricData (of single metrics) and ListMetrics, at the virtual time.

    Parameters
    ----------
    now : callable
        The virtual time; a later point does not exist yet.
    page, datapoints : int
        Metrics that a page lists; points that an answer holds before it is continued.
    """

    def __init__(
        self,
        recording: Recording,
        now: Callable[[], datetime],
        *,
        page: int = 500,
        datapoints: int = 100_800,
    ) -> None:
        self._data = recording.cloudwatch
        self._now = now
        self._page = page
        self._datapoints = datapoints

    def is_asked(self, request: Request) -> bool:
        """Tell whether a request is for CloudWatch."""
        return request.method == "POST" and _target(request).startswith(TARGET)

    def respond(self, request: Request) -> Response:
        """Answer one request.

        Raises
        ------
        RefusedError
            The answer is an error.
        """
        operation = _target(request).removeprefix(TARGET)
        asked = json.loads(request.get_data())
        recorded(dict(self._data.errors.get(operation, {})), operation)
        if operation == "ListMetrics":
            return json_response(self._list(asked), JSON_1_0)
        if operation == "GetMetricData":
            return json_response(self._get(asked), JSON_1_0)
        raise RefusedError("UnknownOperationException", f"{operation} is not recorded")

    @cached_property
    def _times(self) -> dict[Metric, list[datetime]]:
        return {metric: sorted(points) for metric, points in self._data.points.items()}

    def _list(self, asked: Document) -> Document:
        since = self._now() - (RECENT if asked.get("RecentlyActive") else LISTED_FOR)
        found = []
        for metric in sorted(self._times, key=_order):
            namespace, name, _ = metric
            if (
                asked.get("Namespace", namespace) != namespace
                or asked.get("MetricName", name) != name
            ):
                continue
            said = _matching(metric, asked.get("Dimensions", []))
            if said is not None and any(since < at <= self._now() for at in self._times[metric]):
                pairs = [{"Name": key, "Value": value} for key, value in sorted(said.items())]
                found.append({"Namespace": namespace, "MetricName": name, "Dimensions": pairs})
        first = int(asked.get("NextToken") or 0)
        after = first + self._page
        more = {"NextToken": str(after)} if after < len(found) else {}
        return {"Metrics": found[first:after], **more}

    def _get(self, asked: Document) -> Document:
        queries = asked["MetricDataQueries"]
        start, end = moment(asked["StartTime"]), moment(asked["EndTime"])
        if len(queries) > MOST_QUERIES or start >= end:
            raise RefusedError(
                "ValidationError",
                f"{len(queries)} queries from {start} to {end}: too many, or none",
            )
        answers = [self._query(query, start, end) for query in queries]
        return _paged(answers, int(asked.get("NextToken") or 0), self._datapoints)

    def _query(self, query: Document, start: datetime, end: datetime) -> Document:
        if "MetricStat" not in query:
            raise RefusedError("ValidationError", f"{query['Id']}: only MetricStat is answered")
        stat = query["MetricStat"]
        wanted = stat["Metric"]
        pairs = frozenset((d["Name"], d["Value"]) for d in wanted.get("Dimensions", []))
        found = self._find(wanted["Namespace"], wanted["MetricName"], pairs)
        reduced: Reduced = []
        status = "Complete"
        if found is not None:
            reduced = list(self._reduced(found, stat, start, end))
            status = self._data.statuses[found]
        return {
            "Id": query["Id"],
            "Label": query.get("Label") or wanted["MetricName"],
            "Timestamps": [at for at, _ in reduced],
            "Values": [value for _, value in reduced],
            "StatusCode": status,
        }

    def _find(self, namespace: str, name: str, pairs: frozenset[tuple[str, str]]) -> Metric | None:
        nobodys = frozenset(pair for pair in pairs if pair[0] != "ClusterName")
        metrics = ((namespace, name, pairs), (namespace, name, nobodys))
        return next((metric for metric in metrics if metric in self._times), None)

    def _reduced(
        self, metric: Metric, stat: Document, start: datetime, end: datetime
    ) -> Iterator[tuple[int, float]]:
        period, reduce = int(stat["Period"]), _REDUCE[stat["Stat"]]
        points = self._data.points[metric]
        periods: dict[int, list[float]] = {}
        times = self._times[metric]
        first, after = bisect_left(times, start), bisect_left(times, end)
        for at in times[first : min(after, bisect_right(times, self._now()))]:
            begun = int(at.timestamp()) // period * period
            periods.setdefault(begun, []).append(points[at])
        return ((begun, reduce(values)) for begun, values in periods.items())


def _target(request: Request) -> str:
    return request.headers.get("X-Amz-Target", "")


def _order(metric: Metric) -> tuple[str, str, list[tuple[str, str]]]:
    namespace, name, pairs = metric
    return namespace, name, sorted(pairs)


def _matching(metric: Metric, filters: Sequence[Mapping[str, str]]) -> dict[str, str] | None:
    """Return a metric's dimensions where they have those of a filter; None where they do not.

    A result that was written down without ClusterName is of whatever cluster is asked for.
    """
    said = dict(metric[2])
    for wanted in filters:
        name, value = wanted["Name"], wanted.get("Value")
        if name == "ClusterName" and value is not None:
            said.setdefault(name, value)
        if name not in said or value not in {None, said[name]}:
            return None
    return said


def _paged(answers: list[Document], first: int, size: int) -> Document:
    """Cut the answers after so many points: what goes on is partial until its last page."""
    results, passed = [], 0
    total = sum(len(answer["Values"]) for answer in answers)
    after = first + size
    for answer in answers:
        count = len(answer["Values"])
        part = slice(max(0, first - passed), max(0, after - passed))
        cut = {key: answer[key][part] for key in ("Timestamps", "Values")}
        passed += count
        if passed > after:
            cut["StatusCode"] = "PartialData"
        results.append(answer | cut)
    return {"MetricDataResults": results} | ({"NextToken": str(after)} if after < total else {})
