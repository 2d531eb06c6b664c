"""Who borrows up to a limit, who would borrow more, and who cannot get back their own; by hand.

The cases are in tests/queues/borrowing.py. Everything lasts since 11:00 at the latest, but where a
case says otherwise, and the window is 30 minutes: what waits or is full is told at 11:30.
"""

import shutil

import pytest

from tests.queues.borrowing import flavor, queue_name, subject
from tests.queues.scene import RECORDINGS, stamp
from tests.queues.told import Told

VERSIONS = ("0.12", "0.19")
FIRST, LAST = stamp("11:20"), stamp("11:30")
RESEARCH = f"ClusterQueue/{queue_name('research')}/ml.p5.48xlarge/nvidia.com/gpu"


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


@pytest.fixture(params=VERSIONS)
def pools(request):
    return Told(f"borrowing-pools-{request.param}", "borrowing")


@pytest.fixture(params=VERSIONS)
def limited(request):
    return Told(f"borrowing-limit-{request.param}", "borrowing")


def evidence(told, case, reason, resource="nvidia.com/gpu"):
    (found,) = (
        line
        for line in told.found
        if (line["subject"], line["reason"]) == (subject(case, resource), reason)
    )
    return found["evidence"]


def test_each_queue_has_the_reason_of_its_case_and_the_others_have_none(pools):
    gpu, cpu = "nvidia.com/gpu", "cpu"
    expected = [
        # Since 10:50: for 30 minutes at the first look already.
        (FIRST, "content", gpu, "at_limit", "info", stamp("10:50"), 4),
        (FIRST, "nearly", gpu, "at_limit", "info", stamp("10:50"), 19),
        # At once, and all that others could ever lend: 8.
        (FIRST, "unset", gpu, "unbounded", "info", FIRST, 8),
        (FIRST, "drained", gpu, "unbounded", "info", FIRST, 8),
        # Somebody waits since 10:30, the pool is empty since 11:00; 16 - 8 are borrowed, or 15 - 12.
        (LAST, "drained", gpu, "cluster_full", "info", stamp("11:00"), 8),
        (LAST, "full", gpu, "cluster_full", "info", stamp("11:00"), 3),
        (LAST, "kept", gpu, "cluster_full", "info", stamp("11:00"), 3),
        # The waiting job asks for 4 GPUs, although it is cores that it lacks.
        (LAST, "owner", cpu, "reclaim_blocked", "warn", stamp("11:00"), 4),
        (LAST, "tree", gpu, "limit_binding", "warn", stamp("11:00"), 4),
    ]
    rows = pools.rows("at", "status", "subject", "reason", "severity", "since", "gpus")
    assert sorted(rows) == sorted(
        (at, "firing", subject(case, resource), *rest) for at, case, resource, *rest in expected
    )
    assert pools.dark == []


def test_a_full_pool_has_no_lender_and_no_limit_to_raise(pools):
    found = evidence(pools, "full", "cluster_full")
    assert (found["limit"], found["borrowed"], found["lenders"]) == (6, 3, [])
    assert (found["raise_by"], found["admits"], found["idle_not_lent"]) == (None, [], [])
    waits = found["waits"]
    assert (waits["subject"], waits["need"]) == ("Job/hyperpod-ns-full/full-waits", 2)


def test_what_a_team_keeps_at_home_is_named_and_is_nobodys_to_lend(pools):
    found = evidence(pools, "kept", "cluster_full")
    home = {"team": None, "queue": queue_name("kept-home"), "idle": 10}
    assert (found["lenders"], found["idle_not_lent"]) == ([], [home])


def test_at_the_limit_with_nobody_waiting_names_who_could_lend(pools):
    found = evidence(pools, "content", "at_limit")
    # 8 + 8 - 12.
    (lender,) = found["lenders"]
    assert (lender["queue"], lender["idle"]) == (queue_name("content-lender"), 4)
    assert (found["raise_by"], found["admits"], found["waiting"]) == (None, [], 0)


def test_without_a_limit_it_is_never_the_limit_that_is_too_low(pools):
    found = evidence(pools, "unset", "unbounded")
    assert (found["limit"], found["borrowed"], found["could_borrow"]) == (None, 2, 8)
    full = evidence(pools, "drained", "cluster_full")
    assert (full["limit"], full["borrowed"], full["lenders"]) == (None, 8, [])


def test_an_owner_is_told_who_has_borrowed_what_it_lacks(pools):
    found = evidence(pools, "owner", "reclaim_blocked", "cpu")
    # 180 of its 96.
    taker = {"team": None, "queue": queue_name("owner-taker"), "borrowed": 84}
    assert found["borrowers"] == [taker]
    # 48 wanted, 96 + 96 - 180 = 12 left.
    waits = found["waits"]
    assert (found["flavor"], waits["need"], waits["missing"]) == (flavor("owner"), 48, 36)
    assert found["policies"]["reclaim_within_cohort"] == "LowerPriority"
    assert "lower priority only" in found["why"]


def test_the_limit_of_a_cohort_on_the_way_is_named_beside_the_teams_own(pools):
    found = evidence(pools, "tree", "limit_binding")
    # 12 held and 2 more of a quota of 8: 6 would be borrowed, by the team and by its cohort.
    assert (found["limit"], found["borrowed"], found["raise_by"]) == (4, 4, 2)
    assert found["cohort_limits"] == [{"cohort": "org-left", "limit": 4, "needed": 6}]


def test_what_kueues_metrics_say_of_limits_changes_nothing(tmp_path):
    # Unset limits are 0 in some versions and +Inf in others: the objects decide.
    recording = RECORDINGS / "borrowing-pools-0.19"
    said = (recording / "metrics" / "kueue.om").read_text()
    assert {line.split()[1] for line in said.splitlines() if line[0] != "#"} == {"+Inf", "NaN", "0"}
    silent = shutil.copytree(recording, tmp_path / "silent")
    (silent / "metrics" / "kueue.om").unlink()
    kept, without = (Told(name, "borrowing") for name in ("borrowing-pools-0.19", silent))
    assert kept.found == without.found
    assert len(kept.found) == 9


def test_both_versions_say_the_same():
    rows = [Told(f"borrowing-pools-{version}", "borrowing").found for version in VERSIONS]
    assert rows[0] == rows[1]


def test_a_limit_that_binds_is_told_after_half_an_hour_with_what_would_admit_the_job(limited):
    found = limited.found[0]
    keys = ("at", "status", "subject", "reason", "severity", "team", "since", "gpus")
    assert tuple(found[key] for key in keys) == (
        LAST, "firing", RESEARCH, "limit_binding", "warn", "research", stamp("11:00"), 6,
    )  # fmt: skip
    told = found["evidence"]
    # 18 - 12 = 6 of 6 are borrowed; 6 + 4 = 10 are needed.
    assert (told["limit"], told["borrowed"], told["raise_by"]) == (6, 6, 4)
    (admits,) = told["admits"]
    assert (admits["subject"], admits["need"]) == ("Job/hyperpod-ns-research/sweep", 4)
    # 11 - 6; idle since its last job ended.
    (lender,) = told["lenders"]
    expected = {"team": "platform-mlops", "idle": 5, "since": stamp("09:00"), "at_least": False}
    assert {key: lender[key] for key in expected} == expected
    # Reserved and used are labelled apart.
    assert (told["reserved"], told["used"], told["measured"]) == (18, 14, "reservations")


def test_the_raw_borrow_limit_stands_there_with_both_readings(limited):
    told = limited.found[0]["evidence"]["api"]
    # 25 % of its own 12, or of the 5 that are idle; Kueue has 6.
    assert (told["borrow_limit_percent"], told["quota"]) == (25, 12)
    assert (told["reading_own_quota"], told["reading_idle"], told["agrees"]) == (3, 1.25, False)


def test_another_limit_ends_it_and_half_an_hour_begins_anew(limited):
    # Seen last at 11:35; the limit is another one since 11:37, and so is what is borrowed.
    rows = limited.rows("at", "status", "reason", "resolution", "gpus")
    assert rows == [
        (LAST, "firing", "limit_binding", None, 6),
        (stamp("11:45"), "resolved", "limit_binding", "quota_changed", 6),
    ]
    assert limited.open == []


def test_a_limit_that_comes_down_to_what_is_borrowed_is_reached_from_then_on():
    # The jobs are older than the limit: until 11:37 they took half of it.
    (found,) = Told("borrowing-lowered", "borrowing").found
    assert (found["at"], found["reason"]) == (stamp("12:10"), "at_limit")
    assert stamp("11:37") <= found["since"] <= stamp("11:40")
