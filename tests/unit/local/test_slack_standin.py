"""The stand-in Slack over its wire: what it keeps, what it shows again, and what it says no to."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from werkzeug.test import Client

from local.standins.slack import SlackStandin
from steward.errors import ConfigError
from tests.builders import NOON

SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "t"}}
VIEW = {
    "type": "modal",
    "title": {"type": "plain_text", "text": "Exempt"},
    "blocks": [SECTION],
}


class Slack:
    """A stand-in at a time that a test moves, called with a token as a form or as JSON."""

    def __init__(self, *script: dict[str, Any], people: dict[str, str] | None = None) -> None:
        self.at = NOON
        self.calls: list[dict[str, Any]] = []
        self.app = SlackStandin(script, lambda: self.at, self.calls.append, people)

    def form(self, method: str, **arguments: Any) -> dict[str, Any]:
        fields = {k: v if isinstance(v, str) else json.dumps(v) for k, v in arguments.items()}
        answer = Client(self.app).post(f"/slack/api/{method}", data={"token": "xoxb", **fields})
        body: dict[str, Any] = answer.get_json()
        return body

    def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        headers = {"Authorization": "Bearer xoxb"}
        answer = Client(self.app).post(f"/slack/api/{method}", json=arguments, headers=headers)
        body: dict[str, Any] = answer.get_json()
        return body

    def post(self, text: str = "t", **more: Any) -> str:
        ts: str = self.call("chat.postMessage", channel="C1", text=text, **more)["ts"]
        return ts

    def answer(self, message: Any, path: str = "/actions/T0/1/x") -> tuple[int, str]:
        answer = Client(self.app.hooks).post(path, json=message)
        return answer.status_code, answer.text


# --- calls ----------------------------------------------------------------------------------------


def test_it_reads_forms_and_keeps_no_token() -> None:
    slack = Slack()
    assert slack.form("chat.postMessage", channel="C1", blocks=[SECTION])["ok"]
    assert slack.calls[0]["payload"] == {"channel": "C1", "blocks": [SECTION]}
    assert slack.form("chat.postMessage", channel="C1", blocks="[")["error"] == "invalid_json"
    assert slack.form("auth.test")["team_id"] == "T0LOCAL"
    assert slack.form("users.list")["error"] == "unknown_method"
    assert "xoxb" not in json.dumps([slack.calls, slack.app.messages])


def test_it_wants_a_token() -> None:
    slack = Slack()
    assert slack.form("auth.test", token="")["error"] == "not_authed"


def test_every_call_is_told_with_its_answer() -> None:
    slack = Slack()
    slack.post()
    slack.call("chat.postMessage", channel="C2")
    slack.form("chat.postMessage", channel="C1", blocks="[")
    told = [(call["at"], call["channel"], call["response"]["ok"]) for call in slack.calls]
    at = "2026-11-05T12:00:00Z"
    assert told == [(at, "C1", True), (at, "C2", False), (at, None, False)]


def test_timestamps_are_the_virtual_times_and_differ() -> None:
    slack = Slack()
    assert [slack.post(), slack.post()] == [f"{int(NOON.timestamp())}.{n:06d}" for n in (1, 2)]


def test_a_refusal_points_at_the_fault_and_keeps_nothing() -> None:
    slack = Slack()
    bad = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_001}}
    assert slack.call("chat.postMessage", channel="C1", blocks=[SECTION, bad]) == {
        "ok": False,
        "error": "invalid_blocks",
        "response_metadata": {
            "messages": [
                "[ERROR] must be less than 3001 characters [json-pointer:/blocks/1/text/text]"
            ]
        },
    }
    assert slack.app.messages == []


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update", "conversations.history"])
def test_a_channel_is_named(method: str) -> None:
    assert Slack().call(method, text="t", ts="1.0")["error"] == "channel_not_found"


# --- edits ----------------------------------------------------------------------------------------


def test_an_edit_with_a_text_alone_takes_the_blocks_away_and_keeps_the_metadata() -> None:
    # docs.slack.dev, chat.update: blocks are retained only where the text is not given either.
    slack = Slack()
    metadata = {"event_type": "card", "event_payload": {"id": "1"}}
    ts = slack.post(blocks=[SECTION], metadata=metadata)
    assert slack.call("chat.update", channel="C1", ts=ts, metadata={"event_type": "x"})["ok"]
    (shown,) = slack.call("conversations.history", channel="C1")["messages"]
    assert (shown["text"], shown["blocks"]) == ("t", [SECTION])
    slack.call("chat.update", channel="C1", ts=ts, text="u")
    page = slack.call("conversations.history", channel="C1", include_all_metadata=True)
    (shown,) = page["messages"]
    assert (shown["text"], shown["metadata"]) == ("u", {"event_type": "x"})
    assert "blocks" not in shown


def test_an_edit_takes_four_thousand_characters() -> None:
    slack = Slack()
    ts = slack.post("x" * 40_000)
    assert slack.call("chat.update", channel="C1", ts=ts, text="x" * 4_000)["ok"]
    error = slack.call("chat.update", channel="C1", ts=ts, text="x" * 4_001)["error"]
    assert error == "msg_too_long"


def test_what_is_not_there_is_neither_edited_nor_deleted() -> None:
    slack = Slack()
    ts = slack.post()
    for channel, given in (("C2", ts), ("C1", "1.000001")):
        for method in ("chat.update", "chat.delete"):
            error = slack.call(method, channel=channel, ts=given, text="u")["error"]
            assert error == "message_not_found"


# --- threads --------------------------------------------------------------------------------------


def texts(page: dict[str, Any]) -> list[str]:
    return [message["text"] for message in page["messages"]]


def test_replies_are_in_their_thread_and_only_broadcast_ones_in_the_history() -> None:
    slack = Slack()
    card = slack.post("card")
    slack.post("other")
    slack.post("quiet", thread_ts=card)
    loud = slack.post("loud", thread_ts=card, reply_broadcast=True)
    history = slack.call("conversations.history", channel="C1")
    assert texts(history) == ["loud", "other", "card"]
    assert history["messages"][0]["subtype"] == "thread_broadcast"
    thread = slack.call("conversations.replies", channel="C1", ts=card)
    assert texts(thread) == ["card", "quiet", "loud"]
    assert [m.get("thread_ts") for m in thread["messages"]] == [None, card, card]
    # Also where a reply of it is named, as documented.
    assert slack.call("conversations.replies", channel="C1", ts=loud) == thread


def test_a_thread_is_paged_and_cut_to_a_time_and_its_parent_is_always_there() -> None:
    slack = Slack()
    card = slack.post("card")
    for minute in range(1, 5):
        slack.at = NOON + timedelta(minutes=minute)
        slack.post(f"n{minute}", thread_ts=card)
    ask = {
        "channel": "C1",
        "ts": card,
        "oldest": str((NOON + timedelta(minutes=1, seconds=30)).timestamp()),
        "latest": str((NOON + timedelta(minutes=3, seconds=30)).timestamp()),
        "limit": 2,
    }
    first = slack.form("conversations.replies", **ask)
    assert (texts(first), first["has_more"]) == (["card", "n2"], True)
    cursor = first["response_metadata"]["next_cursor"]
    last = slack.form("conversations.replies", **ask, cursor=cursor)
    assert (texts(last), last["has_more"]) == (["n3"], False)
    assert last["response_metadata"]["next_cursor"] == ""


def test_a_post_says_whether_it_became_a_reply() -> None:
    slack = Slack()
    card = slack.post("card")
    reply = slack.call("chat.postMessage", channel="C1", text="r", thread_ts=card)
    assert reply["message"]["thread_ts"] == card
    assert "thread_ts" not in slack.call("chat.postMessage", channel="C1", text="x")["message"]


def test_a_reply_to_nothing_lands_in_the_channel() -> None:
    # slack-go/slack#1571: no error, and only the answer's message tells.
    slack = Slack()
    card = slack.post("card")
    note = slack.post("note", thread_ts=card)
    slack.call("chat.delete", channel="C1", ts=slack.post("gone"))
    gone = f"{int(NOON.timestamp())}.000003"
    astray = [(gone, "C1"), (note, "C1"), (card, "C2")]
    for thread, channel in astray:
        more = {"thread_ts": thread, "reply_broadcast": True}
        answer = slack.call("chat.postMessage", channel=channel, text="r", **more)
        assert answer["ok"]
        assert "thread_ts" not in answer["message"]
    stray = slack.app.messages[-3:]
    assert [(m["thread_ts"], m["broadcast"]) for m in stray] == [(None, False)] * 3
    assert all("thread_ts" not in m["versions"][0]["payload"] for m in stray)


def test_the_replies_of_a_deleted_message_stay_and_its_thread_is_gone() -> None:
    slack = Slack()
    card = slack.post("card")
    slack.post("note", thread_ts=card)
    slack.call("chat.delete", channel="C1", ts=card)
    error = slack.call("conversations.replies", channel="C1", ts=card)["error"]
    assert error == "thread_not_found"
    assert [m["thread_ts"] for m in slack.app.messages] == [card]


def test_an_edit_leaves_a_reply_where_it_is() -> None:
    slack = Slack()
    card, other = slack.post("card"), slack.post("other")
    note = slack.post("note", thread_ts=card)
    assert slack.call("chat.update", channel="C1", ts=note, text="u", thread_ts=other)["ok"]
    assert texts(slack.call("conversations.replies", channel="C1", ts=card)) == ["card", "u"]


def test_a_reply_is_broadcast_later_on_its_own_and_not_with_another_text() -> None:
    slack = Slack()
    card = slack.post("card")
    note = slack.post("note", thread_ts=card)

    def edit(ts: str, **more: Any) -> str | None:
        answer = slack.call("chat.update", channel="C1", ts=ts, reply_broadcast=True, **more)
        error: str | None = answer.get("error")
        return error

    assert edit(note, text="u") == "no_dual_broadcast_content_update"
    assert edit(card) == "cant_broadcast_message"
    assert texts(slack.call("conversations.history", channel="C1")) == ["card"]
    assert edit(note) is None
    assert texts(slack.call("conversations.history", channel="C1")) == ["note", "card"]


# --- members and modals ---------------------------------------------------------------------------


def test_members_are_those_that_it_was_given() -> None:
    slack = Slack(people={"U1": "Ada@example.com"})
    ada = {
        "id": "U1",
        "team_id": "T0LOCAL",
        "name": "Ada",
        "profile": {"email": "Ada@example.com"},
    }
    assert slack.form("users.lookupByEmail", email="ada@EXAMPLE.com")["user"] == ada
    assert slack.form("users.info", user="U1")["user"] == ada
    assert slack.form("users.lookupByEmail", email="eve@example.com")["error"] == "users_not_found"
    assert slack.form("users.info", user="U2")["error"] == "user_not_found"
    assert Slack().form("users.lookupByEmail")["error"] == "users_not_found"


def test_a_modal_opens_once_for_a_trigger() -> None:
    slack = Slack()
    opened = slack.call("views.open", trigger_id="1.2.ab", view=VIEW)
    assert (opened["view"]["id"], opened["view"]["title"]) == ("V0LOCAL1", VIEW["title"])
    assert slack.app.views == [{"at": "2026-11-05T12:00:00Z", "trigger_id": "1.2.ab", "view": VIEW}]
    again = slack.call("views.open", trigger_id="1.2.ab", view=VIEW)
    assert again["error"] == "exchanged_trigger_id"
    assert slack.form("views.open", trigger_id="1.2.ac", view=VIEW)["ok"]


@pytest.mark.parametrize("trigger", [None, "", "1", "1.2", "1.2.A!", 7])
def test_a_modal_wants_a_trigger(trigger: Any) -> None:
    slack = Slack()
    error = slack.call("views.open", trigger_id=trigger, view=VIEW)["error"]
    assert (error, slack.app.views) == ("invalid_trigger_id", [])


def test_a_modal_that_slack_refuses_does_not_use_its_trigger_up() -> None:
    slack = Slack()
    refused = slack.call("views.open", trigger_id="1.2.ab", view={**VIEW, "title": None})
    assert refused["error"] == "invalid_arguments"
    assert refused["response_metadata"]["messages"] == [
        "[ERROR] must be an object [json-pointer:/view/title]"
    ]
    assert slack.call("views.open", trigger_id="1.2.ab")["error"] == "invalid_arguments"
    assert slack.call("views.open", trigger_id="1.2.ab", view=VIEW)["ok"]


# --- response URLs --------------------------------------------------------------------------------


def test_answers_are_kept_and_told() -> None:
    slack = Slack()
    message = {"response_type": "ephemeral", "text": "t", "blocks": [SECTION]}
    assert slack.answer(message) == (200, '{"ok": true}')
    at = "2026-11-05T12:00:00Z"
    assert slack.app.responses == [{"at": at, "path": "/actions/T0/1/x", "payload": message}]
    (call,) = slack.calls
    assert (call["method"], call["channel"], call["payload"]) == ("response_url", None, message)


def test_an_address_takes_five_answers_and_another_one_five_more() -> None:
    slack = Slack()
    said = [slack.answer({"text": "t"})[0] for _ in range(6)]
    assert said == [200] * 5 + [404]
    assert slack.answer({"text": "t"})[1] == '{"ok": false, "error": "used_url"}'
    assert slack.answer({"text": "t"}, "/actions/T0/2/y")[0] == 200
    assert len(slack.app.responses) == 6


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({}, (400, "no_text")),
        ({"text": "t", "blocks": [{"type": "alarm"}]}, (400, "invalid_blocks")),
        ([], (400, "invalid_payload")),
        ({"delete_original": True}, (200, '{"ok": true}')),
    ],
)
def test_a_refused_answer_is_named_in_plain_text_and_does_not_count(
    message: Any, said: tuple[int, str]
) -> None:
    slack = Slack()
    assert slack.answer(message) == said
    assert len(slack.app.responses) == (said[0] == 200)
    assert len(slack.calls) == 1


def test_an_answer_can_be_scripted() -> None:
    expired = {"ok": False, "error": "expired_url"}
    slack = Slack({"method": "response_url", "times": 1, "status": 404, "body": expired})
    assert slack.answer({"text": "t"}) == (404, json.dumps(expired))
    assert slack.answer({"text": "t"})[0] == 200


# --- scripts --------------------------------------------------------------------------------------


def test_a_script_answers_in_its_period_for_its_method_and_channel_so_many_times() -> None:
    slack = Slack(
        {"time": "2026-11-05T12:00:00Z", "kind": "command", "body": "text=/gpu"},
        {
            "from": "2026-11-05T12:00:00Z",
            "to": "2026-11-05T12:10:00Z",
            "method": "chat.postMessage",
            "channel": "C1",
            "times": 1,
            "body": {"ok": False, "error": "is_archived"},
        },
    )

    def post(channel: str, minutes: int) -> Any:
        slack.at = NOON + timedelta(minutes=minutes)
        return slack.form("chat.postMessage", channel=channel, text="x").get("error")

    assert post("C1", -1) is None  # not yet
    assert post("C2", 0) is None  # another channel
    assert slack.form("auth.test").get("error") is None  # another method
    assert post("C1", 10) is None  # no longer: the period is half-open
    assert post("C1", 9) == "is_archived"
    assert post("C1", 9) is None  # once


def test_a_post_whose_answer_is_lost_shows_up_late_in_history_and_thread() -> None:
    slack = Slack({"method": "chat.postMessage", "status": 504, "listed_after": 120})
    headers = {"Authorization": "Bearer xoxb"}
    slack_client = Client(slack.app)
    lost = slack_client.post(
        "/slack/api/chat.postMessage", json={"channel": "C1", "text": "t"}, headers=headers
    )
    assert lost.status_code == 504
    (card,) = slack.app.messages
    ask = {"channel": "C1", "ts": card["ts"]}
    for seconds, shown in ((119, 0), (120, 1)):
        slack.at = NOON + timedelta(seconds=seconds)
        for method in ("conversations.history", "conversations.replies"):
            assert len(slack.call(method, **ask)["messages"]) == shown


@pytest.mark.parametrize(
    "entry",
    [
        {"form": "now"},
        {"from": "noon"},
        {"times": "many"},
        {"headers": "none"},
        {"listed_after": "soon"},
    ],
)
def test_a_script_that_cannot_be_read_is_refused_with_one_line(entry: dict[str, Any]) -> None:
    def now() -> datetime:
        return NOON

    with pytest.raises(ConfigError) as caught:
        SlackStandin([entry], now)
    assert "\n" not in str(caught.value)
