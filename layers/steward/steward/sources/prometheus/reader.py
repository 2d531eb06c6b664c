"""Accelerator and queue metrics from Prometheus: Amazon Managed Prometheus, or one's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from steward.ports import Signal
from steward.sources.prometheus import kueue as kueue_metrics
from steward.sources.prometheus import promql
from steward.sources.prometheus.answers import Answers
from steward.sources.prometheus.api import CredentialsSource, QueryApi
from steward.sources.prometheus.asked import COUNT, NEWEST, STATISTICS, Asked, column
from steward.sources.prometheus.families import ACTIVITY, BY_SIGNAL, NEURON_CORE, NEURON_HARDWARE
from steward.sources.prometheus.labels import instance_of
from steward.sources.prometheus.samples import Raw, samples_of, seen_devices
from steward.sources.prometheus.series import SeriesTable
from steward.sources.prometheus.windows import reading

if TYPE_CHECKING:
    from steward.cluster.kueue import KueueMetrics
    from steward.ports import DeviceName, DeviceReading, MetricsReading, Samples

_ACTIVITY_METRICS = tuple(family.metric for family in ACTIVITY)

MOST_NAMED = 1_000
"""Devices in doubt that are named one by one; where more are, it is those of the whole cluster."""


class PrometheusMetrics:
    """The `MetricsReader` of one cluster.

    Parameters
    ----------
    base_url : str
        What `/api/v1/query` is appended to.
    sigv4_region : str or None
        Region of the AMP workspace; None sends unsigned requests.
    credentials : callable
        Where SigV4 gets its credentials from.
    cluster_label : str or None
        Leaves out series that carry another `cluster_name`; series without the label stay.
    scrape_interval_seconds : int
        How often a device is sampled.
    deadline_seconds : float
        What one call of a method may take, over all its queries.
    monotonic : callable
        Seconds of a clock that never goes back.

    Notes
    -----
    `read` makes five queries, and one more where samples are in doubt; `samples` and `seen` make
    one, `kueue` two: at most twelve in a tick, which asks `samples` for what has ended, for what
    has become idle and for what has begun to hang, and each other once. None of these numbers
    grows with the cluster or with the windows.

    Every method raises DeniedError, RetryableError or PermanentError: the source refused, did not
    answer in time, or answered nonsense.
    """

    def __init__(
        self,
        base_url: str,
        *,
        sigv4_region: str | None = None,
        credentials: CredentialsSource = lambda: None,
        cluster_label: str | None = None,
        scrape_interval_seconds: int = 60,
        deadline_seconds: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = QueryApi(base_url, sigv4_region, credentials, monotonic)
        self._cluster = (
            {"cluster_name": promql.one_of([cluster_label], or_absent=True)}
            if cluster_label is not None
            else {}
        )
        self._interval = scrape_interval_seconds
        self._deadline_seconds = deadline_seconds

    @property
    def part(self) -> str:
        """Name of the part that tells what became of this source."""
        return "prometheus"

    def close(self) -> None:
        """Close the connections kept for the next query."""
        self._api.close()

    def read(
        self, end: datetime, minutes: Sequence[int], signal_minutes: Sequence[int] = ()
    ) -> MetricsReading:
        """Read window statistics for every device, for windows that end at `end`.

        Activity over `minutes`; tensor activity and power over `signal_minutes`.
        """
        deadline = self._api.deadline(self._deadline_seconds)
        asked = Asked(
            end=end,
            minutes=tuple(sorted(set(minutes))),
            signal_minutes=tuple(sorted(set(signal_minutes))),
            interval_seconds=self._interval,
        )
        answers = Answers(asked)
        for function in STATISTICS:
            parts = {
                name: self._over_time(function, [family.metric], span * 60)
                for name, (family, span) in asked.columns.items()
            }
            if function is COUNT:
                parts |= {
                    column(family, 0): f"timestamp({self._selected([family.metric])})"
                    for family in ACTIVITY
                }
            text = promql.tagged_union(parts)
            answers.add_statistic(
                function, self._api.vector(text, end, deadline, answers.series.key)
            )
        text = self._over_time(NEWEST, asked.levels, asked.longest * 60)
        answers.add_levels(self._api.vector(text, end, deadline, answers.series.key))
        raw: Iterator[Raw] = iter(())
        if doubtful := answers.doubtful:
            metrics = sorted({channel.metric for channel in doubtful})
            uuids = {channel.device.uuid for channel in doubtful}
            matchers = _matchers(uuids) if len(uuids) <= MOST_NAMED else {}
            raw = self._raw(metrics, matchers, end, asked.longest * 60, deadline, answers.series)
        return reading(answers, raw)

    def samples(
        self,
        end: datetime,
        span_seconds: float,
        devices: Collection[DeviceName],
        signals: Sequence[Signal] = (Signal.ACTIVITY,),
    ) -> tuple[Samples, ...]:
        """Fetch raw samples in (end - span, end] for some devices, in one batched query.

        Every device asked for is in the answer once a signal, one without samples with none.
        """
        if not devices:
            return ()
        deadline = self._api.deadline(self._deadline_seconds)
        uuids = {device.uuid for device in devices}
        kinds = {instance_of(uuid) is not None for uuid in uuids}
        metrics = [
            family.metric
            for signal in signals
            for family in BY_SIGNAL[signal]
            if (family is NEURON_CORE) in kinds
        ]
        table = SeriesTable()
        if not metrics:  # nothing that these devices export
            return samples_of((), table, devices, signals, self._interval)
        if NEURON_CORE.metric in metrics:
            metrics.append(NEURON_HARDWARE)
        raw = self._raw(metrics, _matchers(uuids), end, span_seconds, deadline, table)
        return samples_of(raw, table, devices, signals, self._interval)

    def seen(
        self, end: datetime, span_seconds: float, pods: Collection[tuple[str, str]]
    ) -> tuple[DeviceReading, ...]:
        """Find devices that were attributed to pods (namespace, name) within the span before `end`."""
        if not pods:
            return ()
        deadline = self._api.deadline(self._deadline_seconds)
        named = promql.one_of(name for _, name in pods)
        # The one function that keeps the metric's name. A series that the first two both select
        # is the same one, so that nothing is lost where its labels are met again.
        text = promql.union(
            [
                self._over_time(NEWEST, _ACTIVITY_METRICS, span_seconds, pod=named),
                self._over_time(NEWEST, _ACTIVITY_METRICS, span_seconds, exported_pod=named),
                self._over_time(NEWEST, [NEURON_HARDWARE], span_seconds),
            ]
        )
        table = SeriesTable()
        keys = [key for key, _ in self._api.vector(text, end, deadline, table.key)]
        return seen_devices(keys, table, pods)

    def kueue(self, end: datetime) -> KueueMetrics:
        """Read Kueue's own metrics; empty where the cluster exports none."""
        deadline = self._api.deadline(self._deadline_seconds)
        text = self._selected(kueue_metrics.GAUGES)
        gauges = list(self._api.vector(text, end, deadline, kueue_metrics.gauge))
        text = promql.ranged(self._selected([kueue_metrics.EVICTED]), kueue_metrics.SPAN_MS)
        counters = list(self._api.matrix(text, end, deadline, kueue_metrics.eviction))
        return kueue_metrics.reading(gauges, counters)

    def _selected(self, metrics: Sequence[str], **matchers: str) -> str:
        return promql.selector(metrics, self._cluster | matchers)

    def _over_time(
        self, function: str, metrics: Sequence[str], span_seconds: float, **matchers: str
    ) -> str:
        selected = self._selected(metrics, **matchers)
        return promql.over_time(function, selected, _milliseconds(span_seconds))

    def _raw(
        self,
        metrics: Sequence[str],
        matchers: Mapping[str, str],
        end: datetime,
        span_seconds: float,
        deadline: float,
        table: SeriesTable,
    ) -> Iterator[Raw]:
        selected = self._selected(metrics, **matchers)
        text = promql.ranged(selected, _milliseconds(span_seconds))
        for key, points in self._api.matrix(text, end, deadline, table.key):
            yield Raw(key, points)


def _matchers(uuids: Collection[str]) -> dict[str, str]:
    """Select devices; a series without the label passes, and is left out by its other labels."""
    instances = {uuid: instance for uuid in uuids if (instance := instance_of(uuid))}
    cards = [uuid for uuid in uuids if uuid not in instances]
    if not cards:
        return {"instance_id": promql.one_of(instances.values())}
    # Two spellings of one label: each matcher lets the series with the other spelling pass.
    pattern = promql.one_of(cards, or_absent=True)
    return {"UUID": pattern, "uuid": pattern}


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
