"""What Slack posts when people press, send a dialog or type: entries of a recording's `slack/`."""

import json
from datetime import datetime

from tests.alerting.kit import CLUSTER
from tests.handmade import Object
from tests.recordings import iso

NAMES = {"U0ANA": "ana", "U0BO": "bo", "U0MALLORY": "mallory"}
HOOKS = "https://hooks.slack.com"


def pressed(
    when: datetime, button: str, card: str, *, user: str = "U0ANA", span: str = "", again: int = 0
) -> Object:
    """A press of one of a card's buttons; `again` seconds later Slack delivers it once more."""
    action: Object = {
        "type": "static_select" if span else "button",
        "action_id": button,
        "block_id": f"card/{CLUSTER}/{card}",
        "action_ts": f"{when.timestamp():.6f}",
    }
    if span:
        action["selected_option"] = {"text": {"type": "plain_text", "text": span}, "value": span}
    else:
        action |= {"text": {"type": "plain_text", "text": button}, "value": card}
    payload = {
        "type": "block_actions",
        **_somebody(when, user),
        "container": {"type": "message", "message_ts": "1.000001", "channel_id": "C0GPURESEA01"},
        "channel": {"id": "C0GPURESEA01", "name": "gpu-research"},
        "response_url": _hook(when, user),
        "actions": [action],
    }
    return _entry(when, again, "interaction", payload)


def submitted(
    when: datetime, card: str, *, span: str, reason: str, user: str = "U0ANA", again: int = 0
) -> Object:
    """The exemption dialog, filled in and sent."""
    about = {"cluster": CLUSTER, "card": card, "response_url": _hook(when, user)}
    chosen = {"text": {"type": "plain_text", "text": span}, "value": span}
    values = {
        "reason": {"reason": {"type": "plain_text_input", "value": reason}},
        "span": {"span": {"type": "static_select", "selected_option": chosen}},
    }
    view = {
        "id": f"V{when:%H%M%S}",
        "type": "modal",
        "callback_id": "exempt",
        "hash": f"{when.timestamp():.0f}.abc",
        "private_metadata": json.dumps(about),
        "state": {"values": values},
    }
    payload = {"type": "view_submission", **_somebody(when, user), "view": view}
    return _entry(when, again, "interaction", payload)


def typed(when: datetime, text: str, *, user: str = "U0ANA", again: int = 0) -> Object:
    """What somebody typed after `/gpu`."""
    fields = {
        "token": "local",
        "team_id": "T0LOCAL",
        "team_domain": "local",
        "channel_id": "C0GPURESEA01",
        "channel_name": "gpu-research",
        "user_id": user,
        "user_name": NAMES[user],
        "command": "/gpu",
        "text": text,
        "api_app_id": "A0LOCAL",
        "is_enterprise_install": "false",
        "response_url": _hook(when, user, "commands"),
        "trigger_id": _trigger(when, user),
    }
    return _entry(when, again, "command", fields)


def _entry(when: datetime, again: int, kind: str, body: Object) -> Object:
    at = datetime.fromtimestamp(when.timestamp() + again, when.tzinfo)
    return {"time": iso(at), "kind": kind, "body": body}


def _somebody(when: datetime, user: str) -> Object:
    name = NAMES[user]
    return {
        "team": {"id": "T0LOCAL", "domain": "local"},
        "user": {"id": user, "username": name, "name": name, "team_id": "T0LOCAL"},
        "api_app_id": "A0LOCAL",
        "token": "local",
        "trigger_id": _trigger(when, user),
    }


def _trigger(when: datetime, user: str) -> str:
    return f"{when:%H%M%S}.{when:%j}.{user.lower()}"


def _hook(when: datetime, user: str, kind: str = "actions") -> str:
    return f"{HOOKS}/{kind}/T0LOCAL/{when:%H%M%S}/{user.lower()}"
