"""What every metrics reader owes, over a real Prometheus and over the rig's stand-in."""

import math
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from werkzeug.serving import make_server

from local.metrics.openmetrics import Series
from local.metrics.server import RealPrometheus, available
from local.standins.prometheus import PrometheusStandin
from steward.cluster.accelerators import ActivityWindow
from steward.cluster.snapshot import InvalidSamples
from steward.ports import DeviceName, DeviceReading, MetricsReading
from steward.sources.prometheus import PrometheusMetrics

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
MEMORY = "DCGM_FI_DEV_FB_USED"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
POWER = "DCGM_FI_DEV_POWER_USAGE"

BLANKS = (2147483632.0, 9223372036854775792.0, 140737488355328.0)
"""DCGM's "no value" for 32-bit, 64-bit and floating fields (dcgm_structs.h)."""

POD: dict[str, Any] = {"namespace": "hyperpod-ns-audio", "pod": "trainer-2", "Hostname": "node-a"}
EXPORTED: dict[str, Any] = {
    "exported_namespace": "hyperpod-ns-audio",
    "exported_pod": "trainer-2",
    "hostname": "node-a",
    "namespace": "monitoring",
    "pod": "dcgm-exporter-x7k2p",
}

type Build = Callable[[datetime], list[Series]]

_CASES: list[tuple[datetime, Build]] = []


def recorded[F: Callable[..., None]](build: Build) -> Callable[[F], F]:
    """Give a test series of its own: each has eight hours to itself, so that one server holds all."""

    def mark(test: F) -> F:
        end = datetime(2026, 11, 1, 12, tzinfo=UTC) + timedelta(hours=8 * len(_CASES))
        _CASES.append((end, build))
        test.end = end  # type: ignore[attr-defined]
        return test

    return mark


def series(
    metric: str,
    end: datetime,
    values: Sequence[float | None],
    *,
    newest: float = 30,
    step: float = 60,
    **labels: str,
) -> Series:
    """One series whose newest value is `newest` seconds before the end; None is a missed scrape."""
    first = end - timedelta(seconds=newest + step * (len(values) - 1))
    points = [(first + timedelta(seconds=step * n), v) for n, v in enumerate(values)]
    kept = [(round(at.timestamp() * 1000), v) for at, v in points if v is not None]
    return Series(
        {"__name__": metric} | {k: v for k, v in labels.items() if v},
        array("q", (at for at, _ in kept)),
        array("d", (v for _, v in kept)),
    )


@dataclass
class Metrics:
    """The series of one test, at the end of its hours."""

    url: str
    end: datetime

    def reader(
        self, *, scrape_interval_seconds: int = 60, cluster_label: str | None = None
    ) -> PrometheusMetrics:
        return PrometheusMetrics(
            self.url,
            scrape_interval_seconds=scrape_interval_seconds,
            cluster_label=cluster_label,
        )

    def read(self, *minutes: int, **options: int | str | None) -> MetricsReading:
        reader = self.reader(**options)  # type: ignore[arg-type]
        try:
            return reader.read(self.end, minutes or (60,))
        finally:
            reader.close()

    def device(self, *minutes: int) -> DeviceReading:
        (device,) = self.read(*minutes).devices
        return device

    def window(self, minutes: int = 60) -> ActivityWindow:
        (window,) = self.device(minutes).windows
        return window

    def samples(
        self, seconds: float, *devices: DeviceName
    ) -> list[tuple[list[float], list[float]]]:
        """Seconds before the end, and values, of each device."""
        reader = self.reader()
        try:
            answer = reader.samples(self.end, seconds, devices)
        finally:
            reader.close()
        assert {samples.device for samples in answer} == set(devices)
        return [([(self.end - t).total_seconds() for t in s.times], list(s.values)) for s in answer]

    def seen(self, seconds: float, *pods: tuple[str, str]) -> tuple[DeviceReading, ...]:
        reader = self.reader()
        try:
            return reader.seen(self.end, seconds, pods)
        finally:
            reader.close()


@pytest.fixture(
    scope="module", params=["stand-in", pytest.param("real", marks=pytest.mark.prometheus)]
)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    everything = [one for end, build in _CASES for one in build(end)]
    if request.param == "real":
        if not available():
            pytest.skip("prometheus and promtool are not installed")
        with RealPrometheus(everything) as prometheus:
            yield prometheus.url
        return
    app = PrometheusStandin(everything, lambda: datetime(2027, 6, 1, tzinfo=UTC))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


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
    assert (device.held_bytes, device.tensor_activity, device.power_watts) == (None, None, None)


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
        ActivityWindow(minutes=300, expected=300, present=298, maximum=0, mean=0, invalid=2),
    )
    assert reading.invalid == (InvalidSamples(metric=UTIL, samples=2, accelerators=1),)


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
    assert metrics.window() == ActivityWindow(
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
    assert reading.invalid == (InvalidSamples(metric=UTIL, samples=1, accelerators=1),)


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
    assert reading.invalid == (InvalidSamples(metric=ENGINE, samples=1, accelerators=1),)


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


@recorded(
    lambda end: [
        series(ENGINE, end, [1.0] * 60, UUID="GPU-1", **POD),
        series(TENSOR, end, [0.0, 0.5] * 30, UUID="GPU-1", **POD),
        series(POWER, end, [100.0, 300.0] * 30, UUID="GPU-1", **POD),
        series(ENGINE, end, [1.0] * 60, UUID="GPU-2", **POD),
        series(TENSOR, end, [0.0] * 59 + [BLANKS[2]], UUID="GPU-2", **POD),
        series(POWER, end, [90.0] * 59 + [math.nan], UUID="GPU-2", **POD),
    ]
)
def test_tensor_activity_and_power_are_means_of_valid_samples(metrics: Metrics) -> None:
    reading = metrics.read()
    levels = [(d.tensor_activity, d.power_watts) for d in reading.devices]
    assert levels == [pytest.approx((0.25, 200.0)), (0.0, 90.0)]
    assert {(i.metric, i.samples) for i in reading.invalid} == {(TENSOR, 1), (POWER, 1)}


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
