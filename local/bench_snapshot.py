"""Measure take_snapshot by the size of the cluster: CPU, memory, queries, requests.

Generated clusters with a real one's baggage are served over HTTP by another process, and each tick
is taken by a fresh one, through the real use case and the real readers, into a bucket in memory. So
only the reader's own CPU counts, and none of the waiting. Two ticks a size: the first knows nothing
and lists every namespace; the next, five minutes later, knows what the first has found.
"""

import argparse
import cProfile
import json
import pickle
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import replace
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

from rich.console import Console

from local import policy as policy_tool
from local.application import LocalApp, VirtualClock
from local.bench_goals import Row, Taken, goals, table
from local.generated.cluster import NOW, GeneratedCluster
from local.replay import ROOT
from local.rig import environment
from steward.errors import ConfigError
from steward.settings import Settings
from steward.usecases.evaluate_snapshot import fold
from steward.usecases.take_snapshot import take_snapshot

SIZES = (1_000, 10_000, 50_000)
TICK = timedelta(minutes=5)
TICKS = {"first": NOW, "next": NOW + TICK}


def take(
    url: str, gpus: int, at: datetime, kept: dict[str, bytes], profile: Path | None = None
) -> Taken:
    """Take one tick's snapshot of a served cluster, and fold it into the memory.

    Parameters
    ----------
    kept : dict of str to bytes
        The bucket's objects: what the tick before left, and then what this one leaves.

    Raises
    ------
    ConfigError
        The URL is not one of this machine's own.
    """
    with environment(_loopback(url)):
        example = policy_tool.load(ROOT / "layers/policy/governance.yaml")
        cluster = GeneratedCluster(gpus=gpus).policy(example.clusters[0])
        settings = Settings(region="us-east-1", local_endpoint=url)
        app = LocalApp(settings, replace(example, clusters=(cluster,)), VirtualClock(at))
        app.objects.objects.update(kept)
        profiler = cProfile.Profile()
        started = time.process_time()
        if profile:
            profiler.enable()
        outcome = take_snapshot(
            cluster,
            at,
            sources=app.sources,
            snapshots=app.snapshots,
            memories=app.memories,
            bus=app.bus,
            clock=app.clock,
            checkpoints=app.checkpoints,
        )
        profiler.disable()
        used = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if profile:
            profiler.dump_stats(profile)
    key = outcome.key or ""
    snapshot = app.snapshots.get(key)
    memory, tag = app.memories.load(cluster.name)
    app.memories.save(fold(key, snapshot, memory, cluster)[1], tag)
    kept.update(app.objects.objects)
    return Taken(
        cpu=used,
        peak_mb=peak,
        stored=len(app.objects.objects[key]),
        accelerators=len(snapshot.accelerators),
        refused={part.name: part.detail for part in snapshot.refused(*outcome.refused)},
    )


def measure(gpus: int, scratch: Path, *, profile: bool) -> Iterator[Row]:
    """Measure the ticks of one size, each in a fresh process."""
    with served(gpus) as url:
        for tick in TICKS:
            _asked(url)
            command = [sys.executable, "-m", "local.bench_snapshot", "--take", tick, "--url", url]
            command += ["--sizes", str(gpus), "--scratch", str(scratch)]
            done = subprocess.run(  # noqa: S603 - this module
                command + (["--profile"] if profile else []),
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            if done.returncode:
                raise ConfigError(f"the tick of {gpus} GPUs failed: see above")
            told = json.loads(done.stdout.splitlines()[-1])
            asked = _asked(url)
            yield Row(
                gpus=gpus,
                tick=tick,
                taken=Taken(**told),
                queries=asked.get("prometheus", 0),
                requests=asked.get("kubernetes", 0),
            )


@contextmanager
def served(gpus: int) -> Iterator[str]:
    """Serve a generated cluster from another process; gives its base URL."""
    with subprocess.Popen(  # noqa: S603 - a module of ours
        [sys.executable, "-m", "local.generated.server", str(gpus)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            url = server.stdout.readline().strip() if server.stdout else ""
            yield _loopback(url)
        finally:
            if server.stdin:
                server.stdin.close()


def _loopback(url: str) -> str:
    if not url.startswith("http://127.0.0.1:"):  # without it readers look for the real services
        raise ConfigError(f"{url!r}: no server on loopback; what it said stands above")
    return url


def _asked(url: str) -> Mapping[str, int]:
    with urlopen(f"{url}/asked") as answer:  # noqa: S310 - our own server
        told: Mapping[str, int] = json.load(answer)
    return told


def _take_here(tick: str, url: str, gpus: int, scratch: Path, *, profile: bool) -> int:
    """Be the fresh process: take one tick and print what it cost."""
    path = scratch / f"{gpus}.pickle"
    kept = pickle.loads(path.read_bytes()) if path.exists() else {}  # noqa: S301 - our own file
    stats = scratch / f"{gpus}-{tick}.stats" if profile else None
    taken = take(url, gpus, TICKS[tick], kept, stats)
    path.write_bytes(pickle.dumps(kept))
    if stats:
        pstats.Stats(str(stats), stream=sys.stderr).sort_stats("tottime").print_stats(25)
    print(json.dumps(asdict(taken)))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and which limits are met; 1 where one is not."""
    parser = argparse.ArgumentParser(prog="bench_snapshot", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="GPUs of each cluster")
    parser.add_argument(
        "--profile", action="store_true", help="say where the time goes (recv_into only waits)"
    )
    parser.add_argument("--take", choices=TICKS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.take:
        return _take_here(
            given.take, given.url, given.sizes[0], given.scratch, profile=given.profile
        )
    with tempfile.TemporaryDirectory() as scratch:
        rows = [
            row
            for gpus in given.sizes
            for row in measure(gpus, Path(scratch), profile=given.profile)
        ]
    console = Console(width=110)
    console.print(table(rows))
    for row in rows:
        for name, why in row.taken.refused.items():
            console.print(f"{row.gpus:,} GPUs, {row.tick}: {name} was not read: {why}")
    judged = list(goals(rows, tuple(TICKS)))
    for text, met in judged:
        console.print(f"[{'green' if met else 'red'}]{'met' if met else 'MISSED'}[/] {text}")
    return 0 if all(met for _, met in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
