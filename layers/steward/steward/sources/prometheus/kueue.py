"""Kueue's own metrics: what each says, once, however many replicas report it. Pure.

NaN and infinities are no data, and so are negative numbers. Limits are not read: Kueue exported 0
for one that is not set, and infinity since.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from steward.cluster.kueue import KueueMetrics, QueueMetrics
from steward.sources.prometheus.samples import Points
from steward.sources.prometheus.series import LARGEST_LABELS

_PENDING = "kueue_pending_workloads"
_ADMITTED = "kueue_admitted_active_workloads"
_USAGE = "kueue_cluster_queue_resource_usage"
_NOMINAL = "kueue_cluster_queue_nominal_quota"
_BUILD = "kueue_build_info"

GAUGES = (_PENDING, _ADMITTED, _USAGE, _NOMINAL, _BUILD)
EVICTED = "kueue_evicted_workloads_total"
SPAN_MS = 3_600_000
"""What evictions are counted over."""


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """What a gauge is about; the labels that say who reports it, and in which role, are left out."""

    metric: str = msgspec.field(default="", name="__name__")
    cluster_queue: str = ""
    status: str = ""
    flavor: str = ""
    resource: str = ""
    git_version: str = ""


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """What an eviction counter is about, likewise; later releases split it by the last two."""

    cluster_queue: str = ""
    reason: str = ""
    underlying_cause: str = ""
    priority_class: str = ""


_gauge = msgspec.json.Decoder(Gauge)
_eviction = msgspec.json.Decoder(Eviction)


def gauge(metric: msgspec.Raw) -> Gauge | None:
    """Read a gauge's labels; None where they are too large to be a ClusterQueue's."""
    return _gauge.decode(metric) if len(bytes(metric)) <= LARGEST_LABELS else None


def eviction(metric: msgspec.Raw) -> Eviction | None:
    """Read a counter's labels, likewise."""
    return _eviction.decode(metric) if len(bytes(metric)) <= LARGEST_LABELS else None


def reading(
    gauges: Iterable[tuple[Gauge, float]], counters: Iterable[tuple[Eviction, Points]]
) -> KueueMetrics:
    """Put together what the metrics say of every ClusterQueue.

    Parameters
    ----------
    gauges : iterable
        Newest values; of several that say the same thing the highest counts, never the sum.
    counters : iterable
        Raw samples of the last hour.
    """
    said: dict[Gauge, float] = {}
    for about, value in gauges:
        if value >= 0 and math.isfinite(value):
            said[about] = max(value, said.get(about, 0.0))
    evicted = _evicted(counters)
    own: dict[str, dict[Gauge, float]] = defaultdict(dict)
    for about, value in said.items():
        own[about.cluster_queue][about] = value
    names = own.keys() | evicted.keys()
    versions = {about.git_version for about in said if about.metric == _BUILD}
    return KueueMetrics(
        version=max(filter(None, versions), key=_numbers, default=None),
        queues=tuple(
            _queue(name, own.get(name, {}), evicted.get(name, {}))
            for name in sorted(filter(None, names))
        ),
    )


def increase(series: Sequence[Points]) -> float:
    """Count what a counter went up by, through resets, where several series report it.

    Series that follow each other (a restarted replica under other labels) are one counter; those
    that overlap are replicas of it, of which the highest counts. The first sample says nothing: how
    much of it is old, nobody saw.
    """
    chains: list[list[Points]] = []
    for points in sorted((s for s in series if s.times), key=lambda s: (s.times[0], s.times[-1])):
        ended = [chain for chain in chains if chain[-1].times[-1] < points.times[0]]
        if ended:
            # The one that ended last is the one that this follows.
            max(ended, key=lambda chain: chain[-1].times[-1]).append(points)
        else:
            chains.append([points])
    return max((_up(chain) for chain in chains), default=0.0)


def _up(chain: Iterable[Points]) -> float:
    values = [v for points in chain for v in points.values if v >= 0 and math.isfinite(v)]
    return sum(after - before if after >= before else after for before, after in pairwise(values))


def _evicted(counters: Iterable[tuple[Eviction, Points]]) -> Mapping[str, dict[str, float]]:
    """Add up evictions by ClusterQueue and reason."""
    reported: dict[Eviction, list[Points]] = defaultdict(list)
    for about, points in counters:
        reported[about].append(points)
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for about, series in reported.items():
        found[about.cluster_queue][about.reason] += increase(series)
    return found


def _queue(name: str, own: Mapping[Gauge, float], evicted: Mapping[str, float]) -> QueueMetrics:
    return QueueMetrics(
        cluster_queue=name,
        pending={a.status: value for a, value in own.items() if a.metric == _PENDING},
        admitted=next((value for a, value in own.items() if a.metric == _ADMITTED), None),
        evicted=dict(evicted),
        usage=_by_flavor(own, _USAGE),
        nominal=_by_flavor(own, _NOMINAL),
    )


def _by_flavor(own: Mapping[Gauge, float], metric: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for about, value in own.items():
        if about.metric == metric:
            found[about.flavor][about.resource] = value
    return dict(found)


def _numbers(version: str) -> tuple[list[int], str]:
    """Order versions by their numbers: v0.9 goes before v0.18."""
    parts = version.partition("-")[0].lstrip("v").split(".")
    return [int(part) for part in parts if part.isdecimal()], version
