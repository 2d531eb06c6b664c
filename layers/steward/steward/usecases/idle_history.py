"""Since when and until when an accelerator has been idle: looks back only for those that need it."""

from collections.abc import Iterable, Mapping, Sequence
from copy import replace
from datetime import datetime, timedelta
from itertools import pairwise

from steward.cluster.accelerators import Accelerator, IdleSince, State, judge
from steward.cluster.judging import limits_of
from steward.cluster.kueue import Workload
from steward.cluster.memory import IdleStretch, Memory
from steward.cluster.policy import ClusterPolicy, IdleLimits, Scope
from steward.cluster.snapshot import IdleEnd
from steward.ports import DeviceName, MetricsReader, Samples

LOOK_BACK = timedelta(days=7)
"""How far back the beginning of an idle stretch is looked for."""

SAMPLE_BUDGET = 500_000
"""Raw samples that one look-back may fetch; accelerators beyond it wait for the next tick."""


def find_beginnings(
    accelerators: Sequence[Accelerator],
    memory: Memory,
    cluster: ClusterPolicy,
    metrics: MetricsReader,
    end: datetime,
) -> tuple[Accelerator, ...]:
    """Find where the idle stretches began that the memory does not know.

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
        Asked once, and only for these accelerators.
    end : datetime
        End of the detection window.

    Returns
    -------
    tuple of Accelerator
        The same, with `idle_since` where it was found.

    Raises
    ------
    StewardError
        What the metrics source raised; the caller decides to go on without.
    """
    known = memory.running_stretches()
    wanted: dict[DeviceName, Accelerator] = {}
    span = timedelta(0)
    for accelerator in accelerators:
        limits = limits_of(accelerator, cluster)
        stretch = known.get(accelerator.key)
        if accelerator.uuid is None or (
            stretch and _seen_through(stretch, accelerator, cluster, end)
        ):
            continue
        if not judge(accelerator, limits, end, readable=True).idle:
            continue
        # One query has one range: every series in it is fetched over the longest span.
        longest = max(span, _span(accelerator, end))
        if wanted and (len(wanted) + 1) * _samples_in(longest, cluster) > SAMPLE_BUDGET:
            break
        span = longest
        wanted[_name(accelerator)] = accelerator
    if not wanted:
        return tuple(accelerators)
    answers = {
        series.device: series for series in metrics.samples(end, span.total_seconds(), list(wanted))
    }
    since = {
        wanted[device].key: found
        for device, series in answers.items()
        if (
            found := beginning(
                series, wanted[device], limits_of(wanted[device], cluster), end - span
            )
        )
    }
    return tuple(
        replace(accelerator, idle_since=since.get(accelerator.key)) for accelerator in accelerators
    )


def beginning(
    series: Samples, accelerator: Accelerator, limits: IdleLimits, looked_from: datetime
) -> IdleSince | None:
    """Find the idle stretch that a series ends with, no earlier than its holder.

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
        first=idle[0], last=idle[-1], exact=bounded, observed_seconds=_observed(idle, limits)
    )


def find_ends(
    accelerators: Iterable[Accelerator],
    workloads: Iterable[Workload],
    memory: Memory,
    cluster: ClusterPolicy,
    metrics: MetricsReader,
    now: datetime,
) -> tuple[IdleEnd, ...]:
    """Find the last idle sample of every remembered stretch that is not idle any more.

    Looks past the end of the windows, up to `now`: no later tick will count the last minutes of
    what is over.

    Raises
    ------
    StewardError
        What the metrics source raised; the caller goes on without.
    """
    running = memory.running_stretches()
    held = {accelerator.key: accelerator for accelerator in accelerators}
    end = cluster.window_end(now)
    gone: dict[DeviceName, IdleStretch] = {}
    for key, stretch in running.items():
        accelerator = held.get(key)
        if stretch.uuid is None:
            continue
        if accelerator is not None:
            verdict = judge(accelerator, limits_of(accelerator, cluster), end, readable=True)
            if verdict.state is not State.BUSY:
                continue
        device = DeviceName(
            namespace=stretch.namespace, pod=stretch.pod, uuid=stretch.uuid, mig=stretch.mig
        )
        gone[device] = stretch
    if not gone:
        return ()
    span = now - min(stretch.last for stretch in gone.values()) + timedelta(seconds=1)
    answers = metrics.samples(now, min(span, LOOK_BACK).total_seconds(), list(gone))
    finished = _finished(workloads)
    taken = {(a.uuid, a.mig): a.holder.since for a in held.values()}
    subjects = {s.key: incident.subject for incident in memory.idle for s in incident.stretches}
    ends = []
    for series in answers:
        stretch = gone[series.device]
        limits = _limits(held.get(stretch.key), stretch, cluster)
        until = [finished.get(subjects[stretch.key])]
        if stretch.key not in held:
            until.append(taken.get((stretch.uuid, stretch.mig)))
        given_up = min((when for when in until if when is not None), default=None)
        ends.append(ending(series, stretch, limits, given_up))
    return tuple(ends)


def _seen_through(
    stretch: IdleStretch, accelerator: Accelerator, cluster: ClusterPolicy, end: datetime
) -> bool:
    """Tell whether its beginning is known, and nothing between then and now went unseen.

    Where the window dropped samples the newest may be one of them, and after a gap that coverage
    refuses some of the time is nobody's: only raw samples tell. At a pace slower than that gap two
    ticks count as seen through, but never more than the window looked at.
    """
    limits = limits_of(accelerator, cluster)
    window = accelerator.window(limits.window_minutes)
    if window is None or window.invalid:
        return False
    pace = max(_longest_gap(limits), timedelta(minutes=2 * cluster.tick_minutes))
    unseen = min(pace, timedelta(minutes=limits.window_minutes))
    return stretch.exact and stretch.last >= end - unseen


def ending(
    series: Samples, stretch: IdleStretch, limits: IdleLimits, given_up: datetime | None
) -> IdleEnd:
    """Follow a remembered stretch to its last idle sample.

    Parameters
    ----------
    series : Samples
        From the stretch's last known sample on.
    given_up : datetime or None
        When the job finished, or another pod took the device: an exporter goes on naming a pod for
        a while after its end, and a pod may return under the same name.
    """
    last = stretch.last
    idle = [last]
    for when, value in zip(series.times, series.values, strict=True):
        if when <= last:
            continue
        if value > limits.activity_max or (given_up is not None and when > given_up):
            break
        idle.append(when)
    return IdleEnd(key=stretch.key, last=idle[-1], observed_seconds=_observed(idle, limits))


def _limits(
    accelerator: Accelerator | None, stretch: IdleStretch, cluster: ClusterPolicy
) -> IdleLimits:
    if accelerator is not None:
        return limits_of(accelerator, cluster)
    team = cluster.team_of(stretch.namespace)
    scope = Scope(team=team.name if team else None, namespace=stretch.namespace)
    return cluster.limits(scope).idle


def _observed(times: Sequence[datetime], limits: IdleLimits) -> float:
    """Add up the time that samples cover; nobody saw what lies in a gap that coverage refuses."""
    longest = _longest_gap(limits)
    steps = (later - earlier for earlier, later in pairwise(times))
    return sum(step.total_seconds() for step in steps if step <= longest)


def _longest_gap(limits: IdleLimits) -> timedelta:
    """Give the longest gap that a window may have and still carry a verdict."""
    return timedelta(minutes=round(limits.window_minutes * (1 - limits.coverage_min), 6))


def _finished(workloads: Iterable[Workload]) -> Mapping[str, datetime]:
    found = {}
    for workload in workloads:
        condition = workload.condition("Finished")
        if workload.owner and condition and condition.status and condition.since:
            found[workload.owner.subject] = condition.since
    return found


def _span(accelerator: Accelerator, end: datetime) -> timedelta:
    # Ranges are open on the left: a second more takes in a sample at the holder's very start.
    return min(end - accelerator.holder.since + timedelta(seconds=1), LOOK_BACK)


def _samples_in(span: timedelta, cluster: ClusterPolicy) -> int:
    return int(span.total_seconds() / cluster.metrics.scrape_interval_seconds)


def _name(accelerator: Accelerator) -> DeviceName:
    return DeviceName(
        namespace=accelerator.holder.namespace,
        pod=accelerator.holder.pod,
        uuid=accelerator.uuid or "",
        mig=accelerator.mig,
    )
