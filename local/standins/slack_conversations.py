"""Messages, threads and edits as Slack keeps them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from local.standins.slack_blocks import MOST_EDITED_TEXT, RefusedError, check
from steward.cluster.figures import stamp

type Arguments = dict[str, Any]
type Body = dict[str, Any]
type Message = dict[str, Any]

_KEPT = ("attachments", "metadata")
"""What an edit does not mention of these stays."""

_TRUE = {True, "1", "true", "True"}


class Conversations:
    """Keeps what is posted; each method answers one of the Web API.

    Parameters
    ----------
    now : callable
        The virtual time; timestamps derive from it.

    Attributes
    ----------
    messages : list of dict
        `channel`, `ts`, `posted_at`, `versions` (`at`, `payload`), `thread_ts` (None: it is no
        reply) and `broadcast`, oldest first: an edit adds a version. What was deleted is not there
        any more.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._count = 0
        self._listed: dict[str, datetime] = {}
        self.messages: list[Message] = []

    def hide(self, ts: str, until: datetime) -> None:
        """Leave a message out of the history and of its thread up to a time."""
        self._listed[ts] = until

    def post(self, arguments: Arguments) -> Body:
        """Answer chat.postMessage.

        A reply to what is no message of the channel, or a reply itself, lands in the channel: Slack
        does not refuse it (seen in the field, slack-go/slack#1571).
        """
        channel = channel_of(arguments)
        check(arguments)
        thread = arguments.get("thread_ts")
        root = self._found(channel, thread) if thread else None
        if root is None or root.get("thread_ts") is not None:
            thread = None
        at = self._now()
        self._count += 1
        message = {
            "channel": channel,
            "ts": f"{int(at.timestamp())}.{self._count:06d}",
            "posted_at": stamp(at),
            "versions": [{"at": stamp(at), "payload": _stored(arguments, thread)}],
            "thread_ts": thread,
            "broadcast": thread is not None and arguments.get("reply_broadcast") in _TRUE,
        }
        self.messages.append(message)
        return {"channel": channel, "ts": message["ts"], "message": _shown(message, ("text",))}

    def update(self, arguments: Arguments) -> Body:
        """Answer chat.update.

        The blocks stay only where neither they nor a text are given; a message stays in its thread.
        """
        message = self._message(arguments)
        given = {name: arguments[name] for name in arguments if name != "thread_ts"}
        if given.pop("reply_broadcast", False) in _TRUE:
            _broadcast(message, given)
        before = message["versions"][-1]["payload"]
        kept = (*_KEPT, *(("blocks", "text") if "text" not in given else ()))
        payload = {**{name: before[name] for name in kept if name in before}, **given}
        check(payload, most_text=MOST_EDITED_TEXT)
        message["versions"].append({"at": stamp(self._now()), "payload": payload})
        place = {"channel": message["channel"], "ts": message["ts"]}
        return {**place, "text": payload.get("text", "")}

    def delete(self, arguments: Arguments) -> Body:
        """Answer chat.delete; replies to the message stay."""
        message = self._message(arguments)
        self.messages.remove(message)
        return {"channel": message["channel"], "ts": message["ts"]}

    def history(self, arguments: Arguments) -> Body:
        """Answer conversations.history: newest first, without replies that only a thread shows."""
        channel = channel_of(arguments)
        found = [
            message
            for message in self.messages
            if message["channel"] == channel
            and (message.get("thread_ts") is None or message["broadcast"])
            and self._is_listed(message)
            and _is_within(message, arguments)
        ]
        return _page(found[::-1], arguments, 100)

    def replies(self, arguments: Arguments) -> Body:
        """Answer conversations.replies: a message and what answers it, oldest first."""
        channel = channel_of(arguments)
        given = self._found(channel, arguments.get("ts"))
        if given is None:
            raise RefusedError("thread_not_found")
        root = given.get("thread_ts") or given["ts"]
        found = [
            message
            for message in self.messages
            if message["channel"] == channel
            and self._is_listed(message)
            and (
                message["ts"] == root
                or (message.get("thread_ts") == root and _is_within(message, arguments))
            )
        ]
        return _page(found, arguments, 1_000)

    def _found(self, channel: str, ts: Any) -> Message | None:
        return next((m for m in self.messages if (m["channel"], m["ts"]) == (channel, ts)), None)

    def _message(self, arguments: Arguments) -> Message:
        message = self._found(channel_of(arguments), arguments.get("ts"))
        if message is None:
            raise RefusedError("message_not_found")
        return message

    def _is_listed(self, message: Message) -> bool:
        return self._listed.get(message["ts"], self._now()) <= self._now()


def channel_of(arguments: Arguments) -> str:
    """Read the channel that a call names.

    Raises
    ------
    RefusedError
        It names none.
    """
    channel = arguments.get("channel")
    if not isinstance(channel, str) or not channel:
        raise RefusedError("channel_not_found")
    return channel


def _stored(arguments: Arguments, thread: str | None) -> Arguments:
    of_a_reply = {"thread_ts", "reply_broadcast"} if thread is None else set()
    return {name: value for name, value in arguments.items() if name not in of_a_reply}


def _broadcast(message: Message, given: Arguments) -> None:
    if message.get("thread_ts") is None:
        raise RefusedError("cant_broadcast_message")
    if given.keys() & {"attachments", "blocks", "text"}:
        raise RefusedError("no_dual_broadcast_content_update")
    message["broadcast"] = True


def _is_within(message: Message, arguments: Arguments) -> bool:
    oldest = float(arguments.get("oldest") or 0)
    latest = float(arguments.get("latest") or "inf")
    return oldest < float(message["ts"]) < latest


def _page(found: Sequence[Message], arguments: Arguments, usual: int) -> Body:
    limit = min(int(arguments.get("limit") or usual), 999)
    skip = int(arguments.get("cursor") or 0)
    more = skip + limit < len(found)
    whole = arguments.get("include_all_metadata") in _TRUE
    names = ("text", "blocks", "metadata") if whole else ("text", "blocks")
    return {
        "messages": [_shown(message, names) for message in found[skip : skip + limit]],
        "has_more": more,
        "response_metadata": {"next_cursor": str(skip + limit) if more else ""},
    }


def _shown(message: Mapping[str, Any], names: Sequence[str]) -> Body:
    payload = message["versions"][-1]["payload"]
    shown = {name: payload[name] for name in names if name in payload}
    if (thread := message.get("thread_ts")) is not None:
        shown["thread_ts"] = thread
        if message["broadcast"]:
            shown["subtype"] = "thread_broadcast"
    return {"type": "message", "user": "U0LOCAL", "ts": message["ts"], **shown}
