"""Kueue's own metrics as Container Insights keeps them. Pure.

The agent drops every label that is no dimension, so that series which differ only in such a label
(the underlying cause of an eviction, the replica that tells) fall together: a gauge is the highest
of them, an increase their sum.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from steward.cluster.accelerators import RECENT
from steward.cluster.kueue import KueueMetrics, QueueMetrics
from steward.sources.container_insights.naming import CLUSTER, Metric
from steward.sources.container_insights.windows import Points, second

NAMESPACE = "ContainerInsights/Prometheus"
SPAN = timedelta(hours=1)
"""What an increase is counted over."""

_QUEUE, _STATUS, _REASON, _RESOURCE, _FLAVOR = (
    "ClusterQueue",
    "Status",
    "Reason",
    "Resource",
    "Flavor",
)
_PENDING, _ADMITTED, _EVICTED, _USAGE, _NOMINAL = (
    "kueue_pending_workloads",
    "kueue_admitted_active_workloads",
    "kueue_evicted_workloads_total",
    "kueue_cluster_queue_resource_usage",
    "kueue_cluster_queue_nominal_quota",
)
SETS = {
    _PENDING: frozenset({CLUSTER, _QUEUE, _STATUS}),
    _ADMITTED: frozenset({CLUSTER, _QUEUE}),
    _EVICTED: frozenset({CLUSTER, _QUEUE, _REASON}),
    _USAGE: frozenset({CLUSTER, _QUEUE, _RESOURCE, _FLAVOR}),
    _NOMINAL: frozenset({CLUSTER, _QUEUE, _RESOURCE, _FLAVOR}),
}
"""The five metrics, each with the one set of dimensions that is not a sum over others."""

_ACCELERATORS = ("nvidia.com/", "aws.amazon.com/neuron")


def statistic(metric: Metric) -> str:
    """Name the statistic of a minute: the agent turns a counter into what it grew by."""
    return "Sum" if metric.name == _EVICTED else "Maximum"


def wanted(listed: Iterable[Metric]) -> tuple[Metric, ...]:
    """Choose what is asked for: of resources only accelerators, for every metric has its price."""
    chosen = []
    for metric in listed:
        said = dict(metric.dimensions)
        if frozenset(said) == SETS.get(metric.name) and said.get(
            _RESOURCE, _ACCELERATORS[0]
        ).startswith(_ACCELERATORS):
            chosen.append(metric)
    return tuple(dict.fromkeys(chosen))


def metrics(answers: Mapping[Metric, Points], end: datetime) -> KueueMetrics:
    """Reduce minutes to what each ClusterQueue's metrics say; a gauge without a recent one is out."""
    queues: dict[str, dict[str, Any]] = defaultdict(
        lambda: {
            "pending": {},
            "evicted": {},
            "usage": defaultdict(dict),
            "nominal": defaultdict(dict),
        }
    )
    for metric, points in answers.items():
        value = _value(metric, points, end)
        if value is None:
            continue
        said = dict(metric.dimensions)
        queue = queues[said[_QUEUE]]
        if metric.name == _ADMITTED:
            queue["admitted"] = value
        elif metric.name == _PENDING:
            queue["pending"][said[_STATUS]] = value
        elif metric.name == _EVICTED:
            queue["evicted"][said[_REASON]] = value
        else:
            side = queue["usage" if metric.name == _USAGE else "nominal"]
            side[said[_FLAVOR]][said[_RESOURCE]] = value
    return KueueMetrics(
        queues=tuple(
            QueueMetrics(
                cluster_queue=name,
                pending=said["pending"],
                admitted=said.get("admitted"),
                evicted=said["evicted"],
                usage=dict(said["usage"]),
                nominal=dict(said["nominal"]),
            )
            for name, said in sorted(queues.items())
        )
    )


def _value(metric: Metric, points: Points, end: datetime) -> float | None:
    since = second(end - (SPAN if metric.name == _EVICTED else RECENT))
    inside = {at: value for at, value in points.items() if since < at <= second(end)}
    if not inside:
        return None
    return sum(inside.values()) if metric.name == _EVICTED else inside[max(inside)]
