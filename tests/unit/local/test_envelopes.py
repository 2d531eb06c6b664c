"""The envelopes of Lambda's event sources, held against other people's readers of them."""

import base64
from datetime import UTC, datetime
from urllib.parse import parse_qs

import pytest
from aws_lambda_powertools.utilities.data_classes import LambdaFunctionUrlEvent, SQSEvent
from slack_sdk.signature import Clock, SignatureVerifier

from local.envelopes import from_queue, from_slack

AT = datetime(2026, 11, 5, 10, 2, tzinfo=UTC)
FORM = "command=%2Fgpu&text=why+%C3%BC&x=%zz"


class At(Clock):
    def now(self) -> float:
        return AT.timestamp()


@pytest.fixture
def event():
    return from_slack(FORM, "secret", AT, "request-1")


def test_slacks_own_verifier_takes_the_signature(event):
    body = base64.b64decode(event["body"])
    assert body.decode() == FORM
    assert SignatureVerifier("secret", At()).is_valid_request(body, event["headers"])
    assert not SignatureVerifier("other", At()).is_valid_request(body, event["headers"])
    assert not SignatureVerifier("secret", At()).is_valid_request(body + b"&", event["headers"])


def test_a_form_comes_as_a_function_url_hands_it_over(event):
    # Payload format 2.0: names of headers in lower case, a form in base64 (AWS Lambda developer
    # guide, invoking Lambda function URLs).
    read = LambdaFunctionUrlEvent(event)
    assert (event["version"], read.http_method, read.path) == ("2.0", "POST", "/")
    assert read.is_base64_encoded is True
    assert read.decoded_body == FORM
    assert all(name == name.lower() for name in event["headers"])
    assert event["headers"]["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(read.decoded_body)["command"] == ["/gpu"]


def test_its_times_are_the_virtual_ones(event):
    # 2026-11-05T10:02:00Z is 1793872920 s after the epoch.
    assert event["headers"]["x-slack-request-timestamp"] == "1793872920"
    assert event["requestContext"]["timeEpoch"] == 1793872920000
    assert event["requestContext"]["time"] == "05/Nov/2026:10:02:00 +0000"


def test_only_messages_of_a_fifo_queue_have_a_group():
    (ordered,) = SQSEvent(from_queue("Q", [("1", "{}")], "ml-shared-01")).records
    (plain,) = SQSEvent(from_queue("Q", [("1", "{}")])).records
    assert ordered.attributes.message_group_id == "ml-shared-01"
    assert plain.attributes.message_group_id is None
