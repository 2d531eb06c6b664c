"""What somebody presses or types about a card: applied once, shown, and answered."""

from copy import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from local.twins import InMemoryRows
from steward.alerts.actions import ActionKind, CardAction
from steward.alerts.errors import NotAcceptedError
from steward.alerts.model import card_id
from steward.cluster.policy import Alerting, Escalation, People, Policy, Severity
from steward.errors import DeniedError, RetryableError
from steward.stores.state import Alerts
from steward.usecases.reconcile_alerts import act, depart, reconcile
from tests.builders import a_cluster, a_team, at
from tests.fakes import FixedTime
from tests.unit.alerts.nouns import SUBJECT, a_finding, an_evaluation
from tests.unit.usecases.fake_people import FakeDirectory, FakePager, FakeResponder
from tests.unit.usecases.fake_slack import AnswerLostError, FakeSlack

CARD = f"job|{SUBJECT}|20261105T120000Z"
ID = card_id("ml-shared-01", CARD)
TOPIC = "arn:aws:sns:us-east-1:111122223333:pager"
OWNER = "research@example.com"
URL = "https://hooks.slack.com/actions/1"


class Rig:
    """One cluster with one open card, a second before noon's next press."""

    def __init__(
        self, *, people: People | None = None, alerting: Alerting | None = None, **changes: Any
    ) -> None:
        self.clock = FixedTime()
        self.slack = FakeSlack(self.clock)
        self.store = Alerts(InMemoryRows())
        cluster = a_cluster(teams=(a_team(),), alerting=alerting or Alerting())
        self.policy = Policy(schema=1, clusters=(cluster,), people=people or People())
        self.directory = FakeDirectory(users={OWNER: "U0OWNER", "else@example.com": "U0ELSE"})
        self.pager = FakePager()
        self.responder = FakeResponder()
        self.see("12:00", a_finding(**changes))

    def see(self, when: str, *findings: Any) -> dict[str, Any]:
        evaluation = an_evaluation(when, *findings)
        self.clock.at = evaluation.at
        ports = self._ports()
        del ports["responder"]
        return reconcile(evaluation, **ports)

    def press(self, kind: ActionKind, when: datetime, **changes: Any) -> dict[str, Any]:
        self.clock.at = when
        given: dict[str, Any] = {
            "kind": kind,
            "id": f"{kind}-{when}",
            "cluster": "ml-shared-01",
            "card": ID,
            "user": "U0ANA",
            "name": "ana",
            "at": when,
            "span": "7d" if kind is ActionKind.EXEMPT else "4h",
            "reason": "warm pool",
            "response_url": URL,
        }
        return act(CardAction(**(given | changes)), **self._ports())

    def _ports(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "alerts": self.store,
            "messenger": self.slack,
            "directory": self.directory,
            "pager": self.pager,
            "responder": self.responder,
            "clock": self.clock,
        }

    @property
    def card(self) -> Any:
        return self.store.load("ml-shared-01").cards[CARD]


def test_an_acknowledgement_is_shown_on_the_card_and_in_its_thread_and_answered() -> None:
    rig = Rig()
    outcome = rig.press(ActionKind.ACKNOWLEDGE, at("12:03"))
    assert outcome["answer"] == "done_acknowledge"
    card, note = rig.slack.messages
    assert "ana" in str(card.shown)
    assert note.shown["thread_ts"] == card.ts
    assert "reply_broadcast" not in note.shown
    ((url, answer),) = rig.responder.answers
    assert (url, answer["response_type"]) == (URL, "ephemeral")


def test_an_action_whose_run_broke_off_is_finished_by_its_repeat() -> None:
    rig = Rig()
    rig.slack.failures = [AnswerLostError("reset"), AnswerLostError("reset")]
    for _ in range(2):
        rig.press(ActionKind.ACKNOWLEDGE, at("12:03"), id="one")
    rig.see("12:05", a_finding())
    assert len(rig.slack.messages) == 2
    assert rig.card.acknowledged.id == "one"


@pytest.mark.parametrize(
    ("people", "user", "may"),
    [
        (People(), "U0OWNER", False),  # nobody knows who that is
        (People(users={OWNER: "U0OWNER"}), "U0OWNER", True),
        (People(users={OWNER: "U0OWNER"}), "U0ELSE", False),
        (People(lookup=True), "U0OWNER", True),
        (People(lookup=True), "U0ELSE", False),
        (People(lookup=True, exempters=("Else@example.com",)), "U0ELSE", True),
        (
            People(users={"else@example.com": "U0ELSE"}, exempters=("Else@example.com",)),
            "U0ELSE",
            True,
        ),
    ],
)
def test_owners_of_the_team_and_those_the_policy_names_may_exempt(
    people: People, user: str, *, may: bool
) -> None:
    rig = Rig(people=people)
    outcome = rig.press(ActionKind.EXEMPT, at("12:03"), user=user)
    assert outcome["answer"] == ("done_exempt" if may else "not_permitted")
    assert (rig.card.content["state"] == "resolved") is may
    (_, answer) = rig.responder.answers[0]
    assert may or OWNER in answer["text"]  # whom to ask


def test_who_cannot_be_looked_up_may_not() -> None:
    rig = Rig(people=People(lookup=True))
    rig.directory.failure = NotAcceptedError("429")
    assert rig.press(ActionKind.EXEMPT, at("12:03"), user="U0OWNER")["answer"] == "not_permitted"


def test_an_exemption_outlives_the_evaluations_until_it_ends() -> None:
    rig = Rig(people=People(users={OWNER: "U0OWNER"}))
    rig.press(ActionKind.EXEMPT, at("12:03"), user="U0OWNER", span="1h")
    rig.see("12:05", a_finding())
    rig.see("13:00", a_finding())
    assert len(rig.slack.messages) == 1
    rig.see("13:05", a_finding())
    assert [line.split()[0] for line in rig.slack.headers()] == [":white_check_mark:", ":warning:"]


def test_an_answer_that_slack_does_not_take_fails_nothing() -> None:
    rig = Rig()
    rig.responder.failure = NotAcceptedError("expired")
    assert rig.press(ActionKind.ACKNOWLEDGE, at("12:03"))["answer"] == "done_acknowledge"


def test_a_press_without_an_address_is_applied_and_answered_nowhere() -> None:
    rig = Rig()
    rig.press(ActionKind.ACKNOWLEDGE, at("12:03"), response_url=None)
    assert rig.responder.answers == []
    assert rig.card.acknowledged is not None


def test_a_card_of_a_cluster_that_the_policy_lacks_is_not_found() -> None:
    rig = Rig()
    assert rig.press(ActionKind.ACKNOWLEDGE, at("12:03"), cluster="gone")["answer"] == "not_found"


def test_an_unacknowledged_page_reaches_the_pager_once_also_when_slack_is_down() -> None:
    page: Any = {"severity": Severity.PAGE}
    rig = Rig(alerting=Alerting(escalation=Escalation(topic_arn=TOPIC)), **page)
    rig.slack.failures = [NotAcceptedError("503")] * 20
    rig.pager.failures = [RetryableError("SNS did not answer")]
    assert rig.see("12:30", a_finding(**page))["troubles"]
    for when in ("12:35", "12:40"):
        rig.see(when, a_finding(**page))
    ((topic, subject, message),) = rig.pager.published
    assert (topic, ID in subject) == (TOPIC, True)
    assert "1 of 8 GPUs idle" in message


def test_a_pager_that_failed_is_not_told_of_what_somebody_has_taken_meanwhile() -> None:
    page: Any = {"severity": Severity.PAGE}
    rig = Rig(alerting=Alerting(escalation=Escalation(topic_arn=TOPIC)), **page)
    rig.pager.failures = [RetryableError("SNS did not answer")]
    rig.see("12:30", a_finding(**page))
    rig.press(ActionKind.ACKNOWLEDGE, at("12:31"))
    rig.see("12:35", a_finding(**page))
    assert rig.pager.published == []


def test_a_pager_that_refuses_is_trouble_and_no_failure() -> None:
    page: Any = {"severity": Severity.PAGE}
    rig = Rig(alerting=Alerting(escalation=Escalation(topic_arn=TOPIC)), **page)
    rig.pager.failures = [DeniedError("not allowed")]
    assert "not allowed" in str(rig.see("12:30", a_finding(**page))["troubles"])


def test_owners_are_mentioned_where_the_policy_asks_for_it_and_can_be_found() -> None:
    quiet = Rig(people=People(users={OWNER: "U0OWNER"}))
    assert "<@" not in str(quiet.slack.messages[0].shown)
    asked = Alerting(mention_owners=Severity.WARN)
    rig = Rig(people=People(users={OWNER: "U0OWNER"}), alerting=asked)
    assert "<@U0OWNER>" in str(rig.slack.messages[0].shown)
    unknown = Rig(people=People(), alerting=asked)
    assert "<@" not in str(unknown.slack.messages[0].shown)
    assert OWNER in str(unknown.slack.messages[0].shown)


def test_a_cluster_that_leaves_the_policy_has_its_cards_closed() -> None:
    rig = Rig()
    rig.policy = replace(rig.policy, clusters=(a_cluster(name="another"),))
    left = rig._ports()
    del left["responder"], left["pager"]
    rig.clock.at = at("12:30")
    outcome = depart("ml-shared-01", at("12:30"), **left)
    assert outcome["undelivered"] == 0
    assert rig.slack.headers() == [
        ":white_check_mark: Resolved: 1 of 8 GPUs idle · research · job sweep-a"
    ]
    (alert,) = rig.store.load("ml-shared-01").alerts.values()
    assert (alert.state, alert.resolution) == ("resolved", "expired")
    assert depart("ml-shared-01", at("12:31"), **left)["updates"] == 0


def test_a_cluster_that_is_back_is_left_alone() -> None:
    rig = Rig()
    ports = rig._ports()
    del ports["responder"], ports["pager"]
    assert (
        depart("ml-shared-01", at("12:30"), **ports)["reason"] == "cluster is in the policy again"
    )
    assert rig.card.content["state"] == "open"


def test_late_is_what_slack_was_late_not_what_was_held_back() -> None:
    rig = Rig()
    rig.slack.failures = [NotAcceptedError("503")]
    other = a_finding(subject="Job/ml/other")
    rig.see("12:05", a_finding(), other)
    assert rig.see("12:15", a_finding(), other)["late_seconds"] == timedelta(minutes=10).seconds
