"""Jobs that get nowhere: a run needs 15 minutes to start and 30 to a checkpoint; and pairs."""

from copy import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from steward.cluster.findings import Resolution
from steward.cluster.policy import Severity
from steward.detect.preemption import detect
from tests.builders import NOON
from tests.unit.detect.preemptions import (
    CLUSTER,
    HOUR,
    MINUTE,
    NS,
    SUBJECT,
    TICK,
    Kueue,
    a_look,
    an_event,
    evidence,
    message,
    runs_of,
    seen,
    ticks,
    told,
    written,
)


def test_runs_shorter_than_start_up_and_a_checkpoint_get_nowhere():
    # 44 minutes each, where 15 + 30 are needed.
    ends = [NOON + n * HOUR for n in (1, 2, 3)]
    (finding,) = told(ticks(Kueue(runs=runs_of(44, *ends)), *ends)).findings
    assert (finding.reason, finding.severity) == ("thrash", Severity.PAGE)
    assert finding.evidence["loop"] == "short_runs"
    assert (finding.evidence["longest_run_minutes"], finding.evidence["needed_minutes"]) == (44, 45)


def test_one_run_of_the_last_three_that_was_long_enough_is_progress():
    ends = [NOON + n * HOUR for n in (1, 2, 3, 4)]
    runs = [*runs_of(20, *ends[:3]), *runs_of(45, ends[3])]
    (finding,) = told(ticks(Kueue(runs=runs), *ends)).findings
    assert "loop" not in finding.evidence


def test_a_long_run_before_the_last_three_does_not_help():
    ends = [NOON + n * 2 * HOUR for n in (1, 2, 3, 4)]
    runs = [*runs_of(110, ends[0]), *runs_of(20, *ends[1:])]
    (finding,) = told(ticks(Kueue(runs=runs), *ends)).findings
    assert finding.evidence["loop"] == "short_runs"


def test_a_short_run_with_a_checkpoint_is_progress():
    ends = [NOON + n * HOUR for n in (1, 2, 3)]
    job = Kueue(runs=runs_of(20, *ends))
    snapshots = [
        seen(t, job.at(t), checkpoints=(evidence(job, t, a_look(written(t - MINUTE))),))
        for t in ends
    ]
    (finding,) = told(snapshots).findings
    assert (finding.reason, "loop" in finding.evidence) == ("with_checkpoint", False)


def test_runs_that_nobody_saw_apart_were_short_if_all_of_them_together_were():
    ends = [NOON + n * HOUR for n in (1, 2, 3)]
    for minutes, short in ((14, True), (16, False)):
        (finding,) = told(ticks(Kueue(runs=runs_of(minutes, *ends)), ends[2])).findings
        # 3 x 14 = 42 minutes: no run can have had 45. 3 x 16 = 48: one of them might.
        assert ("loop" in finding.evidence) is short


def test_a_run_of_unknown_length_is_not_called_short():
    ends = [NOON + n * HOUR for n in (1, 2, 3)]
    job = Kueue(runs=runs_of(20, *ends), changes={"past_seconds": None})
    (finding,) = told(ticks(job, *ends)).findings
    assert "loop" not in finding.evidence


def two_jobs(number, each=4 * MINUTE + 26 * timedelta(seconds=1)):
    """Jobs a and b on the same quota: each is preempted by the other, in turn."""
    turns = [NOON + n * each for n in range(number + 1)]
    runs = {"a": [], "b": []}
    for n, (start, end) in enumerate(pairwise(turns)):
        runs["ab"[n % 2]].append((start, end))
    runs["ab"[number % 2]].append((turns[-1], None))
    by = {"a": message("uid-b", "x"), "b": message("uid-a", "x")}
    a, b = (
        Kueue(name=name, uid=f"uid-{name}", runs=runs[name], message=by[name], created=NOON - HOUR)
        for name in "ab"
    )
    return a, b, turns


@pytest.mark.parametrize("with_events", [True, False])
def test_two_jobs_that_preempt_each_other_nine_times_in_forty_minutes_are_one_finding(with_events):
    a, b, turns = two_jobs(9)
    times = [NOON + n * TICK for n in range(10)]
    assert turns[9] - NOON < 40 * MINUTE
    snapshots = [
        seen(t, a.at(t), b.at(t), kueue_events=(*a.events(t), *b.events(t)) if with_events else ())
        for t in times
    ]
    (finding,) = told(snapshots).findings
    assert (finding.subject, finding.reason) == (f"PyTorchJob/{NS}/a", "thrash")
    assert finding.severity is Severity.PAGE
    assert finding.evidence["loop"] == "pair"
    assert [one["subject"] for one in finding.evidence["jobs"]] == [
        f"PyTorchJob/{NS}/a",
        f"PyTorchJob/{NS}/b",
    ]
    # a is preempted at the 1st, 3rd, ... 9th turn, b at the others.
    assert [one["count"] for one in finding.evidence["jobs"]] == [5, 4]
    assert finding.evidence["count"] == 9
    assert finding.evidence["causes"] == {"InCohortReclamation": 9}
    assert finding.gpus == 8
    if with_events:
        # Nine runs of 266 seconds on eight GPUs, no checkpoint.
        assert finding.gpu_hours == pytest.approx(9 * 266 / 3600 * 8, abs=1e-5)


def test_two_jobs_seen_once_are_a_pair_by_their_counters_and_merged_events():
    a, b, _ = two_jobs(9)
    now = NOON + HOUR - MINUTE
    events = [an_event(job, max(job.ended(now)), count=job.counter(now)) for job in (a, b)]
    (finding,) = told([seen(now, a.at(now), b.at(now), kueue_events=tuple(events))]).findings
    assert (finding.reason, finding.evidence["count"]) == ("thrash", 9)
    assert finding.evidence["loop"] == "pair"


@pytest.mark.parametrize("past", [True, False])
def test_two_jobs_seen_once_that_name_each_other_are_a_pair_by_their_counters_alone(past):
    # 5 and 4 preemptions since both were created, an hour before the first: the last of either
    # names the other, and 7 name nobody. A run had 100 / 5 minutes at most, on average.
    a, b, turns = two_jobs(9)
    hide = {} if past else {"past_seconds": None}
    a, b = (replace(job, changes=hide) for job in (a, b))
    now = turns[9]
    (finding,) = told([seen(now, a.at(now), b.at(now))]).findings
    assert (finding.reason, finding.severity) == ("thrash", Severity.PAGE)
    assert [one["count"] for one in finding.evidence["jobs"]] == [5, 4]
    assert finding.evidence["count"] == 9
    # Whom nobody saw is not named as a preemptor.
    assert sum(one["count"] for one in finding.evidence["preemptors"]) == 2


def test_what_nobody_saw_is_no_turn_of_a_pair_where_a_third_took_part():
    a, b, turns = two_jobs(9)
    now = turns[9]
    third = an_event(a, now - 2 * MINUTE, message=message("uid-c", "x"))
    found = told([seen(now, a.at(now), b.at(now), kueue_events=(third,))]).findings
    # Two findings, each of its own runs, which were too short; no pair.
    assert [(f.reason, f.evidence["loop"]) for f in found] == 2 * [("thrash", "short_runs")]


def test_what_nobody_saw_in_days_is_no_turn_of_a_pair():
    # Five and four in four days: 19 hours and more from one to the next, for whom is not known.
    a, b, turns = two_jobs(9)
    a, b = (replace(j, created=NOON - 96 * HOUR, changes={"past_seconds": None}) for j in (a, b))
    found = told([seen(turns[9], a.at(turns[9]), b.at(turns[9]))]).findings
    assert {f.reason for f in found} == {"without_checkpoint"}


def test_a_job_s_own_finding_ends_when_it_becomes_one_of_a_pair():
    a, b, turns = two_jobs(6)
    # b's own three preemptions are told while nobody knows a: then a is read, too.
    alone = [seen(t, b.at(t), kueue_events=b.events(t)) for t in turns[1:]]
    before = told(alone)
    assert [f.subject for f in before.findings] == [f"PyTorchJob/{NS}/b"]
    now = turns[6] + MINUTE
    both = seen(now, a.at(now), b.at(now), kueue_events=(*a.events(now), *b.events(now)))
    after = told([both], before.memory)
    assert [f.evidence["loop"] for f in after.findings] == ["pair"]
    assert [(end.finding.subject, end.resolution) for end in after.cleared] == [
        (f"PyTorchJob/{NS}/b", Resolution.REASON_CHANGED)
    ]


def test_two_turns_are_no_pair():
    a, b, _ = two_jobs(2)
    now = NOON + 10 * MINUTE
    snapshot = seen(now, a.at(now), b.at(now), kueue_events=(*a.events(now), *b.events(now)))
    assert told([snapshot]).findings == ()


def test_a_job_that_always_loses_to_the_same_one_is_no_pair():
    ends = [NOON + n * 2 * HOUR for n in range(1, 6)]
    job = Kueue(runs=runs_of(90, *ends), message=message("uid-urgent", "x"))
    urgent = Kueue(name="urgent", uid="uid-urgent", runs=[(NOON, None)])
    (finding,) = told([seen(t, job.at(t), urgent.at(t)) for t in ends]).findings
    assert (finding.subject, finding.reason) == (SUBJECT, "without_checkpoint")


def test_neither_are_events_that_were_merged_if_all_of_them_are_about_the_same_one():
    job = Kueue(runs=runs_of(90, *(NOON - n * 2 * HOUR for n in (9, 6, 4, 2, 0))))
    # The other was preempted too, but for somebody else.
    lost = runs_of(60, NOON - 20 * HOUR)
    urgent = Kueue(name="urgent", uid="uid-urgent", runs=lost, message=message("uid-9", "x"))
    merged = an_event(job, NOON, count=5)
    snapshot = seen(NOON, job.at(NOON), urgent.at(NOON), kueue_events=(merged,))
    (finding,) = told([snapshot]).findings
    assert (finding.reason, finding.evidence["count"]) == ("without_checkpoint", 5)
    preemptors = [{"subject": f"PyTorchJob/{NS}/urgent", "count": 5}]
    assert finding.evidence["preemptors"] == preemptors


def by_turns(*turns):
    """Jobs preempted in this order, two hours apart: ("a", "b") is a for b. Seen each time."""
    jobs = {}
    snapshots = []
    for n, (victim, by) in enumerate(turns):
        end = NOON + n * 2 * HOUR
        job = jobs.get(victim, Kueue(name=victim, uid=f"uid-{victim}"))
        runs = [*job.runs, (end - 90 * MINUTE, end)]
        jobs[victim] = replace(job, runs=runs, message=message(f"uid-{by}", "x"))
        snapshots.append(seen(end, *(one.at(end) for one in jobs.values())))
    return snapshots


def test_two_jobs_that_each_lose_in_a_row_do_not_take_turns():
    pairs = [("a", "b")] * 3 + [("b", "a")] * 3
    found = told(by_turns(*pairs)).findings
    assert [(f.subject[-1], f.reason) for f in found] == [
        ("a", "without_checkpoint"),
        ("b", "without_checkpoint"),
    ]


def test_a_job_is_of_one_pair_only_the_busiest():
    # b and c take four turns, a and b three: by the times both are pairs.
    turns = [("b", "c"), ("c", "b"), ("b", "c"), ("c", "b"), ("a", "b"), ("b", "a"), ("a", "b")]
    (finding,) = told(by_turns(*turns)).findings
    assert (finding.subject[-1], finding.evidence["loop"]) == ("b", "pair")
    assert [one["subject"][-1] for one in finding.evidence["jobs"]] == ["b", "c"]


def test_when_one_of_a_pair_has_finished_the_pair_is_over():
    a, b, _ = two_jobs(9)
    times = [NOON + n * TICK for n in range(10)]
    memory = told([seen(t, a.at(t), b.at(t), kueue_events=a.events(t)) for t in times]).memory
    done = replace(b, finished=NOON + HOUR)
    detection = detect(seen(NOON + HOUR, a.at(NOON + HOUR), done.at(NOON + HOUR)), memory, CLUSTER)
    # What is left is a's own: five runs, all too short.
    (finding,) = detection.findings
    assert (finding.subject, finding.reason) == (f"PyTorchJob/{NS}/a", "thrash")
    assert (finding.evidence["loop"], finding.evidence["count"]) == ("short_runs", 5)
