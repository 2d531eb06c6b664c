"""A Slack that keeps what is posted, refuses what Slack refuses, and answers as a script says.

Answers auth.test, chat.postMessage, chat.update, chat.delete, conversations.history,
conversations.replies, users.lookupByEmail, users.info, views.open, and response URLs. Tokens are
checked for presence only, and recorded nowhere.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import BadRequest
from werkzeug.wrappers import Request, Response

from local.recording import Recording
from local.standins.slack_blocks import RefusedError, check, check_view
from local.standins.slack_conversations import Arguments, Body, Conversations
from local.standins.slack_script import ScriptedAnswer, read_script
from steward.cluster.figures import stamp

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

RESPONSE = "response_url"
"""What a post to a response URL is called in scripts and among the calls."""

MOST_RESPONSES = 5
"""Posts that a response URL takes."""

_JSON_ARGUMENTS = ("attachments", "blocks", "metadata", "view")
"""Arguments that a form carries as JSON text."""

_TRIGGER = re.compile(r"\d+\.\d+\.[0-9a-z]+")
_TEAM = "T0LOCAL"


class SlackStandin:
    """WSGI application for the Web API, with :meth:`hooks` beside it for response URLs.

    Mount it at the root or below `/slack/api`, and :meth:`hooks` below `/slack/hooks`.

    Parameters
    ----------
    script : Recording or sequence of mapping
        Scripted answers, in the form of a recording's `slack/*.json`; the first that matches a
        call answers it.
    now : callable
        The virtual time; timestamps derive from it.
    on_call : callable
        Told of each call: `at`, `method`, `channel`, `payload`, `response`.
    people : mapping of str to str, optional
        E-mail address of each member, by their id.

    Attributes
    ----------
    messages : list of dict
        See :class:`local.standins.slack_conversations.Conversations`.
    views : list of dict
        Modals opened: `at`, `trigger_id`, `view`.
    responses : list of dict
        What response URLs took: `at`, `path`, `payload`.
    """

    def __init__(
        self,
        script: Recording | Sequence[Mapping[str, Any]],
        now: Callable[[], datetime],
        on_call: Callable[[dict[str, Any]], None] = lambda _: None,
        people: Mapping[str, str] | None = None,
    ) -> None:
        self._script = read_script(script)
        self._now = now
        self._on_call = on_call
        self._people = people or {}
        self._lock = threading.Lock()
        self._conversations = Conversations(now)
        self._used: Counter[str] = Counter()
        self.messages = self._conversations.messages
        self.views: list[dict[str, Any]] = []
        self.responses: list[dict[str, Any]] = []
        self._methods: dict[str, Callable[[Arguments], Body]] = {
            "auth.test": self._auth_test,
            "chat.delete": self._conversations.delete,
            "chat.postMessage": self._conversations.post,
            "chat.update": self._conversations.update,
            "conversations.history": self._conversations.history,
            "conversations.replies": self._conversations.replies,
            "users.info": self._user_info,
            "users.lookupByEmail": self._look_up,
            "views.open": self._open,
        }

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer one call of the Web API."""
        with self._lock:
            return self._respond(Request(environ))(environ, start_response)

    def hooks(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one post to a response URL; every path is one."""
        with self._lock:
            return self._take(Request(environ))(environ, start_response)

    def _respond(self, request: Request) -> Response:
        method = request.path.rpartition("/")[2]
        try:
            arguments = _arguments(request)
        except BadRequest:
            return self._said(method, {}, 200, {"ok": False, "error": "invalid_json"})
        token = arguments.pop("token", "") or request.headers.get("Authorization", "")
        if (scripted := self._scripted(method, arguments.get("channel"))) is not None:
            if scripted.listed_after is not None:
                done = self._answer(method, arguments)
                self._conversations.hide(done.get("ts", ""), self._now() + scripted.listed_after)
            return self._said(method, arguments, scripted.status, scripted.body, scripted.headers)
        if not token.removeprefix("Bearer").strip():
            return self._said(method, arguments, 200, {"ok": False, "error": "not_authed"})
        return self._said(method, arguments, 200, self._answer(method, arguments))

    def _take(self, request: Request) -> Response:
        try:
            message = _arguments(request)
        except BadRequest:
            return self._said(RESPONSE, {}, 400, "invalid_payload")
        if (scripted := self._scripted(RESPONSE, None)) is not None:
            return self._said(RESPONSE, message, scripted.status, scripted.body, scripted.headers)
        if self._used[request.path] == MOST_RESPONSES:
            return self._said(RESPONSE, message, 404, {"ok": False, "error": "used_url"})
        try:
            if not message.get("delete_original"):
                check(message)
        except RefusedError as error:
            return self._said(RESPONSE, message, 400, error.code)
        self._used[request.path] += 1
        self.responses.append({"at": stamp(self._now()), "path": request.path, "payload": message})
        return self._said(RESPONSE, message, 200, {"ok": True})

    def _scripted(self, method: str, channel: str | None) -> ScriptedAnswer | None:
        found = next((a for a in self._script if a.matches(method, channel, self._now())), None)
        if found is not None and found.times is not None:
            found.times -= 1
        return found

    def _said(
        self,
        method: str,
        arguments: Arguments,
        status: int,
        body: Any,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Report a call and write its answer."""
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
        text = body if isinstance(body, str) else json.dumps(body or {}, ensure_ascii=False)
        kind = "text/plain" if isinstance(body, str) else "application/json"
        return Response(text, status, headers, content_type=f"{kind}; charset=utf-8")

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
        return {"team": "local", "team_id": _TEAM, "user": "gpu-steward", "user_id": "U0LOCAL"}

    def _user_info(self, arguments: Arguments) -> Body:
        if (user := arguments.get("user")) not in self._people:
            raise RefusedError("user_not_found")
        return {"user": self._member(str(user))}

    def _look_up(self, arguments: Arguments) -> Body:
        wanted = str(arguments.get("email", "")).lower()
        for user, email in self._people.items():
            if email.lower() == wanted:
                return {"user": self._member(user)}
        raise RefusedError("users_not_found")

    def _member(self, user: str) -> Body:
        email = self._people[user]
        name = email.partition("@")[0]
        return {"id": user, "team_id": _TEAM, "name": name, "profile": {"email": email}}

    def _open(self, arguments: Arguments) -> Body:
        trigger = arguments.get("trigger_id")
        if not isinstance(trigger, str) or not _TRIGGER.fullmatch(trigger):
            raise RefusedError("invalid_trigger_id")
        if any(opened["trigger_id"] == trigger for opened in self.views):
            raise RefusedError("exchanged_trigger_id")
        view = arguments.get("view")
        check_view(view)
        self.views.append({"at": stamp(self._now()), "trigger_id": trigger, "view": view})
        return {"view": {"id": f"V0LOCAL{len(self.views)}", "team_id": _TEAM, **(view or {})}}


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
