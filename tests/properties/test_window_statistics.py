"""Window statistics of random series: real Prometheus, the rig's reader, and plain arithmetic agree.

The series are made once, so that one Prometheus holds them all; the questions are drawn anew.
"""

import math
import random
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.metrics.openmetrics import Series
from local.metrics.server import RealPrometheus, available
from steward.cluster.accelerators import Window
from steward.cluster.snapshot import InvalidSamples
from steward.ports import DeviceName, MetricsReading, Signal
from steward.sources.prometheus.reader import PrometheusMetrics
from tests.contract.metrics_series import standin

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
MEMORY = "DCGM_FI_DEV_FB_USED"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
POWER = "DCGM_FI_DEV_POWER_USAGE"
LIMIT = "DCGM_FI_DEV_POWER_MGMT_LIMIT"
HIGHEST = {ENGINE: 1, UTIL: 100, MEMORY: 81_559, TENSOR: 1, POWER: 700, LIMIT: 700}
UNIT = {UTIL: 100}
"""How many of a metric's units are one of ours: where it says nothing, one."""

START = datetime(2026, 11, 2, tzinfo=UTC)
MINUTES = 240
CASES = [f"case-{n}" for n in range(24)]
NEVER = (2147483632.0, 9223372036854775792.0, 140737488355328.0, 2.0**64, math.nan, math.inf)
"""What DCGM says for "no value", integer maxima, and what JSON calls no number."""

type Points = list[tuple[int, float]]
"""Milliseconds since the epoch and value, ascending."""

type Key = tuple[str, str, str, str]
"""Case, UUID, MIG slice (or empty), pod."""


@dataclass
class World:
    """What was measured, by holder and metric, and the series that tell it."""

    truth: dict[Key, dict[str, Points]] = field(default_factory=lambda: defaultdict(dict))
    series: list[Series] = field(default_factory=list)


def plain(case: str, uuid: str, mig: str, pod: str) -> dict[str, str]:
    profile, _, instance = mig.partition("/")
    labels = {"UUID": uuid, "Hostname": "node-a", "namespace": "ns", "pod": pod}
    return labels | {"cluster_name": case, "GPU_I_PROFILE": profile, "GPU_I_ID": instance}


def exported(case: str, uuid: str, mig: str, pod: str) -> dict[str, str]:
    profile, _, instance = mig.partition("/")
    labels = {"uuid": uuid, "hostname": "node-a", "exported_namespace": "ns", "exported_pod": pod}
    labels |= {"namespace": "monitoring", "pod": "dcgm-exporter-x7k2p"}
    return labels | {"cluster_name": case, "GPU_I_PROFILE": profile, "GPU_I_ID": instance}


def measured(rng: random.Random, metric: str, first: int, last: int) -> Points:
    """A scrape a minute from one minute to another, with gaps and values that cannot be."""
    phase = rng.randrange(60_000)
    lost = rng.choice([0, 0, 0.1, 0.7])
    bad = rng.choice([0, 0, 0.02, 0.5])
    wild = (-1.0, 31_400.0) if metric in {ENGINE, UTIL} else ()
    points = []
    for minute in range(first, last):
        if rng.random() < lost:
            continue
        value = rng.choice([0, 0, rng.randrange(101) / 100]) * HIGHEST[metric]
        if rng.random() < bad:
            value = rng.choice(NEVER + wild)
        points.append((round(START.timestamp() * 1000) + minute * 60_000 + phase, value))
    return points


def tell(
    world: World, rng: random.Random, key: Key, metric: str, points: Points, style: str
) -> None:
    """Turn the points into series.

    One spelling, the other, both, first one and then the other; or one, told by two replicas.
    """
    world.truth[key][metric] = points
    cut = {"changes": rng.randrange(len(points) + 1), "exported": 0}.get(style, len(points))
    told = {"plain": points[:cut], "exported": points if style == "twice" else points[cut:]}
    replicas = ("a", "b") if style == "replicas" else ("",)
    for spell, replica in product((plain, exported), replicas):
        labels = {k: v for k, v in (spell(*key) | {"replica": replica}).items() if v}
        said = told[spell.__name__]
        if said:
            times, values = zip(*said, strict=True)
            world.series.append(
                Series({"__name__": metric} | labels, array("q", times), array("d", values))
            )


def a_world(seed: int) -> World:
    rng = random.Random(seed)
    world = World()
    for case in CASES:
        for device in range(rng.randrange(1, 5)):
            mig = rng.choice(["", "", "", f"3g.40gb/{device}"])
            handover = rng.choice([0, 0, MINUTES, rng.randrange(MINUTES)])
            for pod, first, last in (("a", 0, handover), ("b", handover, MINUTES)):
                key = (case, f"GPU-{device}", mig, f"{pod}-{device}")
                style = rng.choice(["plain", "exported", "twice", "changes", "replicas"])
                for metric in HIGHEST:
                    if rng.random() < 0.75:
                        tell(world, rng, key, metric, measured(rng, metric, first, last), style)
    return world


WORLD = a_world(20261102)


@pytest.fixture(scope="module")
def rig_url() -> Iterator[str]:
    with standin(WORLD.series) as url:
        yield url


@pytest.fixture(scope="module")
def real_url() -> Iterator[str]:
    if not available():
        pytest.skip("prometheus and promtool are not installed")
    with RealPrometheus(WORLD.series) as prometheus:
        yield prometheus.url


@contextmanager
def reading(url: str, case: str) -> Iterator[PrometheusMetrics]:
    reader = PrometheusMetrics(url, cluster_label=case)
    yield reader
    reader.close()


cases = st.sampled_from(CASES)
# Ends on and off the second, from before the first scrape to after the last one has gone stale.
ends = st.integers(min_value=-1, max_value=MINUTES * 60_000 + 400_000).map(
    lambda ms: START + timedelta(milliseconds=ms)
)
windows = st.lists(st.sampled_from([5, 10, 30, 60, 90, 180]), min_size=1, max_size=3, unique=True)
hang_windows = st.lists(st.sampled_from([5, 20, 60, 120]), max_size=2, unique=True)
asked_signals = st.sets(st.sampled_from(list(Signal)), min_size=1).map(sorted)


# --- plain arithmetic ----------------------------------------------------------------------------


def possible(metric: str, value: float) -> bool:
    return not math.isnan(value) and 0 <= value <= (1e6 if metric == MEMORY else HIGHEST[metric])


def within(points: Points, end: datetime, seconds: float) -> Points:
    last = (end - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return [(at, value) for at, value in points if last - seconds * 1000 < at <= last]


def activity(key: Key, end: datetime, seconds: float) -> tuple[str, Points] | None:
    """The metric that speaks for a device, and its samples."""
    for metric in (ENGINE,) if key[2] else (ENGINE, UTIL):
        points = within(WORLD.truth[key].get(metric, []), end, seconds)
        if points:
            return metric, points
    return None


def measured_by(key: Key, signal: Signal, end: datetime, seconds: float) -> tuple[str, Points]:
    """The metric that speaks for a signal of a device, and its samples; of a slice no power."""
    if signal is Signal.ACTIVITY:
        return activity(key, end, seconds) or (ENGINE, [])
    metric = {Signal.TENSOR: TENSOR, Signal.POWER: POWER}[signal]
    own = not (key[2] and signal is Signal.POWER)
    return metric, within(WORLD.truth[key].get(metric, []), end, seconds) if own else []


def window(key: Key, metric: str, end: datetime, minutes: int) -> Window:
    values = [v for _, v in within(WORLD.truth[key][metric], end, minutes * 60)]
    valid = [v / UNIT.get(metric, 1) for v in values if possible(metric, v)]
    return Window(
        minutes=minutes,
        expected=minutes,  # one scrape a minute
        present=len(valid),
        maximum=max(valid, default=None),
        mean=sum(valid) / len(valid) if valid else None,
        minimum=min(valid, default=None),
        invalid=len(values) - len(valid),
    )


def signal_windows(
    key: Key, signal: Signal, end: datetime, minutes: list[int]
) -> tuple[Window, ...]:
    longest = max(minutes, default=0)
    metric, points = measured_by(key, signal, end, longest * 60)
    return tuple(window(key, metric, end, m) for m in sorted(minutes)) if points else ()


def newest_valid(key: Key, metric: str, end: datetime, minutes: int) -> float | None:
    points = within(WORLD.truth[key].get(metric, []), end, minutes * 60)
    return next((v for _, v in reversed(points) if possible(metric, v)), None)


def newest(points: Points) -> datetime | None:
    return (
        START + timedelta(milliseconds=points[-1][0] - START.timestamp() * 1000) if points else None
    )


def close(one: float | None, other: float | None) -> bool:
    """Equal but for the order in which a mean was added up."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def assert_same(one: MetricsReading, other: MetricsReading) -> None:
    assert one.invalid == other.invalid
    assert len(one.devices) == len(other.devices)
    for a, b in zip(one.devices, other.devices, strict=True):
        assert (a.node, a.namespace, a.pod, a.uuid, a.mig) == (
            b.node,
            b.namespace,
            b.pod,
            b.uuid,
            b.mig,
        )
        assert (a.activity_metric, a.last_sample, a.held_bytes, a.power_limit_watts) == (
            b.activity_metric,
            b.last_sample,
            b.held_bytes,
            b.power_limit_watts,
        )
        assert_windows(a.windows, b.windows)
        assert_windows(a.tensor, b.tensor)
        assert_windows(a.power, b.power)


def assert_windows(one: tuple[Window, ...], other: tuple[Window, ...]) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a.minutes, a.expected, a.present, a.invalid) == (
            b.minutes,
            b.expected,
            b.present,
            b.invalid,
        )
        assert close(a.minimum, b.minimum)
        assert close(a.maximum, b.maximum)
        assert close(a.mean, b.mean)


@settings(max_examples=60, deadline=None)
@given(case=cases, end=ends, minutes=windows, hangs=hang_windows)
def test_a_reading_is_what_plain_arithmetic_says(
    rig_url: str, case: str, end: datetime, minutes: list[int], hangs: list[int]
) -> None:
    with reading(rig_url, case) as reader:
        answer = reader.read(end, minutes, hangs)
    keys = sorted(k for k in WORLD.truth if k[0] == case)
    judged = {key: found for key in keys if (found := activity(key, end, max(minutes) * 60))}
    longest = max(minutes + hangs)
    assert [(d.uuid, d.mig or "", d.pod) for d in answer.devices] == [k[1:] for k in judged]
    for device, (key, (metric, _)) in zip(answer.devices, judged.items(), strict=True):
        assert device.activity_metric == metric
        assert_windows(device.windows, tuple(window(key, metric, end, m) for m in sorted(minutes)))
        assert_windows(device.tensor, signal_windows(key, Signal.TENSOR, end, hangs))
        assert_windows(device.power, signal_windows(key, Signal.POWER, end, hangs))
        assert device.last_sample == newest(within(WORLD.truth[key][metric], end, 300))
        held = newest_valid(key, MEMORY, end, longest)
        assert device.held_bytes == (None if held is None else int(held * 1024**2))
        limit = None if key[2] else newest_valid(key, LIMIT, end, longest)
        assert device.power_limit_watts == (limit or None)  # 0: none is set


@settings(max_examples=50, deadline=None)
@given(case=cases, end=ends, hang=st.sampled_from([20, 60, 120]))
def test_every_impossible_sample_of_a_window_is_counted_once(
    rig_url: str, case: str, end: datetime, hang: int
) -> None:
    with reading(rig_url, case) as reader:
        answer = reader.read(end, [60], [hang])
    for metric, minutes in ((ENGINE, 60), (UTIL, 60), (TENSOR, hang), (POWER, hang)):
        # What DCGM does not define under MIG is no fault.
        keys = [k for k in WORLD.truth if k[0] == case and not (metric in {UTIL, POWER} and k[2])]
        bad = [
            [
                when
                for when, v in within(WORLD.truth[k].get(metric, []), end, minutes * 60)
                if not possible(metric, v)
            ]
            for k in keys
        ]
        every = sorted(when for times in bad for when in times)
        expected = [
            InvalidSamples(
                metric=metric,
                samples=len(every),
                accelerators=sum(bool(times) for times in bad),
                first=datetime.fromtimestamp(oldest / 1000, UTC),
            )
            for oldest in every[:1]
        ]
        assert [i for i in answer.invalid if i.metric == metric] == expected


@settings(max_examples=50, deadline=None)
@given(case=cases, end=ends, seconds=st.sampled_from([1, 60, 600, 3600, 7200]), asked=asked_signals)
def test_raw_samples_and_sightings_are_what_plain_arithmetic_says(
    rig_url: str, case: str, end: datetime, seconds: int, asked: list[Signal]
) -> None:
    keys = sorted(k for k in WORLD.truth if k[0] == case)
    names = [DeviceName(namespace="ns", pod=k[3], uuid=k[1], mig=k[2] or None) for k in keys]
    with reading(rig_url, case) as reader:
        answer = reader.samples(end, seconds, names, asked)
        seen = reader.seen(end, seconds, {("ns", key[3]) for key in keys})
    assert [(s.device, s.signal) for s in answer] == list(product(names, asked))
    for (key, signal), samples in zip(product(keys, asked), answer, strict=True):
        metric, points = measured_by(key, signal, end, seconds)
        valid = [(at, v) for at, v in points if possible(metric, v)]
        assert samples.times == tuple(newest([point]) for point in valid)
        assert samples.values == tuple(v / UNIT.get(metric, 1) for _, v in valid)
    found = {key: told for key in keys if (told := activity(key, end, seconds))}
    assert [(d.uuid, d.mig or "", d.pod, d.activity_metric) for d in seen] == [
        (*key[1:], metric) for key, (metric, _) in found.items()
    ]


@pytest.mark.prometheus
@settings(max_examples=50, deadline=None)
@given(
    case=cases,
    end=ends,
    both=st.tuples(windows, hang_windows),
    seconds=st.sampled_from([1, 60, 3600, 7200]),
)
def test_the_rig_and_a_real_prometheus_say_the_same(
    rig_url: str,
    real_url: str,
    case: str,
    end: datetime,
    both: tuple[list[int], list[int]],
    seconds: int,
) -> None:
    keys = sorted(k for k in WORLD.truth if k[0] == case)
    names = [DeviceName(namespace="ns", pod=k[3], uuid=k[1], mig=k[2] or None) for k in keys]
    pods = {("ns", key[3]) for key in keys}
    signals = tuple(Signal)
    with reading(rig_url, case) as rig, reading(real_url, case) as real:
        assert_same(rig.read(end, *both), real.read(end, *both))
        assert rig.samples(end, seconds, names, signals) == real.samples(
            end, seconds, names, signals
        )
        assert rig.seen(end, seconds, pods) == real.seen(end, seconds, pods)


def test_the_world_holds_what_the_properties_are_about() -> None:
    # Otherwise they could hold for nothing: both families, slices, holders that follow each
    # other, bad values, both spellings and replicas are there.
    keys = list(WORLD.truth)
    assert sum(bool(key[2]) for key in keys) > 10
    assert len({key[:2] for key in keys}) < len(keys)
    metrics = [frozenset(truth) for truth in WORLD.truth.values()]
    assert any(UTIL in m and ENGINE not in m for m in metrics)
    assert sum(len(series.times) for series in WORLD.series) > 20_000
    for value in NEVER:
        assert any(repr(value) == repr(v) for s in WORLD.series for v in s.values)
    assert {"pod", "exported_pod", "replica"} <= set().union(*(s.labels for s in WORLD.series))
