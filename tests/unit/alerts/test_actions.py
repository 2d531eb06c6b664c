"""Spans of time as people write them."""

from datetime import UTC, datetime, timedelta

import pytest

from steward.alerts.actions import SpanError, end_of

NOW = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)  # a Thursday


@pytest.mark.parametrize(
    ("span", "length"),
    [
        ("45m", timedelta(minutes=45)),
        ("4h", timedelta(hours=4)),
        (" 7D ", timedelta(days=7)),
        ("2 w", timedelta(days=14)),
        ("90d", timedelta(days=90)),
    ],
)
def test_a_number_and_a_unit(span: str, length: timedelta) -> None:
    assert end_of(span, NOW, "UTC") == NOW + length


@pytest.mark.parametrize("span", ["", "4", "h", "-4h", "0h", "91d", "4 hours", "tuesday", "٤h"])
def test_what_is_no_span_is_refused(span: str) -> None:
    with pytest.raises(SpanError, match="45m, 4h, 7d or 2w"):
        end_of(span, NOW, "UTC")


@pytest.mark.parametrize(
    ("now", "zone", "end"),
    [
        # Nine on Monday 9 November, where the cluster is.
        ("2026-11-05T12:00:00+00:00", "UTC", "2026-11-09T09:00:00+00:00"),
        ("2026-11-05T12:00:00+00:00", "Europe/Madrid", "2026-11-09T08:00:00+00:00"),
        ("2026-11-09T08:59:00+00:00", "UTC", "2026-11-09T09:00:00+00:00"),
        ("2026-11-09T09:00:00+00:00", "UTC", "2026-11-16T09:00:00+00:00"),
        # Sunday in UTC is Monday in Tokyo, past nine there: the next one.
        ("2026-11-09T00:30:00+00:00", "Asia/Tokyo", "2026-11-16T00:00:00+00:00"),
        # London leaves summer time on Sunday 25 October: nine is nine on both sides.
        ("2026-10-23T12:00:00+00:00", "Europe/London", "2026-10-26T09:00:00+00:00"),
    ],
)
def test_monday_is_the_clusters_next_monday_at_nine(now: str, zone: str, end: str) -> None:
    moment = datetime.fromisoformat(now)
    assert end_of("monday", moment, zone) == datetime.fromisoformat(end)
