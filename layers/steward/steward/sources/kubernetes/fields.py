"""Fields of a Kubernetes object, each with the type that its API promises.

Objects of the tick are decoded into shapes (:mod:`steward.sources.kubernetes.shapes`); those that
only an audit reads are small and few, and stay mappings.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from steward.cluster.quantity import parse
from steward.errors import PermanentError

type Time = str | int | float | None


class MalformedError(PermanentError):
    """An object lacks a field that its API promises, or holds something else there."""


def mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return an object field; an absent or null one is empty.

    Raises
    ------
    MalformedError
        The field holds something else.
    """
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedError(f"{key} is {value!r:.40}, not an object")
    return value


def objects(parent: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list field; an absent or null one is empty.

    Raises
    ------
    MalformedError
        The field is not a list, or holds something else than objects.
    """
    value = parent.get(key)
    if value is None:
        return
    if not isinstance(value, list):
        raise MalformedError(f"{key} is {value!r:.40}, not a list")
    for item in value:
        if not isinstance(item, dict):
            raise MalformedError(f"{key} holds {item!r:.40}, not an object")
        yield item


def text(parent: Mapping[str, Any], key: str) -> str:
    """Return a text field.

    Raises
    ------
    MalformedError
        It is absent, empty or not text.
    """
    value = optional_text(parent, key)
    if value is None:
        raise MalformedError(f"{key} is missing")
    return value


def optional_text(parent: Mapping[str, Any], key: str) -> str | None:
    """Return a text field; None where it is absent or empty, which Kubernetes holds for the same.

    Raises
    ------
    MalformedError
        It is not text.
    """
    value = parent.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise MalformedError(f"{key} is {value!r:.40}, not text")
    return value


def required(value: str | None, key: str) -> str:
    """Return a text; raises MalformedError where it is absent or empty."""
    if not value:
        raise MalformedError(f"{key} is missing")
    return value


def moment(value: Time, key: str) -> datetime | None:
    """Return a time in UTC; None where it is absent or null.

    Raises
    ------
    MalformedError
        It is neither RFC 3339 with an offset, as the API prints it, nor epoch seconds, as tools
        that re-encode objects do.
    """
    if value is None:
        return None
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        when = datetime.fromisoformat(value)
        if when.tzinfo is None:
            raise MalformedError(f"{key} is {value!r:.40}, a time without an offset")
        return when.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise MalformedError(f"{key} is {value!r:.40}, not a time") from error


def amount(value: object, key: str) -> Fraction | None:
    """Return a quantity; None where it is absent or null, and MalformedError where it is none."""
    if value is None:
        return None
    try:
        return parse(value)
    except ValueError as error:
        raise MalformedError(f"{key}: {error}") from error


def amounts(values: Mapping[str, Any] | None, key: str) -> dict[str, Fraction]:
    """Return the quantities of a resource list; raises MalformedError."""
    return {
        name: found
        for name, value in (values or {}).items()
        if (found := amount(value, f"{key}: {name}")) is not None
    }
