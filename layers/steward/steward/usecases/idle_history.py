"""Since when and until when accelerators have been idle, or hung: looks back only where it must."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steward.cluster.accelerators import Accelerator, IdleSince, State
from steward.cluster.judging import Judged, by_subject, judge_all
from steward.cluster.memory import IdleStretch, Memory
from steward.cluster.policy import ClusterPolicy, IdleLimits, Scope
from steward.cluster.snapshot import IdleEnd
from steward.ports import Signal
from steward.usecases import raw_samples
from steward.usecases.hang_history import SIGNALS, hang_beginnings, hang_ends, hangs_over
from steward.usecases.hang_samples import by_device
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
    from steward.cluster.kueue import Workload
    from steward.ports import DeviceName, MetricsReader, Samples


def find_beginnings(
    accelerators: Sequence[Accelerator],
    memory: Memory,
    cluster: ClusterPolicy,
    metrics: MetricsReader,
    end: datetime,
) -> tuple[Accelerator, ...]:
    """Find where the stretches began that the memory does not know.

    Parameters
    ----------
    accelerators : sequence of Accelerator
        Every allocated one.
    memory : Memory
        Running stretches; one whose beginning is only "at least", or that no window followed to
        its end (ticks were missed, or are further apart than a window), is looked up again.
    cluster : ClusterPolicy
        Limits by holder.
    metrics : MetricsReader
        Asked at most twice, for idleness and for hangs, and only for these accelerators.
    end : datetime
        End of the detection window.

    Returns
    -------
    tuple of Accelerator
        The same, with `idle_since` and `hung_since` where they were found.

    Raises
    ------
    StewardError
        What the metrics source raised; the caller decides to go on without.
    """
    subjects = memory.subjects()
    judged = judge_all(accelerators, cluster, end, subjects, readable=True)
    idle = _idle_beginnings(judged, memory, cluster, metrics, end)
    jobs = by_subject(judged, subjects).values()
    hung = hang_beginnings(jobs, memory, cluster, metrics, end)
    if not idle and not hung:
        return tuple(accelerators)
    return tuple(
        replace(one, idle_since=idle.get(one.key), hung_since=hung.get(one.key))
        for one in accelerators
    )


def _idle_beginnings(
    judged: Iterable[Judged],
    memory: Memory,
    cluster: ClusterPolicy,
    metrics: MetricsReader,
    end: datetime,
) -> dict[str, IdleSince]:
    known = memory.running_stretches()
    wanted: dict[DeviceName, Judged] = {}
    span = timedelta(0)
    for one in sorted(judged, key=lambda one: raw_samples.turn(known.get(one.accelerator.key))):
        accelerator = one.accelerator
        stretch = known.get(accelerator.key)
        if accelerator.uuid is None or not one.verdict.idle:
            continue
        window = accelerator.window(one.limits.window_minutes)
        if stretch and raw_samples.seen_through(
            stretch, [window], _gap(one.limits, cluster), cluster, end
        ):
            continue
        # One query has one range: every series in it is fetched over the longest span.
        longest = max(span, raw_samples.life(accelerator, end))
        samples = (len(wanted) + 1) * samples_in(longest, cluster)
        if wanted and samples > raw_samples.SAMPLE_BUDGET:
            break
        span = longest
        wanted[device_of(accelerator)] = one
    if not wanted:
        return {}
    begun = {}
    for series in metrics.samples(end, span.total_seconds(), list(wanted)):
        one = wanted[series.device]
        key = one.accelerator.key
        gap = _gap(one.limits, cluster)
        found = beginning(
            series, one.accelerator, one.limits, end - span, gap=gap, known=known.get(key)
        )
        if found:
            begun[key] = found
    return begun


def beginning(
    series: Samples,
    accelerator: Accelerator,
    limits: IdleLimits,
    looked_from: datetime,
    *,
    gap: timedelta,
    known: IdleStretch | None = None,
) -> IdleSince | None:
    """Find the idle stretch that a series ends with, no earlier than its holder.

    Parameters
    ----------
    looked_from : datetime
        Since when there would be samples.
    gap : timedelta
        The longest that counts as idle.
    known : IdleStretch or None
        What is remembered of it.

    Returns
    -------
    IdleSince or None
        None where the newest sample is not idle. Exact where an active sample or the holder's own
        start bounds it; else it began at or before the first sample that could be seen.
    """
    born = accelerator.holder.since
    points = [(t, v) for t, v in zip(series.times, series.values, strict=True) if t >= born]
    idle: list[datetime] = []
    bounded = looked_from <= born
    for when, value in reversed(points):
        if value > limits.activity_max:
            bounded = True
            break
        idle.append(when)
    if not idle:
        return None
    idle.reverse()
    return IdleSince(
        first=idle[0],
        last=idle[-1],
        exact=bounded,
        observed_seconds=observed_since(idle, gap, None if bounded else known),
    )


def find_ends(
    accelerators: Sequence[Accelerator],
    workloads: Iterable[Workload],
    memory: Memory,
    cluster: ClusterPolicy,
    metrics: MetricsReader,
    now: datetime,
) -> tuple[IdleEnd, ...]:
    """Find the last sample of every remembered stretch that does not show any more.

    Looks past the end of the windows, up to `now`: no later tick will count the last minutes of
    what is over.

    Raises
    ------
    StewardError
        What the metrics source raised; the caller goes on without.
    """
    subjects = memory.subjects()
    judged = judge_all(accelerators, cluster, cluster.window_end(now), subjects, readable=True)
    held = {one.accelerator.key: one for one in judged}
    idle = _idle_over(held, memory)
    hangs = hangs_over(by_subject(judged, subjects), held.keys(), memory)
    over = [*idle, *(stretch for stretches in hangs.values() for stretch in stretches)]
    if not over:
        return ()
    # One query for both, over what the longest of them needs.
    span = now - min(stretch.last for stretch in over) + timedelta(seconds=1)
    if hangs:  # what shows that one goes on may lie before its last sample
        span += timedelta(minutes=max(cluster.hang_windows()))
    seconds = min(span, raw_samples.LOOK_BACK).total_seconds()
    devices = list(dict.fromkeys(map(remembered_device, over)))
    signals = SIGNALS if hangs else (Signal.ACTIVITY,)
    answers = by_device(metrics.samples(now, seconds, devices, signals))
    handovers = Handovers(accelerators, workloads)
    ends = []
    for stretch in idle:
        series = answers[remembered_device(stretch)][Signal.ACTIVITY]
        limits = _limits(held.get(stretch.key), stretch, cluster)
        until = handovers.given_up(stretch, subjects[stretch.key])
        ends.append(ending(series, stretch, limits, until, gap=_gap(limits, cluster)))
    return (*ends, *hang_ends(hangs, held, handovers, cluster, answers))


def _idle_over(held: Mapping[str, Judged], memory: Memory) -> list[IdleStretch]:
    """Find the remembered idle stretches that do not show any more."""
    over = []
    for key, stretch in memory.running_stretches().items():
        one = held.get(key)
        active = one is None or one.verdict.state in {State.BUSY, State.SUSPECTED_HANG}
        if stretch.uuid is not None and active:
            over.append(stretch)
    return over


def ending(
    series: Samples,
    stretch: IdleStretch,
    limits: IdleLimits,
    given_up: datetime | None,
    *,
    gap: timedelta,
) -> IdleEnd:
    """Follow a remembered stretch to its last idle sample.

    Parameters
    ----------
    series : Samples
        From the stretch's last known sample on.
    given_up : datetime or None
        When the job finished, or another pod took the device: an exporter goes on naming a pod for
        a while after its end, and a pod may return under the same name.
    gap : timedelta
        The longest that counts as idle.
    """
    last = stretch.last
    idle = [last]
    for when, value in zip(series.times, series.values, strict=True):
        if when <= last:
            continue
        if value > limits.activity_max or (given_up is not None and when > given_up):
            break
        idle.append(when)
    return IdleEnd(
        key=stretch.key,
        last=idle[-1],
        observed_seconds=observed(idle, gap),
        counted_seconds=stretch.observed_seconds,
    )


def _limits(one: Judged | None, stretch: IdleStretch, cluster: ClusterPolicy) -> IdleLimits:
    if one is not None:
        return one.limits
    team = cluster.team_of(stretch.namespace)
    scope = Scope(team=team.name if team else None, namespace=stretch.namespace)
    return cluster.limits(scope).idle


def _gap(limits: IdleLimits, cluster: ClusterPolicy) -> timedelta:
    interval = cluster.metrics.scrape_interval_seconds
    return longest_gap(limits.window_minutes, limits.coverage_min, interval)
