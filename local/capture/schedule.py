"""When a capture looks at the live cluster: at the recording's ticks, as far as they lie ahead. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The period of a recording."""

    start: datetime
    end: datetime
    tick: timedelta

    def clamp(self, at: datetime) -> datetime:
        """Give the time of the period that is nearest, to the second."""
        return min(max(at, self.start), self.end).replace(microsecond=0)

    def next_look(self, looks: Sequence[datetime], now: datetime) -> datetime | None:
        """Tell when to look next, which may be now; None where nothing more can be seen.

        The first look is at once: of a period that is past it is the only one, and of one that has
        begun it shows what is left to see. The others are at ticks; a tick that was missed by a
        whole tick is not made up, for the cluster has moved on.
        """
        if not looks:
            return min(max(now, self.start), self.end)
        newest = self.start + (min(max(now, self.start), self.end) - self.start) // self.tick * (
            self.tick
        )
        if newest > looks[-1] and now - newest < self.tick:
            return newest
        ahead = max(newest, looks[-1])
        coming = self.start + ((ahead - self.start) // self.tick + 1) * self.tick
        return coming if now < coming <= self.end else None

    def gaps(self, looks: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
        """Name what lies between looks that are more than a tick and a half apart."""
        last = self.start + (self.end - self.start) // self.tick * self.tick
        times = [*looks, last] if looks and last > looks[-1] else list(looks)
        return [(a, b) for a, b in pairwise(times) if b - a > 1.5 * self.tick]
