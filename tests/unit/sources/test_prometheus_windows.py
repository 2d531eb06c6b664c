"""How the answers of several queries become one reading where they do not fit together."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.ports import DeviceReading
from steward.sources.prometheus.answers import Answers
from steward.sources.prometheus.asked import COUNT, MAXIMUM, MEAN, MINIMUM, STATISTICS, Asked
from steward.sources.prometheus.families import ENGINE, TENSOR, UTILISATION
from steward.sources.prometheus.samples import Points, Raw, merge
from steward.sources.prometheus.series import Key
from steward.sources.prometheus.windows import reading

END = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
END_MS = 1793620800_000
ASKED = Asked(end=END, minutes=(30, 60), signal_minutes=(30,), interval_seconds=60)
LABELS = {"UUID": "GPU-1", "namespace": "n", "pod": "p"}


class Tick:
    """What the queries of a tick say; one that is not told was answered without the series."""

    def __init__(self) -> None:
        self.answers = Answers(ASKED)

    def tell(
        self, minutes: int, metric: str = ENGINE.metric, mark: str = "", /, **values: float
    ) -> "Tick":
        key = self._key(f"{metric} {minutes}", mark)
        for function in STATISTICS:
            name = function.removesuffix("_over_time")
            if name in values:
                self.answers.add_statistic(function, [(key, values[name])])
        return self

    def raw(self, *points: tuple[int, float], metric: str = ENGINE.metric, mark: str = "") -> Raw:
        """Samples, each so many minutes before the end."""
        times = [END_MS - minutes * 60_000 for minutes, _ in points]
        return Raw(self._key(metric, mark), Points(times, [value for _, value in points]))

    def device(self, *raw: Raw) -> DeviceReading:
        (device,) = reading(self.answers, raw).devices
        return device

    @property
    def doubts(self) -> set[str]:
        return {channel.metric for channel in self.answers.doubtful}

    def _key(self, name: str, mark: str) -> Key:
        labels = LABELS | ({"replica": mark} if mark else {})
        text = json.dumps(labels | {"__steward__": name}, separators=(",", ":"))
        key = self.answers.series.key(text.encode())
        assert key is not None
        return key


WHOLE = {"count": 60, "avg": 0.5, "min": 0.5, "max": 0.5}


def test_a_sample_that_arrives_between_two_queries_puts_its_series_in_doubt() -> None:
    # The count was asked for before the first sample arrived, the maximum after it.
    tick = Tick().tell(60, max=0.5)
    assert tick.doubts == {ENGINE.metric}
    windows = tick.device(tick.raw((0, 0.5))).windows
    assert [(w.present, w.maximum) for w in windows] == [(1, 0.5), (1, 0.5)]


@pytest.mark.parametrize("function", ["count", "avg", "min", "max"])
def test_an_answer_that_is_missing_puts_its_series_in_doubt(function: str) -> None:
    told = {name: value for name, value in WHOLE.items() if name != function}
    assert Tick().tell(60, **told).doubts == {ENGINE.metric}


@pytest.mark.parametrize(
    "late",
    [
        {"max": 0.4},  # an idle maximum beside the mean of a busy window
        {"min": 0.6},
        {"avg": 0.9},
        {"avg": 0.1},
        {"count": 0},
        {"avg": math.nan},
    ],
)
def test_a_mean_outside_of_its_own_range_puts_its_series_in_doubt(late: dict[str, float]) -> None:
    assert Tick().tell(60, **WHOLE).doubts == set()
    assert Tick().tell(60, **(WHOLE | late)).doubts == {ENGINE.metric}


def test_a_mean_may_be_rounded() -> None:
    # 60 times 0.1 add up to 5.999999999999998.
    rounded = {"count": 60, "avg": 5.999999999999998 / 60, "min": 0.1, "max": 0.1}
    assert Tick().tell(60, **rounded).doubts == set()


def test_a_short_window_whose_answers_do_not_fit_is_doubted_as_well() -> None:
    assert Tick().tell(60, **WHOLE).tell(30, max=0.5, min=0.5).doubts == {ENGINE.metric}
    # No sample in half an hour is an answer, too.
    assert Tick().tell(60, **(WHOLE | {"count": 20})).doubts == set()


def test_a_short_window_with_samples_that_the_long_one_lacks_is_doubted() -> None:
    assert Tick().tell(30, **WHOLE).tell(60).doubts == {ENGINE.metric}


def test_signals_are_doubted_by_themselves() -> None:
    tick = Tick().tell(60, **WHOLE).tell(30, TENSOR.metric, count=30, avg=0.1, min=0, max=7)
    assert tick.doubts == {TENSOR.metric}
    device = tick.device(tick.raw((20, 7.0), (10, 0.2), metric=TENSOR.metric))
    assert [(w.present, w.invalid, w.maximum) for w in device.tensor] == [(1, 1, 0.2)]
    assert device.windows[1].present == 60


def test_two_series_of_which_one_spans_the_window_are_not_in_doubt() -> None:
    tick = Tick().tell(60, **WHOLE)
    assert tick.tell(60, ENGINE.metric, "b", count=10, avg=0.9, min=0.8, max=0.95).doubts == set()
    window = tick.device().windows[1]
    assert (window.present, window.mean) == (60, 0.5)
    assert (window.minimum, window.maximum) == (0.5, 0.95)


def test_two_series_that_may_follow_each_other_are() -> None:
    half = WHOLE | {"count": 30}
    tick = Tick().tell(60, **half).tell(60, ENGINE.metric, "b", **half)
    assert tick.doubts == {ENGINE.metric}


@pytest.mark.parametrize(("maximum", "doubts"), [(0.5, set()), (31_400, {UTILISATION.metric})])
def test_of_a_metric_that_decides_nothing_only_faults_are_looked_into(
    maximum: float, doubts: set[str]
) -> None:
    half = WHOLE | {"count": 30}
    tick = Tick().tell(60, **WHOLE).tell(60, UTILISATION.metric, **half)
    assert tick.tell(60, UTILISATION.metric, "b", **(half | {"max": maximum})).doubts == doubts


def test_raw_samples_that_nobody_asked_for_change_nothing() -> None:
    tick = Tick().tell(60, **WHOLE)
    stray = Raw(Key(ENGINE.metric, 7), Points([END_MS], [0.9]))
    assert tick.device(tick.raw((0, 0.9)), stray).windows[1].maximum == 0.5


# --- merging -------------------------------------------------------------------------------------

scrapes = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([0.0, 0.25, 0.5, 1.0, math.nan, 2.0])),
    unique_by=lambda point: point[0],
    max_size=20,
)


def a_series(points: list[tuple[int, float]], offset_ms: int) -> Points:
    ordered = sorted(points, key=lambda point: point[0])
    return Points([m * 60_000 + offset_ms for m, _ in ordered], [value for _, value in ordered])


def minute_by_minute(*replicas: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """What was measured each minute: the highest that can be true."""
    for minute in range(41):
        said = [value for points in replicas for at, value in points if at == minute]
        valid = [value for value in said if 0 <= value <= 1]
        if said:
            yield minute, max(valid, default=math.nan)


@given(one=scrapes, other=scrapes, offset=st.integers(-29_000, 29_000))
def test_replicas_are_merged_minute_by_minute(
    one: list[tuple[int, float]], other: list[tuple[int, float]], offset: int
) -> None:
    # Two servers scrape the same minute less than half an interval apart.
    merged = merge([a_series(one, 30_000), a_series(other, 30_000 + offset)], ENGINE, 60)
    told = [
        (at // 60_000, value if ENGINE.valid(value) else math.nan)
        for at, value in zip(merged.times, merged.values, strict=True)
    ]
    assert repr(told) == repr(list(minute_by_minute(one, other)))
    assert list(merged.times) == sorted(merged.times)


@given(points=scrapes, cuts=st.sets(st.integers(0, 40), max_size=3))
def test_series_that_follow_each_other_are_one(
    points: list[tuple[int, float]], cuts: set[int]
) -> None:
    edges = [0, *sorted(cuts), 41]
    pieces = [
        a_series([p for p in points if first <= p[0] < last], 0) for first, last in pairwise(edges)
    ]
    merged = merge(pieces[::-1], ENGINE, 60)
    whole = a_series(points, 0)
    assert list(merged.times) == list(whole.times)
    assert repr(list(merged.values)) == repr(list(whole.values))


def test_the_windows_end_where_they_were_asked_to() -> None:
    assert timedelta(milliseconds=END_MS) == END - datetime(1970, 1, 1, tzinfo=UTC)
    assert set(STATISTICS) == {COUNT, MEAN, MINIMUM, MAXIMUM}
