"""Preemptions, each counted once, by whom and by which rule. The defaults: 3 in 7 days."""

from copy import replace
from datetime import timedelta

import pytest

from steward.cluster.kueue import Evictions
from steward.cluster.policy import Severity
from tests.builders import NOON
from tests.unit.detect.preemptions import (
    DAY,
    HOUR,
    MINUTE,
    NS,
    ONCE,
    SECOND,
    SUBJECT,
    TICK,
    Kueue,
    an_event,
    message,
    runs_of,
    seen,
    ticks,
    told,
)


def test_three_preemptions_over_six_days_fire_though_the_ticks_around_each_were_missed():
    ends = [NOON + n * 3 * DAY for n in range(3)]
    job = Kueue(runs=[*runs_of(90, *ends), (ends[2] + HOUR, None)], created=NOON - HOUR * 2)
    # Seen while it runs, hours before and after each preemption: never while it was evicted.
    times = [e - HOUR for e in ends] + [ends[2] + 2 * HOUR]
    two = told(ticks(job, *times[:3]))
    assert two.findings == ()
    (finding,) = told(ticks(job, *times)).findings
    assert (finding.subject, finding.reason) == (SUBJECT, "without_checkpoint")
    assert finding.severity is Severity.WARN
    assert finding.team == "research"
    assert finding.evidence["count"] == 3
    assert not finding.evidence["at_least"]


def test_the_same_objects_seen_five_times_are_counted_once():
    job = Kueue(runs=runs_of(60, NOON - 10 * HOUR, NOON - 5 * HOUR, NOON - HOUR / 2))
    workload, events = job.at(NOON), job.events(NOON)
    snapshots = [
        seen(NOON + n * TICK, workload, workload, kueue_events=(*events, *events)) for n in range(5)
    ]
    (finding,) = told(snapshots).findings
    assert finding.evidence["count"] == 3


def test_a_counter_that_goes_from_12_to_0_to_5_has_risen_by_5():
    start = NOON - 30 * DAY

    def workload(count):
        counted = (Evictions(reason="Preempted", underlying_cause="", count=count),)
        return Kueue(created=start, changes={"evictions": counted if count else ()}).at(NOON)

    counters = [workload(12), workload(0), workload(5)]
    detection = told([seen(NOON + n * TICK, one) for n, one in enumerate(counters)])
    (finding,) = detection.findings
    assert finding.evidence["count"] == 5
    # What was counted before it was lost and after it had last been seen is gone.
    assert finding.evidence["at_least"]


def test_a_counter_that_shrinks_counts_what_it_shows():
    start = NOON - 30 * DAY
    counts = [(Evictions(reason="Preempted", underlying_cause="", count=n),) for n in (12, 5)]
    jobs = [Kueue(created=start, changes={"evictions": counted}) for counted in counts]
    detection = told([seen(NOON + n * TICK, job.at(NOON)) for n, job in enumerate(jobs)])
    assert [f.evidence["count"] for f in detection.findings] == [5]


def test_a_counter_first_seen_counts_if_the_workload_is_younger_than_the_period():
    job = Kueue(
        runs=runs_of(60, *(NOON - n * HOUR for n in (50, 40, 30, 20))), created=NOON - 3 * DAY
    )
    (finding,) = told(ticks(job, NOON)).findings
    assert finding.evidence["count"] == 4


def test_a_counter_first_seen_does_not_count_if_the_workload_is_older_than_the_period():
    ends = [NOON - n * HOUR for n in (50, 40, 30, 20)]
    job = Kueue(runs=runs_of(60, *ends), created=NOON - 8 * DAY)
    detection = told(ticks(job, NOON))
    assert detection.findings == ()
    # Only what has a time is known to be of the period: the last one, by its condition.
    (known,) = detection.memory.preemptions.evictions
    assert known.at == ends[-1]
    # Two more make three, and there may have been more.
    later = replace(job, runs=[*job.runs, *runs_of(60, NOON + 2 * HOUR, NOON + 4 * HOUR)])
    (finding,) = told(ticks(later, NOON + 2 * HOUR, NOON + 4 * HOUR), detection.memory).findings
    assert (finding.evidence["count"], finding.evidence["at_least"]) == (3, True)


def test_a_workload_that_waited_at_the_last_evaluation_had_a_counter_of_zero():
    start = NOON - 20 * DAY
    ends = [NOON + n * HOUR for n in (2, 4, 6)]
    job = Kueue(runs=[*runs_of(60, *ends), (ends[2] + HOUR, None)], created=start)
    # At noon it waits, never admitted yet; then nothing is seen of it for eight hours.
    (finding,) = told(ticks(job, NOON, NOON + 8 * HOUR)).findings
    assert (finding.evidence["count"], finding.evidence["at_least"]) == (3, False)


def test_without_any_counter_conditions_and_events_count_and_it_is_at_least():
    ends = [NOON + n * HOUR for n in range(1, 4)]
    job = Kueue(runs=runs_of(50, *ends), counts=False)
    times = [end + MINUTE for end in ends]
    (finding,) = told(ticks(job, *times)).findings
    assert (finding.evidence["count"], finding.evidence["at_least"]) == (3, True)


def test_without_any_counter_a_preemption_between_two_ticks_is_told_by_the_new_admission():
    end = NOON + HOUR + MINUTE
    job = Kueue(runs=[(NOON, end), (end + MINUTE, None)], counts=False)
    detection = told(ticks(job, NOON + HOUR, NOON + HOUR + TICK, NOON + HOUR + 2 * TICK))
    (one,) = detection.memory.preemptions.evictions
    assert (one.after, one.at, one.count) == (NOON + HOUR, end + MINUTE, 1)
    assert one.words.cause == "InCohortReclamation"


def test_without_any_counter_a_new_admission_after_a_known_preemption_tells_of_no_other():
    job = Kueue(runs=[(NOON, NOON + HOUR), (NOON + HOUR + MINUTE, None)], counts=False)
    times = (NOON + HOUR, NOON + HOUR + TICK, NOON + HOUR + 2 * TICK)
    detection = told(ticks(job, NOON, *times))
    assert [(e.at, e.count) for e in detection.memory.preemptions.evictions] == [(NOON + HOUR, 1)]


def test_what_has_no_time_lies_between_two_evaluations_and_an_event_may_yet_tell_it():
    end = NOON + HOUR + MINUTE
    job = Kueue(runs=[(NOON, end), (end + MINUTE, None)])
    before, after = NOON + HOUR, NOON + HOUR + TICK
    detection = told(ticks(job, before, after))
    (one,) = detection.memory.preemptions.evictions
    assert (one.after, one.at) == (before, end + MINUTE)
    late = seen(after + TICK, job.at(after + TICK), kueue_events=job.events(after + TICK))
    (one,) = told([late], detection.memory).memory.preemptions.evictions
    assert (one.after, one.at, one.count) == (None, end, 1)


def test_events_take_the_preemptions_that_they_tell_of_out_of_a_number_of_them():
    ends = [NOON + n * 4 * MINUTE for n in (1, 2, 3)]
    job = Kueue(runs=[*runs_of(3, *ends), (NOON + 14 * MINUTE, None)])
    first, second = NOON, NOON + 15 * MINUTE
    memory = told(ticks(job, first, second)).memory
    # Three between two evaluations: two of them, and the one that it was admitted again after.
    assert sorted(e.count for e in memory.preemptions.evictions) == [1, 2]
    late = seen(second + TICK, job.at(second + TICK), kueue_events=job.events(second + TICK))
    detection = told([late], memory)
    known = detection.memory.preemptions.evictions
    assert [(e.after, e.at, e.count) for e in known] == [(None, end, 1) for end in ends]
    # 3 runs of 3 minutes on 8 GPUs, as before they had times.
    assert detection.findings[0].gpu_hours == pytest.approx(1.2)


def test_an_event_that_is_ahead_of_the_counter_is_not_counted_again_when_it_follows():
    end = NOON + MINUTE
    job = Kueue(runs=[(NOON - HOUR, end), (end + MINUTE, None)])
    early = seen(NOON, job.at(NOON), kueue_events=(an_event(job, end),))
    detection = told([early, seen(NOON + TICK, job.at(NOON + TICK))])
    assert [(e.at, e.count) for e in detection.memory.preemptions.evictions] == [(end, 1)]


def test_a_time_that_was_cut_to_the_second_before_the_evaluation_is_counted_once():
    end = NOON
    job = Kueue(runs=[(NOON - HOUR, end), (end + MINUTE, None)])
    just_before = replace(job.at(end - MINUTE), conditions=job.at(end - MINUTE).conditions)
    first = seen(NOON + timedelta(milliseconds=300), just_before)
    second = seen(NOON + TICK, job.at(NOON + TICK), kueue_events=job.events(NOON + TICK))
    detection = told([first, second])
    assert sum(e.count for e in detection.memory.preemptions.evictions) == 1


def test_what_was_read_late_into_an_evaluation_is_counted_once_when_its_event_comes():
    # Read a minute after the moment that the snapshot is dated by; no message says when.
    end = NOON + 20 * SECOND
    job = Kueue(runs=[(NOON - HOUR, end), (end + 20 * SECOND, None)], message="")
    later = seen(NOON + TICK, job.at(NOON + TICK), kueue_events=job.events(NOON + TICK))
    detection = told([seen(NOON, job.at(NOON + MINUTE)), later])
    assert [(e.at, e.count) for e in detection.memory.preemptions.evictions] == [(end, 1)]


def test_a_time_cut_to_the_second_before_the_evaluation_is_the_one_that_was_counted_after_it():
    job = Kueue(runs=[(NOON - HOUR, NOON), (NOON + MINUTE, None)])
    first = seen(NOON + 0.7 * SECOND, job.at(NOON - MINUTE))
    snapshots = [first, *ticks(job, NOON + TICK)]
    last = seen(NOON + 2 * TICK, job.at(NOON + TICK), kueue_events=job.events(NOON + TICK))
    detection = told([*snapshots, last])
    assert [(e.at, e.count) for e in detection.memory.preemptions.evictions] == [(NOON, 1)]


def test_what_lies_on_the_edge_of_the_period_may_have_been_inside():
    edge = NOON + HOUR + MINUTE
    job = Kueue(runs=[(NOON, edge), (edge + MINUTE, edge + 10 * HOUR)], created=NOON - HOUR)
    memory = told(ticks(job, NOON + HOUR, NOON + HOUR + TICK, edge + 10 * HOUR)).memory
    # Between (NOON + 1 h, + 2 min]; the period begins a minute after the former.
    now = NOON + HOUR + MINUTE + 7 * DAY
    (finding,) = told([seen(now, job.at(edge + 10 * HOUR))], memory, ONCE).findings
    assert (finding.evidence["count"], finding.evidence["at_least"]) == (1, True)
    (finding,) = told([seen(now + TICK, job.at(edge + 10 * HOUR))], memory, ONCE).findings
    assert (finding.evidence["count"], finding.evidence["at_least"]) == (1, False)


def test_a_workload_that_may_not_have_been_read_before_is_at_first_sight():
    # Older than the period, its condition reset without a word: nothing says when.
    ends = [NOON - n * DAY for n in (12, 11, 10)]
    job = Kueue(runs=[*runs_of(60, *ends), (NOON - 9 * DAY, None)], created=NOON - 20 * DAY)
    blank = replace(job.at(NOON), conditions=job.at(NOON).conditions[:2])
    unread = seen(NOON, hidden=(f"{NS}/{blank.name}",))
    assert told([unread, seen(NOON + TICK, blank)]).findings == ()
    # Had everything been read, it would have waited, with a counter of zero.
    (finding,) = told([seen(NOON), seen(NOON + TICK, blank)]).findings
    assert finding.evidence["count"] == 3


def test_a_job_that_finished_before_it_was_created_again_leaves_nothing_unseen():
    done = NOON - 12 * HOUR
    first = Kueue(runs=runs_of(60, NOON - 30 * HOUR, NOON - 20 * HOUR), uid="uid-1", finished=done)
    first = replace(first, created=NOON - 40 * HOUR)
    again = Kueue(runs=runs_of(60, NOON - 5 * HOUR), uid="uid-2", created=NOON - 10 * HOUR)
    snapshots = [
        *ticks(first, NOON - 20 * HOUR, NOON - 11 * HOUR),
        *ticks(again, NOON - 9 * HOUR, NOON - 5 * HOUR),
    ]
    (finding,) = told(snapshots).findings
    assert (finding.evidence["count"], finding.evidence["at_least"]) == (3, False)


def test_a_job_that_was_created_again_keeps_its_preemptions_and_says_at_least():
    first = Kueue(runs=runs_of(60, NOON - 30 * HOUR, NOON - 20 * HOUR), uid="uid-1")
    first = replace(first, created=NOON - 40 * HOUR)
    again = Kueue(runs=runs_of(60, NOON - 5 * HOUR), uid="uid-2", created=NOON - 10 * HOUR)
    snapshots = [
        *ticks(first, NOON - 20 * HOUR, NOON - 11 * HOUR),
        *ticks(again, NOON - 9 * HOUR, NOON - 5 * HOUR),
    ]
    (finding,) = told(snapshots).findings
    assert (finding.evidence["count"], finding.evidence["at_least"]) == (3, True)
    assert finding.evidence["workload"] == "pytorchjob-train-uid-2"


def test_a_last_preemption_of_a_workload_that_is_gone_is_told_by_its_event():
    first = Kueue(runs=[(NOON - 2 * HOUR, NOON + MINUTE)], uid="uid-1")
    again = Kueue(uid="uid-2", created=NOON + 2 * MINUTE)
    at = NOON + TICK
    gone = seen(at, again.at(at), kueue_events=first.events(at))
    (one,) = told([*ticks(first, NOON), gone]).memory.preemptions.evictions
    assert (one.uid, one.at, one.gpus) == ("uid-1", NOON + MINUTE, 8)
    assert one.ran == (2 * HOUR + MINUTE).total_seconds()


def test_evictions_for_other_reasons_are_named_and_not_counted():
    ends = [NOON - n * HOUR for n in (9, 6, 3)]
    counted = tuple(
        Evictions(reason=reason, underlying_cause="", count=count)
        for reason, count in (("Preempted", 3), ("PodsReadyTimeout", 4))
    )
    job = Kueue(runs=runs_of(60, *ends), changes={"evictions": counted})
    (finding,) = told(ticks(job, NOON)).findings
    assert (finding.evidence["count"], finding.evidence["other_evictions"]) == (3, 4)


def test_causes_and_preemptors_are_counted_and_resolved_through_uids():
    urgent = Kueue(name="urgent", uid="uid-urgent", runs=[(NOON, None)])
    ends = [NOON + n * HOUR for n in (1, 2, 3)]
    job = Kueue(runs=runs_of(50, *ends), message=message("uid-urgent", "whatever"))
    snapshots = [seen(when, job.at(when), urgent.at(when)) for when in ends]
    (finding,) = told(snapshots).findings
    assert finding.evidence["causes"] == {"InCohortReclamation": 3}
    assert finding.evidence["preemptors"] == [{"subject": f"PyTorchJob/{NS}/urgent", "count": 3}]
    assert finding.evidence["evictions"][0]["preemptor_queue"] == "hyperpod-ns-speech-clusterqueue"


def test_a_preemptor_is_found_by_its_job_s_uid_too():
    urgent = Kueue(name="urgent", uid="uid-u", runs=[(NOON, None)])
    job = Kueue(runs=runs_of(50, NOON), message=message("UNKNOWN", "job-of-uid-u"))
    detection = told([seen(NOON, job.at(NOON), urgent.at(NOON))])
    (one,) = detection.memory.preemptions.evictions
    assert one.preemptor == f"PyTorchJob/{NS}/urgent"


@pytest.mark.parametrize(
    ("uid", "job_uid", "named"),
    [
        ("uid-9", "job-9", [{"subject": "Workload UID uid-9", "count": 3}]),
        ("UNKNOWN", "job-9", [{"subject": "Job UID job-9", "count": 3}]),
        ("UNKNOWN", "UNKNOWN", []),
    ],
)
def test_a_preemptor_that_nobody_knows_is_named_by_its_uid_if_it_has_one(uid, job_uid, named):
    ends = [NOON + n * HOUR for n in (1, 2, 3)]
    job = Kueue(runs=runs_of(50, *ends), message=message(uid, job_uid))
    (finding,) = told(ticks(job, *ends)).findings
    assert finding.evidence["preemptors"] == named
    assert finding.evidence["causes"] == {"InCohortReclamation": 3}


def test_a_preemptor_that_was_gone_before_the_finding_is_remembered():
    urgent = Kueue(name="urgent", uid="uid-urgent", runs=[(NOON, None)])
    ends = [NOON + n * HOUR for n in (1, 2, 3)]
    job = Kueue(runs=runs_of(50, *ends))
    first = seen(ends[0], job.at(ends[0]), urgent.at(ends[0]))
    (finding,) = told([first, *ticks(job, *ends[1:])]).findings
    assert finding.evidence["preemptors"] == [{"subject": f"PyTorchJob/{NS}/urgent", "count": 3}]
