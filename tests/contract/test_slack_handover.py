"""What `answer_slack` stands on: its two queues over moto's SQS and the twin, and the app's secret."""

import json
from datetime import timedelta
from itertools import count

import pytest
from boto3 import Session

from steward.alerts.actions import ActionKind, CardAction
from steward.alerts.errors import CredentialsError
from steward.events import parse
from steward.reconcile_events import ClusterLeft, parse_work
from steward.sinks.queues import CommandSender, EvaluationSender, Sender
from steward.sinks.slack_secret import SlackSecret
from steward.slack.commands import Command
from tests.builders import NOON
from tests.contract.test_senders import Arrived, queue
from tests.fakes import FixedTime

NUMBERS = count()
KINDS = ("aws", "twin")


def pressed(cluster: str = "ml", identity: str = "1.1-acknowledge-U1-9.9") -> CardAction:
    return CardAction(
        kind=ActionKind.ACKNOWLEDGE,
        id=identity,
        cluster=cluster,
        card="3f9a2c1b0d",
        user="U1",
        name="équipe <!here>",
        at=NOON,
        response_url="https://hooks.slack.com/actions/1",
    )


@pytest.fixture(params=KINDS)
def ordered(request: pytest.FixtureRequest) -> tuple[Sender, Arrived]:
    return queue(request.param, request, fifo=True)


@pytest.fixture(params=KINDS)
def standard(request: pytest.FixtureRequest) -> tuple[Sender, Arrived]:
    return queue(request.param, request, fifo=False)


def test_an_action_arrives_as_it_was_in_the_group_of_its_cluster(
    ordered: tuple[Sender, Arrived],
) -> None:
    sender, arrived = ordered
    EvaluationSender(sender).act(pressed())
    (message,) = arrived()
    assert message.fifo is not None
    assert message.fifo.group == "ml"
    assert parse_work(message.body, "queue") == pressed()


def test_a_press_that_slack_sends_again_is_one_message(ordered: tuple[Sender, Arrived]) -> None:
    sender, arrived = ordered
    for identity in ("a", "a", "b"):
        EvaluationSender(sender).act(pressed(identity=identity))
    assert [json.loads(message.body)["id"] for message in arrived()] == ["a", "b"]


def test_a_cluster_that_left_arrives_as_one(ordered: tuple[Sender, Arrived]) -> None:
    sender, arrived = ordered
    for _ in range(2):
        EvaluationSender(sender).depart("ml", NOON)
    (message,) = arrived()
    assert parse_work(message.body, "queue") == ClusterLeft(cluster="ml", at=NOON, kind="departed")


def test_a_command_arrives_as_it_was(standard: tuple[Sender, Arrived]) -> None:
    command = Command(
        id="1.2.b",
        text="why größe \u0000 <!channel>",
        user="U1",
        name="ana",
        channel="C1",
        at=NOON,
        response_url="https://hooks.slack.com/commands/1",
    )
    sender, arrived = standard
    CommandSender(sender).send(command)
    (message,) = arrived()
    assert message.fifo is None
    assert parse(Command, message.body, "queue") == command


# --- the secret ----------------------------------------------------------------------------------


def kept(aws: Session, text: str) -> tuple[SlackSecret, FixedTime, str]:
    name, clock = f"handover/{next(NUMBERS)}", FixedTime()
    aws.client("secretsmanager").create_secret(Name=name, SecretString=text)
    return SlackSecret(aws, name, clock), clock, name


def test_one_secret_holds_both(aws: Session) -> None:
    secret, _, _ = kept(aws, '{"bot_token": " xoxb-1\\n", "signing_secret": "shh"}')
    assert (secret.bot_token(), secret.signing_secret()) == ("xoxb-1", "shh")


@pytest.mark.parametrize(
    "text",
    ["xoxb-1", '{"bot_token": "xoxb-1"}', '{"signing_secret": ""}', '{"signing_secret": 7}', "{"],
)
def test_without_a_signing_secret_there_is_none_to_believe(aws: Session, text: str) -> None:
    # An empty one would be a secret that everybody knows.
    secret, _, name = kept(aws, text)
    with pytest.raises(CredentialsError, match=f"{name} holds no signing_secret; put"):
        secret.signing_secret()


def test_a_rotated_signing_secret_is_taken_up_after_five_minutes(aws: Session) -> None:
    secret, clock, name = kept(aws, '{"signing_secret": "old"}')
    seen = [secret.signing_secret()]
    aws.client("secretsmanager").put_secret_value(
        SecretId=name, SecretString='{"signing_secret": "new"}'
    )
    for minutes in (5, 6):
        clock.at = NOON + timedelta(minutes=minutes)
        seen.append(secret.signing_secret())
    assert seen == ["old", "old", "new"]
