"""Members of SageMaker's and EKS's answers, each with the type that its service promises."""

from collections.abc import Callable, Mapping

from steward.errors import PermanentError


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


def each[T](item: object, key: str, make: Callable[[object], T]) -> tuple[T, ...]:
    """Make a noun of each item of a list.

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
