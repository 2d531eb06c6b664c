"""A day of 41 production GPU pods, replayed, against a few lines of arithmetic on the trace itself.

The trace (Alibaba cluster-trace-v2026-GenAI, GPU duty cycle) is read from a folder beside the
checkout and is not part of the project; without it the test skips and says so.
"""

import csv
import gzip
import os
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.replay import ROOT, replay
from tests.recordings import RecordedPod, job_subject, write_recording

TRACES = Path(os.environ.get("GPU_STEWARD_TRACES", ROOT.parent / "shared" / "traces"))
TRACE = TRACES / "gpu-duty-cycle.csv.gz"

pytestmark = pytest.mark.skipif(
    not TRACE.is_file(), reason=f"{TRACE}: not there; set GPU_STEWARD_TRACES to its folder"
)


def number(text):
    """A value of the trace; some are blank."""
    return float(text) if text else None


def trace():
    """Pod to its rows (time, duty cycle in percent, memory in bytes)."""
    pods = defaultdict(list)
    with gzip.open(TRACE, "rt") as file:
        for row in csv.DictReader(file):
            when = datetime.fromtimestamp(int(row["unix_seconds"]), UTC)
            duty, held = row["gpu_duty_cycle_percent"], row["gpu_memory_used_bytes"]
            pods[row["pod"]].append((when, number(duty), number(held)))
    return dict(pods)


def recorded(pods, last):
    found = []
    for number, (name, rows) in enumerate(sorted(pods.items())):
        uuid = f"GPU-{name}"
        end = rows[-1][0]
        found.append(
            RecordedPod(
                name=name,
                node=number // 8,
                start=rows[0][0],
                end=end + timedelta(minutes=1) if end < last - timedelta(minutes=5) else None,
                samples={uuid: [(t, duty) for t, duty, _ in rows if duty is not None]},
                held_mib={uuid: [(t, held / 2**20) for t, _, held in rows if held is not None]},
            )
        )
    return found


def verdict(pod, rows, tick):
    """The contract's table, on the CSV: 60 minutes, 1 %, 80 % of 60 samples, 1 GiB."""
    end = tick - timedelta(minutes=2)
    start = end - timedelta(minutes=60)
    if pod.start > tick or (pod.end and pod.end <= tick):
        return None  # not there
    if pod.start > start:
        return "young"
    duties = [duty for t, duty, _ in rows if start < t <= end and duty is not None]
    if len(duties) < 48:
        return "unknown"
    if max(duties) > 1:
        return "busy"
    held = [held for t, _, held in rows if start < t <= end and held is not None]
    return "idle_held" if held and held[-1] >= 2**30 else "idle"


def said(evaluation, pod):
    subject = job_subject(pod)
    reasons = [f.reason for f in evaluation.findings if f.subject == subject]
    if any(u.subject == subject for u in evaluation.unknown):
        return "unknown"
    return reasons[0] if reasons else "busy or young or gone"


def test_every_verdict_of_a_real_day_is_what_the_trace_says(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("METRICS", "recorded")
    rows = trace()
    assert len(rows) == 41
    first = min(r[0][0] for r in rows.values())
    last = max(r[-1][0] for r in rows.values())
    pods = recorded(rows, last)
    folder = write_recording(tmp_path, pods, first, last, tick="10m", nodes=6)

    told = []
    run = replay(folder, told.append)

    assert run.failures == 0
    compared = 0
    tick = first
    while tick <= last:
        key = run.app.evaluations.find("ml-shared-01", tick)
        evaluation = run.app.evaluations.get(key)
        for pod in pods:
            truth = verdict(pod, rows[pod.name], tick)
            expected = (
                truth if truth in {"idle", "idle_held", "unknown"} else "busy or young or gone"
            )
            assert said(evaluation, pod) == expected, (pod.name, tick, truth)
            compared += 1
        tick += timedelta(minutes=10)
    ever = Counter()
    for pod in pods:
        seen = {verdict(pod, rows[pod.name], first + n * timedelta(minutes=10)) for n in range(137)}
        ever.update(seen)
    at_end = Counter(verdict(pod, rows[pod.name], last) for pod in pods)
    opened = [d for d in told if d["type"] == "finding" and d["status"] == "firing"]
    with capsys.disabled():
        print(f"\n{compared} verdicts equal; pods that ever were: {dict(ever)}")
        print(f"at the end of the trace: {dict(at_end)}; findings opened: {len(opened)}")
    # A stretch that opened is counted from the first idle sample of the trace itself.
    by_subject = {job_subject(pod): pod for pod in pods}
    for line in (d for d in opened if d["detector"] == "idle_gpus"):
        pod = by_subject[line["subject"]]
        end = datetime.fromisoformat(line["at"]) - timedelta(minutes=2)
        since = None
        for when, duty, _ in reversed(
            [r for r in rows[pod.name] if r[0] <= end and r[1] is not None]
        ):
            if duty > 1:
                break
            since = when
        assert line["since"] == since.strftime("%Y-%m-%dT%H:%M:%SZ"), line["subject"]
