"""Count the snapshots that a storm of triggers leads to, on a virtual clock.

A thousand events of one cluster within a minute, in several shapes, served by the product's own
code in invocations that run side by side.
"""

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from rich.console import Console
from rich.table import Table

from local import policy as policy_tool
from local.replay import ROOT
from local.trigger_storm import Storm, play
from steward.telemetry import logger

EVENTS = 1_000
MINUTE = 60.0
DURATIONS = (2.0, 10.0, 40.0)
MOST = 3
"""Snapshots of the cluster, a tick's among them."""

_CHANCE = Random(0)  # noqa: S311 - the same storm every time

SHAPES: dict[str, tuple[float, ...]] = {
    "evenly": tuple(n * MINUTE / EVENTS for n in range(EVENTS)),
    "all at once": (0.0,) * EVENTS,
    "at both ends": (0.0,) * (EVENTS // 2) + (MINUTE,) * (EVENTS // 2),
    "six bursts": tuple(10.0 * (n * 6 // EVENTS) for n in range(EVENTS)),
    "by chance": tuple(sorted(_CHANCE.uniform(0.0, MINUTE) for _ in range(EVENTS))),
}
TICKS: dict[str, tuple[float, ...]] = {"": (), " and a tick": (30.0,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one storm led to.

    Attributes
    ----------
    longest : float or None
        Seconds from an event to the begin of the snapshot that answers it, at most; None where an
        event has none.
    """

    shape: str
    seconds: float
    invocations: int
    together: int
    snapshots: int
    longest: float | None


def rows() -> Iterator[Row]:
    """Play every shape, without and with a tick in its middle, at every length of a snapshot."""
    cluster = policy_tool.load(ROOT / "layers/policy/governance.yaml").clusters[0]
    for shape, events in SHAPES.items():
        for with_tick, ticks in TICKS.items():
            for seconds in DURATIONS:
                played = play(Storm(events=events, ticks=ticks, durations=(seconds,)), cluster)
                answers = [(asked, played.answer(asked)) for asked in events]
                waits = [answer.start - asked for asked, answer in answers if answer is not None]
                yield Row(
                    shape=shape + with_tick,
                    seconds=seconds,
                    invocations=played.invocations,
                    together=played.together,
                    snapshots=len(played.snapshots),
                    longest=max(waits) if len(waits) == len(events) else None,
                )


def main() -> int:
    """Print the figures; returns 1 where an event had no answer, or a storm too many snapshots."""
    logger.setLevel(logging.ERROR)
    found = list(rows())
    laid = Table(title=f"{EVENTS} events of a cluster in a minute", title_justify="left")
    for name in ("events", "snapshot s", "invocations", "at once", "snapshots", "longest wait s"):
        laid.add_column(name, justify="left" if name == "events" else "right")
    for row in found:
        wait = "no answer" if row.longest is None else f"{row.longest:.1f}"
        laid.add_row(
            row.shape,
            f"{row.seconds:.0f}",
            str(row.invocations),
            str(row.together),
            str(row.snapshots),
            wait,
        )
    console = Console(width=110)
    console.print(laid)
    missed = any(row.snapshots > MOST or row.longest is None for row in found)
    said = "[red]MISSED[/]" if missed else "[green]met[/]"
    console.print(f"{said} at most {MOST} snapshots, and an answer to every event")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
