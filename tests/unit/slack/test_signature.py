"""Whether a request is Slack's: Slack's own worked example, and everything that is nearly one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steward.slack.signature import claimed, signed

# docs.slack.dev, "Verifying requests from Slack": secret, timestamp, body and signature.
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TIMESTAMP = "1531420618"
BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SIGNATURE = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
NOW = datetime.fromtimestamp(int(TIMESTAMP), UTC)


def headers(**changes: Any) -> dict[str, Any]:
    given = {"X-Slack-Request-Timestamp": TIMESTAMP, "X-Slack-Signature": SIGNATURE}
    return given | {name.replace("_", "-"): value for name, value in changes.items()}


def test_slacks_own_example_is_slacks() -> None:
    assert claimed(headers(), NOW) == (TIMESTAMP, SIGNATURE)
    assert signed(SECRET, TIMESTAMP, SIGNATURE, BODY)


@pytest.mark.parametrize("change", [str.lower, str.upper, str.title])
def test_names_of_headers_come_in_any_case(change: Any) -> None:
    assert claimed({change(name): value for name, value in headers().items()}, NOW)


@pytest.mark.parametrize(
    ("minutes", "seconds", "ours"),
    [(5, 0, True), (5, 1, False), (7, 0, False), (-5, 0, True), (-5, -1, False), (-7, 0, False)],
)
def test_five_minutes_either_way(minutes: int, seconds: int, *, ours: bool) -> None:
    now = NOW + timedelta(minutes=minutes, seconds=seconds)
    assert bool(claimed(headers(), now)) is ours


@pytest.mark.parametrize(
    "timestamp", ["n/a", "", " ", "1531420618.0", "-1531420618", "\uff11531420618", "9" * 400]
)
def test_a_timestamp_that_is_none_is_nobodys(timestamp: str) -> None:
    given = headers() | {"X-Slack-Request-Timestamp": timestamp}
    assert claimed(given, NOW) is None


@pytest.mark.parametrize("missing", ["X-Slack-Request-Timestamp", "X-Slack-Signature"])
def test_what_is_missing_is_nobodys(missing: str) -> None:
    assert claimed({k: v for k, v in headers().items() if k != missing}, NOW) is None


@pytest.mark.parametrize(
    "signature",
    [
        "",
        SIGNATURE.removeprefix("v0="),
        SIGNATURE.replace("v0", "v1"),
        SIGNATURE.upper(),
        SIGNATURE[:-1],
        SIGNATURE + "0",
        SIGNATURE + "\n",
        SIGNATURE[:-1] + "é",
        SIGNATURE[:-1] + "\uff11",
    ],
)
def test_a_signature_of_another_form_is_nobodys(signature: str) -> None:
    assert claimed(headers() | {"X-Slack-Signature": signature}, NOW) is None


@pytest.mark.parametrize(
    ("secret", "timestamp", "signature", "body"),
    [
        ("another", TIMESTAMP, SIGNATURE, BODY),
        (SECRET, "1531420619", SIGNATURE, BODY),
        (SECRET, TIMESTAMP, SIGNATURE[:-1] + "4", BODY),
        (SECRET, TIMESTAMP, SIGNATURE, BODY + b" "),
        (SECRET, TIMESTAMP, SIGNATURE, BODY.replace(b"%2F", b"/")),  # parsed and written again
        (SECRET, TIMESTAMP, "v0=", BODY),
    ],
)
def test_anything_else_is_not_signed(
    secret: str, timestamp: str, signature: str, body: bytes
) -> None:
    assert not signed(secret, timestamp, signature, body)
