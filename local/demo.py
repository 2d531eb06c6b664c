"""The main job on the embedded example: a recorded day, its alerts, and what Slack would show."""

import logging
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from local import demo_recording, lines, preview
from local.replay import ROOT, load_policy, replay
from local.simulation import Replay
from steward.telemetry import logger

OUT = ROOT / "build" / "demo"
_UNKNOWN = "[magenta]unknown[/]"
_WIDTH = 100
"""Columns where nobody says how many there are: in a file or a pipe."""


def main() -> int:
    """Write the recording, replay it, and show what it told; 0 if no handler failed."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    logging.getLogger().setLevel(logging.ERROR)
    logger.setLevel(logging.ERROR)
    started = time.monotonic()
    folder = demo_recording.write(OUT / "recording")
    told: list[lines.Line] = []
    with Progress(
        TextColumn("replaying a recorded day through the real handlers"),
        BarColumn(),
        TextColumn("{task.fields[clock]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("replay", total=1.0, clock="")

        def progress(at: datetime) -> None:
            bar.update(task, clock=f"{at:%a %H:%M}")

        run = replay(folder, told.append, progress)
    seconds = time.monotonic() - started
    (OUT / "replay.jsonl").write_text("".join(f"{lines.dump(line)}\n" for line in told))
    show(console, run, told, seconds)
    console.print()
    page = _preview(run)
    for what, where in (
        ("Slack, as people saw it", page),
        ("every line of the replay", OUT / "replay.jsonl"),
        ("the recording itself", folder),
    ):
        console.print(f"{what + ':':<26}{where.relative_to(ROOT)}", highlight=False, soft_wrap=True)
    return 1 if run.failures else 0


def show(console: Console, run: Replay, told: list[lines.Line], seconds: float) -> None:
    """Print what a replay told: what happened, what stands, why, and what to type.

    Parameters
    ----------
    console : Console
        Where to.
    run, told : Replay, list of Line
        The finished replay and its lines.
    seconds : float
        How long it took.
    """
    recording = run.recording
    console.print(
        f"\n[bold]{recording.cluster}[/], {recording.start:%A %d %B %Y, %H:%M} to "
        f"{recording.end:%H:%M} UTC\n{run.ticks} ticks, {run.invocations} invocations of the "
        f"functions, in {seconds:.1f} s\n",
        highlight=False,
    )
    console.print(_story(told))
    console.print()
    console.print(_standing(told[-1]))
    console.print()
    _reasons(console, told[-1])
    _commands(console, told[-1])


def _story(told: list[lines.Line]) -> Table:
    table = _table("What happened", "at", "what")
    for line in told:
        if line["type"] == "finding":
            firing = line["status"] == "firing"
            if line["resolution"] == "reason_changed":
                continue  # the row of its new reason says so
            word = _severity(line) if firing else "[green]resolved[/]"
            reason = line["reason"] if firing else line["resolution"]
            table.add_row(_clock(line), word, *_facts(line, reason))
        elif line["type"] == "unknown":
            word = "[dim]known[/]" if line.get("ended") else _UNKNOWN
            table.add_row(_clock(line), word, *_unjudged(line))
        elif line["type"] == "failure":
            table.add_row(_clock(line), "[red]failed[/]", line["function"], "", "", "", "", "")
    return table


def _standing(summary: lines.Line) -> Table:
    table = _table("What stands at the end", "since", "what")
    for line in summary["open"]:
        since = datetime.fromisoformat(line["since"])
        table.add_row(f"{since:%a %H:%M}", _severity(line), *_facts(line, line["reason"]))
    for line in summary["unknown"]:
        table.add_row("", _UNKNOWN, *_unjudged(line))
    slack = summary["slack"]
    table.caption = (
        f"Slack: {slack['posts']} posts, {slack['updates']} edits. "
        f"Failed invocations: {summary['failures']}."
    )
    return table


def _reasons(console: Console, summary: lines.Line) -> None:
    told = [(line["subject"], _why(line)) for line in summary["open"]]
    told = [(subject, why) for subject, why in told if why]
    if told:
        console.print("[italic]Why[/]")
    for subject, why in told:
        console.print(f"[bold]{_short(subject)}[/]", highlight=False)
        console.print(Padding(Text(why), (0, 0, 0, 2)))
    if told:
        console.print()


def _why(line: lines.Line) -> str:
    """Say in a sentence or two what the evidence says; empty where the reason says it all."""
    evidence = line["evidence"]
    match line["detector"]:
        case "pending":
            return str(evidence["sentence"])
        case "borrowing":
            return _borrowing(evidence)
        case "preemptions":
            return _preemptions(evidence)
    return ""


def _borrowing(evidence: dict[str, Any]) -> str:
    limit = evidence["limit"]
    most = "without a limit" if limit is None else f"and may borrow {limit:g}"
    said = [f"Borrows {evidence['borrowed']:g} {evidence['resource']}, {most}."]
    lenders = [
        f"{one['team'] or one['queue'] or one['cohort']} {one['idle']:g}"
        for one in evidence["lenders"]
    ]
    said.append(f"Others could still lend: {', '.join(lenders) or 'none'}.")
    admits = [_short(one["subject"]) for one in evidence["admits"]]
    if admits and evidence["raise_by"]:
        said.append(f"A limit higher by {evidence['raise_by']:g} would admit {', '.join(admits)}.")
    return " ".join(said)


def _preemptions(evidence: dict[str, Any]) -> str:
    days = evidence["period_hours"] / 24
    causes = ", ".join(f"{count} {name}" for name, count in evidence["causes"].items())
    said = [f"Preempted {evidence['count']} times in {days:g} days ({causes})."]
    if evidence["lost_gpu_hours"] is not None:
        least = "at least " if evidence["lost_at_least"] else ""
        said.append(f"It lost {least}{evidence['lost_gpu_hours']:,.1f} GPU-hours.")
    return " ".join([*said, f"Checkpoint: {evidence['checkpoint']}."])


def _commands(console: Console, summary: lines.Line) -> None:
    if summary["open"]:
        console.print("[italic]What to type[/]")
    for line in summary["open"]:
        console.print(f"[bold]{_short(line['subject'])}[/]", highlight=False)
        console.print(f"  {line['action']}", highlight=False, markup=False, soft_wrap=True)


def _table(title: str, *first: str) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        caption_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        header_style="bold underline",
    )
    for name in (*first, "about", "team", "reason"):
        table.add_column(name, overflow="fold")
    for name in ("GPUs", "GPU-h", "cost"):
        table.add_column(name, overflow="fold", justify="right")
    return table


def _severity(line: lines.Line) -> str:
    colour = {"page": "red", "warn": "yellow"}.get(line["severity"], "cyan")
    return f"[{colour}]{line['severity']}[/]"


def _facts(line: lines.Line, reason: str) -> tuple[str, ...]:
    hours, cost = line["gpu_hours"], line["cost_usd"]
    return (
        _short(line["subject"]),
        line["team"] or "-",
        reason,
        f"{line['gpus']:g}",
        "-" if hours is None else f"{hours:,.1f}",
        "-" if cost is None else f"${cost:,.0f}",
    )


def _unjudged(line: lines.Line) -> tuple[str, ...]:
    return (_short(line["subject"]), line["team"] or "-", line["reason"])


def _short(subject: str) -> str:
    """Leave kind and namespace out: the team stands beside it, the full subject in the lines.

    Of a quota its resource is left: `ClusterQueue/<name>/<flavor>/<resource>`.
    """
    kind, _, rest = subject.partition("/")
    return rest.split("/", 2)[-1] if kind == "ClusterQueue" else rest.rpartition("/")[2]


def _clock(line: lines.Line) -> str:
    return str(line["at"][11:16])


def _preview(run: Replay) -> Path:
    cluster = load_policy(run.recording).clusters[0]
    channels: dict[str, Any] = {cluster.platform_channel.id: cluster.platform_channel.name}
    channels |= {t.channel.id: t.channel.name for t in cluster.teams if t.channel}
    title = f"GPU Steward on {run.recording.cluster}"
    messages = cast("list[preview.Message]", run.rig.slack.messages)
    return preview.render(messages, channels, title, OUT / "preview.html")


if __name__ == "__main__":
    sys.exit(main())
