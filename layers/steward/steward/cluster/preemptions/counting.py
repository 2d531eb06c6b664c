"""Preemptions counted once each, from Kueue's counters, conditions and events, tick by tick.

A Workload's counter says how many there were; its condition and the events say when, why and for
whom. What the counter says and no time was seen of is kept as a number between two evaluations.
"""

from collections.abc import Iterable, Sequence
from copy import replace
from datetime import datetime, timedelta

import msgspec

from steward.cluster.amounts import accelerators_each
from steward.cluster.kueue import Workload
from steward.cluster.preemptions.memory import Eviction, Watched
from steward.cluster.preemptions.runs import with_runs
from steward.cluster.preemptions.shown import (
    NEAR,
    READING,
    Shown,
    completed,
    last_words,
    latest_end,
    others_counted,
    preemptions_counted,
)
from steward.cluster.workloads import (
    ADMITTED,
    EVICTED,
    accelerators_of,
    finished,
    reserves,
)


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What one evaluation sees of one Workload.

    Attributes
    ----------
    subject : str
        Its job.
    at : datetime
        The evaluation.
    cutoff : datetime
        Where the period begins.
    shown : tuple of Shown
        Its preemptions that have a time.
    admissions : tuple of datetime
        When it was admitted, as far as events tell.
    flavors : dict of str to str
        Flavor to instance type.
    """

    workload: Workload
    subject: str
    at: datetime
    cutoff: datetime
    shown: tuple[Shown, ...] = ()
    admissions: tuple[datetime, ...] = ()
    flavors: dict[str, str] = msgspec.field(default_factory=dict)


def fresh(workload: Workload, subject: str, seen: datetime) -> Watched:
    """Describe a Workload that was there, waited, and had never been evicted."""
    return Watched(
        uid=workload.uid,
        subject=subject,
        namespace=workload.namespace,
        name=workload.name,
        created=workload.created,
        seen=seen,
        past_seconds=0,
    )


def worth_watching(workload: Workload) -> bool:
    """Whether more must be remembered of a Workload than that it waits and was never evicted."""
    return bool(
        reserves(workload)
        or workload.evictions
        or workload.past_seconds
        or workload.condition(EVICTED)
    )


def count(
    sight: Sight, before: Watched | None, known: Sequence[Eviction]
) -> tuple[Watched, tuple[Eviction, ...]]:
    """Fold what is seen of a Workload into what was known of it.

    Parameters
    ----------
    sight : Sight
        What is seen now.
    before : Watched or None
        What the last evaluation saw; None at first sight.
    known : sequence of Eviction
        Its preemptions so far.

    Returns
    -------
    Watched
        For the next evaluation.
    tuple of Eviction
        Its preemptions, the earliest first.
    """
    workload = sight.workload
    counter = preemptions_counted(workload)
    steady = before is not None and before.counter == counter > 0
    slack = READING if steady else NEAR
    known, timed = timed_ones(known, sight.shown, workload.uid, slack)
    delta, gap = _increase(sight, before, len(timed))
    ahead = before.ahead if before else 0
    fresh_ones = sum(1 for one in timed if before is None or one.at > before.seen - READING)
    credit = ahead + fresh_ones - delta
    after = before.seen if before else workload.created
    untimed = _unseen(sight, after, max(0, -credit), timed)
    if not untimed and not timed:
        untimed = _implied(sight, before, known)
    watched = _watched(sight, before, min(max(0, credit), 1), gap)
    # On what the run that was ended held, which may not be what it holds now.
    held_on = (before.instance_type if before else None) or watched.instance_type
    new = tuple(with_holdings(one, watched, held_on) for one in (*untimed, *timed))
    new = with_runs(new, known, before, workload, sight.admissions)
    return watched, _in_order((*known, *new))


def timed_ones(
    known: Iterable[Eviction], shown: Iterable[Shown], uid: str, slack: timedelta = NEAR
) -> tuple[tuple[Eviction, ...], tuple[Eviction, ...]]:
    """Match what is shown with what is known.

    Parameters
    ----------
    known : iterable of Eviction
        Preemptions of one Workload.
    shown : iterable of Shown
        The same Workload's, as seen now.
    uid : str
        The Workload.
    slack : timedelta
        How much later than it can have been, by what is known, one may turn out to have been.

    Returns
    -------
    tuple of Eviction
        What was known, with what is now said of it.
    tuple of Eviction
        What was not.
    """
    kept = list(known)
    new = []
    for one in shown:
        same = next((e for e in kept if e.after is None and abs(e.at - one.at) <= NEAR), None)
        if same:
            kept[kept.index(same)] = _told_again(same, one)
            continue
        among = next((e for e in kept if _covers(e, one.at, slack)), None)
        if among is None:
            new.append(Eviction(uid=uid, at=one.at, words=one.words))
            continue
        kept.remove(among)
        kept += _taken_out(among, one)
    return _in_order(kept), tuple(new)


def _told_again(known: Eviction, one: Shown) -> Eviction:
    at = one.at if one.durable else known.at
    return replace(known, at=at, words=completed(known.words, one.words))


def _covers(one: Eviction, at: datetime, slack: timedelta) -> bool:
    return one.after is not None and one.after - NEAR <= at <= one.at + slack


def _taken_out(among: Eviction, one: Shown) -> list[Eviction]:
    """Give a preemption of a number of them the time that it turns out to have."""
    share = None if among.ran is None else among.ran / among.count
    certain = share is not None and among.count == 1
    itself = replace(
        among,
        at=one.at,
        after=None,
        count=1,
        words=completed(one.words, among.words) if among.count == 1 else one.words,
        ran=share,
        started=one.at - timedelta(seconds=share) if share is not None and certain else None,
        # Looked for up to the latest that it can have been: now there is a time to look up to.
        proof=None,
        written=None,
        settled=False,
    )
    if among.count == 1:
        return [itself]
    ran = None if among.ran is None or share is None else among.ran - share
    return [itself, replace(among, count=among.count - 1, ran=ran)]


def _increase(sight: Sight, before: Watched | None, timed: int) -> tuple[int, datetime | None]:
    """Tell how many preemptions the counter adds, and until when some may be missing."""
    counter = preemptions_counted(sight.workload)
    if before is None:
        if sight.workload.created >= sight.cutoff:
            return counter, None
        return min(counter, timed), sight.at if counter > timed else None
    if counter < before.counter:
        return counter, sight.at
    return counter - before.counter, before.gap


def _unseen(
    sight: Sight, after: datetime, number: int, timed: Sequence[Eviction]
) -> tuple[Eviction, ...]:
    """Describe preemptions that the counter alone tells of, as closely as anything bounds them."""
    if not number:
        return ()
    workload = sight.workload
    latest = latest_end(workload)
    at = latest if latest and after < latest <= sight.at else max(sight.at, after)
    rest = Eviction(uid=workload.uid, at=at, after=after, count=number)
    words = last_words(workload)
    if words and words.at > after and not any(one.at > after for one in timed):
        # The last of them is the one that it was admitted again after.
        last = replace(rest, at=words.at, count=1, words=words.words)
        rest = replace(rest, at=words.at, count=number - 1)
        return (*_merged(rest, sight.shown), last) if rest.count else (last,)
    return _merged(rest, sight.shown)


def _merged(rest: Eviction, shown: Iterable[Shown]) -> tuple[Eviction, ...]:
    """Give those that an event was merged with the words of that event."""
    told = []
    for one in shown:
        number = min(one.repeats, rest.count)
        if number:
            told.append(replace(rest, count=number, words=one.words))
            rest = replace(rest, count=rest.count - number)
    return (*told, rest) if rest.count else tuple(told)


def _implied(
    sight: Sight, before: Watched | None, known: Iterable[Eviction]
) -> tuple[Eviction, ...]:
    """Find a preemption between two evaluations where Kueue keeps no counter.

    A new admission tells of one, unless one is known that ended the run that was last seen.
    """
    workload = sight.workload
    after = before.seen if before else workload.created
    words = last_words(workload)
    if words is None or preemptions_counted(workload) or words.at <= after:
        return ()
    run = (before.admitted if before else None) or workload.created
    if any(one.at >= run for one in known):
        return ()
    return (Eviction(uid=workload.uid, at=words.at, after=after, words=words.words),)


def _watched(sight: Sight, before: Watched | None, ahead: int, gap: datetime | None) -> Watched:
    workload = sight.workload
    admitted = workload.condition(ADMITTED)
    running = admitted is not None and admitted.status is True and not finished(workload)
    return Watched(
        uid=workload.uid,
        subject=sight.subject,
        namespace=workload.namespace,
        name=workload.name,
        created=workload.created,
        seen=sight.at,
        job_uid=workload.job_uid,
        counter=preemptions_counted(workload),
        others=others_counted(workload),
        ahead=ahead,
        admitted=admitted.since if admitted and running else None,
        past_seconds=workload.past_seconds,
        gpus=accelerators_of(workload),
        instance_type=_instance_type(sight) or (before.instance_type if before else None),
        declared=workload.declared_checkpoints,
        gap=gap,
        over=finished(workload),
    )


def _instance_type(sight: Sight) -> str | None:
    """Tell what it is admitted on, by the flavor of its accelerators."""
    assigned = sight.workload.assigned
    flavors = sorted(f for f, amounts in assigned.items() if any(map(accelerators_each, amounts)))
    return next((sight.flavors.get(flavor, flavor) for flavor in flavors), None)


def with_holdings(one: Eviction, watched: Watched, instance_type: str | None) -> Eviction:
    """Say what a Workload lost by a preemption, and where it is said to keep checkpoints."""
    return replace(one, gpus=watched.gpus, instance_type=instance_type, declared=watched.declared)


def _in_order(evictions: Iterable[Eviction]) -> tuple[Eviction, ...]:
    return tuple(sorted(evictions, key=lambda e: (e.at, e.after is None, e.after or e.at, e.count)))
