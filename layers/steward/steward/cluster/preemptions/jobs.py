"""Jobs that were preempted in the period: what counts, what it cost, and which get nowhere."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta

import msgspec

from steward.cluster.instance_types import accelerators_of as accelerators_of_type
from steward.cluster.instance_types import usd_per_accelerator
from steward.cluster.kueue import Workload
from steward.cluster.policy import ClusterPolicy, PreemptionLimits
from steward.cluster.preemptions.history import Subjects, limits_of, unique
from steward.cluster.preemptions.memory import Eviction, PreemptionMemory, Proof, Watched
from steward.cluster.preemptions.runs import lost, proof_of
from steward.cluster.snapshot import Snapshot
from steward.cluster.workloads import accelerators_of, finished, pending, reserves

type Pricing = Callable[[str | None], float | None]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is there and was preempted in the period.

    Attributes
    ----------
    workload : Workload
        Its newest that has not finished.
    gpus : float
        Accelerators that it asks for, over all of its Workloads that run or wait.
    counted : tuple of Eviction
        Preemptions that surely were in the period, the earliest first.
    at_least : bool
        Whether there may have been more.
    others : int
        Evictions for other reasons, by the counters of its Workloads.
    """

    subject: str
    workload: Workload
    limits: PreemptionLimits
    gpus: float
    counted: tuple[Eviction, ...]
    at_least: bool
    others: int = 0

    @property
    def count(self) -> int:
        """Preemptions in the period."""
        return sum(one.count for one in self.counted)


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """What some preemptions lost.

    Attributes
    ----------
    gpu_hours, cost_usd : float or None
        The known part; None where nothing is known, or a price is missing.
    at_least : bool
        Whether some of it is not known.
    each : tuple of (float or None)
        Accelerator hours of each.
    """

    gpu_hours: float | None
    cost_usd: float | None
    at_least: bool
    each: tuple[float | None, ...]


def jobs_of(
    memory: PreemptionMemory, snapshot: Snapshot, subjects: Subjects, cluster: ClusterPolicy
) -> dict[str, Job]:
    """Gather the preempted jobs that are still there, by subject."""
    living: dict[str, list[Workload]] = defaultdict(list)
    for workload in unique(snapshot.workloads):
        if not finished(workload):
            living[subjects.by_uid[workload.uid]].append(workload)
    watched: dict[str, list[Watched]] = defaultdict(list)
    for one in memory.watched:
        watched[one.subject].append(one)
    evictions: dict[str, list[Eviction]] = defaultdict(list)
    for preemption in memory.evictions:
        evictions[preemption.uid].append(preemption)
    found = {}
    ended = over(snapshot, subjects)
    for subject in sorted(living.keys() & watched.keys() - ended):
        job = _job(subject, living[subject], watched[subject], evictions, snapshot, cluster)
        if job.counted:
            found[subject] = job
    return found


def over(snapshot: Snapshot, subjects: Subjects) -> set[str]:
    """Name the jobs that have finished: one Workload of each did, and none runs or waits."""
    ended, going = set(), set()
    for workload in snapshot.workloads:
        if finished(workload):
            ended.add(subjects.by_uid[workload.uid])
        elif reserves(workload) or pending(workload):
            going.add(subjects.by_uid[workload.uid])
    return ended - going


def _job(
    subject: str,
    living: Sequence[Workload],
    watched: Iterable[Watched],
    evictions: Mapping[str, Sequence[Eviction]],
    snapshot: Snapshot,
    cluster: ClusterPolicy,
) -> Job:
    workload = max(living, key=lambda w: (w.created, w.uid))
    limits = limits_of(workload, subject, cluster)
    cutoff = snapshot.at - timedelta(hours=limits.period_hours)
    every: list[Eviction] = []
    at_least = False
    others = 0
    for one in watched:
        mine = evictions.get(one.uid, ())
        every += mine
        others += one.others
        uncounted = not one.gone and one.counter < sum(e.count for e in mine)
        straddles = any(e.at >= cutoff and not e.within(cutoff) for e in mine)
        missed = one.gap is not None and one.gap >= cutoff
        at_least = at_least or uncounted or straddles or missed
    return Job(
        subject=subject,
        workload=workload,
        limits=limits,
        gpus=sum(accelerators_of(w) for w in living if reserves(w) or pending(w)),
        counted=in_order(e for e in every if e.within(cutoff)),
        at_least=at_least,
        others=others,
    )


def in_order(evictions: Iterable[Eviction]) -> tuple[Eviction, ...]:
    """Sort preemptions of several Workloads by time."""
    return tuple(sorted(evictions, key=lambda e: (e.at, e.after or e.at, e.uid, e.count)))


def losses(counted: Sequence[Eviction], usd: Pricing) -> Losses:
    """Add up what preemptions lost.

    Parameters
    ----------
    counted : sequence of Eviction
        Of one job, or of several.
    usd : callable
        Dollars an accelerator hour of an instance type; None without a price.
    """
    proven = any(proof_of(one) is Proof.PROVEN for one in counted)
    each = tuple(lost(one, proven=proven) for one in counted)
    known = [hours for hours in each if hours is not None]
    costs = []
    for one, hours in zip(counted, each, strict=True):
        if hours:
            price = usd(one.instance_type)
            costs.append(None if price is None else hours * price)
    priced = [cost for cost in costs if cost is not None]
    return Losses(
        gpu_hours=sum(known) if known else None,
        cost_usd=sum(priced) if known and len(priced) == len(costs) else None,
        at_least=len(known) < len(each),
        each=each,
    )


def pricing(snapshot: Snapshot, cluster: ClusterPolicy) -> Pricing:
    """Give what an accelerator hour costs by instance type; unknown ones as the only one there is."""
    told = {one.name: one.accelerators for one in snapshot.instance_types}
    sole = sole_type(cluster)

    def usd(instance_type: str | None) -> float | None:
        name = instance_type or sole
        if name is None:
            return None
        size = told.get(name)
        if size is None:
            size, _ = accelerators_of_type(name, cluster.capacity, snapshot.nodes)
        return usd_per_accelerator(name, {name: size}, cluster)

    return usd


def sole_type(cluster: ClusterPolicy) -> str | None:
    """Name the instance type of the policy's capacity, where there is but one."""
    types = {group.instance_type for group in cluster.capacity}
    return types.pop() if len(types) == 1 else None


def needed_minutes(limits: PreemptionLimits) -> int:
    """Tell how long a run has to be to get anywhere."""
    return limits.startup_minutes + limits.checkpoint_minutes


def gets_nowhere(job: Job) -> float | None:
    """Give the longest of the last runs, in minutes, if none of them got anywhere.

    None: one did, or may have; a run with a proven checkpoint did.
    """
    runs: list[float] = []
    for one in reversed(job.counted):
        if len(runs) >= job.limits.count:
            break
        if one.ran_most is None or proof_of(one) is Proof.PROVEN:
            return None
        runs += [one.ran_most / 60] * one.count
    if len(runs) < max(1, job.limits.count) or max(runs) >= needed_minutes(job.limits):
        return None
    return max(runs)


def by_cause(counted: Iterable[Eviction]) -> dict[str, int]:
    """Count preemptions by the rule that caused them."""
    causes: Counter[str] = Counter()
    for one in counted:
        causes[one.words.cause or "unknown"] += one.count
    return {cause: causes[cause] for cause in sorted(causes)}


def preemptor_of(one: Eviction) -> str | None:
    """Name the job that a preemption made room for, else what its message names."""
    if one.preemptor:
        return one.preemptor
    if one.words.uid:
        return f"Workload UID {one.words.uid}"
    return f"Job UID {one.words.job_uid}" if one.words.job_uid else None


def by_preemptor(counted: Iterable[Eviction]) -> list[dict[str, object]]:
    """Count preemptions by the job that they made room for, the most first."""
    names: Counter[str] = Counter()
    for one in counted:
        if name := preemptor_of(one):
            names[name] += one.count
    ordered = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return [{"subject": name, "count": number} for name, number in ordered]
