"""Preemptions told tick by tick against the history that was generated, whatever ticks were missed."""

import random
from datetime import timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.cluster.memory import Memory
from steward.detect.preemption import detect
from tests.builders import NOON
from tests.unit.detect.preemptions import (
    CLUSTER,
    EMPTY,
    HOUR,
    MINUTE,
    Kueue,
    a_look,
    evidence,
    message,
    seen,
    written,
)

TICK = 5 * MINUTE
WEEK = timedelta(hours=168)

# Minutes admitted, then minutes until it is admitted again.
lives = st.lists(
    st.tuples(st.integers(min_value=1, max_value=90), st.integers(min_value=1, max_value=60)),
    min_size=1,
    max_size=7,
)
chances = st.integers(min_value=0, max_value=2**32).map(random.Random)


def a_life(steps, *, start=NOON, **changes):
    runs, now = [], start
    for ran, waited in steps:
        runs.append((now, now + ran * MINUTE))
        now += (ran + waited) * MINUTE
    return Kueue(runs=[*runs, (now, None)], created=start - MINUTE, **changes), now


def some_ticks(until, chance: random.Random, share):
    """Ticks from noon on, an odd number of seconds after the minute, some of them missed."""
    every = []
    now = NOON + timedelta(seconds=chance.randint(0, 299))
    while now < until + TICK:
        every.append(now)
        now += TICK
    return [t for t in every[:-1] if chance.random() < share] + every[-1:]


def shuffled(items, chance: random.Random):
    several = [one for one in items for _ in range(chance.randint(1, 3))]
    chance.shuffle(several)
    return tuple(several)


def counted(memory: Memory) -> int:
    return sum(one.count for one in memory.preemptions.evictions)


def brute_hours(job: Kueue, now) -> float:
    """Accelerator hours from the beginning of each run to its end."""
    return sum(
        (end - start) / HOUR * job.gpus for start, end in job.runs if end is not None and end <= now
    )


def told_hours(detection):
    """Lost hours of the only finding, and whether they are all."""
    (finding,) = detection.findings
    return finding.gpu_hours, not finding.evidence["lost_at_least"]


@settings(deadline=None, max_examples=30)
@given(lives, chances, st.sampled_from([0.1, 0.5, 1.0]), st.booleans())
def test_as_long_as_the_counter_survives_every_preemption_is_counted_once(
    steps, chance, share, with_events
):
    job, until = a_life(steps)
    memory, detection = EMPTY, None
    for now in some_ticks(until, chance, share):
        events = shuffled(job.events(now), chance) if with_events else ()
        snapshot = seen(now, *shuffled([job.at(now)], chance), kueue_events=events)
        for _ in range(chance.randint(1, 2)):
            detection = detect(snapshot, memory, CLUSTER)
            memory = detection.memory
        assert counted(memory) == len(job.ended(now))
        for finding in detection.findings:
            assert finding.evidence["count"] == len(job.ended(now))
            assert not finding.evidence["at_least"]


@settings(deadline=None, max_examples=30)
@given(lives, chances, st.sampled_from([0.1, 0.5, 1.0]), st.booleans())
def test_without_checkpoints_the_lost_hours_are_those_of_the_runs_whatever_was_seen(
    steps, chance, share, with_events
):
    job, until = a_life(steps)
    memory = EMPTY
    for now in some_ticks(until, chance, share):
        events = job.events(now) if with_events else ()
        detection = detect(seen(now, job.at(now), kueue_events=events), memory, CLUSTER)
        memory = detection.memory
        if detection.findings:
            lost, complete = told_hours(detection)
            truth = brute_hours(job, now)
            assert lost is None or lost <= truth + 1e-4
            if complete:
                assert abs((lost or 0) - truth) < 1e-4


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.integers(min_value=10, max_value=90),
            st.integers(min_value=10, max_value=90),
            st.integers(min_value=1, max_value=200),
        ),
        min_size=3,
        max_size=8,
    ),
    chances,
)
def test_when_every_run_is_seen_the_lost_hours_are_those_since_the_last_checkpoint(steps, chance):
    job, until = a_life([(ran, waited) for ran, waited, _ in steps])
    saved = {}
    for (_, end), (_, _, ago) in zip(job.runs, steps, strict=False):
        saved[end] = end - ago * MINUTE
    memory = EMPTY
    for now in some_ticks(until, chance, 1.0):
        evicted = [c.since for c in job.at(now).conditions if c.type == "Evicted" and c.status]
        found = tuple(evidence(job, end, a_look(written(saved[end]))) for end in evicted)
        detection = detect(seen(now, job.at(now), checkpoints=found), memory, CLUSTER)
        memory = detection.memory
    # By the definition: accelerators x (preemption - the later of run start and checkpoint).
    truth = sum((end - max(start, saved[end])) / HOUR * job.gpus for start, end in job.runs if end)
    lost, complete = told_hours(detection)
    assert complete
    assert abs(lost - truth) < 1e-4
    proven = any(saved[end] > start for start, end in job.runs if end)
    reason = detection.findings[0].reason
    assert (reason == "with_checkpoint") <= proven
    assert (reason == "without_checkpoint") <= (not proven)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.integers(min_value=5, max_value=300), st.integers(min_value=60, max_value=2000)
        ),
        min_size=6,
        max_size=10,
    ),
    chances,
    st.booleans(),
)
def test_over_weeks_no_more_is_counted_than_the_last_seven_days_had(steps, chance, counts):
    job, until = a_life(steps, counts=counts)
    memory, now = EMPTY, NOON
    while now < until:
        now += chance.randint(1, 600) * MINUTE
        events = job.events(now) if chance.random() < 0.5 else ()
        detection = detect(seen(now, job.at(now), kueue_events=events), memory, CLUSTER)
        memory = detection.memory
        truth = len([end for end in job.ended(now) if end >= now - WEEK])
        for finding in detection.findings:
            count, at_least = finding.evidence["count"], finding.evidence["at_least"]
            assert count <= truth
            assert count == truth or at_least


@settings(deadline=None, max_examples=30)
@given(st.lists(lives, min_size=2, max_size=3), chances, st.sampled_from([0.3, 1.0]))
def test_a_job_that_is_created_again_counts_no_more_than_there_were(parts, chance, share):
    objects, start = [], NOON
    for n, steps in enumerate(parts):
        job, until = a_life(steps, start=start, uid=f"uid-{n}")
        objects.append((job, until))
        start = until + 2 * MINUTE
    memory, detection, read = EMPTY, None, set()
    for now in some_ticks(start, chance, share):
        job = next(
            job for job, until in objects if now < until + 2 * MINUTE or job is objects[-1][0]
        )
        if job.created > now:
            continue
        read.add(job.uid)
        detection = detect(seen(now, job.at(now), kueue_events=job.events(now)), memory, CLUSTER)
        memory = detection.memory
        truth = sum(len(one.ended(now)) for one, _ in objects)
        assert counted(memory) <= truth
        for finding in detection.findings:
            assert finding.evidence["count"] <= truth
            if len(read) > 1:
                assert finding.evidence["at_least"]


@settings(deadline=None, max_examples=30)
@given(st.lists(lives, min_size=2, max_size=4), chances)
def test_neither_the_order_of_objects_nor_a_stored_memory_changes_anything(parts, chance):
    jobs = []
    for n, steps in enumerate(parts):
        by = message(f"uid-{(n + 1) % len(parts)}", "x")
        jobs.append(a_life(steps, uid=f"uid-{n}", name=f"job-{n}", message=by)[0])
    until = max(job.runs[-1][0] for job in jobs)
    straight, mixed = EMPTY, EMPTY
    for now in some_ticks(until, chance, 0.7):
        workloads = [job.at(now) for job in jobs]
        events = [event for job in jobs for event in job.events(now)]
        one = detect(seen(now, *workloads, kueue_events=tuple(events)), straight, CLUSTER)
        chance.shuffle(workloads)
        chance.shuffle(events)
        stored = msgspec.json.decode(msgspec.json.encode(mixed), type=Memory)
        other = detect(seen(now, *workloads, kueue_events=tuple(events)), stored, CLUSTER)
        assert one == other
        straight, mixed = one.memory, other.memory


@settings(deadline=None, max_examples=30)
@given(lives, lives, chances)
def test_jobs_that_have_nothing_to_do_with_each_other_are_told_as_each_is_alone(
    mine, yours, chance
):
    one, until = a_life(mine, name="mine", uid="uid-mine")
    two, later = a_life(yours, name="yours", uid="uid-yours")
    memories = [EMPTY, EMPTY, EMPTY]
    for now in some_ticks(max(until, later), chance, 0.6):
        shown = [(one,), (two,), (one, two)]
        found = []
        for n, jobs in enumerate(shown):
            events = tuple(event for job in jobs for event in job.events(now))
            snapshot = seen(now, *(job.at(now) for job in jobs), kueue_events=events)
            detection = detect(snapshot, memories[n], CLUSTER)
            memories[n] = detection.memory
            found.append(detection.findings)
        assert (*found[0], *found[1]) == found[2]
