"""Slack's Web API as the reconciler's messenger.

One call, one answer, one class of error: nothing is retried here, as only the reconciler knows
whether a post may be repeated. slack_sdk is imported where a message is sent, not at cold start.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import cached_property
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import URLError

from steward.alerts.errors import NotAcceptedError, UnknownOutcomeError
from steward.alerts.model import Attempt, Posted
from steward.cluster.figures import stamp
from steward.settings import Settings
from steward.sinks.slack_answers import refusal
from steward.sinks.slack_token import BotToken

if TYPE_CHECKING:
    from boto3 import Session
    from slack_sdk import WebClient

    from steward.ports import Clock

EVENT_TYPE = "gpu_steward_card"
"""Metadata event type of every message; its payload is the attempt."""

TIMEOUT_SECONDS = 5
LOOK_BACK_SECONDS = 60
"""The history is searched from this long before the attempt: Slack's clock is not ours."""

LOOK_AHEAD_SECONDS = 600
"""And to this long after it: a busy channel's later messages are none of our business."""

_HISTORY = "conversations.history"
HISTORY_PAGES = 5
HISTORY_LIMIT = 200


class SlackMessenger:
    """Posts, edits, finds and deletes messages; implements :class:`steward.ports.Messenger`.

    Parameters
    ----------
    session : boto3.Session
        For Secrets Manager, where the bot token lies.
    settings : Settings
        Names the secret. With `local_endpoint` the rig is called in Slack's place.
    clock : Clock
        Tells how old the token is.
    timeout_seconds : int
        Of one call: connecting, and each wait for bytes.
    """

    def __init__(
        self,
        session: Session,
        settings: Settings,
        clock: Clock,
        *,
        timeout_seconds: int = TIMEOUT_SECONDS,
    ) -> None:
        self._token = BotToken(session, settings.slack_secret, clock)
        local = settings.local_endpoint
        self._base_url = f"{local}/slack/api/" if local else "https://slack.com/api/"
        self._timeout_seconds = timeout_seconds

    def post(self, message: Mapping[str, Any], attempt: Attempt) -> Posted:
        """Post a message; see the port for what it raises."""
        arguments = {"channel": attempt.channel, **_body(message, attempt)}
        return _posted("chat.postMessage", self._call("chat.postMessage", arguments))

    def update(self, posted: Posted, message: Mapping[str, Any], attempt: Attempt) -> Posted:
        """Edit a message; blocks that it had and the new version lacks are taken away."""
        place = {"channel": posted.channel, "ts": posted.ts, "blocks": []}
        answer = self._call("chat.update", {**place, **_body(message, attempt)})
        return _posted("chat.update", answer)

    def delete(self, posted: Posted) -> None:
        """Delete a message."""
        self._call("chat.delete", {"channel": posted.channel, "ts": posted.ts})

    def find(self, attempt: Attempt) -> Posted | None:
        """Look for the message that carries an attempt; it reads no more than a few pages."""
        tried = attempt.at.timestamp()
        query: dict[str, Any] = {
            "channel": attempt.channel,
            "oldest": f"{tried - LOOK_BACK_SECONDS:.6f}",
            "latest": f"{tried + LOOK_AHEAD_SECONDS:.6f}",
            "include_all_metadata": True,
            "limit": HISTORY_LIMIT,
        }
        for _ in range(HISTORY_PAGES):
            page = self._call(_HISTORY, query)
            if not isinstance(page.get("messages"), list):
                raise UnknownOutcomeError(f"Slack {_HISTORY}: the answer holds no messages")
            for message in page["messages"]:
                if _carries(message, attempt):
                    return Posted(channel=attempt.channel, ts=message["ts"])
            cursor = page.get("response_metadata", {}).get("next_cursor")
            if not cursor:
                break
            query["cursor"] = cursor
        return None

    @cached_property
    def _client(self) -> WebClient:
        from slack_sdk import WebClient  # noqa: PLC0415 - where a message is sent, not before

        # No retry handlers: the default one posts again after a reset, accepted or not.
        return WebClient(base_url=self._base_url, timeout=self._timeout_seconds, retry_handlers=[])

    def _call(self, method: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        from slack_sdk.errors import SlackApiError  # noqa: PLC0415 - as above

        self._client.token = self._token.read()
        try:
            if method == _HISTORY:  # a reading method takes no JSON body
                response = self._client.api_call(method, params=dict(arguments))
            else:
                response = self._client.api_call(method, json=dict(arguments))
        except SlackApiError as error:
            raise refusal(method, arguments["channel"], error.response) from error
        except URLError as error:
            never_sent = isinstance(error.reason, ConnectionRefusedError | socket.gaierror)
            kind = NotAcceptedError if never_sent else UnknownOutcomeError
            raise kind(f"Slack {method}: no connection: {error.reason}") from error
        except (OSError, HTTPException, ValueError, LookupError, AttributeError) as error:
            # The answer broke off, or is not what slack_sdk can read (a proxy's page, a JSON list).
            raise UnknownOutcomeError(f"Slack {method}: no readable answer: {error!r}") from error
        return dict(response.data) if isinstance(response.data, dict) else {}


def _body(message: Mapping[str, Any], attempt: Attempt) -> dict[str, Any]:
    payload = {
        "cluster": attempt.cluster,
        "card": attempt.card,
        "revision": attempt.revision,
        "id": attempt.id,
        "at": stamp(attempt.at),
    }
    return {
        **message,
        "metadata": {"event_type": EVENT_TYPE, "event_payload": payload},
        # Names in a message are not addresses: nothing is looked up, linked or unfolded.
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _posted(method: str, answer: Mapping[str, Any]) -> Posted:
    channel, ts = answer.get("channel"), answer.get("ts")
    if not isinstance(channel, str) or not isinstance(ts, str):
        raise UnknownOutcomeError(f"Slack {method}: accepted, but the answer does not say where")
    return Posted(channel=channel, ts=ts)


def _carries(message: Mapping[str, Any], attempt: Attempt) -> bool:
    metadata = message.get("metadata") or {}
    payload = metadata.get("event_payload") or {}
    return metadata.get("event_type") == EVENT_TYPE and payload.get("id") == attempt.id
