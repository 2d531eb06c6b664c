"""Prometheus' answers about a generated cluster, found by the form of each query.

Statistics are canned, one a series and metric: nothing is evaluated, and what a query has no canned
answer for is refused, so that a new form of query is noticed.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain

from local.generated.cluster import FLAVORS, GeneratedCluster, Holder, gpu_uuid, namespace_of

_LABEL = re.compile(r'(\w+)=~"((?:[^"\\]|\\.)*)"')
_SELECTED = r"(\w*)\{((?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\}(?:\[(\d+)ms\])?"
_TAGGED = re.compile(
    rf'label_replace\((\w+)\({_SELECTED}\), "(\w+)", "([^"]*)", "", ""\)(?: or |$)'
)
_APPLIED = re.compile(rf"(\w+)\({_SELECTED}\)(?: or |$)")
_BARE = re.compile(_SELECTED)

_VALUES = {
    # metric: busy, idle
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": (0.87, 0.0),
    "DCGM_FI_DEV_GPU_UTIL": (91.0, 0.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (0.41, 0.0),
    "DCGM_FI_DEV_POWER_USAGE": (604.25, 113.5),
    "DCGM_FI_DEV_FB_USED": (61234.0, 3.0),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": (700.0, 700.0),
}
"""What the exporter exports; other metrics have no series."""

_BLANK = 9223372036854775792.0
_BLANK_EVERY = 2000
"""One GPU in so many has an impossible sample in the window."""

_SHARES = {"max_over_time": 1, "avg_over_time": 0.8, "min_over_time": 0.1}
"""What a statistic is of the metric's value, all but a hair that no two GPUs have in common."""

_QUEUE_GAUGES = ("kueue_pending_workloads", "kueue_admitted_active_workloads")
_FLAVOR_GAUGES = ("kueue_cluster_queue_resource_usage", "kueue_cluster_queue_nominal_quota")


class UnansweredError(Exception):
    """There is no canned answer for a query of this form."""


class Series:
    """The series of a cluster's accelerators and queues."""

    def __init__(self, cluster: GeneratedCluster) -> None:
        self._cluster = cluster

    def answer(self, query: str, end: float) -> bytes:
        """Answer an instant query.

        Raises
        ------
        UnansweredError
            Its form is not known.
        """
        tagged = list(_TAGGED.finditer(query))
        if tagged and "".join(one[0] for one in tagged) == query:
            return _vector(
                chain.from_iterable(
                    self._statistic(one[1], _named(one[2], one[3])[0], one[4], end, one[5], one[6])
                    for one in tagged
                ),
                end,
            )
        applied = list(_APPLIED.finditer(query))
        if applied and "".join(one[0] for one in applied) == query:
            return _vector(chain.from_iterable(self._newest(one) for one in applied), end)
        bare = _BARE.fullmatch(query)
        if bare is None:
            raise UnansweredError(query)
        if bare[3]:
            return self._raw(_named(bare[1], bare[2]), bare[2], int(bare[3]) + 1, end)
        return _vector(self._gauges(_named(bare[1], bare[2])), end)

    @cached_property
    def _gpus(self) -> Sequence[tuple[str, str, str, bool]]:
        """UUID, labels before and after the metric's name (sorted, as Prometheus does), and idle."""
        found = []
        for holder in self._cluster.holders:
            for index in range(holder.first, holder.first + holder.gpus):
                uuid = gpu_uuid(holder.node, index)
                found.append((uuid, *_labels(holder, index, uuid), holder.idle))
        return found

    def _statistic(
        self, function: str, metric: str, milliseconds: str, end: float, label: str, tag: str
    ) -> Iterator[tuple[str, str]]:
        if metric not in _VALUES:
            return
        span = int(milliseconds or 0) + 1
        for number, (_, before, after, idle) in enumerate(self._gpus):
            value = _VALUES[metric][idle]
            if function == "count_over_time":
                value = span // 60_000
            elif function == "timestamp":
                value = end
            elif number % _BLANK_EVERY == 0 and function == "max_over_time":
                value = _BLANK
            else:
                value *= _SHARES.get(function, 1) - number % 97 / 1e4
            yield f'{before},"{label}":"{tag}",{after}', repr(value)

    def _newest(self, asked: re.Match[str]) -> Iterator[tuple[str, str]]:
        """Answer `last_over_time` of several metrics: the one function that keeps their names."""
        function, metric, matchers = asked[1], asked[2], asked[3]
        if function != "last_over_time":
            raise UnansweredError(asked[0])
        if any(label in {"pod", "exported_pod"} for label, _ in _LABEL.findall(matchers)):
            return  # nothing that is missing now was there before
        for name in _named(metric, matchers):
            if name in _VALUES:
                for _, before, after, idle in self._gpus:
                    yield f'{before},"__name__":"{name}",{after}', repr(_VALUES[name][idle])

    def _gauges(self, metrics: Sequence[str]) -> Iterator[tuple[str, str]]:
        if "kueue_build_info" in metrics:
            yield '"__name__":"kueue_build_info","git_version":"v0.19.2"', "1"
        for team in self._cluster.teams:
            about = f'{_queue(team)},"cohort":"shared-pool","instance":"10.2.71.9:8443","job":"kueue","replica_role":"leader"'
            for metric in _QUEUE_GAUGES:
                if metric in metrics:
                    yield f'"__name__":"{metric}",{about},"status":"active"', "2"
            for metric in _FLAVOR_GAUGES:
                for flavor in FLAVORS if metric in metrics else ():
                    for resource in ("cpu", "memory", "nvidia.com/gpu", "vpc.amazonaws.com/efa"):
                        named = f'"flavor":"{flavor}","resource":"{resource}"'
                        yield f'"__name__":"{metric}",{about},{named}', "8"

    def _raw(self, metrics: Sequence[str], matchers: str, span_ms: int, end: float) -> bytes:
        count = span_ms // 60_000
        if metrics == ["kueue_evicted_workloads_total"]:
            return self._evictions(metrics[0], _samples(["3"] * count, end))
        named = dict[str, str](_LABEL.findall(matchers))
        wanted = set(named["UUID"].split("|"))  # nothing in a UUID needs an escape
        rows = []
        for number, (uuid, before, after, idle) in enumerate(self._gpus):
            for metric in metrics if uuid in wanted else ():
                if metric in _VALUES:
                    values = self._history(metric, number, count, idle=idle)
                    rows.append((f'{before},"__name__":"{metric}",{after}', _samples(values, end)))
        return _matrix(rows)

    def _evictions(self, metric: str, values: str) -> bytes:
        return _matrix(
            [
                (f'"__name__":"{metric}",{_queue(team)},"reason":"{reason}"', values)
                for team in self._cluster.teams
                for reason in ("Preempted", "PodsReadyTimeout", "NodeFailures")
            ]
        )

    def _history(self, metric: str, number: int, count: int, *, idle: bool) -> list[str]:
        """Give one value a minute: an idle pod's first hour, of five, was busy."""
        busy, quiet = _VALUES[metric]
        if not idle:
            values = [repr(busy)] * count
        else:
            age = min(count, 300)
            values = [repr(busy)] * max(0, age - 240) + [repr(quiet)] * min(age, 240)
        if number % _BLANK_EVERY == 0 and metric != "DCGM_FI_DEV_POWER_MGMT_LIMIT":
            values[-10] = repr(_BLANK)
        return values


def _queue(team: str) -> str:
    return f'"cluster_queue":"{namespace_of(team)}-clusterqueue"'


def _labels(holder: Holder, index: int, uuid: str) -> tuple[str, str]:
    before = {
        "DCGM_FI_DRIVER_VERSION": "550.163.01",
        "Hostname": holder.node,
        "UUID": uuid,
    }
    after = {
        "cluster_name": "ml-shared-01",
        "container": "main",
        "device": f"nvidia{index}",
        "endpoint": "metrics",
        "gpu": str(index),
        "instance": "10.2.64.21:9400",
        "job": "hyperpod-observability/dcgm-exporter",
        "modelName": "NVIDIA H100 80GB HBM3",
        "namespace": holder.namespace,
        "pci_bus_id": f"00000000:{83 + index:X}:00.0",
        "pod": holder.name,
        "service": "dcgm-exporter",
    }
    return json.dumps(before, separators=(",", ":"))[1:-1], json.dumps(
        after, separators=(",", ":")
    )[1:-1]


def _named(metric: str, matchers: str) -> list[str]:
    """Metrics that a selector names, by itself or in its `__name__` matcher."""
    if metric:
        return [metric]
    matched: dict[str, str] = dict(_LABEL.findall(matchers))
    return matched.get("__name__", "").split("|")


def _vector(rows: Iterator[tuple[str, str]], end: float) -> bytes:
    entries = (f'{{"metric":{{{labels}}},"value":[{end:.3f},"{value}"]}}' for labels, value in rows)
    body = ",".join(entries)
    return f'{{"status":"success","data":{{"resultType":"vector","result":[{body}]}}}}'.encode()


def _matrix(rows: Sequence[tuple[str, str]]) -> bytes:
    body = ",".join(f'{{"metric":{{{labels}}},"values":[{values}]}}' for labels, values in rows)
    return f'{{"status":"success","data":{{"resultType":"matrix","result":[{body}]}}}}'.encode()


def _samples(values: Sequence[str], end: float) -> str:
    start = end - 60 * (len(values) - 1)
    return ",".join(f'[{start + 60 * n:.3f},"{value}"]' for n, value in enumerate(values))
