"""Since when and until when a job has shown a suspected hang: asks only for those that need it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.accelerators import IdleSince
from steward.cluster.hanging import Sign, find, watts_max
from steward.cluster.hangs import disproved, showing
from steward.cluster.judging import Judged
from steward.cluster.memory import IdleStretch, Memory
from steward.cluster.policy import ClusterPolicy, Scope, Thresholds
from steward.cluster.snapshot import IdleEnd
from steward.ports import Signal
from steward.usecases import raw_samples
from steward.usecases.hang_samples import Bounds, Run, by_device, quiet, rest, run, trace
from steward.usecases.raw_samples import (
    Handovers,
    device_of,
    longest_gap,
    observed,
    observed_since,
    remembered_device,
    samples_in,
)

if TYPE_CHECKING:
    from steward.ports import DeviceName, MetricsReader, Samples

    type Answers = Mapping[DeviceName, Mapping[Signal, Samples]]

SIGNALS = (Signal.ACTIVITY, Signal.TENSOR, Signal.POWER)


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job that shows a hang, and what is remembered of its accelerators."""

    shown: tuple[Judged, ...]
    known: dict[str, IdleStretch]

    @property
    def turn(self) -> tuple[bool, float]:
        """Tell when it is looked up; as :func:`raw_samples.turn`."""
        turns = (raw_samples.turn(stretch) for stretch in self.known.values())
        return min(turns, default=raw_samples.turn(None))

    def reach(self, end: datetime) -> timedelta:
        """Tell how far back has to be looked; what is known for certain is not looked up again."""
        spans = (
            end - stretch.since + timedelta(seconds=1)
            if (stretch := self.known.get(one.accelerator.key)) and stretch.exact
            else raw_samples.life(one.accelerator, end)
            for one in self.shown
        )
        return min(max(spans), raw_samples.LOOK_BACK)


def hang_beginnings(
    jobs: Iterable[Sequence[Judged]],
    memory: Memory,
    cluster: ClusterPolicy,
    metrics: MetricsReader,
    end: datetime,
) -> dict[str, IdleSince]:
    """Find where the hangs began that the memory does not know, by accelerator key.

    Raises
    ------
    StewardError
        What the metrics source raised.
    """
    wanted: list[_Job] = []
    span, count = timedelta(0), 0
    for job in _to_look_up(jobs, memory, cluster, end):
        # One query has one range: every series in it is fetched over the longest span.
        longest, size = max(span, job.reach(end)), count + len(job.shown)
        room = raw_samples.SAMPLE_BUDGET // (len(SIGNALS) * size)
        if samples_in(longest, cluster) > room:
            if wanted:
                break
            longest = _shortened(job.shown, room, cluster)
        wanted.append(job)
        span, count = longest, size
    if not wanted:
        return {}
    names = [device_of(one.accelerator) for job in wanted for one in job.shown]
    answers = by_device(metrics.samples(end, span.total_seconds(), names, SIGNALS))
    return {
        key: since for job in wanted for key, since in _begun(job, answers, end - span, cluster)
    }


def _to_look_up(
    jobs: Iterable[Sequence[Judged]], memory: Memory, cluster: ClusterPolicy, end: datetime
) -> list[_Job]:
    """Find the jobs that have to be asked for; those that nothing is known of first."""
    running = memory.running_hangs()
    found = []
    for judged in jobs:
        shown = showing(judged, running)
        known = {k: running[k] for one in shown if (k := one.accelerator.key) in running}
        if not all(_followed(one, known, cluster, end) for one in shown):
            found.append(_Job(shown=shown, known=known))
    return sorted(found, key=lambda job: job.turn)


def _shortened(shown: Sequence[Judged], room: int, cluster: ClusterPolicy) -> timedelta:
    """Give the span that the budget has room for, but never less than the window."""
    fits = timedelta(seconds=room * cluster.metrics.scrape_interval_seconds)
    return max(fits, timedelta(minutes=shown[0].thresholds.hang.window_minutes))


def _followed(
    one: Judged, known: Mapping[str, IdleStretch], cluster: ClusterPolicy, end: datetime
) -> bool:
    stretch = known.get(one.accelerator.key)
    minutes = one.thresholds.hang.window_minutes
    accelerator = one.accelerator
    each = (accelerator.windows, accelerator.tensor, accelerator.power)
    windows = [find(signal, minutes) for signal in each]
    return stretch is not None and raw_samples.seen_through(
        stretch, windows, _gap(one.thresholds, cluster), cluster, end
    )


def _begun(
    job: _Job, answers: Answers, looked_from: datetime, cluster: ClusterPolicy
) -> Iterator[tuple[str, IdleSince]]:
    """Give each accelerator its part of the hang, which begins once all of the job show it."""
    runs: dict[str, Run] = {}
    for one in job.shown:
        born = one.accelerator.holder.since
        traced = trace(answers.get(device_of(one.accelerator), {}), _bounds(one), born)
        found = run(traced, _gap(one.thresholds, cluster), from_birth=looked_from <= born)
        if found is None:
            return  # nothing can be said of the job; its windows still speak
        runs[one.accelerator.key] = found
    known = job.known
    if any(runs[key].times[0] > stretch.last for key, stretch in known.items()):
        known = {}  # one that worked unseen has ended it for all
    for one in job.shown:
        key = one.accelerator.key
        since, exact = _since(key, runs, known)
        times = [when for when in runs[key].times if when >= since]
        before = known.get(key)
        if before and exact and not before.exact:
            before = None  # its beginning is found: all that was only assumed is measured
        if times:
            gap = _gap(one.thresholds, cluster)
            seconds = observed_since(times, gap, before)
            first, last = times[0], times[-1]
            yield key, IdleSince(first=first, last=last, exact=exact, observed_seconds=seconds)


def _since(
    key: str, runs: Mapping[str, Run], known: Mapping[str, IdleStretch]
) -> tuple[datetime, bool]:
    """Tell since when an accelerator is part of its job's hang, and whether that is for certain.

    It began once all that it was seen on showed it; what joined since is part of it from then on.
    """
    if (before := known.get(key)) and before.exact:
        return before.since, True
    if known and before is None:
        own = runs[key]
        return max(own.times[0], min(stretch.since for stretch in known.values())), own.exact
    open_ = [run for k, run in runs.items() if not known or (k in known and not known[k].exact)]
    latest = max(open_, key=lambda r: (r.times[0], r.exact))
    return latest.times[0], latest.exact


def hangs_over(
    jobs: Mapping[str, Sequence[Judged]], held: Collection[str], memory: Memory
) -> dict[str, list[IdleStretch]]:
    """Find the remembered hangs that a job does not show any more, by subject.

    Parameters
    ----------
    jobs : mapping of str to sequence of Judged
        Accelerators now, by subject.
    held : collection of str
        Their keys.
    memory : Memory
        Hangs so far.
    """
    over: dict[str, list[IdleStretch]] = {}
    for incident in memory.hangs:
        told = disproved(jobs.get(incident.subject, ()))
        stretches = [s for s in incident.running if told or s.key not in held]
        if stretches:
            over[incident.subject] = stretches
    return over


def hang_ends(
    over: Mapping[str, Sequence[IdleStretch]],
    held: Mapping[str, Judged],
    handovers: Handovers,
    cluster: ClusterPolicy,
    answers: Answers,
) -> Iterator[IdleEnd]:
    """Find the last sample that showed each hang that is over."""
    for subject, stretches in over.items():
        until = {s.key: handovers.given_up(s, subject) for s in stretches}
        yield from _ended(stretches, held, until, answers, cluster)


def _ended(
    stretches: Sequence[IdleStretch],
    held: Mapping[str, Judged],
    until: Mapping[str, datetime | None],
    answers: Answers,
    cluster: ClusterPolicy,
) -> Iterator[IdleEnd]:
    """Follow the stretches of one job to the first sample of any of them that shows work."""
    thresholds = {s.key: _thresholds(held.get(s.key), s, cluster) for s in stretches}
    traces = {
        s.key: trace(
            answers.get(remembered_device(s), {}),
            _remembered(s, held.get(s.key), thresholds[s.key]),
        )
        for s in stretches
    }
    work = [next((t for t in traces[s.key].work if t > s.last), None) for s in stretches]
    cut = min((when for when in work if when is not None), default=None)
    still = cut is not None and all(
        quiet(traces[s.key], cut, thresholds[s.key].idle.activity_max)
        for s in stretches
        if s.key in held
    )
    for s in stretches:
        gap = _gap(thresholds[s.key], cluster)
        more = rest(traces[s.key], s.last, gap, before=cut, until=until[s.key])
        times = [s.last, *more]
        yield IdleEnd(
            key=s.key,
            last=times[-1],
            observed_seconds=observed(times, gap),
            counted_seconds=s.observed_seconds,
            quiet=still,
        )


def _bounds(one: Judged) -> Bounds:
    """Believe what supports the suspicion now."""
    limits = one.thresholds.hang
    return Bounds(
        activity_min=limits.activity_min,
        tensor_max=limits.tensor_max if one.signs.tensor is Sign.SUPPORTS else None,
        watts_max=watts_max(one.accelerator, limits) if one.signs.power is Sign.SUPPORTS else None,
    )


def _remembered(stretch: IdleStretch, one: Judged | None, thresholds: Thresholds) -> Bounds:
    """Believe what has shown the hang, and what speaks now, for or against it."""
    limits = thresholds.hang
    tensor = stretch.tensor or (one is not None and one.signs.tensor is not Sign.SILENT)
    watts = stretch.watts_max
    if watts is None and one is not None and one.signs.power is not Sign.SILENT:
        watts = watts_max(one.accelerator, limits)
    return Bounds(
        activity_min=limits.activity_min,
        tensor_max=limits.tensor_max if tensor else None,
        watts_max=watts,
    )


def _thresholds(one: Judged | None, stretch: IdleStretch, cluster: ClusterPolicy) -> Thresholds:
    if one is not None:
        return one.thresholds
    team = cluster.team_of(stretch.namespace)
    return cluster.limits(Scope(team=team.name if team else None, namespace=stretch.namespace))


def _gap(thresholds: Thresholds, cluster: ClusterPolicy) -> timedelta:
    interval = cluster.metrics.scrape_interval_seconds
    return longest_gap(thresholds.hang.window_minutes, thresholds.idle.coverage_min, interval)
