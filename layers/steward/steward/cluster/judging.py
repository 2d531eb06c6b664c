"""Verdicts on a snapshot's accelerators, each under the limits of its own holder."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from steward.cluster.accelerators import Accelerator, State, Verdict, judge
from steward.cluster.policy import ClusterPolicy, IdleLimits, Scope
from steward.cluster.snapshot import Snapshot


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator, its verdict, and the limits it was judged by."""

    accelerator: Accelerator
    verdict: Verdict
    limits: IdleLimits

    @property
    def unknown(self) -> bool:
        """Whether it could not be judged."""
        return self.verdict.state is State.UNKNOWN


def limits_of(accelerator: Accelerator, cluster: ClusterPolicy) -> IdleLimits:
    """Find the limits in force for an accelerator's holder."""
    holder = accelerator.holder
    team = cluster.team_of(holder.namespace)
    scope = Scope(
        team=team.name if team else None,
        namespace=holder.namespace,
        priority_class=holder.priority_class,
        owner_kind=holder.owner.kind,
    )
    return cluster.limits(scope).idle


def judge_snapshot(snapshot: Snapshot, cluster: ClusterPolicy) -> tuple[Judged, ...]:
    """Judge every allocated accelerator of a snapshot, in the snapshot's order."""
    readable = snapshot.readable("prometheus")
    judged = []
    for accelerator in snapshot.accelerators:
        limits = limits_of(accelerator, cluster)
        verdict = judge(accelerator, limits, snapshot.window_end, readable=readable)
        judged.append(Judged(accelerator=accelerator, verdict=verdict, limits=limits))
    return tuple(judged)


def by_subject(
    judged: Iterable[Judged], known: Mapping[str, str] | None = None
) -> dict[str, Sequence[Judged]]:
    """Group by job, in the order of subjects.

    Parameters
    ----------
    judged : iterable of Judged
        Accelerators.
    known : mapping of str to str, or None
        Accelerator key to a subject that overrules its owner, where owners could not be read.
    """
    jobs: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        owner = one.accelerator.holder.owner.subject
        jobs[(known or {}).get(one.accelerator.key, owner)].append(one)
    return {subject: jobs[subject] for subject in sorted(jobs)}


def size(judged: Iterable[Judged]) -> float:
    """Count accelerators; a MIG slice counts its fraction."""
    return sum(one.accelerator.fraction for one in judged)
