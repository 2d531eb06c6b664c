"""Ticks, missed ticks and look-backs against arithmetic on the raw samples of one GPU."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.cluster.memory import Memory
from steward.ports import DeviceName
from steward.usecases.evaluate_snapshot import fold
from steward.usecases.read_cluster import read_cluster
from tests.builders import a_cluster, at
from tests.fakes import FakeKubernetes, FakeMetrics, FakeSources, FixedTime
from tests.unit.usecases.test_take_snapshot import NODE, a_pod, device

CLUSTER = a_cluster()
START = at("6:00")

# Alternating stretches of work and idleness, in minutes.
stretches = st.lists(st.integers(min_value=1, max_value=200), min_size=1, max_size=8)


def timeline(lengths, first_busy):
    """One sample a minute, alternately at 90 % and at 0."""
    values = []
    busy = first_busy
    for length in lengths:
        values += [0.9 if busy else 0.0] * length
        busy = not busy
    return [(START + timedelta(minutes=n), value) for n, value in enumerate(values)]


def expected(points, end):
    """By definition: idle iff the newest 60 samples are; counted from the first of the stretch."""
    seen = [(t, v) for t, v in points if t <= end]
    window = [v for t, v in seen if t > end - timedelta(minutes=60)]
    if len(window) < 48 or max(window) > 0.01 or end - timedelta(minutes=60) < START:
        return None
    first = last = seen[-1][0]
    for when, value in reversed(seen):
        if value > 0.01:
            break
        first = when
    return first, round((last - first).total_seconds() / 3600, 6)


@settings(deadline=None, max_examples=60)
@given(
    lengths=stretches,
    first_busy=st.booleans(),
    skipped=st.sets(st.integers(min_value=0, max_value=200), max_size=60),
)
def test_every_tick_says_what_the_samples_say_whatever_ticks_were_missed(
    lengths, first_busy, skipped
):
    points = timeline(lengths, first_busy)
    metrics = FakeMetrics({device(): points})
    sources = FakeSources(FakeKubernetes((a_pod(),), (NODE,)), metrics)
    memory = Memory(cluster="ml-shared-01")
    end_of_data = points[-1][0]
    tick = START
    number = 0
    while tick - timedelta(minutes=2) <= end_of_data:
        number += 1
        tick += timedelta(minutes=5)
        if number in skipped:
            continue
        snapshot, _ = read_cluster(CLUSTER, memory, sources, FixedTime(tick))
        evaluation, memory = fold("key", snapshot, memory, CLUSTER)
        found = [f for f in evaluation.findings if f.detector == "idle_gpus"]
        truth = expected(points, tick - timedelta(minutes=2))
        if tick - timedelta(minutes=2) > end_of_data:
            continue
        assert [(f.since, f.gpu_hours) for f in found] == ([truth] if truth else [])


@settings(deadline=None, max_examples=60)
@given(
    idle=st.integers(min_value=61, max_value=400),
    work=st.integers(min_value=6, max_value=60),
    phase=st.integers(min_value=0, max_value=4),
)
def test_the_final_hours_count_to_the_last_idle_sample_wherever_the_ticks_fall(idle, work, phase):
    points = timeline([idle, work], first_busy=False)
    name = DeviceName(namespace=device().namespace, pod=device().pod, uuid=device().uuid)
    sources = FakeSources(FakeKubernetes((a_pod(),), (NODE,)), FakeMetrics({name: points}))
    memory = Memory(cluster="ml-shared-01")
    tick = START + timedelta(minutes=phase)
    opened = False
    final = None
    while tick - timedelta(minutes=2) <= points[-1][0]:
        snapshot, _ = read_cluster(CLUSTER, memory, sources, FixedTime(tick))
        evaluation, memory = fold("key", snapshot, memory, CLUSTER)
        opened = opened or bool(evaluation.findings)
        final = evaluation.cleared[0].finding.gpu_hours if evaluation.cleared else final
        tick += timedelta(minutes=5)
    # The first idle sample is minute 0, the last one minute idle-1.
    if opened and final is not None:
        assert final == round((idle - 1) / 60, 6)
    # It must open if any tick's whole window lies inside the idle stretch.
    first_possible = 62 + (phase - 62) % 5
    assert opened == (first_possible <= idle - 1 + 2)
