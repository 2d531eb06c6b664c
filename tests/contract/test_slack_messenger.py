"""The messenger over HTTP: what arrives at Slack, and which error each of its answers becomes."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import replace
from datetime import timedelta
from typing import Any

import pytest
from boto3 import Session
from slack_sdk import WebClient
from werkzeug.serving import make_server
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
from steward.settings import Settings
from steward.sinks.slack import SlackMessenger
from tests.builders import NOON
from tests.contract.hanging_up import hanging_up
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
        ("is_inactive", ChannelError),
        ("restricted_action_thread_only_channel", ChannelError),
        ("message_not_found", MessageGoneError),
        ("cannot_reply_to_message", MessageGoneError),
        ("thread_not_found", MessageGoneError),
        ("restricted_action_thread_locked", MessageGoneError),
        ("cant_update_message", MessageGoneError),
        ("edit_window_closed", MessageGoneError),
        ("cant_delete_message", MessageGoneError),
        ("ratelimited", NotAcceptedError),
        ("something_new", NotAcceptedError),
        ("internal_error", UnknownOutcomeError),
        ("update_failed", UnknownOutcomeError),
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


# --- threads --------------------------------------------------------------------------------------


def reply_to(card: Posted, **more: Any) -> dict[str, Any]:
    return {**MESSAGE, "thread_ts": card.ts, **more}


def test_a_reply_stands_in_its_thread_and_a_broadcast_one_in_the_channel_too(slack: Slack) -> None:
    messenger = slack.messenger(slack.standin())
    card = messenger.post(MESSAGE, ATTEMPT)
    messenger.post(reply_to(card), replace(OTHER, thread=card.ts))
    messenger.post(reply_to(card, reply_broadcast=True), replace(OTHER, id="a3", thread=card.ts))
    told = [(m["thread_ts"], m["broadcast"]) for m in slack.app.messages]
    assert told == [(None, False), (card.ts, False), (card.ts, True)]
    # In the history of the channel the first reply is not to be found, the second is.
    assert messenger.find(OTHER) is None
    assert messenger.find(replace(OTHER, id="a3")) is not None


def test_a_reply_is_looked_up_in_its_thread_alone(slack: Slack) -> None:
    messenger = slack.messenger(slack.standin())
    card = messenger.post(MESSAGE, ATTEMPT)
    other_card = messenger.post(MESSAGE, replace(ATTEMPT, id="a0"))
    attempt = replace(OTHER, thread=card.ts)
    note = messenger.post(reply_to(card), attempt)
    slack.calls.clear()
    assert messenger.find(attempt) == note
    assert messenger.find(replace(attempt, thread=other_card.ts)) is None
    assert [call["method"] for call in slack.calls] == ["conversations.replies"] * 2


def test_a_thread_is_searched_page_by_page_around_the_attempt(slack: Slack) -> None:
    messenger = slack.messenger(slack.standin())
    card = messenger.post(MESSAGE, ATTEMPT)
    slack.clock.at = NOON - timedelta(seconds=61)
    messenger.post(reply_to(card), replace(OTHER, id="before", thread=card.ts))
    slack.clock.at = NOON
    for n in range(200):
        messenger.post(reply_to(card), replace(OTHER, id=f"n{n}", thread=card.ts))
    attempt = replace(OTHER, thread=card.ts)
    note = messenger.post(reply_to(card), attempt)
    slack.calls.clear()
    assert messenger.find(attempt) == note
    assert len(slack.calls) == 2
    assert messenger.find(replace(attempt, id="before")) is None


def test_an_edit_of_a_reply_names_neither_thread_nor_broadcast(slack: Slack) -> None:
    # Slack: no_dual_broadcast_content_update, for an edit that changes the text as well.
    messenger = slack.messenger(slack.standin())
    card = messenger.post(MESSAGE, ATTEMPT)
    message = reply_to(card, reply_broadcast=True)
    note = messenger.post(message, replace(OTHER, thread=card.ts))
    messenger.update(note, {**message, "text": "again"}, replace(OTHER, thread=card.ts))
    payload = slack.calls[-1]["payload"]
    assert payload["text"] == "again"
    assert payload.keys() & {"thread_ts", "reply_broadcast"} == set()
    assert slack.app.messages[-1]["thread_ts"] == card.ts


def test_a_reply_to_what_is_gone_is_not_left_in_the_channel(slack: Slack) -> None:
    messenger = slack.messenger(slack.standin())
    card = messenger.post(MESSAGE, ATTEMPT)
    messenger.delete(card)
    with pytest.raises(MessageGoneError, match=card.ts):
        messenger.post(reply_to(card), replace(OTHER, thread=card.ts))
    assert slack.app.messages == []
    assert messenger.find(replace(OTHER, thread=card.ts)) is None


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, "ratelimited", UnknownOutcomeError),
        (200, "internal_error", UnknownOutcomeError),
        (200, "message_not_found", MessageGoneError),
    ],
)
def test_a_reply_to_nothing_that_cannot_be_taken_back_is_found_and_not_repeated(
    slack: Slack, status: int, error: str, kind: type[DeliveryError]
) -> None:
    refusing = {"method": "chat.delete", "status": status, "body": {"ok": False, "error": error}}
    messenger = slack.messenger(slack.standin(refusing))
    gone = Posted(channel=CHANNEL, ts="1.000001")
    attempt = replace(OTHER, thread=gone.ts)
    with pytest.raises(kind, match="reply to") as caught:
        messenger.post(reply_to(gone), attempt)
    assert type(caught.value) is kind
    (message,) = slack.app.messages
    assert messenger.find(attempt) == Posted(channel=CHANNEL, ts=message["ts"])


def test_a_reply_that_landed_in_the_channel_unseen_is_found_there(slack: Slack) -> None:
    messenger = slack.messenger(
        slack.standin({"method": "chat.postMessage", "status": 504, "times": 1, "listed_after": 0})
    )
    gone = Posted(channel=CHANNEL, ts="1.000001")
    attempt = replace(OTHER, thread=gone.ts)
    with pytest.raises(UnknownOutcomeError):
        messenger.post(reply_to(gone), attempt)
    (message,) = slack.app.messages
    assert messenger.find(attempt) == Posted(channel=CHANNEL, ts=message["ts"])


def test_an_answer_without_the_message_is_no_proof_that_a_reply_went_astray(slack: Slack) -> None:
    body = {"ok": True, "channel": CHANNEL, "ts": "2.0"}
    posted = slack.answering(body=body).post(reply_to(Posted(channel=CHANNEL, ts="1.0")), OTHER)
    assert posted == Posted(channel=CHANNEL, ts="2.0")


# --- the way there -----------------------------------------------------------------------------


def test_no_answer_in_time_leaves_the_outcome_open(slack: Slack) -> None:
    def slow(environ: Any, start_response: Any) -> Any:
        time.sleep(1.5)
        return Response("{}")(environ, start_response)

    with pytest.raises(UnknownOutcomeError):
        slack.messenger(slow, timeout_seconds=1).post(MESSAGE, ATTEMPT)


def test_a_connection_that_breaks_is_not_tried_again(slack: Slack) -> None:
    # slack_sdk's default would: the message might be there twice.
    with hanging_up() as (url, arrived):
        settings = Settings(local_endpoint=url, slack_secret=SECRET)
        with pytest.raises(UnknownOutcomeError):
            SlackMessenger(slack.session, settings, slack.clock).post(MESSAGE, ATTEMPT)
        assert len(arrived) == 1


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


def test_slacks_own_client_posts_edits_deletes_and_reads_at_the_standin(slack: Slack) -> None:
    # The product calls by method name; this is what slack_sdk's typed methods send.
    with served(slack.standin()) as url:
        client = WebClient(token="xoxb", base_url=f"{url}/slack/api/")
        ts = client.chat_postMessage(channel="C1", text="x", blocks=BLOCKS)["ts"]
        client.chat_update(channel="C1", ts=ts, text="y", blocks=BLOCKS)
        client.chat_delete(
            channel="C1", ts=str(client.chat_postMessage(channel="C1", text="z")["ts"])
        )
        history = client.conversations_history(channel="C1", include_all_metadata=True)
    assert [(m["text"], m["blocks"]) for m in history["messages"]] == [("y", BLOCKS)]
