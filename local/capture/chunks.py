"""The metrics of the past, cut into pieces that are fetched one by one: pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from local.recording import moment_name

HOUR = timedelta(hours=1)
SHORTEST = timedelta(minutes=5)
"""A piece that a server refuses as too large is halved down to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Samples later than `start`, up to and including `end`, of one group of metrics."""

    group: str
    metrics: tuple[str, ...]
    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """Name of its file, without the ending."""
        return f"{self.group}-{moment_name(self.start)}"

    def halves(self) -> "tuple[Chunk, ...]":
        """Cut it in two, to the second; only itself where it is as short as it gets."""
        if self.end - self.start < 2 * SHORTEST:
            return (self,)
        middle = self.start + timedelta(seconds=(self.end - self.start).total_seconds() // 2)
        return (
            Chunk(group=self.group, metrics=self.metrics, start=self.start, end=middle),
            Chunk(group=self.group, metrics=self.metrics, start=middle, end=self.end),
        )


def cut(group: str, metrics: tuple[str, ...], start: datetime, end: datetime) -> Iterator[Chunk]:
    """Cut a period at full hours, so that a longer capture of it has the same pieces."""
    while start < end and metrics:
        hour = start.replace(minute=0, second=0, microsecond=0) + HOUR
        yield Chunk(group=group, metrics=metrics, start=start, end=min(hour, end))
        start = hour
