"""`/gpu team <name>`: its cards, what was held back, and what else is said of it."""

from collections.abc import Sequence

from steward.slack.answers.view import ClusterView, bullets, card_line, finding_title, no_team
from steward.slack.text import safe


def team(views: Sequence[ClusterView], name: str) -> list[str]:
    """Say what stands of a team; of one that the policy lacks, which names are near."""
    if unknown := no_team(views, name):
        return unknown
    return [line for view in views if view.policy.team_named(name) for line in _cluster(view, name)]


def _cluster(view: ClusterView, name: str) -> list[str]:
    cards = [card for card in view.cards() if card.content["team"] == name]
    shown = {alert.key for card in cards for alert in view.alerts_of(card)}
    rest = [f for f in view.findings() if f.team == name and f.key not in shown]
    lines = [f"*{safe(name)}* on {safe(view.name)}, {view.looked_at()}"]
    lines += bullets([card_line(view, card) for card in cards]) or ["No card is open."]
    if rest:
        lines += ["Without a card:", *bullets([finding_title(finding) for finding in rest])]
    return lines
