"""When a capture looks, and how it cuts the past: by hand, and as properties."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.capture.chunks import SHORTEST, Chunk, cut
from local.capture.schedule import Period

NINE = datetime(2026, 11, 5, 9, tzinfo=UTC)
TEN = datetime(2026, 11, 5, 10, tzinfo=UTC)
PERIOD = Period(start=NINE, end=TEN, tick=timedelta(minutes=5))
SECONDS = st.integers(0, 4 * 86_400)


def at(minute: float) -> datetime:
    return NINE + timedelta(minutes=minute)


@pytest.mark.parametrize(
    ("looks", "now", "expected"),
    [
        ([], at(-30), at(0)),  # the period is still to come
        ([], at(12), at(12)),  # it has begun: look at once
        ([], at(90), at(60)),  # it is past: one look, which stands at its end
        ([at(0)], at(0.5), at(5)),
        ([at(0)], at(5.1), at(5)),  # due now
        ([at(12)], at(12.5), at(15)),  # from there on at the recording's ticks
        ([at(10)], at(27), at(25)),  # ticks missed while the machine slept: only the newest is due
        ([at(55)], at(60.1), at(60)),  # woken a little after the last tick
        ([at(60)], at(61), None),
        ([at(30)], at(90), None),  # what was missed is not made up: the cluster has moved on
    ],
)
def test_the_next_look(looks: list[datetime], now: datetime, expected: datetime | None) -> None:
    assert PERIOD.next_look(looks, now) == expected


def test_what_nobody_saw_is_named() -> None:
    looks = [at(0), at(5), at(30), at(35)]
    assert PERIOD.gaps(looks) == [(at(5), at(30)), (at(35), at(60))]
    assert PERIOD.gaps([at(5 * n) for n in range(13)]) == []


@given(start=SECONDS, length=SECONDS)
def test_the_pieces_of_a_period_cover_it_once(start: int, length: int) -> None:
    begin, end = NINE + timedelta(seconds=start), NINE + timedelta(seconds=start + length)
    pieces = list(cut("g", ("m",), begin, end))
    edges = [begin, *(piece.end for piece in pieces)]
    assert [piece.start for piece in pieces] == edges[:-1]  # each begins where the one before ends
    assert edges[-1] == end
    assert all(timedelta() < p.end - p.start <= timedelta(hours=1) for p in pieces)
    assert len({piece.name for piece in pieces}) == len(pieces)


@given(length=st.integers(1, 3600))
def test_halves_are_the_whole(length: int) -> None:
    piece = Chunk(group="g", metrics=("m",), start=NINE, end=NINE + timedelta(seconds=length))
    halves = piece.halves()
    assert (halves[0].start, halves[-1].end) == (piece.start, piece.end)
    if len(halves) == 1:
        assert piece.end - piece.start < 2 * SHORTEST  # so that halving comes to an end
    else:
        assert halves[0].end == halves[1].start
        assert all(half.end - half.start >= SHORTEST - timedelta(seconds=1) for half in halves)
