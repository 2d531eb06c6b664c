"""How long a job had run when it was preempted, and how much of that it lost."""

from collections.abc import Iterable, Sequence
from copy import replace
from datetime import datetime, timedelta

from steward.cluster.checkpoints import CheckpointEvidence, LookStatus, Written, WrittenBy
from steward.cluster.kueue import Workload
from steward.cluster.preemptions.shown import (
    NEAR,
    READING,
    evicted_now,
    others_counted,
    preemptions_counted,
)
from steward.cluster.preemptions.memory import Eviction, Proof, Watched
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
    return tuple(_shared(one, rest, number) if one in open_ones else one for one in runs)


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
    counter, others, past = (
        (before.counter, before.others, before.past_seconds) if before else (0, 0, 0)
    )
    noticed = sum(one.count for one in new)
    now = preemptions_counted(workload)
    alone = now - counter == noticed or (before is not None and not now and noticed == 1)
    late = before is not None and any(one.at <= before.seen - READING for one in new)
    if workload.past_seconds is None or past is None or not alone or late:
        return None
    if others_counted(workload) != others or workload.past_seconds <= past:
        return None
    return float(workload.past_seconds - past)


def _shared(one: Eviction, rest: float, number: int) -> Eviction:
    """Give a run its share of admitted time that nobody saw divided."""
    alone = number == 1 and one.after is None
    started = one.at - timedelta(seconds=rest) if alone else None
    return replace(one, ran=rest * one.count / number, ran_most=rest, started=started)


def examined(
    one: Eviction, evidence: CheckpointEvidence | None, created: datetime, at: datetime
) -> Eviction:
    """Judge what was found of a run's checkpoints.

    Parameters
    ----------
    one : Eviction
        The preemption that ended the run.
    evidence : CheckpointEvidence or None
        What was found; None where nothing was looked for at this evaluation.
    created : datetime
        When the Workload was created: no run of it is older.
    at : datetime
        The evaluation.
    """
    if one.after is not None or one.settled:
        return one
    settled = at - one.at >= STALE or (evidence is not None and at - one.at >= LATE)
    if evidence is None:
        return replace(one, settled=settled)
    proof, written = _proof(one, evidence, created)
    if one.proof is Proof.PROVEN and proof is not Proof.PROVEN:
        # It was there: what is gone from the listing has been written all the same.
        return replace(one, settled=settled)
    return replace(one, proof=proof, written=written, settled=settled)


def _proof(
    one: Eviction, evidence: CheckpointEvidence, created: datetime
) -> tuple[Proof, Written | None]:
    read = [look for look in evidence.looks if look.status is LookStatus.OK]
    written = [*(look.newest for look in read if look.newest), *evidence.told]
    written = [w for w in written if w.at <= one.at]
    since = one.started or created
    proven = [w for w in written if w.at > since]
    if proven:
        return Proof.PROVEN, min(proven, key=_trusted)
    newest = min(written, key=_trusted, default=None)
    if one.declared:
        return Proof.DECLARED, newest
    complete = evidence.looks and len(read) == len(evidence.looks)
    return (Proof.ABSENT if complete else Proof.UNREADABLE), newest


def _trusted(one: Written) -> tuple[int, float, str]:
    return (_TRUST.index(one.by), -one.at.timestamp(), one.uri)


def found_for(one: Eviction, evidence: Iterable[CheckpointEvidence]) -> CheckpointEvidence | None:
    """Find what was found for a preemption; its time may be the event's or the condition's."""
    mine = [e for e in evidence if e.workload_uid == one.uid and abs(e.evicted - one.at) <= NEAR]
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
        since_saved = (one.at - one.written.at).total_seconds()
        seconds = since_saved if one.ran_most is None else min(since_saved, one.ran_most)
    elif one.started is not None or not proven:
        seconds = one.ran
    return None if seconds is None else one.gpus * seconds / 3600
