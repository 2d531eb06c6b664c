"""Raw samples of a device: merged so that each measurement counts once. Pure.

Where two series of one device disagree, the higher value counts: telemetry that contradicts
itself must not make a device idle.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from steward.ports import DeviceReading, Samples
from steward.sources.prometheus.families import BY_SIGNAL, ENGINE, Family
from steward.sources.prometheus.labels import Device, attribute, node_of
from steward.sources.prometheus.series import Key, SeriesTable

if TYPE_CHECKING:
    from steward.ports import DeviceName, Signal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Points(NamedTuple):
    """Measurements, valid or not: milliseconds since the epoch, ascending, and their values."""

    times: Sequence[int]
    values: Sequence[float]


NOTHING = Points((), ())


class Raw(NamedTuple):
    """Raw samples of one series."""

    key: Key
    points: Points


def to_ms(when: datetime) -> int:
    """Milliseconds since the epoch, rounded down."""
    return (when - _EPOCH) // timedelta(milliseconds=1)


def from_ms(at_ms: int) -> datetime:
    """Aware time in UTC."""
    return _EPOCH + timedelta(milliseconds=at_ms)


def merge(series: Sequence[Points], family: Family, interval_seconds: int) -> Points:
    """Merge the series of one device and metric.

    They are the same measurement twice (a replica, another spelling of the labels) or follow each
    other (a restarted exporter). A sample within half a scrape interval of one of a fuller series
    repeats it: the valid, then the higher value counts.
    """
    told = sorted((s for s in series if s.times), key=lambda s: s.times[0])
    if len(told) < 2:
        return told[0] if told else NOTHING
    within = interval_seconds * 500
    if all(later.times[0] - earlier.times[-1] > within for earlier, later in pairwise(told)):
        return _joined(told)
    ordered = sorted(told, key=lambda s: (-len(s.times), list(s.times), list(s.values)))
    kept = dict(zip(ordered[0].times, ordered[0].values, strict=True))
    for other in ordered[1:]:
        known = sorted(kept)
        for at, value in zip(other.times, other.values, strict=True):
            near = _nearest(known, at, within)
            if near is None:
                kept[at] = value
            else:
                kept[near] = _better(family, kept[near], value)
    times = sorted(kept)
    return Points(times, [kept[at] for at in times])


def samples_of(
    raw: Iterable[Raw],
    table: SeriesTable,
    devices: Collection[DeviceName],
    signals: Sequence[Signal],
    interval_seconds: int,
) -> tuple[Samples, ...]:
    """Pick the valid samples of each device asked for, in the order of names, then of signals.

    A device without samples is in the answer, with none.
    """
    by_series: dict[int, dict[str, Points]] = defaultdict(dict)
    for one in raw:
        by_series[one.key.series][one.key.name] = one.points
    found: dict[Device, dict[str, list[Points]]] = defaultdict(lambda: defaultdict(list))
    for number, owned in enumerate(attribute(table.labels)):
        if owned is not None:
            for metric, points in by_series[number].items():
                # The parts of a device are measured together: the most active one counts.
                found[owned.device][metric].append(points)
    wanted = {Device(d.uuid, d.mig, d.namespace, d.pod): d for d in devices}
    return tuple(
        _samples(device, wanted[device], found[device], signal, interval_seconds)
        for device in sorted(wanted, key=lambda d: d.order)
        for signal in signals
    )


def seen_devices(
    keys: Iterable[Key], table: SeriesTable, pods: Collection[tuple[str, str]]
) -> tuple[DeviceReading, ...]:
    """Name the devices that activity series attribute to some pods."""
    metrics: dict[int, set[str]] = defaultdict(set)
    for key in keys:
        metrics[key.series].add(key.name)
    by_device: dict[Device, list[int]] = defaultdict(list)
    for number, owned in enumerate(attribute(table.labels)):
        if owned is not None:
            by_device[owned.device].append(number)
    wanted = set(pods)
    found = []
    for device in sorted(by_device, key=lambda d: d.order):
        own = by_device[device]
        named = set[str]().union(*(metrics[number] for number in own))
        believed = [family.metric for family in device.activity if family.metric in named]
        if believed and (device.namespace, device.pod) in wanted:
            node = node_of(table.labels[number] for number in own)
            found.append(_seen(device, believed[0], node))
    return tuple(found)


def _joined(told: Sequence[Points]) -> Points:
    times, values = array("q"), array("d")
    for one in told:
        times.extend(one.times)
        values.extend(one.values)
    return Points(times, values)


def _nearest(times: Sequence[int], at: int, within: int) -> int | None:
    place = bisect_left(times, at)
    around = times[max(0, place - 1) : place + 1]
    nearest = min(around, key=lambda time: abs(time - at), default=None)
    return nearest if nearest is not None and abs(nearest - at) <= within else None


def _better(family: Family, one: float, other: float) -> float:
    valid = [value for value in (one, other) if family.valid(value)]
    return max(valid, default=one)


def _samples(
    device: Device,
    name: DeviceName,
    series: Mapping[str, Sequence[Points]],
    signal: Signal,
    interval_seconds: int,
) -> Samples:
    own = [f for f in BY_SIGNAL[signal] if f in device.families and f.metric in series]
    family = own[0] if own else ENGINE
    points = merge(series[family.metric] if own else (), family, interval_seconds)
    valid = [(at, value) for at, value in _pairs(points) if family.valid(value)]
    return Samples(
        device=name,
        times=tuple(from_ms(at) for at, _ in valid),
        values=tuple(value / family.unit for _, value in valid),
        signal=signal,
    )


def _pairs(points: Points) -> Iterator[tuple[int, float]]:
    return zip(points.times, points.values, strict=True)


def _seen(device: Device, metric: str, node: str | None) -> DeviceReading:
    return DeviceReading(
        node=node,
        namespace=device.namespace,
        pod=device.pod,
        uuid=device.uuid,
        mig=device.mig,
        activity_metric=metric,
        windows=(),
        last_sample=None,
        held_bytes=None,
    )
