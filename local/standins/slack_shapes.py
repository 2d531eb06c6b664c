"""Checks that a JSON value has a shape; each fault is named in Slack's words, with its pointer.

A check takes a value and the JSON pointer to it, and gives its faults. Nulls have no place in any
shape, and a property that a shape does not know is a fault.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

type Check = Callable[[Any, str], Iterator[str]]
type Fields = Mapping[str, Check]


def fault(message: str, at: str) -> str:
    """Write one line of Slack's `response_metadata.messages`."""
    return f"[ERROR] {message} [json-pointer:{at}]"


def string(most: int, *, least: int = 1) -> Check:
    """Check a string and its length in characters."""

    def check(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield fault("must be a string", at)
        elif len(value) < least:
            yield fault(f"must be more than {least - 1} characters", at)
        elif len(value) > most:
            yield fault(f"must be less than {most + 1} characters", at)

    return check


def whole(least: int, most: int) -> Check:
    """Check an integer and its range."""

    def check(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, int) or isinstance(value, bool):
            yield fault("must be an integer", at)
        elif not least <= value <= most:
            yield fault(f"must be from {least} to {most}", at)

    return check


def number(value: Any, at: str) -> Iterator[str]:
    """Check a number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        yield fault("must be a number", at)


def flag(value: Any, at: str) -> Iterator[str]:
    """Check a truth value."""
    if not isinstance(value, bool):
        yield fault("must be a boolean", at)


def choice(*allowed: str) -> Check:
    """Check a string that is one of a few."""

    def check(value: Any, at: str) -> Iterator[str]:
        if value not in allowed:
            yield fault(f"must be one of: {', '.join(allowed)}", at)

    return check


def listed(item: Check, most: int, *, least: int = 1) -> Check:
    """Check a list, its length and each item."""

    def check(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield fault("must be an array", at)
            return
        if len(value) < least:
            yield fault(f"must provide at least {least} items", at)
        if len(value) > most:
            yield fault(f"no more than {most} items allowed", at)
        for index, one in enumerate(value):
            yield from item(one, f"{at}/{index}")

    return check


def shape(required: Fields, optional: Fields | None = None) -> Check:
    """Check an object: fields that it must have, and fields that it may have besides `type`."""
    known = {**required, **(optional or {})}

    def check(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield fault("must be an object", at)
            return
        for name in required:
            if name not in value:
                yield fault(f"missing required field: {name}", at)
        for name, field in value.items():
            if name in known:
                yield from known[name](field, f"{at}/{name}")
            elif name != "type":
                yield fault(f"invalid additional property: {name}", at)

    return check


def typed(shapes: Fields) -> Check:
    """Check an object by the shape that its `type` names."""

    def check(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield fault("must be an object", at)
        elif value.get("type") not in shapes:
            yield fault(f"unsupported type: {value.get('type')}", f"{at}/type")
        else:
            yield from shapes[value["type"]](value, at)

    return check


def unchecked(value: Any, at: str) -> Iterator[str]:
    """Take anything but null."""
    if value is None:
        yield fault("must be an object", at)
