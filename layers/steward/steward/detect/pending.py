"""Workloads that wait: why, with the numbers, and what would change it.

Decides from Kueue's message and from the queues, quotas and nodes themselves why each pending workload
is not admitted, and which admitted ones hold accelerators without pods. Says nothing of when a
workload will start. Page: docs/detectors/pending.md.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import replace
from datetime import timedelta
from typing import NamedTuple

from steward.cluster.accelerators import UnknownReason
from steward.cluster.figures import stamp, tidy
from steward.cluster.findings import Finding, Resolution, Unknown
from steward.cluster.incidents import follow
from steward.cluster.kueue import Workload
from steward.cluster.memory import Detection, Memory
from steward.cluster.pending import findings as say
from steward.cluster.pending.explaining import Explained, Explainer
from steward.cluster.pending.findings import Case, limits_of, minutes, pending_finding, without_pods
from steward.cluster.pending.pods import PODS, Pods, admitted
from steward.cluster.pending.reasons import Reason
from steward.cluster.policy import ClusterPolicy
from steward.cluster.refusals import refusals
from steward.cluster.snapshot import PartStatus, Snapshot
from steward.cluster.workloads import (
    accelerators_of,
    finished,
    pending,
    reserves,
    subject_of,
    waiting_since,
)

NAME = say.NAME

_WORKLOADS = "kubernetes/workloads"
_USEFUL = tuple(
    f"kubernetes/{resource}"
    for resource in (
        "localqueues",
        "clusterqueues",
        "cohorts",
        "resourceflavors",
        "workloadpriorityclasses",
        "nodes",
        "pods",
    )
)


_SHOWN_BY: Mapping[str, Sequence[str]] = {
    Reason.FRAGMENTATION: ("kubernetes/nodes", PODS),
    Reason.EXCEEDS_CAPACITY: ("kubernetes/nodes",),
    Reason.UNKNOWN_FLAVOR: ("kubernetes/resourceflavors",),
    Reason.NO_PRIORITY_CLASS: ("kubernetes/workloadpriorityclasses",),
}
"""What a reason may rest on beside queues and quotas."""


def detect(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> Detection:
    """Find workloads that wait in vain or for long, and say why.

    Parameters
    ----------
    snapshot : Snapshot
        Workloads, queues, quotas, nodes, and the accelerators that pods hold.
    memory : Memory
        What was told, and when admitted workloads last had pods.
    cluster : ClusterPolicy
        Limits and teams.

    Returns
    -------
    Detection
        One finding a job; one unknown line a job whose waiting cannot be explained, and one a
        refused call. Without workloads nothing but that.
    """
    pods = Pods(snapshot, memory.pending.pods_seen)
    useful = (*_USEFUL, *pods.owners)
    refused = refusals(snapshot, NAME, blind=(_WORKLOADS,), useful=useful)
    if not snapshot.readable(_WORKLOADS):
        return Detection(memory=memory, unknown=refused)
    told = [one.finding for one in memory.pending.told if one.cleared is None]
    cases = _cases(snapshot, pods, {one.subject: one for one in told})
    unknown = [
        *_unexplained(cases, snapshot, cluster),
        *_without_knowing(snapshot, pods, told, cluster),
        *_left_out(snapshot, told, cluster),
    ]
    findings = tuple(
        finding
        for subject in sorted(cases)
        if (finding := _finding(cases[subject], snapshot, cluster)) is not None
    )
    ended = _ended(snapshot, cases, {line.subject for line in unknown})
    kept, cleared = follow(memory.pending.told, findings, ended, snapshot.at)
    return Detection(
        memory=replace(memory, pending=replace(memory.pending, told=kept, pods_seen=pods.seen)),
        findings=findings,
        cleared=cleared,
        unknown=(*refused, *_one_a_subject(unknown)),
    )


def _cases(
    snapshot: Snapshot, pods: Pods, told: Mapping[str, Finding]
) -> Mapping[str, Sequence[Case]]:
    """Explain every workload that waits, or holds quota in vain; by job, the longest first."""
    explainer = Explainer(snapshot)
    found: dict[str, list[Case]] = defaultdict(list)
    for workload in snapshot.workloads:
        subject = subject_of(workload)
        if pending(workload):
            explained = explainer.explain(workload)
            if part := _hidden(told.get(subject), workload, explained, snapshot):
                explained = explained.without(part)
            case = Case(workload=workload, since=waiting_since(workload), explained=explained)
            found[subject].append(case)
        elif pods.judged(workload) and (since := pods.without_since(workload)):
            found[subject].append(without_pods(workload, since))
    for cases in found.values():
        cases.sort(key=lambda case: (case.since, case.workload.name))
    return found


def _hidden(
    before: Finding | None, workload: Workload, explained: Explained, snapshot: Snapshot
) -> str | None:
    """Name the part that had shown a reason which is not shown now, where it cannot be read."""
    if before is None or explained.shown.reason == before.reason:
        return None
    same = (before.evidence.get("workload"), before.evidence.get("message"))
    if same != (workload.name, explained.message):
        return None  # another message is news, whatever cannot be read
    return explained.unread or next(
        (name for name in _SHOWN_BY.get(before.reason, ()) if not _whole(snapshot, name)), None
    )


def _whole(snapshot: Snapshot, name: str) -> bool:
    part = snapshot.part(name)
    return part is not None and snapshot.readable(name) and not part.left_out


def _finding(cases: Sequence[Case], snapshot: Snapshot, cluster: ClusterPolicy) -> Finding | None:
    """Tell of a job where one of its workloads has waited for long enough."""
    due = [case for case in cases if case.reason is not None and _due(case, snapshot, cluster)]
    if not due:
        return None
    lead = due[0]
    alike = [case for case in cases if _in_vain(case) == _in_vain(lead)]
    alike = [case for case in alike if case in due] if _in_vain(lead) else alike
    return pending_finding(lead, alike, snapshot.at, cluster)


def _in_vain(case: Case) -> bool:
    return case.reason is Reason.RESERVED_WITHOUT_PODS


def _due(case: Case, snapshot: Snapshot, cluster: ClusterPolicy) -> bool:
    wait = timedelta(minutes=minutes(case, limits_of(case.workload, cluster)))
    return snapshot.at - case.since >= wait


def _unexplained(
    cases: Mapping[str, Sequence[Case]], snapshot: Snapshot, cluster: ClusterPolicy
) -> Iterable[Unknown]:
    """Say which jobs wait for a reason that could not be read."""
    for subject in sorted(cases):
        dark = [case for case in cases[subject] if case.reason is None]
        if dark:
            gpus = sum(accelerators_of(case.workload) for case in dark)
            reason = _why(snapshot, dark[0].explained.shown.unread)
            yield _unknown(subject, reason, dark[0].workload.namespace, cluster, gpus)


def _without_knowing(
    snapshot: Snapshot, pods: Pods, told: Iterable[Finding], cluster: ClusterPolicy
) -> Iterable[Unknown]:
    """Say which admitted jobs were told to lack pods, or may, while their pods cannot be read."""
    told_of = {one.subject for one in told if one.reason == Reason.RESERVED_WITHOUT_PODS}
    for workload in sorted(snapshot.workloads, key=lambda one: one.uid):
        subject = subject_of(workload)
        if not admitted(workload) or pods.judged(workload):
            continue
        # Refused pods say so once; one that was left out, or whose owners were not read, may be this
        # job's.
        if pods.readable or subject in told_of:
            reason = _why(snapshot, pods.hidden_by(workload))
            gpus = accelerators_of(workload)
            yield _unknown(subject, reason, workload.namespace, cluster, gpus)


def _left_out(
    snapshot: Snapshot, told: Iterable[Finding], cluster: ClusterPolicy
) -> Iterable[Unknown]:
    """Say which workloads were listed and could not be read; each by the job it was known by."""
    part = snapshot.part(_WORKLOADS)
    known = {
        f"{one.subject.split('/')[1]}/{one.evidence.get('workload')}": one.subject for one in told
    }
    for name in sorted(part.left_out) if part else ():
        namespace, _, workload = name.rpartition("/")
        itself = f"Workload/{namespace}/{workload}" if namespace else _WORKLOADS
        subject = known.get(name, itself)
        yield _unknown(subject, UnknownReason.UNREADABLE, namespace, cluster)


def _unknown(
    subject: str,
    reason: UnknownReason,
    namespace: str,
    cluster: ClusterPolicy,
    gpus: float | None = None,
) -> Unknown:
    team = cluster.team_of(namespace)
    return Unknown(
        detector=NAME,
        subject=subject,
        reason=reason,
        team=team.name if team else None,
        gpus=tidy(gpus),
    )


def _one_a_subject(lines: Iterable[Unknown]) -> list[Unknown]:
    first: dict[str, Unknown] = {}
    for line in lines:
        first.setdefault(line.subject, line)
    return list(first.values())


def _why(snapshot: Snapshot, name: str | None) -> UnknownReason:
    part = snapshot.part(name or "")
    denied = part is not None and part.status is PartStatus.DENIED
    return UnknownReason.DENIED if denied else UnknownReason.UNREADABLE


class _Job(NamedTuple):
    """A job's workloads, and why those of them that wait do."""

    workloads: Sequence[Workload]
    reasons: Mapping[str, Reason | None]


def _ended(
    snapshot: Snapshot, cases: Mapping[str, Sequence[Case]], unknown: set[str]
) -> Callable[[Finding], Resolution | None]:
    """Make the function that tells how what is no longer found has ended."""
    jobs: dict[str, list[Workload]] = defaultdict(list)
    for workload in snapshot.workloads:
        jobs[subject_of(workload)].append(workload)

    def ended(finding: Finding) -> Resolution | None:
        if finding.subject in unknown:
            return None
        reasons = {case.workload.name: case.reason for case in cases.get(finding.subject, ())}
        return _how(finding, _Job(workloads=jobs.get(finding.subject, ()), reasons=reasons))

    return ended


def _how(finding: Finding, job: _Job) -> Resolution | None:
    """Judge by the workload that led the finding, else by what has taken its place."""
    same = [one for one in job.workloads if one.name == finding.evidence.get("workload")]
    now = same or job.workloads
    if any(reserves(one) for one in now):
        return Resolution.ADMITTED
    waiting = [one for one in now if pending(one)]
    if not waiting:
        return Resolution.FINISHED if any(map(finished, now)) else Resolution.RELEASED
    if finding.reason == Reason.RESERVED_WITHOUT_PODS or not same:
        return Resolution.RELEASED
    if stamp(waiting_since(waiting[0])) > str(finding.evidence.get("waiting_since")):
        return Resolution.ADMITTED  # and evicted again since
    changed = job.reasons.get(waiting[0].name) != finding.reason
    return Resolution.REASON_CHANGED if changed else None
