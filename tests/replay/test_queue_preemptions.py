"""Jobs that are preempted again and again; right by hand.

The cases are in tests/queues/preempting.py. Each job has 8 GPUs, at 63.296 / 8 = 7.912 USD an hour.
"""

import pytest

from tests.queues.preempting import subject
from tests.queues.scene import stamp
from tests.queues.told import Told

VERSIONS = ("0.12", "0.19")
OWNER = subject("owner", "platform-mlops")
CAUSE = "InCohortReclamation"


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


@pytest.fixture(params=VERSIONS)
def unseen(request):
    return Told(f"preempted-unseen-{request.param}", "preemptions")


@pytest.fixture(params=VERSIONS)
def told_often(request):
    return Told(f"preempted-told-often-{request.param}", "preemptions")


@pytest.fixture
def counters():
    return Told("preempted-counters", "preemptions")


@pytest.fixture
def saving():
    return Told("preempted-checkpoints", "preemptions")


@pytest.fixture
def in_turn():
    return Told("preempted-in-turn", "preemptions")


# --- seen by the counter alone -------------------------------------------------------------------


def test_three_preemptions_in_a_week_are_counted_though_no_look_saw_one(unseen):
    (found,) = unseen.found
    keys = ("at", "status", "subject", "reason", "severity", "team", "gpus")
    # The third was on 6 November at 21:00; the next look is at midnight.
    assert tuple(found[key] for key in keys) == (
        stamp("00:00", 2), "firing", subject("train"), "without_checkpoint", "warn", "research", 8,
    )  # fmt: skip
    evidence = found["evidence"]
    assert (evidence["count"], evidence["limit"], evidence["at_least"]) == (3, 3, False)
    # Kueue kept the words of each until the next.
    assert evidence["causes"] == {CAUSE: 3}
    assert evidence["preemptors"] == [{"subject": OWNER, "count": 3}]
    # The first was between the look at midnight and the admission at 10:00, at 09:00 in truth.
    assert stamp("00:00", -4) <= found["since"] <= stamp("10:00", -4)
    # The team's location can be listed, and holds nothing at any look.
    assert evidence["checkpoint"] == "absent"


def test_what_runs_that_nobody_saw_end_lost_is_known_by_their_admitted_time(unseen):
    # Kueue adds up the time of past runs: none before the first, then 25, 25 + 53 and 78 + 77 hours.
    (found,) = unseen.found
    hours = [one["lost_gpu_hours"] for one in found["evidence"]["evictions"]]
    assert hours == [8 * 25, 8 * 53, 8 * 77]
    assert found["evidence"]["lost_at_least"] is False
    assert (found["gpu_hours"], found["cost_usd"]) == (8 * 155, round(8 * 155 * 7.912, 2))


@pytest.mark.parametrize("name", ["reset", "fast"])
def test_a_counter_that_was_reset_counts_what_it_shows_since(counters, name):
    # 12, none, 5, or 12, 5: the 12 are older than the first look, and 5 came after the reset.
    found = counters.about(subject(name))
    assert (found["at"], found["reason"]) == (stamp("11:00"), "without_checkpoint")
    assert (found["evidence"]["count"], found["evidence"]["at_least"]) == (5, True)


def test_a_counter_first_seen_counts_only_for_a_workload_made_in_the_period(counters):
    found = counters.about(subject("young"))
    assert (found["at"], found["evidence"]["count"]) == (stamp("10:00"), 3)
    # Made sixteen days ago: nobody knows how many of its 7 were in the last seven days.
    assert subject("elder") not in {line["subject"] for line in counters.found}


def test_a_workload_made_anew_goes_on_counting_for_its_job(counters):
    # 2 of the first, 1 of the second; what the first had after it was last seen nobody knows.
    found = counters.about(subject("anew"))
    assert (found["at"], found["status"]) == (stamp("11:00"), "firing")
    assert (found["evidence"]["count"], found["evidence"]["at_least"]) == (3, True)
    uids = {one["workload_uid"] for one in found["evidence"]["evictions"]}
    assert uids == {"uid-anew-1", "uid-anew-2"}


# --- told many times, in many words --------------------------------------------------------------


def test_what_is_told_at_five_ticks_by_four_sources_counts_once(told_often):
    found = told_often.about(subject("often"))
    assert (found["at"], found["since"]) == (stamp("12:00"), stamp("11:10"))
    assert found["evidence"]["count"] == 3
    assert told_often.at_the_end(subject("often"))["evidence"]["count"] == 3
    # Two preemptions, in six events and conditions and at five ticks.
    assert {line["subject"] for line in told_often.found} == {subject("often"), subject("wordy")}


def test_four_wordings_are_one_rule_and_one_preemptor(told_often):
    for found in (told_often.about, told_often.at_the_end):
        evidence = found(subject("wordy"))["evidence"]
        assert evidence["causes"] == {CAUSE: 3}
        assert evidence["preemptors"] == [{"subject": OWNER, "count": 3}]
        times = [one["at"] for one in evidence["evictions"]]
        assert times == [stamp("11:05"), stamp("11:25"), stamp("11:50")]
    # Only 0.15 and later say from which queue.
    queues = [one["preemptor_queue"] for one in evidence["evictions"]]
    assert queues == [None, None, "mlops"]


# --- what was saved ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason", "severity", "checkpoint", "lost"),
    [
        # 8 GPUs x 90 min x 3.
        ("stale", "without_checkpoint", "warn", "absent", 36),
        ("declared", "without_checkpoint", "warn", "declared", 36),
        ("denied", "without_checkpoint", "warn", "unreadable", 36),
        # 8 GPUs x 30 min x 3.
        ("saved", "with_checkpoint", "info", "proven", 12),
        ("beating", "with_checkpoint", "info", "proven", 12),
    ],
)
def test_lost_hours_count_from_the_later_of_run_start_and_proven_checkpoint(
    saving, name, reason, severity, checkpoint, lost
):
    team = "platform-mlops" if name == "denied" else "research"
    found = saving.about(subject(name, team))
    keys = ("at", "team", "reason", "severity", "since")
    expected = (stamp("11:30"), team, reason, severity, stamp("07:30"))
    assert tuple(found[key] for key in keys) == expected
    evidence = found["evidence"]
    assert (evidence["count"], evidence["checkpoint"]) == (3, checkpoint)
    assert (evidence["lost_gpu_hours"], evidence["lost_at_least"]) == (lost, False)
    assert (found["gpu_hours"], found["cost_usd"]) == (lost, round(lost * 7.912, 2))


def test_each_run_has_its_checkpoint_with_source_and_place(saving):
    def last(name):
        return saving.about(subject(name))["evidence"]["checkpoints"][-1]

    place = "s3://ml-shared-01-checkpoints/research"
    files, beats, old = last("saved"), last("beating"), last("stale")
    assert (files["source"], files["written"]) == ("storage", stamp("11:00"))
    assert files["uri"] == f"{place}/saved/step-2/model.pt"
    assert (beats["source"], beats["written"], beats["step"]) == ("heartbeat", stamp("11:00"), 2)
    # It is named, and saves nothing: every run began later.
    assert (old["status"], old["written"]) == ("absent", stamp("05:00"))
    assert last("declared")["declared"] == "/data/checkpoints"


# --- two that get nowhere ------------------------------------------------------------------------


def test_two_that_evict_each_other_nine_times_in_forty_minutes_are_one_finding(in_turn):
    ping, pong = subject("ping", "platform-mlops"), subject("pong")
    found = in_turn.about(ping)
    # Six of them are seen at 10:30: three of each, in turn.
    keys = ("at", "status", "subject", "reason", "severity", "since", "gpus")
    assert tuple(found[key] for key in keys) == (
        stamp("10:30"), "firing", ping, "thrash", "page", stamp("10:02"), 8,
    )  # fmt: skip
    assert found["evidence"]["count"] == 6
    end = in_turn.at_the_end(ping)
    evidence = end["evidence"]
    assert (evidence["count"], evidence["loop"], evidence["at_least"]) == (9, "pair", False)
    assert evidence["causes"] == {"InCohortFairSharing": 9}
    jobs = [(job["subject"], job["team"], job["count"]) for job in evidence["jobs"]]
    assert jobs == [(ping, "platform-mlops", 5), (pong, "research", 4)]
    assert pong not in {line["subject"] for line in in_turn.found}


def test_what_two_lost_by_each_other_is_added_up(in_turn):
    end = in_turn.at_the_end(subject("ping", "platform-mlops"))
    # ping ran 30 + 4 x 5 minutes, pong 4 x 5, and nothing of it was saved.
    hours = [job["lost_gpu_hours"] for job in end["evidence"]["jobs"]]
    assert hours == [round(8 * 50 / 60, 6), round(8 * 20 / 60, 6)]
    assert end["gpu_hours"] == round(8 * 70 / 60, 6)


def test_a_job_whose_runs_are_too_short_to_reach_a_checkpoint_is_told_so(in_turn):
    found = in_turn.about(subject("brief"))
    # 20, 13 and 15 minutes, seen at 10:30 and 11:00; 15 to start and 30 to a checkpoint are needed.
    keys = ("at", "reason", "severity", "gpu_hours")
    assert tuple(found[key] for key in keys) == (
        stamp("11:00"),
        "thrash",
        "page",
        round(8 * 48 / 60, 6),
    )
    evidence = found["evidence"]
    assert (evidence["count"], evidence["loop"], evidence["needed_minutes"]) == (
        3,
        "short_runs",
        45,
    )
    # Of the last two only the sum is known: neither was longer than 28. The words of the second
    # were gone before anybody looked.
    assert 20 <= evidence["longest_run_minutes"] <= 28
    assert evidence["causes"] == {CAUSE: 2, "unknown": 1}
    assert evidence["preemptors"] == [{"subject": OWNER, "count": 2}]


# --- how it ends ---------------------------------------------------------------------------------


def test_what_is_over_is_finished_released_or_expired():
    told = Told("preempted-ends", "preemptions")
    rows = told.rows("at", "status", "subject", "reason", "resolution")
    noon, next_noon, last = stamp("12:00"), stamp("12:00", 1), stamp("12:00", 7)
    assert [row for row in rows if row[1] == "firing"] == [
        (noon, "firing", subject(name), "without_checkpoint", None)
        for name in ("calm", "done", "gone")
    ]
    assert sorted(row for row in rows if row[1] == "resolved") == [
        (next_noon, "resolved", subject("done"), "without_checkpoint", "finished"),
        (next_noon, "resolved", subject("gone"), "without_checkpoint", "released"),
        # On 12 November the period begins at 12:00 on the 5th, after the last of the three.
        (last, "resolved", subject("calm"), "without_checkpoint", "expired"),
    ]
