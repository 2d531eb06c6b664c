"""The two clocks: the real one, and one that moves only when told to."""

import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The machine's time, in UTC."""

    def now(self) -> datetime:
        """Return the current time."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait for real."""
        time.sleep(seconds)


class FixedClock:
    """A time that stands still, and that waiting moves forward at once.

    Parameters
    ----------
    at : datetime
        Where it stands; must carry an offset, and is told in UTC.

    Raises
    ------
    ValueError
        `at` carries no offset, so that it names no moment.
    """

    def __init__(self, at: datetime) -> None:
        if at.tzinfo is None:
            raise ValueError(f"{at.isoformat()} names no moment; give it an offset")
        self._at = at.astimezone(UTC)

    def now(self) -> datetime:
        """Return the time at which it stands."""
        return self._at

    def sleep(self, seconds: float) -> None:
        """Move forward without waiting."""
        self._at += timedelta(seconds=seconds)
