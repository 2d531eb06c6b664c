"""Workloads that wait for each reason, as three Kueue versions word it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.handmade import Object
from tests.queues.kit import (
    FLAVOR,
    GPU,
    K12,
    K18,
    K19,
    Dialect,
    Job,
    Quota,
    cluster_queue,
    condition,
    local_queue,
)
from tests.queues.scene import (
    Recorded,
    at,
    cluster,
    control_plane,
    finished,
    holds,
    machine,
    machines,
    refused,
    running_pod,
)

SMALL, MIDDLE = "ml.g6e.12xlarge", "ml.g5.12xlarge"
LATELY, EARLY = at("11:50"), at("09:00")
WIDE = ("running-wide", at("08:00"))

GATED = {
    "unused quota": "WaitingForQuota",
    "insufficient quota": "ExceedsMaxQuota",
    "topology": "TopologyPlacementFailed",
    "Pending the preemption": "WaitingForPreemptedWorkloads",
    "unavailable in": "NoMatchingFlavor",
    "taint": "NoMatchingFlavor",
    "Queue": "Misconfigured",
}
"""Reasons of the condition where Kueue's gate for them is on, by a part of the message."""


class Case(NamedTuple):
    """What one case adds to the cluster."""

    jobs: Sequence[Job]
    queues: Sequence[Object]
    local_queues: Sequence[Object] | None = None
    pods: Sequence[Object] = ()


def space(case: str) -> str:
    return f"hyperpod-ns-{case}"


def subject(case: str, name: str | None = None) -> str:
    return f"Job/{space(case)}/{name or case}"


def queue_name(case: str) -> str:
    return f"{space(case)}-clusterqueue"


def of(pod_set: str, *reasons: str) -> str:
    """The outer form of a refusal."""
    return f"couldn't assign flavors to pod set {pod_set}: {', '.join(sorted(reasons))}"


def unused(missing: object, resource: str = GPU, flavor: str = FLAVOR) -> str:
    return of(
        "main",
        f"insufficient unused quota for {resource} in flavor {flavor}, {missing} more needed",
    )


def _queue(dialect: Dialect, case: str, nominal: int, reserved: int = 0, **more: object) -> Object:
    rows = {FLAVOR: {GPU: Quota(nominal=str(nominal), reserved=str(reserved))}}
    return cluster_queue(dialect, queue_name(case), None, rows, **more)  # type: ignore[arg-type]


def _waits(dialect: Dialect, case: str, gpus: int, message: str | None, **more: object) -> Job:
    """A job with Kueue's answer; None: it was never looked at."""
    reason = "Inadmissible" if message and "Queue" in message else "Pending"
    if dialect.version == "0.18":
        found = (gated for part, gated in GATED.items() if part in (message or ""))
        reason = next(found, reason)
        if message and "Pending the preemption" in message:
            reason = GATED["Pending the preemption"]
    given: dict[str, object] = {"name": case, "team": case, "created": EARLY, "gpus": gpus}
    given["conditions"] = refused(EARLY, message, reason) if message else ()
    return Job(**(given | more))  # type: ignore[arg-type]


# --- never admissible ----------------------------------------------------------------------------


def _missing(d: Dialect) -> Case:
    """The queue label has a typo."""
    typo = f"{space('audio')}-localque"
    message = f"LocalQueue {typo} doesn't exist"
    return Case(
        [_waits(d, "audio", 4, message, created=LATELY, queue=typo)], [_queue(d, "audio", 8)]
    )


def _halted(d: Dialect) -> Case:
    """Its ClusterQueue was stopped."""
    message = f"ClusterQueue {queue_name('halted')} is inactive"
    stopped = _queue(d, "halted", 8, stop="Hold", active=("False", "Stopped"))
    return Case([_waits(d, "halted", 4, message, created=LATELY)], [stopped])


def _parked(d: Dialect) -> Case:
    """Its LocalQueue was stopped."""
    message = f"LocalQueue {space('parked')}-localqueue is inactive"
    return Case(
        [_waits(d, "parked", 4, message, created=LATELY)],
        [_queue(d, "parked", 8)],
        [local_queue(d, "parked", stop="HoldAndDrain")],
    )


def _neuron(d: Dialect) -> Case:
    """It asks for accelerators that its queue has none of."""
    message = of("main", "resource aws.amazon.com/neuron unavailable in ClusterQueue")
    asks = {"aws.amazon.com/neuron": "16"}
    job = _waits(d, "neuron", 0, message, created=LATELY, requests=asks)
    return Case([job], [_queue(d, "neuron", 8)])


def _tainted(d: Dialect) -> Case:
    """It does not tolerate its flavor."""
    taint = "{dedicated vision NoSchedule <nil>}"
    message = of("main", f"untolerated taint {taint} in flavor {FLAVOR}")
    return Case([_waits(d, "tainted", 4, message, created=LATELY)], [_queue(d, "tainted", 8)])


def _vanished(d: Dialect) -> Case:
    """Its queue names a ResourceFlavor that somebody deleted, and so is inactive."""
    message = f"ClusterQueue {queue_name('vanished')} is inactive"
    rows = {"ml.p4d.24xlarge": {GPU: Quota(nominal="8")}}
    active = ("False", "FlavorNotFound")
    queue = cluster_queue(d, queue_name("vanished"), None, rows, active=active)
    return Case([_waits(d, "vanished", 4, message, created=LATELY)], [queue])


def _giant(d: Dialect) -> Case:
    """Two pods of 8 in a queue of 8 that belongs to no cohort."""
    message = of("main", d.fits_never.format(16, 8, res=GPU, flavor=FLAVOR))
    return Case([_waits(d, "giant", 8, message, created=LATELY, pods=2)], [_queue(d, "giant", 8)])


# --- may yet be admitted -------------------------------------------------------------------------


def _short(d: Dialect) -> Case:
    """4 wanted, 2 of 8 left; and another that has waited for less than two hours at noon."""
    other = _waits(d, "patient", 4, unused(2), created=at("10:03"))
    return Case(
        [_waits(d, "short", 4, unused(2)), other],
        [_queue(d, "short", 8, 6), _queue(d, "patient", 8, 6)],
    )


def _cpus(d: Dialect) -> Case:
    """GPUs are free, cores of the same flavor are not: 6 of 96 left, 32 wanted."""
    rows = {
        FLAVOR: {
            GPU: Quota(nominal="8", reserved="0"),
            "cpu": Quota(nominal="96", reserved="90"),
        }
    }
    job = _waits(d, "cpus", 4, unused(26, "cpu"), requests={"cpu": "32"})
    return Case([job], [cluster_queue(d, queue_name("cpus"), None, rows)])


def _capped(d: Dialect) -> Case:
    """8 of its own and all 4 that it may borrow are taken; its neighbour leaves 4 idle."""
    own = Quota(nominal="8", borrowing="4", reserved="12", borrowed="4")
    lender = Quota(nominal="8", reserved="0")
    queues = [
        cluster_queue(d, queue_name(name), "pool-capped", {FLAVOR: {GPU: quota}})
        for name, quota in (("capped", own), ("capped-lender", lender))
    ]
    return Case([_waits(d, "capped", 4, unused(4))], queues)


def _evictor(d: Dialect) -> Case:
    """The victim is chosen and on its way out, and still holds its quota."""
    message = f"{unused(4)}. Pending the preemption of 1 workload(s)"
    job = _waits(d, "evictor", 4, message, priority=75)
    text = d.preempted("uid-w-evictor", "prioritization in the ClusterQueue")
    conditions = [
        *holds(at("08:00")),
        condition("Evicted", "True", "Preempted", at("11:59"), text),
        condition("Preempted", "True", "InClusterQueue", at("11:59"), text),
    ]
    victim = Job(
        name="victim",
        team="evictor",
        created=at("08:00"),
        gpus=8,
        admitted=True,
        conditions=conditions,
    )
    return Case(
        [job, victim], [_queue(d, "evictor", 8, 8)], pods=[running_pod(victim, at("08:00"), 1)]
    )


def _scattered(d: Dialect) -> Case:
    """6 GPUs free as 2 + 2 + 2, and one pod wants 4."""
    told = 'topology "hyperpod-default" doesn\'t allow to fit any of 1 pod(s)'
    if d.new:
        told += f'. Total nodes: 3; excluded: resource "{GPU}": 3'
    job = _waits(d, "scattered", 4, of("main", told), flavor=SMALL)
    busy = Job(
        name="busy",
        team="scattered",
        created=at("08:00"),
        gpus=2,
        pods=3,
        admitted=True,
        flavor=SMALL,
        conditions=holds(at("08:00")),
    )
    rows = {SMALL: {GPU: Quota(nominal="12", reserved="6")}}
    pods = [running_pod(busy, at("08:00"), 10 + number, number) for number in range(3)]
    return Case([job, busy], [cluster_queue(d, queue_name("scattered"), None, rows)], pods=pods)


def _gang(d: Dialect) -> Case:
    """4 + 4 + 2 GPUs free, and three pods want 3 each: 9 in all, and room for two of them."""
    told = 'topology "hyperpod-default" allows to fit only 2 out of 3 pod(s)'
    job = _waits(d, "gang", 3, of("main", told), flavor=MIDDLE, pods=3)
    busy = Job(
        name="gang-busy", team="gang", created=at("08:00"), gpus=2, admitted=True, flavor=MIDDLE,
        conditions=holds(at("08:00")),
    )  # fmt: skip
    rows = {MIDDLE: {GPU: Quota(nominal="12", reserved="2")}}
    queue = cluster_queue(d, queue_name("gang"), None, rows)
    return Case([job, busy], [queue], pods=[running_pod(busy, at("08:00"), 22)])


def _raced(d: Dialect) -> Case:
    """Somebody else was faster in the same cycle: 2 of 8 are left for its 4."""
    message = "Workload no longer fits after processing another workload"
    return Case([_waits(d, "raced", 4, message)], [_queue(d, "raced", 8, 6)])


def _overlap(d: Dialect) -> Case:
    """Its victims were somebody else's already."""
    message = "Workload has overlapping preemption targets with another workload"
    return Case([_waits(d, "overlap", 4, message)], [_queue(d, "overlap", 8, 8)])


def _failing(d: Dialect) -> Case:
    """Its victims are chosen; from 0.13 on Kueue also says that it could not evict them."""
    suffix = "Preempting 2 workload(s) failed, will retry."
    if not d.new:
        suffix = "Pending the preemption of 2 workload(s)"
    return Case([_waits(d, "failing", 4, f"{unused(4)}. {suffix}")], [_queue(d, "failing", 8, 8)])


def _either(d: Dialect) -> Case:
    """Too large for ever on one flavor, and 4 short on the other: that one may open."""
    never = d.fits_never.format(8, 4, res=GPU, flavor=SMALL)
    later = f"insufficient unused quota for {GPU} in flavor {FLAVOR}, 4 more needed"
    rows = {
        SMALL: {GPU: Quota(nominal="4", reserved="0")},
        FLAVOR: {GPU: Quota(nominal="8", reserved="4")},
    }
    job = _waits(d, "either", 8, of("main", never, later))
    return Case([job], [cluster_queue(d, queue_name("either"), None, rows)])


def _again(d: Dialect) -> Case:
    """Evicted 90 minutes ago for the second time; Kueue's own clock still runs from the first."""
    text = d.preempted("uid-w-other", "reclamation within the cohort")
    conditions = [
        *refused(at("10:30"), unused(2)),
        condition("Evicted", "True", "Preempted", at("10:30"), text),
        condition("Preempted", "True", "InCohortReclamation", at("10:30"), text),
        condition("Requeued", "True", "Preempted", at("06:00"), text),
        condition("Admitted", "False", "NoReservation", at("10:30"), "no reservation"),
    ]
    job = _waits(d, "again", 4, None, created=at("05:00"), conditions=conditions)
    return Case([job], [_queue(d, "again", 8, 6)])


def _switched_off(d: Dialect) -> Case:
    """Somebody deactivated it: it waits for nothing."""
    return Case([_waits(d, "off", 4, unused(2), active=False)], [_queue(d, "off", 8, 6)])


def _strict(d: Dialect) -> Case:
    """Nobody passes the head of a StrictFIFO queue: 8 wanted, 4 of 8 left."""
    head = _waits(d, "strict", 8, unused(4), name="strict-first")
    behind = _waits(d, "strict", 2, None, name="strict-second", created=at("09:05"))
    return Case([head, behind], [_queue(d, "strict", 8, 4, strategy="StrictFIFO")])


def _deep(d: Dialect) -> Case:
    """The same in a BestEffortFIFO queue: it may pass, and was not looked at."""
    head = _waits(d, "deep", 8, unused(4), name="deep-first")
    behind = _waits(d, "deep", 8, None, name="deep-second", created=at("09:05"))
    return Case([head, behind], [_queue(d, "deep", 8, 4)])


def _classless(d: Dialect) -> Case:
    """It names no class, has priority 0, and one of 75 goes first."""
    head = _waits(
        d, "classless", 8, unused(4), name="classless-first", priority=75, created=at("11:55"),
        priority_class="production-training-priority",
    )  # fmt: skip
    behind = _waits(
        d, "classless", 2, None, name="classless-second", priority=0, priority_class=None
    )
    return Case([head, behind], [_queue(d, "classless", 8, 4)])


# --- holds quota and runs nothing ----------------------------------------------------------------


def _hollow(d: Dialect) -> Case:
    """16 GPUs admitted at 09:50 and no pod, and 8 since 11:33."""
    jobs = [
        Job(
            name=name, team=name, created=EARLY, gpus=8, pods=pods, admitted=True,
            conditions=holds(at(since)),
        )
        for name, pods, since in (("hollow", 2, "09:50"), ("fresh", 1, "11:33"))
    ]  # fmt: skip
    return Case(jobs, [_queue(d, "hollow", 16, 16), _queue(d, "fresh", 8, 8)])


def _torn(d: Dialect) -> Case:
    """Evicted, and still admitted with its quota: three conditions that cannot all be true."""
    gone = condition("Evicted", "True", "NodeFailures", at("11:00"), "node failed")
    job = Job(
        name="torn", team="torn", created=EARLY, gpus=8, admitted=True,
        conditions=[*holds(at("10:30")), gone],
    )  # fmt: skip
    return Case([job], [_queue(d, "torn", 8, 8)])


# --- texts that the objects contradict -----------------------------------------------------------


def _stale(d: Dialect) -> Case:
    """Larger than the queue could ever hold, says the text; its quota is 32 since."""
    message = of("main", d.fits_never.format(16, 8, res=GPU, flavor=FLAVOR))
    return Case([_waits(d, "stale", 8, message, pods=2)], [_queue(d, "stale", 32)])


def _awake(d: Dialect) -> Case:
    """Inactive, says the text; the queue is active, and all of it is free."""
    message = f"ClusterQueue {queue_name('awake')} is inactive"
    return Case([_waits(d, "awake", 4, message)], [_queue(d, "awake", 8)])


CASES = (
    _missing, _halted, _parked, _neuron, _tainted, _vanished, _giant, _short, _cpus, _capped,
    _evictor, _scattered, _gang, _raced, _overlap, _failing, _either, _again, _switched_off,
    _strict, _deep, _classless, _hollow, _torn, _stale, _awake,
)  # fmt: skip


def _reasons(dialect: Dialect, folder: Path) -> None:
    control_plane(folder)
    cases = [make(dialect) for make in CASES]
    queues = [queue for case in cases for queue in case.queues]
    given = [one for case in cases for one in case.local_queues or ()]
    named = {one["spec"]["clusterQueue"] for one in given}
    others = [queue["metadata"]["name"] for queue in queues]
    teams = [
        name.removeprefix("hyperpod-ns-").removesuffix("-clusterqueue")
        for name in others
        if name not in named
    ]
    small = [
        machine(first + number, gpus=4, kind=kind)
        for first, kind in ((10, SMALL), (20, MIDDLE))
        for number in range(3)
    ]
    cluster(
        folder,
        at("11:58"),
        dialect,
        queues=queues,
        local_queues=[*given, *(local_queue(dialect, team) for team in teams)],
        jobs=[job for case in cases for job in case.jobs],
        nodes=[*machines(), *small],
        flavors=(FLAVOR, SMALL, MIDDLE),
        pods=[one for case in cases for one in case.pods],
    )


def _ends(folder: Path) -> None:
    """Five jobs wait; between 12:05 and 12:10 that ends or changes, for each in its own way."""
    control_plane(folder)
    names = ("starts", "ends", "leaves")
    waiting = [_waits(K19, name, 4, unused(2)) for name in names]
    queues = [_queue(K19, name, 8, 6) for name in (*names, "mended", "cut")]
    short = _waits(K19, "cut", 4, unused(2))
    typo = f"{space('mended')}-localque"
    mistaken = _waits(
        K19, "mended", 4, f"LocalQueue {typo} doesn't exist", created=LATELY, queue=typo
    )
    cluster(folder, at("11:58"), K19, queues=queues, jobs=[*waiting, mistaken, short])
    started = Job(
        name="starts", team="starts", created=EARLY, gpus=4, admitted=True,
        conditions=holds(at("12:06")),
    )  # fmt: skip
    ended = Job(
        name="ends", team="ends", created=EARLY, gpus=4, admitted=True,
        conditions=finished(at("12:05:30"), at("12:06:30")),
    )  # fmt: skip
    mended = _waits(K19, "mended", 4, unused(2), created=LATELY)
    never = of("main", K19.fits_never.format(4, 2, res=GPU, flavor=FLAVOR))
    queues = [_queue(K19, "starts", 8, 8), *queues[1:-1], _queue(K19, "cut", 2, 0)]
    pods = [running_pod(started, at("12:06"))]
    jobs = [started, ended, mended, _waits(K19, "cut", 4, never)]
    cluster(folder, at("12:07"), K19, queues=queues, jobs=jobs, pods=pods)


_RIGHT = (
    "Right: the reason that the name of each namespace stands for, in every version the same. "
    "What can never be admitted is told at once, what holds quota without pods after 30 minutes, "
    "everything else after two hours: patient and fresh are told at 12:05 and not at 12:00. The "
    "texts of stale and awake are contradicted by the objects: both are said."
)
RECORDINGS = (
    *(
        Recorded(
            f"pending-{dialect.version}",
            at("12:00"),
            at("12:05"),
            "5m",
            f"Workloads that wait, one or two a namespace, in the words of Kueue {dialect.version}. "
            + _RIGHT,
            partial(_reasons, dialect),
        )
        for dialect in (K12, K18, K19)
    ),
    Recorded(
        "pending-ends",
        at("12:00"),
        at("12:20"),
        "5m",
        "Five jobs wait. Between 12:05 and 12:10 one is admitted, one runs and ends, one is "
        "deleted, one gets the right queue, where it waits on, and of one the queue's quota is cut "
        "to less than it asks for. Right: admitted, finished, released; the missing queue is told "
        "no more; and the last has another reason.",
        _ends,
    ),
)
