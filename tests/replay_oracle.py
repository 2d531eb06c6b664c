"""What a replay must say of GPUs and of their telemetry, worked out from the recording itself.

A second, slow and plain reading of the rules (the contract's defaults, `docs/detectors`, decision
0004): it walks over raw samples, one tick after the other, and shares no code with the steward.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from tests import replay_hang_oracle as hanging
from tests.recordings import RecordedPod, iso, job_subject
from tests.replay_hang_oracle import Gpu, Hang

DELAY = timedelta(minutes=2)
WINDOW = timedelta(minutes=60)
DAMPING = timedelta(minutes=10)
LOOK_BACK = timedelta(minutes=5)
"""No sample for so long, and too few of them, is telemetry lost: Prometheus' own look-back."""
OUTAGE = timedelta(minutes=12)
"""What 80 % coverage leaves of an hour: a longer gap refuses the verdict, and is not counted."""
ENOUGH = 48
"""80 % of the 60 samples that an hour should have."""
USD_PER_GPU_HOUR = 63.296 / 8
HELD_MIB = 1024.0

PATIENCE = timedelta(hours=4)
PAGE_FROM = 8
WORKS = ("busy", "suspected_hang")
"""States of which idleness is known to be over."""
UNKNOWN = ("telemetry_lost", "no_telemetry", "low_coverage", "invalid_samples")

type Points = Sequence[tuple[datetime, float]]
type Line = dict[str, Any]


def _valid(value: float) -> bool:
    return not math.isnan(value) and 0 <= value <= 100


@dataclass(frozen=True)
class Verdict:
    """One accelerator at one tick."""

    state: str
    """busy, idle, idle_held, suspected_hang or a reason why it is unknown."""


def idle_run(points: Points, pod: RecordedPod, until: datetime) -> list[datetime]:
    """Times of the valid idle samples up to `until` that no busy one interrupts, oldest first."""
    run: list[datetime] = []
    for when, value in points:
        if when > until or when < pod.start or not _valid(value):
            continue
        run = [*run, when] if value <= 1 else []
    return run


def hours(times: Sequence[datetime]) -> float:
    """Hours from the first to the last of these samples, without what lies in an outage."""
    spans = [b - a for a, b in pairwise(times)]
    return sum((s for s in spans if s <= OUTAGE), timedelta()).total_seconds() / 3600


def judge(points: Points, held: Points, end: datetime) -> Verdict:
    """Judge an accelerator by the samples in (end - 60 min, end]."""
    window = [(t, v) for t, v in points if end - WINDOW < t <= end]
    values = [v for _, v in window if _valid(v)]
    if len(values) < ENOUGH:
        if len(window) >= ENOUGH:
            return Verdict("invalid_samples")
        if not any(t <= end for t, _ in points):
            return Verdict("no_telemetry")
        recent = any(t > end - LOOK_BACK for t, _ in window)
        return Verdict("low_coverage" if recent else "telemetry_lost")
    if max(values) > 1:
        return Verdict("busy")
    memory = [v for t, v in held if end - WINDOW < t <= end and v >= 0]
    return Verdict("idle_held" if memory and memory[-1] >= HELD_MIB else "idle")


@dataclass
class Incident:
    """An open idle finding."""

    reason: str
    severity: str
    gpus: int
    seen: datetime
    since: datetime
    stretches: dict[str, dict[datetime, float]] = field(default_factory=lambda: defaultdict(dict))
    """Of each accelerator the hours of each idle stretch, by its first sample."""
    over: dict[str, str] = field(default_factory=dict)
    """Accelerators that are idle no more, and why."""
    shown: float = 0.0
    """GPU-hours at the last tick that showed it."""

    @property
    def spent(self) -> float:
        """GPU-hours, also of what woke up meanwhile."""
        return sum(sum(stretches.values()) for stretches in self.stretches.values())


class Oracle:
    """Walks over the ticks of one recording."""

    def __init__(
        self, pods: Sequence[RecordedPod], start: datetime, end: datetime, tick: timedelta
    ) -> None:
        self.pods = pods
        self.start, self.end, self.tick = start, end, tick
        self.lines: list[Line] = []
        self._open: dict[str, Incident] = {}
        self._hangs: dict[str, Hang] = {}
        self._unknown: dict[str, str] = {}
        self._seen_first: dict[str, datetime] = {}
        self._telemetry: dict[str, Line] = {}

    def predict(self) -> list[Line]:
        now = self.start
        while now <= self.end:
            self._at(now)
            now += self.tick
        return self.lines

    def _at(self, now: datetime) -> None:
        end = now - DELAY
        unknown: dict[str, str] = {}
        everything: dict[tuple[str, str], Verdict] = {}
        for pod in self.pods:
            subject = job_subject(pod)
            if pod.start > now or (pod.end and pod.end <= now):
                self._released(pod, now)
                self._follow(pod, now, {})
                continue
            verdicts = dict(self._judged(pod, end)) if pod.start <= end - WINDOW else {}
            verdicts = self._hanging(pod, now, verdicts)
            everything |= {(pod.name, device): v for device, v in verdicts.items()}
            self._follow(pod, now, verdicts)
            verdicts = self._doubted(pod, end, verdicts)
            if reason := unknown_reason(verdicts):
                unknown[subject] = reason
        self._tell_unknown(now, unknown)
        self._tell_telemetry(now, everything)

    @staticmethod
    def _judged(pod: RecordedPod, end: datetime) -> Iterator[tuple[str, Verdict]]:
        for device, points in pod.samples.items():
            yield device, judge(points, pod.held_mib.get(device, ()), end)
        for number in range(len(pod.samples), pod.gpus):
            yield f"unseen-{number}", Verdict("no_telemetry")

    def _hanging(
        self, pod: RecordedPod, now: datetime, verdicts: dict[str, Verdict]
    ) -> dict[str, Verdict]:
        """Follow a job's hang; one that shows it is not judged otherwise."""
        subject, end = job_subject(pod), now - DELAY
        hang = self._hangs.get(subject)
        if pod.start > end - hanging.WINDOW or not pod.samples:
            return verdicts
        gpus = {name: Gpu.of(pod, name) for name in pod.samples}
        told = [hanging.signs(gpu, end).hangs for gpu in gpus.values()]
        told += [None] * (pod.gpus - len(gpus))
        idle = any(v.state in {"idle", "idle_held"} for v in verdicts.values())
        if all(told) and not idle:
            self._hangs[subject] = hanging.show(hang, gpus, now, end)
            if hang is None:
                self._tell_hang(pod, now, "firing", None)
            return dict.fromkeys(gpus, Verdict("suspected_hang"))
        if hang is None:
            return verdicts
        if not idle and False not in told:
            hang.seen = now  # unknown: neither shown nor over
            return verdicts
        runs, cut = hanging.follow_to_the_end(hang, now, end, held=True)
        if idle:
            hang.runs = runs
            self._end_hang(pod, now, "reason_changed")
        elif hanging.quiet(hang, cut, now) and all(
            (name in verdicts and verdicts[name].state in UNKNOWN) or run[-1] > end - WINDOW
            for name, run in runs.items()
        ):
            hang.seen = now  # it rests, and its own window will tell
            hang.runs = runs
        elif now - hang.seen >= DAMPING:
            hang.runs = runs
            self._end_hang(pod, now, "active_again")
        return verdicts

    def _doubted(
        self, pod: RecordedPod, end: datetime, verdicts: dict[str, Verdict]
    ) -> dict[str, Verdict]:
        """Where nothing speaks against a hang that was seen, what does not show it is unknown."""
        if job_subject(pod) not in self._hangs:
            return verdicts
        gpus = {name: Gpu.of(pod, name) for name in pod.samples}
        told = {name: hanging.signs(gpu, end).hangs for name, gpu in gpus.items()}
        if False in told.values() or None not in told.values():
            return verdicts
        doubtful = {
            name: Verdict(hanging.why_unknown(gpus[name], end))
            for name, hangs in told.items()
            if hangs is None and (name not in verdicts or verdicts[name].state not in UNKNOWN)
        }
        return verdicts | doubtful

    def _released(self, pod: RecordedPod, now: datetime) -> None:
        hang = self._hangs.get(job_subject(pod))
        if hang:
            hang.runs, _ = hanging.follow_to_the_end(hang, now, now - DELAY, held=False)
            if now - hang.seen >= DAMPING:
                self._end_hang(pod, now, "released")

    def _end_hang(self, pod: RecordedPod, now: datetime, resolution: str) -> None:
        self._tell_hang(pod, now, "resolved", resolution)
        del self._hangs[job_subject(pod)]

    def _tell_hang(
        self, pod: RecordedPod, now: datetime, status: str, resolution: str | None
    ) -> None:
        hang = self._hangs[job_subject(pod)]
        self.lines.append(
            {
                "type": "finding",
                "at": iso(now),
                "status": status,
                "subject": job_subject(pod),
                "reason": "suspected_hang",
                "severity": "warn",
                "since": iso(hang.since),
                "gpus": pod.gpus,
                "gpu_hours": hang.spent,
                "cost_usd": hang.spent * USD_PER_GPU_HOUR,
                "resolution": resolution,
            }
        )

    def _follow(self, pod: RecordedPod, now: datetime, verdicts: dict[str, Verdict]) -> None:
        subject = job_subject(pod)
        idle = {d: v for d, v in verdicts.items() if v.state in {"idle", "idle_held"}}
        incident = self._open.get(subject)
        if incident:
            self._note_what_is_over(incident, pod, now, verdicts)
        if not idle:
            if incident and incident.over.keys() < incident.stretches.keys():
                incident.seen = now  # unknown: neither seen nor over
            elif incident and job_subject(pod) in self._hangs and verdicts:
                self._end(pod, now, "reason_changed")  # one reason at a time
            elif incident and now - incident.seen >= DAMPING:
                self._end(pod, now, how_it_ended(incident, pod, now))
            return
        reason = "idle_held" if all(v.state == "idle_held" for v in idle.values()) else "idle"
        if incident and incident.reason != reason:
            self._end(pod, now, "reason_changed")
            incident.reason = reason
        opening = subject not in self._open
        if incident is None:
            incident = Incident(reason, "warn", 0, now, now)
        runs = {device: idle_run(pod.samples[device], pod, now - DELAY) for device in idle}
        long = [d for d, run in runs.items() if run[-1] - run[0] > PATIENCE]
        truly = [device for device in long if idle[device].state == "idle"]
        incident.severity = "page" if len(truly) >= PAGE_FROM else "warn"
        incident.gpus = len(idle)
        incident.seen = now
        incident.since = min(incident.since, *(run[0] for run in runs.values()))
        for device, run in runs.items():
            incident.stretches[device][run[0]] = hours(run)
            incident.over.pop(device, None)
        incident.shown = incident.spent
        self._open[subject] = incident
        if opening:
            self._print(pod, now, "firing", None)

    @staticmethod
    def _note_what_is_over(
        incident: Incident, pod: RecordedPod, now: datetime, verdicts: dict[str, Verdict]
    ) -> None:
        """What works again, or is held no more, is counted to its last idle sample."""
        for device, stretches in incident.stretches.items():
            verdict = verdicts.get(device)
            if device in incident.over or (verdict and verdict.state not in WORKS):
                continue
            incident.over[device] = "active_again" if verdict else "released"
            newest = max(stretches)
            stretches[newest] = hours(full_stretch(pod, device, newest, now))

    def _end(self, pod: RecordedPod, now: datetime, resolution: str) -> None:
        self._print(pod, now, "resolved", resolution)
        del self._open[job_subject(pod)]

    def _print(self, pod: RecordedPod, now: datetime, status: str, resolution: str | None) -> None:
        incident = self._open[job_subject(pod)]
        # Memory held or not is known at ticks only: it was so for the last time at the tick before.
        known = resolution != "reason_changed" or incident.over.keys() == incident.stretches.keys()
        spent = incident.spent if known else incident.shown
        self.lines.append(
            {
                "type": "finding",
                "at": iso(now),
                "status": status,
                "subject": job_subject(pod),
                "reason": incident.reason,
                "severity": incident.severity,
                "since": iso(incident.since),
                "gpus": incident.gpus,
                "gpu_hours": spent,
                "cost_usd": spent * USD_PER_GPU_HOUR,
                "resolution": resolution,
            }
        )

    def _tell_unknown(self, now: datetime, unknown: dict[str, str]) -> None:
        for subject in sorted(self._unknown.keys() | unknown.keys()):
            before, after = self._unknown.get(subject), unknown.get(subject)
            if before == after:
                continue
            line = {"type": "unknown", "at": iso(now), "subject": subject}
            if before:
                self.lines.append(line | {"reason": before, "ended": True})
            if after:
                self.lines.append(line | {"reason": after, "ended": None})
        self._unknown = unknown

    def _tell_telemetry(self, now: datetime, everything: dict[tuple[str, str], Verdict]) -> None:
        named: dict[str, int] = defaultdict(int)
        for verdict in everything.values():
            if verdict.state in {"no_telemetry", "telemetry_lost"}:
                named[verdict.state] += 1
        # Impossible values are said whoever holds the device, old enough or not.
        end = now - DELAY
        for points in (points for pod in self.pods for points in pod.samples.values()):
            if any(end - WINDOW < t <= end and not _valid(v) for t, v in points):
                named["invalid_samples"] += 1
        had = sum(v.state != "no_telemetry" for v in everything.values())
        for reason in ("no_telemetry", "telemetry_lost", "invalid_samples"):
            if reason in named:
                whole = reason == "telemetry_lost" and named[reason] == had
                severity = "page" if whole else "warn" if reason == "no_telemetry" else "info"
                told = {"reason": reason, "severity": severity, "gpus": named[reason], "seen": now}
                self._see(reason, told, now)
            else:
                self._miss(reason, now)

    def _see(self, reason: str, told: Line, now: datetime) -> None:
        first = self._seen_first.setdefault(reason, now)
        if reason in self._telemetry:
            self._telemetry[reason] = told
        elif now - first >= DAMPING:
            self._telemetry[reason] = told
            self._say(told, now, "firing")

    def _miss(self, reason: str, now: datetime) -> None:
        line = self._telemetry.get(reason)
        if line is None:
            self._seen_first.pop(reason, None)
        elif now - line["seen"] >= DAMPING:
            self._say(line, now, "resolved")
            del self._telemetry[reason]
            del self._seen_first[reason]

    def _say(self, line: Line, now: datetime, status: str) -> None:
        told = {k: v for k, v in line.items() if k != "seen"}
        self.lines.append({"type": "telemetry", "at": iso(now), "status": status} | told)


def how_it_ended(incident: Incident, pod: RecordedPod, now: datetime) -> str:
    """Say what ended the stretch that went on for longest; work goes before release."""
    last = {
        device: full_stretch(pod, device, max(stretches), now)[-1]
        for device, stretches in incident.stretches.items()
    }
    newest = max(last.values())
    return min(why for device, why in incident.over.items() if last[device] == newest)


def full_stretch(pod: RecordedPod, device: str, since: datetime, until: datetime) -> list[datetime]:
    """Times of the idle samples from `since` up to the first busy one."""
    times = []
    for when, value in pod.samples[device]:
        if when < since or when > until or not _valid(value):
            continue
        if value > 1 or (pod.end and when >= pod.end):
            break
        times.append(when)
    return times


def unknown_reason(verdicts: dict[str, Verdict]) -> str | None:
    """Why a job has a line: what most of its accelerators suffer from, then the contract's order."""
    states = [v.state for v in verdicts.values()]
    counts = {reason: states.count(reason) for reason in UNKNOWN if reason in states}
    return max(counts, key=lambda reason: counts[reason], default=None)
