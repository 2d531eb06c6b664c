"""How stretches begin, go on and end, tick by tick; hours are those that samples cover.

The same for idleness and for suspected hangs: what differs is who says what a tick shows.
"""

from collections.abc import Collection, Iterable, Mapping
from copy import replace
from datetime import timedelta

import msgspec

from steward.cluster.accelerators import Accelerator, IdleSince, Window
from steward.cluster.findings import UNSEEN, Resolution
from steward.cluster.incidents import REPEAT_CLEARED
from steward.cluster.memory import IdleIncident, IdleStretch
from steward.cluster.snapshot import IdleEnd, Snapshot


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator that shows the condition now.

    Attributes
    ----------
    window : Window
        Of its activity: what showed it.
    found : IdleSince or None
        Where its stretch began, if that was looked up.
    tensor, watts_max
        As in :class:`IdleStretch`.
    """

    accelerator: Accelerator
    window: Window
    found: IdleSince | None = None
    tensor: bool = False
    watts_max: float | None = None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a tick shows of a condition of one job, by accelerator key.

    Attributes
    ----------
    shown : mapping of str to Shown
        Those that show it.
    over : mapping of str to Resolution
        Those known not to show it, and what that is called.
    held : collection of str
        All that the job holds; of the rest nothing is known.
    """

    shown: Mapping[str, Shown]
    over: Mapping[str, Resolution]
    held: Collection[str]


def advance(
    incident: IdleIncident | None,
    subject: str,
    seen: Seen,
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
    seen : Seen
        Its accelerators now; one that is gone is no longer held.
    ends : mapping of str to IdleEnd
        Last samples of stretches that ended, by accelerator key.
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
    begun = {key: _begin(shown, snapshot) for key, shown in seen.shown.items()}
    if incident and incident.cleared:
        if not begun and snapshot.at - incident.cleared < REPEAT_CLEARED:
            return incident
        incident = None  # forgotten, or seen anew: another incident, counted from nothing
    elif incident and begun and not _goes_on(incident, begun.values(), seen.shown):
        incident = None
    followed = [
        stretch
        if stretch.ended is not None or stretch.key in hidden
        else _follow(stretch, seen, ends.get(stretch.key), snapshot)
        for stretch in (incident.stretches if incident else ())
    ]
    done = tuple(stretch for stretch in followed if stretch.ended is not None)
    running = {stretch.key: stretch for stretch in followed if stretch.ended is None}
    for key in begun.keys() - running.keys():
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


def broken(stretch: IdleStretch, found: IdleSince | None) -> bool:
    """Tell whether it worked where no window looked: what shows now is another stretch."""
    return stretch.ended is None and found is not None and found.first > stretch.last


def end(stretch: IdleStretch, told: IdleEnd | None, why: Resolution | None) -> IdleStretch:
    """Take a stretch to its last sample; without a reason it still may go on."""
    if told is None:
        return replace(stretch, ended=why)
    counted = stretch.observed_seconds if told.counted_seconds is None else told.counted_seconds
    return replace(
        stretch,
        last=max(stretch.last, told.last),
        observed_seconds=max(stretch.observed_seconds, counted + told.observed_seconds),
        ended=why,
    )


def _goes_on(
    incident: IdleIncident, begun: Iterable[IdleStretch], shown: Mapping[str, Shown]
) -> bool:
    """Tell whether what is idle now joins on to what was: then the incident has not ended."""
    running = [stretch for stretch in incident.stretches if stretch.ended is None]
    if running:
        return any(s.key not in shown or not broken(s, shown[s.key].found) for s in running)
    newest = max(stretch.last for stretch in incident.stretches)
    return min(stretch.since for stretch in begun) < newest + UNSEEN


def _follow(
    stretch: IdleStretch, seen: Seen, told: IdleEnd | None, snapshot: Snapshot
) -> IdleStretch:
    """Bring a running stretch up to date; what cannot be judged leaves it as it is."""
    if stretch.key not in seen.held:
        return end(stretch, told, Resolution.RELEASED)
    if stretch.key in seen.over:
        return end(stretch, told, seen.over[stretch.key])
    shown = seen.shown.get(stretch.key)
    if shown and broken(stretch, shown.found):
        return end(stretch, None, Resolution.ACTIVE_AGAIN)  # what shows now is another
    return _extend(stretch, shown, snapshot) if shown else stretch


def _begin(shown: Shown, snapshot: Snapshot) -> IdleStretch:
    accelerator = shown.accelerator
    found = shown.found or _from_window(shown, snapshot)
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
        tensor=shown.tensor,
        watts_max=shown.watts_max,
    )


def _from_window(shown: Shown, snapshot: Snapshot) -> IdleSince:
    """Fall back on what the window alone proves, where no look-back answered."""
    start = snapshot.window_end - timedelta(minutes=shown.window.minutes)
    last = shown.accelerator.last_sample or snapshot.window_end
    covered = (last - start).total_seconds() * shown.window.coverage
    return IdleSince(first=start, last=last, exact=False, observed_seconds=covered)


def _extend(stretch: IdleStretch, shown: Shown, snapshot: Snapshot) -> IdleStretch:
    stretch = replace(
        stretch,
        tensor=stretch.tensor or shown.tensor,
        watts_max=stretch.watts_max if shown.watts_max is None else shown.watts_max,
    )
    found = shown.found
    if found and found.exact and not stretch.exact:
        # What was only assumed of its beginning is known now.
        return replace(
            stretch,
            since=found.first,
            last=max(found.last, stretch.last),
            exact=True,
            observed_seconds=found.observed_seconds,
        )
    if found:
        return replace(
            stretch,
            since=min(found.first, stretch.since),
            last=max(found.last, stretch.last),
            exact=found.exact or stretch.exact,
            observed_seconds=max(found.observed_seconds, stretch.observed_seconds),
        )
    last = shown.accelerator.last_sample or stretch.last
    # After a gap only what the present window saw is added: nobody saw the rest.
    start = snapshot.window_end - timedelta(minutes=shown.window.minutes)
    seen_from = max(stretch.last, start)
    return replace(
        stretch,
        last=max(last, stretch.last),
        observed_seconds=stretch.observed_seconds + max(0.0, (last - seen_from).total_seconds()),
        usd_per_hour=shown.accelerator.usd_per_hour,
    )
