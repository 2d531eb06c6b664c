"""Window statistics of random series: real Prometheus, the rig's reader, and plain arithmetic agree.

The series are made once, so that one Prometheus holds them all; the questions are drawn anew.
"""

import math
import random
import threading
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.serving import make_server

from local.metrics.openmetrics import Series
from local.metrics.server import RealPrometheus, available
from local.standins.prometheus import PrometheusStandin
from steward.cluster.accelerators import ActivityWindow
from steward.cluster.snapshot import InvalidSamples
from steward.ports import DeviceName, MetricsReading
from steward.sources.prometheus import PrometheusMetrics

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
MEMORY = "DCGM_FI_DEV_FB_USED"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
POWER = "DCGM_FI_DEV_POWER_USAGE"
HIGHEST = {ENGINE: 1, UTIL: 100, MEMORY: 81_559, TENSOR: 1, POWER: 700}

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
    bad = (
        rng.choice([0, 0, 0.02, 0.5]) if metric in {ENGINE, UTIL, MEMORY} else rng.choice([0, 0.05])
    )
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
    """Turn the points into series: one spelling, the other, both, or first one and then the other."""
    world.truth[key][metric] = points
    cut = {"changes": rng.randrange(len(points) + 1), "exported": 0}.get(style, len(points))
    told = {"plain": points[:cut], "exported": points if style == "twice" else points[cut:]}
    for spell in (plain, exported):
        labels = {k: v for k, v in spell(*key).items() if v}
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
                style = rng.choice(["plain", "exported", "twice", "changes"])
                for metric in HIGHEST:
                    if rng.random() < 0.75:
                        tell(world, rng, key, metric, measured(rng, metric, first, last), style)
    return world


WORLD = a_world(20261102)


@contextmanager
def served() -> Iterator[str]:
    app = PrometheusStandin(WORLD.series, lambda: START + timedelta(days=9))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def rig_url() -> Iterator[str]:
    with served() as url:
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
windows = st.lists(st.sampled_from([5, 10, 30, 60, 90, 180]), min_size=1, max_size=2, unique=True)


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


def window(key: Key, metric: str, end: datetime, minutes: int) -> ActivityWindow:
    values = [v for _, v in within(WORLD.truth[key][metric], end, minutes * 60)]
    valid = [v / HIGHEST[metric] for v in values if possible(metric, v)]
    return ActivityWindow(
        minutes=minutes,
        expected=minutes,  # one scrape a minute
        present=len(valid),
        maximum=max(valid, default=None),
        mean=sum(valid) / len(valid) if valid else None,
        invalid=len(values) - len(valid),
    )


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
        assert (a.activity_metric, a.last_sample, a.held_bytes) == (
            b.activity_metric,
            b.last_sample,
            b.held_bytes,
        )
        assert close(a.tensor_activity, b.tensor_activity)
        assert close(a.power_watts, b.power_watts)
        assert_windows(a.windows, b.windows)


def assert_windows(one: tuple[ActivityWindow, ...], other: tuple[ActivityWindow, ...]) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a.minutes, a.expected, a.present, a.invalid) == (
            b.minutes,
            b.expected,
            b.present,
            b.invalid,
        )
        assert close(a.maximum, b.maximum)
        assert close(a.mean, b.mean)


@settings(max_examples=60, deadline=None)
@given(case=cases, end=ends, minutes=windows)
def test_a_reading_is_what_plain_arithmetic_says(
    rig_url: str, case: str, end: datetime, minutes: list[int]
) -> None:
    with reading(rig_url, case) as reader:
        answer = reader.read(end, minutes)
    longest = max(minutes)
    keys = sorted(k for k in WORLD.truth if k[0] == case)
    judged = {key: found for key in keys if (found := activity(key, end, longest * 60))}
    assert [(d.uuid, d.mig or "", d.pod) for d in answer.devices] == [k[1:] for k in judged]
    for device, (key, (metric, _)) in zip(answer.devices, judged.items(), strict=True):
        truth = WORLD.truth[key]
        assert device.activity_metric == metric
        assert_windows(device.windows, tuple(window(key, metric, end, m) for m in sorted(minutes)))
        assert device.last_sample == newest(within(truth[metric], end, 300))
        memory = within(truth.get(MEMORY, []), end, longest * 60)
        held = [v for _, v in memory if possible(MEMORY, v)]
        assert device.held_bytes == (int(held[-1] * 1024**2) if held else None)
        for said, level in ((device.tensor_activity, TENSOR), (device.power_watts, POWER)):
            values = [v for _, v in within(truth.get(level, []), end, longest * 60)]
            valid = [v for v in values if possible(level, v)]
            assert close(said, sum(valid) / len(valid) if valid else None)


@settings(max_examples=50, deadline=None)
@given(case=cases, end=ends)
def test_every_impossible_activity_sample_is_counted_once(
    rig_url: str, case: str, end: datetime
) -> None:
    with reading(rig_url, case) as reader:
        answer = reader.read(end, [60])
    for metric in (ENGINE, UTIL):
        # Utilisation that DCGM does not define under MIG is no fault.
        keys = [k for k in WORLD.truth if k[0] == case and not (metric == UTIL and k[2])]
        bad = [
            sum(
                not possible(metric, v)
                for _, v in within(WORLD.truth[k].get(metric, []), end, 3600)
            )
            for k in keys
        ]
        expected = InvalidSamples(
            metric=metric, samples=sum(bad), accelerators=sum(n > 0 for n in bad)
        )
        assert [i for i in answer.invalid if i.metric == metric] == [expected] * (sum(bad) > 0)


@settings(max_examples=50, deadline=None)
@given(case=cases, end=ends, seconds=st.sampled_from([1, 60, 600, 3600, 7200]))
def test_raw_samples_and_sightings_are_what_plain_arithmetic_says(
    rig_url: str, case: str, end: datetime, seconds: int
) -> None:
    keys = sorted(k for k in WORLD.truth if k[0] == case)
    names = [DeviceName(namespace="ns", pod=k[3], uuid=k[1], mig=k[2] or None) for k in keys]
    with reading(rig_url, case) as reader:
        answer = reader.samples(end, seconds, names)
        seen = reader.seen(end, seconds, {("ns", key[3]) for key in keys})
    found = {key: told for key in keys if (told := activity(key, end, seconds))}
    assert [samples.device for samples in answer] == names
    for key, samples in zip(keys, answer, strict=True):
        metric, points = found.get(key, (ENGINE, []))
        valid = [(at, v) for at, v in points if possible(metric, v)]
        assert samples.times == tuple(newest([point]) for point in valid)
        assert samples.values == tuple(v / HIGHEST[metric] for _, v in valid)
    assert [(d.uuid, d.mig or "", d.pod, d.activity_metric) for d in seen] == [
        (*key[1:], metric) for key, (metric, _) in found.items()
    ]


@pytest.mark.prometheus
@settings(max_examples=50, deadline=None)
@given(case=cases, end=ends, minutes=windows, seconds=st.sampled_from([1, 60, 3600, 7200]))
def test_the_rig_and_a_real_prometheus_say_the_same(
    rig_url: str, real_url: str, case: str, end: datetime, minutes: list[int], seconds: int
) -> None:
    keys = sorted(k for k in WORLD.truth if k[0] == case)
    names = [DeviceName(namespace="ns", pod=k[3], uuid=k[1], mig=k[2] or None) for k in keys]
    pods = {("ns", key[3]) for key in keys}
    with reading(rig_url, case) as rig, reading(real_url, case) as real:
        assert_same(rig.read(end, minutes), real.read(end, minutes))
        assert rig.samples(end, seconds, names) == real.samples(end, seconds, names)
        assert rig.seen(end, seconds, pods) == real.seen(end, seconds, pods)


def test_the_world_holds_what_the_properties_are_about() -> None:
    # Otherwise they could hold for nothing: both families, slices, holders that follow each
    # other, bad values and both spellings are there.
    keys = list(WORLD.truth)
    assert sum(bool(key[2]) for key in keys) > 10
    assert len({key[:2] for key in keys}) < len(keys)
    metrics = [frozenset(truth) for truth in WORLD.truth.values()]
    assert any(UTIL in m and ENGINE not in m for m in metrics)
    assert sum(len(series.times) for series in WORLD.series) > 20_000
    for value in NEVER:
        assert any(repr(value) == repr(v) for s in WORLD.series for v in s.values)
    assert {"pod", "exported_pod"} <= set().union(*(s.labels for s in WORLD.series))
