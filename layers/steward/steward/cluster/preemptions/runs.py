"""How long a job had run when it was preempted, and how much of that it lost."""

from collections.abc import Iterable, Sequence
from copy import replace
from datetime import datetime, timedelta

from steward.cluster.checkpoints import CheckpointEvidence, LookStatus, Written, WrittenBy
from steward.cluster.kueue import Workload
from steward.cluster.preemptions.memory import Eviction, Proof, Watched
from steward.cluster.preemptions.shown import (
    NEAR,
    READING,
    evicted_now,
    others_counted,
    preemptions_counted,
)
from steward.cluster.workloads import ADMITTED

LATE = timedelta(minutes=10)
"""Heartbeats may arrive this long after the preemption that they precede."""

STALE = timedelta(days=1)
"""After so long nothing is looked for any more: clean-up may have removed what there was."""

_TRUST = (WrittenBy.STORAGE, WrittenBy.MARKER, WrittenBy.HEARTBEAT)


def with_runs(
    new: Sequence[Eviction],
    known: Sequence[Eviction],
    before: Watched | None,
    workload: Workload,
    admissions: Iterable[datetime],
) -> tuple[Eviction, ...]:
    """Say of new preemptions how long the runs were that they ended.

    Parameters
    ----------
    new, known : sequence of Eviction
        Of one Workload: those that are new, and those that were known before.
    before : Watched or None
        What the last evaluation saw of it; None at first sight.
    workload : Workload
        As it is now.
    admissions : iterable of datetime
        When it was admitted, as far as events tell.
    """
    if not new:
        return ()
    same = before is not None and before.others == others_counted(workload)
    seen = {*admissions, *([before.admitted] if before and same and before.admitted else ())}
    running = _still_admitted(workload)
    every = (*known, *new)
    runs = [from_admission(one, every, seen, running) for one in new]
    spent = _spent(new, before, workload)
    if spent is None:
        return tuple(runs)
    # The admitted seconds of a run are added up when its quota is given back, not before.
    closed = [one for one in runs if running is None or one.started != running]
    open_ones = [one for one in closed if one.ran is None]
    rest = spent - sum(one.ran for one in closed if one.ran is not None)
    number = sum(one.count for one in open_ones)
    if not number or rest < 0:
        return tuple(runs)
    # One run alone between two sights is the one that was seen to be admitted at the first.
    begun = before.admitted if before and same and len(new) == 1 else None
    return tuple(_shared(one, rest, number, begun) if one in open_ones else one for one in runs)


def _still_admitted(workload: Workload) -> datetime | None:
    """Since when the run lasts that is being ended just now."""
    admitted = workload.condition(ADMITTED)
    if evicted_now(workload) is None or admitted is None or not admitted.status:
        return None
    return admitted.since


def from_admission(
    one: Eviction, every: Iterable[Eviction], seen: Iterable[datetime], running: datetime | None
) -> Eviction:
    """Count a run from the admission before it, if nothing can have come between.

    Parameters
    ----------
    one : Eviction
        The preemption that ended it.
    every : iterable of Eviction
        All of the same Workload.
    seen : iterable of datetime
        Admissions that are known.
    running : datetime or None
        Since when the run lasts that is being ended just now; None where none is.
    """
    if one.after is not None:
        return one
    if running is not None and running <= one.at:
        later = [e for e in every if e is not one and e.at > one.at]
        return one if later else _ran_from(one, running)
    start = max((at for at in seen if at <= one.at), default=None)
    if start is None or any(_between(e, start, one) for e in every if e is not one):
        return one
    return _ran_from(one, start)


def _between(other: Eviction, start: datetime, one: Eviction) -> bool:
    if other.after is None:
        return start <= other.at < one.at
    return other.after < one.at and other.at > start


def _ran_from(one: Eviction, start: datetime) -> Eviction:
    seconds = (one.at - start).total_seconds()
    return replace(one, started=start, ran=seconds, ran_most=seconds)


def _spent(new: Sequence[Eviction], before: Watched | None, workload: Workload) -> float | None:
    """Tell for how long the Workload was admitted in the runs that ended; None: not known.

    Known only where nothing but what is new ended a run since it was last seen.
    """
    counter, others = (before.counter, before.others) if before else (0, 0)
    # Kueue says nothing of it until the first run has ended.
    past = (before.past_seconds if before else None) or 0
    noticed = sum(one.count for one in new)
    now = preemptions_counted(workload)
    alone = now - counter == noticed or (before is not None and not now and noticed == 1)
    late = before is not None and any(one.at <= before.seen - READING for one in new)
    if workload.past_seconds is None or not alone or late:
        return None
    if others_counted(workload) != others or workload.past_seconds <= past:
        return None
    return float(workload.past_seconds - past)


def _shared(one: Eviction, rest: float, number: int, begun: datetime | None) -> Eviction:
    """Give a run its share of admitted time that nobody saw divided."""
    started = None
    if number == 1:
        started = begun if one.after is not None else one.at - timedelta(seconds=rest)
    return replace(one, ran=rest * one.count / number, ran_most=rest, started=started)


def examined(
    one: Eviction, evidence: CheckpointEvidence | None, floor: datetime, at: datetime
) -> Eviction:
    """Judge what was found of a run's checkpoints.

    Parameters
    ----------
    one : Eviction
        The preemption that ended the run.
    evidence : CheckpointEvidence or None
        What was found; None where nothing was looked for at this evaluation.
    floor : datetime
        No run that it ended is older: when the Workload was created, or preempted before.
    at : datetime
        The evaluation.
    """
    if one.settled:
        return one
    settled = at - one.at >= STALE or (evidence is not None and at - one.at >= LATE)
    if evidence is None:
        return replace(one, settled=settled)
    proof, written = _proof(one, evidence, floor)
    if one.proof is Proof.PROVEN and proof is not Proof.PROVEN:
        # It was there: what is gone from the listing has been written all the same.
        return replace(one, settled=settled)
    return replace(one, proof=proof, written=written, settled=settled)


def _proof(
    one: Eviction, evidence: CheckpointEvidence, floor: datetime
) -> tuple[Proof, Written | None]:
    read = [look for look in evidence.looks if look.status is LookStatus.OK]
    written = [*(look.newest for look in read if look.newest), *evidence.told]
    written = [w for w in written if w.at <= one.at]
    since = one.started or floor
    proven = [w for w in written if w.at > since]
    if proven:
        return Proof.PROVEN, min(proven, key=_newest_first)
    newest = min(written, key=_newest_first, default=None)
    if one.declared:
        return Proof.DECLARED, newest
    complete = evidence.looks and len(read) == len(evidence.looks)
    return (Proof.ABSENT if complete else Proof.UNREADABLE), newest


def _newest_first(one: Written) -> tuple[float, int, str]:
    """Sort by time, of one moment the most trusted first."""
    return (-one.at.timestamp(), _TRUST.index(one.by), one.uri)


def found_for(one: Eviction, evidence: Iterable[CheckpointEvidence]) -> CheckpointEvidence | None:
    """Find what was found for a preemption; its time may be the event's or the condition's.

    One without a time was looked for up to the latest that it can have been.
    """
    first, last = one.at - NEAR, one.at + NEAR
    if one.after is not None:
        first, last = one.after, one.at + READING
    mine = [e for e in evidence if e.workload_uid == one.uid and first <= e.evicted <= last]
    return min(mine, key=lambda e: (abs(e.evicted - one.at), e.evicted), default=None)


def proof_of(one: Eviction) -> Proof:
    """Say what is known of the checkpoints of a run that nobody could look for, too."""
    return one.proof or (Proof.DECLARED if one.declared else Proof.UNREADABLE)


def lost(one: Eviction, *, proven: bool) -> float | None:
    """Accelerator hours that preemptions lost; None: not known.

    Parameters
    ----------
    one : Eviction
        The preemption, or several that nobody saw apart.
    proven : bool
        Whether a checkpoint of any run of the job is proven: then runs that nobody saw apart may
        have had theirs, and what they lost is not known.
    """
    if not one.gpus:
        return 0.0
    seconds = None
    if proof_of(one) is Proof.PROVEN and one.written:
        seconds = _since_saved(one, one.written)
    elif one.started is not None or not proven or one.proof is Proof.ABSENT:
        seconds = one.ran
    return None if seconds is None else one.gpus * seconds / 3600


def time_of(one: Eviction) -> datetime | None:
    """Tell when a preemption was: as it was seen, else by when its run began and how long it was."""
    if one.after is None:
        return one.at
    if one.started is None or one.ran is None:
        return None
    return one.started + timedelta(seconds=one.ran)


def _since_saved(one: Eviction, written: Written) -> float | None:
    """Seconds from a checkpoint of a run to its end; None where nobody knows when that was."""
    end = time_of(one)
    if end is None:
        return None
    seconds = max(0.0, (end - written.at).total_seconds())
    return seconds if one.ran_most is None else min(seconds, one.ran_most)
