"""Teams at their borrowing limit, full pools, owners who wait for their own, and no limit at all."""

import json
import math
import shlex
from copy import replace
from datetime import timedelta

import pytest

from steward.cluster.accelerators import UnknownReason
from steward.cluster.control_plane import ControlPlane
from steward.cluster.findings import Resolution
from steward.cluster.kueue import Preemption, Requeue
from steward.cluster.policy import Override, Severity
from steward.cluster.snapshot import PartStatus
from tests.builders import NOON, a_cluster, at
from tests.unit.cluster.quotas import GPU, P5, cohort, queue, row
from tests.unit.cluster.test_quota_sources import a_quota
from tests.unit.detect.borrowing_cluster import (
    CLUSTER,
    EMPTY,
    GENAI,
    MLOPS,
    MORNING,
    RESEARCH,
    SUBJECT,
    a_view,
    at_times,
    condition,
    finished,
    holds,
    local_queues,
    look,
    mlops,
    reasons,
    research,
    waits,
)

DENIED = PartStatus.DENIED
FULL = (holds("big", 18), holds("other", 5, team="platform-mlops"))
"""Research up to its limit, platform-mlops using what it has left."""


def test_a_limit_that_binds_says_by_how_much_to_raise_it_and_whom_that_admits():
    # Limit 6, borrowed 6, 5 idle at the lender; the head needs 4: 6 + 4 = 10, so 4 more.
    (finding,) = look().findings
    assert (finding.subject, finding.reason, finding.severity, finding.team) == (
        SUBJECT,
        "limit_binding",
        Severity.WARN,
        "research",
    )
    # At its limit since the morning; the finding is about the 6 that it has borrowed.
    assert (finding.since, finding.gpus, finding.gpu_hours) == (MORNING, 6, None)
    assert (finding.damping_minutes, finding.one_reason) == (0, True)
    evidence = finding.evidence
    assert (evidence["limit"], evidence["borrowed"], evidence["raise_by"]) == (6, 6, 4)
    assert evidence["raise_percent_to"] == 84  # 10 of 12 are 83.3 %
    assert evidence["admits"] == [
        {
            "subject": "PyTorchJob/hyperpod-ns-research/head",
            "workload": "hyperpod-ns-research/head",
            "need": 4,
            "missing": 4,
        }
    ]
    assert evidence["lenders"] == [
        {
            "team": "platform-mlops",
            "queue": MLOPS,
            "cohort": None,
            "idle": 5,
            "since": "2026-11-05T12:00:00Z",
            "at_least": True,
        }
    ]
    assert evidence["cohort_limits"] == []
    # What is reserved is not what is in use, and both are told apart.
    assert (evidence["nominal"], evidence["reserved"], evidence["used"]) == (12, 18, 17)
    assert (evidence["measured"], evidence["waiting"]) == ("reservations", 1)
    assert (evidence["window_minutes"], evidence["share"]) == (30, 0.95)


def test_without_anything_left_to_lend_the_cluster_is_full():
    lender = mlops(row(11, 6, reserved=5.0))
    (finding,) = look(research(), lender, workloads=(*FULL, waits())).findings
    assert (finding.reason, finding.severity, finding.gpus) == ("cluster_full", Severity.INFO, 6)
    evidence = finding.evidence
    assert (evidence["lenders"], evidence["raise_by"], evidence["admits"]) == ([], None, [])
    assert evidence["waits"]["subject"] == "PyTorchJob/hyperpod-ns-research/head"
    assert evidence["idle_not_lent"] == []


def test_too_little_left_to_lend_is_full_as_well():
    # 2 of the 4 are left: raising the limit would admit nobody.
    lender = mlops(row(11, 6, reserved=3.0))
    assert reasons(look(research(), lender)) == {(SUBJECT, "cluster_full")}


@pytest.mark.parametrize("own_pool", ["pool", "of-its-own", None], ids=str)
def test_a_team_that_does_not_lend_has_idle_accelerators_that_are_no_lenders(own_pool):
    # Whether by a lending limit of 0, in a cohort of its own, or in none.
    lends = 0 if own_pool == "pool" else None
    genai = queue(GENAI, row(10, 0, lends, reserved=3.0), cohort=own_pool)
    lender = mlops(row(11, 6, reserved=5.0))
    found = look(research(), lender, genai, workloads=(*FULL, waits()))
    (finding,) = found.findings
    assert (finding.reason, finding.evidence["lenders"]) == ("cluster_full", [])
    assert finding.evidence["idle_not_lent"] == [
        {"team": "product-genai", "queue": GENAI, "idle": 7}
    ]


def test_at_its_limit_with_nobody_waiting_is_worth_a_line_in_the_digest():
    (finding,) = look(workloads=(holds("big", 18),)).findings
    assert (finding.reason, finding.severity, finding.since) == ("at_limit", Severity.INFO, MORNING)
    assert (finding.evidence["waiting"], finding.evidence["admits"]) == (0, [])
    assert [one["idle"] for one in finding.evidence["lenders"]] == [5]


def test_ninety_five_percent_of_a_limit_counts_as_reached_and_less_does_not():
    # 95 % of 20 are 19.
    lender = mlops(row(40, 0, reserved=0.0))
    for borrowed, told in ((19, {(SUBJECT, "at_limit")}), (18, set())):
        mine = research(row(12, 20, reserved=12.0 + borrowed))
        found = look(mine, lender, workloads=(holds("big", 12 + borrowed),))
        assert reasons(found) == told


def test_a_limit_of_zero_is_never_reached():
    mine = research(row(12, 0, reserved=12.0))
    assert look(mine, mlops(), workloads=(holds("big", 12), waits())).findings == ()


@pytest.mark.parametrize("limit", [None, math.inf, math.nan, -1.0], ids=str)
def test_without_a_limit_nothing_binds_and_one_team_can_take_everything(limit):
    # The 11 of platform-mlops, of which 6 are taken already.
    mine = research(row(12, limit, reserved=18.0))
    (finding,) = look(mine, mlops(), workloads=(holds("big", 18),)).findings
    assert (finding.reason, finding.severity, finding.one_reason) == (
        "unbounded",
        Severity.INFO,
        False,
    )
    assert (finding.gpus, finding.since) == (11, NOON)
    assert (finding.evidence["limit"], finding.evidence["could_borrow"]) == (None, 11)
    json.dumps(finding.evidence, allow_nan=False)  # and every number is one


def test_no_limit_is_told_once_and_since_it_was_first_seen():
    given = {"workloads": ()}
    mine = research(row(12, None, reserved=0.0))
    first = look(mine, mlops(), when=at("11:00"), **given)
    (finding,) = look(mine, mlops(), memory=first.memory, when=at("11:05"), **given).findings
    assert finding.since == at("11:00")


@pytest.mark.parametrize(
    ("mine", "lender"),
    [
        (research(row(12, None, reserved=0.0), cohort=None), mlops()),
        (research(row(12, None, reserved=0.0)), mlops(row(11, 6, 0, reserved=0.0))),
        (research(row(12, None, reserved=0.0, resource="cpu")), mlops(row(9, 0, resource="cpu"))),
    ],
    ids=["no cohort", "nobody lends", "no accelerators"],
)
def test_no_limit_matters_only_where_accelerators_could_be_taken(mine, lender):
    assert look(mine, lender, workloads=()).findings == ()


def test_no_limit_and_a_full_pool_are_two_findings():
    # "Cluster full", not "limit too low".
    mine = research(row(12, None, reserved=18.0))
    lender = mlops(row(11, 6, reserved=5.0))
    found = look(mine, lender, workloads=(*FULL, waits()))
    assert reasons(found) == {(SUBJECT, "cluster_full"), (SUBJECT, "unbounded")}


def test_a_full_pool_is_told_once_it_has_been_full_for_the_window():
    mine, lender = research(row(12, None, reserved=18.0)), mlops(row(11, 6, reserved=5.0))
    for since, told in (("11:31", False), ("11:30", True)):
        # The pool filled up when platform-mlops' 5 began.
        other = holds("other", 5, at(since), team="platform-mlops")
        found = look(mine, lender, workloads=(holds("big", 18), other, waits()))
        assert ((SUBJECT, "cluster_full") in reasons(found)) is told
        if told:
            assert found.findings[0].since == at("11:30")


def test_a_request_beyond_the_whole_pool_does_not_make_it_full():
    # 12 + 11 = 23 are all that could ever be had; `pending` says so.
    mine, lender = research(row(12, None, reserved=18.0)), mlops(row(11, 6, reserved=5.0))
    for need, told in ((23, True), (24, False)):
        found = look(mine, lender, workloads=(*FULL, waits(requests=need)))
        assert ((SUBJECT, "cluster_full") in reasons(found)) is told


def test_a_limit_of_the_cohort_has_to_be_raised_too():
    # The team's cohort may borrow 7 of the other half's 11 and has borrowed 6: 4 more need 10.
    mine = research(cohort="half")
    lender = mlops(cohort="root")
    cohorts = (cohort("root"), cohort("half", row(0, 7), parent="root"))
    (finding,) = look(mine, lender, cohorts=cohorts).findings
    assert (finding.reason, finding.evidence["raise_by"]) == ("limit_binding", 4)
    assert finding.evidence["cohort_limits"] == [{"cohort": "half", "limit": 7, "needed": 10}]


def test_a_queue_that_never_borrows_waits_for_itself_however_full_the_pool_is():
    lender = mlops(row(11, 6, reserved=11.0))
    full = holds("other", 11, team="platform-mlops")
    workloads = (holds("big", 12), full, waits())
    for mine in (
        research(row(12, 0, reserved=12.0)),
        research(row(12, reserved=12.0), cohort=None),
        research(row(12, reserved=12.0), cohort="of-its-own"),
    ):
        assert look(mine, lender, workloads=workloads).findings == ()


def test_what_can_never_be_admitted_does_not_make_the_pool_full():
    mine, lender = research(row(12, 6, reserved=16.0)), mlops(row(11, 6, reserved=7.0))
    held = (holds("big", 16), holds("other", 7, team="platform-mlops"))
    plain, odd = waits(), waits(requests={GPU: 4, "example.com/fpga": 1})
    assert reasons(look(mine, lender, workloads=(*held, plain))) == {(SUBJECT, "cluster_full")}
    assert look(mine, lender, workloads=(*held, odd)).findings == ()


def test_a_limit_of_the_cohort_that_suffices_is_not_named():
    # 6 + 4 = 10 of 10.
    cohorts = (cohort("root"), cohort("half", row(0, 10), parent="root"))
    (finding,) = look(research(cohort="half"), mlops(cohort="root"), cohorts=cohorts).findings
    assert (finding.evidence["raise_by"], finding.evidence["cohort_limits"]) == (4, [])


def test_a_limit_that_is_all_but_reached_does_not_bind_where_the_cohorts_does():
    # 19 of its own 20: the 1 that is needed would do. The cohort has 19 of 19.
    mine = research(row(12, 20, reserved=31.0), cohort="half")
    lender = mlops(row(40, 6, reserved=0.0), cohort="root")
    cohorts = (cohort("root"), cohort("half", row(0, 19), parent="root"))
    workloads = (holds("big", 31), waits(requests=1))
    found = look(mine, lender, cohorts=cohorts, workloads=workloads)
    assert reasons(found) == {(SUBJECT, "at_limit")}


def test_a_limit_of_the_cohort_alone_is_not_the_teams():
    # 1 of its own 7 is left and 1 is needed: only the cohort's 6 stand in the way.
    mine = research(row(12, 7, reserved=18.0), cohort="half")
    cohorts = (cohort("root"), cohort("half", row(0, 6), parent="root"))
    found = look(
        mine, mlops(cohort="root"), cohorts=cohorts, workloads=(holds("big", 18), waits(requests=1))
    )
    assert found.findings == ()


def test_a_pool_of_the_cohorts_own_lends_without_being_a_team():
    mine = research()
    cohorts = (cohort("pool", row(10)),)
    (finding,) = look(mine, cohorts=cohorts).findings
    assert finding.evidence["lenders"] == [
        {"team": None, "queue": None, "cohort": "pool", "idle": 4, "since": None, "at_least": None}
    ]


def test_the_queues_of_unallocated_capacity_lend_and_are_no_team():
    name = "hyperpod-ns-idle-resource-sharing-cq-1"
    shared = queue(name, row(11, None, reserved=18.0), shares_idle=True)
    # At its limit it is nobody's finding; beside a team that is, it is a lender without a team.
    assert look(shared, mlops(), workloads=()).findings == ()
    idle = queue(name, row(11, None, reserved=0.0), shares_idle=True)
    # Its LocalQueue stands in a team's namespace, which makes it no more that team's.
    local = local_queues(RESEARCH, name)
    local = (local[0], replace(local[1], namespace="hyperpod-ns-platform-mlops"))
    (finding,) = look(research(), idle, local_queues=local).findings
    assert [(one["team"], one["queue"]) for one in finding.evidence["lenders"]] == [(None, name)]


def test_only_the_head_of_a_strict_queue_counts():
    # The head wants 8, more than the 5 that are idle; the 4 behind it would fit and are not asked.
    line = (waits("head", 8), waits("small", 4, created=at("11:10")))
    workloads = (holds("big", 18), *line)
    strict = look(research(strategy="StrictFIFO"), mlops(), workloads=workloads)
    assert reasons(strict) == {(SUBJECT, "cluster_full")}
    assert strict.findings[0].evidence["waiting"] == 2
    (finding,) = look(research(), mlops(), workloads=workloads).findings
    assert finding.reason == "limit_binding"
    assert [one["workload"] for one in finding.evidence["admits"]] == ["hyperpod-ns-research/small"]


def test_the_first_in_the_queues_order_is_named():
    line = (
        waits("late", created=at("11:30")),
        waits("early", created=at("11:10")),
        waits("urgent", priority=100, created=at("11:40")),
    )
    (finding,) = look(workloads=(holds("big", 18), *line)).findings
    assert finding.evidence["admits"][0]["workload"] == "hyperpod-ns-research/urgent"


NOT_IN_LINE = {
    "other queue": {"queue": "gone"},
    "no queue": {"queue": None},
    "deactivated": {"active": False},
    "finished": {"conditions": (condition("Finished", at("11:50")),)},
    "backs off": {"requeue": Requeue(count=1, at=at("12:01"))},
}


@pytest.mark.parametrize("changes", NOT_IN_LINE.values(), ids=NOT_IN_LINE)
def test_what_waits_for_something_else_does_not_wait_at_the_limit(changes):
    assert reasons(look(workloads=(holds("big", 18), waits(**changes)))) == {(SUBJECT, "at_limit")}


def test_a_localqueue_that_is_stopped_lines_up_nobody():
    local = tuple(replace(q, stop_policy="Hold") for q in local_queues(RESEARCH, MLOPS))
    assert reasons(look(local_queues=local)) == {(SUBJECT, "at_limit")}


def test_a_back_off_that_is_over_waits_again():
    again = waits(requeue=Requeue(count=1, at=at("12:00")))
    assert reasons(look(workloads=(holds("big", 18), again))) == {(SUBJECT, "limit_binding")}


@pytest.mark.parametrize(
    "changes",
    [
        {"stop_policy": "Hold"},
        {"conditions": (condition("Active", at("10:00"), status=False),)},
    ],
    ids=["stopped", "inactive"],
)
def test_a_queue_that_does_not_run_borrows_nothing_and_still_lends(changes):
    assert look(research(**changes), mlops()).findings == ()
    (finding,) = look(research(), mlops(**changes)).findings
    assert [one["idle"] for one in finding.evidence["lenders"]] == [5]


def test_a_limit_on_accelerators_does_not_bind_where_cores_are_what_lacks():
    # GPUs would be there but for the limit; cores are all in use, in both quotas.
    mine = research(row(12, 6, reserved=18.0), row(100, 50, resource="cpu", reserved=100.0))
    lender = mlops(row(11, 6, reserved=0.0), row(50, 0, resource="cpu", reserved=50.0))
    workloads = (
        holds("big", {GPU: 18, "cpu": 100}),
        holds("busy", {"cpu": 50}, team="platform-mlops"),
        waits(requests={GPU: 4, "cpu": 8}),
    )
    assert reasons(look(mine, lender, workloads=workloads)) == {
        (SUBJECT, "at_limit"),
        (f"ClusterQueue/{RESEARCH}/{P5}/cpu", "cluster_full"),
    }


RECLAIM = Preemption(within_cluster_queue="LowerPriority", reclaim_within_cohort="LowerPriority")


def owners_view(**changes):
    """Platform-mlops wants 4 of its 11 GPUs; research has borrowed cores of its quota."""
    mine = research(row(12, 6, reserved=12.0), row(100, 50, resource="cpu", reserved=140.0))
    owner = mlops(
        row(11, 6, reserved=0.0), row(50, 0, resource="cpu", reserved=0.0), preemption=RECLAIM
    )
    cores = holds("cores", {GPU: 12, "cpu": 140}, at("10:00"))
    head = waits("mine", {GPU: 4, "cpu": 20}, team="platform-mlops")
    given = {"workloads": (cores, head)}
    return look(mine, owner, **(given | changes))


def test_an_owner_cannot_reclaim_where_the_cores_beside_its_accelerators_are_out():
    # 100 + 50 cores, 140 in use: 10 left of the owner's 50, and it wants 20.
    (finding,) = owners_view().findings
    assert (finding.subject, finding.reason, finding.severity) == (
        f"ClusterQueue/{MLOPS}/{P5}/cpu",
        "reclaim_blocked",
        Severity.WARN,
    )
    # It waits since 11:00, and the cores are out since 10:00; the job is one of 4 accelerators.
    assert (finding.team, finding.since, finding.gpus) == ("platform-mlops", at("11:00"), 4)
    evidence = finding.evidence
    assert evidence["borrowers"] == [{"team": "research", "queue": RESEARCH, "borrowed": 40}]
    assert evidence["waits"] == {
        "subject": "PyTorchJob/hyperpod-ns-platform-mlops/mine",
        "workload": "hyperpod-ns-platform-mlops/mine",
        "need": 20,
        "missing": 10,
    }
    assert evidence["policies"] == {
        "within_cluster_queue": "LowerPriority",
        "reclaim_within_cohort": "LowerPriority",
        "borrow_within_cohort": "Never",
    }
    assert "lower priority only" in evidence["why"]
    assert evidence["evicting"] == []


def test_an_owner_that_has_not_waited_for_the_window_is_not_blocked_yet():
    cores = holds("cores", {GPU: 12, "cpu": 140}, at("10:00"))
    for since, told in (("11:31", 0), ("11:30", 1)):
        head = waits("mine", {GPU: 4, "cpu": 20}, team="platform-mlops", created=at(since))
        assert len(owners_view(workloads=(cores, head)).findings) == told


def test_victims_on_their_way_out_are_named():
    kept = (condition("QuotaReserved", at("10:00")), condition("Evicted", at("11:58")))
    leaving = holds("cores", {GPU: 12, "cpu": 140}, at("10:00"), conditions=kept)
    head = waits("mine", {GPU: 4, "cpu": 20}, team="platform-mlops")
    gone = finished("gone", {GPU: 1}, at("11:59"), conditions=(*kept, condition("Finished", NOON)))
    (finding,) = owners_view(workloads=(leaving, gone, head)).findings
    assert finding.evidence["evicting"] == ["PyTorchJob/hyperpod-ns-research/cores"]


def test_an_owner_that_needs_more_than_its_own_is_not_reclaiming():
    # 12 GPUs are one more than its own 11, and research uses all of its 12 of 23: the pool is full.
    head = waits("mine", {GPU: 12, "cpu": 20}, team="platform-mlops")
    cores = holds("cores", {GPU: 12, "cpu": 140}, at("10:00"))
    assert reasons(owners_view(workloads=(cores, head))) == {
        (f"ClusterQueue/{MLOPS}/{P5}/{GPU}", "cluster_full")
    }


# The window, the memory, and the ends.


def test_a_limit_reached_for_less_than_the_window_is_not_told():
    for since, told in (("11:31", set()), ("11:30", {(SUBJECT, "limit_binding")})):
        found = look(workloads=(holds("base", 12), holds("extra", 6, at(since)), waits()))
        assert reasons(found) == told


def test_the_workloads_that_hold_the_quota_prove_the_window_at_the_first_tick():
    # 12 + 5 = 17 are not 95 % of the way; the sixth came at 10:40.
    workloads = (holds("base", 12), holds("five", 5, at("10:00")), holds("sixth", 1, at("10:40")))
    (finding,) = look(workloads=(*workloads, waits())).findings
    assert finding.since == at("10:40")


def test_an_admission_proves_the_window_where_no_reservation_is_said():
    # What is admitted holds its quota: since 10:00, two hours before the first look at noon.
    admitted = (condition("Admitted", at("10:00")),)
    (finding,) = look(workloads=(holds("big", 18, conditions=admitted), waits())).findings
    assert (finding.reason, finding.since) == ("limit_binding", at("10:00"))


def test_what_the_objects_do_not_prove_is_watched_for_the_window():
    # Jobs come and go at the limit: what runs now is new, and the limit was always reached.
    def jobs(when):
        return (holds(f"job-{when.isoformat()}", 18, when - timedelta(minutes=1)), waits())

    memory = None
    for minutes in range(0, 35, 5):
        when = at("11:00") + timedelta(minutes=minutes)
        given = {} if memory is None else {"memory": memory}
        found = look(workloads=jobs(when), when=when, **given)
        memory = found.memory
        # First seen at 10:59, when the first of them began.
        assert len(found.findings) == (minutes >= 30)
    assert found.findings[0].since == at("10:59")


def test_a_limit_that_comes_down_is_reached_from_when_it_was_first_seen():
    # 18 since the morning: half of a limit of 12, and all of one of 6, which stands from 12:05 on.
    # Before that the jobs prove nothing, however old they are.
    jobs = (holds("big", 18),)
    before = look(research(row(12, 12, reserved=18.0)), mlops(), workloads=jobs)
    assert before.findings == ()
    memory = before.memory
    for minutes in range(5, 36, 5):
        when = NOON + timedelta(minutes=minutes)
        found = look(workloads=jobs, memory=memory, when=when)
        memory = found.memory
        assert len(found.findings) == (minutes >= 35), minutes
    assert found.findings[0].since == at("12:05")


def test_a_pool_is_full_since_a_lender_keeps_its_own_not_since_the_borrowers_came():
    # 14 of 12 + 11 + 4 are in use, and somebody wants 4: 13 are left until platform-mlops keeps its
    # 11 to itself, as the look of 12:05 shows; then 2. A limit of 12 binds nobody who borrows 2.
    def seen(lender, when, memory=EMPTY):
        borrower = research(row(12, 12, reserved=14.0))
        jobs = (holds("big", 14), waits(created=at("10:00")))
        queues = (borrower, lender, queue(GENAI, row(4, 4, reserved=0.0)))
        return look(*queues, workloads=jobs, memory=memory, when=when)

    found = seen(mlops(row(11, 6, reserved=0.0)), NOON)
    assert found.findings == ()
    for minutes in range(5, 36, 5):
        keeps = mlops(row(11, 6, 0, reserved=0.0))
        found = seen(keeps, NOON + timedelta(minutes=minutes), found.memory)
        assert len(found.findings) == (minutes >= 35), minutes
    (finding,) = found.findings
    assert (finding.reason, finding.since) == ("cluster_full", at("12:05"))


def test_another_quota_in_the_pool_ends_no_watch_that_goes_on():
    # The pool is full before and after: that platform-mlops gets one more, and uses it, changes nothing.
    def seen(quota, when, memory=EMPTY):
        jobs = (
            holds("big", 18),
            holds("other", quota - 6, team="platform-mlops"),
            waits(created=at("10:00")),
        )
        lender = mlops(row(quota, 6, reserved=float(quota - 6)))
        borrower = research(row(12, 12, reserved=18.0))
        return look(borrower, lender, workloads=jobs, memory=memory, when=when)

    first = seen(11, NOON)
    second = seen(12, at("12:05"), first.memory)
    assert [f.since for f in (*first.findings, *second.findings)] == [at("10:00")] * 2


def test_a_watch_that_was_broken_off_begins_anew():
    def jobs(when):
        return (holds(f"job-{when.isoformat()}", 18, when - timedelta(minutes=1)), waits())

    first = look(workloads=jobs(at("11:00")), when=at("11:00"))
    # 11 minutes unseen, and nothing that runs now was there before.
    found = look(workloads=jobs(at("11:11")), when=at("11:11"), memory=first.memory)
    (watched,) = found.memory.borrowing.lasting.values()
    assert watched.since == at("11:10")
    found = look(workloads=jobs(at("11:10")), when=at("11:10"), memory=first.memory)
    (watched,) = found.memory.borrowing.lasting.values()
    assert watched.since == at("10:59")


def test_missed_ticks_change_nothing_where_the_objects_prove_what_lies_between():
    found = at_times(at("11:00"), NOON)
    assert found.findings[0].since == MORNING
    assert found.findings[0].evidence["limit"] == 6


def test_a_slow_tick_is_no_gap():
    def jobs(when):
        return (holds(f"job-{when.isoformat()}", 18, when - timedelta(minutes=1)), waits())

    slow = a_cluster(teams=CLUSTER.teams, tick_minutes=30)
    first = look(workloads=jobs(at("11:00")), when=at("11:00"), cluster=slow)
    found = look(workloads=jobs(at("11:30")), when=at("11:30"), cluster=slow, memory=first.memory)
    assert [finding.since for finding in found.findings] == [at("10:59")]


def test_the_window_and_the_severity_are_the_policys():
    override = Override(teams=("research",), borrowing={"window_minutes": 240, "severity": "page"})
    strict = a_cluster(teams=CLUSTER.teams, overrides=(override,))
    # At the limit since 09:00, that is three hours.
    assert look(cluster=strict).findings == ()
    (finding,) = look(cluster=strict, when=at("13:00")).findings
    assert (finding.severity, finding.evidence["window_minutes"]) == (Severity.PAGE, 240)


def ended(*queues, memory=None, **changes):
    first = look() if memory is None else memory
    found = look(*queues, memory=first.memory, when=at("12:05"), **changes)
    return {(c.finding.reason, c.resolution) for c in found.cleared}, found


def test_a_raised_limit_ends_it_as_a_changed_quota():
    told, found = ended(research(row(12, 12, reserved=18.0)), mlops())
    assert told == {("limit_binding", Resolution.QUOTA_CHANGED)}
    # And is repeated for two hours, then no more.
    again = look(
        research(row(12, 12, reserved=18.0)), mlops(), memory=found.memory, when=at("14:00")
    )
    assert len(again.cleared) == 1
    late = look(
        research(row(12, 12, reserved=18.0)), mlops(), memory=again.memory, when=at("14:05")
    )
    assert late.cleared == ()


def test_a_larger_quota_ends_it_as_a_changed_quota():
    told, _ = ended(research(row(18, 6, reserved=18.0)), mlops())
    assert told == {("limit_binding", Resolution.QUOTA_CHANGED)}


def test_a_queue_or_a_row_that_is_gone_is_released():
    assert ended(mlops(), workloads=())[0] == {("limit_binding", Resolution.RELEASED)}
    other = research(row(4, 0, flavor="ml.g6.xlarge", reserved=0.0))
    told, _ = ended(other, mlops(), workloads=())
    assert told == {("limit_binding", Resolution.RELEASED)}


def test_giving_back_what_was_borrowed_ends_it():
    told, _ = ended(research(row(12, 6, reserved=12.0)), mlops(), workloads=(holds("base", 12),))
    assert told == {("limit_binding", Resolution.FIXED)}


def test_when_nobody_waits_any_more_it_is_merely_at_its_limit():
    told, found = ended(workloads=(holds("big", 18),))
    assert told == {("limit_binding", Resolution.REASON_CHANGED)}
    assert reasons(found) == {(SUBJECT, "at_limit")}


# What lenders have idle, and since when.


def idle_told(found):
    (finding,) = found.findings
    return [(one["idle"], one["since"], one["at_least"]) for one in finding.evidence["lenders"]]


def test_a_lender_has_been_idle_since_its_last_job_ended():
    done = [
        finished(name, 5, at(when), team="platform-mlops")
        for name, when in (("one", "10:10"), ("two", "10:30"), ("three", "10:20"))
    ]
    found = look(workloads=(holds("big", 18), *done, waits()))
    assert idle_told(found) == [(5, "2026-11-05T10:30:00Z", False)]


def test_a_clock_that_is_ahead_releases_nothing_in_the_future():
    done = finished("nightly", 5, at("12:01"), team="platform-mlops")
    assert idle_told(look(workloads=(holds("big", 18), done, waits()))) == [
        (5, "2026-11-05T12:00:00Z", False)
    ]


def test_a_release_that_was_looked_at_before_is_not_what_freed_the_rest():
    done = finished("nightly", 5, at("10:30"), team="platform-mlops")
    workloads = (holds("big", 18), done, waits())
    busy = mlops(row(11, 6, reserved=11.0))
    memory = look(research(), busy, workloads=workloads, when=at("11:55")).memory
    # Its 11 were in use at 11:55, whatever ended at 10:30; who gave them back is not to be seen.
    found = look(workloads=workloads, memory=memory)
    assert idle_told(found) == [(5, "2026-11-05T12:00:00Z", True)]


def test_only_what_may_be_lent_is_remembered():
    alone = queue(GENAI, row(10, reserved=0.0), cohort=None)
    cores = row(50, 0, resource="cpu", reserved=0.0)
    found = look(research(), mlops(row(11, 6, reserved=0.0), cores), alone)
    assert set(found.memory.borrowing.idle) == {f"{MLOPS}/{P5}/{GPU}"}


def test_idle_quota_is_remembered_at_its_lowest():
    def seen(reserved, when, memory):
        lender = mlops(row(11, 6, reserved=float(reserved)))
        return look(research(), lender, when=when, memory=memory).memory

    memory = look(when=at("11:00")).memory  # 11 idle (of which 6 are lent)
    memory = seen(7, at("11:05"), memory)  # 4 idle
    memory = seen(0, at("11:10"), memory)  # 11 again
    steps = memory.borrowing.idle[f"{MLOPS}/{P5}/{GPU}"]
    # At least 4 since 11:00, and 11 only since 11:10.
    assert [(s.amount, s.since) for s in steps] == [(4, at("11:00")), (11, at("11:10"))]
    assert idle_told(look(when=at("11:15"), memory=memory)) == [(5, "2026-11-05T11:10:00Z", True)]


def test_what_lay_idle_while_nobody_looked_is_not_claimed():
    memory = look(when=at("11:00")).memory
    assert idle_told(look(when=NOON, memory=memory)) == [(5, "2026-11-05T12:00:00Z", True)]


# What cannot be read.


@pytest.mark.parametrize("part", ["clusterqueues", "workloads", "cohorts"])
def test_without_queues_cohorts_or_workloads_it_is_blind_and_changes_nothing(part):
    memory = look().memory
    name = f"kubernetes/{part}"
    found = look(memory=memory, refused={name: DENIED}, when=at("12:05"))
    assert (found.findings, found.cleared, found.memory) == ((), (), memory)
    assert [(line.subject, line.reason, line.blind) for line in found.unknown] == [
        (name, UnknownReason.DENIED, True)
    ]


def test_cohorts_that_are_not_installed_are_no_gap():
    found = look(refused={"kubernetes/cohorts": PartStatus.ABSENT})
    assert (reasons(found), found.unknown) == ({(SUBJECT, "limit_binding")}, ())


def test_where_kueue_is_gone_so_are_the_queues():
    absent = {f"kubernetes/{name}": PartStatus.ABSENT for name in ("clusterqueues", "workloads")}
    found = look(
        memory=look().memory, refused=absent, cluster_queues=(), workloads=(), when=at("12:05")
    )
    assert [c.resolution for c in found.cleared] == [Resolution.RELEASED]


def test_without_localqueues_nobody_knows_who_waits():
    refused = {"kubernetes/localqueues": DENIED}
    found = look(memory=look().memory, refused=refused, local_queues=(), when=at("12:05"))
    # Neither "nobody waits" nor an end of what was told, which a line of its own holds.
    assert (found.findings, found.cleared) == ((), ())
    assert [(line.subject, line.reason, line.blind) for line in found.unknown] == [
        ("kubernetes/localqueues", UnknownReason.DENIED, False),
        (SUBJECT, UnknownReason.DENIED, False),
    ]
    # A changed quota ends it all the same.
    changed = research(row(12, 12, reserved=18.0))
    found = look(changed, mlops(), memory=found.memory, refused=refused, local_queues=())
    assert [c.resolution for c in found.cleared] == [Resolution.QUOTA_CHANGED]


@pytest.mark.parametrize(
    ("part", "name", "subject"),
    [
        ("kubernetes/clusterqueues", "broken", "ClusterQueue/broken"),
        ("kubernetes/cohorts", "/broken", "Cohort/broken"),
        ("kubernetes/clusterqueues", "item 3", "kubernetes/clusterqueues"),
    ],
)
def test_a_queue_or_cohort_that_cannot_be_read_may_change_every_sum(part, name, subject):
    found = look(left_out={part: (name,)})
    assert found.findings == ()
    assert [(line.subject, line.reason, line.blind) for line in found.unknown] == [
        (subject, UnknownReason.UNREADABLE, True)
    ]


@pytest.mark.parametrize(
    ("namespace", "told"),
    [
        # It may be the head that waited: neither "nobody waits" nor an end of that is known.
        ("hyperpod-ns-research", set()),
        # Who waits in another team's queue does not wait in this one.
        ("hyperpod-ns-platform-mlops", {(SUBJECT, "at_limit")}),
    ],
)
def test_a_workload_that_cannot_be_read_hides_who_waits_in_its_own_queue_only(namespace, told):
    lost = {"kubernetes/workloads": (f"{namespace}/head",)}
    found = look(
        memory=look().memory, left_out=lost, when=at("12:05"), workloads=(holds("big", 18),)
    )
    assert reasons(found) == told
    assert len(found.cleared) == len(told)


def test_a_localqueue_that_cannot_be_read_hides_who_waits_behind_it():
    # It is listed and says not where it leads, so research's head stands in no line that is known.
    lost = {"kubernetes/localqueues": ("hyperpod-ns-research/queue",)}
    found = look(
        memory=look().memory, left_out=lost, local_queues=local_queues(MLOPS), when=at("12:05")
    )
    assert [(u.subject, u.reason, u.team, u.blind) for u in found.unknown] == [
        ("LocalQueue/hyperpod-ns-research/queue", UnknownReason.UNREADABLE, "research", False),
        (SUBJECT, UnknownReason.UNREADABLE, "research", False),
    ]
    # Neither "nobody waits" nor an end of what was told.
    assert (found.findings, found.cleared) == ((), ())


def test_a_workload_that_cannot_be_read_may_be_the_one_that_waits():
    lost = {"kubernetes/workloads": ("hyperpod-ns-research/lost",)}
    found = look(
        memory=look().memory,
        left_out=lost,
        when=at("12:05"),
        workloads=(),
        cluster_queues=(research(row(12, 6, reserved=12.0)), mlops()),
    )
    assert [(u.subject, u.team, u.blind) for u in found.unknown] == [
        ("Workload/hyperpod-ns-research/lost", "research", False),
        (SUBJECT, "research", False),
    ]
    assert (found.findings, found.cleared) == ((), ())


def test_a_queue_is_its_namespaces_where_its_name_says_nothing():
    named = queue("shared-cq", row(12, 6, reserved=18.0))
    local = (
        local_queues("hyperpod-ns-research-clusterqueue")[0],
        *local_queues(MLOPS),
    )
    local = (replace(local[0], cluster_queue="shared-cq"), local[1])
    big = holds("big", 18, cluster_queue="shared-cq")
    (finding,) = look(named, mlops(), workloads=(big, waits()), local_queues=local).findings
    assert (finding.team, finding.reason) == ("research", "limit_binding")
    # One that two teams use is neither's.
    other = replace(local[0], namespace="hyperpod-ns-product-genai", name="other")
    (finding,) = look(
        named, mlops(), workloads=(big, waits()), local_queues=(*local, other)
    ).findings
    assert finding.team is None


def test_the_command_works_when_pasted():
    (finding,) = look().findings
    assert shlex.split(finding.action) == [
        "kubectl",
        "get",
        "clusterqueues.kueue.x-k8s.io",
        RESEARCH,
        "-o",
        "yaml",
    ]


def test_where_hyperpod_made_the_queue_the_command_shows_the_compute_quotas():
    arn = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
    given = {"control_plane": ControlPlane(arn=arn)}
    (finding,) = look(research(managed=True), mlops(), **given).findings
    assert shlex.split(finding.action) == [
        "aws",
        "sagemaker",
        "list-compute-quotas",
        "--region",
        "us-east-1",
        "--cluster-arn",
        arn,
    ]
    # A queue that somebody made by hand is in no compute quota.
    (finding,) = look(research(), mlops(), **given).findings
    assert finding.action.startswith("kubectl get")


def test_both_readings_of_borrow_limit_stand_beside_the_limit():
    # 50 % of 12 = 6, or half of the 5 that are idle.
    quota = a_quota(borrow_limit_percent=50)
    (finding,) = look(control_plane=ControlPlane(quotas=(quota,))).findings
    api = finding.evidence["api"]
    assert (api["reading_own_quota"], api["reading_idle"], api["agrees"]) == (6, 2.5, True)
    assert finding.evidence["policy"]["borrow_limit_percent"] == 50
    assert finding.evidence["differs"] == []
    assert look().findings[0].evidence["api"] is None


def test_a_snapshot_that_says_nothing_of_queues_leaves_everything_as_it_is():
    memory = look().memory
    found = look(memory=memory, parts=(), when=at("12:05"))
    assert (found.findings, found.cleared, found.unknown, found.memory) == ((), (), (), memory)
    assert a_view().parts
