"""What the raw samples of one device tell of a suspected hang. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from steward.cluster.accelerators import RECENT
from steward.ports import DeviceName, Samples, Signal


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a hang keeps to; None: that signal is not believed, and neither shows nor ends one."""

    activity_min: float
    tensor_max: float | None
    watts_max: float | None

    def broken(self, signal: Signal, value: float) -> bool:
        """Tell whether a sample shows work."""
        if signal is Signal.ACTIVITY:
            return value < self.activity_min
        highest = self.tensor_max if signal is Signal.TENSOR else self.watts_max
        return highest is not None and value > highest

    def believes(self, signal: Signal) -> bool:
        """Tell whether samples of a signal beside activity can show a hang."""
        return {Signal.TENSOR: self.tensor_max, Signal.POWER: self.watts_max}.get(
            signal
        ) is not None


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one device, oldest first, told apart.

    Attributes
    ----------
    pinned : list of datetime
        Activity samples that a hang may have.
    proof : list of datetime
        Samples of the other signals that show one.
    work : list of datetime
        Samples of any signal that a hang does not have.
    activity : list of (datetime, float)
        All activity samples.
    """

    pinned: list[datetime]
    proof: list[datetime]
    work: list[datetime]
    activity: list[tuple[datetime, float]]

    def proven(self, when: datetime, gap: timedelta) -> bool:
        """Tell whether a signal beside activity was there at that time; a gap may be bridged."""
        place = bisect_left(self.proof, when)
        near = self.proof[max(0, place - 1) : place + 1]
        return any(abs(when - other) <= gap for other in near)


def by_device(answers: Iterable[Samples]) -> dict[DeviceName, dict[Signal, Samples]]:
    """Gather the signals of each device."""
    found: dict[DeviceName, dict[Signal, Samples]] = {}
    for series in answers:
        found.setdefault(series.device, {})[series.signal] = series
    return found


def trace(series: Mapping[Signal, Samples], bounds: Bounds, born: datetime | None = None) -> Trace:
    """Tell the samples of a device apart; those before its holder are another's."""
    points = [
        (when, signal, value)
        for signal, one in series.items()
        for when, value in zip(one.times, one.values, strict=True)
        if born is None or when >= born
    ]
    points.sort(key=lambda point: point[0])
    broken = [bounds.broken(signal, value) for _, signal, value in points]
    told = list(zip(points, broken, strict=True))
    return Trace(
        pinned=[t for (t, signal, _), bad in told if signal is Signal.ACTIVITY and not bad],
        proof=[t for (t, signal, _), bad in told if bounds.believes(signal) and not bad],
        work=[t for (t, _, _), bad in told if bad],
        activity=[(t, value) for t, signal, value in points if signal is Signal.ACTIVITY],
    )


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The hang that a trace ends with: its activity samples, and whether its beginning is known."""

    times: tuple[datetime, ...]
    exact: bool


def run(traced: Trace, gap: timedelta, *, from_birth: bool) -> Run | None:
    """Find the hang that a trace ends with.

    Parameters
    ----------
    traced : Trace
        From the holder's start on, or for as far back as was looked.
    gap : timedelta
        For how long the signals beside activity may be absent.
    from_birth : bool
        Whether the trace reaches back to the holder's start.

    Returns
    -------
    Run or None
        From the first activity sample after the newest one of any believed signal that shows
        work; no further back than those signals go, as activity alone proves nothing.
    """
    newest_work = traced.work[-1] if traced.work else None
    times: list[datetime] = []
    exact = from_birth or newest_work is not None
    for when in reversed(traced.pinned):
        if newest_work is not None and when <= newest_work:
            break
        if not traced.proven(when, gap):
            exact = False
            break
        times.append(when)
    return Run(times=tuple(reversed(times)), exact=exact) if times else None


def rest(
    traced: Trace,
    last: datetime,
    gap: timedelta,
    *,
    before: datetime | None,
    until: datetime | None,
) -> Iterator[datetime]:
    """Follow a remembered hang from its last known sample on.

    Parameters
    ----------
    traced : Trace
        Samples after `last`, among others.
    last : datetime
        Last sample that is known to show it.
    gap : timedelta
        As for :func:`run`.
    before, until : datetime or None
        When it is over for the job; when the device was given up.
    """
    for when in traced.pinned:
        if when <= last:
            continue
        over = (before is not None and when >= before) or (until is not None and when > until)
        if over or not traced.proven(when, gap):
            return
        yield when


def quiet(traced: Trace, since: datetime, activity_max: float) -> bool:
    """Tell whether a device is idle now that the hang is over: five minutes up to its newest sample.

    One that averages work and nothing lies between the two, and is not told from either.
    """
    after = [(when, value) for when, value in traced.activity if when >= since]
    newest = after[-1][0] if after else since
    return all(value <= activity_max for when, value in after if when > newest - RECENT)
