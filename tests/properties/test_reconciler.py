"""The reconciler against everything at once: whatever happens, each card is visible once and right.

Random findings, clock steps, repeated and late evaluations, failed detectors; people who acknowledge,
snooze and exempt, twice and at once; a store that dies between any two rows; a Slack that refuses,
limits, times out, loses answers after it has accepted, shows what it accepted late in its history, and a
process that dies before or after any call. A failed message comes back, as on the FIFO queue. What should
be visible is worked out from the observations alone (:mod:`tests.properties.reconciler_oracle`).
"""

import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from local.twins import InMemoryRows
from steward.alerts.actions import ActionKind, CardAction, end_of
from steward.alerts.errors import (
    CredentialsError,
    NotAcceptedError,
    RefusedContentError,
    UnknownOutcomeError,
)
from steward.alerts.model import CardKind, card_id
from steward.cluster.findings import DetectorStatus, Evaluation
from steward.cluster.policy import Alerting, Channel, Escalation, People, Policy, Severity
from steward.errors import RetryableError
from steward.slack.cards import render, render_text
from steward.stores.state import Alerts, Row
from steward.usecases.reconcile_alerts import act, reconcile
from tests.builders import NOON, a_cluster, a_team
from tests.fakes import FixedTime
from tests.properties.reconciler_oracle import ABSENT, UNKNOWN, Sight, stories
from tests.unit.alerts.nouns import JUDGED, a_finding, an_evaluation, an_unknown
from tests.unit.usecases.fake_people import FakeDirectory, FakePager, FakeResponder
from tests.unit.usecases.fake_slack import (
    AnswerLostError,
    DiedAfterwardsError,
    DiedError,
    FakeSlack,
)

EXAMPLES = int(os.environ.get("RECONCILER_EXAMPLES", "120"))
"""Schedules to play; a long run by hand sets more."""

IDLE = ("Job/ml/a", "Job/ml/b", "Job/ml/<!channel>")
WAITING = ("Job/ml/w1", "Job/ml/w2")
TEAMS = {"Job/ml/a": "research", "Job/ml/b": "vision", "Job/ml/<!channel>": "research"}
QUEUE = "wrong"
PROBLEMS = {f"job|{subject}": (subject,) for subject in IDLE} | {
    f"pending|research|missing_queue|{QUEUE}": WAITING
}
ICONS = {"info": ":information_source:", "warn": ":warning:", "page": ":rotating_light:"}
OWNER, STRANGER = "U0OWNER", "U0STRANGER"

LOOKS = st.sampled_from(
    [ABSENT, ABSENT, UNKNOWN, *(f"{r} {s}" for r in ("idle", "idle_held") for s in ICONS)]
)
WAITS = st.sampled_from([ABSENT, UNKNOWN, "missing_queue warn", "missing_queue page"])
FAULTS = st.sampled_from(
    [
        None,
        None,
        AnswerLostError("reset after acceptance"),
        AnswerLostError("and in the history a run later", hidden_minutes=4),
        AnswerLostError("and in the history much later", hidden_minutes=55),
        CredentialsError("token_revoked"),
        DiedAfterwardsError("died after the call"),
        DiedError("died before the call"),
        NotAcceptedError("429", retry_after_seconds=7),
        NotAcceptedError("503"),
        RefusedContentError("invalid_blocks"),
        UnknownOutcomeError("timeout"),
    ]
)


class CrashError(RetryableError):
    """The table did not answer, or the process died beside it."""


@dataclass
class CrashingRows(InMemoryRows):
    """Rows that die before or after one write of several."""

    rows: dict = field(default_factory=dict)  # type: ignore[type-arg]
    left: int | None = None
    stored: bool = False

    def put(self, row: Row) -> None:
        crashes = self.left == 0
        self.left = None if self.left is None or crashes else self.left - 1
        if not crashes or self.stored:
            super().put(row)
        if crashes:
            raise CrashError("crash")


class Reconciler(RuleBasedStateMachine):
    """One cluster's reconciler, its queue, its people and its Slack."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = CrashingRows()
        self.clock = FixedTime()
        self.slack = FakeSlack(self.clock)
        self.pager = FakePager()
        self.responder = FakeResponder()
        self.at = NOON
        self.sent: list[Evaluation] = []
        self.observed: dict[str, list[Sight]] = {s: [] for s in (*IDLE, *WAITING)}
        self.decided: set[tuple[str, str]] = set()
        self.snoozes: Counter[str] = Counter()
        self.pressed = 0

    @initialize(archived=st.booleans(), escalating=st.booleans())
    def begin(self, *, archived: bool, escalating: bool) -> None:
        self.slack.closed = {"C0RESEARCH"} if archived else set()
        second = Channel(id="C0SECOND0", name="managers") if escalating else None
        topic = "arn:aws:sns:us-east-1:111122223333:pager" if escalating else None
        cluster = a_cluster(
            teams=(a_team(), a_team("vision")),
            alerting=Alerting(escalation=Escalation(channel=second, topic_arn=topic)),
        )
        people = People(users={"research@example.com": OWNER, "vision@example.com": OWNER})
        self.policy = Policy(schema=1, clusters=(cluster,), people=people)

    @rule(
        looks=st.tuples(*[LOOKS] * len(IDLE), *[WAITS] * len(WAITING)),
        minutes=st.sampled_from([1, 4, 5, 6, 9, 10, 11, 30, 70, 200]),
        failed=st.sampled_from([False] * 5 + [True]),
    )
    def evaluate(self, looks: tuple[str, ...], minutes: int, *, failed: bool) -> None:
        self.at = max(self.at + timedelta(minutes=minutes), self.clock.at + timedelta(minutes=1))
        findings, unknown = [], []
        for subject, wanted in zip(self.observed, looks, strict=True):
            idle = subject in IDLE
            look = UNKNOWN if failed and idle else wanted
            self.observed[subject].append(Sight(self.at, look))
            if look == UNKNOWN:
                detector = "idle_gpus" if idle else "pending"
                unknown += (
                    [] if failed and idle else [an_unknown(detector=detector, subject=subject)]
                )
            elif look != ABSENT:
                reason, severity = look.split()
                findings.append(
                    a_finding(
                        detector="idle_gpus" if idle else "pending",
                        subject=subject,
                        team=TEAMS.get(subject, "research"),
                        reason=reason,
                        severity=Severity(severity),
                        gpu_hours=float(len(self.sent)),
                        evidence=a_finding().evidence if idle else {"queue": QUEUE},
                    )
                )
        status = DetectorStatus.FAILED if failed else DetectorStatus.EVALUATED
        evaluation = an_evaluation(
            self.at,
            *findings,
            unknown=tuple(unknown),
            detectors={**JUDGED, "idle_gpus": status},
        )
        self.sent.append(evaluation)
        self.receive(evaluation)

    @rule(which=st.integers(0, 200), times=st.integers(1, 2))
    def repeat(self, which: int, times: int) -> None:
        """An evaluation arrives again, out of order and late."""
        for _ in range(times if self.sent else 0):
            self.receive(self.sent[which % len(self.sent)])

    @rule(
        which=st.integers(0, 50),
        kind=st.sampled_from(list(ActionKind)),
        span=st.sampled_from(["1h", "4h", "1d", "monday", "soon"]),
        user=st.sampled_from([OWNER, STRANGER]),
        times=st.integers(1, 2),
    )
    def press(self, which: int, kind: ActionKind, span: str, user: str, times: int) -> None:
        """Somebody presses a button of a card, now and then twice."""
        cards = [
            card
            for card in Alerts(self.rows).load("ml-shared-01").cards.values()
            if card.kind is CardKind.CARD and card.key.rpartition("|")[0] in PROBLEMS
        ]
        if not cards:
            return
        card = sorted(cards, key=lambda c: c.key)[which % len(cards)]
        self.pressed += 1
        self.clock.at += timedelta(seconds=20)
        action = CardAction(
            kind=kind,
            id=f"press-{self.pressed}",
            cluster="ml-shared-01",
            card=card_id("ml-shared-01", card.key),
            user=user,
            name="ana",
            at=self.clock.at,
            span=span,
            reason="known",
            response_url="https://hooks.slack.com/1",
        )
        for _ in range(times):
            answer = self.insist(lambda: act(action, **self.ports(), responder=self.responder))
        if answer["answer"] == "done_exempt":
            until = Alerts(self.rows).load("ml-shared-01").waivers[action.id].until
            assert until <= end_of(span, self.clock.at, "UTC")
            exempt = PROBLEMS[card.key.rpartition("|")[0]]
            for subject, sights in self.observed.items():
                if subject in exempt:
                    sights.append(Sight(self.clock.at, ABSENT, exempt_until=until))
        self.snoozes[card.key] += answer["answer"] == "done_snooze"
        if card.sent and answer["answer"] in {"done_acknowledge", "done_snooze"}:
            told = "acknowledged" if kind is ActionKind.ACKNOWLEDGE else "snoozed"
            self.decided.add((card.key, f"{told}-{action.id}"))
        assert (answer["answer"] == "not_permitted") == (
            kind is ActionKind.EXEMPT and user == STRANGER
        )

    @rule(faults=st.lists(FAULTS, max_size=6))
    def trouble_slack(self, faults: list[Exception | None]) -> None:
        self.slack.failures = faults

    @rule(left=st.integers(0, 14), stored=st.booleans())
    def trouble_store(self, left: int, *, stored: bool) -> None:
        self.rows.left, self.rows.stored = left, stored

    def ports(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "alerts": Alerts(self.rows),
            "messenger": self.slack,
            "directory": FakeDirectory(),
            "pager": self.pager,
            "clock": self.clock,
        }

    def receive(self, evaluation: Evaluation) -> None:
        self.clock.at = max(self.clock.at, self.at + timedelta(seconds=40))
        self.insist(lambda: reconcile(evaluation, **self.ports()))

    def insist(self, run: Any) -> Any:
        """Hand a message over until it succeeds: its group waits for it meanwhile."""
        for _ in range(40):
            try:
                return run()
            except (CrashError, DiedError):
                self.clock.at += timedelta(seconds=1)
        raise AssertionError("the message never succeeded")

    def teardown(self) -> None:
        """Slack and the table work again; an hour and two quiet runs later all must be right."""
        self.slack.failures, self.rows.left = [], None
        looks = tuple(
            next((s.look for s in reversed(sights) if s.exempt_until is None), ABSENT)
            for sights in self.observed.values()
        )
        for minutes in (61, 1, 1):  # no history shows anything later than an hour
            self.evaluate(looks, minutes, failed=False)
        state = Alerts(self.rows).load("ml-shared-01")
        visible = Counter(message.attempt.card for message in self.slack.messages)
        assert set(visible.values()) <= {1}, "a message is visible twice"
        assert visible.keys() == state.cards.keys(), "one is lost, or one is there for nothing"
        self.every_message_shows_what_it_should(state)
        self.every_problem_has_its_cards_in_their_right_state(state)
        self.every_decision_is_told_once(state)

    def every_message_shows_what_it_should(self, state: Any) -> None:
        messages = {message.attempt.card: message for message in self.slack.messages}
        for key, card in state.cards.items():
            assert card.delivered == card.desired, key
            assert card.intent is None
            assert card.doubtful == ()
            shown = messages[key].shown
            facts = {"rerouted": card.rerouted, "mentions": [], "delivered": "2026-11-05T12:00:00Z"}
            meant = render({**card.content, **facts})["blocks"][0] if "blocks" in shown else None
            first = shown["blocks"][0] if meant else shown["text"].splitlines()[0]
            assert first == (meant or render_text({**card.content, **facts}).splitlines()[0])
            parent = messages.get(card.parent or "")
            if card.kind is CardKind.NOTE:
                assert parent is not None
                assert messages[key].versions[0]["thread_ts"]
                assert messages[key].channel in {parent.channel, "C0RESEARCH", "C0VISION00"}

    def every_problem_has_its_cards_in_their_right_state(self, state: Any) -> None:
        shown = {m.attempt.card: m.shown for m in self.slack.messages}
        cards = {k for k, c in state.cards.items() if c.kind is CardKind.CARD}
        expected = set()
        for problem, subjects in PROBLEMS.items():
            for story, standing in stories([self.observed[s] for s in subjects]):
                if not story.told:
                    continue
                key = f"{problem}|{story.begun:%Y%m%dT%H%M%SZ}"
                expected.add(key)
                assert key in cards, f"{key} is missing"
                message = shown[key]
                text = str(message.get("blocks") or message["text"])
                line = (
                    message["blocks"][0]["text"]["text"] if "blocks" in message else message["text"]
                )
                assert line.startswith(":white_check_mark:") == (standing == "resolved"), key
                assert line.startswith(":grey_question:") == (standing == "handed_over"), key
                assert ("*Flapping*" in text) == (standing == "flapping"), key
                if standing == "open":
                    loudest = max((look.split()[1] for look in story.looks), key=list(ICONS).index)
                    assert line.startswith(ICONS[loudest])
                    reasons = {look.split()[0] for look in story.looks}
                    assert ("memory held" in line) == (reasons == {"idle_held"})
                assert state.cards[key].closed is (standing == "resolved")
        assert {key for key in cards if not key.startswith("steward|")} == expected

    def every_decision_is_told_once(self, state: Any) -> None:
        for card, told in self.decided:
            assert f"{card}#{told}" in state.cards
        for key, card in state.cards.items():
            if card.kind is CardKind.CARD:
                notes = Counter(c.content["note"] for c in state.cards.values() if c.parent == key)
                assert notes["copy"] <= 1
                assert notes["snooze_ended"] <= self.snoozes[key]
                pages = [p for p in self.pager.published if card.content["card"] in p[1]]
                assert len(pages) <= max(1, notes["escalated"]) + self.pressed


TestReconciler = Reconciler.TestCase
TestReconciler.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=25, deadline=None, print_blob=True
)
