"""What looking back over raw samples has in common, whatever is looked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from steward.ports import DeviceName

if TYPE_CHECKING:
    from steward.cluster.accelerators import Accelerator, Window
    from steward.cluster.kueue import Workload
    from steward.cluster.memory import IdleStretch
    from steward.cluster.policy import ClusterPolicy

LOOK_BACK = timedelta(days=7)
"""How far back the beginning of a stretch is looked for."""

SAMPLE_BUDGET = 500_000
"""Raw samples that one look-back may fetch; what is beyond it waits for the next tick."""


def observed(times: Sequence[datetime], longest: timedelta) -> float:
    """Add up the time that samples cover; nobody saw what lies in a gap that coverage refuses."""
    steps = (later - earlier for earlier, later in pairwise(times))
    return sum(step.total_seconds() for step in steps if step <= longest)


def observed_since(
    times: Sequence[datetime], longest: timedelta, known: IdleStretch | None
) -> float:
    """Add up what a stretch has come to, also from before where a look back ends.

    Parameters
    ----------
    times : sequence of datetime
        Samples of it, as far back as was looked; at least one.
    longest : timedelta
        As for :func:`observed`.
    known : IdleStretch or None
        As remembered.
    """
    if known is None or not known.since < times[0] <= known.last:
        return observed(times, longest)
    after = (when for when in times if when > known.last)
    return known.observed_seconds + observed([known.last, *after], longest)


def longest_gap(window_minutes: int, coverage_min: float, interval_seconds: int = 60) -> timedelta:
    """Give the longest gap that a window may have and still carry a verdict.

    A window that may miss next to nothing still has its samples an interval apart, and one of them
    may be late.
    """
    missing = timedelta(minutes=round(window_minutes * (1 - coverage_min), 6))
    return max(missing, timedelta(seconds=2 * interval_seconds))


def seen_through(
    stretch: IdleStretch,
    windows: Iterable[Window | None],
    gap: timedelta,
    cluster: ClusterPolicy,
    end: datetime,
) -> bool:
    """Tell whether a stretch's beginning is known, and nothing between then and now went unseen.

    A beginning that lies further back than is looked will not be found by looking again.

    Where a window dropped samples the newest may be one of them, and after a gap that coverage
    refuses some of the time is nobody's: only raw samples tell. At a pace slower than that gap two
    ticks count as seen through, but never more than the window looked at.
    """
    looked = [window for window in windows if window]
    if not looked or any(window.invalid for window in looked):
        return False
    tick = timedelta(minutes=cluster.tick_minutes)
    pace = gap if gap >= tick else 2 * tick
    unseen = min(pace, timedelta(minutes=looked[0].minutes))
    begun = stretch.exact or stretch.since <= end - LOOK_BACK
    return begun and stretch.last >= end - unseen


def turn(known: IdleStretch | None) -> tuple[bool, float]:
    """Tell whose turn it is to be looked up: what nothing is known of, then what began last.

    What has been found to go back furthest is asked for again only after all others.
    """
    return (False, 0) if known is None else (True, -known.since.timestamp())


def life(accelerator: Accelerator, end: datetime) -> timedelta:
    """Give the span to look over: the holder's life, but no more than :data:`LOOK_BACK`."""
    # Ranges are open on the left: a second more takes in a sample at the holder's very start.
    return min(end - accelerator.holder.since + timedelta(seconds=1), LOOK_BACK)


def samples_in(span: timedelta, cluster: ClusterPolicy) -> int:
    """Count the samples that a series has in a span."""
    return int(span.total_seconds() / cluster.metrics.scrape_interval_seconds)


def device_of(accelerator: Accelerator) -> DeviceName:
    """Name what selects the series of an accelerator."""
    holder = accelerator.holder
    return DeviceName(
        namespace=holder.namespace,
        pod=holder.pod,
        uuid=accelerator.uuid or "",
        mig=accelerator.mig,
    )


def remembered_device(stretch: IdleStretch) -> DeviceName:
    """Name what selected the series of a remembered stretch."""
    return DeviceName(
        namespace=stretch.namespace, pod=stretch.pod, uuid=stretch.uuid or "", mig=stretch.mig
    )


class Handovers:
    """When jobs gave devices up: they finished, or another pod took the device.

    An exporter goes on naming a pod for a while after its end, and a pod may return under the same
    name.
    """

    def __init__(self, accelerators: Iterable[Accelerator], workloads: Iterable[Workload]) -> None:
        self._taken: dict[tuple[str | None, str | None], datetime] = {}
        self._held: set[str] = set()
        for accelerator in accelerators:
            self._held.add(accelerator.key)
            self._taken[accelerator.uuid, accelerator.mig] = accelerator.holder.since
        self._finished: dict[str, list[datetime]] = defaultdict(list)
        for workload in workloads:
            condition = workload.condition("Finished")
            if workload.owner and condition and condition.status and condition.since:
                self._finished[workload.owner.subject].append(condition.since)

    def given_up(self, stretch: IdleStretch, subject: str) -> datetime | None:
        """Tell when a job gave the device of a stretch up; None where it has not."""
        # One that finished before is an earlier run under the same name.
        finished = (when for when in self._finished.get(subject, ()) if when >= stretch.since)
        until: list[datetime | None] = [*finished]
        if stretch.key not in self._held:
            until.append(self._taken.get((stretch.uuid, stretch.mig)))
        return min((when for when in until if when is not None), default=None)
