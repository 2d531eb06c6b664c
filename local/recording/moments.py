"""Times as recordings hold them."""

from datetime import UTC, datetime
from pathlib import Path

from steward.errors import ConfigError

_NAME = "%Y%m%dT%H%M%SZ"


def moment(value: object) -> datetime:
    """Read a recorded time: ISO 8601 with any offset, or epoch seconds; returned in UTC.

    Raises
    ------
    ValueError
        It is neither; the text says what was found and what to write.
    """
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(
                f"{value!r} is not a time; write it like 2026-11-02T09:00:00Z"
            ) from None
        if when.tzinfo is None:
            raise ValueError(f"{value!r} lacks an offset; write it like 2026-11-02T09:00:00Z")
        return when.astimezone(UTC)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            raise ValueError(f"{value!r} is not a time in epoch seconds") from None
    raise ValueError(f"{value!r} is not a time; write it like 2026-11-02T09:00:00Z")


def named_moment(path: Path, name: str) -> datetime:
    """Read the time that a folder or file is named for; :class:`ConfigError` where it is none."""
    try:
        when = datetime.strptime(name, _NAME).replace(tzinfo=UTC)
    except ValueError:
        when = None
    # strptime takes a month of one digit; the name has exactly one spelling of each time.
    if when is None or moment_name(when) != name:
        raise ConfigError(f"{path}: the name is not a time; name it YYYYMMDDTHHMMSSZ (UTC)")
    return when


def moment_name(when: datetime) -> str:
    """Name a folder or file for a time, to the second."""
    return when.astimezone(UTC).strftime(_NAME)
