"""Preemptions as the objects of one moment show them: when, by which rule, and for whom."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from steward.cluster.kueue import KueueEvent, Workload
from steward.cluster.preemptions.memory import Words
from steward.cluster.workloads import ADMITTED, EVICTED, PREEMPTED

NEAR = timedelta(seconds=2)
"""Condition and events of one preemption are written within this."""

READING = timedelta(minutes=1)
"""Objects may be read this long after the moment that their snapshot is dated by: what a counter
showed then may turn out to have been later, as long as the counter has not risen again."""

_CAUSES = {
    "prioritization in the ClusterQueue": "InClusterQueue",
    "reclamation within the cohort": "InCohortReclamation",
    "Fair Sharing within the cohort": "InCohortFairSharing",
    "reclamation within the cohort while borrowing": "InCohortReclaimWhileBorrowing",
}
_EVENTS = frozenset({"Preempted", "EvictedDueToPreempted"})
_MESSAGE = re.compile(
    r"\(UID: (?P<uid>[^,)\s]+)(?:, JobUID: (?P<job>[^)\s]+))?\)(?: due to (?P<why>[^;]+))?"
)
_PATH = re.compile(r"preemptor path: [^;]*?(?P<queue>[^/;\s]+)\s*(?:;|$)")
_NOBODY = "UNKNOWN"
"""What Kueue prints for a UID that it does not have."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A preemption with its time.

    Attributes
    ----------
    durable : bool
        Whether the Workload's own condition shows it; an event is gone after an hour.
    repeats : int
        Earlier ones with the same words, which an event was merged with.
    """

    at: datetime
    words: Words = Words()
    durable: bool = False
    repeats: int = 0


def read_message(message: str) -> Words:
    """Read what Kueue says of a preemption, in the words of any version since 0.8.

    Parameters
    ----------
    message : str
        Of the condition or the event; may begin with `Previously: `.
    """
    found = _MESSAGE.search(message)
    if found is None:
        return Words()
    path = _PATH.search(message)
    why = (found["why"] or "").strip(" .")
    return Words(
        cause=_CAUSES.get(why),
        uid=_known(found["uid"]),
        job_uid=_known(found["job"]),
        queue=path["queue"] if path else None,
    )


def shown(
    workloads: Iterable[Workload], events: Iterable[KueueEvent]
) -> dict[str, tuple[Shown, ...]]:
    """Find the preemptions that have a time, by Workload UID, each once, the earliest first.

    Parameters
    ----------
    workloads : iterable of Workload
        Their conditions Evicted tell of the last one, as long as they are not admitted again.
    events : iterable of KueueEvent
        Of the last hour: also of earlier ones. One that names no UID is of the Workload of its
        name, unless that is younger.
    """
    listed = tuple(workloads)
    found: dict[str, list[Shown]] = defaultdict(list)
    for workload in listed:
        if one := evicted_now(workload):
            found[workload.uid].append(one)
    named = {(workload.namespace, workload.name): workload for workload in listed}
    for event in events:
        uid = _whose(event, named.get((event.namespace, event.workload)))
        if event.reason in _EVENTS and uid:
            words = read_message(event.message)
            found[uid].append(Shown(at=event.at, words=words, repeats=max(0, event.count - 1)))
    return {uid: _once(found[uid]) for uid in sorted(found)}


def evicted_now(workload: Workload) -> Shown | None:
    """Find the preemption that a Workload has not been admitted again after; None without time."""
    condition = workload.condition(EVICTED)
    if condition is None or not condition.status or condition.reason != PREEMPTED:
        return None
    if condition.since is None:
        return None
    why = workload.condition(PREEMPTED)
    words = read_message(why.message if why and why.status else condition.message)
    if why and why.status and why.reason in _CAUSES.values():
        words = replace(words, cause=why.reason)
    return Shown(at=condition.since, words=words, durable=True)


def last_words(workload: Workload) -> Shown | None:
    """Find what a Workload that was admitted again says of its last preemption.

    Its time is that of the new admission: the preemption was earlier.
    """
    condition = workload.condition(PREEMPTED)
    if condition is None or condition.status is not False or condition.since is None:
        return None
    words = read_message(condition.message)
    return Shown(at=condition.since, words=words) if words != Words() else None


def latest_end(workload: Workload) -> datetime | None:
    """Tell the time that no preemption of a Workload can be later than; None: not known.

    That of its eviction; else it has not run before its last admission, or not since its end.
    """
    if now := evicted_now(workload):
        return now.at
    admitted = workload.condition(ADMITTED)
    return admitted.since if admitted else None


def admissions(events: Iterable[KueueEvent]) -> Mapping[str, tuple[datetime, ...]]:
    """Find when Workloads were admitted, by UID, as far as events tell."""
    found: dict[str, list[datetime]] = {}
    for event in events:
        if event.reason == ADMITTED and event.workload_uid:
            found.setdefault(event.workload_uid, []).append(event.at)
    return {uid: tuple(sorted(times)) for uid, times in found.items()}


def preemptions_counted(workload: Workload) -> int:
    """Give Kueue's own counter of a Workload's preemptions; 0 also where it keeps none."""
    return sum(one.count for one in workload.evictions if one.reason == PREEMPTED)


def others_counted(workload: Workload) -> int:
    """Give Kueue's own counter of a Workload's evictions for any other reason."""
    return sum(one.count for one in workload.evictions if one.reason != PREEMPTED)


def _known(uid: str | None) -> str | None:
    return None if uid is None or uid == _NOBODY else uid


def _whose(event: KueueEvent, named: Workload | None) -> str | None:
    if event.workload_uid:
        return event.workload_uid
    return named.uid if named and named.created <= event.at else None


def _once(found: Iterable[Shown]) -> tuple[Shown, ...]:
    """Join what tells of the same preemption; the condition's time is the better one."""
    groups: list[list[Shown]] = []
    for one in sorted(found, key=_order):
        if groups and one.at - groups[-1][0].at <= NEAR:
            groups[-1].append(one)
        else:
            groups.append([one])
    return tuple(_joined(group) for group in groups)


def _order(one: Shown) -> tuple[Any, ...]:
    words = one.words
    said = (words.cause or "", words.uid or "", words.job_uid or "", words.queue or "")
    return (one.at, not one.durable, -one.repeats, *said)


def _joined(group: Sequence[Shown]) -> Shown:
    first = min(group, key=lambda one: not one.durable)
    words = first.words
    for one in group:
        words = completed(words, one.words)
    return replace(first, words=words, repeats=max(one.repeats for one in group))


def completed(words: Words, more: Words) -> Words:
    """Add to some words what others know of the same preemption."""
    return Words(
        cause=words.cause or more.cause,
        uid=words.uid or more.uid,
        job_uid=words.job_uid or more.job_uid,
        queue=words.queue or more.queue,
    )
