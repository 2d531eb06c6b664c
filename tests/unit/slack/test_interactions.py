"""What Slack's requests ask for: each kind, and each that only looks like one."""

import json
from typing import Any

import pytest

from steward.alerts.actions import ActionKind, CardAction
from steward.slack.commands import Command
from steward.slack.interactions import Ignored, Mistaken, OpenDialog, read
from steward.slack.modal import REASON, SPANS, exempt_view
from tests.builders import NOON
from tests.unit.usecases.test_answer_slack import COMMAND, URL, press, submit


def changed(form: dict[str, str], **fields: Any) -> dict[str, str]:
    return {"payload": json.dumps(json.loads(form["payload"]) | fields)}


def test_evidence_is_a_command_about_the_card() -> None:
    wish = read(press("evidence"), NOON)
    assert isinstance(wish, Command)
    assert (wish.text, wish.channel) == ("evidence ml-shared-01/3f9a2c1b0d", "C0RESEARCH")
    assert (wish.user, wish.response_url) == ("U1", URL)


def test_exempt_opens_the_dialog_and_keeps_the_way_around_it() -> None:
    wish = read(press("exempt"), NOON)
    assert isinstance(wish, OpenDialog)
    assert (wish.trigger_id, wish.cluster, wish.card) == ("1.2.a", "ml-shared-01", "3f9a2c1b0d")
    assert wish.fallback.text == "exempt-help ml-shared-01/3f9a2c1b0d"


def test_without_a_trigger_only_the_way_around_is_left() -> None:
    wish = read(changed(press("exempt"), trigger_id=None), NOON)
    assert isinstance(wish, Command)
    assert wish.text == "exempt-help ml-shared-01/3f9a2c1b0d"


@pytest.mark.parametrize(
    "form",
    [
        press("acknowledge", action_ts="9.8"),
        press("snooze"),
        changed(press("acknowledge"), user={"id": "U2"}),
        changed(press("acknowledge"), container={"message_ts": "1.2"}),
    ],
    ids=["later", "another button", "somebody else", "another message"],
)
def test_each_press_has_an_identity_of_its_own(form: dict[str, str]) -> None:
    first, other = read(press("acknowledge"), NOON), read(form, NOON)
    assert isinstance(first, CardAction)
    assert isinstance(other, CardAction)
    assert first.id != other.id


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ({"id": "U1", "name": "ana", "username": "a"}, "ana"),
        ({"id": "U1", "username": "ana"}, "ana"),
        ({"id": "U1", "name": ""}, "U1"),
        ({"id": "U1", "name": 7}, "U1"),
    ],
)
def test_who_pressed_is_called_what_slack_calls_them(user: dict[str, Any], name: str) -> None:
    wish = read(changed(press("acknowledge"), user=user), NOON)
    assert isinstance(wish, CardAction)
    assert wish.name == name


@pytest.mark.parametrize(
    "block_id", ["", "card", "card/", "card/ml", "card//3f9a", "card/ml/", "other/ml/3f9a"]
)
def test_a_press_on_no_card_is_nothing_of_ours(block_id: str) -> None:
    assert isinstance(read(press("acknowledge", block_id=block_id), NOON), Ignored)


def test_a_reason_is_cut_to_what_the_card_shows() -> None:
    wish = read(submit("x" * (REASON + 1)), NOON)
    assert isinstance(wish, CardAction)
    assert wish.reason == "x" * 300


@pytest.mark.parametrize("span", [span for span, _ in SPANS])
def test_every_span_of_the_dialog_is_taken(span: str) -> None:
    wish = read(submit(span=span), NOON)
    assert isinstance(wish, CardAction)
    assert (wish.kind, wish.span) == (ActionKind.EXEMPT, span)


def test_what_the_dialog_keeps_is_what_its_submission_reads() -> None:
    view = exempt_view("a/b", "3f9a2c1b0d", None)
    form = json.loads(submit()["payload"])
    form["view"]["private_metadata"] = view["private_metadata"]
    wish = read({"payload": json.dumps(form)}, NOON)
    assert isinstance(wish, CardAction)
    assert (wish.cluster, wish.card, wish.response_url) == ("a/b", "3f9a2c1b0d", None)
    assert [block.get("block_id") for block in view["blocks"]] == ["reason", "span", None]


@pytest.mark.parametrize("reason", [None, 7, ""])
def test_a_submission_without_a_reason_is_shown_again(reason: Any) -> None:
    wish = read(submit(reason), NOON)
    assert isinstance(wish, Mistaken)
    assert "reason" in wish.errors


@pytest.mark.parametrize("about", ["", "{", "[]", "7", "[" * 100_000, '{"cluster":"ml"}', None, {}])
def test_a_dialog_that_names_no_card_is_nothing_of_ours(about: Any) -> None:
    form = json.loads(submit()["payload"])
    form["view"]["private_metadata"] = about
    assert isinstance(read({"payload": json.dumps(form)}, NOON), Ignored)


@pytest.mark.parametrize("missing", ["user_id", "response_url"])
def test_a_command_that_cannot_be_answered_is_nothing_of_ours(missing: str) -> None:
    assert isinstance(read({k: v for k, v in COMMAND.items() if k != missing}, NOON), Ignored)
