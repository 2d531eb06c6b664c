"""What one tick asks of the metrics source: windows, and the parts of each query. Pure."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

import msgspec

from steward.sources.prometheus.families import (
    ACTIVITY,
    LEVELS,
    NEURON_HARDWARE,
    WINDOWED,
    Family,
)

COUNT, MEAN, MINIMUM, MAXIMUM, NEWEST = (
    f"{name}_over_time" for name in ("count", "avg", "min", "max", "last")
)
STATISTICS = (COUNT, MEAN, MINIMUM, MAXIMUM)
"""In the order they are asked: what arrives meanwhile is in the maximum, if it is in any of them."""


def column(family: Family, minutes: int) -> str:
    """Name one statistic of a family over a window; over no minutes, its newest sample."""
    return f"{family.metric} {minutes}"


class Asked(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The windows of a tick, their common end, and the scrape interval; minutes are ascending."""

    end: datetime
    minutes: tuple[int, ...]
    signal_minutes: tuple[int, ...]
    interval_seconds: int

    @cached_property
    def longest(self) -> int:
        """Minutes of the longest window."""
        return max((*self.minutes, *self.signal_minutes))

    @cached_property
    def columns(self) -> Mapping[str, tuple[Family, int]]:
        """Families and windows that every statistic is asked of."""
        return {
            column(family, minutes): (family, minutes)
            for family in WINDOWED
            for minutes in self.minutes_of(family)
        }

    @property
    def levels(self) -> tuple[str, ...]:
        """Metrics that the newest value is asked of."""
        return (*(family.metric for family in LEVELS), NEURON_HARDWARE)

    def minutes_of(self, family: Family) -> tuple[int, ...]:
        """Windows of a family."""
        return self.minutes if family in ACTIVITY else self.signal_minutes

    def span_ms(self, family: Family) -> int:
        """Milliseconds before the end that samples of a family count within."""
        minutes = max(self.minutes_of(family)) if family in WINDOWED else self.longest
        return minutes * 60_000

    def columns_of(self, family: Family) -> tuple[str, ...]:
        """Statistics of a family, the longest window last."""
        return self._columns_of[family.metric]

    def expected(self, minutes: int) -> int:
        """Count the samples that the scrape interval promises for a window."""
        return minutes * 60 // self.interval_seconds

    @cached_property
    def _columns_of(self) -> Mapping[str, tuple[str, ...]]:
        return {
            family.metric: tuple(column(family, minutes) for minutes in self.minutes_of(family))
            for family in WINDOWED
        }
