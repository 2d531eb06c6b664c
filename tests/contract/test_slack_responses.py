"""Answers by response URL: where they may go, what Slack is sent, and what its refusals become."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from werkzeug.wrappers import Request, Response

from local.standins.slack import SlackStandin
from steward.alerts.errors import (
    DeliveryError,
    MessageGoneError,
    NotAcceptedError,
    RefusedContentError,
    UnknownOutcomeError,
)
from steward.errors import PermanentError
from steward.settings import Settings
from steward.sinks.slack_responses import SlackResponder
from tests.builders import NOON
from tests.contract.hanging_up import hanging_up
from tests.serving import serving

ANSWER = {"response_type": "ephemeral", "text": "acknowledged"}
ADDRESS = "https://hooks.slack.com/actions/T0/1/secret"

type Wsgi = Callable[..., Any]
type Make = Callable[[Wsgi], SlackResponder]


@pytest.fixture
def responder() -> Iterator[Make]:
    with ExitStack() as stack:

        def make(app: Wsgi) -> SlackResponder:
            url = stack.enter_context(serving(app))
            return SlackResponder(Settings(local_endpoint=url), timeout_seconds=1)

        yield make


def standin(*answers: dict[str, Any], calls: list[dict[str, Any]] | None = None) -> SlackStandin:
    seen = calls if calls is not None else []
    return SlackStandin(answers, lambda: NOON, seen.append)


def said(body: str, status: int = 200, headers: dict[str, str] | None = None) -> Wsgi:
    return Response(body, status, headers)


def test_an_answer_reaches_the_rig_in_slacks_place(responder: Make) -> None:
    calls: list[dict[str, Any]] = []
    slack = standin(calls=calls)
    responder(slack.hooks).respond(ADDRESS, {**ANSWER, "thread_ts": None})
    (kept,) = slack.responses
    assert kept["payload"] == ANSWER  # a null is not said
    assert kept["path"].endswith("/actions/T0/1/secret")
    assert (calls[0]["method"], calls[0]["response"]) == ("response_url", {"ok": True})


def test_the_rigs_own_addresses_are_called_as_they_are() -> None:
    slack = standin()
    with serving(slack.hooks) as url:
        SlackResponder(Settings(local_endpoint=url)).respond(f"{url}/slack/hooks/x/1", ANSWER)
    assert [kept["path"] for kept in slack.responses] == ["/slack/hooks/x/1"]


@pytest.mark.parametrize(
    "address",
    [
        "http://hooks.slack.com/actions/T0/1/secret",
        "https://hooks.slack.com",
        "https://hooks.slack.com/",
        "https://hooks.slack.com.evil.example/actions/T0",
        "https://hooks.slack.com@evil.example/actions/T0",
        "https://hooks.slack.com:8443/actions/T0",
        "https://hooks-slack.com/actions/T0",
        "https://evil.example/https://hooks.slack.com/actions/T0",
        "https://HOOKS.slack.com\\@evil.example/",
        "https://hooks.slack.com/actions/T0 HTTP/1.1\r\nHost: evil.example",
        "https://hooks.slack.com/actions/T0\n",
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1/slack/hooks/1",
        "file:///etc/passwd",
        "",
    ],
)
@pytest.mark.parametrize("local", ["", "http://127.0.0.1:9"])
def test_no_other_address_is_ever_called(
    monkeypatch: pytest.MonkeyPatch, address: str, local: str
) -> None:
    monkeypatch.setattr("slack_sdk.webhook.WebhookClient.send_dict", None)  # a call would raise
    with pytest.raises(MessageGoneError, match="not called"):
        SlackResponder(Settings(local_endpoint=local)).respond(address, ANSWER)


def test_without_a_rig_slack_is_called_and_with_one_it_never_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[str] = []

    def send(client: Any, body: dict[str, Any]) -> Any:
        called.append(client.url)
        return type("Answer", (), {"status_code": 200, "body": "ok", "headers": {}})

    monkeypatch.setattr("slack_sdk.webhook.WebhookClient.send_dict", send)
    for local in ("", "http://127.0.0.1:9"):
        SlackResponder(Settings(local_endpoint=local)).respond(ADDRESS, ANSWER)
    assert called == [ADDRESS, "http://127.0.0.1:9/slack/hooks/actions/T0/1/secret"]


def test_the_sixth_use_of_an_address_is_refused_for_good(responder: Make) -> None:
    slack = standin()
    sender = responder(slack.hooks)
    for _ in range(5):
        sender.respond(ADDRESS, ANSWER)
    with pytest.raises(MessageGoneError, match="used_url"):
        sender.respond(ADDRESS, ANSWER)
    assert len(slack.responses) == 5


@pytest.mark.parametrize(
    ("app", "kind"),
    [
        (said("ok"), None),
        (said(""), None),
        (said('{"ok": true}'), None),
        (said('{"ok": false, "error": "expired_url"}', 404), MessageGoneError),
        (said('{"ok": false, "error": "used_url"}'), MessageGoneError),
        (said("invalid_blocks", 400), RefusedContentError),
        (said("invalid_payload", 400), RefusedContentError),
        (said("posting_not_allowed", 403), NotAcceptedError),
        (said('{"ok": false, "error": "ratelimited"}', 429), NotAcceptedError),
        (said("<html>Bad Gateway</html>", 502), UnknownOutcomeError),
        (said("<html>maintenance</html>"), UnknownOutcomeError),
        (said("[1]"), UnknownOutcomeError),
        (said("", 500), UnknownOutcomeError),
        (said("x", 200, {"Content-Type": "text/plain; charset=nonsense"}), UnknownOutcomeError),
    ],
)
def test_each_answer_says_what_can_be_done(
    responder: Make, app: Wsgi, kind: type[DeliveryError] | None
) -> None:
    sender = responder(app)
    if kind is None:
        sender.respond(ADDRESS, ANSWER)
        return
    with pytest.raises(kind) as caught:
        sender.respond(ADDRESS, ANSWER)
    assert type(caught.value) is kind
    assert "secret" not in str(caught.value)  # who has the address may answer in our name


def test_a_rate_limit_says_how_long_to_rest(responder: Make) -> None:
    with pytest.raises(NotAcceptedError) as caught:
        responder(said("ratelimited", 429, {"retry-after": "7"})).respond(ADDRESS, ANSWER)
    assert caught.value.retry_after_seconds == 7


def test_blocks_that_slack_refuses_may_be_sent_as_text(responder: Make) -> None:
    blocks = [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}]
    with pytest.raises(RefusedContentError):
        responder(standin().hooks).respond(ADDRESS, {**ANSWER, "blocks": blocks})


def test_no_answer_in_time_leaves_the_outcome_open_and_nothing_is_repeated(responder: Make) -> None:
    seen: list[Any] = []

    def slow(environ: Any, start_response: Any) -> Any:
        seen.append(json.loads(Request(environ).get_data()))
        time.sleep(1.5)
        return Response("ok")(environ, start_response)

    with pytest.raises(UnknownOutcomeError):
        responder(slow).respond(ADDRESS, ANSWER)
    assert seen == [ANSWER]


def test_a_connection_that_breaks_is_not_tried_again() -> None:
    # slack_sdk's default would: the answer would be there twice.
    with hanging_up() as (url, arrived):
        with pytest.raises(UnknownOutcomeError):
            SlackResponder(Settings(local_endpoint=url)).respond(ADDRESS, ANSWER)
        assert len(arrived) == 1


def test_a_refused_connection_was_not_accepted() -> None:
    with serving(said("ok")) as url:
        pass
    with pytest.raises(NotAcceptedError, match="no connection"):
        SlackResponder(Settings(local_endpoint=url)).respond(ADDRESS, ANSWER)


def test_an_address_that_is_not_slacks_is_no_matter_for_another_try() -> None:
    with pytest.raises(PermanentError):
        SlackResponder(Settings()).respond("https://evil.example/", ANSWER)
