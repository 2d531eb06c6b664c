"""Two jobs that preempt each other in turn."""

from collections.abc import Mapping
from itertools import groupby

import msgspec

from steward.cluster.policy import PreemptionLimits
from steward.cluster.preemptions.jobs import Job, in_order, needed_minutes, preemptor_of
from steward.cluster.preemptions.memory import Eviction


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two jobs that preempt each other in turn, in the order of their names.

    Attributes
    ----------
    ones, others : tuple of Eviction
        Preemptions of either by the other.
    """

    one: Job
    other: Job
    ones: tuple[Eviction, ...]
    others: tuple[Eviction, ...]

    @property
    def counted(self) -> tuple[Eviction, ...]:
        """Preemptions of either by the other, the earliest first."""
        return in_order((*self.ones, *self.others))

    @property
    def count(self) -> int:
        """How many those are."""
        return sum(one.count for one in self.counted)


def pairs(jobs: Mapping[str, Job]) -> tuple[Pair, ...]:
    """Find the jobs that preempt each other in turn; each is of one pair at most, the busiest."""
    lost: dict[str, dict[str, tuple[Eviction, ...]]] = {
        subject: {name: _lost_to(name, jobs[subject], jobs) for name in _named(jobs[subject])}
        for subject in sorted(jobs)
    }
    met = {
        (min(subject, other), max(subject, other))
        for subject, others in lost.items()
        for other in others
        if other in jobs and other != subject
    }
    found = [
        Pair(
            one=jobs[first],
            other=jobs[second],
            ones=lost[first].get(second, ()),
            others=lost[second].get(first, ()),
        )
        for first, second in sorted(met)
    ]
    chosen: list[Pair] = []
    taken: set[str] = set()
    for pair in sorted(found, key=lambda p: (-p.count, p.one.subject, p.other.subject)):
        both = {pair.one.subject, pair.other.subject}
        if not both & taken and _in_turn(pair):
            chosen.append(pair)
            taken |= both
    return tuple(sorted(chosen, key=lambda p: p.one.subject))


def _named(job: Job) -> set[str]:
    """Name everybody that a job is known to have been preempted for."""
    return {name for one in job.counted if (name := preemptor_of(one))}


def _lost_to(other: str, job: Job, jobs: Mapping[str, Job]) -> tuple[Eviction, ...]:
    """Find what a job lost to another; what nobody saw, too, where it can hardly be somebody else.

    That is where each of them is named by the other's preemptions and nobody else is, and what
    nobody saw followed each other too closely for any progress.
    """
    alone = other in jobs and _named(job) == {other} and _named(jobs[other]) == {job.subject}
    return tuple(
        one
        for one in job.counted
        if preemptor_of(one) == other
        or (alone and preemptor_of(one) is None and _hurried(one, job.limits))
    )


def _hurried(one: Eviction, limits: PreemptionLimits) -> bool:
    """Whether preemptions that nobody saw apart left no run the time that it needs, on average."""
    if one.after is None:
        return False
    seconds = (one.at - one.after).total_seconds() if one.ran is None else one.ran
    return seconds / one.count < needed_minutes(limits) * 60


def _in_turn(pair: Pair) -> bool:
    """Whether they took turns often enough.

    Without times the turns follow from the numbers: a job that runs preempts nobody, so that one
    that preempts twice has lost its place in between.
    """
    least = max(3, pair.one.limits.count, pair.other.limits.count)
    mine = sum(e.count for e in pair.ones)
    others = sum(e.count for e in pair.others)
    if any(e.after is not None for e in pair.counted):
        return min(pair.count, 2 * min(mine, others) + 1) >= least
    victims = [e.uid for e in pair.counted]
    own = {e.uid for e in pair.ones}
    turns = len(list(groupby(victims, key=lambda uid: uid in own)))
    return turns >= least
