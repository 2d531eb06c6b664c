"""Raw DCGM samples of a device: merged so that each measurement counts once. Pure.

Where two series of one device disagree, the higher value counts: telemetry that contradicts
itself must not make a device idle.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from steward.ports import DeviceName, DeviceReading, Samples
from steward.sources.dcgm import ENGINE, Device, Family, Labels, attribute, node_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Raw(NamedTuple):
    """Raw samples of one series: milliseconds since the epoch, ascending, and their values."""

    metric: str
    labels: Labels
    times: Sequence[int]
    values: Sequence[float]


class Point(NamedTuple):
    """One measurement, valid or not."""

    at_ms: int
    value: float


def to_ms(when: datetime) -> int:
    """Milliseconds since the epoch, rounded down."""
    return (when - _EPOCH) // timedelta(milliseconds=1)


def from_ms(at_ms: int) -> datetime:
    """Aware time in UTC."""
    return _EPOCH + timedelta(milliseconds=at_ms)


def merge(series: Sequence[Raw], family: Family, interval_seconds: int) -> list[Point]:
    """Merge the series of one device and metric, oldest first.

    They are the same measurement twice (a replica, another spelling of the labels) or follow each
    other (a restarted exporter). A sample within half a scrape interval of one of a fuller series
    repeats it: the valid, then the higher value counts.
    """
    ordered = sorted(series, key=lambda s: (-len(s.times), list(s.times), sorted(s.labels)))
    kept = dict(zip(ordered[0].times, ordered[0].values, strict=True)) if ordered else {}
    for other in ordered[1:]:
        known = sorted(kept)
        for at, value in zip(other.times, other.values, strict=True):
            near = _nearest(known, at, interval_seconds * 500)
            if near is None:
                kept[at] = value
            else:
                kept[near] = _better(family, kept[near], value)
    return [Point(at, kept[at]) for at in sorted(kept)]


def _nearest(times: Sequence[int], at: int, within: int) -> int | None:
    place = bisect_left(times, at)
    around = times[max(0, place - 1) : place + 1]
    nearest = min(around, key=lambda time: abs(time - at), default=None)
    return nearest if nearest is not None and abs(nearest - at) <= within else None


def _better(family: Family, one: float, other: float) -> float:
    valid = [value for value in (one, other) if family.valid(value)]
    return max(valid, default=one)


def samples_of(
    raw: Iterable[Raw], devices: Collection[DeviceName], interval_seconds: int
) -> tuple[Samples, ...]:
    """Pick the valid activity samples of each device asked for, in the order of their names.

    A device without samples is in the answer, with none.
    """
    by_labels: dict[Labels, list[Raw]] = defaultdict(list)
    for series in raw:
        by_labels[series.labels].append(series)
    found: dict[Device, dict[str, list[Raw]]] = defaultdict(lambda: defaultdict(list))
    for labels, device in attribute(by_labels).items():
        for series in by_labels[labels]:
            found[device][series.metric].append(series)
    wanted = {Device(d.uuid, d.mig, d.namespace, d.pod): d for d in devices}
    return tuple(
        _samples(device, wanted[device], found[device], interval_seconds)
        for device in sorted(wanted, key=lambda d: d.order)
    )


def _samples(
    device: Device, name: DeviceName, series: Mapping[str, Sequence[Raw]], interval_seconds: int
) -> Samples:
    family = next((f for f in device.believed if f.metric in series), ENGINE)
    points = merge(series.get(family.metric, ()), family, interval_seconds)
    valid = [point for point in points if family.valid(point.value)]
    return Samples(
        device=name,
        times=tuple(from_ms(point.at_ms) for point in valid),
        values=tuple(point.value / family.unit for point in valid),
    )


def seen_devices(
    series: Iterable[tuple[str, Labels]], pods: Collection[tuple[str, str]]
) -> tuple[DeviceReading, ...]:
    """Name the devices that activity series (metric, labels) attribute to some pods."""
    metrics: dict[Labels, set[str]] = defaultdict(set)
    for metric, labels in series:
        metrics[labels].add(metric)
    by_device: dict[Device, list[Labels]] = defaultdict(list)
    for labels, device in attribute(metrics).items():
        by_device[device].append(labels)
    wanted = set(pods)
    found = []
    for device in sorted(by_device, key=lambda d: d.order):
        own = by_device[device]
        named = set[str]().union(*(metrics[labels] for labels in own))
        believed = [family.metric for family in device.believed if family.metric in named]
        if believed and (device.namespace, device.pod) in wanted:
            found.append(_seen(device, believed[0], node_of(own)))
    return tuple(found)


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
        tensor_activity=None,
        power_watts=None,
    )
