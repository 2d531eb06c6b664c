"""Cards: which alerts a reader sees together, in which channel, and when an edit is worth it.

Decides what each Slack message should show, as JSON facts; says nothing of how it looks.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from steward.alerts.model import KEPT, Alert, AlertState, Card, ReconcilerState
from steward.cluster.figures import stamp
from steward.cluster.findings import Finding, Resolution
from steward.cluster.policy import ClusterPolicy, Severity

REFRESH = timedelta(hours=1)
"""Running numbers alone edit a card at most this often: they grow at every tick, and an edit a
tick a card would spend Slack's rate limit on what no reader waits for."""

LISTED = 20
"""Items of a list that a card's facts keep. A cluster without telemetry names every one of its
devices, while nobody reads more than these and a stored item has a size limit."""

_RANK = {Severity.INFO: 0, Severity.WARN: 1, Severity.PAGE: 2}
_RUNNING = frozenset(
    {
        "activity_max",
        "activity_min",
        "ahead",
        "api",
        "available",
        "borrowers",
        "contradiction",
        "coverage",
        "dropped",
        "head",
        "hung_until",
        "idle_not_lent",
        "idle_until",
        "judged_gpus",
        "lenders",
        "missing",
        "nodes",
        "nodes_with_room",
        "position",
        "power_max_watts",
        "reserved",
        "samples",
        "sentence",
        "share",
        "tensor_max",
        "used",
        "waiting",
        "waits",
    }
)
"""Evidence that is measured anew at every tick."""

_RUNNING_DEVICE = frozenset({"gpu_hours", "held_bytes"})
"""Likewise, of each device."""


def lay_out(state: ReconcilerState, cluster: ClusterPolicy) -> dict[str, Card]:
    """Say what every card of a cluster should show.

    Parameters
    ----------
    state : ReconcilerState
        Alerts as of `state.at`, and the cards so far.
    cluster : ClusterPolicy
        Teams and channels.

    Returns
    -------
    dict of str to Card
        By card key. A card begins with an alert of severity warn or page and follows its incident
        to the end, whatever the severity becomes; info alone is digest material. Delivered parts
        are as they were.
    """
    at = state.at
    if at is None:
        return state.cards
    incidents: dict[str, list[Alert]] = {}
    for alert in state.alerts.values():
        if alert.incident is not None:
            incidents.setdefault(_key(alert, alert.incident), []).append(alert)
    cards = {key: _follow(state.cards.get(key), incidents.get(key, ()), key, at, cluster)
             for key in sorted(state.cards.keys() | incidents.keys())}  # fmt: skip
    return {key: card for key, card in cards.items() if card and not _forgotten(card, at)}


def by_urgency(cards: Iterable[Card]) -> list[Card]:
    """Order cards: most severe first, then the longest waiting."""
    return sorted(cards, key=lambda c: (-_RANK[Severity(c.severity)], c.content["detected"], c.key))


def revision(content: Mapping[str, Any]) -> str:
    """Digest a card's facts: equal facts, equal revision."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _key(alert: Alert, incident: datetime) -> str:
    return f"{alert.group}|{incident.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _forgotten(card: Card, at: datetime) -> bool:
    return card.closed and card.delivered_at is not None and at - card.delivered_at > KEPT


def _follow(
    before: Card | None, alerts: Sequence[Alert], key: str, at: datetime, cluster: ClusterPolicy
) -> Card | None:
    running = [alert for alert in alerts if alert.state is AlertState.OPEN]
    if before is None:
        news = (alert for alert in alerts if alert.resolved in {None, at})
        if all(alert.finding.severity is Severity.INFO for alert in news):
            return None
    elif before.closed and not running:
        return before
    elif not alerts:
        return _orphan(before, at)
    lead = _lead(alerts)
    content = facts(lead, [alert for alert in alerts if alert is not lead], cluster)
    if before is None:
        before = Card(key=key, channel="", severity="", content={}, desired="")
    elif _settled(before, content, at):
        return before
    fixed = before.rerouted or _sent(before)
    return replace(
        before,
        channel=before.channel if fixed else route(lead.finding, cluster),
        severity=lead.finding.severity.value,
        content=content,
        desired=revision(content),
        closed=False,
    )


def _sent(card: Card) -> bool:
    """Tell whether Slack shows the card, or may show it."""
    return bool(card.posted or card.intent or card.doubtful)


def _settled(card: Card, content: Mapping[str, Any], at: datetime) -> bool:
    """Tell whether what Slack shows is still good enough."""
    if card.delivered != card.desired or card.delivered_at is None:
        return False
    if {**content, "running": None} != {**card.content, "running": None}:
        return False
    # Their time alone is no news: it moves at every tick.
    as_of = {"as_of": card.content["running"]["as_of"]}
    same = {**content["running"], **as_of} == card.content["running"]
    return same or at - card.delivered_at < REFRESH


def _orphan(card: Card, at: datetime) -> Card | None:
    """End a card whose alerts are gone (a save was cut short): it must not stay open for ever."""
    if card.content["state"] == "resolved":
        return card
    if not _sent(card):
        return None
    ended = {"state": "resolved", "resolved": stamp(at), "resolution": Resolution.EXPIRED.value}
    content = {**card.content, **ended, "stale_since": None}
    return replace(card, content=content, desired=revision(content))


def _lead(alerts: Iterable[Alert]) -> Alert:
    """Choose the alert that heads the card: a running one, the most severe, the latest change."""

    def weight(alert: Alert) -> tuple[bool, datetime, int, str]:
        running = alert.resolved is None
        ended = alert.resolved or datetime.max.replace(tzinfo=UTC)
        return running, ended, _RANK[alert.finding.severity], alert.key

    return max(alerts, key=weight)


def route(finding: Finding, cluster: ClusterPolicy) -> str:
    """Choose the channel (its id): the team's, else the platform team's, whose telemetry is."""
    team = cluster.team_named(finding.team)
    if finding.detector == "telemetry" or team is None or team.channel is None:
        return cluster.platform_channel.id
    return team.channel.id


def facts(lead: Alert, others: Iterable[Alert], cluster: ClusterPolicy) -> dict[str, Any]:
    """State what a card says, as JSON values.

    Parameters
    ----------
    lead : Alert
        What the card is about.
    others : iterable of Alert
        The rest of its incident: other reasons, running or ended.
    cluster : ClusterPolicy
        Whose names, owners and channels are meant.

    Returns
    -------
    dict
        Times as `YYYY-MM-DDTHH:MM:SSZ`. Everything measured anew at every tick stands under
        `running` (of each device listed, in their order, `device_gpu_hours`); lists are cut to
        :data:`LISTED`, devices that are idle the longest first, with what was left out in
        `omitted`.
    """
    finding = lead.finding
    team = cluster.team_named(finding.team)
    devices = _longest_first(finding.evidence.get("accelerators", ()))
    left_out = finding.evidence.get("omitted", {})
    stable = {k: v for k, v in finding.evidence.items() if k not in {*_RUNNING, "omitted"}}
    stable |= {"accelerators": devices} if devices else {}
    measured = {k: _bounded(v) for k, v in finding.evidence.items() if k in _RUNNING}
    omitted = {
        k: len(v) - LISTED + left_out.get(k, 0) for k, v in stable.items() if isinstance(v, list)
    }
    return {
        "cluster": cluster.name,
        "detector": finding.detector,
        "reason": finding.reason,
        "subject": finding.subject,
        "team": finding.team,
        "owner": finding.owner,
        "team_owners": list(team.owners) if team else [],
        "severity": finding.severity.value,
        "state": "open" if lead.resolved is None else "resolved",
        "since": stamp(finding.since),
        "detected": stamp(lead.incident or lead.first_seen),
        "resolved": stamp(lead.resolved) if lead.resolved else None,
        "resolution": lead.resolution.value if lead.resolution else None,
        "stale_since": stamp(lead.unknown_since) if lead.stale and lead.unknown_since else None,
        "gpus": finding.gpus,
        "action": finding.action,
        "evidence": {k: _bounded(v) for k, v in stable.items()},
        "omitted": {k: count for k, count in omitted.items() if count > 0},
        "others": [_brief(alert) for alert in sorted(others, key=lambda a: a.key)],
        "running": {
            "as_of": _until(finding) or stamp(lead.last_seen),
            "gpu_hours": finding.gpu_hours,
            "cost_usd": finding.cost_usd,
            "held_bytes": _held(devices),
            "device_gpu_hours": [device.get("gpu_hours") for device in devices[:LISTED]],
            **measured,
        },
    }


def _until(finding: Finding) -> str | None:
    """Tell the last sample that showed what is over."""
    return finding.evidence.get("idle_until") or finding.evidence.get("hung_until")


def _bounded(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [
        {k: v for k, v in item.items() if k not in _RUNNING_DEVICE}
        if isinstance(item, dict)
        else item
        for item in value[:LISTED]
    ]


def _longest_first(devices: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(devices, key=lambda device: device.get("idle_since") or "")


def _held(devices: Iterable[Mapping[str, Any]]) -> int | None:
    """Sum the memory known to be held (bytes) on some devices; None: not measured."""
    known = [held for device in devices if (held := device.get("held_bytes")) is not None]
    return sum(known) if known else None


def _brief(alert: Alert) -> dict[str, Any]:
    """Name another alert of the incident: what it was, and once it has ended its final numbers."""
    ended = alert.resolved is not None
    return {
        "reason": alert.finding.reason,
        "subject": alert.finding.subject,
        "since": stamp(alert.finding.since),
        "gpus": alert.finding.gpus,
        "resolved": stamp(alert.resolved) if alert.resolved else None,
        "resolution": alert.resolution.value if alert.resolution else None,
        "gpu_hours": alert.finding.gpu_hours if ended else None,
        "cost_usd": alert.finding.cost_usd if ended else None,
    }
