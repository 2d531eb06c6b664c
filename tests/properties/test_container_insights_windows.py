"""Window statistics from minutes equal those of a plain walk over every minute."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from steward.sources.container_insights.naming import NEURON, Family, Strand
from steward.sources.container_insights.windows import merge, window

NOON = datetime(2026, 11, 5, 12, tzinfo=UTC)
FAMILY: Family = NEURON.activity

values = st.one_of(st.floats(0, 100), st.sampled_from([-1.0, 31400.0, float("nan"), 2.0**31]))
series = st.dictionaries(st.integers(-200, 5), values, max_size=60)


def at(minute: int) -> int:
    return int(NOON.timestamp()) + 60 * minute


@given(
    cores=st.lists(st.lists(series, min_size=1, max_size=2), min_size=1, max_size=3),
    length=st.integers(5, 180),
    offset=st.integers(0, 59),
)
def test_a_window_counts_minutes_in_which_every_core_was_seen(
    cores: list[list[Mapping[int, float]]], length: int, offset: int
) -> None:
    end = NOON + timedelta(seconds=offset)
    parts = [
        (Strand(str(core), frozenset({("copy", str(copy))})), {at(m): v for m, v in points.items()})
        for core, copies in enumerate(cores)
        for copy, points in enumerate(copies)
    ]
    found = window(merge(parts, FAMILY), FAMILY, end, length, 60)

    told = [copies for copies in cores if any(copies)]
    present, invalid = [], 0
    for minute in range(-200, 6):
        when = NOON + timedelta(minutes=minute)
        if not end - timedelta(minutes=length) < when <= end:
            continue
        by_core = [[c[minute] for c in copies if minute in c] for copies in told]
        valid = [[v for v in said if 0 <= v <= 100] for said in by_core]
        if valid and all(valid):
            present.append(max(max(said) for said in valid) / 100)
        elif any(len(said) > len(ok) for said, ok in zip(by_core, valid, strict=True)):
            invalid += 1
    assert (found.present, found.invalid, found.expected) == (len(present), invalid, length)
    assert found.maximum == max(present, default=None)
    assert found.minimum == min(present, default=None)
    if present:
        assert found.mean is not None
        assert abs(found.mean - sum(present) / len(present)) < 1e-9
    else:
        assert found.mean is None
