"""What an API server's answer means: a document, or the error that its Status object explains."""

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
    403: "grant it with the ClusterRoles in docs/access/",
}
_LONGEST_DETAIL = 300


class ExpiredError(RetryableError):
    """The list changed too much while it was paged (410): it starts again from its beginning."""


class Answer(msgspec.Struct, kw_only=True):
    """Any document of the API; a `Status` object explains a refusal in `code` and `message`."""

    kind: str | None = None
    code: Any = None
    message: Any = None


def read_answer[T: Answer](path: str, status: int, body: bytes | bytearray, shape: type[T]) -> T:
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
        Any other refusal, or an answer that is not the JSON document that was asked for.
    """
    if status != 200:
        raise _refusal(path, status, _stated(body))
    try:
        document = msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PermanentError(
            f"{path}: the answer is not the document asked for, or was cut off "
            f"({len(body)} bytes): {error}"
        ) from error
    if document.kind == "Status":
        # A refusal may stand in an answer that claims success.
        code = document.code if isinstance(document.code, int) else status
        raise _refusal(path, code, _tidy(document.message))
    return document


def _stated(body: bytes | bytearray) -> str:
    """Give what a refusal says: its Status' message, else its text."""
    try:
        message = msgspec.json.decode(body, type=Answer).message
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        message = None
    return _tidy(message) or _tidy(body[: 4 * _LONGEST_DETAIL].decode("utf-8", "replace"))


def _tidy(message: object) -> str:
    return " ".join(message.split())[:_LONGEST_DETAIL] if isinstance(message, str) else ""


def _refusal(path: str, status: int, message: str) -> StewardError:
    text = f"{path}: {status} {message}".rstrip()
    if status in _REMEDIES:
        return DeniedError(f"{text}; {_REMEDIES[status]}")
    if status == 404:
        return NotInstalledError(text)
    if status == 410:
        return ExpiredError(text)
    return RetryableError(text) if status >= 500 else PermanentError(text)
