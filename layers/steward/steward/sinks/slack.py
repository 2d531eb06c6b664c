"""Slack's Web API as the reconciler's messenger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steward.alerts.errors import DeliveryError, MessageGoneError, UnknownOutcomeError
from steward.alerts.model import Attempt, Posted
from steward.cluster.figures import stamp
from steward.settings import Settings
from steward.sinks.slack_api import TIMEOUT_SECONDS, SlackApi
from steward.sinks.slack_secret import SlackSecret

if TYPE_CHECKING:
    from boto3 import Session

    from steward.ports import Clock

EVENT_TYPE = "gpu_steward_card"
"""Metadata event type of every message; its payload is the attempt."""

LOOK_BACK_SECONDS = 60
"""The history is searched from this long before the attempt: Slack's clock is not ours."""

LOOK_AHEAD_SECONDS = 600
"""And to this long after it: a busy channel's later messages are none of our business."""

HISTORY_PAGES = 5
HISTORY_LIMIT = 200

_OF_A_POST = frozenset({"reply_broadcast", "thread_ts"})
"""Said once: Slack refuses an edit that changes a reply and broadcasts it at the same time
(`no_dual_broadcast_content_update`), and a message stays in its thread."""


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
        secret = SlackSecret(session, settings.slack_secret, clock)
        self._api = SlackApi(secret, settings, timeout_seconds=timeout_seconds)

    def post(self, message: Mapping[str, Any], attempt: Attempt) -> Posted:
        """Post a message; see the port for what it raises.

        With `thread_ts` it is a reply, with `reply_broadcast` one that the channel shows too. Where
        the message to reply to is gone, nothing stays posted, and MessageGoneError says so.
        """
        answer = self._call("chat.postMessage", _body(message, attempt), attempt.channel)
        posted = _posted("chat.postMessage", answer)
        if "thread_ts" in message and not _is_reply(answer):
            # To a deleted message Slack does not refuse the reply, it puts it into the channel
            # (seen in the field, slack-go/slack#1571): only the answer's message tells.
            self._take_back(posted)
            raise MessageGoneError(
                f"Slack chat.postMessage {attempt.channel}: the message {message['thread_ts']} to "
                "reply to is gone; the reply was taken out of the channel again"
            )
        return posted

    def _take_back(self, stray: Posted) -> None:
        try:
            self.delete(stray)
        except MessageGoneError:
            return  # somebody was quicker
        except DeliveryError as error:
            # It stands: as a post in doubt it is found in the channel, and not posted again.
            raise UnknownOutcomeError(
                f"a reply to nothing stays in the channel: {error}"
            ) from error

    def update(self, posted: Posted, message: Mapping[str, Any], attempt: Attempt) -> Posted:
        """Edit a message; blocks that it had and the new version lacks are taken away."""
        shown = {name: value for name, value in message.items() if name not in _OF_A_POST}
        arguments = {"ts": posted.ts, "blocks": [], **_body(shown, attempt)}
        return _posted("chat.update", self._call("chat.update", arguments, posted.channel))

    def delete(self, posted: Posted) -> None:
        """Delete a message."""
        self._call("chat.delete", {"ts": posted.ts}, posted.channel)

    def find(self, attempt: Attempt) -> Posted | None:
        """Look for the message that carries an attempt; it reads no more than a few pages."""
        if attempt.thread is not None:
            try:
                return self._search("conversations.replies", attempt, {"ts": attempt.thread})
            except MessageGoneError:
                pass  # A reply to a message that was gone by then stands in the channel.
        return self._search("conversations.history", attempt, {})

    def _search(self, method: str, attempt: Attempt, where: Mapping[str, str]) -> Posted | None:
        tried = attempt.at.timestamp()
        query: dict[str, Any] = {
            **where,
            "oldest": f"{tried - LOOK_BACK_SECONDS:.6f}",
            "latest": f"{tried + LOOK_AHEAD_SECONDS:.6f}",
            "include_all_metadata": True,
            "limit": HISTORY_LIMIT,
        }
        for _ in range(HISTORY_PAGES):
            page = self._call(method, query, attempt.channel)
            if not isinstance(page.get("messages"), list):
                raise UnknownOutcomeError(f"Slack {method}: the answer holds no messages")
            for message in page["messages"]:
                if _carries(message, attempt):
                    return Posted(channel=attempt.channel, ts=message["ts"])
            cursor = page.get("response_metadata", {}).get("next_cursor")
            if not cursor:
                break
            query["cursor"] = cursor
        return None

    def _call(self, method: str, arguments: Mapping[str, Any], channel: str) -> Mapping[str, Any]:
        return self._api.call(method, channel, {"channel": channel, **arguments})


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


def _is_reply(answer: Mapping[str, Any]) -> bool:
    # Without the message as Slack took it, there is no proof that it is not one.
    message = answer.get("message")
    return not isinstance(message, Mapping) or "thread_ts" in message


def _carries(message: Mapping[str, Any], attempt: Attempt) -> bool:
    metadata = message.get("metadata") or {}
    payload = metadata.get("event_payload") or {}
    return metadata.get("event_type") == EVENT_TYPE and payload.get("id") == attempt.id
