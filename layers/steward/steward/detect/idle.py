"""Allocated accelerators that do nothing: idle ones, and jobs that look busy and seem to hang.

Decides which allocated accelerators have shown no activity over their detection window, which jobs
are suspected to hang, since when, and what that cost. Claims nothing about the CPU, and never takes
missing telemetry for idleness. Page: docs/detectors/idle.md.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import replace
from typing import NamedTuple

from steward.cluster import idle_findings
from steward.cluster.accelerators import State, UnknownReason
from steward.cluster.figures import tidy
from steward.cluster.findings import UNSEEN, Cleared, Finding, Resolution, Unknown
from steward.cluster.hang_findings import hang_finding
from steward.cluster.hangs import Hang, Phase, follow
from steward.cluster.idle_findings import counted, final, idle_finding
from steward.cluster.judging import Judged, by_subject, judge_snapshot, size
from steward.cluster.memory import Detection, IdleIncident, Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.refusals import refusals
from steward.cluster.snapshot import Snapshot
from steward.cluster.stretches import Seen, Shown, advance

NAME = idle_findings.NAME

_OWNERS = {
    "ReplicaSet": "kubernetes/replicasets",
    "Deployment": "kubernetes/deployments",
    "StatefulSet": "kubernetes/statefulsets",
    "Job": "kubernetes/jobs",
    "JobSet": "kubernetes/jobsets",
    "PyTorchJob": "kubernetes/pytorchjobs",
    "HyperPodPyTorchJob": "kubernetes/hyperpodpytorchjobs",
    "RayCluster": "kubernetes/rayclusters",
    "RayJob": "kubernetes/rayjobs",
}
"""Which list says who owns an owner of that kind."""

_IDLE_UNTIL, _HUNG_UNTIL = "idle_until", "hung_until"
"""Evidence keys of the last sample that showed what is over."""


def detect(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> Detection:
    """Find idle accelerators and suspected hangs, job by job.

    Parameters
    ----------
    snapshot : Snapshot
        Allocated accelerators with their windows; `idle_since` and `hung_since` for what is new,
        `idle_ends` for the stretches that ended.
    memory : Memory
        Incidents so far.
    cluster : ClusterPolicy
        Thresholds, teams and prices.

    Returns
    -------
    Detection
        One finding a job that is suspected to hang, or has idle accelerators; one unknown line a
        job with accelerators that cannot be judged, and one a refused call; without pods nothing
        but that.
    """
    owners = _owners(snapshot)
    refused = refusals(
        snapshot,
        NAME,
        blind=("kubernetes/pods", snapshot.metrics),
        useful=("kubernetes/workloads", "kubernetes/nodes", *owners),
    )
    if not snapshot.readable("kubernetes/pods"):
        return Detection(memory=memory, unknown=refused)
    # While owners cannot be read, a Deployment's pod seems to be its ReplicaSet's: what is known of
    # an accelerator stays with the job that it was known by.
    known = memory.subjects() if _in_doubt(snapshot, owners) else None
    jobs = by_subject(judge_snapshot(snapshot, cluster, known), known)
    ends = {end.key: end for end in snapshot.idle_ends}
    idle = {incident.subject: incident for incident in memory.idle}
    hangs = {incident.subject: incident for incident in memory.hangs}
    left_out = _left_out(snapshot, memory, cluster)
    hidden = {key for line in left_out for key in line.parts}
    rests: list[_Told] = []
    stuck: list[_Told] = []
    unknown: list[Unknown] = []
    for subject in sorted(idle.keys() | hangs.keys() | jobs.keys()):
        hang = follow(hangs.get(subject), subject, jobs.get(subject, ()), ends, snapshot, hidden)
        seen = _idle_now(hang.judged)
        rest = advance(idle.get(subject), subject, seen, ends, snapshot, hidden)
        rests.append(_of_idleness(rest, hang.judged, snapshot, cluster))
        stuck.append(_of_hang(hang, snapshot, cluster))
        unknown += _unknown(subject, hang.judged, cluster)
    return Detection(
        memory=replace(
            memory,
            idle=tuple(incident for told in rests for incident in told.incidents),
            hangs=tuple(incident for told in stuck for incident in told.incidents),
        ),
        findings=tuple(finding for told in (*rests, *stuck) for finding in told.findings),
        cleared=tuple(end for told in (*rests, *stuck) for end in told.cleared),
        unknown=(*refused, *left_out, *unknown),
    )


def _owners(snapshot: Snapshot) -> tuple[str, ...]:
    """Name the lists that an accelerator's owner would be found in; others are read for others."""
    kinds = {accelerator.holder.owner.kind for accelerator in snapshot.accelerators}
    return tuple(part for kind, part in _OWNERS.items() if kind in kinds)


def _in_doubt(snapshot: Snapshot, owners: Sequence[str]) -> bool:
    """Tell whether an accelerator's owner may have one that could not be read."""
    parts = [part for name in owners if (part := snapshot.part(name))]
    return bool(snapshot.refused(*owners)) or any(part.left_out for part in parts)


class _Told(NamedTuple):
    """What is remembered and said of a job's idleness, or of its hang; at most one of each."""

    incidents: tuple[IdleIncident, ...] = ()
    findings: tuple[Finding, ...] = ()
    cleared: tuple[Cleared, ...] = ()


def _idle_now(judged: Sequence[Judged]) -> Seen:
    shown = {}
    over = {}
    for one in judged:
        key = one.accelerator.key
        window = one.accelerator.window(one.limits.window_minutes)
        if one.verdict.idle and window:
            found = one.accelerator.idle_since
            shown[key] = Shown(accelerator=one.accelerator, window=window, found=found)
        elif one.verdict.state in {State.BUSY, State.SUSPECTED_HANG}:
            over[key] = Resolution.ACTIVE_AGAIN
    return Seen(shown=shown, over=over, held={one.accelerator.key for one in judged})


def _of_idleness(
    incident: IdleIncident | None,
    judged: Sequence[Judged],
    snapshot: Snapshot,
    cluster: ClusterPolicy,
) -> _Told:
    if incident is None:
        return _Told()
    if any(one.verdict.idle for one in judged):
        return _goes_on(incident, idle_finding(incident, judged, cluster), snapshot)
    return _not_seen(incident, _IDLE_UNTIL, snapshot)


def _of_hang(hang: Hang, snapshot: Snapshot, cluster: ClusterPolicy) -> _Told:
    incident = hang.incident
    if incident is None:
        return _Told()
    if hang.phase is Phase.SHOWN:
        finding = hang_finding(incident, hang.shown, hang.judged, cluster)
        return _goes_on(incident, finding, snapshot)
    if hang.phase is Phase.QUIET and incident.finding:
        # Not seen any more, and not known to be over: told with what it came to.
        return _goes_on(incident, counted(incident, incident.finding, _HUNG_UNTIL), snapshot)
    if hang.phase is Phase.PASSING and incident.finding:
        # Known to be over, whatever else cannot be judged of the job; it may yet come back.
        so_far = counted(incident, incident.finding, _HUNG_UNTIL)
        ended = Cleared(resolution=Resolution.ACTIVE_AGAIN, finding=so_far)
        return _Told(incidents=(incident,), cleared=(ended,))
    return _not_seen(incident, _HUNG_UNTIL, snapshot)


def _goes_on(incident: IdleIncident, finding: Finding, snapshot: Snapshot) -> _Told:
    incident = replace(incident, finding=finding, held_until=snapshot.at)
    return _Told(incidents=(incident,), findings=(finding,))


def _not_seen(incident: IdleIncident, until: str, snapshot: Snapshot) -> _Told:
    """Tell the end of what has ended; what still runs could not be judged, and is held."""
    finding = incident.finding
    if finding is None or incident.running:
        return _Told(incidents=(replace(incident, held_until=snapshot.at),))
    if snapshot.at - incident.held_until >= UNSEEN:
        incident = replace(incident, cleared=incident.cleared or snapshot.at)
    return _Told(incidents=(incident,), cleared=(final(incident, finding, until),))


def _left_out(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> tuple[Unknown, ...]:
    """Say which pods were listed and could not be read: they may hold accelerators all the same."""
    subjects = memory.subjects()
    running = memory.running_hangs() | memory.running_stretches()
    pods = snapshot.part("kubernetes/pods")
    lines = []
    for name in pods.left_out if pods else ():
        namespace, _, pod = name.rpartition("/")
        keys = sorted(k for k, s in running.items() if (s.namespace, s.pod) == (namespace, pod))
        itself = f"Pod/{name}" if namespace else "kubernetes/pods"
        team = cluster.team_of(namespace)
        lines.append(
            Unknown(
                detector=NAME,
                subject=subjects[keys[0]] if keys else itself,
                reason=UnknownReason.UNREADABLE,
                team=team.name if team else None,
                parts=tuple(keys),
            )
        )
    return tuple(lines)


def _unknown(subject: str, judged: Sequence[Judged], cluster: ClusterPolicy) -> Iterator[Unknown]:
    dark = [one for one in judged if one.unknown]
    if not dark:
        return
    counts = Counter(one.verdict.reason for one in dark)
    reason = max(counts, key=lambda name: (counts[name], str(name)))
    team = cluster.team_of(dark[0].accelerator.holder.namespace)
    yield Unknown(
        detector=NAME,
        subject=subject,
        reason=reason or UnknownReason.UNREADABLE,
        team=team.name if team else None,
        gpus=tidy(size(dark)),
        parts=tuple(sorted(one.accelerator.key for one in dark)),
        coverage=_coverage(dark),
    )


def _coverage(dark: Sequence[Judged]) -> float | None:
    """Average over the windows that did not suffice: of idleness, else of a hang seen before."""
    seen = []
    for one in dark:
        window = one.accelerator.window(one.limits.window_minutes)
        if window and window.coverage >= one.limits.coverage_min:
            window = one.accelerator.window(one.thresholds.hang.window_minutes)
        if window:
            seen.append(window.coverage)
    return tidy(sum(seen) / len(seen)) if seen else None
