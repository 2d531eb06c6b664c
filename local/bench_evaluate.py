"""Measure evaluate_snapshot by the size of the cluster: CPU, memory, and each detector's share.

A generated cluster is read once, over HTTP, by the bench's own reader; then its snapshot is made
hard: every team borrows, deep queues wait, jobs were preempted, nodes are lost. Each evaluation
runs in a fresh process, through the real use case, over a bucket in memory. Two a size: the first
knows nothing, the next, five minutes later, carries on what the first has found.
"""

import argparse
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from copy import replace
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from unittest import mock

from rich.console import Console
from rich.table import Table

from local import policy as policy_tool
from local.application import LocalApp, VirtualClock
from local.bench_goals import EXPONENT, MEASURED, growth
from local.bench_snapshot import TICKS, served, take
from local.generated.cluster import GeneratedCluster
from local.generated.hardship import hardened
from local.replay import ROOT
from local.twins import InMemoryObjects
from steward.cluster.memory import Detection, Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import Snapshot
from steward.detect import DETECTORS, Detector
from steward.errors import ConfigError
from steward.settings import Settings
from steward.stores.bucket import Snapshots
from steward.usecases import evaluate_snapshot as use_case

SIZES = (1_000, 10_000, 50_000)
CPU_SECONDS = 3.0
PEAK_MB = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """One evaluation: CPU seconds in all and of each detector, and what it found."""

    gpus: int
    tick: str
    cpu: float
    peak_mb: float
    shares: dict[str, float]
    findings: dict[str, int]
    failed: tuple[str, ...]


def evaluate(gpus: int, tick: str, kept: dict[str, bytes]) -> Evaluated:
    """Evaluate one stored snapshot, and leave in `kept` what the next evaluation starts from."""
    example = policy_tool.load(ROOT / "layers/policy/governance.yaml")
    cluster = GeneratedCluster(gpus=gpus).policy(example.clusters[0])
    policy = replace(example, clusters=(cluster,))
    app = LocalApp(Settings(), policy, VirtualClock(TICKS[tick]))
    app.objects.objects.update(kept)
    key = sorted(name for name in kept if name.startswith("snapshots/"))[list(TICKS).index(tick)]
    shares: dict[str, float] = {}
    detectors = [(name, _timed(name, detect, shares)) for name, detect in DETECTORS]
    with mock.patch.object(use_case, "fold", partial(use_case.fold, detectors=detectors)):
        before = time.process_time()
        outcome = use_case.evaluate_snapshot(
            key,
            cluster,
            snapshots=app.snapshots,
            memories=app.memories,
            evaluations=app.evaluations,
            queue=app.queue,
            bus=app.bus,
        )
        used = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    evaluation = app.evaluations.get(outcome.key or "")
    counts: dict[str, int] = {}
    for finding in evaluation.findings:
        counts[finding.detector] = counts.get(finding.detector, 0) + 1
    kept.update(app.objects.objects)
    return Evaluated(
        gpus=gpus,
        tick=tick,
        cpu=used,
        peak_mb=peak,
        shares=shares,
        findings=counts,
        failed=outcome.failed,
    )


def _timed(name: str, detect: Detector, shares: dict[str, float]) -> Detector:
    def timed(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> Detection:
        before = time.process_time()
        detection = detect(snapshot, memory, cluster)
        shares[name] = time.process_time() - before
        return detection

    return timed


def _snapshots(gpus: int) -> dict[str, bytes]:
    """Read both ticks of a cluster of that size, and make them hard; the memory starts empty."""
    kept: dict[str, bytes] = {}
    with served(gpus) as url:
        for at in TICKS.values():
            take(url, gpus, at, kept)
    objects = InMemoryObjects()
    stored = Snapshots(objects)
    read = InMemoryObjects()
    read.objects.update(kept)
    for key in sorted(kept):
        if key.startswith("snapshots/"):
            stored.put(hardened(Snapshots(read).get(key)))
    return objects.objects


def measure(gpus: int, scratch: Path) -> Iterator[Evaluated]:
    """Evaluate both ticks of one size, each in a fresh process."""
    path = scratch / f"{gpus}.pickle"
    path.write_bytes(pickle.dumps(_snapshots(gpus)))
    for tick in TICKS:
        command = [sys.executable, "-m", "local.bench_evaluate", "--evaluate", tick]
        command += ["--sizes", str(gpus), "--scratch", str(scratch)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - this module
        if done.returncode:
            raise ConfigError(f"the evaluation of {gpus} GPUs failed: see above")
        yield Evaluated(**json.loads(done.stdout.splitlines()[-1]))


def _evaluate_here(tick: str, gpus: int, scratch: Path) -> int:
    """Be the fresh process: evaluate one tick and print what it cost."""
    path = scratch / f"{gpus}.pickle"
    kept = pickle.loads(path.read_bytes())  # noqa: S301 - our own file
    done = evaluate(gpus, tick, kept)
    path.write_bytes(pickle.dumps(kept))
    print(json.dumps(asdict(done)))
    return 0


def table(rows: Sequence[Evaluated]) -> Table:
    """Lay the rows out: CPU in all, then of each detector; the rest is reading and storing."""
    laid = Table(title="evaluate_snapshot by size, CPU s", title_justify="left")
    names = [name for name, _ in DETECTORS]
    for head in ("GPUs", "tick", "in all", *names, "other", "peak MB", "findings"):
        laid.add_column(head, justify="left" if head == "tick" else "right")
    for row in rows:
        laid.add_row(
            f"{row.gpus:,}",
            row.tick,
            f"{row.cpu:.2f}",
            *(f"{row.shares[name]:.2f}" for name in names),
            f"{row.cpu - sum(row.shares.values()):.2f}",
            f"{row.peak_mb:.0f}",
            " ".join(str(row.findings.get(name, 0)) for name in names),
        )
    return laid


def goals(rows: Sequence[Evaluated]) -> Iterator[tuple[str, bool]]:
    """Say of each limit whether it is met."""
    for tick in TICKS:
        ours = [row for row in rows if row.tick == tick]
        for row in (row for row in ours if row.gpus == MEASURED):
            yield (
                f"{tick} evaluation at {MEASURED:,} GPUs: CPU {row.cpu:.2f} s of {CPU_SECONDS:.0f} s",
                row.cpu <= CPU_SECONDS,
            )
            yield (
                f"{tick} evaluation: peak {row.peak_mb:.0f} MB of {PEAK_MB} MB",
                row.peak_mb <= PEAK_MB,
            )
        if len({row.gpus for row in ours}) > 1:
            grows = growth([(row.gpus, row.cpu) for row in ours])
            yield (
                f"{tick} evaluation: CPU grows by size^{grows:.2f} of {EXPONENT}",
                grows <= EXPONENT,
            )
    yield "every detector was evaluated", not any(row.failed for row in rows)
    names = [name for name, _ in DETECTORS if name != "telemetry"]
    found = all(row.findings.get(name) for row in rows for name in names)
    yield f"there was something to find for {', '.join(names)}", found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and which limits are met; 1 where one is not."""
    parser = argparse.ArgumentParser(prog="bench_evaluate", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="GPUs of each cluster")
    parser.add_argument("--evaluate", choices=TICKS, help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.evaluate:
        return _evaluate_here(given.evaluate, given.sizes[0], given.scratch)
    with tempfile.TemporaryDirectory() as scratch:
        rows = [row for gpus in given.sizes for row in measure(gpus, Path(scratch))]
    console = Console(width=130)
    console.print(table(rows))
    judged = list(goals(rows))
    for text, met in judged:
        console.print(f"[{'green' if met else 'red'}]{'met' if met else 'MISSED'}[/] {text}")
    return 0 if all(met for _, met in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
