"""What a Kubernetes API server does to a list on its way out: selection, paging, reduced forms."""

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_SELECTABLE = {
    "": ("metadata.name", "metadata.namespace"),
    "pods": ("spec.nodeName", "status.phase"),
    "events": ("involvedObject.kind", "involvedObject.namespace", "involvedObject.name"),
}
"""Fields that a list may be selected by, of any resource and of some."""

type Document = Mapping[str, Any]


class RefusedError(Exception):
    """Ends a request with a Status object."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def field_of(item: object, *path: str) -> str:
    """Give a field as text; empty where the object has no such field."""
    for key in path:
        item = item.get(key) if isinstance(item, dict) else None
    return "" if item is None else str(item)


def selected(item: object, selector: str, resource: str) -> bool:
    """Tell whether an object matches a field selector (`=`, `==` and `!=`, joined by commas).

    Raises
    ------
    RefusedError
        400: the selector names another field than those that a real server knows and this serves.
    """
    for term in filter(None, selector.split(",")):
        name, operator, value = term.partition("!=") if "!=" in term else term.partition("=")
        if name not in (*_SELECTABLE[""], *_SELECTABLE.get(resource, ())) or not operator:
            raise RefusedError(400, f"field label not supported: {name}")
        if (field_of(item, *name.split(".")) == value.lstrip("=")) is (operator == "!="):
            return False
    return True


def partial(item: object) -> object:
    """Reduce an object to its metadata, as for a client that asks for PartialObjectMetadata."""
    if not isinstance(item, dict):
        return item
    meta = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {**meta, "metadata": item.get("metadata", {})}


def without_type(item: object) -> object:
    """Drop kind and version: lists of built-in resources do not repeat them in their items."""
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if key not in {"kind", "apiVersion"}}


def limit_of(text: str | None) -> int:
    """Read a page size; 0 is no limit, and 400 what is not a number."""
    if text is not None and not text.isdecimal():
        raise RefusedError(400, f"limit {text!r} is not a number")
    return int(text or 0)


def token(start: int, at: datetime) -> str:
    """Write a continue token: where the next page starts, and the moment that the list is of."""
    return base64.urlsafe_b64encode(json.dumps([start, at.isoformat()]).encode()).decode()


def position(text: str | None, now: datetime) -> tuple[int, datetime]:
    """Read a continue token: a list is of one moment, however long its pages take."""
    if not text:
        return 0, now
    try:
        start, at = json.loads(base64.urlsafe_b64decode(text))
        return int(start), datetime.fromisoformat(at)
    except (binascii.Error, TypeError, ValueError) as error:
        raise RefusedError(400, "continue key is not valid") from error


def status(code: int, message: str) -> Document:
    """Write the Status object that explains a refusal."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(code, "Unknown"),
        "code": code,
    }


def not_found(what: str) -> RefusedError:
    """Refuse a path that no API serves."""
    return RefusedError(404, f"the server could not find the requested resource ({what})")
