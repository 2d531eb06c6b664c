"""Queues that borrow up to a limit, would borrow more, cannot get back their own, or have no limit."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.handmade import Object
from tests.queues.kit import (
    FLAVOR,
    GPU,
    K12,
    K19,
    Dialect,
    Job,
    Quota,
    cluster_queue,
    cohort,
)
from tests.queues.scene import (
    Recorded,
    at,
    cluster,
    compute_quota,
    control_plane,
    finished,
    holds,
    metrics,
    refused,
    running_pod,
)

type Rows = Mapping[str, Quota]


class Case(NamedTuple):
    """A cohort of its own, on a flavor of its own."""

    name: str
    queues: Mapping[str, Rows]
    jobs: Sequence[Job] = ()
    cohorts: Sequence[Object] = ()
    parents: Mapping[str, str] = {}
    preemption: Object | None = None

    @property
    def flavor(self) -> str:
        return flavor(self.name)

    def objects(self, dialect: Dialect) -> list[Object]:
        """Its ClusterQueues."""
        return [
            cluster_queue(
                dialect,
                queue_name(queue),
                self.parents.get(queue, f"pool-{self.name}"),
                {self.flavor: rows},
                preemption=self.preemption,
            )
            for queue, rows in self.queues.items()
        ]


def flavor(case: str) -> str:
    return f"ml.{case}"


def queue_name(team: str) -> str:
    return f"hyperpod-ns-{team}-clusterqueue"


def subject(case: str, resource: str = GPU, team: str | None = None) -> str:
    return f"ClusterQueue/{queue_name(team or case)}/{flavor(case)}/{resource}"


def _gpus(nominal: int, reserved: int = 0, **others: int) -> Rows:
    """A quota of GPUs; `borrowing` and `lending` where they are set, `used` where it is less."""
    given = {name: str(value) for name, value in others.items()}
    borrowed = str(max(0, reserved - nominal))
    quota = Quota(nominal=str(nominal), reserved=str(reserved), borrowed=borrowed, **given)
    return {GPU: quota}


def _runs(case: str, gpus: int, since: str, team: str | None = None, name: str = "runs") -> Job:
    """A job that holds quota since some time."""
    return Job(
        name=f"{team or case}-{name}",
        team=team or case,
        created=at("08:00"),
        gpus=gpus,
        admitted=True,
        flavor=flavor(case),
        conditions=holds(at(since)),
    )


def _waits(case: str, gpus: int, missing: int, *, team: str | None = None, **more: object) -> Job:
    """A job that waits since 10:30."""
    text = (
        f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in flavor "
        f"{flavor(case)}, {missing} more needed"
    )
    given: dict[str, object] = {
        "name": f"{team or case}-waits",
        "team": team or case,
        "created": at("10:30"),
        "gpus": gpus,
        "conditions": refused(at("10:30"), text),
    }
    return Job(**(given | more))  # type: ignore[arg-type]


# --- by the limit --------------------------------------------------------------------------------

FULL = Case(
    "full",
    # 15 + 8 = 23 of 12 + 11: nothing is left, though the limit has room for 3 more.
    {"full": _gpus(12, 15, borrowing=6), "full-lender": _gpus(11, 8, borrowing=0)},
    [
        _runs("full", 15, "10:00"),
        _runs("full", 8, "11:00", "full-lender"),
        _waits("full", 2, 2),
    ],
)
NOT_LENT = Case(
    "kept",
    # The same, and a third queue in the cohort that leaves 10 idle and lends none of them.
    {
        "kept": _gpus(12, 15, borrowing=6),
        "kept-lender": _gpus(11, 8, borrowing=0),
        "kept-home": _gpus(10, 0, borrowing=0, lending=0),
    },
    [
        _runs("kept", 15, "10:00"),
        _runs("kept", 8, "11:00", "kept-lender"),
        _waits("kept", 2, 2),
    ],
)
CONTENT = Case(
    "content",
    # All 4 borrowed since 10:50, 4 more to be had, and nobody asks.
    {"content": _gpus(8, 12, borrowing=4), "content-lender": _gpus(8, borrowing=0)},
    [_runs("content", 12, "10:50")],
)
LATELY = Case(
    "lately",
    # The same for 20 minutes at 11:30.
    {"lately": _gpus(8, 12, borrowing=4), "lately-lender": _gpus(8, borrowing=0)},
    [_runs("lately", 12, "11:10")],
)
NEARLY = Case(
    "nearly",
    # 19 of 20 is 95 %.
    {"nearly": _gpus(8, 27, borrowing=20), "nearly-lender": _gpus(40, borrowing=0)},
    [_runs("nearly", 27, "10:50")],
)
NOT_YET = Case(
    "notyet",
    # 18 of 20 is 90 %.
    {"notyet": _gpus(8, 26, borrowing=20), "notyet-lender": _gpus(40, borrowing=0)},
    [_runs("notyet", 26, "10:50")],
)
ZERO = Case(
    "zero",
    # It may not borrow, however much lies idle.
    {"zero": _gpus(8, 8, borrowing=0), "zero-lender": _gpus(8, borrowing=0)},
    [_runs("zero", 8, "10:00"), _waits("zero", 2, 2)],
)
ZERO_FULL = Case(
    "barred",
    # The same, and nothing lies idle either: still it waits for its own, not for the pool.
    {"barred": _gpus(8, 8, borrowing=0), "barred-lender": _gpus(8, 8, borrowing=0)},
    [
        _runs("barred", 8, "10:00"),
        _runs("barred", 8, "10:00", "barred-lender"),
        _waits("barred", 2, 2),
    ],
)
UNSET = Case(
    "unset",
    # Nothing limits it, 6 are left in the pool, and nobody waits.
    {"unset": _gpus(8, 10), "unset-lender": _gpus(8, borrowing=0)},
    [_runs("unset", 10, "10:00")],
)
UNSET_FULL = Case(
    "drained",
    # Nothing limits it, and it has taken all there is.
    {"drained": _gpus(8, 16), "drained-lender": _gpus(8, borrowing=0)},
    [_runs("drained", 16, "11:00"), _waits("drained", 2, 2)],
)

# --- an owner that waits for its own -------------------------------------------------------------

_CORES = {
    "owner": Quota(nominal="96", reserved="0", borrowing="0"),
    "taker": Quota(nominal="96", reserved="180", borrowed="84", borrowing="96"),
}
BLOCKED = Case(
    "owner",
    # 4 GPUs of 8 are free and its own; of its own 96 cores it gets 192 - 180 = 12.
    {
        "owner": {**_gpus(8, borrowing=0), "cpu": _CORES["owner"]},
        "owner-taker": {**_gpus(8, 8, borrowing=4), "cpu": _CORES["taker"]},
    },
    [
        Job(
            name="owner-taker-runs",
            team="owner-taker",
            created=at("08:00"),
            gpus=8,
            requests={"cpu": "180"},
            admitted=True,
            flavor=flavor("owner"),
            conditions=holds(at("11:00")),
        ),
        _waits(
            "owner",
            4,
            36,
            requests={"cpu": "48"},
            conditions=refused(
                at("10:30"),
                "couldn't assign flavors to pod set main: insufficient unused quota for cpu in "
                f"flavor {flavor('owner')}, 36 more needed",
            ),
        ),
    ],
    preemption={
        "withinClusterQueue": "LowerPriority",
        "reclaimWithinCohort": "LowerPriority",
        "borrowWithinCohort": {"policy": "Never"},
    },
)


def _tree(dialect: Dialect) -> Case:
    """A cohort in a cohort: its queue may borrow 4, and all of it together 4, and both are taken."""
    rows = {flavor("tree"): {GPU: Quota(nominal="0", borrowing="4")}}
    return Case(
        "tree",
        {"tree": _gpus(8, 12, borrowing=4), "tree-lender": _gpus(12, borrowing=0)},
        [_runs("tree", 12, "11:00"), _waits("tree", 2, 2)],
        [
            cohort(dialect, "org"),
            cohort(dialect, "org-left", "org", rows),
            cohort(dialect, "org-right", "org"),
        ],
        {"tree": "org-left", "tree-lender": "org-right"},
    )


def _branch(dialect: Dialect) -> Case:
    """The same where only the cohort's limit is reached: the team's own is 8."""
    rows = {flavor("branch"): {GPU: Quota(nominal="0", borrowing="4")}}
    return Case(
        "branch",
        {"branch": _gpus(8, 12, borrowing=8), "branch-lender": _gpus(12, borrowing=0)},
        [_runs("branch", 12, "11:00"), _waits("branch", 2, 2)],
        [
            cohort(dialect, "firm"),
            cohort(dialect, "firm-left", "firm", rows),
            cohort(dialect, "firm-right", "firm"),
        ],
        {"branch": "firm-left", "branch-lender": "firm-right"},
    )


CASES = (
    FULL, NOT_LENT, CONTENT, LATELY, NEARLY, NOT_YET, ZERO, ZERO_FULL, UNSET, UNSET_FULL, BLOCKED,
)  # fmt: skip


def _pools(dialect: Dialect, folder: Path) -> None:
    control_plane(folder)
    cases = [*CASES, _tree(dialect), _branch(dialect)]
    jobs = [job for case in cases for job in case.jobs]
    cluster(
        folder,
        at("11:12"),
        dialect,
        queues=[queue for case in cases for queue in case.objects(dialect)],
        jobs=jobs,
        cohorts=[one for case in cases for one in case.cohorts],
        flavors=[case.flavor for case in cases],
        pods=[running_pod(job, at("10:00")) for job in jobs if job.admitted],
    )
    metrics(folder, _limits(cases), "kueue.om")


def _limits(cases: Sequence[Case]) -> list[str]:
    """What Kueue's metrics say of every limit: three values that are no limits, for each queue."""
    lines = ["# TYPE kueue_cluster_queue_borrowing_limit gauge"]
    when = f"{at('11:20').timestamp():.0f}"
    for case in cases:
        for number, queue in enumerate(case.queues):
            labels = (
                f'cohort="pool-{case.name}",cluster_queue="{queue_name(queue)}",'
                f'flavor="{case.flavor}",resource="{GPU}"'
            )
            value = ("+Inf", "NaN", "0")[(len(case.name) + number) % 3]
            lines.append(f"kueue_cluster_queue_borrowing_limit{{{labels}}} {value} {when}")
    return lines


# --- a team's limit, and its end -----------------------------------------------------------------


def _team(dialect: Dialect, name: str, rows: Rows) -> Object:
    return cluster_queue(dialect, queue_name(name), "shared-pool", {FLAVOR: rows})


def _binding(dialect: Dialect, limit: int, folder: Path) -> None:
    """Research: 12 of its own and all 6 it may borrow; mlops leaves 11 - 6 = 5; somebody wants 4."""
    control_plane(folder, quotas=[compute_quota("research", 12, 25)])

    def runs(name: str, gpus: int, since: str) -> Job:
        return Job(
            name=name, team="research", created=at("08:00"), gpus=gpus, admitted=True,
            conditions=holds(at(since)),
        )  # fmt: skip

    text = (
        f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in flavor "
        f"{FLAVOR}, 4 more needed"
    )
    sweep = Job(
        name="sweep", team="research", created=at("10:30"), gpus=4,
        conditions=refused(at("10:30"), text),
    )  # fmt: skip
    bench = Job(
        name="bench", team="platform-mlops", created=at("07:00"), gpus=4, admitted=True,
        conditions=finished(at("07:00"), at("09:00")),
    )  # fmt: skip
    own, more = runs("own", 12, "08:00"), runs("more", 6, "11:00")
    lender = _team(dialect, "platform-mlops", _gpus(11, borrowing=5))
    pods = [running_pod(own, at("08:00")), running_pod(more, at("11:00"), 1)]
    cluster(
        folder,
        at("11:02"),
        dialect,
        queues=[_team(dialect, "research", _gpus(12, 18, borrowing=6, used=14)), lender],
        jobs=[own, more, sweep, bench],
        pods=pods,
    )
    admitted = Job(
        name="sweep", team="research", created=at("10:30"), gpus=4, admitted=True,
        conditions=holds(at("11:37")),
    )  # fmt: skip
    cluster(
        folder,
        at("11:37"),
        dialect,
        queues=[_team(dialect, "research", _gpus(12, 22, borrowing=limit)), lender],
        jobs=[own, more, admitted, bench],
        pods=[*pods, running_pod(admitted, at("11:37"), 2)],
    )


def _lowered(folder: Path) -> None:
    """Research has borrowed 6 since 09:00: half of its limit, and all of it from 11:37 on."""
    control_plane(folder)
    runs = Job(
        name="runs", team="research", created=at("08:00"), gpus=18, admitted=True,
        conditions=holds(at("09:00")),
    )  # fmt: skip
    for when, limit in (("09:30", 12), ("11:37", 6)):
        queues = [
            _team(K19, "research", _gpus(12, 18, borrowing=limit)),
            _team(K19, "platform-mlops", _gpus(11, borrowing=0)),
        ]
        pods = [running_pod(runs, at("09:00"))]
        cluster(folder, at(when), K19, queues=queues, jobs=[runs], pods=pods)


RECORDINGS = (
    *(
        Recorded(
            f"borrowing-pools-{dialect.version}",
            at("11:20"),
            at("11:30"),
            "5m",
            f"Cohorts in Kueue {dialect.version}, each of one case and on a flavor of its own; "
            "Kueue's metrics give +Inf, NaN and 0 for the limits. Right: full and kept are "
            "cluster_full, kept with what its neighbour keeps at home; content and nearly at_limit; "
            "lately (20 minutes), notyet (90 %), zero and barred nothing; unset unbounded, drained "
            "unbounded and cluster_full; owner reclaim_blocked by cpu; tree limit_binding with the "
            "limit of its cohort beside it, branch nothing.",
            partial(_pools, dialect),
        )
        for dialect in (K12, K19)
    ),
    *(
        Recorded(
            f"borrowing-limit-{dialect.version}",
            at("11:20"),
            at("11:50"),
            "5m",
            "Research holds 18, of which 14 run: 12 of its own and the 6 that it may borrow, since "
            "11:00. Platform-mlops has 11 in the same cohort and runs nothing since 09:00: 5 are "
            f"left. A job that wants 4 waits. At 11:37 the limit becomes {limit}, and the job "
            "starts. Right: limit_binding at 11:30, for thirty minutes; raising the limit by 4 "
            "admits the job; it ends as quota_changed, and nothing else is told: what is reserved "
            "has been near the new limit for 13 minutes at most.",
            partial(_binding, dialect, limit),
        )
        for dialect, limit in ((K12, 10), (K19, 12))
    ),
    Recorded(
        "borrowing-lowered",
        at("11:30"),
        at("12:15"),
        "5m",
        "Research has borrowed 6 since 09:00, of a limit of 12 that becomes 6 at 11:37; nobody "
        "waits. Right: at_limit at 12:10, half an hour after it was first seen at the new limit.",
        _lowered,
    ),
)
