"""Random small recordings: a replay prints what a second, plain reading of the rules predicts.

Seeded, not drawn by hypothesis: a replay takes two seconds, which leaves no time to shrink.
`REPLAY_ORACLE_EXAMPLES=150` runs more.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.replay import replay
from tests.recordings import RecordedPod, write_recording
from tests.replay_oracle import Line, Oracle

EXAMPLES = int(os.environ.get("REPLAY_ORACLE_EXAMPLES", "12"))
DAWN = datetime(2026, 11, 5, tzinfo=UTC)
IMPOSSIBLE = (-1.0, 9e15, 101.0, 31_400.0, float("nan"))
HELD = (0.0, 100.0, 1023.0, 1024.0, 40_000.0)
TEAMS = ("research", "product-genai", "platform-mlops")

IDLE = (
    "type",
    "at",
    "status",
    "subject",
    "reason",
    "severity",
    "since",
    "gpus",
    "gpu_hours",
    "cost_usd",
    "resolution",
)
SAID = {
    ("finding", "idle_gpus"): IDLE,
    ("unknown", "idle_gpus"): ("type", "at", "subject", "reason", "ended"),
    ("finding", "telemetry"): ("at", "status", "reason", "severity", "gpus"),
}
"""What the oracle speaks of, by type and detector of a line."""

CLOSE = {"gpu_hours": 1e-4, "cost_usd": 0.006}

type Block = tuple[datetime, datetime, bool]
"""From, to, busy."""

type Points = list[tuple[datetime, float]]


@dataclass(frozen=True)
class Case:
    """A recording to be: its pods and its ticks."""

    pods: list[RecordedPod]
    start: datetime
    end: datetime
    tick: timedelta


def a_case(seed: int) -> Case:
    """Make up pods with odd lives, an outage of one node's exporter, and a tick length."""
    rng = random.Random(seed)
    start = DAWN + timedelta(hours=9, minutes=rng.randrange(60), seconds=rng.choice([0, 0, 17]))
    end = start + timedelta(minutes=rng.randrange(120, 181))
    silent_node = rng.randrange(4)
    silent_from = start + timedelta(minutes=rng.randrange(-60, 150))
    silent_to = silent_from + timedelta(minutes=rng.choice([3, 8, 20, 45, 90, 300]))
    pods = []
    for number in range(rng.randrange(2, 7)):
        silent = (silent_from, silent_to) if number % 4 == silent_node else None
        pods.append(a_pod(rng, number, start, end, silent))
    return Case(pods, start, end, timedelta(minutes=rng.choice([5, 5, 5, 10, 15])))


def a_pod(
    rng: random.Random,
    number: int,
    start: datetime,
    end: datetime,
    silent: tuple[datetime, datetime] | None,
) -> RecordedPod:
    """Make up a pod; some have no series, or one too few."""
    born = start + timedelta(seconds=rng.randrange(-5 * 3600, 3600))
    dies = born + timedelta(seconds=rng.randrange(1800, 8 * 3600))
    gone = dies if start < dies < end and rng.random() < 0.7 else None
    # Of eight pods one is a whole node, alone there: only that many can page.
    gpus = 8 if number == 3 and rng.random() < 0.5 else rng.randrange(1, 4)
    if gpus == 8:
        born = start - timedelta(hours=rng.randrange(3, 6))
        gone = None
    draw = rng.random()
    named = 0 if draw < 0.1 else gpus - 1 if draw < 0.2 else gpus
    samples: dict[str, Points] = {}
    held: dict[str, Points] = {}
    blocks = a_plan(rng, born, gone or end)
    if gpus == 8:
        blocks = [(born, end, False)]
    for device in range(named):
        if gpus < 8 and rng.random() < 0.5:
            blocks = a_plan(rng, born, gone or end)
        points = measured(rng, blocks, born, gone or end)
        if silent and rng.random() < 0.9:
            points = [p for p in points if not silent[0] <= p[0] < silent[1]]
        uuid = f"GPU-{number}-{device}"
        samples[uuid] = points
        if rng.random() < 0.8:
            held[uuid] = memory(rng, points)
    return RecordedPod(
        name=f"job{number}",
        team=rng.choice(TEAMS),
        node=number % 4,
        start=born,
        end=gone,
        samples=samples,
        held_mib=held,
        gpus=gpus,
    )


def a_plan(rng: random.Random, born: datetime, stop: datetime) -> list[Block]:
    """Alternate blocks of work and rest."""
    blocks, at, busy = [], born, rng.random() < 0.6
    while at < stop:
        length = rng.choice([rng.randrange(60, 3600), rng.randrange(3600, 14_400)])
        blocks.append((at, at + timedelta(seconds=length), busy))
        at, busy = at + timedelta(seconds=length), not busy
    return blocks


def measured(rng: random.Random, blocks: list[Block], born: datetime, stop: datetime) -> Points:
    """Sample about once a minute, with gaps and values that cannot be."""
    lost = rng.choice([0, 0, 0, 0.05, 0.18, 0.3])
    bad = rng.choice([0, 0, 0, 0, 0.004, 0.1, 0.25])
    points, at = [], born + timedelta(seconds=rng.randrange(60))
    while at < stop:
        busy = next(works for since, until, works in blocks if since <= at < until)
        value = rng.choice([1.01, 3.0, 80.0, 100.0] if busy else [0.0, 0.0, 0.5, 1.0])
        if rng.random() < bad:
            value = rng.choice(IMPOSSIBLE)
        if rng.random() >= lost:
            points.append((at, value))
        at += timedelta(seconds=rng.choice([60, rng.randrange(55, 66)]))
        if rng.random() < 0.004:
            at += timedelta(seconds=rng.randrange(60, 900))
    return points


def memory(rng: random.Random, points: Points) -> Points:
    """Hold memory at a level that seldom changes, around the limit of 1 GiB."""
    level = rng.choice(HELD)
    levels = []
    for when, _ in points:
        if rng.random() < 0.01:
            level = rng.choice(HELD)
        levels.append((when, level))
    return levels


def a_hanging_case(seed: int) -> Case:
    """Make up jobs of which some look busy and do nothing, with signals that tell, or do not."""
    rng = random.Random(f"hang {seed}")
    start = DAWN + timedelta(hours=9, minutes=rng.randrange(60), seconds=rng.choice([0, 0, 17]))
    end = start + timedelta(minutes=rng.randrange(120, 241))
    silent_from = start + timedelta(minutes=rng.randrange(-60, 200))
    silent = (silent_from, silent_from + timedelta(minutes=rng.choice([3, 8, 20, 45, 90])))
    pods = [
        a_stuck_pod(rng, n, start, end, silent if rng.random() < 0.4 else None)
        for n in range(rng.randrange(2, 6))
    ]
    return Case(pods, start, end, timedelta(minutes=5))


STATES = {
    "works": ((40.0, 80.0, 99.0), (0.2, 0.5), (180.0, 390.0)),
    "spins": ((97.0, 100.0), (0.006, 0.3), (101.0, 250.0)),  # pinned, and at work
    "warm": ((100.0,), (0.0, 0.005), (101.0, 250.0)),  # pinned, and power speaks against a hang
    "stuck": ((95.0, 100.0), (0.0, 0.004, 0.005), (60.0, 100.0)),
    "rests": ((0.0, 0.5, 1.0), (0.0,), (60.0, 70.0)),
}
"""Of each state the values of utilisation, tensor activity and power."""


def a_stuck_pod(
    rng: random.Random,
    number: int,
    start: datetime,
    end: datetime,
    silent: tuple[datetime, datetime] | None,
) -> RecordedPod:
    """Make up a pod whose GPUs hang, work and rest together, but for a lag and the odd one."""
    born = start + timedelta(seconds=rng.randrange(-4 * 3600, 3600))
    dies = born + timedelta(seconds=rng.randrange(3600, 8 * 3600))
    gone = dies if start < dies < end and rng.random() < 0.7 else None
    stop = gone or end
    plan = states_of(rng, born, stop)
    has_tensor, has_watts = rng.choice([(True, True), (True, True), (True, False), (False, True)])
    lost = rng.choice([0, 0, 0.05, 0.15])
    bad = rng.choice([0, 0, 0, 0.01, 0.1])
    samples: dict[str, Points] = {}
    tensor: dict[str, Points] = {}
    watts: dict[str, Points] = {}
    gpus = rng.randrange(1, 4)
    for device in range(gpus):
        own = states_of(rng, born, stop) if rng.random() < 0.1 else plan
        lag = timedelta(seconds=rng.choice([0, 0, rng.randrange(300)]))
        uuid = f"GPU-{number}-{device}"
        told: tuple[Points, Points, Points] = ([], [], [])
        at = born + timedelta(seconds=rng.randrange(60))
        while at < stop:
            state = next(s for until, s in own if at - lag < until)
            values = [rng.choice(levels) for levels in STATES[state]]
            if rng.random() < bad:
                values[0] = rng.choice(IMPOSSIBLE)
            for series, value in zip(told, values, strict=True):
                if rng.random() >= lost and not (silent and silent[0] <= at < silent[1]):
                    series.append((at, value))
            at += timedelta(seconds=rng.choice([60, rng.randrange(55, 66)]))
        samples[uuid], tensor[uuid], watts[uuid] = told
    return RecordedPod(
        name=f"job{number}",
        team=rng.choice(TEAMS),
        node=number % 4,
        start=born,
        end=gone,
        samples=samples,
        tensor=tensor if has_tensor else {},
        watts=watts if has_watts else {},
        watts_limit={u: [(t, 400.0) for t, _ in p] for u, p in watts.items()} if has_watts else {},
        gpus=gpus,
    )


def states_of(rng: random.Random, born: datetime, stop: datetime) -> list[tuple[datetime, str]]:
    """Give states in turn, each with its end; a hang is what comes most often."""
    plan: list[tuple[datetime, str]] = []
    at = born
    while at < stop:
        at += timedelta(seconds=rng.choice([rng.randrange(60, 1200), rng.randrange(1800, 7200)]))
        plan.append(
            (at, rng.choice(["works", "spins", "warm", "stuck", "stuck", "stuck", "rests"]))
        )
    return plan


def told_by_replay(case: Case, folder: Path) -> Iterator[Line]:
    """Replay the case and give what the oracle speaks of, in its form."""
    minutes = case.tick // timedelta(minutes=1)
    write_recording(folder, case.pods, case.start, case.end, tick=f"{minutes}m")
    told: list[Line] = []
    assert replay(folder, told.append).failures == 0
    for line in told:
        kind = (line["type"], line.get("detector"))
        if kind in SAID:
            said = {key: line.get(key) for key in SAID[kind]}
            yield said if "type" in said else {"type": "telemetry"} | said


def same(ours: Line, theirs: Line) -> bool:
    """Compare two lines; hours and dollars may differ by rounding."""
    return ours.keys() == theirs.keys() and all(
        abs(value - theirs[key]) <= CLOSE[key] if key in CLOSE else value == theirs[key]
        for key, value in ours.items()
    )


def compare(case: Case, folder: Path) -> tuple[list[Line], list[Line], int]:
    """Give the lines that only the oracle has, those that only the replay has, and how many."""
    missing = []
    extra = list(told_by_replay(case, folder))
    count = len(extra)
    for line in Oracle(case.pods, case.start, case.end, case.tick).predict():
        found = next((other for other in extra if same(line, other)), None)
        if found is None:
            missing.append(line)
        else:
            extra.remove(found)
    return missing, extra, count


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_a_replay_of_jobs_that_hang_prints_what_the_oracle_predicts(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METRICS", "recorded")
    missing, extra, _ = compare(a_hanging_case(seed), tmp_path)
    assert (missing, extra) == ([], [])


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_a_replay_prints_what_the_oracle_predicts(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METRICS", "recorded")
    missing, extra, _ = compare(a_case(seed), tmp_path)
    assert (missing, extra) == ([], [])
