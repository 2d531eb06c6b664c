"""Members of SageMaker's and EKS's answers, each with the type that its service promises."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import isfinite

from steward.errors import PermanentError
from steward.sources.control_plane.listing import Listing


class MalformedError(PermanentError):
    """An answer lacks what its service promises; the text is the path of the member and why."""


def get[T](item: object, key: str, kind: type[T]) -> T | None:
    """Return a member; None where it is absent or null.

    Raises
    ------
    MalformedError
        It is of another type, or `item` has no members at all.
    """
    if not isinstance(item, Mapping):
        raise MalformedError(f"{key} is missing: {type(item).__name__} in place of an object")
    value = item.get(key)
    if value is None:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MalformedError(f"{key} is {value!r:.40}, not {kind.__name__}")
    return value


def need[T](item: object, key: str, kind: type[T]) -> T:
    """Return a member that has to be there.

    Raises
    ------
    MalformedError
        It is missing or of another type.
    """
    value = get(item, key, kind)
    if value is None:
        raise MalformedError(f"{key} is missing")
    return value


def count(item: object, key: str) -> int | None:
    """Return a number of things; None where it is absent.

    Raises
    ------
    MalformedError
        It is no whole number, or negative.
    """
    value = get(item, key, int)
    if value is not None and value < 0:
        raise MalformedError(f"{key} is {value}: negative")
    return value


def amount(item: object, key: str) -> float | None:
    """Return an amount, written as a whole number or not; None where it is absent.

    Raises
    ------
    MalformedError
        It is no finite number, or negative.
    """
    whole = isinstance(item, Mapping) and isinstance(item.get(key), int)
    value = get(item, key, int if whole else float)
    if value is not None and not (isfinite(value) and value >= 0):
        raise MalformedError(f"{key} is {value}: not an amount")
    return None if value is None else float(value)


def moment(item: object, key: str) -> datetime | None:
    """Return a time in UTC; None where it is absent.

    Raises
    ------
    MalformedError
        It is no time.
    """
    value = get(item, key, datetime)
    try:
        return None if value is None else value.astimezone(UTC)
    except OverflowError as error:
        raise MalformedError(f"{key} is {value}: outside the calendar") from error


def each[T](item: object, key: str, make: Callable[[object], T]) -> tuple[T, ...]:
    """Make a noun of each item of a list whose items only together mean something.

    Raises
    ------
    MalformedError
        There is no such list, or an item is at fault: named with its path.
    """
    made = []
    for index, one in enumerate(need(item, key, list)):
        try:
            made.append(make(one))
        except MalformedError as error:
            raise MalformedError(f"{key}[{index}].{error}") from error
    return tuple(made)


def listing[T](
    item: object, key: str, make: Callable[[object], T], name: str, after: Listing[T] | None = None
) -> Listing[T]:
    """Make a noun of each item of a list; an item at fault is left out and named.

    Parameters
    ----------
    name : str
        The member that names an item; one without it is named by its position.
    after : Listing or None
        A list that this one continues.

    Raises
    ------
    MalformedError
        There is no such list.
    """
    found: Listing[T] = after or Listing()
    for one in need(item, key, list):
        found.seen += 1
        try:
            found.found.append(make(one))
        except MalformedError as error:
            found.leave_out(_name(one, name) or f"item {found.seen - 1}", str(error))
    return found


def _name(item: object, key: str) -> str | None:
    name = item.get(key) if isinstance(item, Mapping) else None
    return name if isinstance(name, str) else None
