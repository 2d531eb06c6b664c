"""Record a live cluster: `make capture CLUSTER=… FROM=… TO=…` (docs/capture.md).

0: the recording is whole; 1: it stopped and goes on where the command is repeated; 2: bad input.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from local.capture.capture import Capture
from local.capture.kubectl import Kubectl
from local.capture.request import Request
from local.capture.schedule import Period
from local.capture.state import resume_file
from local.live import find, folder_given, said, signed_in, span_given, time_given
from local.recording import moment_name
from steward.clock import SystemClock
from steward.cluster.figures import stamp
from steward.errors import ConfigError, StewardError

LONGEST = timedelta(days=31)
LONGEST_HISTORY = timedelta(days=7)
"""As far back as the steward itself looks for the beginning of an idle stretch."""


class Told:
    """Shows on stderr how far a capture is."""

    def __init__(self, looks: int, pieces: int) -> None:
        self._bar = Progress(
            TextColumn("{task.description:<8}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[doing]}"),
            console=Console(stderr=True),
        )
        self._looks = self._bar.add_task("looks", total=looks, doing="")
        self._pieces = self._bar.add_task("metrics", total=pieces, doing="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def looked(self, at: datetime, number: int) -> None:
        """Count a look at the live cluster."""
        self._bar.update(self._looks, completed=number, doing=f"at {stamp(at)}")

    def fetched(self, done: int, of: int) -> None:
        """Count a piece of metrics."""
        self._bar.update(self._pieces, completed=done, total=of, doing="")

    def waiting(self, until: datetime, what: str) -> None:
        """Say what is waited for."""
        self._bar.update(self._looks, doing=f"waiting until {stamp(until)} for {what}")

    def say(self, text: str) -> None:
        """Say something that is worth a line."""
        self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)


def request(given: argparse.Namespace) -> Request:
    """Check what was asked for.

    Raises
    ------
    ConfigError
        A time, a duration, the policy or the cluster's name is wrong.
    """
    start, end = time_given("FROM", given.start), time_given("TO", given.end)
    if end <= start:
        raise ConfigError(f"TO={given.end}: is not later than FROM; swap them")
    if end - start > LONGEST:
        raise ConfigError(f"TO={given.end}: more than {LONGEST.days} days after FROM; take less")
    tick = span_given("TICK", given.tick, timedelta(minutes=1), timedelta(hours=1))
    history = span_given("HISTORY", given.history, timedelta(minutes=1), LONGEST_HISTORY)
    return Request(
        live=find(given.cluster, given.governance, given.metrics_url),
        period=Period(start=start, end=end, tick=tick),
        out=folder_given(given.out, f"{given.cluster}-{moment_name(start)}"),
        history=history,
        kube_context=given.kube_context,
        rename_jobs=given.rename_jobs,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit status."""
    given = _parser().parse_args(arguments)
    logging.getLogger().setLevel(logging.ERROR)
    try:
        asked = request(given)
        signed_in(asked.live.session)
        lists = Kubectl(given.kube_context)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    ahead = max(0, (asked.period.end - SystemClock().now()) // asked.period.tick)
    try:
        with Told(1 + ahead, len(asked.chunks())) as told:
            Capture(asked, SystemClock(), lists, told).run()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except (StewardError, OSError) as error:
        print(f"{said(error)}. {_resumable(asked.out)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"stopped. {_resumable(asked.out)}", file=sys.stderr)
        return 1
    print(asked.out)
    return 0


def _resumable(out: Path) -> str:
    return f"Repeat the command to go on: {resume_file(out)} knows what is done"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="capture", description=__doc__.splitlines()[0])
    parser.add_argument("--cluster", required=True, help="its name in the policy")
    parser.add_argument("--from", dest="start", required=True, help="2026-11-02T09:00:00Z")
    parser.add_argument("--to", dest="end", required=True, help="past, or still to come")
    parser.add_argument("--out", type=Path, help="folder of the recording")
    parser.add_argument("--governance", type=Path, default=Path("layers/policy/governance.yaml"))
    parser.add_argument("--tick", default="5m", help="between two looks at Kubernetes")
    parser.add_argument("--history", default="24h", help="of activity before FROM, 7d at most")
    parser.add_argument("--kube-context", default="", help="of your kubeconfig")
    parser.add_argument("--metrics-url", default="", help="a forwarded Prometheus, unsigned")
    parser.add_argument("--rename-jobs", action="store_true", help="pseudonyms for jobs and pods")
    return parser


if __name__ == "__main__":
    sys.exit(main())
