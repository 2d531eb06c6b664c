"""The messenger over HTTP: what arrives at Slack, and which error each of its answers becomes."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from boto3 import Session
from slack_sdk import WebClient
from werkzeug.serving import make_server
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from local.standins.slack import SlackStandin
from steward.alerts.errors import (
    ChannelError,
    CredentialsError,
    DeliveryError,
    MessageGoneError,
    NotAcceptedError,
    RefusedContentError,
    UnknownOutcomeError,
)
from steward.alerts.model import Attempt, Posted
from steward.errors import ConfigError
from steward.settings import Settings
from steward.sinks.slack import SlackMessenger
from tests.builders import NOON
from tests.fakes import FixedTime

SECRET = "gpu-steward/slack"
TOKEN = "xoxb-known-to-nobody"
CHANNEL = "C0RESEARCH"
ATTEMPT = Attempt(
    cluster="ml-shared-01",
    card="idle_gpus|Job/a/b|1",
    channel=CHANNEL,
    revision="r1",
    id="a1",
    at=NOON,
)
OTHER = replace(ATTEMPT, card="other", id="a2")
BLOCKS = [{"type": "section", "text": {"type": "mrkdwn", "text": "a &amp; b"}}]
MESSAGE = {"text": "1 GPU idle", "blocks": BLOCKS}

type Wsgi = Callable[..., Any]


@contextmanager
def served(app: Wsgi) -> Iterator[str]:
    """Serve below /slack/api on a free port of 127.0.0.1; gives the base URL."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Slack:
    """A stand-in, its calls, its clock, and messengers that talk to it."""

    def __init__(self, session: Session, stack: ExitStack) -> None:
        self.session = session
        self.clock = FixedTime()
        self.calls: list[dict[str, Any]] = []
        self._stack = stack

    def standin(self, *answers: dict[str, Any]) -> SlackStandin:
        self.app = SlackStandin(answers, self.clock.now, self.calls.append)
        return self.app

    def messenger(self, app: Wsgi, *, timeout_seconds: int = 5) -> SlackMessenger:
        url = self._stack.enter_context(served(app))
        settings = Settings(local_endpoint=url, slack_secret=SECRET)
        return SlackMessenger(self.session, settings, self.clock, timeout_seconds=timeout_seconds)

    def answering(self, **answer: Any) -> SlackMessenger:
        return self.messenger(self.standin(answer))


@pytest.fixture
def session(aws: Session) -> Session:
    client = aws.client("secretsmanager")
    try:
        client.create_secret(Name=SECRET, SecretString=json.dumps({"bot_token": TOKEN}))
    except client.exceptions.ResourceExistsException:
        client.put_secret_value(SecretId=SECRET, SecretString=json.dumps({"bot_token": TOKEN}))
    return aws


@pytest.fixture
def slack(session: Session) -> Iterator[Slack]:
    with ExitStack() as stack:
        yield Slack(session, stack)


def test_a_post_arrives_whole_and_carries_its_attempt(slack: Slack) -> None:
    posted = slack.messenger(slack.standin()).post(MESSAGE, ATTEMPT)
    (call,) = slack.calls
    assert (call["method"], call["channel"], call["at"]) == (
        "chat.postMessage",
        CHANNEL,
        "2026-11-05T12:00:00Z",
    )
    payload = call["payload"]
    assert (payload["text"], payload["blocks"]) == ("1 GPU idle", BLOCKS)
    assert payload["metadata"] == {
        "event_type": "gpu_steward_card",
        "event_payload": {
            "cluster": "ml-shared-01",
            "card": "idle_gpus|Job/a/b|1",
            "revision": "r1",
            "id": "a1",
            "at": "2026-11-05T12:00:00Z",
        },
    }
    assert (payload["parse"], payload["link_names"]) == ("none", False)
    assert (payload["unfurl_links"], payload["unfurl_media"]) == (False, False)
    assert posted == Posted(channel=CHANNEL, ts=call["response"]["ts"])


def test_the_token_authorises_and_is_recorded_nowhere(slack: Slack) -> None:
    standin, seen = slack.standin(), []

    def spying(environ: Any, start_response: Any) -> Any:
        seen.append(Request(environ).headers["Authorization"])
        return standin(environ, start_response)

    slack.messenger(spying).post(MESSAGE, ATTEMPT)
    assert seen == [f"Bearer {TOKEN}"]
    assert TOKEN not in json.dumps([slack.calls, standin.messages])


def test_an_edit_is_a_new_version_of_the_same_message(slack: Slack) -> None:
    messenger = slack.messenger(slack.standin())
    posted = messenger.post(MESSAGE, ATTEMPT)
    slack.clock.at += timedelta(minutes=5)
    assert messenger.update(posted, {**MESSAGE, "text": "2 GPUs idle"}, OTHER) == posted
    (message,) = slack.app.messages
    assert [(v["at"], v["payload"]["text"]) for v in message["versions"]] == [
        ("2026-11-05T12:00:00Z", "1 GPU idle"),
        ("2026-11-05T12:05:00Z", "2 GPUs idle"),
    ]


def test_an_edit_as_text_alone_takes_the_refused_blocks_away(slack: Slack) -> None:
    messenger = slack.messenger(slack.standin())
    posted = messenger.post(MESSAGE, ATTEMPT)
    messenger.update(posted, {"text": "plain"}, OTHER)
    assert slack.app.messages[0]["versions"][-1]["payload"]["blocks"] == []


def test_an_attempt_is_found_by_its_id_among_other_messages(slack: Slack) -> None:
    messenger = slack.messenger(slack.standin())
    posted = messenger.post(MESSAGE, ATTEMPT)
    messenger.post(MESSAGE, OTHER)
    assert messenger.find(ATTEMPT) == posted
    assert messenger.find(replace(ATTEMPT, channel="C0VISION")) is None


def test_an_attempt_is_found_behind_a_page_of_later_messages(slack: Slack) -> None:
    messenger = slack.messenger(slack.standin())
    posted = messenger.post(MESSAGE, ATTEMPT)
    for _ in range(201):
        messenger.post({"text": "chatter"}, OTHER)
    slack.calls.clear()
    assert messenger.find(ATTEMPT) == posted
    assert [call["method"] for call in slack.calls] == ["conversations.history"] * 2


@pytest.mark.parametrize(
    ("seconds", "found"), [(-61, False), (-59, True), (599, True), (601, False)]
)
def test_only_the_time_around_the_attempt_is_searched(
    slack: Slack, seconds: int, *, found: bool
) -> None:
    messenger = slack.messenger(slack.standin())
    slack.clock.at = NOON + timedelta(seconds=seconds)
    messenger.post(MESSAGE, ATTEMPT)
    assert (messenger.find(ATTEMPT) is not None) is found


def test_the_history_is_not_read_without_end(slack: Slack) -> None:
    standin = slack.standin()
    messenger = slack.messenger(standin)
    version = {"at": "", "payload": {"text": "chatter"}}
    standin.messages += [
        {
            "channel": CHANNEL,
            "ts": f"{NOON.timestamp() + n / 10}",
            "posted_at": "",
            "versions": [version],
        }
        for n in range(3000)
    ]
    slack.calls.clear()
    assert messenger.find(ATTEMPT) is None
    assert len(slack.calls) == 5


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("invalid_blocks", RefusedContentError),
        ("msg_blocks_too_long", RefusedContentError),
        ("msg_too_long", RefusedContentError),
        ("channel_not_found", ChannelError),
        ("not_in_channel", ChannelError),
        ("is_archived", ChannelError),
        ("invalid_auth", CredentialsError),
        ("token_revoked", CredentialsError),
        ("account_inactive", CredentialsError),
        ("missing_scope", CredentialsError),
        ("message_not_found", MessageGoneError),
        ("cant_update_message", MessageGoneError),
        ("edit_window_closed", MessageGoneError),
        ("cant_delete_message", MessageGoneError),
        ("ratelimited", NotAcceptedError),
        ("something_new", NotAcceptedError),
        ("internal_error", UnknownOutcomeError),
    ],
)
def test_each_code_says_what_can_be_done(
    slack: Slack, code: str, kind: type[DeliveryError]
) -> None:
    with pytest.raises(kind, match=f"chat.postMessage {CHANNEL}: {code}") as caught:
        slack.answering(body={"ok": False, "error": code}).post(MESSAGE, ATTEMPT)
    assert type(caught.value) is kind


def test_slacks_pointer_and_the_missing_scope_are_told(slack: Slack) -> None:
    long = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
    messenger = slack.messenger(slack.standin())
    with pytest.raises(RefusedContentError, match="json-pointer:/blocks/0/text/text"):
        messenger.post({"text": "t", "blocks": [long]}, ATTEMPT)
    body = {"ok": False, "error": "missing_scope", "needed": "channels:history"}
    with pytest.raises(CredentialsError, match="channels:history"):
        slack.answering(body=body).find(ATTEMPT)


@pytest.mark.parametrize(
    ("headers", "seconds"), [({"Retry-After": "7"}, 7), ({}, 30), ({"Retry-After": "soon"}, 30)]
)
def test_a_rate_limit_says_how_long_to_rest(
    slack: Slack, headers: dict[str, str], seconds: float
) -> None:
    messenger = slack.answering(
        status=429, headers=headers, body={"ok": False, "error": "ratelimited"}
    )
    with pytest.raises(NotAcceptedError) as caught:
        messenger.post(MESSAGE, ATTEMPT)
    assert caught.value.retry_after_seconds == seconds
    assert len(slack.calls) == 1  # nothing is retried down here


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (503, {"ok": False, "error": "service_unavailable"}, NotAcceptedError),
        (502, "<html>Bad Gateway</html>", UnknownOutcomeError),
        (500, "", UnknownOutcomeError),
        (504, {}, UnknownOutcomeError),
        (200, "<html>maintenance</html>", UnknownOutcomeError),
        (200, "[1]", UnknownOutcomeError),
        (200, "", UnknownOutcomeError),
        (200, {"ok": True}, UnknownOutcomeError),
    ],
)
def test_an_answer_that_does_not_tell_leaves_the_outcome_open(
    slack: Slack, status: int, body: Any, kind: type[DeliveryError]
) -> None:
    with pytest.raises(kind) as caught:
        slack.answering(status=status, body=body).post(MESSAGE, ATTEMPT)
    assert type(caught.value) is kind
    assert len(slack.calls) == 1


def test_a_history_without_messages_is_no_proof_of_absence(slack: Slack) -> None:
    with pytest.raises(UnknownOutcomeError, match="no messages"):
        slack.answering(body={"ok": True}).find(ATTEMPT)


def test_a_message_accepted_whose_answer_is_lost_can_be_found_once_it_is_listed(
    slack: Slack,
) -> None:
    messenger = slack.answering(method="chat.postMessage", status=504, times=1, listed_after=120)
    with pytest.raises(UnknownOutcomeError):
        messenger.post(MESSAGE, ATTEMPT)
    (message,) = slack.app.messages
    slack.clock.at = NOON + timedelta(seconds=119)
    assert messenger.find(ATTEMPT) is None
    slack.clock.at = NOON + timedelta(seconds=120)
    assert messenger.find(ATTEMPT) == Posted(channel=CHANNEL, ts=message["ts"])
    assert slack.calls[0]["response"] == {"status": 504, "ok": False, "body": None}


def test_a_deleted_message_is_gone_and_its_neighbours_stay(slack: Slack) -> None:
    messenger = slack.messenger(slack.standin())
    posted, other = messenger.post(MESSAGE, ATTEMPT), messenger.post(MESSAGE, OTHER)
    messenger.delete(posted)
    assert (messenger.find(ATTEMPT), messenger.find(OTHER)) == (None, other)
    for touch in (messenger.delete, lambda gone: messenger.update(gone, MESSAGE, ATTEMPT)):
        with pytest.raises(MessageGoneError):
            touch(posted)


def test_no_answer_in_time_leaves_the_outcome_open(slack: Slack) -> None:
    def slow(environ: Any, start_response: Any) -> Any:
        time.sleep(1.5)
        return Response("{}")(environ, start_response)

    with pytest.raises(UnknownOutcomeError):
        slack.messenger(slow, timeout_seconds=1).post(MESSAGE, ATTEMPT)


def test_a_refused_connection_was_not_accepted(slack: Slack) -> None:
    with served(slack.standin()) as url:
        pass
    settings = Settings(local_endpoint=url, slack_secret=SECRET)
    with pytest.raises(NotAcceptedError, match="no connection"):
        SlackMessenger(slack.session, settings, slack.clock).post(MESSAGE, ATTEMPT)


@pytest.mark.parametrize("text", [TOKEN, f" {TOKEN}\n", json.dumps({"bot_token": TOKEN, "x": 1})])
def test_a_secret_is_json_or_the_token_alone(slack: Slack, text: str) -> None:
    slack.session.client("secretsmanager").put_secret_value(SecretId=SECRET, SecretString=text)
    assert slack.messenger(slack.standin()).post(MESSAGE, ATTEMPT).channel == CHANNEL


@pytest.mark.parametrize(
    "text", [" ", '{"bot_token": ""}', '{"token": "x"}', '{"bot_token": 7}', "{"]
)
def test_a_secret_without_a_token_is_named(slack: Slack, text: str) -> None:
    slack.session.client("secretsmanager").put_secret_value(SecretId=SECRET, SecretString=text)
    with pytest.raises(CredentialsError, match=SECRET):
        slack.messenger(slack.standin()).post(MESSAGE, ATTEMPT)
    assert slack.calls == []


@pytest.mark.parametrize(
    ("secret", "said"), [("absent/secret", "absent/secret"), ("", "SLACK_SECRET")]
)
def test_an_absent_secret_is_named(slack: Slack, secret: str, said: str) -> None:
    settings = Settings(local_endpoint="http://127.0.0.1:9", slack_secret=secret)
    with pytest.raises(CredentialsError, match=said):
        SlackMessenger(slack.session, settings, slack.clock).find(ATTEMPT)


def test_a_rotated_token_is_taken_up_after_five_minutes(slack: Slack) -> None:
    seen: list[str] = []

    def spying(environ: Any, start_response: Any) -> Any:
        seen.append(Request(environ).headers["Authorization"])
        return Response('{"ok": true, "channel": "C", "ts": "1"}')(environ, start_response)

    messenger = slack.messenger(spying)
    messenger.post(MESSAGE, ATTEMPT)
    client = slack.session.client("secretsmanager")
    client.put_secret_value(SecretId=SECRET, SecretString="xoxb-new")
    for minutes in (5, 6):
        slack.clock.at = NOON + timedelta(minutes=minutes)
        messenger.post(MESSAGE, ATTEMPT)
    assert seen == [f"Bearer {TOKEN}", f"Bearer {TOKEN}", "Bearer xoxb-new"]


# --- the stand-in itself ------------------------------------------------------------------------


def form(standin: SlackStandin, method: str, **arguments: str) -> dict[str, Any]:
    """Call as a form, with a token among its fields."""
    answer = Client(standin).post(f"/slack/api/{method}", data={"token": "xoxb", **arguments})
    body: dict[str, Any] = answer.get_json()
    return body


def test_the_standin_reads_forms_and_keeps_no_token() -> None:
    calls: list[dict[str, Any]] = []
    standin = SlackStandin([], lambda: NOON, calls.append)
    assert form(standin, "chat.postMessage", channel="C1", blocks=json.dumps(BLOCKS))["ok"]
    assert calls[0]["payload"] == {"channel": "C1", "blocks": BLOCKS}
    assert form(standin, "chat.postMessage", channel="C1", blocks="[")["error"] == "invalid_json"
    assert form(standin, "auth.test")["ok"]
    assert form(standin, "users.list")["error"] == "unknown_method"


def test_the_standin_wants_a_token() -> None:
    standin = SlackStandin([], lambda: NOON)
    assert form(standin, "auth.test", token="")["error"] == "not_authed"


def test_timestamps_are_the_virtual_times_and_differ() -> None:
    standin = SlackStandin([], lambda: NOON)
    stamps = [form(standin, "chat.postMessage", channel="C1", text="x")["ts"] for _ in range(2)]
    assert stamps == [f"{int(NOON.timestamp())}.{n:06d}" for n in (1, 2)]


def test_a_script_answers_in_its_period_for_its_method_and_channel_so_many_times() -> None:
    moments: list[datetime] = [NOON]
    standin = SlackStandin(
        [
            {"time": "2026-11-05T12:00:00Z", "kind": "command", "body": "text=/gpu"},
            {
                "from": "2026-11-05T12:00:00Z",
                "to": "2026-11-05T12:10:00Z",
                "method": "chat.postMessage",
                "channel": "C1",
                "times": 1,
                "body": {"ok": False, "error": "is_archived"},
            },
        ],
        lambda: moments[-1],
    )

    def post(channel: str, minutes: int) -> Any:
        moments.append(NOON + timedelta(minutes=minutes))
        return form(standin, "chat.postMessage", channel=channel, text="x").get("error")

    assert post("C1", -1) is None  # not yet
    assert post("C2", 0) is None  # another channel
    assert form(standin, "auth.test").get("error") is None  # another method
    assert post("C1", 10) is None  # no longer: the period is half-open
    assert post("C1", 9) == "is_archived"
    assert post("C1", 9) is None  # once


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
    with pytest.raises(ConfigError) as caught:
        SlackStandin([entry], lambda: NOON)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({}, "no_text"),
        ({"text": " "}, "no_text"),
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"blocks": {}, "text": ""}, "no_text"),
        ({"blocks": ["x"]}, "invalid_blocks_format"),
        ({"blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        ({"blocks": [{"type": "alarm"}]}, "invalid_blocks"),
        ({"blocks": [{"type": "section"}]}, "invalid_blocks"),
        (
            {"blocks": [{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}]},
            "invalid_blocks",
        ),
        ({"blocks": [{"type": "context", "elements": []}]}, "invalid_blocks"),
        (
            {"blocks": [{"type": "section", "fields": [{"type": "mrkdwn", "text": ""}]}]},
            "invalid_blocks",
        ),
        (
            {"blocks": [{"type": "section", "fields": [{"type": "mrkdwn", "text": "x"}] * 11}]},
            "invalid_blocks",
        ),
        (
            {"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3000}}] * 5},
            "msg_blocks_too_long",
        ),
    ],
)
def test_the_standin_refuses_what_slack_refuses(payload: dict[str, Any], error: str) -> None:
    standin = SlackStandin([], lambda: NOON)
    given = {k: v if isinstance(v, str) else json.dumps(v) for k, v in payload.items()}
    assert form(standin, "chat.postMessage", channel="C1", **given)["error"] == error
    assert standin.messages == []


def test_slacks_own_client_posts_edits_deletes_and_reads_at_the_standin(slack: Slack) -> None:
    # The product calls by method name; this is what slack_sdk's typed methods send.
    with served(slack.standin()) as url:
        client = WebClient(token="xoxb", base_url=f"{url}/slack/api/")
        ts = client.chat_postMessage(channel="C1", text="x", blocks=BLOCKS)["ts"]
        client.chat_update(channel="C1", ts=ts, text="y")
        client.chat_delete(
            channel="C1", ts=str(client.chat_postMessage(channel="C1", text="z")["ts"])
        )
        history = client.conversations_history(channel="C1", include_all_metadata=True)
    assert [(m["text"], m["blocks"]) for m in history["messages"]] == [("y", BLOCKS)]
