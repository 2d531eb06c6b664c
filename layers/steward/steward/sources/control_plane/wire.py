"""Answers as they came over the wire: one list item must not cost the others.

botocore's parser trusts its service: text in place of an object or of a time, in a member that is
read or not, ends in an exception, and the whole answer is lost. An item of a list at which it would
fail is cut down to its texts before: enough to name it, too little to be read. Faults outside lists
stay, and make the answer unreadable.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.model import ListShape, MapShape, StructureShape
from botocore.utils import parse_timestamp

if TYPE_CHECKING:
    from botocore.model import OperationModel, Shape

_REFUSED = 300
"""HTTP status from which an answer is an error, and of another shape."""


def mend(answer: dict[str, Any], operation: "OperationModel") -> list[str]:
    """Cut down the items of an answer's lists that are not in their service's form.

    Parameters
    ----------
    answer : dict
        `status_code` and `body` of a response that was not parsed yet; the body is replaced where
        an item was at fault.
    operation : OperationModel
        What was asked.

    Returns
    -------
    list of str
        Path of each fault, and what was there.
    """
    shape = operation.output_shape
    if answer["status_code"] >= _REFUSED or shape is None:
        return []
    try:
        body = json.loads(answer["body"])  # as the parser does: msgspec takes no NaN
    except ValueError:
        return []  # no JSON at all: the parser says so
    faults: list[str] = []
    for key, member in shape.members.items() if isinstance(body, dict) else ():
        items = body.get(key)
        if isinstance(member, ListShape) and isinstance(items, list):
            body[key] = [
                _cut(item, member.member, f"{key}[{index}]", faults)
                for index, item in enumerate(items)
            ]
    if faults:
        answer["body"] = json.dumps(body).encode()
    return faults


def _cut(item: object, shape: "Shape", path: str, faults: list[str]) -> object:
    found = list(_faults(item, shape, path))
    if not found:
        return item
    faults += found
    if not isinstance(item, Mapping) or not isinstance(shape, StructureShape):
        return None
    texts = (key for key, member in shape.members.items() if member.type_name == "string")
    return {key: item[key] for key in texts if key in item}


def _faults(value: object, shape: "Shape", path: str) -> Iterator[str]:
    """Find what botocore's parser would fail at."""
    match shape, value:
        case StructureShape(), Mapping():
            for key, member in shape.members.items():
                yield from _faults(value.get(key), member, f"{path}.{key}")
        case ListShape(), list():
            for index, one in enumerate(value):
                yield from _faults(one, shape.member, f"{path}[{index}]")
        case MapShape(), Mapping():
            for key, one in value.items():
                yield from _faults(one, shape.value, f"{path}.{key}")
        case _, None:
            return
        case StructureShape() | ListShape() | MapShape(), _:
            yield f"{path} is {value!r:.40}, not a {shape.type_name}"
        case _ if shape.type_name == "timestamp" and not _is_time(value):
            yield f"{path} is {value!r:.40}, not a time"


def _is_time(value: Any) -> bool:
    try:
        parse_timestamp(value)
    except (ValueError, TypeError, OverflowError, OSError, RuntimeError):
        return False
    return True
