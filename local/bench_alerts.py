"""Measure how long an evaluation takes to reach Slack, and what a thousand findings cost.

Both go through the product's own use case and renderer. One finding is measured in wall time, from
the begin of the run until the stand-in has the post, over loopback through the product's own Slack
client; a thousand in CPU time, with a Slack in memory that takes everything at once.
"""

import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from typing import Any

from rich.console import Console
from rich.table import Table

from local import policy as policy_tool
from local.application import LocalApp, VirtualClock
from local.recording import Recording
from local.replay import ROOT
from local.rig import environment, serve
from steward.alerts.model import Attempt, Posted
from steward.cluster.findings import DetectorStatus, Evaluation, Finding
from steward.cluster.policy import Policy, Severity
from steward.ports import Messenger
from steward.settings import Settings
from steward.telemetry import logger
from steward.usecases.reconcile_alerts import reconcile

BEGIN = datetime(2026, 11, 2, tzinfo=UTC)
SINGLE = 200
SINGLE_SECONDS = 1.0
MANY = 1_000
MANY_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one step cost."""

    what: str
    seconds: float
    limit: float

    @property
    def met(self) -> bool:
        """Whether it keeps to its limit."""
        return self.seconds <= self.limit


@dataclass(slots=True)
class _Taking:
    """A Slack that takes everything; edits and posts are counted."""

    taken: list[str] = field(default_factory=list)

    def post(self, _: Mapping[str, Any], attempt: Attempt) -> Posted:
        self.taken.append(attempt.id)
        return Posted(channel=attempt.channel, ts=f"{len(self.taken)}.0")

    def update(self, posted: Posted, _: Mapping[str, Any], attempt: Attempt) -> Posted:
        self.taken.append(attempt.id)
        return posted

    def find(self, _: Attempt) -> Posted | None:
        return None

    def delete(self, _: Posted) -> None:
        return None


def _finding(number: int, at: datetime, gpu_hours: float = 8.0) -> Finding:
    devices = [
        {
            "node": f"hyperpod-i-{number:05x}",
            "uuid": f"GPU-{number:08x}-{n}",
            "mig": None,
            "idle_since": at.isoformat(),
            "gpu_hours": 1.0,
            "held_bytes": 0,
        }
        for n in range(8)
    ]
    return Finding(
        detector="idle_gpus",
        subject=f"PyTorchJob/hyperpod-ns-research/job-{number:04}",
        reason="idle",
        severity=Severity.WARN,
        team="research",
        owner="somebody",
        since=at,
        gpus=8.0,
        gpu_hours=gpu_hours,
        cost_usd=7.9 * gpu_hours,
        action="kubectl -n hyperpod-ns-research get pods",
        evidence={"accelerators": devices, "coverage": 1.0, "job_gpus": 8.0},
        parts=tuple(f"{number}-{n}" for n in range(8)),
    )


def _evaluation(at: datetime, findings: tuple[Finding, ...], cluster: str) -> Evaluation:
    return Evaluation(
        snapshot="bench",
        cluster=cluster,
        scope="tick",
        at=at,
        detectors={"idle_gpus": DetectorStatus.EVALUATED},
        findings=findings,
        cleared=(),
        unknown=(),
    )


def _run(app: LocalApp, evaluation: Evaluation, messenger: Messenger) -> dict[str, Any]:
    app.clock.move_to(evaluation.at)  # type: ignore[attr-defined]  # the rig's own clock
    return reconcile(
        evaluation,
        policy=app.policy,
        alerts=app.alerts,
        messenger=messenger,
        directory=app.directory,
        pager=app.pager,
        clock=app.clock,
    )


def single(policy: Policy) -> Row:
    """Have one new finding told, again and again, over HTTP; the 95th percentile."""
    cluster = policy.clusters[0].name
    clock = VirtualClock(BEGIN)
    with tempfile.TemporaryDirectory() as folder:
        text = (
            f"cluster: {cluster}\nfrom: 2026-11-02T00:00:00Z\nto: 2026-11-02T01:00:00Z\ntick: 5m\n"
        )
        Path(folder, "recording.yaml").write_text(text)
        with (
            serve(Recording.open(Path(folder)), {cluster}, clock.now) as rig,
            environment(rig.url),
        ):
            settings = Settings(region="us-east-1", local_endpoint=rig.url, slack_secret="slack")  # noqa: S106 - its name
            app = LocalApp(settings, policy, clock)
            spent = []
            for number in range(SINGLE):
                at = BEGIN + timedelta(minutes=5 * number)
                evaluation = _evaluation(at, (_finding(number, at),), cluster)
                calls = len(rig.calls)
                begun = time.perf_counter()
                _run(app, evaluation, app.messenger)
                spent.append(time.perf_counter() - begun)
                if len(rig.calls) == calls:
                    raise RuntimeError(f"finding {number} was not posted")
    return Row(
        what=f"one finding to Slack, p95 of {SINGLE}",
        seconds=quantiles(spent, n=20)[-1],
        limit=SINGLE_SECONDS,
    )


def many(policy: Policy) -> Iterator[Row]:
    """Reconcile a thousand findings: new, as they were, and ended."""
    cluster = policy.clusters[0].name
    app = LocalApp(Settings(), policy, VirtualClock(BEGIN))
    findings = tuple(_finding(number, BEGIN) for number in range(MANY))
    grown = tuple(_finding(number, BEGIN, gpu_hours=16.0) for number in range(MANY))
    slack = _Taking()
    for what, minutes, told in (
        (f"{MANY:,} new findings", 0, findings),
        (f"{MANY:,} findings as they were", 5, findings),
        (f"{MANY:,} findings refreshed", 65, grown),
        (f"{MANY:,} findings ended", 80, ()),
    ):
        evaluation = _evaluation(BEGIN + timedelta(minutes=minutes), told, cluster)
        begun = time.process_time()
        outcome = _run(app, evaluation, slack)
        yield Row(what=what, seconds=time.process_time() - begun, limit=MANY_SECONDS)
        if outcome["undelivered"]:
            raise RuntimeError(f"{what}: {outcome['undelivered']} were not delivered")


def main() -> int:
    """Print the table and which limits are met; 1 where one is not."""
    logging.getLogger().setLevel(logging.ERROR)
    logger.setLevel(logging.ERROR)
    logger.registered_handler.stream = sys.stderr  # type: ignore[attr-defined]
    policy = policy_tool.load(ROOT / "layers/policy/governance.yaml")
    rows = [single(policy), *many(policy)]
    laid = Table(title="reconcile_alerts, seconds", title_justify="left")
    for name in ("what", "spent", "limit", ""):
        laid.add_column(name, justify="left" if name in {"what", ""} else "right")
    for row in rows:
        met = "[green]met[/]" if row.met else "[red]MISSED[/]"
        laid.add_row(row.what, f"{row.seconds:.3f}", f"{row.limit:.0f}", met)
    Console(width=100).print(laid)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
