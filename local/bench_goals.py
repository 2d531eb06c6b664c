"""What a snapshot may cost by the size of its cluster, and whether what was measured keeps to it."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table

MEASURED = 10_000
"""The size that the limits are set for."""

CPU_SECONDS = 6.0
PEAK_MB = 400
EXPONENT = 1.1
QUERIES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One tick.

    Attributes
    ----------
    refused : dict of str to str
        Parts that could not be read, and why: the figures are not those of a whole snapshot.
    """

    cpu: float
    peak_mb: float
    stored: int
    accelerators: int
    refused: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tick at one size, with what it asked for."""

    gpus: int
    tick: str
    taken: Taken
    queries: int
    requests: int


def growth(costs: Iterable[tuple[float, float]]) -> float:
    """Fit how a cost grows with size: the slope of a line through their logarithms."""
    points = [(math.log(size), math.log(cost)) for size, cost in costs]
    x_mean = math.fsum(x for x, _ in points) / len(points)
    y_mean = math.fsum(y for _, y in points) / len(points)
    rise = math.fsum((x - x_mean) * (y - y_mean) for x, y in points)
    return rise / math.fsum((x - x_mean) ** 2 for x, _ in points)


def table(rows: Sequence[Row]) -> Table:
    """Lay the rows out."""
    laid = Table(title="take_snapshot by size, CPU of the reader alone", title_justify="left")
    for name in ("GPUs", "tick", "CPU s", "peak MB", "stored kB", "queries", "requests", "refused"):
        laid.add_column(name, justify="left" if name in {"tick", "refused"} else "right")
    for row in rows:
        laid.add_row(
            f"{row.gpus:,}",
            row.tick,
            f"{row.taken.cpu:.2f}",
            f"{row.taken.peak_mb:.0f}",
            f"{row.taken.stored / 1000:.0f}",
            str(row.queries),
            str(row.requests),
            " ".join(row.taken.refused) or "-",
        )
    return laid


def goals(rows: Sequence[Row], ticks: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Say of each limit whether it is met."""
    for tick in ticks:
        ours = [row for row in rows if row.tick == tick]
        for row in ours:
            if row.gpus == MEASURED:
                cpu, peak = row.taken.cpu, row.taken.peak_mb
                yield (
                    f"{tick} tick at {MEASURED:,} GPUs: CPU {cpu:.2f} s of {CPU_SECONDS:.0f} s",
                    cpu <= CPU_SECONDS,
                )
                yield f"{tick} tick: peak {peak:.0f} MB of {PEAK_MB} MB", peak <= PEAK_MB
        if len({row.gpus for row in ours}) > 1:
            grows = growth((row.gpus, row.taken.cpu) for row in ours)
            yield f"{tick} tick: CPU grows by size^{grows:.2f} of {EXPONENT}", grows <= EXPONENT
        counts = sorted({row.queries for row in ours})
        yield (
            f"{tick} tick: {' or '.join(map(str, counts))} queries of {QUERIES}, whatever the size",
            len(counts) == 1 and counts[0] <= QUERIES,
        )
    whole = all(row.taken.accelerators == row.gpus and not row.taken.refused for row in rows)
    yield "every GPU was read, and nothing was refused", whole
