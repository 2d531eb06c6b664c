"""From the answers of a tick's queries to device readings. Pure.

A value is checked against the range of its metric before any statistic of it is believed; what is
in doubt is reduced anew from raw samples.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from steward.cluster.accelerators import RECENT, ActivityWindow
from steward.cluster.snapshot import InvalidSamples
from steward.ports import DeviceReading, MetricsReading
from steward.sources.dcgm import (
    ACTIVITY,
    BY_METRIC,
    COUNT,
    FAMILIES,
    MAXIMUM,
    MEAN,
    MEMORY,
    POWER,
    TENSOR,
    TIMESTAMP,
    Column,
    Device,
    Family,
    Labels,
    attribute,
    node_of,
)
from steward.sources.dcgm_samples import Point, Raw, from_ms, merge, to_ms

_MIB = 2**20

type Rows = Mapping[Labels, Mapping[Column, float]]
"""What each query said of each series."""

type Points = Mapping[tuple[Device, str], Sequence[Point]]
"""Merged raw samples of what was in doubt, by device and metric."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """What windows are measured against: their common end, and the scrape interval."""

    end: datetime
    minutes: tuple[int, ...]
    interval_seconds: int

    @cached_property
    def longest(self) -> int:
        """Minutes of the longest window."""
        return max(self.minutes)

    def expected(self, minutes: int) -> int:
        """Count the samples that the scrape interval promises for a window."""
        return minutes * 60 // self.interval_seconds


class Answers:
    """The answers of one tick's instant queries.

    Parameters
    ----------
    rows : Rows
        By series, over all metrics.
    span : Span
        What was asked.
    """

    def __init__(self, rows: Rows, span: Span) -> None:
        self._rows = rows
        self._span = span
        self._device_of = attribute(rows)
        by_device: dict[Device, list[Labels]] = defaultdict(list)
        partitioned = {device.uuid for device in self._device_of.values() if device.mig}
        for labels, device in self._device_of.items():
            # Under MIG each slice is a device, and the card itself is none.
            if device.mig or device.uuid not in partitioned:
                by_device[device].append(labels)
        self._series = {
            device: sorted(by_device[device], key=self._fullness, reverse=True)
            for device in sorted(by_device, key=lambda d: d.order)
        }

    @cached_property
    def doubtful(self) -> dict[Device, frozenset[str]]:
        """The devices, and their metrics, that only raw samples can tell the truth about.

        These have a value out of range (a mean is NaN where any sample is), answers that do not
        fit together (a sample arrived between two queries), several series that disagree, or
        several none of which spans the longest window: counts alone cannot tell a succession from
        a duplicate.
        """
        found = {device: frozenset(self._doubts(device)) for device in self._series}
        return {device: metrics for device, metrics in found.items() if metrics}

    def reading(self, raw: Iterable[Raw]) -> MetricsReading:
        """Reduce the answers to device readings, with raw samples for what is in doubt."""
        fetched: dict[tuple[Device, str], list[Raw]] = {
            (device, metric): [] for device, metrics in self.doubtful.items() for metric in metrics
        }
        for series in raw:
            device = self._device_of.get(series.labels)
            if device is not None and (device, series.metric) in fetched:
                fetched[device, series.metric].append(series)
        points = {
            key: merge(series, BY_METRIC[key[1]], self._span.interval_seconds)
            for key, series in fetched.items()
        }
        return MetricsReading(
            devices=tuple(
                self._reading(device, family, points)
                for device in self._series
                if (family := self._activity(device))
            ),
            invalid=_tally(points),
        )

    def _fullness(self, labels: Labels) -> tuple[float, list[tuple[str, str]]]:
        row = self._rows[labels]
        counts = (row.get(self._column(family, COUNT), 0) for family in ACTIVITY)
        return max(counts), sorted(labels)

    def _column(self, family: Family, function: str) -> Column:
        return Column(family.metric, function, self._span.longest)

    def _values(self, device: Device, column: Column) -> list[float]:
        """Collect what a query said of the series of a device, fullest series first."""
        rows = (self._rows[labels] for labels in self._series[device])
        return [row[column] for row in rows if column in row]

    def _activity(self, device: Device) -> Family | None:
        """Choose the family that tells the device's activity; None where none is there."""
        for family in device.believed:
            if self._values(device, self._column(family, COUNT)):
                return family
        return None

    def _doubts(self, device: Device) -> Iterator[str]:
        for family in FAMILIES:
            if family in ACTIVITY and family not in device.believed:
                continue
            rows = (self._rows[labels] for labels in self._series[device])
            if self._disagree(device, family) or any(self._bad(row, family) for row in rows):
                yield family.metric
        activity = self._activity(device)
        if activity is None or len(self._series[device]) == 1:
            return
        fullest = max(self._values(device, self._column(activity, COUNT)))
        if fullest < self._span.expected(self._span.longest):
            yield from (f.metric for f in FAMILIES if f not in ACTIVITY or f is activity)

    def _disagree(self, device: Device, family: Family) -> bool:
        """Tell whether series say different levels, so that which one is newer matters."""
        if family in ACTIVITY:
            return False  # a window takes the highest of all
        said = self._values(device, self._column(family, family.functions[0]))
        return len(set(said)) > 1

    def _bad(self, row: Mapping[Column, float], family: Family) -> bool:
        for minutes in self._span.minutes if family in ACTIVITY else (self._span.longest,):
            names = family.functions
            said = {f: row[c] for f in names if (c := Column(family.metric, f, minutes)) in row}
            if said and len(said) < len(names):
                return True
            if any(not family.valid(value) for f, value in said.items() if f != COUNT):
                return True
        return False

    def _reading(self, device: Device, family: Family, points: Points) -> DeviceReading:
        memory = self._level(device, MEMORY, points)
        samples = points.get((device, family.metric))
        return DeviceReading(
            node=node_of(self._series[device]),
            namespace=device.namespace,
            pod=device.pod,
            uuid=device.uuid,
            mig=device.mig,
            activity_metric=family.metric,
            windows=tuple(
                self._window(device, family, minutes)
                if samples is None
                else self._recomputed(samples, family, minutes)
                for minutes in self._span.minutes
            ),
            last_sample=self._last_sample(device, family),
            held_bytes=None if memory is None else int(memory * _MIB),
            tensor_activity=self._level(device, TENSOR, points),
            power_watts=self._level(device, POWER, points),
        )

    def _window(self, device: Device, family: Family, minutes: int) -> ActivityWindow:
        """Statistics as the server made them, for a device that is not in doubt."""
        maxima, means, counts = (
            self._values(device, Column(family.metric, function, minutes))
            for function in (MAXIMUM, MEAN, COUNT)
        )
        present, mean = max(zip(counts, means, strict=True), default=(0.0, None))
        return ActivityWindow(
            minutes=minutes,
            expected=self._span.expected(minutes),
            present=int(present),
            maximum=max(maxima) / family.unit if maxima else None,
            mean=None if mean is None else mean / family.unit,
        )

    def _recomputed(self, points: Sequence[Point], family: Family, minutes: int) -> ActivityWindow:
        """Statistics from raw samples, without the impossible ones."""
        start = to_ms(self._span.end) - minutes * 60_000
        values = [point.value for point in points if point.at_ms > start]
        valid = [value / family.unit for value in values if family.valid(value)]
        return ActivityWindow(
            minutes=minutes,
            expected=self._span.expected(minutes),
            present=len(valid),
            maximum=max(valid, default=None),
            mean=_mean(valid),
            invalid=len(values) - len(valid),
        )

    def _level(self, device: Device, family: Family, points: Points) -> float | None:
        """Newest or mean value of a family over the longest window, as its function says."""
        samples = points.get((device, family.metric))
        if samples is None:
            said = self._values(device, self._column(family, family.functions[0]))
            return said[0] if said else None
        valid = [point.value for point in samples if family.valid(point.value)]
        return valid[-1] if valid and family is MEMORY else _mean(valid)

    def _last_sample(self, device: Device, family: Family) -> datetime | None:
        seconds = self._values(device, Column(family.metric, TIMESTAMP, 0))
        if not seconds:
            return None
        newest = from_ms(round(max(seconds) * 1000))
        # Prometheus 2 still shows a sample on the edge of its look-back; Prometheus 3 does not.
        return newest if newest > self._span.end - RECENT else None


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _tally(points: Points) -> tuple[InvalidSamples, ...]:
    counts: dict[str, list[int]] = defaultdict(list)
    for (_, metric), samples in points.items():
        if bad := sum(not BY_METRIC[metric].valid(point.value) for point in samples):
            counts[metric].append(bad)
    return tuple(
        InvalidSamples(metric=metric, samples=sum(counts[metric]), accelerators=len(counts[metric]))
        for metric in sorted(counts)
    )
