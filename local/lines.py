"""The JSON lines that a replay prints: what opened, what ended, what is unknown, what Slack was told."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from steward.alerts import troubles
from steward.alerts.model import Alert, AlertState, ReconcilerState
from steward.cluster.figures import stamp, tidy
from steward.cluster.findings import Evaluation, Finding, Unknown

type Line = dict[str, Any]
type UnknownKey = tuple[str, str | None, str, str]


def dump(line: Line) -> str:
    """Write a line: the same bytes for the same facts."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def finding_line(cluster: str, alert: Alert) -> Line:
    """Describe an alert that opened or ended."""
    ended = alert.state is AlertState.RESOLVED
    at = alert.resolved if ended else alert.opened
    if at is None:
        raise ValueError(f"{alert.key}: neither opened nor resolved")
    return {
        "type": "finding",
        "at": stamp(at),
        "status": "resolved" if ended else "firing",
        **_facts(cluster, alert.finding),
        "resolution": alert.resolution.value if alert.resolution else None,
    }


def _facts(cluster: str, finding: Finding) -> Line:
    return {
        "cluster": cluster,
        "detector": finding.detector,
        "team": finding.team,
        "subject": finding.subject,
        "reason": finding.reason,
        "severity": finding.severity.value,
        "since": stamp(finding.since),
        "gpus": tidy(finding.gpus),
        "gpu_hours": tidy(finding.gpu_hours),
        "cost_usd": tidy(finding.cost_usd),
        "evidence": finding.evidence,
        "action": finding.action,
    }


def open_findings(state: ReconcilerState) -> list[Line]:
    """Describe every open finding, for the summary."""
    alerts = [a for a in state.alerts.values() if a.state is AlertState.OPEN and _is_found(a)]
    return [
        finding_line(state.cluster, alert)
        for alert in sorted(alerts, key=lambda alert: (alert.opened, alert.key))
    ]


def _is_found(alert: Alert) -> bool:
    """Tell a finding about the cluster from what the steward says of itself, which is a card only."""
    return alert.finding.detector != troubles.DETECTOR


class FindingLines:
    """Tells what opened and what ended since it was last asked."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str, datetime]] = set()

    def changes(self, state: ReconcilerState) -> list[Line]:
        """Describe the changes: first what ended, then what opened, each in the order of its key."""
        lines: list[tuple[bool, str, Line]] = []
        for key, alert in sorted(state.alerts.items()):
            if alert.state is AlertState.DAMPED or alert.opened is None or not _is_found(alert):
                continue
            mark = (alert.state.value, key, alert.opened)
            if mark not in self._told:
                self._told.add(mark)
                opened = alert.state is AlertState.OPEN
                lines.append((opened, key, finding_line(state.cluster, alert)))
        lines.sort(key=lambda entry: entry[:2])
        return [line for _, _, line in lines]


class UnknownLines:
    """Tells what became unknown and what no longer is.

    Attributes
    ----------
    standing : list of dict
        Lines of what is unknown now, each as it was told when it began.
    """

    def __init__(self) -> None:
        self._begun: dict[UnknownKey, Line] = {}

    def changes(self, evaluation: Evaluation) -> list[Line]:
        """Describe the changes that an evaluation brings."""
        now = {_key(unknown): unknown for unknown in evaluation.unknown}
        at = stamp(evaluation.at)
        ended = [
            {**self._begun.pop(key), "at": at, "ended": True}
            for key in sorted(self._begun.keys() - now.keys(), key=_order)
        ]
        begun = sorted(now.keys() - self._begun.keys(), key=_order)
        self._begun |= {key: _unknown_line(evaluation, now[key]) for key in begun}
        return ended + [self._begun[key] for key in begun]

    @property
    def standing(self) -> list[Line]:
        """Lines of what is unknown now."""
        return [self._begun[key] for key in sorted(self._begun, key=_order)]


def _key(unknown: Unknown) -> UnknownKey:
    return (unknown.detector, unknown.team, unknown.subject, unknown.reason.value)


def _order(key: UnknownKey) -> tuple[str, ...]:
    return tuple(part or "" for part in key)


def _unknown_line(evaluation: Evaluation, unknown: Unknown) -> Line:
    line = {
        "type": "unknown",
        "at": stamp(evaluation.at),
        "cluster": evaluation.cluster,
        "detector": unknown.detector,
        "team": unknown.team,
        "subject": unknown.subject,
        "reason": unknown.reason.value,
    }
    told = {"gpus": unknown.gpus, "coverage": unknown.coverage}
    return line | {key: tidy(value) for key, value in told.items() if value is not None}


def summary_line(
    at: datetime,
    ticks: int,
    states: Iterable[ReconcilerState],
    unknown: list[Line],
    calls: Iterable[Line],
    failures: int,
) -> Line:
    """Describe the whole replay."""
    methods = [call["method"] for call in calls if call["response"].get("ok")]
    return {
        "type": "summary",
        "at": stamp(at),
        "ticks": ticks,
        "open": [line for state in states for line in open_findings(state)],
        "unknown": unknown,
        "slack": {
            "posts": methods.count("chat.postMessage"),
            "updates": methods.count("chat.update"),
        },
        "failures": failures,
    }
