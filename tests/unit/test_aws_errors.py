from typing import Any

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    IncompleteReadError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from steward.aws_errors import CLIENT_LIMITS, aws_call
from steward.errors import (
    ConflictError,
    DeniedError,
    PermanentError,
    RetryableError,
    StewardError,
)

URL = "http://127.0.0.1"


def refusal(code: str, status: int) -> ClientError:
    answer: Any = {
        "Error": {"Code": code, "Message": "because"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, "Operation")


def raised(error: Exception) -> StewardError:
    with pytest.raises(StewardError) as caught, aws_call("read s3://b/k", denied="grant it"):
        raise error
    assert caught.value.__cause__ is error  # the log shows what AWS really said
    assert str(caught.value).startswith("read s3://b/k: ")
    return caught.value


# Codes and statuses as the services document them.
@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("SlowDown", 503, RetryableError),
        ("InternalError", 500, RetryableError),
        ("ServiceUnavailable", 503, RetryableError),
        ("ThrottlingException", 400, RetryableError),
        ("ProvisionedThroughputExceededException", 400, RetryableError),
        ("RequestTimeout", 400, RetryableError),
        ("TooManyRequests", 429, RetryableError),
        ("RequestTimeTooSkewed", 403, RetryableError),
        ("ExpiredTokenException", 400, RetryableError),
        ("PreconditionFailed", 412, ConflictError),
        ("ConditionalRequestConflict", 409, ConflictError),
        ("ConditionalCheckFailedException", 400, ConflictError),
        ("AccessDenied", 403, DeniedError),
        ("AccessDeniedException", 400, DeniedError),
        ("KMS.AccessDeniedException", 400, DeniedError),
        ("403", 403, DeniedError),
        ("UnrecognizedClientException", 400, DeniedError),
        ("NoSuchBucket", 404, PermanentError),
        ("ResourceNotFoundException", 400, PermanentError),
        ("ValidationException", 400, PermanentError),
    ],
)
def test_a_refusal_becomes_the_error_that_says_what_to_do(
    code: str, status: int, kind: type[StewardError]
) -> None:
    error = raised(refusal(code, status))

    assert type(error) is kind
    assert f"{code} (HTTP {status}): because" in str(error)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectTimeoutError(endpoint_url=URL), RetryableError),
        (ReadTimeoutError(endpoint_url=URL), RetryableError),
        (EndpointConnectionError(endpoint_url=URL), RetryableError),
        (IncompleteReadError(actual_bytes=1, expected_bytes=2), RetryableError),
        (NoCredentialsError(), PermanentError),
        (ParamValidationError(report="Bucket is empty"), PermanentError),
    ],
)
def test_a_call_without_an_answer_is_tried_again_and_one_that_was_never_made_is_not(
    error: BotoCoreError, kind: type[StewardError]
) -> None:
    assert type(raised(error)) is kind


def test_a_denial_says_what_to_grant() -> None:
    assert str(raised(refusal("AccessDenied", 403))).endswith("grant it")


def test_what_is_not_from_aws_passes_unchanged() -> None:
    with pytest.raises(KeyError, match="ours"), aws_call("read"):
        raise KeyError("ours")


def test_three_tries_of_a_call_end_before_a_minute() -> None:
    # Connect and read limits of three tries: with botocore's 60 s each, Lambda would be cut off.
    limits: Any = CLIENT_LIMITS

    tries = limits.retries["total_max_attempts"]

    assert tries * (limits.connect_timeout + limits.read_timeout) < 60
