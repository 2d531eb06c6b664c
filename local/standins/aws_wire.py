"""What the stand-ins of AWS services share: refusals, pages, and the wire form of an answer."""

import json
from functools import cached_property
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StructureShape
from botocore.session import get_session
from werkzeug.wrappers import Response

from local.recording import moment

JSON_1_1 = "application/x-amz-json-1.1"
LARGEST_PAGE = 100

_STATUS = (
    ("AccessDenied", 403),
    ("NotFound", 404),
    ("Throttl", 429),
    ("TooManyRequests", 429),
    ("ServiceUnavailable", 503),
    ("Internal", 500),
)

type Document = dict[str, Any]


class RefusedError(Exception):
    """An error answer, in the form that both protocols' clients read."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message

    def response(self) -> Response:
        """Build the HTTP answer, with the status that fits the code."""
        status = next((status for part, status in _STATUS if part in self.code), 400)
        body = {"__type": self.code, "message": self.message}
        response = json_response(body, JSON_1_1, status)
        response.headers["x-amzn-ErrorType"] = self.code
        return response


class Wire:
    """Turns recorded answers into the wire form: times become epoch seconds, the rest passes."""

    def __init__(self, service: str) -> None:
        self._service = service

    @cached_property
    def _shapes(self) -> dict[str, Shape | None]:
        model = get_session().get_service_model(self._service)
        return {name: model.operation_model(name).output_shape for name in model.operation_names}

    def encode(self, operation: str, answer: Document) -> object:
        """Encode the answer of an operation; one that the model lacks passes as it is."""
        return _encode(answer, self._shapes.get(operation))


def _encode(value: object, shape: Shape | None) -> object:
    match shape, value:
        case StructureShape(), dict():
            members = shape.members
            return {key: _encode(item, members.get(key)) for key, item in value.items()}
        case ListShape(), list():
            return [_encode(item, shape.member) for item in value]
        case MapShape(), dict():
            return {key: _encode(item, shape.value) for key, item in value.items()}
        case Shape(type_name="timestamp"), str():
            return _epoch(value)
    return value


def _epoch(value: str) -> float | str:
    try:
        return moment(value).timestamp()
    except ValueError:
        return value  # the client has to cope with what was recorded


def recorded(answer: Document | None, operation: str) -> Document:
    """Return a recorded answer.

    Raises
    ------
    RefusedError
        As it was recorded, or as its absence says.
    """
    if answer is None:
        raise RefusedError(
            "AccessDeniedException",
            f"not authorized to perform: {operation} (the recording does not hold it)",
        )
    error = answer.get("Error")
    if isinstance(error, dict) and "Code" in error:
        raise RefusedError(str(error["Code"]), str(error.get("Message", "")))
    return answer


def page(answer: Document, key: str, token_key: str, size: object, token: object) -> Document:
    """Cut one page out of a merged list; the token is the position it starts at.

    Raises
    ------
    RefusedError
        There is no such page.
    """
    items = answer.get(key)
    if not isinstance(items, list):
        return answer
    first, count = _whole(token or 0, "the token"), _whole(size, "MaxResults")
    if not 1 <= count <= LARGEST_PAGE:
        raise RefusedError("ValidationException", f"MaxResults is {count}, not 1 to {LARGEST_PAGE}")
    cut = {name: value for name, value in answer.items() if name != token_key}
    cut[key] = items[first : first + count]
    return cut | ({token_key: str(first + count)} if first + count < len(items) else {})


def _whole(value: object, what: str) -> int:
    if not str(value).isdecimal():
        raise RefusedError("ValidationException", f"{what} is {value!r}")
    return int(str(value))


def json_response(body: object, content_type: str, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(json.dumps(body), status=status, content_type=content_type)
