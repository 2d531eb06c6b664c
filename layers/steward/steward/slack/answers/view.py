"""What answers are made from: a cluster's policy, what the reconciler knows, the newest evaluation."""

from collections.abc import Iterator

import msgspec

from steward.alerts.model import Alert, AlertState, Card, CardKind, ReconcilerState, card_id
from steward.cluster.figures import stamp
from steward.cluster.findings import Evaluation, Finding
from steward.cluster.policy import ClusterPolicy
from steward.slack.stories import title
from steward.slack.text import code, when


class ClusterView(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster; no evaluation where none was ever folded, or it is not kept any more."""

    policy: ClusterPolicy
    state: ReconcilerState
    evaluation: Evaluation | None

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.policy.name

    def cards(self) -> list[Card]:
        """Cards that are not over, the most severe first."""
        cards = [c for c in self.state.cards.values() if c.kind is CardKind.CARD and _runs(c)]
        return sorted(cards, key=lambda c: (c.severity != "page", c.severity, c.key))

    def alerts_of(self, card: Card) -> list[Alert]:
        """Alerts of a card's problem that are open, those with the most GPUs first."""
        group, _, _ = card.key.rpartition("|")
        running = [
            alert
            for alert in self.state.alerts.values()
            if alert.group == group and alert.state is AlertState.OPEN
        ]
        return sorted(running, key=lambda alert: (-alert.finding.gpus, alert.key))

    def looked_at(self) -> str:
        """Say when the cluster was looked at last."""
        at = self.state.at
        return f"looked at {when(stamp(at))}" if at else "never looked at yet"

    def findings(self) -> tuple[Finding, ...]:
        """Give the findings of the newest evaluation, info included."""
        return self.evaluation.findings if self.evaluation else ()


def card_line(view: ClusterView, card: Card) -> str:
    """Name a card in a line, with what people decided about it."""
    told = [title(card.content), code(card_id(view.name, card.key))]
    if card.waits:
        told.append("held back")
    if card.acknowledged:
        told.append("acknowledged")
    if card.snoozed:
        told.append("snoozed")
    return " · ".join(told)


def finding_title(finding: Finding) -> str:
    """Tell a finding's story in a line, as a card would."""
    return title(
        {
            "reason": finding.reason,
            "subject": finding.subject,
            "subjects": 1,
            "team": finding.team,
            "severity": finding.severity.value,
            "state": "open",
            "gpus": finding.gpus,
            "group_gpus": finding.gpus,
            "evidence": {"job_gpus": finding.evidence.get("job_gpus")},
        }
    )


def bullets(lines: Iterator[str] | list[str]) -> list[str]:
    """Write lines as a list."""
    return [f"• {line}" for line in lines]


def _runs(card: Card) -> bool:
    return bool(card.content["state"] != "resolved")
