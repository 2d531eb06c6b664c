"""What is not told because it follows from something that is: one fault is one card."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steward.alerts import troubles
from steward.alerts.facts import LISTED
from steward.alerts.model import Alert, AlertState
from steward.cluster.policy import Severity


class Inhibition:
    """What hides what, at one moment.

    A cluster that cannot be read, or whose telemetry is lost as a whole, hides what else is wrong
    with its telemetry; what cannot be judged says so on its own card all the same. A node that cannot
    run work hides what is said of its accelerators alone, and that quotas are above what is left.

    Parameters
    ----------
    incidents : mapping of str to sequence of Alert
        By card key.
    """

    def __init__(self, incidents: Mapping[str, Sequence[Alert]]) -> None:
        self._blinding: str | None = None
        self._nodes: dict[str, str] = {}
        for key, alerts in sorted(incidents.items()):
            for alert in filter(_open, alerts):
                finding = alert.finding
                if finding.reason == "node_unhealthy":
                    self._nodes[finding.subject.removeprefix("Node/")] = key
                unreachable = finding.reason == troubles.UNREACHABLE
                if unreachable or (self._blinding is None and _whole(alert)):
                    self._blinding = key
        self._hidden: dict[str, list[Alert]] = {}
        for key, alerts in sorted(incidents.items()):
            for alert in filter(_open, alerts):
                if (behind := self._behind(key, alert)) is not None:
                    self._hidden.setdefault(behind, []).append(alert)

    def hides(self, key: str, alerts: Iterable[Alert]) -> bool:
        """Tell whether everything that would begin a card follows from another one."""
        running = list(filter(_open, alerts))
        return bool(running) and all(self._behind(key, alert) is not None for alert in running)

    def told(self, key: str) -> dict[str, Any]:
        """List what a card hides, for its facts."""
        hidden = sorted(self._hidden.get(key, ()), key=lambda alert: alert.key)
        return {
            "follows": [_brief(alert) for alert in hidden[:LISTED]],
            "follows_omitted": max(0, len(hidden) - LISTED),
        }

    def _behind(self, key: str, alert: Alert) -> str | None:
        """Find the card that an alert follows from."""
        finding = alert.finding
        own = finding.detector in {"telemetry", troubles.DETECTOR}
        if own and self._blinding not in {None, key}:
            return self._blinding
        if finding.reason == "quota_above_capacity":
            named = [each.get("node") for each in finding.evidence.get("not_usable") or ()]
        else:
            devices = finding.evidence.get("accelerators") or ()
            named = list({device.get("node") for device in devices})
            named = named if len(named) == 1 else []
        found = (self._nodes[node] for node in named if node in self._nodes)
        return next((card for card in found if card != key), None)


def _open(alert: Alert) -> bool:
    return alert.state is AlertState.OPEN


def _whole(alert: Alert) -> bool:
    finding = alert.finding
    return finding.reason == "telemetry_lost" and finding.severity is Severity.PAGE


def _brief(alert: Alert) -> dict[str, Any]:
    finding = alert.finding
    return {"detector": finding.detector, "reason": finding.reason, "subject": finding.subject}
