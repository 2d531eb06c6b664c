"""From the answers of a tick's queries to device readings. Pure.

A value is checked against the range of its metric before any statistic of it is believed; what is
in doubt is reduced anew from raw samples.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain

from steward.cluster.accelerators import RECENT, Window
from steward.cluster.snapshot import InvalidSamples
from steward.ports import DeviceReading, MetricsReading
from steward.sources.prometheus.answers import Answers, Channel, Parts
from steward.sources.prometheus.families import (
    BY_METRIC,
    MEMORY,
    POWER,
    POWER_LIMITS,
    TENSOR,
    Family,
)
from steward.sources.prometheus.labels import Device, model_of, node_of
from steward.sources.prometheus.samples import NOTHING, Points, Raw, from_ms, merge, to_ms

type Merged = Mapping[Channel, Points]
"""Raw samples of what was in doubt."""


def reading(answers: Answers, raw: Iterable[Raw]) -> MetricsReading:
    """Reduce a tick's answers to device readings, with raw samples for what is in doubt."""
    merged = _merged(answers, raw)
    found = []
    for device, parts in answers.devices.items():
        family = _activity(answers, device, parts)
        if family:
            found.append(_Reduction(answers, merged, device, parts).reading(family))
    return MetricsReading(
        devices=tuple(found), invalid=tuple(_tally(merged, answers.series.left_out))
    )


def _merged(answers: Answers, raw: Iterable[Raw]) -> Merged:
    fetched: dict[Channel, list[Points]] = {channel: [] for channel in answers.doubtful}
    for (name, number), points in raw:
        owned = answers.owned[number] if number < len(answers.owned) else None
        if owned and (channel := Channel(owned.device, owned.part, name)) in fetched:
            fetched[channel].append(points)
    return {
        channel: _within(
            merge(series, BY_METRIC[channel.metric], answers.asked.interval_seconds),
            to_ms(answers.asked.end) - answers.asked.span_ms(BY_METRIC[channel.metric]),
        )
        for channel, series in fetched.items()
    }


def _within(points: Points, after_ms: int) -> Points:
    first = bisect_right(points.times, after_ms)
    return Points(points.times[first:], points.values[first:])


def _activity(answers: Answers, device: Device, parts: Parts) -> Family | None:
    """Choose the family that tells the device's activity; None where none is there."""
    for family in device.activity:
        rows = answers.longest(family)
        if any(number in rows for number in chain.from_iterable(parts.values())):
            return family
    return None


class _Reduction:
    """One device, reduced."""

    def __init__(self, answers: Answers, merged: Merged, device: Device, parts: Parts) -> None:
        self._answers = answers
        self._asked = answers.asked
        self._merged = merged
        self._device = device
        self._parts = parts

    def reading(self, family: Family) -> DeviceReading:
        """Read the device, its activity from that family."""
        numbers = [number for series in self._parts.values() for number in series]
        labels = [self._answers.series.labels[number] for number in numbers]
        return DeviceReading(
            node=node_of(labels),
            namespace=self._device.namespace,
            pod=self._device.pod,
            uuid=self._device.uuid,
            mig=self._device.mig,
            activity_metric=family.metric,
            windows=self._windows(family),
            last_sample=self._last_sample(family, numbers),
            held_bytes=self._held(),
            tensor=self._windows(TENSOR),
            power=self._windows(POWER),
            power_limit_watts=self._limit(),
            model=model_of(labels),
        )

    def _windows(self, family: Family) -> tuple[Window, ...]:
        """Windows of a family: of the parts that it tells of, the most active one counts."""
        if family not in self._device.families:
            return ()
        rows = self._answers.longest(family)
        told = []
        for part, series in self._parts.items():
            if any(number in rows for number in series):
                points = self._merged.get(Channel(self._device, part, family.metric))
                told.append(
                    [
                        self._window(series, family, minutes)
                        if points is None
                        else self._recomputed(points, family, minutes)
                        for minutes in self._asked.minutes_of(family)
                    ]
                )
        return tuple(map(_most_active, *told)) if len(told) > 1 else tuple(chain(*told))

    def _window(self, series: Iterable[int], family: Family, minutes: int) -> Window:
        """Statistics as the server made them, for what is not in doubt."""
        rows = self._answers.rows(family, minutes)
        said = [row for number in series if (row := rows.get(number))]
        if not said:
            return self._recomputed(NOTHING, family, minutes)
        # Complete, or they were in doubt: the mean is that of the fullest series.
        present, mean = max((row[0] or 0, row[1] or 0) for row in said)
        return Window(
            minutes=minutes,
            expected=self._asked.expected(minutes),
            present=int(present),
            maximum=max(row[3] or 0 for row in said) / family.unit,
            mean=mean / family.unit,
            minimum=min(row[2] or 0 for row in said) / family.unit,
        )

    def _recomputed(self, points: Points, family: Family, minutes: int) -> Window:
        """Statistics from raw samples, without the impossible ones."""
        values = _within(points, to_ms(self._asked.end) - minutes * 60_000).values
        valid = [value / family.unit for value in values if family.valid(value)]
        return Window(
            minutes=minutes,
            expected=self._asked.expected(minutes),
            present=len(valid),
            maximum=max(valid, default=None),
            mean=math.fsum(valid) / len(valid) if valid else None,
            minimum=min(valid, default=None),
            invalid=len(values) - len(valid),
        )

    def _held(self) -> int | None:
        said = [level for family in MEMORY for level in self._level(family)]
        return int(sum(said)) if said else None

    def _limit(self) -> float | None:
        """Newest power limit of the card; 0 says that none is set."""
        said = (level for family in POWER_LIMITS for level in self._level(family))
        return next((limit for limit in said if limit), None)

    def _level(self, family: Family) -> Iterator[float]:
        """Newest valid value of a family over the longest window, of each part."""
        levels = self._answers.levels(family.metric)
        if not levels or family not in self._device.families:
            return
        for part, series in self._parts.items():
            points = self._merged.get(Channel(self._device, part, family.metric))
            said: Iterable[float]
            if points is None:
                said = (levels[number] for number in series if number in levels)
            else:
                said = (value for value in reversed(points.values) if family.valid(value))
            for value in said:
                yield value / family.unit
                break

    def _last_sample(self, family: Family, series: Iterable[int]) -> datetime | None:
        newest = self._answers.newest(family)
        seconds = max((newest[number] for number in series if number in newest), default=None)
        if seconds is None:
            return None
        at = from_ms(round(seconds * 1000))
        # Prometheus 2 still shows a sample on the edge of its look-back; Prometheus 3 does not.
        return at if at > self._asked.end - RECENT else None


def _most_active(*parts: Window) -> Window:
    """Of the windows of a device's parts, the most active part in every respect."""
    return Window(
        minutes=parts[0].minutes,
        expected=parts[0].expected,
        present=max(window.present for window in parts),
        maximum=_highest(window.maximum for window in parts),
        mean=_highest(window.mean for window in parts),
        minimum=_highest(window.minimum for window in parts),
        invalid=sum(window.invalid for window in parts),
    )


def _highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _tally(merged: Merged, left_out: Mapping[str, int]) -> Iterator[InvalidSamples]:
    """Add up what was dropped; a series left out for its labels counts as one sample of a device."""
    samples: dict[str, int] = defaultdict(int, left_out)
    devices: dict[str, set[Device]] = defaultdict(set)
    first: dict[str, int] = {}
    for channel, points in merged.items():
        metric, family = channel.metric, BY_METRIC[channel.metric]
        bad = [at for at, value in zip(*points, strict=True) if not family.valid(value)]
        if bad:
            samples[metric] += len(bad)
            devices[metric].add(channel.device)
            first[metric] = min(bad[0], first.get(metric, bad[0]))
    for metric in sorted(samples):
        yield InvalidSamples(
            metric=metric,
            samples=samples[metric],
            accelerators=len(devices[metric]) + left_out.get(metric, 0),
            first=from_ms(first[metric]) if metric in first else None,
        )
