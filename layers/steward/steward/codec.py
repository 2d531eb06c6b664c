"""Stored JSON to and from the frozen nouns: pydantic at the edge, one adapter a type, made lazily."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from steward.errors import PermanentError


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def dump(kind: type, value: object) -> bytes:
    """Write a noun as JSON."""
    return _adapter(kind).dump_json(value)


def to_plain(kind: type, value: object) -> Any:
    """Turn a noun into plain JSON values."""
    return _adapter(kind).dump_python(value, mode="json")


def load[T](kind: type[T], data: bytes | str, where: str) -> T:
    """Read a noun from JSON.

    Raises
    ------
    PermanentError
        The data is not what this version writes; names where it was read and the first fault.
    """
    try:
        result: T = _adapter(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        raise PermanentError(
            f"{where}: not a stored {kind.__name__}: {path}: {first['msg']} "
            f"({error.error_count()} faults); stored by another version?"
        ) from error
    return result
