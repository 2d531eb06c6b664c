"""Neuron devices: what every metrics reader owes where neuron-monitor exports cores, not devices."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from local.metrics.openmetrics import Series
from steward.cluster.accelerators import Window
from steward.cluster.snapshot import InvalidSamples
from steward.ports import DeviceName, Signal
from tests.contract.metrics_series import BLANKS, SERVERS, Cases, Metrics, series

CORE = "neuroncore_utilization_ratio"
HARDWARE = "neuron_hardware_info"
HELD = "neuroncore_memory_usage"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"

HOLDER: dict[str, Any] = {"exported_namespace": "hyperpod-ns-nlp", "exported_pod": "t-0"}
ON: dict[str, Any] = {"instance_id": "i-0a", "instance_type": "trn1.32xlarge"}
NAME = DeviceName(namespace="hyperpod-ns-nlp", pod="t-0", uuid="i-0a/neuron0")

recorded = Cases()


@pytest.fixture(scope="module", params=SERVERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with recorded.served(request.param) as served:
        yield served


@pytest.fixture
def metrics(url: str, request: pytest.FixtureRequest) -> Metrics:
    return Metrics(url, request.function.end)


def _instance(end: datetime) -> list[Series]:
    def core(index: int, metric: str, values: Sequence[float], **labels: Any) -> Series:
        return series(metric, end, values, neuroncore=str(index), instance_id="i-0a", **labels)

    return [
        series(
            HARDWARE,
            end,
            [1.0] * 60,
            instance_id="i-0a",
            neuron_device_count="16",
            neuroncore_per_device_count="2",
        ),
        core(0, CORE, [0.0] * 60, **HOLDER),
        core(1, CORE, [0.25, 0.75] * 30, **HOLDER),
        core(2, CORE, [0.0] * 60, **HOLDER),
        core(3, CORE, [0.0] * 58 + [math.nan, BLANKS[2]], **HOLDER),
        core(4, CORE, [0.0] * 60, namespace="neuron-monitor", pod="neuron-monitor-slsxf"),
        core(0, f"{HELD}_tensors", [1024.0] * 60, memory_location="None", **HOLDER),
        core(0, f"{HELD}_model_code", [10.0] * 60, memory_location="None", **HOLDER),
        core(1, f"{HELD}_tensors", [4096.0] * 59 + [2048.0], memory_location="None", **HOLDER),
    ]


@recorded(_instance)
def test_a_device_is_as_active_as_its_most_active_core(metrics: Metrics) -> None:
    reading = metrics.read(60, 30, signals=(30,))
    first, second, _ = reading.devices
    assert [d.uuid for d in reading.devices] == [f"i-0a/neuron{n}" for n in range(3)]
    assert (first.node, first.namespace, first.pod) == ("hyperpod-i-0a", "hyperpod-ns-nlp", "t-0")
    assert (first.activity_metric, first.mig, first.model) == (CORE, None, None)
    # Core 0 is idle, core 1 is not: the device works at what core 1 does.
    assert first.windows == (
        Window(minutes=30, expected=30, present=30, maximum=0.75, mean=0.5, minimum=0.25),
        Window(minutes=60, expected=60, present=60, maximum=0.75, mean=0.5, minimum=0.25),
    )
    assert first.last_sample == metrics.end - timedelta(seconds=30)
    assert (first.tensor, first.power, first.power_limit_watts) == ((), (), None)
    # Two of core 3's samples are impossible: idle all the same, and said.
    assert [(w.maximum, w.present, w.invalid) for w in second.windows] == [(0, 30, 2), (0, 60, 2)]
    # The last but one of minutely samples of which the newest is half a minute old.
    oldest = metrics.end - timedelta(seconds=90)
    expected = InvalidSamples(metric=CORE, samples=2, accelerators=1, first=oldest)
    assert reading.invalid == (expected,)


@recorded(_instance)
def test_memory_held_is_that_of_all_cores_and_of_every_kind(metrics: Metrics) -> None:
    # 1024 and 10 bytes of core 0, and the newest of core 1: 2048.
    assert [d.held_bytes for d in metrics.read().devices] == [3082, None, None]


@recorded(_instance)
def test_the_exporter_knows_no_pods_unless_somebody_tells_it(metrics: Metrics) -> None:
    third = metrics.read().devices[2]
    assert (third.namespace, third.pod, third.node) == (None, None, "hyperpod-i-0a")


@recorded(_instance)
def test_raw_samples_are_those_of_the_most_active_core(metrics: Metrics) -> None:
    activity, tensor = metrics.samples(180, NAME, signals=(Signal.ACTIVITY, Signal.TENSOR))
    assert activity == ([150, 90, 30], [0.75, 0.25, 0.75])
    assert tensor == ([], [])
    assert metrics.samples(180, NAME, signals=(Signal.POWER,)) == [([], [])]


@recorded(_instance)
def test_a_device_is_found_by_the_pod_it_named(metrics: Metrics) -> None:
    found = metrics.seen(3600, ("hyperpod-ns-nlp", "t-0"))
    assert [(d.uuid, d.activity_metric) for d in found] == [
        ("i-0a/neuron0", CORE),
        ("i-0a/neuron1", CORE),
    ]


@recorded(
    lambda end: [
        series(CORE, end, [0.1] * 60, neuroncore="5", **ON, **HOLDER),
        series(CORE, end, [0.2] * 60, neuroncore="5", neuron_device="7", **ON, **HOLDER),
        # How many cores make a device is not known, which core, or on which instance it is.
        series(CORE, end, [0.3] * 60, neuroncore="5", **(ON | {"instance_type": "new1.9xlarge"})),
        series(CORE, end, [0.3] * 60, neuroncore="all", **ON, **HOLDER),
        series(CORE, end, [0.3] * 60, neuroncore="5", neuron_device="1", **HOLDER),
    ]
)
def test_a_core_whose_device_is_not_known_names_none(metrics: Metrics) -> None:
    assert [(d.uuid, d.windows[0].maximum) for d in metrics.read().devices] == [
        ("i-0a/neuron2", 0.1),  # core 5, two cores a device
        ("i-0a/neuron7", 0.2),
    ]


@recorded(
    lambda end: [
        series(
            CORE,
            end,
            [0.9] * 20,
            newest=30 + 40 * 60,
            runtime_tag="1",
            neuroncore="0",
            **ON,
            **HOLDER,
        ),
        series(CORE, end, [0.0] * 40, runtime_tag="2", neuroncore="0", **ON, **HOLDER),
        series(ENGINE, end, [math.nan] + [0.1] * 59, UUID="GPU-1", namespace="n", pod="p"),
    ]
)
def test_a_runtime_that_follows_another_continues_its_core(metrics: Metrics) -> None:
    # And devices of both kinds may be in doubt in one tick.
    card, device = metrics.read().devices
    assert (card.windows[0].present, card.windows[0].invalid) == (59, 1)
    assert (device.windows[0].present, device.windows[0].maximum) == (60, 0.9)
    assert device.windows[0].mean == pytest.approx(0.3)  # 20 of 60 minutes at 0.9
    name = DeviceName(namespace="n", pod="p", uuid="GPU-1")
    assert metrics.samples(100, name, NAME) == [([90, 30], [0.1, 0.1]), ([90, 30], [0.0, 0.0])]


@recorded(
    lambda end: [
        series(CORE, end, [0.0] * 60, neuroncore="0", **ON, **HOLDER),
        series(CORE, end, [0.9] * 5, newest=30 + 50 * 60, neuroncore="1", **ON, **HOLDER),
    ]
)
def test_a_core_that_no_runtime_uses_any_more_is_no_gap(metrics: Metrics) -> None:
    # neuron-monitor exports the cores in use: core 1 was, for five minutes.
    window = metrics.window()
    assert (window.present, window.minimum, window.maximum) == (60, 0.9, 0.9)
    assert window.mean == pytest.approx(0.9)
    assert metrics.window(30) == Window(
        minutes=30, expected=30, present=30, maximum=0, mean=0, minimum=0
    )
