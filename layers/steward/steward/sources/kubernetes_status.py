"""What an API server's answer means: a document, or the error that its Status object explains."""

from collections.abc import Mapping
from typing import Any

import msgspec

from steward.errors import (
    DeniedError,
    NotInstalledError,
    PermanentError,
    RetryableError,
    StewardError,
)

_REMEDIES = {
    401: "map the role with an EKS access entry",
    403: "grant it with docs/access/clusterrole.yaml",
}
_LONGEST_DETAIL = 300


class ExpiredError(RetryableError):
    """The list changed too much while it was paged (410): it starts again from its beginning."""


def read_answer(path: str, status: int, body: bytes) -> dict[str, Any]:
    """Read the document in an answer.

    Raises
    ------
    DeniedError
        401 or 403.
    NotInstalledError
        404: the server does not know the path.
    ExpiredError
        410: the position in the list is no longer known.
    RetryableError
        5xx.
    PermanentError
        Any other refusal, or an answer that is not a JSON object.
    """
    document = _parse(body)
    if isinstance(document, dict) and document.get("kind") == "Status":
        status = _code(document, status)
    if status != 200:
        raise _refusal(path, status, _message(document, body))
    if not isinstance(document, dict):
        raise PermanentError(f"{path}: the answer is not a JSON object")
    return document


def _parse(body: bytes) -> object:
    try:
        document: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return document


def _code(status: Mapping[str, Any], answered: int) -> int:
    """Give the code of a `Status` object, which may stand in an answer that claims success."""
    code = status.get("code")
    return code if isinstance(code, int) and answered == 200 else answered


def _message(document: object, body: bytes) -> str:
    stated = document.get("message") if isinstance(document, dict) else None
    text = stated if isinstance(stated, str) else body.decode("utf-8", "replace")
    return " ".join(text.split())[:_LONGEST_DETAIL]


def _refusal(path: str, status: int, message: str) -> StewardError:
    text = f"{path}: {status} {message}".rstrip()
    if status in _REMEDIES:
        return DeniedError(f"{text}; {_REMEDIES[status]}")
    if status == 404:
        return NotInstalledError(text)
    if status == 410:
        return ExpiredError(text)
    return RetryableError(text) if status >= 500 else PermanentError(text)
