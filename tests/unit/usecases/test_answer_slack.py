"""What the Function URL answers, and what it hands over."""

import base64
import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from local.envelopes import from_slack
from local.twins import InMemorySender
from steward.alerts.actions import ActionKind, CardAction
from steward.alerts.errors import MessageGoneError
from steward.errors import DeniedError, RetryableError
from steward.sinks.queues import CommandSender, EvaluationSender
from steward.slack.commands import Command
from steward.usecases.answer_slack import answer
from tests.builders import NOON
from tests.fakes import FixedTime

SECRET = "shh"
URL = "https://hooks.slack.com/actions/1"
CARD = "card/ml-shared-01/3f9a2c1b0d"


class Rig:
    """The function's ports; `log` lists what was asked of them."""

    def __init__(self, *, refuse: str = "") -> None:
        self.refuse = refuse
        self.actions: list[CardAction] = []
        self.commands: list[Command] = []
        self.opened: list[tuple[str, Any]] = []
        self.asked: list[str] = []

    def secret(self) -> str:
        self.asked.append("secret")
        if self.refuse == "secret":
            raise DeniedError("not allowed")
        return SECRET

    def act(self, action: CardAction) -> None:
        if self.refuse == "queue":
            raise RetryableError("SQS did not answer")
        # Over the real sender: what cannot be written as a message must not get this far.
        EvaluationSender(InMemorySender(FixedTime())).act(action)
        self.actions.append(action)

    def send(self, command: Command) -> None:
        if self.refuse == "queue":
            raise RetryableError("SQS did not answer")
        CommandSender(InMemorySender(FixedTime())).send(command)
        self.commands.append(command)

    def open(self, trigger_id: str, view: Any) -> None:
        if self.refuse == "dialog":
            raise MessageGoneError("expired_trigger_id")
        self.opened.append((trigger_id, view))

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        return answer(
            event,
            secret=self.secret,
            actions=lambda: self,
            commands=lambda: self,
            dialogs=lambda: self,
            clock=FixedTime(),
        )


def post(form: dict[str, str] | str, **changes: Any) -> dict[str, Any]:
    text = form if isinstance(form, str) else urlencode(form)
    return from_slack(text, SECRET, NOON, "1") | changes


def press(action: str, **more: Any) -> dict[str, str]:
    payload = {
        "type": "block_actions",
        "user": {"id": "U1", "username": "ana"},
        "container": {"message_ts": "1.1"},
        "channel": {"id": "C0RESEARCH"},
        "trigger_id": "1.2.a",
        "response_url": URL,
        "actions": [{"action_id": action, "block_id": CARD, "action_ts": "9.9"} | more],
    }
    return {"payload": json.dumps(payload)}


def submit(reason: Any = "warm pool", span: Any = "7d", **about: Any) -> dict[str, str]:
    given = {"cluster": "ml-shared-01", "card": "3f9a2c1b0d", "response_url": URL} | about
    values: dict[str, Any] = {"reason": {"reason": {"value": reason}}}
    values["span"] = {"span": {"selected_option": {"value": span} if span else None}}
    view = {
        "id": "V1",
        "callback_id": "exempt",
        "private_metadata": json.dumps(given),
        "state": {"values": values},
    }
    return {"payload": json.dumps({"type": "view_submission", "user": {"id": "U1"}, "view": view})}


COMMAND = {
    "command": "/gpu",
    "text": " why rerank ",
    "user_id": "U1",
    "user_name": "ana",
    "channel_id": "C1",
    "trigger_id": "1.2.b",
    "response_url": URL,
}


def test_a_press_is_handed_to_the_reconciler_with_an_identity_of_its_own() -> None:
    rig = Rig()
    done = rig.answer(post(press("acknowledge")))
    assert (done["statusCode"], done["body"]) == (200, "")
    assert rig.actions == [
        CardAction(
            kind=ActionKind.ACKNOWLEDGE,
            id="1.1-acknowledge-U1-9.9",
            cluster="ml-shared-01",
            card="3f9a2c1b0d",
            user="U1",
            name="ana",
            at=NOON,
            response_url=URL,
        )
    ]
    rig.answer(post(press("acknowledge")))  # delivered again: the same identity
    assert len({action.id for action in rig.actions}) == 1


def test_a_snooze_says_how_long() -> None:
    rig = Rig()
    rig.answer(post(press("snooze", selected_option={"value": "monday"})))
    assert (rig.actions[0].kind, rig.actions[0].span) == ("snooze", "monday")


def test_the_dialog_is_opened_at_once_and_knows_its_card() -> None:
    rig = Rig()
    rig.answer(post(press("exempt")))
    ((trigger, view),) = rig.opened
    about = json.loads(view["private_metadata"])
    assert (trigger, about["card"], about["response_url"]) == ("1.2.a", "3f9a2c1b0d", URL)
    assert not [*rig.actions, *rig.commands]


def test_where_the_dialog_does_not_open_the_command_is_told() -> None:
    rig = Rig(refuse="dialog")
    assert rig.answer(post(press("exempt")))["statusCode"] == 200
    assert [command.text for command in rig.commands] == ["exempt-help ml-shared-01/3f9a2c1b0d"]


def test_a_submission_is_an_exemption() -> None:
    rig = Rig()
    done = rig.answer(post(submit("  warm\n pool ")))
    assert done["body"] == ""  # the dialog closes
    (action,) = rig.actions
    assert (action.kind, action.id, action.span) == ("exempt", "V1", "7d")
    assert (action.reason, action.response_url) == ("warm pool", URL)


@pytest.mark.parametrize(
    ("reason", "span", "wrong"),
    [
        ("", "7d", {"reason"}),
        ("   ", "7d", {"reason"}),
        ("x", "9y", {"span"}),
        ("", "", {"reason", "span"}),
    ],
)
def test_a_submission_that_lacks_something_stays_open(
    reason: str, span: str, wrong: set[str]
) -> None:
    rig = Rig()
    body = json.loads(rig.answer(post(submit(reason, span)))["body"])
    assert (body["response_action"], set(body["errors"])) == ("errors", wrong)
    assert rig.actions == []


def test_a_reason_is_cut_to_what_a_card_holds() -> None:
    rig = Rig()
    rig.answer(post(submit("x" * 5000)))
    assert len(rig.actions[0].reason) == 300


def test_evidence_and_commands_are_handed_to_run_command() -> None:
    rig = Rig()
    rig.answer(post(press("evidence")))
    rig.answer(post(COMMAND))
    assert [c.text for c in rig.commands] == ["evidence ml-shared-01/3f9a2c1b0d", "why rerank"]
    assert rig.commands[1] == Command(
        id="1.2.b",
        text="why rerank",
        user="U1",
        name="ana",
        channel="C1",
        at=NOON,
        response_url=URL,
    )


@pytest.mark.parametrize(
    "form",
    [
        {"ssl_check": "1", "token": "x"},
        {"payload": "not json"},
        {"payload": "[]"},
        {"payload": "[" * 100_000},  # nests deeper than anybody reads
        {"payload": press("acknowledge")["payload"].replace("ana", "\\ud800")},  # half a character
        submit(card="\ud800"),
        {"payload": '{"type":"shortcut"}'},
        {"payload": '{"type":"block_actions","user":{"id":"U1"},"actions":[]}'},
        {"payload": '{"type":"block_actions","user":{"id":"U1"},"actions":[7]}'},
        press("acknowledge", block_id="another"),
        press("dance"),
        {
            "payload": '{"type":"view_submission","user":{"id":"U1"},"view":{"id":"V","callback_id":"exempt"}}'
        },
        {"command": "/gpu"},
        "&".join("a=1" for _ in range(200)),
        "%ff%fe",
        "",
    ],
)
def test_what_is_signed_and_not_understood_changes_nothing(form: Any) -> None:
    rig = Rig()
    done = rig.answer(post(form))
    assert (done["statusCode"], done["body"]) == (200, "")
    assert not [*rig.actions, *rig.commands, *rig.opened]


@pytest.mark.parametrize("body", ["{", "[" * 100_000, '{"type":"event_callback"}', "7", ""])
def test_json_that_is_no_check_changes_nothing(body: str) -> None:
    event = post(body)
    event["headers"]["content-type"] = "application/json"
    done = Rig().answer(event)
    assert (done["statusCode"], done["body"]) == (200, "")


def test_slack_may_check_the_address() -> None:
    event = post('{"type":"url_verification","challenge":"abc"}')
    event["headers"]["content-type"] = "application/json"
    assert json.loads(Rig().answer(event)["body"]) == {"challenge": "abc"}


def test_the_raw_bytes_are_what_is_signed_however_lambda_hands_them_over() -> None:
    event = post(COMMAND)
    text = base64.b64decode(event["body"]).decode()
    assert Rig().answer({**event, "body": text, "isBase64Encoded": False})["statusCode"] == 200
    assert Rig().answer({**event, "isBase64Encoded": False})["statusCode"] == 401
    assert Rig().answer({**event, "body": "@@@"})["statusCode"] == 401


@pytest.mark.parametrize("drift", [timedelta(minutes=7), -timedelta(minutes=7)])
def test_what_is_old_or_from_the_future_is_refused_before_any_secret_is_read(
    drift: timedelta,
) -> None:
    rig = Rig()
    event = from_slack(urlencode(COMMAND), SECRET, NOON + drift, "1")
    assert rig.answer(event)["statusCode"] == 401
    assert rig.asked == []


@pytest.mark.parametrize("event", [{}, {"headers": None}, {"headers": [1]}, {"body": 3}])
def test_what_is_no_request_is_refused(event: dict[str, Any]) -> None:
    assert Rig().answer(event)["statusCode"] == 401


def test_another_secret_is_refused_and_hands_nothing_over() -> None:
    rig = Rig()
    done = rig.answer(from_slack(urlencode(COMMAND), "other", NOON, "1"))
    assert (done["statusCode"], rig.commands) == (401, [])


def test_without_the_secret_nobody_is_believed() -> None:
    assert Rig(refuse="secret").answer(post(COMMAND))["statusCode"] == 401


@pytest.mark.parametrize(
    ("form", "key"), [(COMMAND, "text"), (press("acknowledge"), "text"), (submit(), "errors")]
)
def test_what_the_queue_does_not_take_is_said(form: dict[str, str], key: str) -> None:
    done = Rig(refuse="queue").answer(post(form))
    assert done["statusCode"] == 200
    assert "try again" in str(json.loads(done["body"])[key])
