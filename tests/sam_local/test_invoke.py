"""The built functions in Lambda's own runtime: every event, and a request's way to a Slack message."""

import json
import os
from urllib.parse import urlencode

import pytest

from local.cloud import NOW, cloud
from local.envelopes import from_slack
from local.invoke import bridge, invoke, raised
from local.replay import ROOT
from local.rig import SLACK_SECRET

pytestmark = pytest.mark.sam

SNAPSHOT = "snapshots/ml-shared-01/2026/11/05/20261105T120500Z.json.gz"
SAMPLED = {
    "answer_slack": {"exempt", "unsigned"},
    "evaluate_snapshot": {"idle_gpus"},
    "reconcile_alerts": {"evaluation", "action"},
    "record_checkpoints": {"heartbeat", "marker"},
    "run_command": {"status"},
}
"""Of these functions one event a trigger: a container costs seconds, and tests/template runs them all.
With EVERY_EVENT set, all of them run here too."""

EVENTS = [
    path
    for path in sorted((ROOT / "events").glob("*/*.json"))
    if "EVERY_EVENT" in os.environ or path.stem in SAMPLED.get(path.parent.name, {path.stem})
]


@pytest.fixture
def running(tmp_path):
    with cloud(tmp_path / "recording", bridge()) as up:
        yield up


def run(function, event, running):
    result = invoke(function, event, running)
    assert result.returncode == 0, result.stderr
    assert not raised(result.stdout.strip()), result.stdout + result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("path", EVENTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_event_runs_in_the_real_runtime(path, running):
    s3 = running.session.client("s3", endpoint_url=running.rig.url)
    bucket, function = running.variables["BUCKET"], path.parent.name
    # What the function is to make: the rig has made a snapshot of that time before.
    made = {"take_snapshot": SNAPSHOT, "record_checkpoints": "checkpoints/ml-shared-01/"}
    if function in made:
        s3.delete_object(Bucket=bucket, Key=made[function])
    answer = run(function, json.loads(path.read_text()), running)
    if function in made:
        found = s3.list_objects_v2(Bucket=bucket, Prefix=made[function])
        # The example policy names no marker: that one is nobody's.
        assert (found["KeyCount"] > 0) is (path.stem != "marker"), path.name
    expected = {
        "plan_ticks": {"asked": ["ml-shared-01"]},
        "take_snapshot": {"batchItemFailures": []},
        "reconcile_alerts": {"batchItemFailures": []},
        "record_checkpoints": {"batchItemFailures": []},
        "run_command": {"batchItemFailures": []},
    }
    if function in expected:
        assert answer == expected[function]
    elif function == "answer_slack":
        assert answer["statusCode"] == (401 if path.stem == "unsigned" else 200)
    else:
        assert answer["reason"] == "evaluated"


def test_a_request_becomes_a_slack_message(running):
    sqs = running.session.client("sqs", endpoint_url=running.rig.url)
    s3 = running.session.client("s3", endpoint_url=running.rig.url)

    def batch(queue):
        url = running.variables[queue]
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        for message in found["Messages"]:  # as Lambda does: a FIFO group waits for it
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return {
            "Records": [
                {
                    "messageId": message["MessageId"],
                    "receiptHandle": message["ReceiptHandle"],
                    "body": message["Body"],
                    "attributes": {"MessageGroupId": "ml-shared-01"},
                    "messageAttributes": {},
                    "eventSource": "aws:sqs",
                    "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:queue",
                    "awsRegion": "us-east-1",
                }
                for message in found["Messages"]
            ]
        }

    bucket = running.variables["BUCKET"]
    key = SNAPSHOT
    s3.delete_object(Bucket=bucket, Key=key)  # so that the one below was made by the function

    run("plan_ticks", {"scheduled_time": "2026-11-05T12:05:00Z"}, running)
    run("take_snapshot", batch("SNAPSHOT_REQUESTS_URL"), running)
    assert s3.head_object(Bucket=bucket, Key=key)["ContentLength"] > 1000
    taken = json.loads((ROOT / "events/evaluate_snapshot/telemetry.json").read_text())
    assert taken["detail"]["key"] == key
    run("evaluate_snapshot", taken, running)
    assert running.rig.calls == []
    run("reconcile_alerts", batch("EVALUATIONS_URL"), running)

    posts = [call for call in running.rig.calls if call["method"] == "chat.postMessage"]
    texts = [call["payload"]["text"] for call in posts]
    # 12:05: the notebook's eight since Tuesday, one of the sweep's two, the four of the evaluation;
    # the limit that binds, and the sweep that is preempted again and again.
    assert len(posts) == 5, texts
    assert any("8 GPUs idle" in text and "notebook-llm-eval" in text for text in texts)
    assert any("1 of 2 GPUs idle" in text and "sweep-vision" in text for text in texts)
    assert any("4 GPUs idle" in text and "checkpoint-eval" in text for text in texts)
    assert all(call["payload"]["blocks"] for call in posts)

    # Somebody presses Acknowledge on the first of them.
    first = posts[0]
    (buttons,) = [b for b in first["payload"]["blocks"] if b["type"] == "actions"]
    press = {
        "type": "block_actions",
        "user": {"id": "U0ONCALL1", "username": "ana"},
        "container": {"message_ts": first["response"]["ts"]},
        "response_url": "https://hooks.slack.com/actions/T0LOCAL/1/a",
        "actions": [
            {"action_id": "acknowledge", "block_id": buttons["block_id"], "action_ts": "1.2"}
        ],
    }
    form = urlencode({"payload": json.dumps(press)})
    event = from_slack(form, SLACK_SECRET["signing_secret"], NOW, "1")
    assert run("answer_slack", event, running)["statusCode"] == 200
    run("reconcile_alerts", batch("EVALUATIONS_URL"), running)
    edited = [call for call in running.rig.calls if call["method"] == "chat.update"][-1]
    assert edited["payload"]["ts"] == first["response"]["ts"]
    assert "*Acknowledged* by ana" in json.dumps(edited["payload"])
    assert running.rig.calls[-1]["method"] == "response_url"


def test_a_function_that_raises_fails_the_invocation(running):
    result = invoke("evaluate_snapshot", {"detail-type": "Snapshot Taken"}, running)
    assert result.returncode == 0  # the SAM CLI alone would call this a success
    assert raised(result.stdout.strip())
