"""Stored JSON to and from the frozen nouns: msgspec at the edge (docs/decisions/0005)."""

from typing import Any

import msgspec

from steward.errors import PermanentError


def dump(value: object) -> bytes:
    """Write a noun as JSON.

    Raises
    ------
    ValueError
        It holds something that JSON cannot carry.
    """
    try:
        return msgspec.json.encode(value)
    except TypeError as error:
        raise ValueError(str(error)) from error


def load[T](kind: type[T], data: bytes | str, where: str) -> T:
    """Read a noun from JSON.

    Raises
    ------
    PermanentError
        The data is not what this version writes; names where it was read and the first fault.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PermanentError(
            f"{where}: not a stored {kind.__name__}: {error}; stored by another version?"
        ) from error


def convert[T](kind: type[T], value: Any, where: str) -> T:
    """Check plain JSON values against a model.

    Raises
    ------
    PermanentError
        They are not such a model; names where they came from and the first fault.
    """
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        raise PermanentError(f"{where}: not a {kind.__name__}: {error}") from error
