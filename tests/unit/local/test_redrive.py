"""The dead letters of a stack: told without what they say, and sent back where a queue sent them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.session import get_session
from moto.server import ThreadedMotoServer

from local import redrive
from local.dead_letters import DeadLetterQueue, describe, read
from steward.errors import StewardError

SECRET = "hooks.slack.com/actions/T0/1/secret"
NAMES = count()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@dataclass
class Stack:
    """A deployment's queues at moto, and what SQS does that moto does not.

    Attributes
    ----------
    came_from : dict of str to str
        Message id to the ARN of the queue that SQS moved it from: SQS marks it so, moto does not.
    moves : list of (str, int)
        Move tasks that were started: the source's ARN, and how many of it were then in flight.
    """

    name: str
    session: boto3.Session
    came_from: dict[str, str] = field(default_factory=dict)
    moves: list[tuple[str, int]] = field(default_factory=list)

    @property
    def sqs(self) -> Any:
        return self.session.client("sqs")

    def url(self, queue: str) -> str:
        found: str = self.sqs.get_queue_url(QueueName=f"{self.name}-{queue}")["QueueUrl"]
        return found

    def lost(self, queue: str, body: str, **fifo: str) -> None:
        """Send a message to a queue, and fail at it until SQS gives it up."""
        url = self.url(queue)
        sent = self.sqs.send_message(QueueUrl=url, MessageBody=body, **fifo)
        arn = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        for _ in range(2):  # the receive after the last that is allowed is the one that moves it
            self.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
        self.came_from[sent["MessageId"]] = arn["Attributes"]["QueueArn"]

    def bodies(self, queue: str) -> list[str]:
        """Take everything out of a queue."""
        taken: list[str] = []
        while True:
            some = self.sqs.receive_message(QueueUrl=self.url(queue), MaxNumberOfMessages=10)
            if not some.get("Messages"):
                return taken
            taken += [message["Body"] for message in some["Messages"]]

    def mark(self, parsed: dict[str, Any], **_: Any) -> None:
        for message in parsed.get("Messages", []):
            if message["MessageId"] in self.came_from:
                arn = self.came_from[message["MessageId"]]
                message.setdefault("Attributes", {})["DeadLetterQueueSourceArn"] = arn

    def moved(self, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        arn = json.loads(params["body"])["SourceArn"]
        name = arn.rpartition(":")[2]
        told = self.sqs.get_queue_attributes(
            QueueUrl=self.sqs.get_queue_url(QueueName=name)["QueueUrl"],
            AttributeNames=["ApproximateNumberOfMessagesNotVisible"],
        )["Attributes"]
        self.moves.append((arn, int(told["ApproximateNumberOfMessagesNotVisible"])))
        return SimpleNamespace(status_code=200), {"TaskHandle": "t"}


def queue(dead: str | None = None, **properties: Any) -> dict[str, Any]:
    if dead:
        arn = {"Fn::GetAtt": [dead, "Arn"]}
        properties["RedrivePolicy"] = {"deadLetterTargetArn": arn, "maxReceiveCount": 1}
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


@pytest.fixture
def stack(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    (tmp_path / "config").write_text(f"[default]\nendpoint_url = {server}\n")
    core = get_session()
    core.set_config_variable("config_file", str(tmp_path / "config"))
    core.set_config_variable("credentials_file", str(tmp_path / "none"))
    session = boto3.Session(
        aws_access_key_id="local",
        aws_secret_access_key="local",
        region_name="us-east-1",
        botocore_session=core,
    )
    name = f"steward-{next(NAMES)}"
    fifo: dict[str, Any] = {"FifoQueue": True}
    resources = {
        "Dead": queue(QueueName=f"{name}-Dead"),
        "DeadFifo": queue(QueueName=f"{name}-Dead.fifo", **fifo),
        "Checkpoints": queue("Dead", QueueName=f"{name}-Checkpoints"),
        "Requests": queue("Dead", QueueName=f"{name}-Requests"),
        "Evaluations": queue("DeadFifo", QueueName=f"{name}-Evaluations.fifo", **fifo),
    }
    outputs = {
        "DeadLettersUrl": {"Value": {"Ref": "Dead"}},
        "DeadLettersFifoUrl": {"Value": {"Ref": "DeadFifo"}},
    }
    session.client("cloudformation").create_stack(
        StackName=name, TemplateBody=json.dumps({"Resources": resources, "Outputs": outputs})
    )
    made = Stack(name=name, session=session)
    events: Any = session.events  # its stubs know no hook that gives the answer itself
    events.register("after-call.sqs.ReceiveMessage", made.mark)
    events.register("before-call.sqs.StartMessageMoveTask", made.moved)
    monkeypatch.setattr(boto3, "Session", lambda: session)
    monkeypatch.setattr(redrive, "WAIT_SECONDS", 0)  # moto is one server
    return made


def from_rule(stack: Stack) -> None:
    """What EventBridge writes where it cannot hand an event over."""
    told = {
        "RULE_ARN": "arn:aws:events:us-east-1:111122223333:rule/gpu-steward/ApiCalls",
        "TARGET_ARN": "arn:aws:sqs:us-east-1:111122223333:gpu-steward-snapshot-requests",
        "ERROR_CODE": "NO_PERMISSIONS",
        "ERROR_MESSAGE": "not authorized\nto send",
    }
    stack.sqs.send_message(
        QueueUrl=stack.url("Dead"),
        MessageBody=json.dumps({"detail": {"url": SECRET}}),
        MessageAttributes={
            name: {"DataType": "String", "StringValue": value} for name, value in told.items()
        },
    )


def from_function(stack: Stack) -> None:
    """What Lambda writes where an asynchronous invocation failed at every retry."""
    record = {
        "requestContext": {
            "functionArn": "arn:aws:lambda:us-east-1:111122223333:function:steward-Evaluate-X1:$LATEST",
            "condition": "RetriesExhausted",
        },
        "requestPayload": {"url": SECRET},
        "responsePayload": {"errorType": "ConflictError", "errorMessage": "memory/ml: changed"},
    }
    stack.sqs.send_message(QueueUrl=stack.url("Dead"), MessageBody=json.dumps(record))


def run(stack: Stack, *more: str) -> int:
    return redrive.main(["--stack", stack.name, *more])


def test_each_letter_is_told_by_who_failed_and_why_and_never_by_what_it_says(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.lost("Checkpoints", json.dumps({"url": SECRET}))
    stack.lost("Checkpoints", json.dumps({"url": SECRET, "n": 2}))
    stack.lost(
        "Evaluations.fifo",
        json.dumps({"response_url": SECRET}),
        MessageGroupId="ml",
        MessageDeduplicationId="1",
    )
    from_rule(stack)
    from_function(stack)
    assert run(stack) == 0
    out = capsys.readouterr().out
    assert SECRET not in out
    lines = [line.partition(", since")[0] for line in out.splitlines()]
    assert lines == [
        "dead letters: 4",
        "  1 from the function steward-Evaluate-X1",
        "    RetriesExhausted, ConflictError: memory/ml: changed",
        "    stays: there is no queue to send it back to",
        f"  2 from the queue {stack.name}-Checkpoints",
        "    failed at every try: the log of the function that polls it says why",
        f"    to send back: make redrive QUEUE={stack.name}-Checkpoints YES=1",
        "  1 from the rule ApiCalls, to gpu-steward-snapshot-requests",
        "    NO_PERMISSIONS: not authorized to send",
        "    stays: there is no queue to send it back to",
        "dead letters, FIFO: 1",
        f"  1 from the queue {stack.name}-Evaluations.fifo",
        "    failed at every try: the log of the function that polls it says why",
        f"    to send back: make redrive QUEUE={stack.name}-Evaluations.fifo YES=1",
    ]


def test_looking_takes_nothing_away(stack: Stack) -> None:
    stack.lost("Checkpoints", "a")
    from_rule(stack)
    assert run(stack) == 0
    assert run(stack, "--queue", f"{stack.name}-Checkpoints") == 0  # without --yes
    assert stack.moves == []
    assert stack.bodies("Checkpoints") == []
    # Visible at once, not after the time for which they were hidden.
    assert len(stack.bodies("Dead")) == 2


def test_what_came_from_the_queue_goes_back_and_the_rest_stays(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):  # more than one receive gives
        stack.lost("Checkpoints", f"checkpoint {number}")
    stack.lost("Requests", "request")
    from_rule(stack)
    from_function(stack)
    assert run(stack, "--queue", f"{stack.name}-Checkpoints", "--yes") == 0
    assert f"sent back to {stack.name}-Checkpoints: 12" in capsys.readouterr().out
    assert sorted(stack.bodies("Checkpoints")) == sorted(f"checkpoint {n}" for n in range(12))
    assert stack.bodies("Requests") == []
    assert len(stack.bodies("Dead")) == 3
    assert stack.moves == []  # SQS would stop at the rule's


def test_a_message_goes_back_with_its_attributes(stack: Stack) -> None:
    url = stack.url("Checkpoints")
    told = {"traceparent": {"DataType": "String", "StringValue": "00-1-2-01"}}
    sent = stack.sqs.send_message(QueueUrl=url, MessageBody="a", MessageAttributes=told)
    for _ in range(2):
        stack.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
    stack.came_from[sent["MessageId"]] = f"arn:aws:sqs:us-east-1:1:{stack.name}-Checkpoints"
    assert run(stack, "--queue", f"{stack.name}-Checkpoints", "--yes") == 0
    (back,) = stack.sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    assert back["MessageAttributes"] == told


def test_sqs_itself_redrives_the_fifo_queue_in_order(stack: Stack) -> None:
    for number in "123":
        stack.lost("Evaluations.fifo", number, MessageGroupId="ml", MessageDeduplicationId=number)
    stack.lost("Checkpoints", "a")
    assert run(stack, "--queue", f"{stack.name}-Evaluations.fifo", "--yes") == 0
    # Nothing was in flight any more: SQS moves what is visible.
    ((arn, in_flight),) = stack.moves
    assert arn.endswith(f":{stack.name}-Dead.fifo")
    assert in_flight == 0
    assert stack.bodies("Checkpoints") == []


def test_a_queue_that_nothing_came_from_is_named_and_nothing_moves(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.lost("Checkpoints", "a")
    assert run(stack, "--queue", "Checkpoint", "--yes") == 2
    assert "QUEUE=Checkpoint: nothing here came from it" in capsys.readouterr().err
    assert stack.bodies("Dead") == ["a"]


def test_a_send_that_fails_leaves_the_rest_where_it_was(stack: Stack) -> None:
    for body in "abc":
        stack.lost("Checkpoints", body)

    def refuse(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        if json.loads(params["body"])["MessageBody"] != "b":
            return None
        error = {"Code": "AccessDenied", "Message": "no"}
        return SimpleNamespace(status_code=403), {"Error": error}

    events: Any = stack.session.events
    events.register("before-call.sqs.SendMessage", refuse)
    with pytest.raises(StewardError, match=r"send back to .*AccessDenied"):
        redrive.redrive(stack.session, stack.name, f"{stack.name}-Checkpoints", yes=True)
    events.unregister("before-call.sqs.SendMessage", refuse)
    assert sorted(stack.bodies("Checkpoints") + stack.bodies("Dead")) == ["a", "b", "c"]


def test_another_stack_is_no_deployment_of_ours(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.session.client("cloudformation").create_stack(
        StackName="other", TemplateBody=json.dumps({"Resources": {"Q": queue()}})
    )
    assert redrive.main(["--stack", "other"]) == 2
    assert "STACK=other: has no output DeadLettersUrl" in capsys.readouterr().err
    assert redrive.main(["--stack", "nowhere"]) == 1
    assert "describe the stack nowhere" in capsys.readouterr().err


def test_a_spoke_has_no_fifo_queue(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.session.client("cloudformation").create_stack(
        StackName="spoke",
        TemplateBody=json.dumps(
            {
                "Resources": {"Dead": queue()},
                "Outputs": {"DeadLettersUrl": {"Value": {"Ref": "Dead"}}},
            }
        ),
    )
    assert redrive.main(["--stack", "spoke"]) == 0
    assert capsys.readouterr().out == "dead letters: 0\n"


# --- what a letter tells -------------------------------------------------------------------------

SENT: Any = {"SentTimestamp": "1762344000123"}


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not json",
        "[]",
        "null",
        '{"requestContext": {"functionArn": "arn"}}',
        '{"requestContext": {"functionArn": 7}}',
        '{"requestContext": {"functionArn": "a:b:c:d:e:f:g"}, "responsePayload": "text"}',
    ],
)
def test_a_letter_of_nobody_known_is_told_as_such(body: str) -> None:
    letter = read({"Attributes": SENT, "Body": body})
    assert (letter.queue, letter.origin) == (None, "somebody unknown")


def test_an_invocation_that_ended_without_an_answer_has_no_error() -> None:
    arn = "arn:aws:lambda:us-east-1:1:function:steward-Plan:$LATEST"
    record = {"requestContext": {"functionArn": arn, "condition": "EventAgeExceeded"}}
    letter = read({"Attributes": SENT, "Body": json.dumps(record)})
    assert (letter.origin, letter.reason) == ("the function steward-Plan", "EventAgeExceeded, ?: ?")


def test_what_the_schedule_could_not_start_names_the_schedule() -> None:
    told = {
        "SCHEDULE_ARN": "arn:aws:scheduler:us-east-1:1:schedule/default/steward-Tick-A1",
        "TARGET_ARN": "arn:aws:lambda:us-east-1:1:function:steward-PlanTicks",
        "ERROR_CODE": "TooManyRequestsException",
    }
    attributes: Any = {k: {"DataType": "String", "StringValue": v} for k, v in told.items()}
    letter = read({"Attributes": SENT, "MessageAttributes": attributes, "Body": "{}"})
    assert letter.origin == "the schedule steward-Tick-A1, to steward-PlanTicks"
    assert letter.reason == "TooManyRequestsException: ?"
    assert letter.sent == datetime(2025, 11, 5, 12, 0, 0, 123000, tzinfo=UTC)


def test_nothing_that_comes_from_outside_moves_the_cursor_or_fills_the_screen() -> None:
    record = {
        "requestContext": {"functionArn": "a:b:c:d:e:f:\x1b[2Jname", "condition": "x\r\ny"},
        "responsePayload": {"errorType": "E", "errorMessage": "m\x07" * 500},
    }
    letter = read({"Attributes": SENT, "Body": json.dumps(record)})
    found = DeadLetterQueue(title="dead letters", url="u", arn="a", count=1, letters=(letter,))
    for line in describe(found):
        assert line.isprintable()
        assert len(line) < 200
