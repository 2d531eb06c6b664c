"""What a request of Slack asks for: presses, the dialog's submission, slash commands.

Source: docs.slack.dev, interactivity payloads and slash commands. What is not understood is named and
changes nothing: Slack may send kinds of requests that this app does not know yet.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from steward.alerts.actions import ActionKind, CardAction
from steward.slack.buttons import card_of
from steward.slack.commands import Command
from steward.slack.modal import CALLBACK, REASON, SPANS


class OpenDialog(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody pressed Exempt…: the dialog must open within three seconds.

    Attributes
    ----------
    fallback : Command
        What `run_command` says where it cannot be opened.
    """

    trigger_id: str
    cluster: str
    card: str
    fallback: Command


class Mistaken(msgspec.Struct, frozen=True, kw_only=True):
    """A submission that the dialog is to show again, with what is wrong by block id."""

    errors: dict[str, str]


class Ignored(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing of ours."""

    reason: str


type Wish = CardAction | Command | OpenDialog | Mistaken | Ignored

UNREADABLE = (ValueError, RecursionError)
"""What msgspec raises for JSON that is none: half a character (a lone surrogate, which no queue could
carry) and endless nesting are none either."""

_AT_ONCE = {"acknowledge": ActionKind.ACKNOWLEDGE, "snooze": ActionKind.SNOOZE}


def read(form: Mapping[str, str], at: datetime) -> Wish:
    """Tell what a signed request asks for.

    Parameters
    ----------
    form : mapping of str to str
        Fields of its body.
    at : datetime
        When it arrived.
    """
    if "command" in form:
        return _command(form, at)
    if "payload" not in form:
        return Ignored(reason="neither an interaction nor a command")
    return _interaction(form["payload"], at)


def _interaction(text: str, at: datetime) -> Wish:
    try:
        payload = msgspec.json.decode(text)
    except UNREADABLE:
        return Ignored(reason="the payload is no JSON")
    match payload:
        case {"type": "block_actions", "user": {"id": str(user)}, "actions": [action, *_]}:
            return _press(payload, user, action, at)
        case {
            "type": "view_submission",
            "user": {"id": str(user)},
            "view": {"callback_id": str(callback), "id": str(view)},
        } if callback == CALLBACK:
            return _submission(payload, user, view, at)
        case {"type": str(kind)}:
            return Ignored(reason=f"a {kind[:60]!r}")
    return Ignored(reason="an interaction of no type")


def _command(form: Mapping[str, str], at: datetime) -> Wish:
    url = form.get("response_url", "")
    if not url or not form.get("user_id"):
        return Ignored(reason="a command without a user or an address for its answer")
    return Command(
        id=form.get("trigger_id") or url,
        text=form.get("text", "").strip(),
        user=form["user_id"],
        name=form.get("user_name") or form["user_id"],
        channel=form.get("channel_id", ""),
        at=at,
        response_url=url,
    )


def _press(payload: Mapping[str, Any], user: str, action: Any, at: datetime) -> Wish:
    match action:
        case {"action_id": str(name), "block_id": str(block_id), "action_ts": str(pressed)}:
            place = card_of(block_id)
        case _:
            return Ignored(reason="a press that does not say on what")
    if place is None:
        return Ignored(reason="a press on no card")
    cluster, card = place
    url = payload.get("response_url")
    identity = f"{_message(payload)}-{name}-{user}-{pressed}"
    if kind := _AT_ONCE.get(name):
        return CardAction(
            kind=kind,
            id=identity,
            cluster=cluster,
            card=card,
            user=user,
            name=_name(payload, user),
            at=at,
            span=_selected(action) if kind is ActionKind.SNOOZE else "",
            response_url=url if isinstance(url, str) else None,
        )
    if name not in {"exempt", "evidence"} or not isinstance(url, str):
        return Ignored(reason=f"a press on {name[:60]!r}")
    wanted = "evidence" if name == "evidence" else "exempt-help"
    command = Command(
        id=identity,
        text=f"{wanted} {cluster}/{card}",
        user=user,
        name=_name(payload, user),
        channel=_channel(payload),
        at=at,
        response_url=url,
    )
    trigger = payload.get("trigger_id")
    if name == "exempt" and isinstance(trigger, str):
        return OpenDialog(trigger_id=trigger, cluster=cluster, card=card, fallback=command)
    return command


def _submission(payload: Mapping[str, Any], user: str, view: str, at: datetime) -> Wish:
    try:
        about = msgspec.json.decode(payload["view"].get("private_metadata") or "")
    except (TypeError, *UNREADABLE):
        about = None
    match about:
        case {"cluster": str(cluster), "card": str(card), **rest}:
            url = rest.get("response_url")
        case _:
            return Ignored(reason="a dialog that does not say about which card")
    reason, span = _values(payload)
    errors = {}
    if not reason:
        errors["reason"] = "A reason is needed: somebody will ask why this card is quiet."
    if span not in dict(SPANS):
        errors["span"] = "Choose one of these."
    if errors:
        return Mistaken(errors=errors)
    return CardAction(
        kind=ActionKind.EXEMPT,
        id=view,
        cluster=cluster,
        card=card,
        user=user,
        name=_name(payload, user),
        at=at,
        span=span,
        reason=reason[:REASON],
        response_url=url if isinstance(url, str) else None,
    )


def _values(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Read what was filled in; what is not there is empty."""
    match payload:
        case {
            "view": {
                "state": {
                    "values": {
                        "reason": {"reason": {"value": str(reason)}},
                        "span": {"span": {"selected_option": {"value": str(span)}}},
                    }
                }
            }
        }:
            return " ".join(reason.split()), span
        case {"view": {"state": {"values": {"reason": {"reason": {"value": str(reason)}}}}}}:
            return " ".join(reason.split()), ""
    return "", ""


def _selected(action: Mapping[str, Any]) -> str:
    match action:
        case {"selected_option": {"value": str(value)}}:
            return value
    return ""


def _name(payload: Mapping[str, Any], user: str) -> str:
    match payload["user"]:
        case {"name": str(name)} | {"username": str(name)} if name:
            return name
    return user


def _message(payload: Mapping[str, Any]) -> str:
    match payload:
        case {"container": {"message_ts": str(ts)}}:
            return ts
    return "no-message"


def _channel(payload: Mapping[str, Any]) -> str:
    match payload:
        case {"channel": {"id": str(channel)}}:
            return channel
    return ""
