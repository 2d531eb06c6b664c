"""Nouns as versioned JSON: what every store writes, and its refusal of what it does not know."""

import msgspec

from steward import codec
from steward.errors import PermanentError

REMEDY = "deploy the version that wrote it, or delete it and let the next tick start anew"


class Versioned(msgspec.Struct, frozen=True, kw_only=True):
    """The one field that is read before anything else."""

    schema: int


def encode(kind: type, value: object, where: str) -> bytes:
    """Write a noun as JSON.

    Raises
    ------
    PermanentError
        It holds something that JSON cannot carry (evidence takes any value); names the place.
    """
    try:
        return codec.dump(value)
    except ValueError as error:
        raise PermanentError(
            f"{where}: this {kind.__name__} cannot be written as JSON: {error}; "
            "mend what put the value there"
        ) from error


def decode[T](kind: type[T], data: bytes, schema: int, where: str, remedy: str = REMEDY) -> T:
    """Read a noun whose JSON names its schema version.

    Raises
    ------
    PermanentError
        Another schema than the expected one, or not such a noun; names the place.
    """
    check_schema(codec.load(Versioned, data, where).schema, schema, where, remedy)
    return codec.load(kind, data, where)


def check_schema(found: int, expected: int, where: str, remedy: str = REMEDY) -> None:
    """Refuse a schema version that this code does not read.

    Raises
    ------
    PermanentError
        Names the place, both versions and the remedy.
    """
    if found != expected:
        raise PermanentError(
            f"{where}: has schema {found}, this version reads schema {expected}; {remedy}"
        )
