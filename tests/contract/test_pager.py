"""The pager over moto's SNS: what a subscriber gets, in which region, and what a refusal becomes."""

import json
from collections.abc import Callable, Iterator

import pytest
from boto3 import Session
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from steward.errors import ConfigError, DeniedError, PermanentError, RetryableError
from steward.sinks.pager import SnsPager, _subject

type Received = Callable[[], list[tuple[str | None, str]]]


@pytest.fixture(params=["us-east-1", "eu-central-1"])
def topic(aws: Session, request: pytest.FixtureRequest) -> Iterator[tuple[str, Received]]:
    """A topic of a region, and what a queue that listens to it has got: (subject, message)."""
    sns = aws.client("sns", region_name=request.param)
    sqs = aws.client("sqs", region_name=request.param)
    arn = sns.create_topic(Name="gpu-steward-pages")["TopicArn"]
    url = sqs.create_queue(QueueName="pages")["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=attributes["Attributes"]["QueueArn"])

    def received() -> list[tuple[str | None, str]]:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        envelopes = [json.loads(message["Body"]) for message in answer.get("Messages", [])]
        return [(envelope.get("Subject"), envelope["Message"]) for envelope in envelopes]

    yield arn, received
    sns.delete_topic(TopicArn=arn)
    sqs.delete_queue(QueueUrl=url)


def test_a_page_reaches_who_listens_to_the_topic(aws: Session, topic: tuple[str, Received]) -> None:
    arn, received = topic
    SnsPager(aws).publish(arn, "GPU Steward: ml-shared-01", "8 GPUs idle for 4 h · équipe-β")
    assert received() == [("GPU Steward: ml-shared-01", "8 GPUs idle for 4 h · équipe-β")]


def test_one_pager_serves_topics_of_several_regions(aws: Session) -> None:
    pager = SnsPager(aws)
    for region in ("us-east-1", "eu-west-1"):
        arn = aws.client("sns", region_name=region).create_topic(Name="pages")["TopicArn"]
        assert f":{region}:" in arn
        pager.publish(arn, "page", "message")  # elsewhere the topic would not be found


def test_a_topic_that_is_gone_is_named(aws: Session) -> None:
    arn = "arn:aws:sns:us-east-1:123456789012:absent"
    with pytest.raises(PermanentError, match=f"publish to {arn}"):
        SnsPager(aws).publish(arn, "page", "message")


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AuthorizationError", 403, DeniedError),
        ("Throttled", 429, RetryableError),
        ("InternalError", 500, RetryableError),
        ("InvalidParameter", 400, PermanentError),
    ],
)
def test_each_refusal_says_what_can_be_done(
    aws: Session, code: str, status: int, kind: type[Exception]
) -> None:
    arn = "arn:aws:sns:us-east-1:123456789012:pages"
    pager = SnsPager(aws)
    with Stubber(pager._reaching(arn)) as stub:
        stub.add_client_error("publish", code, http_status_code=status)
        with pytest.raises(kind, match=code) as caught:
            pager.publish(arn, "page", "message")
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "arn",
    ["", "pages", "arn:aws:sqs:us-east-1:123456789012:pages", "arn:aws:sns::123456789012:pages"],
)
def test_what_is_no_topic_is_refused_with_a_remedy(aws: Session, arn: str) -> None:
    with pytest.raises(ConfigError, match="write arn:aws:sns:"):
        SnsPager(aws).publish(arn, "page", "message")


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("plain", "plain"),
        ("équipe-β is idle", "equipe-? is idle"),
        (" two\r\nlines\tand\x00more ", "two lines and more"),
        ("x" * 99, "x" * 99),
        ("x" * 100, "x" * 96 + "..."),
        ("\n \u200b", "GPU Steward"),
        ("日本", "??"),
        ("", "GPU Steward"),
    ],
)
def test_a_subject_is_what_sns_takes(text: str, subject: str) -> None:
    assert _subject(text) == subject


@given(st.text())
def test_every_text_makes_a_subject(text: str) -> None:
    # SNS: ASCII, no line end or control character, less than 100 characters, a letter, digit or
    # punctuation mark first.
    subject = _subject(text)
    assert subject.isascii()
    assert subject.isprintable()
    assert 0 < len(subject) < 100
    assert subject[0] != " "
