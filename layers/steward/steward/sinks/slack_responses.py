"""Answers to a press or a command, by the address that Slack gave along with it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import URLError

from steward.alerts.errors import MessageGoneError, UnknownOutcomeError
from steward.settings import Settings
from steward.sinks.slack_answers import refusal
from steward.sinks.slack_api import TIMEOUT_SECONDS, no_connection

_SLACK = "https://hooks.slack.com/"
_DOING = "response_url"
"""What errors call it: who has the address may answer in our name, so it is printed nowhere."""


class SlackResponder:
    """Posts to response URLs; implements :class:`steward.ports.Responder`.

    Parameters
    ----------
    settings : Settings
        With `local_endpoint` the rig is called in Slack's place.
    timeout_seconds : int
        Of one call: connecting, and each wait for bytes.
    """

    def __init__(self, settings: Settings, *, timeout_seconds: int = TIMEOUT_SECONDS) -> None:
        local = settings.local_endpoint
        self._hooks = f"{local}/slack/hooks/" if local else _SLACK
        self._timeout_seconds = timeout_seconds

    def respond(self, response_url: str, message: Mapping[str, Any]) -> None:
        """Post an answer; the address takes five within half an hour.

        Raises
        ------
        MessageGoneError
            The address has expired, was used up, or is not Slack's: nothing else is ever called.
        RefusedContentError
            Slack refused the blocks.
        NotAcceptedError, UnknownOutcomeError
            Slack did not take it for now; no answer, or none that tells.
        """
        url = self._address(response_url)
        from slack_sdk.webhook import WebhookClient  # noqa: PLC0415 - where an answer is sent

        # No retry handlers: the default one posts again after a reset, accepted or not.
        client = WebhookClient(url, timeout=self._timeout_seconds, retry_handlers=[])
        try:
            answer = client.send_dict(dict(message))
        except URLError as error:
            raise no_connection(_DOING, error) from error
        except (OSError, HTTPException, ValueError, LookupError) as error:
            raise UnknownOutcomeError(f"Slack {_DOING}: no readable answer: {error!r}") from error
        data = _data(answer.body)
        if answer.status_code != 200 or data.get("ok") is not True:
            raise refusal(_DOING, answer.status_code, data, answer.headers)

    def _address(self, given: str) -> str:
        """Check that an address is Slack's; the rig stands in for it where there is one."""
        for hooks in (_SLACK, self._hooks):
            if re.fullmatch(f"{re.escape(hooks)}[!-~]+", given):
                return f"{self._hooks}{given.removeprefix(hooks)}"
        raise MessageGoneError(
            f"Slack {_DOING}: the address is not below {_SLACK} and is not called; "
            "check who put the request there"
        )


def _data(body: str) -> Mapping[str, Any]:
    """Read an answer: a JSON object; or a word, `ok` or an error code (`invalid_blocks`)."""
    word = body.strip()
    if re.fullmatch("[a-z_]*", word):
        return {"ok": True} if word in {"", "ok"} else {"ok": False, "error": word}
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
