"""run_command: answers what was typed after `/gpu`, and shows a card's evidence.

It reads what the reconciler knows and the newest evaluation; what is to be done to a card it hands to
the reconciler, which answers itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from steward.alerts.actions import ActionKind, CardAction
from steward.alerts.model import Card, card_id
from steward.cluster.policy import Policy
from steward.errors import PermanentError, RetryableError
from steward.slack.answers import digest, evidence, helping, idle, status, team, why
from steward.slack.answers.pages import pages
from steward.slack.answers.view import ClusterView
from steward.slack.command_line import Asked, Misunderstood, parse
from steward.slack.commands import Command
from steward.slack.text import code
from steward.telemetry import logger

if TYPE_CHECKING:
    from steward.ports import ActionQueue, AlertStore, Clock, EvaluationStore, Responder

ANSWERED_WITHIN = timedelta(minutes=30)
"""How long Slack takes answers at a response address."""

_ACTIONS = {
    "ack": ActionKind.ACKNOWLEDGE,
    "snooze": ActionKind.SNOOZE,
    "exempt": ActionKind.EXEMPT,
}


def run_command(
    command: Command,
    *,
    policy: Policy,
    alerts: AlertStore,
    evaluations: EvaluationStore,
    actions: ActionQueue,
    responder: Responder,
    clock: Clock,
) -> dict[str, Any]:
    """Answer one command; a repeat answers again.

    Returns
    -------
    dict
        For the outcome line.

    Raises
    ------
    RetryableError
        A store, the queue or Slack did not take it: the message comes again, as long as its
        address takes answers.
    """
    if clock.now() - command.at > ANSWERED_WITHIN:
        logger.warning("a command is too old to be answered", command=command.id)
        return {"answered": False, "reason": "too old"}
    run = _Run(policy, alerts, evaluations, actions, clock.now())
    asked = parse(command.text)
    lines = [asked.why] if isinstance(asked, Misunderstood) else run.lines(asked, command)
    name = "misunderstood" if isinstance(asked, Misunderstood) else asked.name
    for number, message in enumerate(pages(lines) if lines else ()):
        try:
            responder.respond(command.response_url, message)
        except (PermanentError, RetryableError) as error:
            if number == 0 and isinstance(error, RetryableError):
                raise  # nothing of it was shown: once more, from the beginning
            logger.warning("an answer was not delivered", command=command.id, error=str(error))
            return {"command": name, "answered": False, "reason": str(error)}
    return {"command": name, "answered": bool(lines)}


class _Run:
    """One command's look at what is known."""

    def __init__(
        self,
        policy: Policy,
        alerts: AlertStore,
        evaluations: EvaluationStore,
        actions: ActionQueue,
        now: datetime,
    ) -> None:
        self._policy = policy
        self._alerts = alerts
        self._evaluations = evaluations
        self._actions = actions
        self._now = now

    def lines(self, asked: Asked, command: Command) -> list[str]:
        """Answer in lines; none where the reconciler answers."""
        known = [cluster.name for cluster in self._policy.clusters]
        if asked.cluster is not None and asked.cluster not in known:
            near = get_close_matches(asked.cluster, known, n=3) or known[:5]
            return [f"There is no cluster {code(asked.cluster)}: {', '.join(map(code, near))}"]
        if asked.name in _ACTIONS:
            return self._act(asked, command)
        if asked.name in {"help", "exempt-help", "evidence"}:
            return self._about_one(asked)
        views = self._views(asked.cluster)
        word = asked.words[0] if asked.words else None
        answers: dict[str, Callable[[], list[str]]] = {
            "status": lambda: status.status(views),
            "why": lambda: why.why(views, word or ""),
            "idle": lambda: idle.idle(views, word),
            "team": lambda: team.team(views, word or ""),
            "digest": lambda: digest.digest(views, self._now),
        }
        return answers[asked.name]()

    def _about_one(self, asked: Asked) -> list[str]:
        if asked.name == "help":
            return helping.helping()
        place = asked.words[0]
        if asked.name == "exempt-help":
            return helping.exempt_help(place.rpartition("/")[2])
        return self._evidence(place)

    def _views(self, only: str | None) -> list[ClusterView]:
        return [self._view(c.name) for c in self._policy.clusters if only in {None, c.name}]

    def _view(self, name: str) -> ClusterView:
        cluster = self._policy.cluster(name)
        if cluster is None:
            raise PermanentError(f"cluster {name} is not in the policy")
        state = self._alerts.load(name)
        key = self._evaluations.find(name, state.at) if state.at else None
        evaluation = None
        try:
            evaluation = self._evaluations.get(key) if key else None
        except PermanentError as error:  # of one cluster: the others are answered for
            logger.error("an evaluation cannot be read", evaluation=key, error=str(error))
        return ClusterView(now=self._now, policy=cluster, state=state, evaluation=evaluation)

    def _evidence(self, place: str) -> list[str]:
        cluster, _, short = place.rpartition("/")
        if self._policy.cluster(cluster) is None:
            return self._unknown_card(short)
        view = self._view(cluster)
        card = view.state.card_named(short)
        return evidence.evidence(view, card) if card else self._unknown_card(short)

    def _act(self, asked: Asked, command: Command) -> list[str]:
        short = asked.words[0].lower()
        found = self._find(short, asked.cluster)
        if found is None:
            return self._unknown_card(short)
        self._actions.act(
            CardAction(
                kind=_ACTIONS[asked.name],
                id=command.id,
                cluster=found,
                card=short,
                user=command.user,
                name=command.name,
                at=self._now,
                span=asked.words[1] if len(asked.words) > 1 else "",
                reason=asked.words[2][:300] if asked.name == "exempt" else "",
                response_url=command.response_url,
            )
        )
        return []

    def _find(self, short: str, only: str | None) -> str | None:
        """Find the cluster that has a card of that name; one that was named is believed."""
        if only is not None:
            return only
        for cluster in self._policy.clusters:
            if self._alerts.load(cluster.name).card_named(short):
                return cluster.name
        return None

    def _unknown_card(self, short: str) -> list[str]:
        open_cards: list[tuple[str, Card]] = [
            (view.name, card) for view in self._views(None) for card in view.cards()
        ]
        known = [card_id(cluster, card.key) for cluster, card in open_cards]
        near = get_close_matches(short, known, n=3)
        lines = [f"There is no card {code(short)}: its name stands in the last line of a card."]
        return lines + ([f"Near to it: {', '.join(map(code, near))}"] if near else [])
