"""What answers are made from: a cluster's policy, what the reconciler knows, the newest evaluation."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches

import msgspec

from steward.alerts.model import (
    Alert,
    AlertState,
    Card,
    CardKind,
    ReconcilerState,
    card_id,
    card_key,
)
from steward.alerts.ranks import rank
from steward.cluster.figures import stamp
from steward.cluster.findings import Evaluation, Finding
from steward.cluster.policy import ClusterPolicy
from steward.slack.stories import title
from steward.slack.text import code, duration, when

OVERDUE_TICKS = 3
"""So many ticks without an evaluation, and what is known may not be true any more."""


class ClusterView(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster; no evaluation where none was ever folded, or it is not kept any more."""

    now: datetime
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
        return sorted(cards, key=lambda c: (-rank(c.severity), c.key))

    def alerts_of(self, card: Card) -> list[Alert]:
        """Alerts of a card's incident that are open, those with the most GPUs first."""
        running = [
            alert
            for alert in self.state.alerts.values()
            if alert.state is AlertState.OPEN and card_key(alert) == card.key
        ]
        return sorted(running, key=lambda alert: (-alert.finding.gpus, alert.key))

    def looked_at(self) -> str:
        """Say when the cluster was looked at last."""
        at = self.state.at
        if at is None:
            return "never looked at yet"
        ago = self.now - at
        overdue = ago > timedelta(minutes=OVERDUE_TICKS * self.policy.tick_minutes)
        late = f" (*{duration(ago)} ago*: it may be otherwise by now)" if overdue else ""
        return f"looked at {when(stamp(at))}{late}"

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


def no_team(views: Sequence[ClusterView], name: str) -> list[str]:
    """Say that no policy has a team, and which names are near; nothing where one has it."""
    known = sorted({team.name for view in views for team in view.policy.teams})
    if name in known:
        return []
    near = get_close_matches(name, known, n=3) or known[:5]
    return [f"There is no team {code(name)}: {', '.join(map(code, near))}"]


def _runs(card: Card) -> bool:
    return bool(card.content["state"] != "resolved")
