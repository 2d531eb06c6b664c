"""Members over HTTP: who has an address, whose address counts, and what an unclear answer is."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from boto3 import Session
from werkzeug.wrappers import Request, Response

from local.standins.slack import SlackStandin
from steward.alerts.errors import CredentialsError, NotAcceptedError, UnknownOutcomeError
from steward.settings import Settings
from steward.sinks.slack_people import SlackDirectory
from tests.builders import NOON
from tests.fakes import FixedTime
from tests.serving import serving

SECRET = "gpu-steward/slack-people"
PEOPLE = {"U0ADA": "ada@example.com", "U0BOB": "bob@example.com"}

type Make = Callable[..., SlackDirectory]


class Calls(list[dict[str, Any]]):
    """What the stand-in was asked."""

    def methods(self) -> list[str]:
        return [call["method"] for call in self]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def directory(aws: Session, calls: Calls) -> Iterator[Make]:
    client = aws.client("secretsmanager")
    text = json.dumps({"bot_token": "xoxb-known-to-nobody"})
    try:
        client.create_secret(Name=SECRET, SecretString=text)
    except client.exceptions.ResourceExistsException:
        client.put_secret_value(SecretId=SECRET, SecretString=text)
    with ExitStack() as stack:

        def make(*answers: dict[str, Any]) -> SlackDirectory:
            app = SlackStandin(answers, lambda: NOON, calls.append, PEOPLE)
            url = stack.enter_context(serving(app))
            return SlackDirectory(
                aws, Settings(local_endpoint=url, slack_secret=SECRET), FixedTime()
            )

        yield make


def member(user: str = "U0ADA", **more: Any) -> dict[str, Any]:
    return {"ok": True, "user": {"id": user, "profile": {"email": "ada@example.com"}, **more}}


def test_an_address_leads_to_a_member_and_back(directory: Make) -> None:
    slack = directory()
    assert slack.user_of("Ada@Example.com") == "U0ADA"
    assert slack.email_of("U0BOB") == "bob@example.com"


def test_who_is_not_there_is_nobody_and_no_error(directory: Make) -> None:
    slack = directory()
    assert (slack.user_of("eve@example.com"), slack.email_of("U0EVE")) == (None, None)
    assert directory({"body": {"ok": False, "error": "user_not_visible"}}).email_of("U0") is None


def test_a_look_up_is_a_form_as_slack_reads_no_json_here(aws: Session, directory: Make) -> None:
    directory()  # puts the token there
    seen: list[tuple[str, dict[str, str]]] = []

    def spying(environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        seen.append((request.mimetype, request.form.to_dict()))
        return Response(json.dumps(member()))(environ, start_response)

    with serving(spying) as url:
        settings = Settings(local_endpoint=url, slack_secret=SECRET)
        SlackDirectory(aws, settings, FixedTime()).user_of("ada+gpu@example.com")
    assert seen == [("application/x-www-form-urlencoded", {"email": "ada+gpu@example.com"})]


def test_who_has_left_is_not_mentioned(directory: Make) -> None:
    assert directory({"body": member(deleted=True)}).user_of("ada@example.com") is None
    assert directory({"body": member(deleted=False)}).user_of("ada@example.com") == "U0ADA"


@pytest.mark.parametrize(
    ("who", "email"),
    [
        ({"team_id": "T0LOCAL"}, "ada@example.com"),
        ({"team_id": "T0OTHER"}, None),
        ({}, None),
        ({"team_id": "T0OTHER", "enterprise_user": {"enterprise_id": "E0OTHER"}}, None),
        ({"team_id": "T0LOCAL", "profile": {}}, None),
        ({"team_id": "T0LOCAL", "profile": None}, None),
    ],
)
def test_only_the_own_organisation_vouches_for_an_address(
    directory: Make, who: dict[str, Any], email: str | None
) -> None:
    # Another organisation's administrators may give a member of theirs any address they like.
    slack = directory({"method": "users.info", "body": member(**who)})
    assert slack.email_of("U0ADA") == email


def test_a_workspace_of_the_same_organisation_vouches_too(directory: Make) -> None:
    home = {"ok": True, "team_id": "T0LOCAL", "enterprise_id": "E0OWN"}
    who = member(team_id="T0SISTER", enterprise_user={"enterprise_id": "E0OWN"})
    slack = directory({"method": "auth.test", "body": home}, {"method": "users.info", "body": who})
    assert slack.email_of("U0ADA") == "ada@example.com"


def test_the_own_workspace_is_asked_for_once(directory: Make, calls: Calls) -> None:
    slack = directory()
    for _ in range(2):
        slack.email_of("U0ADA")
    assert calls.methods() == ["users.info", "auth.test", "users.info"]


def test_a_missing_scope_is_named(directory: Make) -> None:
    body = {"ok": False, "error": "missing_scope", "needed": "users:read.email"}
    with pytest.raises(CredentialsError, match=r"users\.lookupByEmail ada@.*users:read\.email"):
        directory({"body": body}).user_of("ada@example.com")


@pytest.mark.parametrize(
    "body", [{"ok": True}, {"ok": True, "user": None}, {"ok": True, "user": {}}]
)
def test_an_answer_without_a_member_does_not_tell(directory: Make, body: dict[str, Any]) -> None:
    with pytest.raises(UnknownOutcomeError, match="no member"):
        directory({"body": body}).email_of("U0ADA")


def test_a_rate_limit_says_how_long_to_rest(directory: Make) -> None:
    limited = {"ok": False, "error": "ratelimited"}
    with pytest.raises(NotAcceptedError) as caught:
        directory({"status": 429, "headers": {"Retry-After": "9"}, "body": limited}).email_of("U0")
    assert caught.value.retry_after_seconds == 9
