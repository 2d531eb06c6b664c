"""What preemptions lost: GPUs x (preemption - the later of run start and last proven checkpoint)."""

from copy import replace

import pytest

from steward.cluster.checkpoints import LookStatus, WrittenBy
from steward.cluster.kueue import Evictions, ResourceFlavor
from steward.cluster.policy import Severity
from steward.detect.preemption import detect
from tests.builders import NOON, a_cluster
from tests.unit.detect.preemptions import (
    DAY,
    EMPTY,
    HOUR,
    MINUTE,
    ONCE,
    P5,
    TICK,
    Kueue,
    a_look,
    an_event,
    evidence,
    runs_of,
    seen,
    ticks,
    told,
    written,
)


def test_three_runs_of_ninety_minutes_on_eight_gpus_lose_36_gpu_hours():
    # 3 x 1.5 h x 8 = 36; at 64 USD an hour of 8 GPUs, 8 USD each: 288. A mount called
    # checkpoints is a declaration, and no write was found.
    ends = [NOON + n * DAY for n in range(3)]
    job = Kueue(runs=runs_of(90, *ends), changes={"declared_checkpoints": "/checkpoints"})
    snapshots = [
        seen(t, job.at(t), checkpoints=(evidence(job, t, a_look()),) if t in ends else ())
        for end in ends
        for t in (end - HOUR, end)
    ]
    (finding,) = told(snapshots).findings
    assert (finding.reason, finding.evidence["checkpoint"]) == ("without_checkpoint", "declared")
    assert (finding.gpus, finding.gpu_hours, finding.cost_usd) == (8, 36, 288)
    assert finding.evidence["lost_gpu_hours"] == 36
    assert not finding.evidence["lost_at_least"]
    assert finding.since == ends[0]
    assert [e["run_minutes"] for e in finding.evidence["evictions"]] == [90, 90, 90]


def test_at_first_sight_the_admitted_seconds_of_all_runs_are_what_was_lost():
    # The same three runs, seen only once: 3 x 90 min of past execution.
    job = Kueue(runs=runs_of(90, NOON - 20 * HOUR, NOON - 10 * HOUR, NOON - HOUR))
    (finding,) = told(ticks(job, NOON)).findings
    assert (finding.gpu_hours, finding.evidence["lost_at_least"]) == (36, False)


def test_admitted_seconds_of_other_evictions_are_nobody_s_loss():
    counted = tuple(
        Evictions(reason=reason, underlying_cause="", count=count)
        for reason, count in (("Preempted", 3), ("NodeFailures", 1))
    )
    job = Kueue(
        runs=runs_of(90, NOON - 20 * HOUR, NOON - 10 * HOUR, NOON - HOUR),
        changes={"evictions": counted},
    )
    (finding,) = told(ticks(job, NOON)).findings
    assert (finding.gpu_hours, finding.evidence["lost_at_least"]) == (None, True)
    assert finding.evidence["lost_gpu_hours"] is None


def test_a_run_s_start_is_the_difference_in_admitted_seconds_where_no_admission_was_seen():
    # Seen while it waits, then after a whole run: 40 min more admitted, one preemption more.
    end = NOON + 2 * HOUR
    job = Kueue(runs=[*runs_of(60, NOON - HOUR), (end - 40 * MINUTE, end)])
    detection = told(ticks(job, NOON, end + MINUTE))
    started = [e.started for e in detection.memory.preemptions.evictions]
    assert started == [NOON - 2 * HOUR, end - 40 * MINUTE]


def test_an_admission_event_tells_when_a_run_began():
    end = NOON - 10 * MINUTE
    job = Kueue(runs=runs_of(30, end), changes={"past_seconds": None})
    events = (*job.events(NOON), an_event(job, end - 30 * MINUTE, "Admitted"))
    (one,) = told([seen(NOON, job.at(NOON), kueue_events=events)]).memory.preemptions.evictions
    assert one.started == end - 30 * MINUTE


def test_a_preemption_in_progress_still_shows_when_its_run_began():
    # Evicted at noon, its pods still stopping: quota and admission are given back later.
    job = Kueue(runs=[(START, END)], changes={"past_seconds": 0})
    ended, running = job.at(END), job.at(END - MINUTE)
    conditions = [c for c in ended.conditions if c.type not in {"Admitted", "QuotaReserved"}]
    stopping = replace(ended, conditions=(*conditions, *running.conditions))
    detection = told([seen(NOON, stopping)])
    (one,) = detection.memory.preemptions.evictions
    assert (one.started, one.ran) == (START, 3 * 3600)
    # Given back, and then evicted a second time: its admitted seconds are the second run's alone.
    later = NOON + 2 * HOUR
    again = Kueue(runs=[(START, END), (later - 30 * MINUTE, later)])
    known = told(ticks(again, NOON + TICK, later), detection.memory).memory.preemptions.evictions
    assert [e.started for e in known] == [START, later - 30 * MINUTE]


def test_a_run_before_which_another_may_have_ended_is_not_counted_from_the_old_admission():
    # Admitted at nine and seen; by noon two preemptions, of which only the last has a time.
    job = Kueue(runs=[(NOON - 3 * HOUR, NOON - 2 * HOUR), (NOON - HOUR, NOON)])
    known = told(ticks(job, NOON - 2 * HOUR - MINUTE, NOON)).memory.preemptions.evictions
    assert [e.started for e in known] == [None, None]
    # Two hours admitted together, so an hour each on average, and 16 GPU-hours in all.
    assert [e.ran for e in known] == [3600, 3600]


def test_after_an_eviction_for_another_reason_the_old_admission_began_another_run():
    job = Kueue(runs=[(START, END)], changes={"past_seconds": None})
    other = Evictions(reason="NodeFailures", underlying_cause="", count=1)
    ended = job.at(END)
    ended = replace(ended, evictions=(*ended.evictions, other))
    known = told([*ticks(job, END - HOUR), seen(END, ended)]).memory.preemptions.evictions
    assert [e.started for e in known] == [None]


def test_a_second_preemption_did_not_end_the_run_that_the_first_one_ended():
    first = NOON - HOUR / 2
    job = Kueue(
        runs=[(NOON - 2 * HOUR, first), (first + MINUTE, NOON)], changes={"past_seconds": None}
    )
    before = first - MINUTE
    after = seen(NOON, job.at(NOON), kueue_events=job.events(NOON))
    known = told([*ticks(job, before), after]).memory.preemptions.evictions
    assert [(e.at, e.started) for e in known] == [(first, NOON - 2 * HOUR), (NOON, None)]


def test_admitted_seconds_are_those_of_the_runs_before_one_that_is_just_ending():
    # Two hours, unseen, then an hour that ends now: its pods still stop, and it is not added yet.
    job = Kueue(runs=[(NOON - 5 * HOUR, NOON - 3 * HOUR), (NOON - HOUR, NOON)])
    ended, running = job.at(NOON), job.at(NOON - MINUTE)
    conditions = [c for c in ended.conditions if c.type not in {"Admitted", "QuotaReserved"}]
    admitted = [c for c in running.conditions if c.type in {"Admitted", "QuotaReserved"}]
    stopping = replace(ended, conditions=(*conditions, *admitted), past_seconds=2 * 3600)
    known = told([seen(NOON, stopping)]).memory.preemptions.evictions
    assert sorted(e.ran for e in known) == [3600, 7200]


def test_a_run_whose_length_nobody_knows_loses_nobody_knows_what():
    job = Kueue(
        runs=runs_of(90, NOON - 20 * HOUR, NOON - 10 * HOUR, NOON - HOUR),
        changes={"past_seconds": None},
    )
    (finding,) = told(ticks(job, NOON)).findings
    assert (finding.gpu_hours, finding.cost_usd) == (None, None)
    assert finding.evidence["lost_at_least"]


def test_a_job_without_accelerators_is_preempted_all_the_same_and_loses_none():
    job = Kueue(runs=runs_of(90, NOON - 20 * HOUR, NOON - 10 * HOUR, NOON - HOUR), gpus=0)
    (finding,) = told(ticks(job, NOON)).findings
    assert (finding.gpus, finding.gpu_hours, finding.cost_usd) == (0, 0, 0)
    assert not finding.evidence["lost_at_least"]


def test_no_price_no_dollars():
    job = Kueue(runs=runs_of(90, NOON - 20 * HOUR, NOON - 10 * HOUR, NOON - HOUR))
    (finding,) = told(ticks(job, NOON), cluster=a_cluster(prices=(), capacity=(P5,))).findings
    assert (finding.gpu_hours, finding.cost_usd, finding.evidence["price"]) == (36, None, None)


def test_an_instance_type_that_nobody_knows_has_no_price():
    job = Kueue(runs=runs_of(90, NOON - 20 * HOUR, NOON - 10 * HOUR, NOON - HOUR))
    (finding,) = told(ticks(job, NOON), cluster=a_cluster()).findings
    assert (finding.gpu_hours, finding.cost_usd) == (36, None)
    assert finding.evidence["instance_type"] is None


def test_the_flavor_it_ran_on_names_the_price_by_its_node_label():
    label = {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"}
    flavor = ResourceFlavor(name="gpus", node_labels=label)
    ends = [NOON + n * HOUR for n in (1, 3, 5)]
    job = Kueue(runs=runs_of(60, *ends))

    def workload(when):
        one = job.at(when)
        return (
            replace(one, assigned={"gpus": one.assigned["ml.p5.48xlarge"]}) if one.assigned else one
        )

    times = [when for end in ends for when in (end - MINUTE, end)]
    snapshots = [seen(when, workload(when), resource_flavors=(flavor,)) for when in times]
    (finding,) = told(snapshots, cluster=a_cluster()).findings
    # 3 x 1 h x 8 GPUs at 8 USD.
    assert (finding.gpu_hours, finding.cost_usd) == (24, 192)


END, START = NOON, NOON - 3 * HOUR


def judged(*looks, told_of=(), declared=None, cluster=ONCE, at=NOON):
    """One run of three hours on eight GPUs, and what was found of its checkpoints."""
    job = Kueue(runs=[(START, END)], changes={"declared_checkpoints": declared})
    found = (evidence(job, END, *looks, told=told_of),)
    snapshots = [seen(at - HOUR, job.at(at - HOUR)), seen(at, job.at(at), checkpoints=found)]
    (finding,) = told(snapshots, cluster=cluster).findings
    return finding


def test_a_checkpoint_of_this_run_saves_what_was_before_it():
    finding = judged(a_look(written(END - HOUR)))
    assert (finding.reason, finding.severity) == ("with_checkpoint", Severity.INFO)
    # From the checkpoint to the end: one hour of eight GPUs.
    assert (finding.gpu_hours, finding.evidence["checkpoint"]) == (8, "proven")
    (one,) = finding.evidence["checkpoints"]
    assert (one["status"], one["source"], one["written"]) == (
        "proven",
        "storage",
        "2026-11-05T11:00:00Z",
    )


def test_a_checkpoint_of_an_earlier_run_does_not_save_this_one():
    finding = judged(a_look(written(START - HOUR)))
    assert (finding.reason, finding.evidence["checkpoint"]) == ("without_checkpoint", "absent")
    assert finding.gpu_hours == 24
    assert finding.evidence["checkpoints"][0]["written"] == "2026-11-05T08:00:00Z"


def test_a_checkpoint_at_the_very_start_of_a_run_is_the_one_it_started_from():
    assert judged(a_look(written(START))).reason == "without_checkpoint"


@pytest.mark.parametrize(
    "status", [LookStatus.DENIED, LookStatus.UNREADABLE, LookStatus.UNLISTABLE]
)
def test_a_place_that_could_not_be_listed_is_unreadable_and_never_absent(status):
    finding = judged(a_look(), a_look(status=status))
    assert (finding.reason, finding.evidence["checkpoint"]) == ("without_checkpoint", "unreadable")


def test_every_place_listed_and_nothing_there_is_absent():
    assert judged(a_look(), a_look()).evidence["checkpoint"] == "absent"


def test_no_place_to_look_at_is_unreadable():
    assert judged().evidence["checkpoint"] == "unreadable"


def test_a_declaration_without_a_write_is_declared_whatever_was_listed():
    for looks in ((), (a_look(),), (a_look(status=LookStatus.DENIED),)):
        assert judged(*looks, declared="/checkpoints").evidence["checkpoint"] == "declared"


@pytest.mark.parametrize("by", [WrittenBy.MARKER, WrittenBy.HEARTBEAT])
def test_what_a_marker_or_a_heartbeat_tells_is_proof_where_storage_cannot_be_listed(by):
    looks = (a_look(status=LookStatus.UNLISTABLE),)
    finding = judged(*looks, told_of=(written(END - HOUR / 2, by),))
    assert (finding.reason, finding.gpu_hours) == ("with_checkpoint", 4)
    assert finding.evidence["checkpoints"][0]["source"] == by.value


def test_the_last_proven_checkpoint_counts_whoever_tells_of_it():
    heartbeat = written(END - HOUR / 4, WrittenBy.HEARTBEAT)
    marker = written(END - HOUR / 2, WrittenBy.MARKER)
    storage = a_look(written(END - HOUR))
    assert judged(storage).gpu_hours == 8
    assert judged(storage, told_of=(marker,)).gpu_hours == 4
    assert judged(storage, told_of=(marker, heartbeat)).gpu_hours == 2
    # Storage that shows nothing of this run does not contradict what was told of it.
    assert judged(a_look(written(START - HOUR)), told_of=(marker,)).gpu_hours == 4


def test_of_several_that_tell_of_one_moment_the_most_trusted_is_named():
    told_of = tuple(written(END - HOUR, by) for by in (WrittenBy.HEARTBEAT, WrittenBy.MARKER))
    for looks, source in (((a_look(written(END - HOUR)),), "storage"), ((), "marker")):
        finding = judged(*looks, told_of=told_of)
        assert finding.evidence["checkpoints"][0]["source"] == source


def test_what_was_written_after_the_preemption_proves_nothing_of_the_run():
    assert judged(a_look(written(END + MINUTE))).reason == "without_checkpoint"


def test_where_the_run_s_start_is_unknown_a_checkpoint_of_this_workload_counts_and_says_so():
    job = Kueue(runs=[(START, END)], changes={"past_seconds": None}, created=NOON - DAY)
    for minutes, reason in ((60, "with_checkpoint"), (25 * 60, "without_checkpoint")):
        found = evidence(job, END, a_look(written(END - minutes * MINUTE)))
        snapshot = seen(NOON, job.at(NOON), checkpoints=(found,))
        (finding,) = detect(snapshot, EMPTY, ONCE).findings
        assert finding.reason == reason
        assert finding.evidence["checkpoints"][0]["run_start"] is None


def test_a_run_loses_no_more_than_its_workload_was_ever_admitted():
    # Two runs of an hour that nobody saw apart; what was written five hours before the last one's
    # end may be older than that run.
    job = Kueue(runs=runs_of(60, NOON - 8 * HOUR, NOON))
    found = evidence(job, NOON, a_look(written(NOON - 5 * HOUR)))
    (finding,) = told([seen(NOON, job.at(NOON), checkpoints=(found,))], cluster=ONCE).findings
    assert (finding.reason, finding.gpu_hours) == ("with_checkpoint", 16)
    assert finding.evidence["lost_at_least"]


def test_one_proven_checkpoint_of_several_runs_makes_with_checkpoint():
    ends = [NOON + n * 10 * HOUR for n in range(3)]
    job = Kueue(runs=runs_of(120, *ends))
    snapshots = []
    for n, end in enumerate(ends):
        newest = written(end - HOUR) if n == 1 else None
        snapshots.append(seen(end - HOUR, job.at(end - HOUR)))
        snapshots.append(seen(end, job.at(end), checkpoints=(evidence(job, end, a_look(newest)),)))
    (finding,) = told(snapshots).findings
    assert (finding.reason, finding.evidence["checkpoint"]) == ("with_checkpoint", "proven")
    # 2 h + 1 h + 2 h, on eight GPUs.
    assert finding.gpu_hours == 40
    statuses = [one["status"] for one in finding.evidence["checkpoints"]]
    assert statuses == ["absent", "proven", "absent"]


def test_runs_that_nobody_saw_apart_may_have_had_the_checkpoint_of_one_that_was():
    # Two runs between two ticks, then a third with a proven checkpoint an hour before its end.
    job = Kueue(runs=runs_of(120, NOON - 20 * HOUR, NOON - 10 * HOUR, NOON))
    found = (evidence(job, NOON, a_look(written(NOON - HOUR))),)
    (finding,) = told([seen(NOON, job.at(NOON), checkpoints=found)]).findings
    assert (finding.gpu_hours, finding.evidence["lost_at_least"]) == (8, True)


def test_evidence_that_comes_late_replaces_what_was_not_proven_and_is_never_unsaid():
    job = Kueue(runs=[(START, END)])
    looked = [
        (NOON, evidence(job, END, a_look())),
        (NOON + TICK, evidence(job, END, a_look(written(END - HOUR)))),
        (NOON + 2 * TICK, evidence(job, END, a_look())),
    ]
    memory = told(ticks(job, NOON - HOUR), cluster=ONCE).memory
    said = []
    for when, found in looked:
        detection = detect(seen(when, job.at(when), checkpoints=(found,)), memory, ONCE)
        memory = detection.memory
        said.append(detection.findings[0].reason)
    assert said == ["without_checkpoint", "with_checkpoint", "with_checkpoint"]


def test_a_preemption_is_settled_ten_minutes_later_and_after_a_day_without_any_evidence():
    job = Kueue(runs=[(START, END)])
    found = (evidence(job, END),)

    def settled(when, checkpoints, memory):
        detection = told([seen(when, job.at(when), checkpoints=checkpoints)], memory)
        return detection.memory, detection.memory.preemptions.settled().settled

    memory, none = settled(NOON + 9 * MINUTE, found, EMPTY)
    assert none == frozenset()
    _, late = settled(NOON + 10 * MINUTE, found, memory)
    assert late == {(job.uid, END)}
    _, unseen = settled(NOON + 23 * HOUR, (), memory)
    assert unseen == frozenset()
    _, old = settled(NOON + DAY, (), memory)
    assert old == {(job.uid, END)}


def test_what_waits_for_longer_than_the_period_stays_settled():
    job = Kueue(runs=[(START, END)], created=NOON - DAY)
    detection = told(ticks(job, NOON + 9 * DAY))
    assert detection.memory.preemptions.settled().settled == {(job.uid, END)}
    assert detection.findings == ()


# --- preemptions that nobody saw -----------------------------------------------------------------


def unseen(*looks, **changes):
    """Three runs of 90 minutes, seen once, an hour into the fourth; looked for up to its start."""
    back = NOON - HOUR
    ends = [NOON - n * HOUR for n in (20, 10, 2)]
    job = Kueue(runs=[*runs_of(90, *ends), (back, None)], created=NOON - 23 * HOUR, **changes)
    (finding,) = told(
        [seen(NOON, job.at(NOON), checkpoints=(evidence(job, back, *looks),))]
    ).findings
    return finding


def test_without_a_time_nothing_in_the_listing_is_nothing_in_any_run():
    finding = unseen(a_look())
    assert (finding.reason, finding.evidence["checkpoint"]) == ("without_checkpoint", "absent")
    # 3 x 90 minutes on 8 GPUs, and nothing saved of it.
    assert (finding.gpu_hours, finding.evidence["lost_at_least"]) == (36, False)
    # The last of them was before the admission that still lasts.
    assert finding.since == NOON - HOUR


def test_without_a_time_an_object_older_than_the_workload_is_of_none_of_its_runs():
    finding = unseen(a_look(written(NOON - 24 * HOUR)))
    assert (finding.reason, finding.evidence["checkpoint"]) == ("without_checkpoint", "absent")


def test_without_a_time_an_object_written_before_the_last_admission_is_of_a_run():
    # Some run wrote it; how much each had lost by then nobody knows.
    finding = unseen(a_look(written(NOON - 11 * HOUR)))
    assert (finding.reason, finding.evidence["checkpoint"]) == ("with_checkpoint", "proven")
    assert (finding.gpu_hours, finding.evidence["lost_at_least"]) == (None, True)


def test_without_a_time_a_denied_listing_is_unreadable():
    finding = unseen(a_look(status=LookStatus.DENIED))
    assert finding.evidence["checkpoint"] == "unreadable"


def seen_running(job, starts, looks):
    """Seen at the beginning of each run alone, with what was found up to it."""
    return [
        seen(start, job.at(start), checkpoints=(evidence(job, start, look),))
        for start, look in zip(starts, looks, strict=True)
    ]


def test_a_run_seen_to_begin_ends_when_its_admitted_seconds_are_over():
    # Three runs of 90 minutes, each seen as it begins; an hour into each one object is written.
    starts = [NOON + n * 2 * HOUR for n in range(4)]
    runs = [(start, start + 90 * MINUTE) for start in starts[:3]]
    job = Kueue(runs=[*runs, (starts[3], None)], created=NOON - HOUR)
    looks = [a_look(), *(a_look(written(start + HOUR)) for start in starts[:3])]
    (finding,) = told(seen_running(job, starts, looks)).findings
    # Half an hour of each run on 8 GPUs.
    assert (finding.reason, finding.gpu_hours) == ("with_checkpoint", 12)
    # The first was an hour and a half after noon, and not when the next run began.
    assert finding.since == NOON + 90 * MINUTE
    assert finding.evidence["lost_at_least"] is False


def test_a_run_seen_to_begin_that_wrote_nothing_lost_all_of_it_whatever_others_wrote():
    # Only the first run wrote: 30 minutes of it are lost, and 90 of each of the others.
    starts = [NOON + n * 2 * HOUR for n in range(4)]
    runs = [(start, start + 90 * MINUTE) for start in starts[:3]]
    job = Kueue(runs=[*runs, (starts[3], None)], created=NOON - HOUR)
    once = a_look(written(NOON + HOUR))
    (finding,) = told(seen_running(job, starts, [a_look(), once, once, once])).findings
    assert finding.gpu_hours == 8 * (0.5 + 1.5 + 1.5)


def test_a_checkpoint_of_the_run_before_proves_nothing_of_one_whose_start_nobody_saw():
    # Evicted at ten, and again at noon; when it began between them is not known, and the only
    # object is from half past nine.
    first, second = NOON - 2 * HOUR, NOON
    job = Kueue(runs=[*runs_of(60, first), *runs_of(60, second)], changes={"past_seconds": None})
    look = a_look(written(first - HOUR / 2))
    snapshots = [seen(t, job.at(t), checkpoints=(evidence(job, t, look),)) for t in (first, second)]
    memory = told(snapshots).memory.preemptions
    assert [e.proof.value for e in memory.evictions] == ["proven", "absent"]
    # Half an hour of the first; of the second it is not known.
    (finding,) = told(snapshots, cluster=ONCE).findings
    assert (finding.gpu_hours, finding.evidence["lost_at_least"]) == (8 * 0.5, True)


def test_the_first_admitted_seconds_that_kueue_tells_are_the_first_run_s():
    # Before its first eviction a Workload has no such number: nothing, and not "not known".
    end = NOON + 2 * HOUR
    job = Kueue(runs=[(NOON, end), (end + HOUR, None)], created=NOON - HOUR)
    assert job.at(NOON).past_seconds is None
    snapshots = [seen(t, job.at(t)) for t in (NOON, end + HOUR)]
    (one,) = told(snapshots).memory.preemptions.evictions
    assert (one.started, one.ran) == (NOON, 2 * 3600)


def test_a_preemption_without_a_time_is_looked_for_again_until_it_is_settled():
    back = NOON - 20 * MINUTE
    job = Kueue(runs=[(NOON - 3 * HOUR, NOON - HOUR), (back, None)], created=NOON - 4 * HOUR)
    memory = told(ticks(job, NOON - 19 * MINUTE)).memory
    looked = memory.preemptions.settled()
    assert looked.waiting == ((job.uid, back),)
    assert looked.counted == {job.uid: (1, NOON - 19 * MINUTE)}
    found = evidence(job, back, a_look())
    after = told([seen(NOON, job.at(NOON), checkpoints=(found,))], memory).memory
    assert after.preemptions.settled().waiting == ()


def test_an_event_that_comes_late_lets_its_preemption_be_judged_by_its_own_time():
    # Counted once between eleven and its admission at half past eleven, and looked for up to then:
    # an object of 11:20. The event says 11:10: what was written ten minutes later is not of that
    # run, and up to 11:10 there was nothing.
    back, evicted = NOON - 30 * MINUTE, NOON - 50 * MINUTE
    job = Kueue(runs=[(NOON - 3 * HOUR, evicted), (back, None)], created=NOON - 4 * HOUR)
    before = evidence(job, back, a_look(written(NOON - 40 * MINUTE)))
    memory = told(
        [
            seen(NOON - HOUR, job.at(NOON - HOUR)),
            seen(NOON - TICK, job.at(NOON - TICK), checkpoints=(before,)),
        ]
    ).memory
    assert [e.proof.value for e in memory.preemptions.evictions] == ["proven"]
    late = an_event(job, evicted)
    look = evidence(job, evicted, a_look())
    snapshot = seen(NOON, job.at(NOON), kueue_events=(late,), checkpoints=(look,))
    (one,) = told([snapshot], memory).memory.preemptions.evictions
    assert (one.at, one.proof.value, one.written) == (evicted, "absent", None)
