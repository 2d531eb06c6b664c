"""How idle stretches begin, go on and end, tick by tick; hours are those that samples cover."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import replace
from datetime import timedelta

from steward.cluster.accelerators import Accelerator, IdleSince, State
from steward.cluster.findings import UNSEEN, Resolution
from steward.cluster.judging import Judged
from steward.cluster.memory import IdleIncident, IdleStretch
from steward.cluster.snapshot import IdleEnd, Snapshot

REPEAT_CLEARED = timedelta(hours=2)
"""How long an ended incident is repeated in evaluations, so that a lost one loses no number."""


def advance(
    incident: IdleIncident | None,
    subject: str,
    judged: Sequence[Judged],
    ends: Mapping[str, IdleEnd],
    snapshot: Snapshot,
    hidden: Collection[str] = (),
) -> IdleIncident | None:
    """Bring a job's incident up to date with one snapshot.

    Parameters
    ----------
    incident : IdleIncident or None
        As remembered.
    subject : str
        The job's top owner.
    judged : sequence of Judged
        Its accelerators now; one that is gone is no longer held.
    ends : mapping of str to IdleEnd
        Last idle samples of stretches that ended, by accelerator key.
    snapshot : Snapshot
        Where the windows end.
    hidden : collection of str
        Keys of accelerators whose pod could not be read: they are not gone.

    Returns
    -------
    IdleIncident or None
        None where there is nothing to remember. An accelerator that cannot be judged leaves its
        stretch as it is.
    """
    idle = {one.accelerator.key: one.accelerator for one in judged if one.verdict.idle}
    begun = {key: _begin(accelerator, snapshot) for key, accelerator in idle.items()}
    if incident and incident.cleared:
        if not idle and snapshot.at - incident.cleared < REPEAT_CLEARED:
            return incident
        incident = None  # forgotten, or idle anew: another incident, counted from nothing
    elif incident and begun and not _goes_on(incident, begun.values()):
        incident = None
    states = {one.accelerator.key: one for one in judged}
    followed = [
        stretch
        if stretch.ended is not None or stretch.key in hidden
        else _follow(stretch, states.get(stretch.key), ends.get(stretch.key), snapshot)
        for stretch in (incident.stretches if incident else ())
        if stretch.key not in idle or not _broken(stretch, idle[stretch.key])
    ]
    done = tuple(stretch for stretch in followed if stretch.ended is not None)
    running = {stretch.key: stretch for stretch in followed if stretch.ended is None}
    for key in idle.keys() - running.keys():
        running[key] = begun[key]
    every = (*done, *(running[key] for key in sorted(running)))
    if not every:
        return None
    return IdleIncident(
        subject=subject,
        stretches=every,
        held_until=incident.held_until if incident else snapshot.at,
        finding=incident.finding if incident else None,
    )


def _goes_on(incident: IdleIncident, begun: Iterable[IdleStretch]) -> bool:
    """Tell whether what is idle now joins on to what was: then the incident has not ended."""
    newest = max(stretch.last for stretch in incident.stretches)
    running = any(stretch.ended is None for stretch in incident.stretches)
    return running or min(stretch.since for stretch in begun) < newest + UNSEEN


def _broken(stretch: IdleStretch, accelerator: Accelerator) -> bool:
    """Tell whether it worked where no window looked: what is idle now is another stretch."""
    found = accelerator.idle_since
    return stretch.ended is None and found is not None and found.first > stretch.last


def _follow(
    stretch: IdleStretch, one: Judged | None, end: IdleEnd | None, snapshot: Snapshot
) -> IdleStretch:
    """Bring a running stretch up to date; what cannot be judged leaves it as it is."""
    if one is None:
        return _end(stretch, end, Resolution.RELEASED)
    if one.verdict.state is State.BUSY:
        return _end(stretch, end, Resolution.ACTIVE_AGAIN)
    return _extend(stretch, one.accelerator, snapshot) if one.verdict.idle else stretch


def _begin(accelerator: Accelerator, snapshot: Snapshot) -> IdleStretch:
    found = accelerator.idle_since or _from_window(accelerator, snapshot)
    return IdleStretch(
        key=accelerator.key,
        namespace=accelerator.holder.namespace,
        pod=accelerator.holder.pod,
        node=accelerator.node,
        uuid=accelerator.uuid,
        mig=accelerator.mig,
        fraction=accelerator.fraction,
        usd_per_hour=accelerator.usd_per_hour,
        since=found.first,
        last=found.last,
        exact=found.exact,
        observed_seconds=found.observed_seconds,
    )


def _from_window(accelerator: Accelerator, snapshot: Snapshot) -> IdleSince:
    """Fall back on what the window alone proves, where no look-back answered."""
    widest = max(accelerator.windows, key=lambda window: window.minutes)
    start = snapshot.window_end - timedelta(minutes=widest.minutes)
    last = accelerator.last_sample or snapshot.window_end
    covered = (last - start).total_seconds() * widest.coverage
    return IdleSince(first=start, last=last, exact=False, observed_seconds=covered)


def _extend(stretch: IdleStretch, accelerator: Accelerator, snapshot: Snapshot) -> IdleStretch:
    found = accelerator.idle_since
    if found:
        return replace(
            stretch,
            since=min(found.first, stretch.since),
            last=max(found.last, stretch.last),
            exact=found.exact or stretch.exact,
            observed_seconds=max(found.observed_seconds, stretch.observed_seconds),
        )
    last = accelerator.last_sample or stretch.last
    widest = max(window.minutes for window in accelerator.windows)
    # After a gap only what the present window saw is added: nobody saw the rest.
    seen_from = max(stretch.last, snapshot.window_end - timedelta(minutes=widest))
    return replace(
        stretch,
        last=max(last, stretch.last),
        observed_seconds=stretch.observed_seconds + max(0.0, (last - seen_from).total_seconds()),
        usd_per_hour=accelerator.usd_per_hour,
    )


def _end(stretch: IdleStretch, end: IdleEnd | None, why: Resolution) -> IdleStretch:
    if end is None:
        return replace(stretch, ended=why)
    return replace(
        stretch,
        last=max(stretch.last, end.last),
        observed_seconds=stretch.observed_seconds + end.observed_seconds,
        ended=why,
    )
