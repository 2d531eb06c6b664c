"""The pager's stand-in, called by boto3 itself through the rig."""

from datetime import UTC, datetime

import boto3
import pytest
from botocore.exceptions import ClientError

from local.recording import Recording
from local.rig import environment, serve

AT = datetime(2026, 11, 5, 10, 30, tzinfo=UTC)
TOPIC = "arn:aws:sns:eu-west-1:111122223333:pager"


@pytest.fixture
def rig(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICS", "recorded")
    (tmp_path / "recording.yaml").write_text("cluster: c\nnow: 2026-11-05T10:30:00Z\n")
    recording = Recording.open(tmp_path)
    with serve(recording, ["c"], lambda: AT) as rig, environment(rig.url):
        yield rig


@pytest.fixture
def topics(rig):
    return boto3.Session().client("sns", region_name="eu-west-1")


def test_what_is_published_is_kept_with_its_time(rig, topics):
    topics.publish(TopicArn=TOPIC, Subject="GPU Steward: c", Message="8 GPUs · équipe\n<b>")
    assert rig.pages == [
        {
            "at": "2026-11-05T10:30:00Z",
            "topic_arn": TOPIC,
            "subject": "GPU Steward: c",
            "message": "8 GPUs · équipe\n<b>",
        }
    ]
    assert rig.calls == []


def test_boto3_reads_the_answer(topics):
    first, same = (topics.publish(TopicArn=TOPIC, Message="a") for _ in range(2))
    assert first["MessageId"] == same["MessageId"]
    other = topics.publish(TopicArn=TOPIC, Message="b")
    assert other["MessageId"] != first["MessageId"]


def test_nothing_but_publishing_is_answered(rig, topics):
    with pytest.raises(ClientError, match="the rig publishes only"):
        topics.list_topics()
    assert rig.pages == []
