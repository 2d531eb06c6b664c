"""One suite for the bus and the queues: over moto's EventBridge and SQS, and over their twins."""

import itertools
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from boto3 import Session
from botocore.stub import Stubber

from local.twins import InMemoryBus, InMemorySender, Message
from steward.clock import FixedClock
from steward.cluster.planning import SnapshotScope
from steward.errors import ConfigError, DeniedError, PermanentError, RetryableError
from steward.events import EvaluationReady, parse, parse_request
from steward.ports import Bus, EvaluationQueue, SnapshotRequests
from steward.sinks.bus import EventBridgeBus
from steward.sinks.queues import (
    EvaluationSender,
    Fifo,
    Sender,
    SnapshotRequestSender,
    SqsClients,
    SqsSender,
)

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
NAMES = itertools.count()
type Arrived = Callable[[], list[Message]]


def received(aws: Session, url: str) -> list[Message]:
    """Take what lies in an SQS queue, in order."""
    answer = aws.client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"]
    )
    messages = []
    for message in answer.get("Messages", []):
        attributes = message["Attributes"]
        fifo = None
        if "MessageGroupId" in attributes:
            fifo = Fifo(
                group=attributes["MessageGroupId"],
                deduplication=attributes["MessageDeduplicationId"],
            )
        messages.append(Message(body=message["Body"], fifo=fifo))
    return messages


def queue(kind: str, request: pytest.FixtureRequest, *, fifo: bool) -> tuple[Sender, Arrived]:
    if kind == "twin":
        twin = InMemorySender(FixedClock(NOON))
        return twin, lambda: twin.messages
    aws: Session = request.getfixturevalue("aws")
    name = f"queue-{next(NAMES)}"
    if fifo:
        made = aws.client("sqs").create_queue(
            QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"}
        )
    else:
        made = aws.client("sqs").create_queue(QueueName=name)
    url = made["QueueUrl"]
    return SqsSender(SqsClients(aws), url), lambda: received(aws, url)


@pytest.fixture(params=["aws", "twin"])
def standard(request: pytest.FixtureRequest) -> tuple[Sender, Arrived]:
    return queue(request.param, request, fifo=False)


@pytest.fixture(params=["aws", "twin"])
def ordered(request: pytest.FixtureRequest) -> tuple[Sender, Arrived]:
    return queue(request.param, request, fifo=True)


@pytest.fixture(params=["aws", "twin"])
def bus(request: pytest.FixtureRequest) -> tuple[Bus, Callable[[], list[Any]]]:
    if request.param == "twin":
        twin = InMemoryBus()
        return twin, lambda: [
            [event.source, event.detail_type, json.loads(event.detail)] for event in twin.events
        ]
    aws: Session = request.getfixturevalue("aws")
    name = f"bus-{next(NAMES)}"
    url = aws.client("sqs").create_queue(QueueName=name)["QueueUrl"]
    events = aws.client("events")
    events.create_event_bus(Name=name)
    events.put_rule(Name=name, EventBusName=name, EventPattern='{"source":["gpu-steward"]}')
    arn = f"arn:aws:sqs:us-east-1:123456789012:{name}"
    events.put_targets(Rule=name, EventBusName=name, Targets=[{"Id": "queue", "Arn": arn}])
    fields = ("source", "detail-type", "detail")
    return EventBridgeBus(aws, name), lambda: [
        [json.loads(message.body)[field] for field in fields] for message in received(aws, url)
    ]


# --- snapshot requests ---------------------------------------------------------------------------


def test_a_request_names_cluster_scope_time_and_reason(standard: tuple[Sender, Arrived]) -> None:
    sender, arrived = standard
    requests: SnapshotRequests = SnapshotRequestSender(sender, {})

    requests.ask("ml", NOON, "tick due", SnapshotScope.TICK)

    (message,) = arrived()
    assert json.loads(message.body) == {
        "cluster": "ml",
        "scope": "tick",
        "requested_at": "2026-11-02T12:00:00Z",
        "reason": "tick due",
    }
    assert message.fifo is None


def test_take_snapshot_reads_what_was_asked(standard: tuple[Sender, Arrived]) -> None:
    # Half a second counts: a request older than the start of the last snapshot is skipped.
    at = datetime.fromisoformat("2026-11-02T13:00:00.500+01:00")
    sender, arrived = standard

    SnapshotRequestSender(sender, {}).ask(
        "ml", at, 'an event said {"detail-type": "x"}', SnapshotScope.AUDIT
    )

    (message,) = arrived()
    request = parse_request(message.body, "queue")
    assert (request.cluster, request.scope) == ("ml", SnapshotScope.AUDIT)
    assert request.at == NOON + timedelta(milliseconds=500)


def test_every_request_is_a_message(standard: tuple[Sender, Arrived]) -> None:
    # take_snapshot reduces its batch to distinct clusters; the door itself drops nothing.
    sender, arrived = standard
    requests = SnapshotRequestSender(sender, {})

    requests.ask("ml", NOON, "tick due", SnapshotScope.TICK)
    requests.ask("ml", NOON, "tick due", SnapshotScope.TICK)

    assert len(arrived()) == 2


def test_a_request_goes_to_the_queue_of_whoever_reads_the_cluster() -> None:
    clock = FixedClock(NOON)
    own, frankfurt, tokyo = (InMemorySender(clock) for _ in range(3))
    requests = SnapshotRequestSender(own, {"ml-eu": frankfurt, "ml-jp": tokyo})

    for cluster in ("ml", "ml-eu", "ml-jp", "ml-eu"):
        requests.ask(cluster, NOON, "tick due", SnapshotScope.TICK)

    def asked(queue: InMemorySender) -> list[str]:
        return [json.loads(message.body)["cluster"] for message in queue.messages]

    assert [asked(queue) for queue in (own, frankfurt, tokyo)] == [
        ["ml"],
        ["ml-eu", "ml-eu"],
        ["ml-jp"],
    ]


def test_a_cluster_that_nobody_reads_is_named_with_the_remedy() -> None:
    # A hub has no queue of its own: a request put nowhere would be a cluster that nobody watches.
    requests = SnapshotRequestSender(None, {"ml-eu": InMemorySender(FixedClock(NOON))})

    with pytest.raises(ConfigError, match=r"cluster ml: .*name its spoke in the policy"):
        requests.ask("ml", NOON, "tick due", SnapshotScope.TICK)


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/444455556666/spoke", "eu-west-1"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/444455556666/spoke", "cn-north-1"),
        (
            "http://172.17.0.1:8930/123456789012/requests",
            "us-east-1",
        ),  # the rig's: the session's own
    ],
)
def test_a_queue_is_asked_in_the_region_that_its_url_names(
    url: str, region: str, aws: Session
) -> None:
    assert SqsClients(aws).reaching(url).meta.region_name == region


def test_queues_of_one_region_share_a_client(aws: Session) -> None:
    # A client costs tens of milliseconds of the cold start: ten spokes must not make ten.
    clients = SqsClients(aws)
    first, second, elsewhere = (
        clients.reaching(f"https://sqs.{region}.amazonaws.com/444455556666/{name}")
        for region, name in (("eu-west-1", "a"), ("eu-west-1", "b"), ("eu-central-1", "a"))
    )

    assert first is second
    assert first is not elsewhere


# --- evaluations ---------------------------------------------------------------------------------


def test_an_evaluation_travels_in_the_group_of_its_cluster(ordered: tuple[Sender, Arrived]) -> None:
    sender, arrived = ordered
    evaluations: EvaluationQueue = EvaluationSender(sender)

    evaluations.send("ml-shared-01", "evaluations/ml/1.json.gz", NOON)

    (message,) = arrived()
    assert message.fifo is not None
    assert message.fifo.group == "ml-shared-01"
    ready = parse(EvaluationReady, message.body, "queue")
    assert (ready.cluster, ready.key, ready.at) == (
        "ml-shared-01",
        "evaluations/ml/1.json.gz",
        NOON,
    )


def test_the_same_evaluation_handed_over_again_is_one_message(
    ordered: tuple[Sender, Arrived],
) -> None:
    # evaluate_snapshot died after the hand-over and ran again: the key, not the time, is the same.
    sender, arrived = ordered
    evaluations = EvaluationSender(sender)

    evaluations.send("ml", "evaluations/ml/1.json.gz", NOON)
    evaluations.send("ml", "evaluations/ml/1.json.gz", NOON + timedelta(seconds=9))

    assert len(arrived()) == 1


def test_evaluations_of_one_cluster_arrive_in_order(ordered: tuple[Sender, Arrived]) -> None:
    sender, arrived = ordered
    evaluations = EvaluationSender(sender)

    for number in (3, 1, 2):
        evaluations.send("ml", f"evaluations/ml/{number}.json.gz", NOON)

    keys = [json.loads(message.body)["key"] for message in arrived()]
    assert keys == [f"evaluations/ml/{number}.json.gz" for number in (3, 1, 2)]


@pytest.mark.parametrize("cluster", ["two words", "größe", "x" * 129, ""])
def test_a_name_that_sqs_would_refuse_has_a_group_of_its_own(
    cluster: str, ordered: tuple[Sender, Arrived]
) -> None:
    # SQS takes 1 to 128 ASCII letters, digits and punctuation marks; two clusters never share.
    sender, arrived = ordered
    evaluations = EvaluationSender(sender)

    evaluations.send(cluster, "k1", NOON)
    evaluations.send(f"{cluster} 2", "k2", NOON)

    groups = {message.fifo.group for message in arrived() if message.fifo}
    assert len(groups) == 2
    assert all(re.fullmatch(r"[\x21-\x7e]{1,128}", group) for group in groups)


def test_the_twin_forgets_a_message_after_five_minutes_as_sqs_does() -> None:
    clock = FixedClock(NOON)
    twin = InMemorySender(clock)
    evaluations = EvaluationSender(twin)

    for seconds in (0, 299, 1):  # at 12:00:00, 12:04:59 and 12:05:00
        clock.sleep(seconds)
        evaluations.send("ml", "evaluations/ml/1.json.gz", NOON)

    assert len(twin.messages) == 2


# --- the bus -------------------------------------------------------------------------------------


def test_an_event_carries_our_source_its_type_and_its_detail(
    bus: tuple[Bus, Callable[[], list[Any]]],
) -> None:
    port, arrived = bus
    detail = {"cluster": "ml", "key": "snapshots/ml/ü.json.gz", "n": 1.5, "none": None}

    port.publish("Snapshot Taken", detail)

    assert arrived() == [["gpu-steward", "Snapshot Taken", detail]]


@pytest.mark.parametrize("value", [float("nan"), NOON])
def test_a_value_that_json_does_not_know_is_refused(
    value: object, bus: tuple[Bus, Callable[[], list[Any]]]
) -> None:
    port, arrived = bus

    with pytest.raises(PermanentError, match="detail cannot be written as JSON"):
        port.publish("Snapshot Taken", {"value": value})

    assert arrived() == []


def test_a_bus_of_another_region_is_reached_there(aws: Session) -> None:
    # A spoke's bus is the hub's, named by its ARN; EventBridge answers for a region's own buses only.
    port = EventBridgeBus(aws, "arn:aws:events:eu-west-1:111122223333:event-bus/gpu-steward")

    assert port._client.meta.region_name == "eu-west-1"


# --- refusals ------------------------------------------------------------------------------------


def test_an_entry_that_the_bus_did_not_take_is_tried_again_later(aws: Session) -> None:
    # PutEvents answers 200 and says so in a count: nobody else would notice.
    port = EventBridgeBus(aws, "steward")
    stub = Stubber(port._client)
    entry = {"ErrorCode": "InternalException", "ErrorMessage": "try again"}
    stub.add_response("put_events", {"FailedEntryCount": 1, "Entries": [entry]})

    with stub, pytest.raises(RetryableError, match="bus steward: InternalException: try again"):
        port.publish("Snapshot Taken", {})


def test_a_refused_bus_is_denied(aws: Session) -> None:
    port = EventBridgeBus(aws, "steward")
    stub = Stubber(port._client)
    stub.add_client_error("put_events", "AccessDeniedException", http_status_code=400)

    with stub, pytest.raises(DeniedError, match="'Snapshot Taken' on bus steward"):
        port.publish("Snapshot Taken", {})


def test_a_refused_queue_is_denied(aws: Session) -> None:
    clients, url = SqsClients(aws), "http://127.0.0.1/123456789012/requests"
    sender = SqsSender(clients, url)
    stub = Stubber(clients.reaching(url))
    stub.add_client_error("send_message", "AccessDenied", http_status_code=403)

    with stub, pytest.raises(DeniedError, match="123456789012/requests"):
        sender.send("{}")


def test_a_queue_that_does_not_exist_is_permanent(aws: Session) -> None:
    sender = SqsSender(SqsClients(aws), "http://127.0.0.1/123456789012/gone")

    with pytest.raises(PermanentError, match=r"123456789012/gone: .* check the name"):
        sender.send("{}")
