"""From minutes of devices to what one tick says of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import replace
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from steward.cluster.accelerators import RECENT, Window
from steward.ports import DeviceReading
from steward.sources.container_insights import windows
from steward.sources.container_insights.naming import Device, Family
from steward.sources.container_insights.windows import Minutes

if TYPE_CHECKING:
    from steward.cluster.policy import ClusterPolicy

type Read = Mapping[tuple[Device, Family], Minutes]
"""Minutes of what was asked for, by device and family."""


class Need(NamedTuple):
    """Which devices more than their activity is asked for, because every metric has its price.

    Attributes
    ----------
    idle_max : float
        Memory: of devices whose activity (0-1) is nowhere in a window above this.
    busy_min : float
        Tensor activity and power: of devices whose activity is nowhere in a window below this.
    """

    idle_max: float = 0.05
    busy_min: float = 0.9

    @classmethod
    def of(cls, cluster: ClusterPolicy) -> Need:
        """Widen the defaults to whatever the policy, for anybody, calls idle or hanging."""
        idle = [override.idle.get("activity_max", 0) for override in cluster.overrides]
        hang = [override.hang.get("activity_min", 1) for override in cluster.overrides]
        limits = cluster.thresholds
        return cls(
            idle_max=max(cls().idle_max, limits.idle.activity_max, *map(float, idle)),
            busy_min=min(cls().busy_min, limits.hang.activity_min, *map(float, hang)),
        )


@dataclass(frozen=True, kw_only=True)
class Tick:
    """What one tick asks: windows (ascending minutes) and signal windows that end together."""

    end: datetime
    minutes: Sequence[int]
    signal_minutes: Sequence[int]
    interval_seconds: int
    need: Need

    @cached_property
    def activity_periods(self) -> range:
        """Minutes of activity: hangs are told by it as well, over the signal windows."""
        return self._periods((*self.minutes, *self.signal_minutes))

    def periods(self, device: Device, family: Family) -> range:
        """Minutes of what else is asked of a device."""
        memory = family is device.kind.memory
        return self._periods(self.minutes if memory else self.signal_minutes)

    def needed(self, device: Device, activity: Minutes) -> Iterator[Family]:
        """Name what else has to be known of a device, from its activity."""
        kind = device.kind
        idle = self._windows(activity, kind.activity, self.minutes)
        if any(w.maximum is not None and w.maximum <= self.need.idle_max for w in idle):
            yield kind.memory
        busy = self._windows(activity, kind.activity, self.signal_minutes)
        if any(w.minimum is not None and w.minimum >= self.need.busy_min for w in busy):
            yield from filter(None, (kind.tensor, kind.power))

    def readings(self, read: Read) -> Iterator[DeviceReading]:
        """Say what was measured of each device that had a sample in the longest window."""
        longest = self._periods(self.minutes)
        for (device, family), minutes in read.items():
            if family is device.kind.activity and measured(minutes, longest):
                yield self._reading(device, read)

    def _reading(self, device: Device, read: Read) -> DeviceReading:
        kind = device.kind
        activity, memory = read[device, kind.activity], read.get((device, kind.memory))
        window = timedelta(minutes=max(self.minutes))
        at = None if memory is None else windows.newest(memory, self.end, window)
        recent = windows.newest(activity, self.end, RECENT)
        return replace(
            named(device),
            windows=self._windows(activity, kind.activity, self.minutes),
            last_sample=None if recent is None else windows.moment(recent),
            held_bytes=None if memory is None or at is None else int(memory.valid[at]),
            tensor=self._signal(device, kind.tensor, read),
            power=self._signal(device, kind.power, read),
        )

    def _signal(self, device: Device, family: Family | None, read: Read) -> tuple[Window, ...]:
        """Windows of a signal; none where it was not asked for, or is not exported."""
        minutes = read.get((device, family)) if family else None
        if family is None or minutes is None or not (minutes.valid or minutes.invalid):
            return ()
        return self._windows(minutes, family, self.signal_minutes)

    def _windows(
        self, minutes: Minutes, family: Family, lengths: Sequence[int]
    ) -> tuple[Window, ...]:
        interval = self.interval_seconds
        return tuple(windows.window(minutes, family, self.end, n, interval) for n in lengths)

    def _periods(self, lengths: Sequence[int]) -> range:
        return windows.span(self.end, max(lengths) * 60)


def named(device: Device) -> DeviceReading:
    """Name a device, without saying anything of it."""
    return DeviceReading(
        node=None,
        namespace=device.namespace,
        pod=device.pod,
        uuid=device.uuid,
        mig=None,
        activity_metric=device.kind.activity.metric,
        windows=(),
        last_sample=None,
        held_bytes=None,
    )


def measured(minutes: Minutes, periods: range) -> bool:
    """Whether any period has a value, be it a false one."""
    return any(at in periods for at in (*minutes.valid, *minutes.invalid))
