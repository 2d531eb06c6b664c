"""One call of Slack's Web API: one call, one answer, one class of error.

Nothing is retried here: only who calls knows whether it may be repeated. slack_sdk is imported
where a call is made, not at cold start.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import cached_property
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import URLError

from steward.alerts.errors import NotAcceptedError, UnknownOutcomeError
from steward.settings import Settings
from steward.sinks.slack_answers import refusal
from steward.sinks.slack_secret import SlackSecret

if TYPE_CHECKING:
    from slack_sdk import WebClient

TIMEOUT_SECONDS = 5

_READING = frozenset(
    {
        "auth.test",
        "conversations.history",
        "conversations.replies",
        "users.info",
        "users.lookupByEmail",
    }
)
"""Methods that take no JSON body."""


class SlackApi:
    """Calls methods with the bot token.

    Parameters
    ----------
    secret : SlackSecret
        Gives the bot token.
    settings : Settings
        With `local_endpoint` the rig is called in Slack's place.
    timeout_seconds : int
        Of one call: connecting, and each wait for bytes.
    """

    def __init__(
        self,
        secret: SlackSecret,
        settings: Settings,
        *,
        timeout_seconds: int = TIMEOUT_SECONDS,
    ) -> None:
        self._secret = secret
        local = settings.local_endpoint
        self._base_url = f"{local}/slack/api/" if local else "https://slack.com/api/"
        self._timeout_seconds = timeout_seconds

    def call(self, method: str, about: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a method and return its answer.

        Parameters
        ----------
        method : str
            For example `chat.postMessage`.
        about : str
            What it is about, for errors: a channel, a member.
        arguments : mapping
            JSON; without the token.

        Raises
        ------
        DeliveryError
            As :class:`steward.ports.Messenger` tells them apart.
        """
        from slack_sdk.errors import SlackApiError  # noqa: PLC0415 - where a call is made

        self._client.token = self._secret.bot_token()
        given = dict(arguments)
        try:
            if method in _READING:
                response = self._client.api_call(method, params=given)
            else:
                response = self._client.api_call(method, json=given)
        except SlackApiError as error:
            answer = error.response
            data = answer.data if isinstance(answer.data, dict) else {}
            doing = f"{method} {about}"
            raise refusal(doing, answer.status_code, data, answer.headers) from error
        except URLError as error:
            raise no_connection(method, error) from error
        except (OSError, HTTPException, ValueError, LookupError, AttributeError) as error:
            # The answer broke off, or is not what slack_sdk can read (a proxy's page, a JSON list).
            raise UnknownOutcomeError(f"Slack {method}: no readable answer: {error!r}") from error
        return dict(response.data) if isinstance(response.data, dict) else {}

    @cached_property
    def _client(self) -> WebClient:
        from slack_sdk import WebClient  # noqa: PLC0415 - where a call is made

        # No retry handlers: the default one posts again after a reset, accepted or not.
        return WebClient(base_url=self._base_url, timeout=self._timeout_seconds, retry_handlers=[])


def no_connection(doing: str, error: URLError) -> NotAcceptedError | UnknownOutcomeError:
    """Tell a request that was never sent from one that may have arrived."""
    never_sent = isinstance(error.reason, ConnectionRefusedError | socket.gaierror)
    kind = NotAcceptedError if never_sent else UnknownOutcomeError
    return kind(f"Slack {doing}: no connection: {error.reason}")
