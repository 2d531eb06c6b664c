"""The reconciler against everything at once: whatever happens, each card is visible once and right.

Random findings, clock steps, repeated and late evaluations; a store that dies between any two rows;
a Slack that refuses, limits, times out, loses answers after it has accepted, shows what it accepted
late in its history, and a process that dies before or after any call. A failed message comes back, as on the FIFO queue. What should be visible
is worked out from the observations alone, by the rules' own words, and compared at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from local.twins import InMemoryRows
from steward.alerts.errors import (
    CredentialsError,
    NotAcceptedError,
    RefusedContentError,
    UnknownOutcomeError,
)
from steward.cluster.findings import DetectorStatus, Evaluation
from steward.cluster.policy import Policy, Severity
from steward.errors import RetryableError
from steward.stores.state import Alerts, Row
from steward.usecases.reconcile_alerts import reconcile
from tests.builders import NOON, a_cluster, a_team
from tests.fakes import FixedTime
from tests.unit.alerts.nouns import JUDGED, a_finding, an_evaluation, an_unknown
from tests.unit.usecases.fake_slack import (
    AnswerLostError,
    DiedAfterwardsError,
    DiedError,
    FakeSlack,
)

SUBJECTS = ("Job/ml/a", "Job/ml/b", "Job/ml/<!channel>")
TEAMS = {"Job/ml/a": "research", "Job/ml/b": "vision", "Job/ml/<!channel>": "research"}
ICONS = {"info": ":information_source:", "warn": ":warning:", "page": ":rotating_light:"}
TEN = timedelta(minutes=10)

ABSENT, UNKNOWN = "absent", "unknown"
LOOKS = st.sampled_from(
    [ABSENT, ABSENT, UNKNOWN, *(f"{r} {s}" for r in ("idle", "idle_held") for s in ICONS)]
)
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


@dataclass
class Incident:
    """What a reader should see: one message a loud incident."""

    start: datetime
    look: str
    loud: bool
    ended: datetime | None = None


def incidents(observed: Sequence[tuple[datetime, str]]) -> list[Incident]:
    """Work out a subject's incidents from what each accepted evaluation showed of it."""
    found: list[Incident] = []
    running: Incident | None = None
    held = NOON
    for at, look in observed:
        if look in {ABSENT, UNKNOWN}:
            if running and look == UNKNOWN:
                held = at
            elif running and at - held >= TEN:
                running.ended, running = at, None
            continue
        held = at
        if running is None:
            last = found[-1] if found else None
            if (
                last
                and last.ended
                and at - last.ended <= TEN
                and _reason(last.look) != _reason(look)
            ):
                running = last  # another reason, soon after: the same message goes on
                running.ended = None
            else:
                running = Incident(start=at, look=look, loud=False)
                found.append(running)
        running.look = look
        running.loud = running.loud or not look.endswith("info")
    return found


def _reason(look: str) -> str:
    return look.partition(" ")[0]


class Reconciler(RuleBasedStateMachine):
    """One cluster's reconciler, its queue and its Slack."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = CrashingRows()
        self.clock = FixedTime()
        self.slack = FakeSlack(self.clock)
        self.policy = Policy(schema=1, clusters=(a_cluster(teams=(a_team(), a_team("vision"))),))
        self.at = NOON
        self.sent: list[Evaluation] = []
        self.observed: dict[str, list[tuple[datetime, str]]] = {s: [] for s in SUBJECTS}

    @initialize(archived=st.booleans())
    def begin(self, *, archived: bool) -> None:
        self.slack.closed = {"C0RESEARCH"} if archived else set()

    @rule(
        looks=st.tuples(*[LOOKS] * len(SUBJECTS)),
        minutes=st.sampled_from([1, 4, 5, 6, 9, 10, 11, 30, 70, 200]),
        failed=st.sampled_from([False] * 5 + [True]),
    )
    def evaluate(self, looks: tuple[str, ...], minutes: int, *, failed: bool) -> None:
        self.at += timedelta(minutes=minutes)
        seen = [UNKNOWN] * len(SUBJECTS) if failed else list(looks)
        findings, unknown = [], []
        for subject, look in zip(SUBJECTS, seen, strict=True):
            self.observed[subject].append((self.at, look))
            if look == UNKNOWN and not failed:
                unknown.append(an_unknown(subject=subject))
            elif look not in {ABSENT, UNKNOWN}:
                reason, severity = look.split()
                findings.append(
                    a_finding(
                        subject=subject,
                        team=TEAMS[subject],
                        reason=reason,
                        severity=Severity(severity),
                        gpu_hours=float(len(self.sent)),
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

    @rule(faults=st.lists(FAULTS, max_size=6))
    def trouble_slack(self, faults: list[Exception | None]) -> None:
        self.slack.failures = faults

    @rule(left=st.integers(0, 12), stored=st.booleans())
    def trouble_store(self, left: int, *, stored: bool) -> None:
        self.rows.left, self.rows.stored = left, stored

    def receive(self, evaluation: Evaluation) -> None:
        """Hand a message over until it succeeds: its group waits for it meanwhile."""
        self.clock.at = max(self.clock.at, self.at + timedelta(seconds=40))
        for _ in range(30):
            try:
                reconcile(
                    evaluation,
                    policy=self.policy,
                    alerts=Alerts(self.rows),
                    messenger=self.slack,
                    clock=self.clock,
                )
            except (CrashError, DiedError):
                self.clock.at += timedelta(seconds=1)
            else:
                return
        raise AssertionError("the message never succeeded")

    def teardown(self) -> None:
        """Slack and the table work again; an hour and two quiet runs later all must be right."""
        self.slack.failures, self.rows.left = [], None
        looks = tuple(self.observed[s][-1][1] if self.observed[s] else ABSENT for s in SUBJECTS)
        for minutes in (61, 1):  # no history shows anything later than an hour
            self.evaluate(looks, minutes, failed=False)
        expected = {
            f"idle_gpus|{subject}|{incident.start:%Y%m%dT%H%M%SZ}": incident
            for subject, observed in self.observed.items()
            for incident in incidents(observed)
            if incident.loud
        }
        visible = {message.attempt.card: message for message in self.slack.messages}
        assert len(visible) == len(self.slack.messages), "a card is visible twice"
        assert visible.keys() == expected.keys(), "a card is lost, or one is there for nothing"
        for key, incident in expected.items():
            shown = visible[key].shown
            line = shown["blocks"][0]["text"]["text"] if "blocks" in shown else shown["text"]
            if incident.ended:
                assert line.startswith(":white_check_mark: Resolved:")
            else:
                reason, severity = incident.look.split()
                assert line.startswith(ICONS[severity])
                assert ("memory held" in line) is (reason == "idle_held")
        state = Alerts(self.rows).load("ml-shared-01")
        for key, card in state.cards.items():
            assert card.delivered == card.desired
            assert card.intent is None
            assert card.doubtful == ()
            assert card.closed is (expected[key].ended is not None)


TestReconciler = Reconciler.TestCase
TestReconciler.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
