"""One piece of metrics from CloudWatch Container Insights, as GetMetricData prints them."""

import json
from collections.abc import Iterator
from datetime import UTC
from itertools import batched
from typing import Any

from local.capture.chunks import Chunk
from local.capture.names import Pseudonyms
from local.live import Live
from local.metrics_check.needs import Need
from steward.aws_errors import aws_call

NAMESPACES = ("ContainerInsights", "ContainerInsights/Prometheus")
PERIOD_SECONDS = 60
QUERIES = 500
"""The most metrics of a call; an hour of them is 30,000 points of the 100,800 that it may return."""

_OF_PODS = frozenset({"PodName", "FullPodName"})

type Json = dict[str, Any]


def list_metrics(client: Any, need: Need, eks_name: str) -> Iterator[Json]:
    """List a need's metrics of one cluster that have all the dimensions it asks for.

    Raises
    ------
    StewardError
        Refused (`cloudwatch:ListMetrics`) or not answered.
    """
    wanted = {spellings[0] for spellings in need.on_every}
    pages = client.get_paginator("list_metrics")
    with aws_call("list the metrics of Container Insights", denied="allow cloudwatch:ListMetrics"):
        for namespace in NAMESPACES:
            for metric in need.metrics:
                asked = {"Name": "ClusterName", "Value": eks_name}
                for page in pages.paginate(
                    Namespace=namespace, MetricName=metric, Dimensions=[asked]
                ):
                    for one in page["Metrics"]:
                        if wanted <= {dimension["Name"] for dimension in one["Dimensions"]}:
                            yield one


class MetricData:
    """Fetches pieces with GetMetricData; which metrics there are is asked once."""

    def __init__(self, live: Live, needs: tuple[Need, ...], names: Pseudonyms) -> None:
        self._client: Any = live.session.client("cloudwatch", region_name=live.cluster.region)
        self._eks_name = live.cluster.eks_name
        self._needs = needs
        self._names = names
        self._metrics: list[Json] | None = None

    def __call__(self, chunk: Chunk) -> str:
        """Fetch a piece; raises StewardError where it is refused or not answered."""
        if self._metrics is None:
            self._metrics = [
                metric
                for need in self._needs
                for metric in list_metrics(self._client, need, self._eks_name)
            ]
        wanted = [one for one in self._metrics if one["MetricName"] in chunk.metrics]
        results = [
            row
            for part in batched(wanted, QUERIES, strict=False)
            for row in self._rows(part, chunk)
        ]
        return json.dumps({"MetricDataResults": results}, indent=1) + "\n"

    def _rows(self, metrics: tuple[Json, ...], chunk: Chunk) -> Iterator[Json]:
        rows = {f"m{n}": self._row(metric) for n, metric in enumerate(metrics)}
        queries = [_query(identifier, one) for identifier, one in zip(rows, metrics, strict=True)]
        pages = self._client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=queries,
            StartTime=chunk.start,
            EndTime=chunk.end,
            ScanBy="TimestampAscending",
        )
        with aws_call("read Container Insights", denied="allow cloudwatch:GetMetricData"):
            for page in pages:
                for result in page["MetricDataResults"]:
                    row = rows[result["Id"]]
                    times = [
                        f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" for at in result["Timestamps"]
                    ]
                    row["Timestamps"] += times
                    row["Values"] += result["Values"]
        yield from (row for row in rows.values() if row["Values"])

    def _row(self, metric: Json) -> Json:
        pairs = [(one["Name"], one["Value"]) for one in metric["Dimensions"]]
        return {
            "Id": metric["MetricName"],
            "Label": metric["MetricName"],
            "Namespace": metric["Namespace"],
            "MetricName": metric["MetricName"],
            "Dimensions": [{"Name": k, "Value": self._dimension(k, v)} for k, v in pairs],
            "Period": PERIOD_SECONDS,
            "Stat": _statistic(metric["MetricName"]),
            "StatusCode": "Complete",
            "Timestamps": [],
            "Values": [],
        }

    def _dimension(self, name: str, value: str) -> str:
        if name in _OF_PODS:
            return self._names.pod(value)
        return self._names.text(value)


def _query(identifier: str, metric: Json) -> Json:
    statistic = _statistic(metric["MetricName"])
    stat = {"Metric": metric, "Period": PERIOD_SECONDS, "Stat": statistic}
    return {"Id": identifier, "MetricStat": stat}


def _statistic(metric: str) -> str:
    """Counters arrive as what was added in a period; of a level its highest counts."""
    return "Sum" if metric.endswith("_total") else "Maximum"
