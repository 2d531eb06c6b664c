"""Show evidence: everything that a card rests on, where the card itself names four of each."""

import json
from collections.abc import Mapping
from typing import Any

from steward.alerts.model import Alert, Card
from steward.cluster.figures import stamp
from steward.slack.answers.view import ClusterView, bullets, card_line, finding_title
from steward.slack.text import code, hours, safe, when


def evidence(view: ClusterView, card: Card) -> list[str]:
    """List a card's alerts with their devices and all their evidence."""
    lines = [card_line(view, card)]
    running = view.alerts_of(card)
    if not running:
        lines.append("None of its alerts is open any more.")
    for alert in running:
        lines += _alert(alert)
    return lines


def _alert(alert: Alert) -> list[str]:
    finding = alert.finding
    since = f"since {when(stamp(finding.since))}, last seen {when(stamp(alert.last_seen))}"
    lines = [f"*{finding_title(finding)}* · {since}"]
    lines += bullets([_device(each) for each in finding.evidence.get("accelerators") or ()])
    for name, value in sorted(finding.evidence.items()):
        if name != "accelerators" and value not in (None, [], {}):
            lines += _told(name, value)
    return lines


def _told(name: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        return [f"{safe(name)}: {code(_value(value), 700)}"]
    return [f"{safe(name)}:", *bullets([code(_value(each), 700) for each in value])]


def _device(device: Mapping[str, Any]) -> str:
    told = [code(device[name]) for name in ("node", "uuid", "pod") if device.get(name)]
    told += [f"MIG {safe(device['mig'])}"] if device.get("mig") else []
    told += [f"since {when(device['idle_since'])}"] if device.get("idle_since") else []
    spent = device.get("gpu_hours")
    return " · ".join([*told, *([hours(spent)] if spent is not None else [])])


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
