"""Verdicts on a snapshot's accelerators, each under the limits of its own holder."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import replace
from datetime import datetime

import msgspec

from steward.cluster.accelerators import Accelerator, State, Verdict, judge
from steward.cluster.hanging import HangSigns, all_hang, judge_hang
from steward.cluster.policy import ClusterPolicy, IdleLimits, Scope, Thresholds
from steward.cluster.snapshot import Snapshot


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator, its verdict, its signs of a hang, and what it was judged by."""

    accelerator: Accelerator
    verdict: Verdict
    thresholds: Thresholds
    signs: HangSigns = HangSigns()

    @property
    def limits(self) -> IdleLimits:
        """Limits of idleness."""
        return self.thresholds.idle

    @property
    def unknown(self) -> bool:
        """Whether it could not be judged."""
        return self.verdict.state is State.UNKNOWN


def thresholds_of(accelerator: Accelerator, cluster: ClusterPolicy) -> Thresholds:
    """Find the thresholds in force for an accelerator's holder."""
    holder = accelerator.holder
    team = cluster.team_of(holder.namespace)
    scope = Scope(
        team=team.name if team else None,
        namespace=holder.namespace,
        priority_class=holder.priority_class,
        owner_kind=holder.owner.kind,
    )
    return cluster.limits(scope)


def judge_snapshot(
    snapshot: Snapshot, cluster: ClusterPolicy, known: Mapping[str, str] | None = None
) -> tuple[Judged, ...]:
    """Judge every allocated accelerator of a snapshot, in the snapshot's order.

    Parameters
    ----------
    snapshot : Snapshot
        Accelerators with their windows.
    cluster : ClusterPolicy
        Thresholds by holder.
    known : mapping of str to str, or None
        As in :func:`by_subject`: a hang is told of all accelerators of a job or of none.
    """
    readable = snapshot.readable(snapshot.metrics)
    return judge_all(snapshot.accelerators, cluster, snapshot.window_end, known, readable=readable)


def judge_all(
    accelerators: Iterable[Accelerator],
    cluster: ClusterPolicy,
    window_end: datetime,
    known: Mapping[str, str] | None = None,
    *,
    readable: bool,
) -> tuple[Judged, ...]:
    """Judge accelerators, each by itself, and then what all of a job show together."""
    judged = []
    for accelerator in accelerators:
        thresholds = thresholds_of(accelerator, cluster)
        judged.append(
            Judged(
                accelerator=accelerator,
                verdict=judge(accelerator, thresholds.idle, window_end, readable=readable),
                thresholds=thresholds,
                signs=judge_hang(accelerator, thresholds, window_end, readable=readable),
            )
        )
    jobs = by_subject(judged, known).values()
    hanging = {one.accelerator.key for job in jobs if all_hang(j.signs for j in job) for one in job}
    return tuple(
        replace(one, verdict=Verdict(state=State.SUSPECTED_HANG))
        if one.accelerator.key in hanging
        else one
        for one in judged
    )


def by_subject(
    judged: Iterable[Judged], known: Mapping[str, str] | None = None
) -> dict[str, Sequence[Judged]]:
    """Group by job, in the order of subjects.

    Parameters
    ----------
    judged : iterable of Judged
        Accelerators.
    known : mapping of str to str, or None
        Accelerator key to a subject that overrules its owner, where owners could not be read: for
        all that the same owner holds.
    """
    every = tuple(judged)
    told = known or {}
    above = {
        one.accelerator.holder.owner.subject: told[one.accelerator.key]
        for one in every
        if one.accelerator.key in told
    }
    jobs: dict[str, list[Judged]] = defaultdict(list)
    for one in every:
        owner = one.accelerator.holder.owner.subject
        jobs[told.get(one.accelerator.key, above.get(owner, owner))].append(one)
    return {subject: jobs[subject] for subject in sorted(jobs)}


def size(judged: Iterable[Judged]) -> float:
    """Count accelerators; a MIG slice counts its fraction."""
    return sum(one.accelerator.fraction for one in judged)
