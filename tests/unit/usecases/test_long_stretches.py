"""Stretches that go back further than is looked, and hours that neither stand still nor double."""

from copy import replace
from datetime import timedelta

import pytest

from steward.cluster.accelerators import Owner
from steward.cluster.kueue import Condition
from steward.cluster.memory import Memory
from steward.cluster.policy import IdleLimits, MetricsSource, Thresholds
from steward.usecases import raw_samples
from steward.usecases.evaluate_snapshot import fold
from steward.usecases.idle_history import find_ends
from steward.usecases.read_cluster import read_cluster
from tests.builders import DELAY, NOON, a_cluster, at
from tests.fakes import FakeKubernetes, FakeMetrics, FakeSources, FixedTime
from tests.unit.usecases.test_idle_history import DEVICE, a_stretch, remembering
from tests.unit.usecases.test_take_snapshot import NODE, NS, a_pod, a_workload, device

MINUTE = timedelta(minutes=1)
WEEK = timedelta(days=7)
EMPTY = Memory(cluster="ml-shared-01")


def every(interval, start, stop, value=0.0):
    count = (stop - start) // interval
    return [(start + n * interval, value) for n in range(count + 1)]


def ticks(sources, *times, cluster=None, memory=EMPTY):
    """Snapshots, each evaluated before the next is taken; gives the last evaluation and memory."""
    policy = cluster or a_cluster()
    evaluation = None
    for when in times:
        snapshot, _ = read_cluster(policy, memory, sources, FixedTime(when))
        evaluation, memory = fold("key", snapshot, memory, policy)
    return evaluation, memory


def idle_for(days, until=NOON + timedelta(hours=2)):
    """Idle since the pod began, so many days before 11:58."""
    born = NOON - DELAY - timedelta(days=days)
    metrics = FakeMetrics({device(): every(MINUTE, born, until)})
    return FakeSources(FakeKubernetes((a_pod(since=born),), (NODE,)), metrics), metrics


def test_idle_for_longer_than_a_week_goes_on_counting_and_is_not_looked_up_again():
    sources, metrics = idle_for(8)
    first, memory = ticks(sources, NOON)
    (finding,) = first.findings
    # Ranges are open on the left: the first sample that can be seen is a minute later.
    seen = 7 * 24 - 1 / 60
    assert finding.gpu_hours == round(seen, 6)
    assert finding.evidence["at_least"] is True
    metrics.asked.clear()
    later, _ = ticks(sources, NOON + 5 * MINUTE, NOON + 10 * MINUTE, memory=memory)
    (finding,) = later.findings
    assert finding.gpu_hours == round(seen + 10 / 60, 6)
    assert finding.since == NOON - DELAY - WEEK + MINUTE
    assert "samples" not in metrics.asked  # how far back it goes cannot be found


def test_ticks_that_were_missed_add_their_hours_to_a_stretch_of_more_than_a_week():
    sources, _ = idle_for(8)
    _, memory = ticks(sources, NOON)
    later, _ = ticks(sources, NOON + 50 * MINUTE, memory=memory)
    (finding,) = later.findings
    assert finding.gpu_hours == round(7 * 24 - 1 / 60 + 50 / 60, 6)
    assert finding.since == NOON - DELAY - WEEK + MINUTE


def test_what_the_budget_leaves_out_is_looked_up_at_the_next_tick(monkeypatch):
    # Room for one series of a week: each tick finds the beginning of one more.
    monkeypatch.setattr(raw_samples, "SAMPLE_BUDGET", 7 * 24 * 60)
    born = NOON - timedelta(days=9)
    names = [device(f"GPU-{n}") for n in range(3)]
    points = every(MINUTE, born, NOON + timedelta(hours=1))
    pod = a_pod(gpus=3, since=born)
    sources = FakeSources(
        FakeKubernetes((pod,), (NODE,)), FakeMetrics(dict.fromkeys(names, points))
    )
    told, _ = ticks(sources, NOON, NOON + 5 * MINUTE, NOON + 10 * MINUTE)
    (finding,) = told.findings
    begun = [gpu["idle_since"] for gpu in finding.evidence["accelerators"]]
    # 11:58 a week earlier, and what the later ticks could see of theirs.
    assert begun == ["2026-10-29T11:59:00Z", "2026-10-29T12:04:00Z", "2026-10-29T12:09:00Z"]


def test_a_snapshot_that_is_taken_before_the_last_one_is_evaluated_counts_nothing_twice():
    # Idle 6:00 to 12:02, and then at work. 12:06 is taken while 12:00 alone is remembered.
    points = every(MINUTE, at("6:00"), at("12:02")) + every(MINUTE, at("12:03"), at("12:30"), 0.9)
    sources = FakeSources(FakeKubernetes((a_pod(),), (NODE,)), FakeMetrics({device(): points}))
    cluster = a_cluster()
    _, memory = ticks(sources, NOON)
    earlier, _ = read_cluster(cluster, memory, sources, FixedTime(at("12:04")))
    later, _ = read_cluster(cluster, memory, sources, FixedTime(at("12:06")))
    _, memory = fold("key", earlier, memory, cluster)
    told, _ = fold("key", later, memory, cluster)
    (cleared,) = told.cleared
    assert cleared.finding.gpu_hours == round((6 * 60 + 2) / 60, 6)


def test_an_accelerator_that_worked_unseen_keeps_the_hours_of_before():
    # GPU-1 works 12:00 to 12:02, which no tick sees; GPU-2 idles on. The next tick is at 13:30.
    stop = at("13:30")
    worked = (
        every(MINUTE, at("6:00"), at("11:59"))
        + every(MINUTE, at("12:00"), at("12:02"), 0.9)
        + every(MINUTE, at("12:03"), stop)
    )
    metrics = FakeMetrics(
        {device("GPU-1"): worked, device("GPU-2"): every(MINUTE, at("6:00"), stop)}
    )
    sources = FakeSources(FakeKubernetes((a_pod(gpus=2),), (NODE,)), metrics)
    told, _ = ticks(sources, NOON, stop)
    (finding,) = told.findings
    # GPU-1: 6:00 to 11:58, as far as a tick saw it, and 12:03 to 13:28; GPU-2: 6:00 to 13:28.
    assert finding.gpu_hours == round((358 + 85 + 448) / 60, 6)
    begun = [gpu["idle_since"] for gpu in finding.evidence["accelerators"]]
    assert begun == ["2026-11-05T12:03:00Z", "2026-11-05T06:00:00Z"]
    assert finding.since == at("6:00")


def test_a_single_accelerator_that_worked_unseen_is_counted_anew():
    points = (
        every(MINUTE, at("6:00"), at("11:59"))
        + every(MINUTE, at("12:00"), at("12:02"), 0.9)
        + every(MINUTE, at("12:03"), at("13:30"))
    )
    sources = FakeSources(FakeKubernetes((a_pod(),), (NODE,)), FakeMetrics({device(): points}))
    told, _ = ticks(sources, NOON, at("13:30"))
    (finding,) = told.findings
    assert (finding.since, finding.gpu_hours) == (at("12:03"), round(85 / 60, 6))


class IntervalMetrics(FakeMetrics):
    """Expects a sample an interval, instead of one a minute."""

    def __init__(self, series, seconds):
        super().__init__(series)
        self.seconds = seconds

    def _reading(self, *given):
        found = super()._reading(*given)
        windows = (replace(w, expected=w.minutes * 60 // self.seconds) for w in found.windows)
        return replace(found, windows=tuple(windows))


@pytest.mark.parametrize(
    ("seconds", "limits"),
    [
        (60, IdleLimits(coverage_min=1.0)),  # nothing may be missing: no gap, yet a minute apart
        (300, IdleLimits(window_minutes=20)),  # a fifth of the window is less than an interval
    ],
)
def test_samples_an_interval_apart_are_no_gap(seconds, limits):
    points = every(timedelta(seconds=seconds), at("6:00"), at("12:30"))
    source = MetricsSource(
        endpoint="https://aps.example.com/workspaces/ws-1",
        sigv4=True,
        scrape_interval_seconds=seconds,
    )
    cluster = a_cluster(thresholds=Thresholds(idle=limits), metrics=source)
    metrics = IntervalMetrics({device(): points}, seconds)
    sources = FakeSources(FakeKubernetes((a_pod(),), (NODE,)), metrics)
    told, _ = ticks(sources, at("12:02"), cluster=cluster)
    (finding,) = told.findings
    assert finding.gpu_hours == 6


def test_a_workload_that_finished_before_is_an_earlier_run_of_that_name():
    owner = Owner(kind="PyTorchJob", namespace=NS, name="sweep")
    finished = Condition(type="Finished", status=True, reason="x", message="", since=at("8:00"))
    earlier = replace(a_workload(owner), conditions=(finished,))
    metrics = FakeMetrics({DEVICE: every(MINUTE, at("9:00"), at("10:09"))})
    memory = remembering(a_stretch())  # idle 9:00 to 10:00, as far as is known
    (end,) = find_ends((), (earlier,), memory, a_cluster(), metrics, NOON - DELAY)
    assert end.last == at("10:09")
    # A later run's end that is known bounds it all the same, in whatever order they are listed.
    later = replace(earlier, conditions=(replace(finished, since=at("10:05")),))
    for listed in ((earlier, later), (later, earlier)):
        (end,) = find_ends((), listed, memory, a_cluster(), metrics, NOON - DELAY)
        assert end.last == at("10:05")
