"""Numbers and times as every output writes them: the same bytes for the same facts."""

from datetime import UTC, datetime
from typing import Any


def tidy(value: float | None) -> Any:
    """Round to six digits after the point; whole numbers become integers; None stays None."""
    if value is None:
        return None
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded


def dollars(value: float | None) -> Any:
    """Round to cents; None (no price) stays None."""
    return None if value is None else tidy(round(value, 2))


def stamp(when: datetime) -> str:
    """Write a time as `YYYY-MM-DDTHH:MM:SSZ`."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
