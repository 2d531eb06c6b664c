"""Kueue's metrics: counters through resets, whoever reports them, and which version is newest."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.sources.prometheus.kueue import Gauge, eviction, gauge, increase, reading
from steward.sources.prometheus.samples import Points
from steward.sources.prometheus.series import LARGEST_LABELS


def sampled(values: list[float], first: int = 0) -> Points:
    """A scrape a minute."""
    return Points([(first + n) * 60_000 for n in range(len(values))], values)


@pytest.mark.parametrize(
    ("values", "rise"),
    [
        ([], 0),
        ([12], 0),  # how much of it is old, nobody saw
        ([12, 0, 5], 5),
        ([12, 5], 5),  # restarted, and 5 again before it was looked at
        ([1, 1, 3, 3], 2),
        ([1, float("nan"), 4], 3),
        ([1, float("inf"), 4], 3),
        ([1, -1, 4], 3),
    ],
)
def test_an_increase_goes_through_resets(values: list[float], rise: float) -> None:
    assert increase([sampled(values)]) == rise


# What a counter does: count some up, or restart.
steps = st.lists(st.one_of(st.integers(0, 9), st.none()), min_size=1, max_size=30)


def lived(done: list[int | None]) -> list[float]:
    """What is scraped, from 100 on, and after each step."""
    value, seen = 100, [100.0]
    for step in done:
        value = 0 if step is None else value + step
        seen.append(float(value))
    return seen


@given(done=steps)
def test_every_step_that_was_seen_is_counted(done: list[int | None]) -> None:
    assert increase([sampled(lived(done))]) == sum(step or 0 for step in done)


@given(done=steps, data=st.data())
def test_series_that_follow_each_other_are_one_counter(
    done: list[int | None], data: st.DataObject
) -> None:
    values = lived(done)
    cut = data.draw(st.integers(0, len(values)))
    parts = [sampled(values[cut:], cut), sampled(values[:cut])]
    assert increase(parts) == sum(step or 0 for step in done)


@given(done=steps, replicas=st.integers(1, 4))
def test_replicas_do_not_add_up(done: list[int | None], replicas: int) -> None:
    rise = sum(step or 0 for step in done)
    assert increase([sampled(lived(done))] * replicas) == rise
    # One that missed the second half counts for no more than it saw.
    half = lived(done)[: len(done) // 2 + 1]
    assert increase([sampled(half), sampled(lived(done))]) == rise


VERSIONS = ["v0.9.1", "v0.18.0", "v0.12.3-eks"]


@pytest.mark.parametrize("told", list(itertools.permutations(VERSIONS)))
def test_the_newest_version_is_told_in_any_order(told: tuple[str, ...]) -> None:
    said = [(Gauge(metric="kueue_build_info", git_version=version), 1.0) for version in told]
    assert reading(said, []).version == "v0.18.0"


def test_a_version_that_is_empty_or_odd_is_no_fault() -> None:
    assert reading([(Gauge(metric="kueue_build_info"), 1.0)], []).version is None
    odd = Gauge(metric="kueue_build_info", git_version="main")
    assert reading([(odd, 1.0)], []).version == "main"


def test_labels_too_large_for_a_name_are_no_queue() -> None:
    large = msgspec.json.encode({"cluster_queue": "q" * LARGEST_LABELS})
    assert gauge(msgspec.Raw(large)) is None
    assert eviction(msgspec.Raw(large)) is None
    assert gauge(msgspec.Raw(b'{"cluster_queue":"q"}')) == Gauge(cluster_queue="q")
