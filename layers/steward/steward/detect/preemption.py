"""Jobs that are preempted again and again: what that cost, who gains, and what was saved.

Counts every preemption once, however often and in whatever words it is told; proves nothing about
checkpoints that nobody saw written. Page: docs/detectors/preemption.md.
"""

from collections.abc import Iterable, Iterator
from copy import replace

from steward.cluster.accelerators import UnknownReason
from steward.cluster.findings import Finding, Resolution, Unknown
from steward.cluster.incidents import follow
from steward.cluster.memory import Detection, Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.preemptions import findings as say
from steward.cluster.preemptions.findings import covers, findings
from steward.cluster.preemptions.history import (
    WORKLOADS,
    Subjects,
    left_out,
    remember,
    subjects_of,
)
from steward.cluster.preemptions.jobs import jobs_of, over, pricing
from steward.cluster.preemptions.memory import Watched
from steward.cluster.refusals import refusals
from steward.cluster.snapshot import PartStatus, Snapshot

NAME = say.NAME


def detect(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> Detection:
    """Find jobs that were preempted too often, or lost too much by it, in the period.

    Parameters
    ----------
    snapshot : Snapshot
        Workloads, their events, and what was found of checkpoints.
    memory : Memory
        Preemptions so far.
    cluster : ClusterPolicy
        Limits, teams and prices.

    Returns
    -------
    Detection
        One finding a job, or one for two jobs that preempt each other; without Workloads nothing
        but that.
    """
    known = memory.preemptions
    subjects = subjects_of(snapshot, known)
    refused = refusals(
        snapshot, NAME, blind=(WORKLOADS,), useful=("kubernetes/events", *subjects.owners)
    )
    part = snapshot.part(WORKLOADS)
    if part is None or part.status not in {PartStatus.OK, PartStatus.ABSENT}:
        return Detection(memory=memory, unknown=refused)
    now = remember(known, snapshot, subjects, cluster)
    jobs = jobs_of(now, snapshot, subjects, cluster)
    found = findings(jobs, pricing(snapshot, cluster), cluster)
    about = {subject for finding in found for subject in covers(finding)}

    def ended(finding: Finding) -> Resolution | None:
        if finding.subject in about:
            return Resolution.REASON_CHANGED
        return _ended(finding, snapshot, subjects)

    told, cleared = follow(known.told, found, ended, snapshot.at)
    return Detection(
        memory=replace(memory, preemptions=replace(now, told=told)),
        findings=found,
        cleared=cleared,
        unknown=(*refused, *_left_out(snapshot, known.watched, cluster)),
    )


def _ended(finding: Finding, snapshot: Snapshot, subjects: Subjects) -> Resolution | None:
    """Tell how a job's preemptions came to an end; None where it may only not have been seen."""
    there = set(subjects.by_uid.values())
    jobs = covers(finding)
    if not over(snapshot, subjects).isdisjoint(jobs):
        return Resolution.FINISHED
    if all(subject in there for subject in jobs):
        return Resolution.EXPIRED
    return None if subjects.doubtful or left_out(snapshot) else Resolution.RELEASED


def _left_out(
    snapshot: Snapshot, watched: Iterable[Watched], cluster: ClusterPolicy
) -> Iterator[Unknown]:
    """Say which Workloads were listed and could not be read, by the job where it is known."""
    known = {f"{one.namespace}/{one.name}": one.subject for one in watched if not one.gone}
    for name in left_out(snapshot):
        namespace, _, _ = name.rpartition("/")
        team = cluster.team_of(namespace)
        yield Unknown(
            detector=NAME,
            subject=known.get(name) or (f"Workload/{name}" if namespace else WORKLOADS),
            reason=UnknownReason.UNREADABLE,
            team=team.name if team else None,
        )
