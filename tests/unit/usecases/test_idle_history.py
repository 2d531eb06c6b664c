"""Beginnings and ends of idle stretches on a few samples, by hand."""

from copy import replace
from datetime import timedelta

from steward.cluster.accelerators import Owner
from steward.cluster.kueue import Condition, Workload
from steward.cluster.memory import IdleIncident, IdleStretch, Memory
from steward.cluster.policy import IdleLimits, Override
from steward.ports import DeviceName, Samples
from steward.usecases import raw_samples
from steward.usecases.idle_history import beginning, ending, find_beginnings, find_ends
from tests.builders import DELAY, NOON, a_cluster, a_holder, a_window, an_accelerator, at
from tests.fakes import FakeMetrics

LIMITS = IdleLimits()
GAP = timedelta(minutes=12)  # 20 % of an hour
END = NOON - DELAY
DEVICE = DeviceName(namespace="hyperpod-ns-research", pod="sweep-0", uuid="GPU-1")


def samples(*points):
    return Samples(
        device=DEVICE, times=tuple(at(t) for t, _ in points), values=tuple(v for _, v in points)
    )


def a_stretch(**changes):
    given = {
        "key": "uid-sweep/GPU-1",
        "namespace": "hyperpod-ns-research",
        "pod": "sweep-0",
        "node": None,
        "uuid": "GPU-1",
        "mig": None,
        "fraction": 1.0,
        "usd_per_hour": None,
        "since": at("9:00"),
        "last": at("10:00"),
        "exact": True,
        "observed_seconds": 3600.0,
    }
    return IdleStretch(**(given | changes))


def remembering(stretch, subject="PyTorchJob/hyperpod-ns-research/sweep"):
    incident = IdleIncident(subject=subject, stretches=(stretch,), held_until=at("10:02"))
    return Memory(cluster="ml-shared-01", idle=(incident,))


def test_a_gap_of_twelve_minutes_is_covered_and_a_longer_one_is_not():
    # 80 % of an hour leaves 12 minutes: a gap that long still may carry a verdict, a longer not.
    found = beginning(
        samples(("9:00", 0.9), ("9:01", 0.0), ("9:13", 0.0), ("9:26", 0.0)),
        an_accelerator(),
        LIMITS,
        at("6:00"),
        gap=GAP,
    )
    assert (found.first, found.last, found.exact) == (at("9:01"), at("9:26"), True)
    assert found.observed_seconds == 12 * 60


def test_a_newest_sample_that_is_busy_begins_nothing():
    series = samples(("9:00", 0.0), ("9:01", 0.5))
    assert beginning(series, an_accelerator(), LIMITS, NOON, gap=GAP) is None


def test_idle_from_the_first_sample_seen_is_exact_only_if_the_holder_is_no_older():
    series = samples(("9:00", 0.0), ("9:01", 0.0))
    old = an_accelerator(holder=a_holder(since=at("6:00")))
    young = an_accelerator(holder=a_holder(since=at("8:59")))
    assert beginning(series, old, LIMITS, at("8:59"), gap=GAP).exact is False
    assert beginning(series, young, LIMITS, at("8:59"), gap=GAP).exact is True


def test_an_end_adds_what_came_after_the_last_known_sample():
    end = ending(
        samples(("9:59", 0.0), ("10:00", 0.0), ("10:01", 0.0), ("10:02", 0.0), ("10:03", 0.4)),
        a_stretch(),
        LIMITS,
        None,
        gap=GAP,
    )
    assert (end.last, end.observed_seconds) == (at("10:02"), 120)


def test_idle_again_after_waking_is_not_the_same_stretch():
    end = ending(samples(("10:01", 0.4), ("10:02", 0.0)), a_stretch(), LIMITS, None, gap=GAP)
    assert (end.last, end.observed_seconds) == (at("10:00"), 0)


def test_samples_after_the_job_finished_are_the_exporters_not_the_jobs():
    series = samples(("10:01", 0.0), ("10:02", 0.0), ("10:10", 0.0))
    end = ending(series, a_stretch(), LIMITS, at("10:02"), gap=GAP)
    assert end.last == at("10:02")


def test_a_finished_workload_bounds_the_end_of_a_pod_that_is_gone():
    owner = Owner(kind="PyTorchJob", namespace="hyperpod-ns-research", name="sweep")
    finished = Condition(
        type="Finished", status=True, reason="Succeeded", message="", since=at("10:05")
    )
    workload = Workload(
        namespace=owner.namespace,
        name="w",
        uid="u",
        created=at("6:00"),
        queue=None,
        priority=0,
        priority_class=None,
        active=True,
        owner=owner,
        cluster_queue=None,
        requests={},
        assigned={},
        conditions=(finished,),
    )
    points = [(at("10:00") + timedelta(minutes=n), 0.0) for n in range(20)]
    metrics = FakeMetrics({DEVICE: points})
    (end,) = find_ends((), (workload,), remembering(a_stretch()), a_cluster(), metrics, END)
    assert end.last == at("10:05")
    running = replace(workload, conditions=(replace(finished, status=False),))
    (end,) = find_ends((), (running,), remembering(a_stretch()), a_cluster(), metrics, END)
    assert end.last == at("10:19")


def test_what_is_still_idle_or_cannot_be_judged_has_not_ended():
    metrics = FakeMetrics({DEVICE: [(at("10:01"), 0.0)]})
    dark = an_accelerator(windows=(), last_sample=None)
    for accelerator in (an_accelerator(), dark):
        memory = remembering(a_stretch())
        assert find_ends((accelerator,), (), memory, a_cluster(), metrics, END) == ()
    assert metrics.asked == []


def test_the_limit_of_the_job_itself_says_what_is_idle():
    # A team that counts up to 5 % as idle: 3 % goes on idling, for a pod that is gone as well.
    cluster = a_cluster(overrides=(Override(teams=("research",), idle={"activity_max": 0.05}),))
    metrics = FakeMetrics({DEVICE: [(at("10:01"), 0.03), (at("10:02"), 0.5)]})
    for now in ((), (an_accelerator(windows=(a_window(0.9),)),)):
        (end,) = find_ends(now, (), remembering(a_stretch()), cluster, metrics, END)
        assert end.last == at("10:01")


def test_the_budget_counts_every_series_over_the_longest_span(monkeypatch):
    # A day is 1,440 samples, a week 10,080: both together are two series of a week each, 20,160.
    young = an_accelerator("GPU-1", holder=a_holder("young", since=END - timedelta(days=1)))
    old = an_accelerator("GPU-2", holder=a_holder("old", since=END - timedelta(days=8)))
    names = [
        DeviceName(namespace="hyperpod-ns-research", pod=f"{name}-0", uuid=uuid)
        for name, uuid in (("young", "GPU-1"), ("old", "GPU-2"))
    ]
    metrics = FakeMetrics({name: [(END, 0.0)] for name in names})
    memory = Memory(cluster="ml-shared-01")
    for budget, found in ((20_159, [True, False]), (20_162, [True, True])):
        monkeypatch.setattr(raw_samples, "SAMPLE_BUDGET", budget)
        looked_up = find_beginnings((young, old), memory, a_cluster(), metrics, END)
        assert [a.idle_since is not None for a in looked_up] == found
