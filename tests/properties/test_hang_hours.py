"""Ticks, missed ticks and look-backs at a job of two GPUs against arithmetic on its raw samples."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.cluster.memory import Memory
from steward.usecases.evaluate_snapshot import fold
from steward.usecases.read_cluster import read_cluster
from tests.builders import a_cluster, at
from tests.fakes import FakeKubernetes, FakeMetrics, FakeSources, FixedTime
from tests.unit.usecases.test_take_snapshot import NODE, a_pod, device

CLUSTER = a_cluster()
START = at("6:00")
MINUTE = timedelta(minutes=1)

WORK, STUCK, REST = "work", "stuck", "rest"
ACTIVITY = {WORK: 0.8, STUCK: 1.0, REST: 0.0}
TENSOR = {WORK: 0.4, STUCK: 0.0, REST: 0.0}

blocks = st.lists(
    st.tuples(st.sampled_from([WORK, STUCK, STUCK, REST]), st.integers(1, 90)),
    min_size=1,
    max_size=6,
)


def timeline(plan):
    """What the job does in each minute."""
    return [state for state, length in plan for _ in range(length)]


def shifted(states, lag):
    """A GPU that does the same some minutes later, and works until then."""
    return [WORK] * lag + states[: len(states) - lag]


def expected(gpus, end):
    """By definition: the newest 30 samples of both are stuck; counted from the later beginning."""
    seen = end + 1  # samples of minutes 0 ... end
    if end < 30 or any(state != STUCK for states in gpus for state in states[end - 29 : seen]):
        return None
    begins = []
    for states in gpus:
        first = end
        while first > 0 and states[first - 1] == STUCK:
            first -= 1
        begins.append(first)
    first = max(begins)
    return START + first * MINUTE, round(2 * (end - first) / 60, 6)


@settings(deadline=None, max_examples=60)
@given(plan=blocks, lag=st.integers(0, 20), skipped=st.sets(st.integers(0, 120), max_size=30))
def test_every_tick_says_what_the_samples_say_whatever_ticks_were_missed(plan, lag, skipped):
    states = timeline(plan)
    gpus = [states, shifted(states, min(lag, len(states)))]
    names = [device("GPU-1"), device("GPU-2")]
    metrics = FakeMetrics(
        *(
            {
                name: [(START + n * MINUTE, level[state]) for n, state in enumerate(own)]
                for name, own in zip(names, gpus, strict=True)
            }
            for level in (ACTIVITY, TENSOR)
        )
    )
    sources = FakeSources(FakeKubernetes((a_pod(gpus=2),), (NODE,)), metrics)
    memory = Memory(cluster="ml-shared-01")
    for number in range(1, (len(states) + 1) // 5 + 1):
        tick = START + 5 * number * MINUTE
        end = 5 * number - 2
        if number in skipped or end >= len(states):
            continue
        snapshot, _ = read_cluster(CLUSTER, memory, sources, FixedTime(tick))
        evaluation, memory = fold("key", snapshot, memory, CLUSTER)
        told = [f for f in evaluation.findings if f.reason == "suspected_hang"]
        truth = expected(gpus, end)
        if truth:
            assert [(f.since, f.gpu_hours) for f in told] == [truth]
            assert len(evaluation.findings) == 1  # a subject has one reason at a time
            continue
        # What is told on is over, rests, and is counted to its last sample.
        for finding in told:
            assert "hung_until" in finding.evidence
            assert all(own[min(end + 2, len(states) - 1)] == REST for own in gpus)


@settings(deadline=None, max_examples=60)
@given(
    stuck=st.integers(31, 200),
    work=st.integers(16, 60),
    lag=st.integers(0, 10),
    phase=st.integers(0, 4),
)
def test_the_final_hours_count_to_the_last_sample_wherever_the_ticks_fall(stuck, work, lag, phase):
    # GPU-1 is stuck from minute 30 on, GPU-2 from `lag` minutes later; GPU-1 works first.
    states = timeline([(WORK, 30), (STUCK, stuck), (WORK, work)])
    gpus = [states, shifted(states, lag)]
    metrics = FakeMetrics(
        *(
            {
                device(f"GPU-{n}"): [(START + m * MINUTE, level[s]) for m, s in enumerate(own)]
                for n, own in enumerate(gpus)
            }
            for level in (ACTIVITY, TENSOR)
        )
    )
    sources = FakeSources(FakeKubernetes((a_pod(gpus=2),), (NODE,)), metrics)
    memory = Memory(cluster="ml-shared-01")
    opened, final = False, None
    for minute in range(phase, len(states), 5):
        clock = FixedTime(START + minute * MINUTE)
        snapshot, _ = read_cluster(CLUSTER, memory, sources, clock)
        evaluation, memory = fold("key", snapshot, memory, CLUSTER)
        opened = opened or any(f.reason == "suspected_hang" for f in evaluation.findings)
        final = evaluation.cleared[0].finding.gpu_hours if evaluation.cleared else final
    # Both are stuck from minute 30 + lag to 29 + stuck; a window of 30 samples must fit a tick.
    first, last = 30 + lag, 29 + stuck
    fits = any(first + 29 <= minute - 2 <= last for minute in range(phase, len(states), 5))
    assert opened == fits
    if opened:
        assert final == round(2 * (last - first) / 60, 6)
