"""answer_slack: takes what Slack sends, checks that it is Slack, and hands it over at once.

Slack waits three seconds. So nothing is decided here: what is about a card goes to the reconciler's
queue, everything else to `run_command`; only the dialog must be opened from here, as its trigger lives
for three seconds too.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from steward.alerts.actions import ActionKind, CardAction
from steward.errors import StewardError
from steward.slack.commands import Command
from steward.slack.interactions import UNREADABLE, Ignored, Mistaken, OpenDialog, Wish, read
from steward.slack.modal import exempt_view
from steward.slack.signature import claimed, signed
from steward.telemetry import logger

if TYPE_CHECKING:
    from steward.ports import ActionQueue, Clock, CommandQueue, Dialogs

type Response = dict[str, Any]

_MOST_FIELDS = 100
_TRY_AGAIN = "GPU Steward could not take this just now: please try again."


def answer(
    event: Mapping[str, Any],
    *,
    secret: Callable[[], str],
    actions: Callable[[], ActionQueue],
    commands: Callable[[], CommandQueue],
    dialogs: Callable[[], Dialogs],
    clock: Clock,
) -> Response:
    """Answer one request to the Function URL.

    Parameters
    ----------
    event : mapping
        Payload format 2.0.
    secret, actions, commands, dialogs : callable
        Give the signing secret and the ports; called only once they are needed, so that a
        request which cannot be Slack's costs nothing.

    Returns
    -------
    dict
        `statusCode`, `headers`, `body`. 401 for everything that Slack did not sign within the last
        five minutes; 200 for everything that it did.
    """
    now = clock.now()
    headers = _headers(event)
    claim = claimed(headers, now)
    body = _body(event) if claim else None
    if claim is None or body is None:
        return _refused("not a request that Slack signed within five minutes")
    try:
        known = secret()
    except StewardError as error:
        logger.error("no signing secret: nothing can be verified", error=str(error))
        return _refused("the signing secret cannot be read")
    if not signed(known, *claim, body):
        return _refused("the signature is another one")
    if "x-slack-retry-num" in headers:
        # Harmless: a press or a command has an id of its own, and is done once.
        logger.info("Slack sends it again", attempt=headers["x-slack-retry-num"][:8])
    wish = _wish(headers, body, now)
    return wish if isinstance(wish, dict) else _taken(wish, actions, commands, dialogs)


def _taken(
    wish: Wish,
    actions: Callable[[], ActionQueue],
    commands: Callable[[], CommandQueue],
    dialogs: Callable[[], Dialogs],
) -> Response:
    told: dict[str, str] = {}
    try:
        match wish:
            case CardAction():
                actions().act(wish)
                told = {"action": wish.kind.value, "card": wish.card, "cluster": wish.cluster}
            case Command():
                commands().send(wish)
                told = {"command": wish.text.partition(" ")[0][:40]}
            case OpenDialog():
                _open(wish, commands, dialogs)
                told = {"dialog": wish.card, "cluster": wish.cluster}
            case Mistaken():
                logger.info("taken", extra={"mistaken": sorted(wish.errors)})
                return _json({"response_action": "errors", "errors": wish.errors})
            case Ignored():
                told = {"ignored": wish.reason}
    except StewardError as error:
        logger.error("not handed over", error=str(error))
        if isinstance(wish, CardAction) and wish.kind is ActionKind.EXEMPT:  # the dialog's
            return _json({"response_action": "errors", "errors": {"reason": _TRY_AGAIN}})
        # A command shows what it is answered; a press shows nothing, and the card stays as it is.
        return _json({"response_type": "ephemeral", "text": _TRY_AGAIN})
    logger.info("taken", extra=told)
    return _empty()


def _open(
    wish: OpenDialog, commands: Callable[[], CommandQueue], dialogs: Callable[[], Dialogs]
) -> None:
    """Open the dialog; where Slack does not, tell how to do without."""
    view = exempt_view(wish.cluster, wish.card, wish.fallback.response_url)
    try:
        dialogs().open(wish.trigger_id, view)
    except StewardError as error:
        logger.warning("the dialog was not opened", error=str(error))
        commands().send(wish.fallback)


def _wish(headers: Mapping[str, str], body: bytes, now: datetime) -> Wish | Response:
    """Read a signed body: a form, or the JSON of Slack's check of an address."""
    if "json" in headers.get("content-type", ""):
        try:
            value = msgspec.json.decode(body)
        except UNREADABLE:
            return Ignored(reason="JSON that is none")
        match value:
            case {"type": "url_verification", "challenge": str(challenge)}:
                return _json({"challenge": challenge})
        return Ignored(reason="JSON")
    try:
        text = body.decode(errors="replace")
        form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return Ignored(reason="a form of too many fields")
    return read(form, now)


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    given = event.get("headers")
    if not isinstance(given, Mapping):
        return {}
    return {str(k).lower(): v for k, v in given.items() if isinstance(v, str)}


def _body(event: Mapping[str, Any]) -> bytes | None:
    """Give the raw bytes that were signed; None: they cannot be told."""
    body = event.get("body") or ""
    if not isinstance(body, str):
        return None
    if not event.get("isBase64Encoded"):
        return body.encode(errors="surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return None


def _refused(reason: str) -> Response:
    logger.warning("refused", reason=reason)
    return {"statusCode": 401, "headers": {"content-type": "text/plain"}, "body": "unauthorized"}


def _empty() -> Response:
    return {"statusCode": 200, "headers": {}, "body": ""}


def _json(value: Mapping[str, Any]) -> Response:
    headers = {"content-type": "application/json"}
    return {"statusCode": 200, "headers": headers, "body": json.dumps(value)}
