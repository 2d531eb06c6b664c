"""From the minutes that CloudWatch answers to window statistics of a device. Pure.

A minute is one sample, however many the agent took in it, and its value is the highest of them.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from steward.cluster.accelerators import Window
from steward.cluster.snapshot import InvalidSamples
from steward.sources.container_insights.naming import Family, Strand, scale_of

MINUTE = 60

type Points = Mapping[int, float]
"""Values of one series, by the second at which their period begins."""


class Minutes(NamedTuple):
    """Minutes of one family of one device: the valid ones, and those that hold a false value."""

    valid: dict[int, float]
    invalid: frozenset[int]


def second(when: datetime) -> int:
    """Seconds since the epoch, rounded down."""
    return math.floor(when.timestamp())


def moment(at: int) -> datetime:
    """Aware time in UTC."""
    return datetime.fromtimestamp(at, UTC)


def merge(series: Iterable[tuple[Strand, Points]], family: Family, *, add: bool = False) -> Minutes:
    """Merge the series of one device.

    Series of one core are the same measurement: the valid, then the higher value counts. A device
    with several cores has a value only in minutes in which every core has one, because a core that
    is not seen is not at 0; it is the highest, or with `add` their sum.
    """
    cores: dict[str | None, dict[int, float]] = defaultdict(dict)
    false: set[int] = set()
    for strand, points in series:
        for at, value in points.items():
            known = cores[strand.core]  # from here on a core that must be seen, whatever it says
            if family.valid(value):
                known[at] = max(value, known.get(at, value))
            else:
                false.add(at)
    seen = list(cores.values())
    common = set[int].intersection(*map(set, seen)) if seen else set[int]()
    join = math.fsum if add else max
    valid = {at: join(points[at] for points in seen) for at in sorted(common)}
    return Minutes(valid, frozenset(false - common))


def window(
    minutes: Minutes, family: Family, end: datetime, length: int, interval_seconds: int
) -> Window:
    """Statistics over (end - length, end]; a minute's time is its beginning."""
    inside = _inside(end, length)
    found = [value for at, value in minutes.valid.items() if at in inside]
    scale = scale_of(family, max(minutes.valid.values(), default=0))
    values = [value / scale for value in found]
    return Window(
        minutes=length,
        expected=length * 60 // interval_seconds,
        present=len(values),
        minimum=min(values, default=None),
        maximum=max(values, default=None),
        mean=math.fsum(values) / len(values) if values else None,
        invalid=sum(at in inside for at in minutes.invalid),
    )


def newest(minutes: Minutes, end: datetime, within: timedelta) -> int | None:
    """Tell when the newest valid minute in (end - within, end] began."""
    after = second(end - within)
    return max((at for at in minutes.valid if after < at <= second(end)), default=None)


def scaled(minutes: Minutes, family: Family) -> Iterator[tuple[datetime, float]]:
    """Go through the valid minutes, oldest first, in the units of :class:`Window`."""
    scale = scale_of(family, max(minutes.valid.values(), default=0))
    return ((moment(at), value / scale) for at, value in sorted(minutes.valid.items()))


def tally(read: Iterable[tuple[str, Minutes]]) -> tuple[InvalidSamples, ...]:
    """Count the false minutes by metric, over all devices."""
    found: dict[str, list[frozenset[int]]] = defaultdict(list)
    for metric, minutes in read:
        if minutes.invalid:
            found[metric].append(minutes.invalid)
    return tuple(
        InvalidSamples(
            metric=metric,
            samples=sum(map(len, bad)),
            accelerators=len(bad),
            first=moment(min(map(min, bad))),
        )
        for metric, bad in sorted(found.items())
    )


def span(end: datetime, seconds: float, period: int = MINUTE) -> range:
    """Name the periods that begin in (end - seconds, end], up to the whole minute after the last."""
    first = math.floor((end.timestamp() - seconds) / period) + 1
    after = second(end) // MINUTE * MINUTE + MINUTE
    return range(first * period, after, period)


def _inside(end: datetime, minutes: int) -> range:
    start = math.floor(end.timestamp() - minutes * 60)
    return range(start + 1, second(end) + 1)
