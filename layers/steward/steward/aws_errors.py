"""How AWS calls fail here: how long they may take, and which of our errors a failure becomes."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ClientError,
    ConnectionError,  # noqa: A004  # botocore's own, not the built-in
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
)

from steward.errors import (
    ConflictError,
    DeniedError,
    PermanentError,
    RetryableError,
    StewardError,
)

CLIENT_LIMITS = Config(
    connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3}
)
"""For every client of stores and sinks: botocore's own 60 s outlive most function time-outs."""

HURRIED_LIMITS = Config(
    connect_timeout=1, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 1}
)
"""For what somebody in Slack waits for: three seconds in all, the function's own start included."""

_LOST_ON_THE_WAY = (
    ChecksumError,
    ConnectionError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
)
_CONFLICT = {"ConditionalCheckFailedException", "ConditionalRequestConflict", "PreconditionFailed"}
# Throttling codes as botocore's standard retry mode knows them; those of clocks and sessions that
# a frozen and thawed execution environment meets once and then no more.
_RETRYABLE = {
    "BandwidthLimitExceeded",
    "ExpiredToken",
    "ExpiredTokenException",
    "KmsThrottled",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestExpired",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "RequestTimeTooSkewed",
    "RequestTimeout",
    "RequestTimeoutException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
}
_DENIED = {
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_MISSING = {
    "AWS.SimpleQueueService.NonExistentQueue",
    "NoSuchBucket",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
}


@contextmanager
def aws_call(doing: str, *, denied: str = "grant it to the function's role") -> Iterator[None]:
    """Turn what botocore raises inside the block into one of our errors.

    Parameters
    ----------
    doing : str
        What the call does and where, for the message: `read s3://bucket/key`.
    denied : str
        What to do when it is refused.

    Raises
    ------
    ConflictError
        HTTP 412 or 409, or a condition that failed: somebody else wrote first.
    RetryableError
        No answer in time, a broken transfer, a 5xx, a throttled call, a token that ran out.
    DeniedError
        HTTP 401 or 403, or a code that says so.
    PermanentError
        Everything else: it stays wrong until somebody changes something.
    """
    try:
        yield
    except ClientError as error:
        raise _translate(error, doing, denied) from error
    except _LOST_ON_THE_WAY as error:
        raise RetryableError(f"{doing}: {error}; the next run tries again") from error
    except BotoCoreError as error:
        raise PermanentError(
            f"{doing}: {error}; check the function's role, region and settings"
        ) from error


def error_code(error: ClientError) -> str:
    """Return the service's code of a refusal (`404` for a HEAD request, which has no body)."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _translate(error: ClientError, doing: str, denied: str) -> StewardError:
    code = error_code(error)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    message = error.response.get("Error", {}).get("Message", "")
    said = f"{doing}: {code} (HTTP {status}): {message}"
    if code in _RETRYABLE or status == 429 or status >= 500:
        return RetryableError(f"{said}; the next run tries again")
    if code in _CONFLICT or status in {409, 412}:
        return ConflictError(f"{said}; somebody else wrote first: read again and repeat")
    if code in _DENIED or "AccessDenied" in code or status in {401, 403}:
        return DeniedError(f"{said}; {denied}")
    if code in _MISSING:
        return PermanentError(f"{said}; it does not exist: check the name in the settings")
    return PermanentError(f"{said}; the request itself is refused, a repeat does not help")
