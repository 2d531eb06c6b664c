from datetime import UTC, datetime, timedelta, timezone

import pytest

from steward.clock import FixedClock, SystemClock
from steward.ports import Clock


def test_the_system_clock_tells_aware_utc_that_never_waits_for_less_than_asked() -> None:
    clock: Clock = SystemClock()
    before = clock.now()

    clock.sleep(0.01)

    assert before.utcoffset() == timedelta(0)
    assert clock.now() - before >= timedelta(seconds=0.009)  # timers may round by a tick


def test_a_fixed_clock_stands_still_until_somebody_waits() -> None:
    clock: Clock = FixedClock(datetime(2026, 11, 2, 12, 0, tzinfo=UTC))
    assert clock.now() == clock.now()

    clock.sleep(90.5)

    assert clock.now() == datetime(2026, 11, 2, 12, 1, 30, 500_000, tzinfo=UTC)


def test_a_fixed_clock_tells_its_moment_in_utc() -> None:
    paris = timezone(timedelta(hours=1))

    now = FixedClock(datetime(2026, 11, 2, 13, 0, tzinfo=paris)).now()

    assert now.isoformat() == "2026-11-02T12:00:00+00:00"


def test_a_time_without_offset_is_refused() -> None:
    naive = datetime(2026, 11, 2, 12, 0, tzinfo=UTC).replace(tzinfo=None)

    with pytest.raises(ValueError, match="2026-11-02T12:00:00 names no moment"):
        FixedClock(naive)
