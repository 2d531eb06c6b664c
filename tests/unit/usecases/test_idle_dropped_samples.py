"""A sample that cannot be is no idle sample: it lengthens no stretch."""

from steward.cluster.memory import IdleIncident, IdleStretch, Memory
from steward.ports import DeviceName
from steward.usecases.idle_history import find_beginnings
from tests.builders import DELAY, NOON, a_cluster, a_window, an_accelerator, at
from tests.fakes import FakeMetrics

DEVICE = DeviceName(namespace="hyperpod-ns-research", pod="sweep-0", uuid="GPU-1")
STRETCH = IdleStretch(
    key="uid-sweep/GPU-1",
    namespace="hyperpod-ns-research",
    pod="sweep-0",
    node=None,
    uuid="GPU-1",
    mig=None,
    fraction=1.0,
    usd_per_hour=None,
    since=at("10:00"),
    last=at("11:50"),
    exact=True,
    observed_seconds=6600.0,
)


def test_a_stretch_whose_window_dropped_samples_ends_with_its_last_valid_one():
    # The newest sample, 11:58, was impossible; the newest idle one is that of 11:55.
    metrics = FakeMetrics({DEVICE: [(at("9:59"), 0.9), (at("10:00"), 0.0), (at("11:55"), 0.0)]})
    incident = IdleIncident(subject="Job/a/b", stretches=(STRETCH,), held_until=at("11:52"))
    memory = Memory(cluster="ml-shared-01", idle=(incident,))
    clean = an_accelerator()
    dropped = an_accelerator(windows=(a_window(0.0, present=57, invalid=3),))
    end = NOON - DELAY
    (known,) = find_beginnings((clean,), memory, a_cluster(), metrics, end)
    assert (known.idle_since, metrics.asked) == (None, [])
    (found,) = find_beginnings((dropped,), memory, a_cluster(), metrics, end)
    assert (found.idle_since.first, found.idle_since.last) == (at("10:00"), at("11:55"))
