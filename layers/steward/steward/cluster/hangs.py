"""How a suspected hang of a job begins, goes on and ends, tick by tick.

It is the job's condition, not its accelerators': all of them show it, or nobody is suspected. Once
it runs, only evidence ends it: what cannot be judged holds it, and what follows it is waited for.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import replace
from datetime import timedelta
from enum import Enum, auto

import msgspec

from steward.cluster.accelerators import State, Verdict
from steward.cluster.findings import UNSEEN, Resolution
from steward.cluster.hanging import Sign, find, watts_max, why_unproven
from steward.cluster.judging import Judged
from steward.cluster.memory import IdleIncident, IdleStretch
from steward.cluster.snapshot import IdleEnd, Snapshot
from steward.cluster.stretches import Seen, Shown, advance, broken, end


class Phase(Enum):
    """What a tick makes of a job's suspected hang.

    held: not shown, and not disproved; quiet: over, and nothing works since, so that its own
    window will tell whether that is idleness; passing: over, but for less than ten minutes.
    """

    SHOWN = auto()
    HELD = auto()
    QUIET = auto()
    PASSING = auto()
    OVER = auto()


class Hang(msgspec.Struct, frozen=True, kw_only=True):
    """A job's suspected hang after a tick.

    Attributes
    ----------
    incident : IdleIncident or None
        To be remembered.
    shown : tuple of Judged
        The accelerators that show it now.
    judged : tuple of Judged
        All of the job; what showed the hang before and cannot be judged now is unknown.
    """

    phase: Phase
    incident: IdleIncident | None
    shown: tuple[Judged, ...]
    judged: tuple[Judged, ...]


def follow(
    incident: IdleIncident | None,
    subject: str,
    judged: Sequence[Judged],
    ends: Mapping[str, IdleEnd],
    snapshot: Snapshot,
    hidden: Collection[str] = (),
) -> Hang:
    """Bring a job's suspected hang up to date with one snapshot.

    Parameters
    ----------
    incident : IdleIncident or None
        As remembered.
    subject : str
        The job's top owner.
    judged : sequence of Judged
        All of its accelerators now.
    ends : mapping of str to IdleEnd
        Last samples of stretches that ended, by accelerator key.
    snapshot : Snapshot
        Where the windows end.
    hidden : collection of str
        Keys of accelerators whose pod could not be read.
    """
    held = {one.accelerator.key: one for one in judged}
    running = {s.key: s for s in incident.running} if incident and not incident.cleared else {}
    shown = showing(judged, running, hidden)
    phase = Phase.SHOWN if shown else _hidden_phase(incident, held, running, ends, snapshot)
    seen = Seen(
        shown={one.accelerator.key: _sight(one) for one in shown},
        over=dict.fromkeys(held, _what_follows(judged)) if phase is Phase.OVER else {},
        held=held,
    )
    if any(broken(s, seen.shown[key].found) for key, s in running.items() if key in seen.shown):
        incident = None  # one that worked unseen has ended it for all
    after = advance(incident, subject, seen, ends, snapshot, hidden)
    if after and phase is Phase.QUIET:
        settled = (end(s, ends.get(s.key), None) if not s.ended else s for s in after.stretches)
        after = replace(after, stretches=tuple(settled))
    return Hang(
        phase=phase,
        incident=after,
        shown=shown,
        judged=tuple(_doubted(judged, running, snapshot) if phase is Phase.HELD else judged),
    )


def showing(
    judged: Sequence[Judged], running: Collection[str], hidden: Collection[str] = ()
) -> tuple[Judged, ...]:
    """Choose what shows it: all of a job; of one that was seen before what it rests on.

    A pod that joined since is judged once it is old enough, and ends nothing until then.
    """
    if disproved(judged) or any(key in hidden for key in running):
        return ()
    if judged and all(one.verdict.state is State.SUSPECTED_HANG for one in judged):
        return tuple(judged)
    known = tuple(one for one in judged if one.accelerator.key in running)
    return known if all(one.signs.hangs for one in known) else ()


def disproved(judged: Iterable[Judged]) -> bool:
    """Tell whether anything of a job speaks against a hang: one accelerator is enough."""
    return any(one.signs.hangs is False or one.verdict.idle for one in judged)


def _hidden_phase(
    incident: IdleIncident | None,
    held: Mapping[str, Judged],
    running: Mapping[str, IdleStretch],
    ends: Mapping[str, IdleEnd],
    snapshot: Snapshot,
) -> Phase:
    """Tell what it means that nothing shows it."""
    if not disproved(held.values()):
        return Phase.HELD
    if any(one.verdict.idle for one in held.values()):
        return Phase.OVER
    if _quiet(running, held, ends, snapshot):
        return Phase.QUIET
    if incident and running and snapshot.at - incident.held_until < UNSEEN:
        return Phase.PASSING
    return Phase.OVER


def _sight(one: Judged) -> Shown:
    accelerator, limits = one.accelerator, one.thresholds.hang
    window = find(accelerator.windows, limits.window_minutes)
    if window is None:
        raise ValueError(f"{accelerator.key}: shows a hang without a window")
    return Shown(
        accelerator=accelerator,
        window=window,
        found=accelerator.hung_since,
        tensor=one.signs.tensor is Sign.SUPPORTS,
        watts_max=watts_max(accelerator, limits) if one.signs.power is Sign.SUPPORTS else None,
    )


def _quiet(
    running: Mapping[str, IdleStretch],
    held: Mapping[str, Judged],
    ends: Mapping[str, IdleEnd],
    snapshot: Snapshot,
) -> bool:
    """Tell whether nothing works since, and no idle window has told yet what that is.

    A window that reaches back into the hang calls idle accelerators busy.
    """
    known = [(held[key], stretch, ends.get(key)) for key, stretch in running.items() if key in held]
    return bool(known) and all(
        _rests(one, told)
        and (
            one.unknown
            or (told or stretch).last
            > snapshot.window_end - timedelta(minutes=one.limits.window_minutes)
        )
        for one, stretch, told in known
    )


def _rests(one: Judged, told: IdleEnd | None) -> bool:
    """Tell whether it may be idle since; without raw samples only signs of work speak against it."""
    if told is None:
        return Sign.CONTRADICTS not in {one.signs.tensor, one.signs.power}
    return told.quiet


def _what_follows(judged: Sequence[Judged]) -> Resolution:
    idle = any(one.verdict.idle for one in judged)
    return Resolution.REASON_CHANGED if idle else Resolution.ACTIVE_AGAIN


def _doubted(
    judged: Sequence[Judged], running: Collection[str], snapshot: Snapshot
) -> list[Judged]:
    """Call unknown what showed the hang and does not tell any more whether it does."""
    return [
        replace(one, verdict=_unknown(one, snapshot))
        if one.accelerator.key in running and one.signs.hangs is None and not one.unknown
        else one
        for one in judged
    ]


def _unknown(one: Judged, snapshot: Snapshot) -> Verdict:
    reason = why_unproven(one.accelerator, one.thresholds, snapshot.window_end)
    return Verdict(state=State.UNKNOWN, reason=reason)
