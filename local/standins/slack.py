"""A Slack that keeps what is posted, refuses what Slack refuses, and answers as a script says.

Answers chat.postMessage, chat.update, chat.delete, conversations.history and auth.test. Tokens are
checked for presence only, and recorded nowhere.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import BadRequest
from werkzeug.wrappers import Request, Response

from local.recording import Recording
from local.standins.slack_blocks import RefusedError, check
from local.standins.slack_script import read_script
from steward.cluster.figures import stamp

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

type Arguments = dict[str, Any]
type Body = dict[str, Any]

_JSON_ARGUMENTS = ("attachments", "blocks", "metadata")
"""Arguments that a form carries as JSON text."""

_TRUE = {True, "1", "true", "True"}


class SlackStandin:
    """WSGI application; mount it at the root or below `/slack/api`.

    Parameters
    ----------
    script : Recording or sequence of mapping
        Scripted answers, in the form of a recording's `slack/*.json`; the first that matches a
        call answers it.
    now : callable
        The virtual time; timestamps derive from it.
    on_call : callable
        Told of each call: `at`, `method`, `channel`, `payload`, `response`.

    Attributes
    ----------
    messages : list of dict
        `channel`, `ts`, `posted_at` and `versions` (`at`, `payload`), oldest first: an edit adds a
        version. What was deleted is not there any more.
    """

    def __init__(
        self,
        script: Recording | Sequence[Mapping[str, Any]],
        now: Callable[[], datetime],
        on_call: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        self._script = read_script(script)
        self._now = now
        self._on_call = on_call
        self._lock = threading.Lock()
        self._count = 0
        self._listed: dict[str, datetime] = {}
        self.messages: list[dict[str, Any]] = []
        self._methods: dict[str, Callable[[Arguments], Body]] = {
            "auth.test": self._auth_test,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "conversations.history": self._history,
        }

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer one call."""
        with self._lock:
            return self._respond(Request(environ))(environ, start_response)

    def _respond(self, request: Request) -> Response:
        method = request.path.rpartition("/")[2]
        status, headers = 200, dict[str, str]()
        try:
            arguments = _arguments(request)
        except BadRequest:
            arguments = {}
            body: Any = {"ok": False, "error": "invalid_json"}
        else:
            token = arguments.pop("token", "") or request.headers.get("Authorization", "")
            channel = arguments.get("channel")
            scripted = next(
                (a for a in self._script if a.matches(method, channel, self._now())), None
            )
            if scripted is not None:
                scripted.times = None if scripted.times is None else scripted.times - 1
                if scripted.listed_after is not None:
                    done = self._answer(method, arguments)
                    self._listed[done.get("ts", "")] = self._now() + scripted.listed_after
                status, headers, body = scripted.status, dict(scripted.headers), scripted.body
            elif not token.removeprefix("Bearer").strip():
                body = {"ok": False, "error": "not_authed"}
            else:
                body = self._answer(method, arguments)
        self._report(method, arguments, status, body)
        text = body if isinstance(body, str) else json.dumps(body or {}, ensure_ascii=False)
        kind = "text/plain" if isinstance(body, str) else "application/json"
        return Response(text, status, headers, content_type=f"{kind}; charset=utf-8")

    def _report(self, method: str, arguments: Arguments, status: int, body: Any) -> None:
        told = body if isinstance(body, dict) else {"ok": False, "body": body}
        self._on_call(
            {
                "at": stamp(self._now()),
                "method": method,
                "channel": arguments.get("channel"),
                "payload": arguments,
                "response": told if status == 200 else {"status": status, **told},
            }
        )

    def _answer(self, method: str, arguments: Arguments) -> Body:
        handler = self._methods.get(method)
        if handler is None:
            return {"ok": False, "error": "unknown_method"}
        try:
            return {"ok": True, **handler(arguments)}
        except RefusedError as error:
            refusal: Body = {"ok": False, "error": error.code}
            if error.messages:
                refusal["response_metadata"] = {"messages": list(error.messages)}
            return refusal

    def _auth_test(self, _: Arguments) -> Body:
        return {"team": "local", "team_id": "T0LOCAL", "user": "gpu-steward", "user_id": "U0LOCAL"}

    def _post(self, arguments: Arguments) -> Body:
        channel = _channel(arguments)
        check(arguments)
        at = self._now()
        self._count += 1
        ts = f"{int(at.timestamp())}.{self._count:06d}"
        version = {"at": stamp(at), "payload": arguments}
        self.messages.append(
            {"channel": channel, "ts": ts, "posted_at": stamp(at), "versions": [version]}
        )
        return {"channel": channel, "ts": ts}

    def _update(self, arguments: Arguments) -> Body:
        message = self._message(arguments)
        # What an edit does not mention stays; an empty list takes the blocks away.
        kept = {k: v for k, v in message["versions"][-1]["payload"].items() if k in _JSON_ARGUMENTS}
        payload = {**kept, **arguments}
        check(payload)
        message["versions"].append({"at": stamp(self._now()), "payload": payload})
        place = {"channel": message["channel"], "ts": message["ts"]}
        return {**place, "text": payload.get("text", "")}

    def _delete(self, arguments: Arguments) -> Body:
        message = self._message(arguments)
        self.messages.remove(message)
        return {"channel": message["channel"], "ts": message["ts"]}

    def _message(self, arguments: Arguments) -> dict[str, Any]:
        place = (_channel(arguments), arguments.get("ts"))
        for message in self.messages:
            if (message["channel"], message["ts"]) == place:
                return message
        raise RefusedError("message_not_found")

    def _history(self, arguments: Arguments) -> Body:
        channel = _channel(arguments)
        oldest = float(arguments.get("oldest") or 0)
        latest = float(arguments.get("latest") or "inf")
        limit = min(int(arguments.get("limit") or 100), 999)
        skip = int(arguments.get("cursor") or 0)
        found = [
            message
            for message in self.messages
            if message["channel"] == channel
            and oldest < float(message["ts"]) < latest
            and self._listed.get(message["ts"], self._now()) <= self._now()
        ]
        page = found[::-1][skip : skip + limit]  # newest first
        more = skip + limit < len(found)
        whole = arguments.get("include_all_metadata") in _TRUE
        return {
            "messages": [_shown(message, whole=whole) for message in page],
            "has_more": more,
            "response_metadata": {"next_cursor": str(skip + limit) if more else ""},
        }


def _shown(message: Mapping[str, Any], *, whole: bool) -> Body:
    payload = message["versions"][-1]["payload"]
    names = ("text", "blocks", "metadata") if whole else ("text", "blocks")
    shown = {name: payload[name] for name in names if name in payload}
    return {"type": "message", "user": "U0LOCAL", "ts": message["ts"], **shown}


def _channel(arguments: Arguments) -> str:
    channel = arguments.get("channel")
    if not isinstance(channel, str) or not channel:
        raise RefusedError("channel_not_found")
    return channel


def _arguments(request: Request) -> Arguments:
    """Read a call's arguments, sent as JSON, as a form, or in the query.

    Raises
    ------
    BadRequest
        The body is no JSON object, or an argument is no JSON.
    """
    if request.is_json:
        arguments = request.get_json()
        if not isinstance(arguments, dict):
            raise BadRequest("not an object")
        return arguments
    given: Arguments = request.values.to_dict()
    for name in _JSON_ARGUMENTS:
        if name in given:
            try:
                given[name] = json.loads(given[name])
            except ValueError as error:
                raise BadRequest(f"{name} is not JSON") from error
    return given
