"""What every metrics reader owes, over a real Prometheus and over the rig's stand-in."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from local.metrics.openmetrics import Series
from steward.cluster.accelerators import Window
from steward.cluster.snapshot import InvalidSamples
from steward.ports import DeviceName, MetricsReading, Signal
from tests.contract.metrics_series import BLANKS, SERVERS, Cases, Metrics, series

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
MEMORY = "DCGM_FI_DEV_FB_USED"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
POWER = "DCGM_FI_DEV_POWER_USAGE"
LIMIT = "DCGM_FI_DEV_POWER_MGMT_LIMIT"
ENFORCED = "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"

POD: dict[str, Any] = {"namespace": "hyperpod-ns-audio", "pod": "trainer-2", "Hostname": "node-a"}
EXPORTED: dict[str, Any] = {
    "exported_namespace": "hyperpod-ns-audio",
    "exported_pod": "trainer-2",
    "hostname": "node-a",
    "namespace": "monitoring",
    "pod": "dcgm-exporter-x7k2p",
}

recorded = Cases()


@pytest.fixture(scope="module", params=SERVERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with recorded.served(request.param) as served:
        yield served


@pytest.fixture
def metrics(url: str, request: pytest.FixtureRequest) -> Metrics:
    return Metrics(url, request.function.end)


# --- windows -------------------------------------------------------------------------------------


@recorded(
    lambda end: [series(ENGINE, end, [0.25] * 45 + [0.75] * 15, UUID="GPU-1", gpu="0", **POD)]
)
def test_a_full_window_has_its_count_its_maximum_and_its_mean(metrics: Metrics) -> None:
    device = metrics.device()
    assert (device.node, device.namespace, device.pod) == (
        "node-a",
        "hyperpod-ns-audio",
        "trainer-2",
    )
    assert (device.uuid, device.mig, device.activity_metric) == ("GPU-1", None, ENGINE)
    (window,) = device.windows
    assert (window.minutes, window.expected, window.present, window.invalid) == (60, 60, 60, 0)
    assert window.maximum == 0.75
    # 45 minutes at 0.25 and 15 at 0.75: (45 * 0.25 + 15 * 0.75) / 60 = 0.375
    assert window.mean == pytest.approx(0.375)
    assert device.last_sample == metrics.end - timedelta(seconds=30)
    assert window.minimum == 0.25
    assert (device.held_bytes, device.tensor, device.power) == (None, (), ())
    assert (device.power_limit_watts, device.model) == (None, None)


@recorded(lambda end: [series(ENGINE, end, [0.5] * 60 + [0.0] * 60, UUID="GPU-1", **POD)])
def test_several_windows_are_read_at_once_shortest_first(metrics: Metrics) -> None:
    short, long = metrics.device(120, 30).windows
    assert (short.minutes, short.expected, short.present, short.maximum) == (30, 30, 30, 0)
    assert (long.minutes, long.expected, long.present, long.maximum) == (120, 120, 120, 0.5)
    assert long.mean == pytest.approx(0.25)


@recorded(lambda end: [series(ENGINE, end, [0.3] * 61, newest=0, UUID="GPU-1", **POD)])
def test_a_window_counts_the_sample_at_its_end_and_not_the_one_at_its_start(
    metrics: Metrics,
) -> None:
    # 61 samples from end - 60 min to end, both included: (end - 60 min, end] holds 60.
    assert metrics.window().present == 60


@recorded(lambda end: [series(ENGINE, end, [0.0, 0.0, 0.9], newest=-30, UUID="GPU-1", **POD)])
def test_samples_after_the_end_are_not_counted(metrics: Metrics) -> None:
    window = metrics.window()
    assert (window.present, window.maximum) == (2, 0)


@recorded(
    lambda end: [
        series(
            ENGINE,
            end,
            [0.0 if n % 16 == 0 else None for n in range(176)],
            step=30,
            UUID="GPU-1",
            **POD,
        )
    ]
)
def test_a_gap_is_not_filled(metrics: Metrics) -> None:
    # Every 16th of 176 scrapes came through: 11 of the 180 that 90 min at 30 s promise, 6 %.
    (device,) = metrics.read(90, scrape_interval_seconds=30).devices
    (window,) = device.windows
    assert (window.expected, window.present, window.maximum) == (180, 11, 0)
    assert window.coverage == pytest.approx(0.061, abs=0.001)


@recorded(lambda _: [])
def test_nothing_measured_is_an_empty_reading(metrics: Metrics) -> None:
    assert metrics.read() == MetricsReading(devices=(), invalid=())


# --- which metric --------------------------------------------------------------------------------


@recorded(lambda end: [series(UTIL, end, [37.0, 0.0] * 30, UUID="GPU-1", **POD)])
def test_utilisation_is_scaled_where_there_is_no_engine_activity(metrics: Metrics) -> None:
    device = metrics.device()
    assert device.activity_metric == UTIL
    assert device.windows[0].maximum == 0.37
    assert device.windows[0].mean == pytest.approx(0.185)


@recorded(
    lambda end: [
        series(UTIL, end, [100.0] * 60, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.2] * 60, UUID="GPU-1", **POD),
    ]
)
def test_engine_activity_goes_before_utilisation(metrics: Metrics) -> None:
    device = metrics.device()
    assert (device.activity_metric, device.windows[0].maximum) == (ENGINE, 0.2)


def _slices(end: datetime) -> list[Series]:
    def labels(instance: str, pod: str) -> dict[str, Any]:
        return {
            "UUID": "GPU-1",
            "GPU_I_PROFILE": "3g.40gb",
            "GPU_I_ID": instance,
            **POD,
            "pod": pod,
        }

    return [
        series(ENGINE, end, [0.61] * 60, **labels("1", "busy")),
        series(UTIL, end, [4294967295.0] * 60, **labels("1", "busy")),
        series(ENGINE, end, [0.0] * 60, **labels("2", "idle")),
        series(UTIL, end, [0.0] * 60, **labels("3", "dark")),
        series(UTIL, end, [0.0] * 60, UUID="GPU-1", Hostname="node-a"),
        series(ENGINE, end, [0.3] * 60, UUID="GPU-1", Hostname="node-a"),
    ]


@recorded(_slices)
def test_each_mig_slice_is_a_device_that_only_engine_activity_speaks_for(metrics: Metrics) -> None:
    reading = metrics.read()
    # 0.61 is 61 %, not 0.61 %; the slice with utilisation alone has no usable metric; the card
    # itself is nobody's device once it is partitioned; utilisation that DCGM does not define
    # under MIG is not reported as a fault.
    assert [(d.mig, d.pod, d.windows[0].maximum) for d in reading.devices] == [
        ("3g.40gb/1", "busy", 0.61),
        ("3g.40gb/2", "idle", 0.0),
    ]
    assert reading.invalid == ()


def _repartitioned(end: datetime) -> list[Series]:
    slice_: dict[str, Any] = {"UUID": "GPU-1", "GPU_I_PROFILE": "3g.40gb", "GPU_I_ID": "1"}
    return [
        # Partitioned for 40 minutes, whole for the last 20; and the other way round.
        series(ENGINE, end, [0.3] * 40, newest=30 + 20 * 60, **slice_, **POD),
        series(ENGINE, end, [0.8] * 20, UUID="GPU-1", **(POD | {"pod": "trainer-3"})),
        series(ENGINE, end, [0.8] * 40, newest=30 + 20 * 60, UUID="GPU-2", **POD),
        series(ENGINE, end, [0.3] * 20, **(slice_ | {"UUID": "GPU-2"} | POD | {"pod": "x"})),
    ]


@recorded(_repartitioned)
def test_a_card_that_is_no_longer_partitioned_is_a_device_again(metrics: Metrics) -> None:
    assert [(d.uuid, d.mig, d.pod, d.windows[0].present) for d in metrics.read().devices] == [
        ("GPU-1", None, "trainer-3", 20),
        ("GPU-1", "3g.40gb/1", "trainer-2", 40),
        ("GPU-2", "3g.40gb/1", "x", 20),
    ]


# --- impossible values ---------------------------------------------------------------------------


@recorded(
    lambda end: [
        series(
            UTIL,
            end,
            [0.0] * 100 + [31400.0] + [0.0] * 100 + [BLANKS[1]] + [0.0] * 98,
            UUID="GPU-1",
            **POD,
        )
    ]
)
def test_impossible_values_are_dropped_and_counted(metrics: Metrics) -> None:
    # Five hours of minutes, two of them impossible: idle all the same.
    reading = metrics.read(300)
    assert reading.devices[0].windows == (
        Window(minutes=300, expected=300, present=298, maximum=0, mean=0, minimum=0, invalid=2),
    )
    # The newest sample is half a minute old, so the 101st of 300 is 199 minutes older.
    oldest = metrics.end - timedelta(minutes=199, seconds=30)
    expected = InvalidSamples(metric=UTIL, samples=2, accelerators=1, first=oldest)
    assert reading.invalid == (expected,)


@pytest.mark.parametrize("bad", [0, 1, 2, 3, 4, 5, 6])
@recorded(
    lambda end: [
        series(ENGINE, end, [0.5] * 58 + [value, 0.25], UUID=f"GPU-{n}", **POD)
        for n, value in enumerate([*BLANKS, math.nan, math.inf, -math.inf, -0.01])
    ]
)
def test_one_value_that_is_none_never_decides(metrics: Metrics, bad: int) -> None:
    window = metrics.read().devices[bad].windows[0]
    assert (window.present, window.invalid, window.maximum) == (59, 1, 0.5)
    assert window.mean == pytest.approx((58 * 0.5 + 0.25) / 59)


@recorded(lambda end: [series(ENGINE, end, [math.nan] * 60, UUID="GPU-1", **POD)])
def test_a_window_of_invalid_samples_has_no_statistics(metrics: Metrics) -> None:
    assert metrics.window() == Window(
        minutes=60, expected=60, present=0, maximum=None, mean=None, invalid=60
    )


@recorded(
    lambda end: [
        series(ENGINE, end, [0.1] * 20 + [BLANKS[2]] + [0.1] * 39, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.9] * 60, UUID="GPU-2", **POD),
    ]
)
def test_a_window_after_the_bad_sample_has_none(metrics: Metrics) -> None:
    first, second = metrics.read(30, 60).devices
    assert [(w.minutes, w.present, w.invalid) for w in first.windows] == [(30, 30, 0), (60, 59, 1)]
    assert [(w.minutes, w.present, w.invalid) for w in second.windows] == [(30, 30, 0), (60, 60, 0)]


@recorded(
    lambda end: [
        series(ENGINE, end, [math.nan] + [0.1] * 60, newest=0, UUID="GPU-1", **POD),
    ]
)
def test_a_recomputed_window_begins_after_its_start_too(metrics: Metrics) -> None:
    # A scrape on every full minute: those of 12:00 - 30 min and of 12:00 - 60 min are outside.
    short, long = metrics.device(30, 61).windows
    assert (short.present, short.invalid, long.present, long.invalid) == (30, 0, 60, 1)


@recorded(
    lambda end: [
        series(ENGINE, end, [0.1] * 60, UUID="GPU-1", **POD),
        series(UTIL, end, [10.0] * 59 + [math.nan], UUID="GPU-1", **POD),
    ]
)
def test_a_fault_of_a_metric_that_decides_nothing_is_still_said(metrics: Metrics) -> None:
    reading = metrics.read()
    assert reading.devices[0].windows[0].invalid == 0
    newest = metrics.end - timedelta(seconds=30)
    expected = InvalidSamples(metric=UTIL, samples=1, accelerators=1, first=newest)
    assert reading.invalid == (expected,)


# --- attribution ---------------------------------------------------------------------------------


@recorded(
    lambda end: [
        series(ENGINE, end, [0.2] * 60, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.2] * 60, UUID="GPU-1", **EXPORTED),
    ]
)
def test_one_device_in_two_spellings_counts_once(metrics: Metrics) -> None:
    device = metrics.device()
    assert (device.node, device.namespace, device.pod) == (
        "node-a",
        "hyperpod-ns-audio",
        "trainer-2",
    )
    assert device.windows[0].present == 60


@recorded(
    lambda end: [
        series(ENGINE, end, [0.2] * 20, newest=30 + 40 * 60, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.5] * 40, uuid="GPU-1", **EXPORTED),
    ]
)
def test_a_device_that_changes_its_spelling_is_followed(metrics: Metrics) -> None:
    # 20 minutes at 0.2 under one set of labels, then 40 at 0.5 under another: one full window.
    window = metrics.window()
    assert (window.present, window.maximum, window.invalid) == (60, 0.5, 0)
    assert window.mean == pytest.approx((20 * 0.2 + 40 * 0.5) / 60)


@recorded(
    lambda end: [
        series(
            ENGINE, end, [0.0] * 30 + [None] * 10 + [0.0] * 20, UUID="GPU-1", prometheus="a", **POD
        ),
        series(
            ENGINE, end, [0.0] * 30 + [None] * 30, newest=40, UUID="GPU-1", prometheus="b", **POD
        ),
    ]
)
def test_replicas_do_not_add_up(metrics: Metrics) -> None:
    # Replica b repeats, ten seconds apart, what a has of the first half hour, and fills no gap.
    assert metrics.window().present == 50


@recorded(
    lambda end: [
        series(ENGINE, end, [0.0] * 60, UUID="GPU-1", prometheus="a", **POD),
        series(ENGINE, end, [0.0] * 59 + [0.4], UUID="GPU-1", prometheus="b", **POD),
    ]
)
def test_where_two_series_disagree_the_higher_value_counts(metrics: Metrics) -> None:
    assert metrics.window().maximum == 0.4


@recorded(
    lambda end: [
        series(ENGINE, end, [0.2] * 60, UUID="GPU-1", prometheus="a", **POD),
        series(ENGINE, end, [0.8] * 10, UUID="GPU-1", prometheus="b", **POD),
    ]
)
def test_the_mean_is_that_of_the_series_that_spans_the_window(metrics: Metrics) -> None:
    window = metrics.window()
    assert (window.present, window.maximum) == (60, 0.8)
    assert window.mean == pytest.approx(0.2)


@recorded(
    lambda end: [
        series(ENGINE, end, [0.2, BLANKS[0], 0.2, math.nan], UUID="GPU-1", prometheus="a", **POD),
        series(ENGINE, end, [math.nan, 0.4, 0.2, BLANKS[1]], UUID="GPU-1", prometheus="b", **POD),
    ]
)
def test_a_valid_sample_of_one_replica_stands_for_an_invalid_one_of_the_other(
    metrics: Metrics,
) -> None:
    reading = metrics.read()
    (window,) = reading.devices[0].windows
    assert (window.present, window.invalid, window.maximum) == (3, 1, 0.4)
    assert window.mean == pytest.approx((0.2 + 0.4 + 0.2) / 3)
    newest = metrics.end - timedelta(seconds=30)
    expected = InvalidSamples(metric=ENGINE, samples=1, accelerators=1, first=newest)
    assert reading.invalid == (expected,)


@recorded(
    lambda end: [
        series(ENGINE, end, [0.9] * 30 + [None] * 30, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.0] * 30, UUID="GPU-1", **(POD | {"pod": "trainer-3"})),
    ]
)
def test_a_device_that_changes_hands_is_one_reading_a_holder(metrics: Metrics) -> None:
    devices = metrics.read().devices
    assert [(d.pod, d.windows[0].present, d.windows[0].maximum) for d in devices] == [
        ("trainer-2", 30, 0.9),
        ("trainer-3", 30, 0.0),
    ]
    # The predecessor's last sample is 30 minutes old: its series has stopped.
    assert [d.last_sample for d in devices] == [None, metrics.end - timedelta(seconds=30)]


@recorded(
    lambda end: [
        series(ENGINE, end, [0.9] * 60, UUID="GPU-1", Hostname="node-a"),
        series(ENGINE, end, [0.9] * 60, UUID="GPU-2", Hostname="node-a", namespace="x"),
        series(ENGINE, end, [0.9] * 60, UUID="GPU-5", Hostname="node-a", pod="of-no-namespace"),
        series(ENGINE, end, [0.9] * 60, UUID="GPU-3", **EXPORTED),
        series(
            ENGINE,
            end,
            [0.9] * 60,
            UUID="GPU-4",
            hostname="node-b",
            namespace="monitoring",
            pod="dcgm-exporter-9zzzz",
        ),
    ]
)
def test_a_series_that_names_nobody_or_only_its_exporter_is_unattributed(metrics: Metrics) -> None:
    assert [(d.uuid, d.namespace, d.pod, d.node) for d in metrics.read().devices] == [
        ("GPU-1", None, None, "node-a"),
        ("GPU-2", None, None, "node-a"),
        ("GPU-3", "hyperpod-ns-audio", "trainer-2", "node-a"),
        ("GPU-4", None, None, "node-b"),
        ("GPU-5", None, None, "node-a"),
    ]


@recorded(
    lambda end: [
        series(
            ENGINE,
            end,
            [0.9] * 60,
            UUID="GPU-1",
            exported_pod="trainer-2",
            exported_namespace="hyperpod-ns-audio",
            **POD,
        ),
        series(ENGINE, end, [0.9] * 60, UUID="GPU-2", **(POD | {"pod": "trainer-3"})),
    ]
)
def test_a_pair_that_repeats_the_other_is_no_exporter(metrics: Metrics) -> None:
    assert [d.pod for d in metrics.read().devices] == ["trainer-2", "trainer-3"]


@recorded(
    lambda end: [
        series(ENGINE, end, [0.9] * 60, UUID="GPU-1", namespace="a", pod="x-1", exported_pod="p"),
        series(
            ENGINE, end, [0.9] * 60, UUID="GPU-2", namespace="x", exported_namespace="b", pod="p"
        ),
    ]
)
def test_a_label_is_renamed_only_where_it_collides(metrics: Metrics) -> None:
    assert [(d.namespace, d.pod) for d in metrics.read().devices] == [("a", "p"), ("b", "p")]


@recorded(lambda end: [series(ENGINE, end, [0.9] * 60, gpu="0", device="nvidia0", **POD)])
def test_an_index_alone_names_no_device(metrics: Metrics) -> None:
    assert metrics.read().devices == ()


@recorded(
    lambda end: [
        series(ENGINE, end, [0.1] * 60, UUID="GPU-1", cluster_name="ours", **POD),
        series(ENGINE, end, [0.2] * 60, UUID="GPU-2", cluster_name="theirs", **POD),
        series(ENGINE, end, [0.3] * 60, UUID="GPU-3", **POD),
    ]
)
def test_another_clusters_series_are_left_out_where_the_label_is_configured(
    metrics: Metrics,
) -> None:
    uuids = [d.uuid for d in metrics.read(cluster_label="ours").devices]
    assert uuids == ["GPU-1", "GPU-3"]
    assert [d.uuid for d in metrics.read().devices] == ["GPU-1", "GPU-2", "GPU-3"]


# --- last sample, memory, tensor, power ----------------------------------------------------------


@recorded(
    lambda end: [
        series(ENGINE, end, [0.0], newest=300, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.0], newest=299.999, UUID="GPU-2", **POD),
        series(ENGINE, end, [0.0], newest=0, UUID="GPU-3", **POD),
    ]
)
def test_a_sample_five_minutes_old_is_no_last_sample(metrics: Metrics) -> None:
    ages = [d.last_sample and metrics.end - d.last_sample for d in metrics.read().devices]
    assert ages == [None, timedelta(seconds=299.999), timedelta(0)]


@recorded(
    lambda end: [
        series(ENGINE, end, [0.0] * 60, UUID="GPU-1", **POD),
        series(MEMORY, end, [70_000.0, 81_000.0], UUID="GPU-1", **POD),
        series(ENGINE, end, [0.0] * 60, UUID="GPU-2", **POD),
        series(MEMORY, end, [512.0, BLANKS[1], BLANKS[0]], UUID="GPU-2", **POD),
        series(ENGINE, end, [0.0] * 60, UUID="GPU-3", **POD),
        series(MEMORY, end, [BLANKS[0]], UUID="GPU-3", **POD),
        series(ENGINE, end, [0.0] * 60, UUID="GPU-4", **POD),
        series(MEMORY, end, [512.0], newest=3600, UUID="GPU-4", **POD),
    ]
)
def test_memory_held_is_the_newest_valid_sample_in_bytes(metrics: Metrics) -> None:
    held = [d.held_bytes for d in metrics.read().devices]
    assert held == [81_000 * 1024**2, 512 * 1024**2, None, None]


def _hang(end: datetime) -> list[Series]:
    """Four cards pinned at 100 %, of which the first draws what an idle one does (A6)."""
    pinned = [series(UTIL, end, [100.0] * 60, UUID=f"GPU-{n}", **POD) for n in range(1, 5)]
    return [
        *pinned,
        series(TENSOR, end, [0.0] * 60, UUID="GPU-1", modelName="NVIDIA A100-SXM4-40GB", **POD),
        series(POWER, end, [90.0, 100.0] * 30, UUID="GPU-1", **POD),
        series(LIMIT, end, [400.0] * 60, UUID="GPU-1", **POD),
        # Before the signal window it worked.
        series(TENSOR, end, [0.8] * 30 + [0.0, 0.004] * 15, UUID="GPU-2", **POD),
        series(POWER, end, [390.0] * 30 + [95.0] * 30, UUID="GPU-2", **POD),
        series(LIMIT, end, [0.0] * 60, UUID="GPU-2", **POD),
        series(ENFORCED, end, [350.0] * 60, UUID="GPU-2", **POD),
        # Impossible values among the possible ones.
        series(TENSOR, end, [0.0] * 59 + [BLANKS[2]], UUID="GPU-3", model_name="H100", **POD),
        series(POWER, end, [90.0] * 58 + [math.nan, -1.0], UUID="GPU-3", **POD),
        series(LIMIT, end, [400.0] * 59 + [BLANKS[0]], UUID="GPU-3", **POD),
        # Somebody else's, or nobody's.
        series(POWER, end, [300.0] * 60, UUID="GPU-4", Hostname="node-a"),
        series(MEMORY, end, [70_000.0] * 60, UUID="GPU-4", **(POD | {"pod": "trainer-9"})),
    ]


@recorded(_hang)
def test_signals_have_windows_of_their_own(metrics: Metrics) -> None:
    first, second, _, fourth = metrics.read(60, signals=(30,)).devices
    assert first.tensor == (
        Window(minutes=30, expected=30, present=30, maximum=0, mean=0, minimum=0),
    )
    assert first.power == (
        Window(minutes=30, expected=30, present=30, maximum=100, mean=95, minimum=90),
    )
    assert (first.power_limit_watts, first.model) == (400, "NVIDIA A100-SXM4-40GB")
    (tensor,), (power,) = second.tensor, second.power
    assert (tensor.minimum, tensor.maximum) == (0, 0.004)
    assert tensor.mean == pytest.approx(0.002)
    assert (power.minimum, power.maximum) == (95, 95)
    assert power.mean == pytest.approx(95)
    # No limit is set: the one in force is the other metric's.
    assert second.power_limit_watts == 350
    # Samples that name another holder, or none, say nothing of this one.
    assert (fourth.tensor, fourth.power, fourth.power_limit_watts) == ((), (), None)
    assert (fourth.held_bytes, fourth.model) == (None, None)


@recorded(_hang)
def test_impossible_values_of_signals_are_dropped_and_counted(metrics: Metrics) -> None:
    reading = metrics.read(60, signals=(30, 10))
    third = reading.devices[2]
    assert [(w.minutes, w.present, w.invalid, w.maximum) for w in third.tensor] == [
        (10, 9, 1, 0),
        (30, 29, 1, 0),
    ]
    assert [(w.minutes, w.present, w.invalid) for w in third.power] == [(10, 8, 2), (30, 28, 2)]
    assert {(w.minimum, w.maximum, w.mean) for w in third.power} == {(90, 90, 90)}
    assert (third.power_limit_watts, third.model) == (400, "H100")
    assert {(i.metric, i.samples, i.accelerators) for i in reading.invalid} == {
        (TENSOR, 1, 1),
        (POWER, 2, 1),
        (LIMIT, 1, 1),
    }


@recorded(_hang)
def test_without_signal_windows_no_signal_is_read(metrics: Metrics) -> None:
    assert {(d.tensor, d.power) for d in metrics.read(60).devices} == {((), ())}


@recorded(
    lambda end: [
        series(ENGINE, end, [1.0] * 60, UUID="GPU-1", **POD),
        series(TENSOR, end, [0.5] * 20, newest=30 + 40 * 60, UUID="GPU-1", **POD),
        series(TENSOR, end, [0.1] * 40, uuid="GPU-1", **EXPORTED),
        series(POWER, end, [300.0] * 60, UUID="GPU-1", replica="a", **POD),
        series(POWER, end, [300.0] * 60, UUID="GPU-1", replica="b", **POD),
    ]
)
def test_signals_are_merged_as_activity_is(metrics: Metrics) -> None:
    device = metrics.read(60, signals=(60,)).devices[0]
    (tensor,), (power,) = device.tensor, device.power
    assert (tensor.present, tensor.maximum) == (60, 0.5)
    assert tensor.mean == pytest.approx((20 * 0.5 + 40 * 0.1) / 60)
    assert power.present == 60
    assert power.mean == pytest.approx(300)


def _sliced_signals(end: datetime) -> list[Series]:
    first = {"UUID": "GPU-1", "GPU_I_PROFILE": "3g.40gb", "GPU_I_ID": "1", **POD}
    second = first | {"GPU_I_ID": "2", "pod": "other"}
    return [
        *(series(ENGINE, end, [0.97] * 60, **labels) for labels in (first, second)),
        series(TENSOR, end, [0.001] * 60, **first),
        series(TENSOR, end, [0.3] * 60, UUID="GPU-1", Hostname="node-a"),
        series(MEMORY, end, [20_000.0] * 60, **first),
        # The card's, whatever labels it comes with.
        *(series(POWER, end, [310.0] * 60, **labels) for labels in (first, second)),
        *(series(LIMIT, end, [700.0] * 60, **labels) for labels in (first, second)),
    ]


@recorded(_sliced_signals)
def test_a_slice_has_its_own_tensor_activity_and_nobodys_power(metrics: Metrics) -> None:
    first, second = metrics.read(60, signals=(30,)).devices
    assert [(w.present, w.maximum) for w in first.tensor] == [(30, 0.001)]
    assert (first.held_bytes, second.held_bytes) == (20_000 * 1024**2, None)
    assert second.tensor == ()
    for device in (first, second):
        assert (device.power, device.power_limit_watts) == ((), None)


# --- exporters, replicas, holders ----------------------------------------------------------------


@recorded(
    lambda end: [
        series(
            ENGINE, end, [0.0] * 25, newest=30 + 35 * 60, UUID="GPU-1", instance="a:1", **EXPORTED
        ),
        series(
            ENGINE,
            end,
            [0.0] * 33,
            UUID="GPU-1",
            instance="b:1",
            **(EXPORTED | {"pod": "dcgm-exporter-9zzzz"}),
        ),
    ]
)
def test_a_restarted_exporter_is_followed_and_its_gap_stays_one(metrics: Metrics) -> None:
    # 25 scrapes by one exporter, two that nobody made, 33 by the next one.
    window = metrics.window()
    assert (window.present, window.expected, window.maximum) == (58, 60, 0)


@recorded(
    lambda end: [
        series(ENGINE, end, [0.0, 0.2] * 30, UUID="GPU-1", replica="0", **POD),
        series(ENGINE, end, [0.0, 0.2] * 30, UUID="GPU-1", prometheus_replica="1", **POD),
        series(MEMORY, end, [512.0] * 60, UUID="GPU-1", replica="0", **POD),
        series(MEMORY, end, [512.0] * 60, UUID="GPU-1", prometheus_replica="1", **POD),
    ]
)
def test_a_sample_that_two_replicas_tell_counts_once(metrics: Metrics) -> None:
    device = metrics.device()
    (window,) = device.windows
    assert (window.present, window.maximum) == (60, 0.2)
    assert window.mean == pytest.approx(0.1)
    assert device.held_bytes == 512 * 1024**2
    assert len(metrics.samples(3600, AUDIO)[0][0]) == 60


@recorded(
    lambda end: [
        series(ENGINE, end, [0.45] * 60, UUID="GPU-1", **(POD | {"pod": pod}))
        for pod in ("notebook-1", "notebook-2", "notebook-3")
    ]
)
def test_a_card_that_pods_share_is_read_once_for_each(metrics: Metrics) -> None:
    devices = metrics.read().devices
    assert [(d.uuid, d.pod, d.windows[0].present) for d in devices] == [
        ("GPU-1", f"notebook-{n}", 60) for n in (1, 2, 3)
    ]


@recorded(
    lambda end: [
        series(ENGINE, end, [0.9] * 48 + [0.0] * 12, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.91] * 12, UUID="GPU-1", **(POD | {"pod": "trainer-3"})),
        series(MEMORY, end, [60_000.0] * 12, UUID="GPU-1", **(POD | {"pod": "trainer-3"})),
    ]
)
def test_a_finished_pod_that_is_still_named_takes_nothing_from_its_successor(
    metrics: Metrics,
) -> None:
    before, after = metrics.read(10).devices
    assert (before.pod, before.windows[0].maximum, before.held_bytes) == ("trainer-2", 0, None)
    assert (after.pod, after.windows[0].maximum) == ("trainer-3", 0.91)
    assert after.held_bytes == 60_000 * 1024**2


@recorded(
    lambda end: [
        series(ENGINE, end, [0.5] * 60, UUID="GPU-1", Hostname="node-a", node="10.0.0.7"),
        series(ENGINE, end, [0.5] * 60, UUID="GPU-2", hostname="node-b", node="10.0.0.8"),
        series(ENGINE, end, [0.5] * 60, UUID="GPU-3", node="node-c", kubernetes_node="x"),
        series(ENGINE, end, [0.5] * 60, UUID="GPU-4", kubernetes_node="node-d"),
        series(ENGINE, end, [0.5] * 60, UUID="GPU-5"),
        series(ENGINE, end, [0.5] * 60, UUID="GPU-6", node="10.0.0.9"),
        series(UTIL, end, [50.0] * 60, UUID="GPU-6", Hostname="node-f"),
    ]
)
def test_the_node_is_told_by_any_of_its_labels(metrics: Metrics) -> None:
    nodes = [d.node for d in metrics.read().devices]
    assert nodes == ["node-a", "node-b", "node-c", "node-d", None, "node-f"]


@recorded(
    lambda end: [
        series(ENGINE, end, [0.5] * 60, UUID="GPU-1", namespace="gpu", pod="dcgm-exporter-x7k2p"),
        series(ENGINE, end, [0.5] * 60, UUID="GPU-2", **POD),
    ]
)
def test_an_exporter_is_no_holder_even_where_no_series_tells_the_two_apart(
    metrics: Metrics,
) -> None:
    assert [d.pod for d in metrics.read().devices] == [None, "trainer-2"]


@recorded(
    lambda end: [
        series(ENGINE, end, [0.5] * 60, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.5] * 60, UUID="GPU-2", mark="x" * 2**20, **POD),
    ]
)
def test_labels_too_large_to_be_true_cost_their_own_series_alone(metrics: Metrics) -> None:
    reading = metrics.read()
    assert [(d.uuid, d.windows[0].present) for d in reading.devices] == [("GPU-1", 60)]
    assert reading.invalid == (InvalidSamples(metric=ENGINE, samples=1, accelerators=1),)


# --- raw samples and earlier sightings -----------------------------------------------------------

AUDIO = DeviceName(namespace="hyperpod-ns-audio", pod="trainer-2", uuid="GPU-1")


@recorded(
    lambda end: [
        series(UTIL, end, [50.0, 31400.0, math.nan, 0.0], UUID="GPU-1", **POD),
        series(UTIL, end, [99.0] * 4, UUID="GPU-1", **(POD | {"pod": "trainer-3"})),
        series(UTIL, end, [98.0] * 4, UUID="GPU-2", **POD),
    ]
)
def test_raw_samples_are_scaled_valid_and_of_the_device_asked_for(metrics: Metrics) -> None:
    assert metrics.samples(3600, AUDIO) == [([210, 30], [0.5, 0.0])]


@recorded(
    lambda end: [
        series(ENGINE, end, [0.5, 0.6], UUID="GPU-1", **POD),
        series(TENSOR, end, [0.0, BLANKS[2]], UUID="GPU-1", **POD),
        series(POWER, end, [90.0, 700.0], UUID="GPU-1", **POD),
        series(POWER, end, [200.0], UUID="GPU-2", **POD),
    ]
)
def test_raw_samples_of_every_signal_asked_for(metrics: Metrics) -> None:
    other = DeviceName(namespace=AUDIO.namespace, pod=AUDIO.pod, uuid="GPU-2")
    assert metrics.samples(3600, AUDIO, other, signals=tuple(Signal)) == [
        ([90, 30], [0.5, 0.6]),
        ([90], [0.0]),
        ([90, 30], [90, 700]),
        ([], []),
        ([], []),
        ([30], [200]),
    ]


@recorded(lambda end: [series(ENGINE, end, [0.1, 0.2, 0.3, 0.4], newest=0, UUID="GPU-1", **POD)])
def test_raw_samples_begin_after_the_start_of_the_span(metrics: Metrics) -> None:
    assert metrics.samples(120, AUDIO) == [([60, 0], [0.3, 0.4])]


@recorded(
    lambda end: [
        series(ENGINE, end, [0.1, 0.2], newest=150, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.3, 0.4], uuid="GPU-1", **EXPORTED),
        series(UTIL, end, [77.0] * 4, uuid="GPU-1", **EXPORTED),
    ]
)
def test_raw_samples_follow_a_device_through_its_spellings(metrics: Metrics) -> None:
    assert metrics.samples(3600, AUDIO) == [([210, 150, 90, 30], [0.1, 0.2, 0.3, 0.4])]


@recorded(
    lambda end: [
        series(ENGINE, end, [0.6], UUID="GPU-1", GPU_I_PROFILE="1g.10gb", GPU_I_ID="7", **POD),
        series(UTIL, end, [0.0], UUID="GPU-1", GPU_I_PROFILE="1g.10gb", GPU_I_ID="8", **POD),
    ]
)
def test_a_device_without_usable_samples_is_in_the_answer_with_none(metrics: Metrics) -> None:
    slices = [
        DeviceName(namespace=AUDIO.namespace, pod=AUDIO.pod, uuid="GPU-1", mig=f"1g.10gb/{n}")
        for n in (7, 8)
    ]
    assert metrics.samples(3600, *slices) == [([30], [0.6]), ([], [])]
    assert metrics.samples(3600) == []


@recorded(
    lambda end: [
        series(ENGINE, end, [0.1] * 5, newest=7200, UUID="GPU-1", **POD),
        series(ENGINE, end, [0.1] * 5, newest=7200, uuid="GPU-2", **EXPORTED),
        series(UTIL, end, [1.0] * 5, newest=7200, UUID="GPU-3", **(POD | {"namespace": "other"})),
        series(MEMORY, end, [1.0] * 5, newest=7200, UUID="GPU-4", **POD),
    ]
)
def test_devices_are_found_that_named_a_pod_earlier(metrics: Metrics) -> None:
    found = metrics.seen(4 * 3600, ("hyperpod-ns-audio", "trainer-2"), ("x", "y"))
    assert [(d.uuid, d.node, d.windows, d.activity_metric) for d in found] == [
        ("GPU-1", "node-a", (), ENGINE),
        ("GPU-2", "node-a", (), ENGINE),
    ]
    assert metrics.seen(3600, ("hyperpod-ns-audio", "trainer-2")) == ()
    assert metrics.seen(4 * 3600) == ()


HARD_NAMES = ("a.c", "abc", 'quo"ted', "back\\slash", "new\nline", "pipe|d", "(ä)*", "$^[x]{2}")


@pytest.mark.parametrize("name", HARD_NAMES)
@recorded(
    lambda end: [
        series(ENGINE, end, [0.1], UUID=f"GPU-{n}", **(POD | {"pod": name}))
        for n, name in enumerate(HARD_NAMES)
    ]
)
def test_a_name_selects_itself_alone_whatever_it_is_made_of(metrics: Metrics, name: str) -> None:
    (found,) = metrics.seen(3600, (POD["namespace"], name))
    assert found.pod == name
