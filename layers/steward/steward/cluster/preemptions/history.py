"""The preemptions of a cluster, kept over the period: a fold of one snapshot into the memory."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import replace
from datetime import datetime, timedelta
from itertools import accumulate

import msgspec

from steward.cluster.kueue import Workload
from steward.cluster.policy import ClusterPolicy, PreemptionLimits, Scope
from steward.cluster.preemptions.counting import (
    Sight,
    count,
    fresh,
    timed_ones,
    with_holdings,
    worth_watching,
)
from steward.cluster.preemptions.memory import Eviction, PreemptionMemory, Watched
from steward.cluster.preemptions.runs import examined, found_for, from_admission
from steward.cluster.preemptions.shown import Shown, admissions, preemptions_counted, shown
from steward.cluster.snapshot import Snapshot
from steward.cluster.workloads import subject_of, top_owner

WORKLOADS = "kubernetes/workloads"

_HOUR = timedelta(hours=1)
"""How long events live, and with them the interest in a Workload that is gone."""

_MOST = 200
"""Preemptions kept of one Workload; one with more is said to have at least so many."""

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


class Subjects(msgspec.Struct, frozen=True, kw_only=True):
    """Whose the Workloads of a snapshot are.

    Attributes
    ----------
    by_uid : dict of str to str
        Workload UID to job.
    doubtful : bool
        Whether some owner may have an owner that could not be read.
    owners : tuple of str
        Parts that would tell.
    """

    by_uid: dict[str, str]
    doubtful: bool
    owners: tuple[str, ...]


def subjects_of(snapshot: Snapshot, memory: PreemptionMemory) -> Subjects:
    """Tell whose the Workloads are; while owners cannot be read, as they were known before."""
    known = {one.uid: one.subject for one in memory.watched}
    parts = {w.uid: _part_of_owner(w) for w in snapshot.workloads}
    doubtful = {part for part in parts.values() if part and _in_doubt(snapshot, part)}
    by_uid = {}
    for workload in snapshot.workloads:
        own = subject_of(workload)
        stays = parts[workload.uid] in doubtful
        by_uid[workload.uid] = known.get(workload.uid, own) if stays else own
    owners = tuple(sorted({part for part in parts.values() if part}))
    return Subjects(by_uid=by_uid, doubtful=bool(doubtful), owners=owners)


def _part_of_owner(workload: Workload) -> str | None:
    owner = top_owner(workload)
    return f"kubernetes/{owner.kind.lower()}s" if owner else None


def _in_doubt(snapshot: Snapshot, name: str) -> bool:
    part = snapshot.part(name)
    return bool(snapshot.refused(name)) or (part is not None and bool(part.left_out))


def scope_of(workload: Workload, subject: str, cluster: ClusterPolicy) -> Scope:
    """Describe a Workload as the policy's overrides ask for it."""
    team = cluster.team_of(workload.namespace)
    return Scope(
        team=team.name if team else None,
        namespace=workload.namespace,
        priority_class=workload.priority_class,
        owner_kind=subject.partition("/")[0],
    )


def limits_of(workload: Workload, subject: str, cluster: ClusterPolicy) -> PreemptionLimits:
    """Find the limits in force for a Workload."""
    return cluster.limits(scope_of(workload, subject, cluster)).preemptions


def unique(workloads: Iterable[Workload]) -> tuple[Workload, ...]:
    """Order Workloads by UID, each once: of two readings the one that counts more."""
    ordered = sorted(workloads, key=lambda w: (w.uid, preemptions_counted(w), len(w.conditions)))
    return tuple({workload.uid: workload for workload in ordered}.values())


def remember(
    memory: PreemptionMemory, snapshot: Snapshot, subjects: Subjects, cluster: ClusterPolicy
) -> PreemptionMemory:
    """Fold what a snapshot shows into what is known.

    Parameters
    ----------
    memory : PreemptionMemory
        What is known.
    snapshot : Snapshot
        With readable Workloads.
    subjects : Subjects
        Whose they are.
    cluster : ClusterPolicy
        How long the period is, and the instance type of its capacity.
    """
    workloads = unique(snapshot.workloads)
    before = {one.uid: one for one in memory.watched}
    known: dict[str, list[Eviction]] = defaultdict(list)
    for eviction in memory.evictions:
        known[eviction.uid].append(eviction)
    seen = shown(workloads, snapshot.kueue_events)
    since = snapshot.at - _longest(cluster)
    admitted = admissions(snapshot.kueue_events)
    flavors = flavor_types(snapshot)
    kept: dict[str, tuple[Eviction, ...]] = {}
    watched: list[Watched] = []
    for workload in workloads:
        if not (workload.uid in before or workload.uid in seen or worth_watching(workload)):
            continue  # it waits, and was never evicted
        subject = subjects.by_uid[workload.uid]
        limits = limits_of(workload, subject, cluster)
        sight = Sight(
            workload=workload,
            subject=subject,
            at=snapshot.at,
            cutoff=snapshot.at - timedelta(hours=limits.period_hours),
            shown=seen.get(workload.uid, ()),
            admissions=admitted.get(workload.uid, ()),
            flavors=flavors,
        )
        last = before.pop(workload.uid, None) or _waited(memory, workload, subject)
        one, evictions = count(sight, last, known[workload.uid])
        if worth_watching(workload) or evictions or (one.gap and one.gap >= since):
            watched.append(one)
        kept[workload.uid] = evictions
    for gone in (before[uid] for uid in sorted(before)):
        one, kept[gone.uid] = _not_seen(gone, seen.get(gone.uid, ()), known[gone.uid], snapshot)
        watched.append(one)
    alive = frozenset(subjects.by_uid.values())
    return _bounded(watched, kept, seen, since, snapshot, alive)


def _longest(cluster: ClusterPolicy) -> timedelta:
    named = (override.preemptions.get("period_hours", 0) for override in cluster.overrides)
    hours = [cluster.thresholds.preemptions.period_hours, *(int(hours) for hours in named)]
    return timedelta(hours=max(hours))


def _waited(memory: PreemptionMemory, workload: Workload, subject: str) -> Watched | None:
    """Describe a Workload that was not worth watching at the last evaluation, if it was there."""
    if memory.at is None or not memory.whole or workload.created > memory.at:
        return None
    return fresh(workload, subject, memory.at)


def flavor_types(snapshot: Snapshot) -> dict[str, str]:
    """Tell the instance type of each flavor that names one by its node labels."""
    labels = {one.name: one.node_labels for one in snapshot.resource_flavors}
    return {name: said[_INSTANCE_TYPE] for name, said in labels.items() if _INSTANCE_TYPE in said}


def left_out(snapshot: Snapshot) -> tuple[str, ...]:
    """Name the Workloads that were listed and could not be read."""
    part = snapshot.part(WORKLOADS)
    return tuple(sorted(part.left_out)) if part else ()


def hidden(last: Watched, snapshot: Snapshot) -> bool:
    """Whether a Workload may be among those that were listed and could not be read."""
    names = left_out(snapshot)
    return f"{last.namespace}/{last.name}" in names or any("/" not in name for name in names)


def _not_seen(
    last: Watched, seen: tuple[Shown, ...], known: Iterable[Eviction], snapshot: Snapshot
) -> tuple[Watched, tuple[Eviction, ...]]:
    """Carry a Workload on that is not there any more, or could not be read; events may tell."""
    kept, timed = timed_ones(known, seen, last.uid)
    admitted = (last.admitted,) if last.admitted else ()
    new = []
    for one in timed:
        held = with_holdings(one, last, last.instance_type)
        new.append(from_admission(held, (*kept, *timed), admitted, None))
    if last.gone or hidden(last, snapshot):
        return last, (*kept, *new)
    gap = last.gap if last.over else snapshot.at
    return replace(last, gone=True, gap=gap), (*kept, *new)


def _bounded(
    watched: Iterable[Watched],
    kept: Mapping[str, tuple[Eviction, ...]],
    seen: Mapping[str, tuple[Shown, ...]],
    since: datetime,
    snapshot: Snapshot,
    alive: frozenset[str],
) -> PreemptionMemory:
    everyone = sorted(watched, key=lambda one: one.uid)
    names = _Names(everyone, kept, snapshot)
    evidence = snapshot.checkpoints
    recent: dict[str, tuple[Eviction, ...]] = {}
    people = []
    for one in everyone:
        still = {s.at for s in seen.get(one.uid, ()) if s.durable}
        mine = [e for e in kept.get(one.uid, ()) if e.at >= since or e.at in still]
        gap = one.gap if len(mine) <= _MOST else snapshot.at
        told = [names.told(e) for e in mine[-_MOST:]]
        floors = _floors(told, one.created)
        recent[one.uid] = tuple(
            examined(e, found_for(e, evidence), floor, snapshot.at)
            for e, floor in zip(told, floors, strict=True)
        )
        people.append(replace(one, gap=gap))
    return PreemptionMemory(
        at=snapshot.at,
        whole=not left_out(snapshot),
        watched=_of_use(people, recent, since, snapshot.at, alive),
        evictions=tuple(e for uid in sorted(recent) for e in recent[uid]),
    )


def _floors(evictions: Iterable[Eviction], created: datetime) -> list[datetime]:
    """Tell, for preemptions in order, what no run that each ended can be older than."""
    ends = [one.after or one.at for one in evictions]
    return list(accumulate([created, *ends[:-1]], max)) if ends else []


class _Names:
    """Jobs by the UIDs that messages name them by."""

    def __init__(
        self,
        watched: Iterable[Watched],
        kept: Mapping[str, tuple[Eviction, ...]],
        snapshot: Snapshot,
    ) -> None:
        self._workloads: dict[str, str] = {}
        self._jobs: dict[str, str] = {}
        for eviction in (e for uid in sorted(kept) for e in kept[uid] if e.preemptor):
            self._add(eviction.words.uid, eviction.words.job_uid, eviction.preemptor)
        for workload in unique(snapshot.workloads):
            self._add(workload.uid, workload.job_uid, subject_of(workload))
        for one in watched:
            self._add(one.uid, one.job_uid, one.subject)

    def _add(self, uid: str | None, job_uid: str | None, subject: str | None) -> None:
        if uid and subject:
            self._workloads[uid] = subject
        if job_uid and subject:
            self._jobs[job_uid] = subject

    def told(self, one: Eviction) -> Eviction:
        """Name the job that a preemption made room for, once it is known."""
        if one.preemptor:
            return one
        found = self._workloads.get(one.words.uid or "") or self._jobs.get(one.words.job_uid or "")
        return replace(one, preemptor=found) if found else one


def _of_use(
    watched: Iterable[Watched],
    evictions: Mapping[str, tuple[Eviction, ...]],
    since: datetime,
    at: datetime,
    alive: frozenset[str],
) -> tuple[Watched, ...]:
    """Forget Workloads that are gone, but what counts: their preemptions, and a job's last gap."""
    everyone = tuple(watched)
    jobs = alive | {one.subject for one in everyone if evictions[one.uid]}
    newest: dict[str, tuple[datetime, str]] = {}
    for one in everyone:
        if one.gone and one.gap and one.gap >= since and one.subject in jobs:
            newest[one.subject] = max(
                newest.get(one.subject, (one.gap, one.uid)), (one.gap, one.uid)
            )
    last = {uid for _, uid in newest.values()}
    return tuple(
        one
        for one in everyone
        if not one.gone or evictions[one.uid] or one.uid in last or at - one.seen < _HOUR
    )
