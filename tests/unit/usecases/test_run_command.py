"""What commands are answered, from what the reconciler knows and the newest evaluation says."""

from datetime import timedelta
from typing import Any

import pytest

from local.twins import InMemoryObjects, InMemoryRows
from steward.alerts.actions import ActionKind, CardAction
from steward.alerts.errors import MessageGoneError, NotAcceptedError
from steward.alerts.model import card_id
from steward.cluster.accelerators import UnknownReason
from steward.cluster.findings import Finding
from steward.cluster.policy import Policy, Severity
from steward.errors import PermanentError
from steward.slack.commands import Command
from steward.stores.bucket import Evaluations
from steward.stores.state import Alerts
from steward.usecases.reconcile_alerts import reconcile
from steward.usecases.run_command import run_command
from tests.builders import a_cluster, a_team, at
from tests.fakes import FixedTime
from tests.unit.alerts.nouns import SUBJECT, a_finding, an_evaluation, an_unknown
from tests.unit.alerts.test_grouping import waiting
from tests.unit.usecases.fake_people import FakeDirectory, FakePager, FakeResponder
from tests.unit.usecases.fake_slack import FakeSlack

CARD = card_id("ml-shared-01", f"job|{SUBJECT}|20261105T120000Z")
URL = "https://hooks.slack.com/commands/1"
PENDING = waiting(
    "rerank",
    reason="borrow_limit",
    severity=Severity.INFO,
    action="kubectl -n hyperpod-ns-research get workloads",
    evidence={
        "queue": "q",
        "sentence": "It needs 4 GPUs & the limit is 2.",
        "message": "insufficient <quota>",
    },
)


class Rig:
    """Two clusters, of which one was evaluated at noon."""

    def __init__(self, *findings: Finding, **changes: Any) -> None:
        self.clock = FixedTime()
        self.alerts = Alerts(InMemoryRows())
        self.evaluations = Evaluations(InMemoryObjects())
        self.responder = FakeResponder()
        self.actions: list[CardAction] = []
        teams = (a_team(), a_team("vision"))
        self.policy = Policy(
            schema=1,
            clusters=(a_cluster(teams=teams), a_cluster(name="ml-other", teams=(a_team(),))),
        )
        evaluation = an_evaluation("12:00", *findings, **changes)
        self.evaluations.put(evaluation)
        reconcile(
            evaluation,
            policy=self.policy,
            alerts=self.alerts,
            messenger=FakeSlack(self.clock),
            directory=FakeDirectory(),
            pager=FakePager(),
            clock=self.clock,
        )

    def later(self, time: str, *findings: Finding) -> None:
        self.clock.at = at(time)
        evaluation = an_evaluation(time, *findings)
        self.evaluations.put(evaluation)
        reconcile(
            evaluation,
            policy=self.policy,
            alerts=self.alerts,
            messenger=FakeSlack(self.clock),
            directory=FakeDirectory(),
            pager=FakePager(),
            clock=self.clock,
        )

    def act(self, action: CardAction) -> None:
        self.actions.append(action)

    def run(self, text: str, *, minutes_old: int = 0) -> dict[str, Any]:
        now = self.clock.now()
        return run_command(
            Command(
                id="1.2.a",
                text=text,
                user="U1",
                name="ana",
                channel="C1",
                at=now - timedelta(minutes=minutes_old),
                response_url=URL,
            ),
            policy=self.policy,
            alerts=self.alerts,
            evaluations=self.evaluations,
            actions=self,
            responder=self.responder,
            clock=self.clock,
        )

    def ask(self, text: str) -> str:
        self.responder.answers.clear()
        self.run(text)
        assert all(url == URL for url, _ in self.responder.answers)
        return "\n".join(str(message["text"]) for _, message in self.responder.answers)


def test_status_says_what_is_open_and_what_was_never_seen() -> None:
    told = Rig(a_finding(), PENDING).ask("status")
    assert "*ml-shared-01*, looked at" in told
    assert "1 open, 0 of them page" in told
    assert f"• :warning: 1 of 8 GPUs idle · research · job sweep-a · `{CARD}`" in told
    assert "*ml-other*, never looked at yet: no card is open\nNothing of it can be told" in told


def test_quiet_is_not_health_where_nothing_could_be_read() -> None:
    blind = an_unknown(subject="kubernetes/pods", reason=UnknownReason.DENIED, blind=True)
    told = Rig(unknown=(blind, an_unknown())).ask("status in ml-shared-01")
    assert "Could not be read: `kubernetes/pods` (denied)" in told
    assert "Not judged: 1 subjects" in told
    assert "ml-other" not in told


@pytest.mark.parametrize(
    "job",
    [
        "job/hyperpod-ns-research/RERANK",
        "rerank",
        "RERANK",
        "hyperpod-ns-research/rerank",
        "Job/hyperpod-ns-research/rerank",
    ],
)
def test_why_tells_the_sentence_and_kueues_words_of_a_job_however_it_is_named(job: str) -> None:
    told = Rig(a_finding(), PENDING).ask(f"why {job}")
    assert "It needs 4 GPUs &amp; the limit is 2." in told
    assert "Kueue says: `insufficient &lt;quota&gt;`" in told
    assert "sweep-a" not in told


def test_why_says_what_cannot_be_judged() -> None:
    told = Rig(unknown=(an_unknown(),)).ask("why sweep-a")
    assert "Cannot be judged: idle_gpus, low_coverage" in told


def test_why_of_a_job_that_nobody_speaks_of_says_exactly_that() -> None:
    told = Rig(PENDING).ask("why rernk")
    assert "Nothing is said of `rernk`: no detector finds anything about it." in told
    assert "Near to it: `Job/hyperpod-ns-research/rerank`" in told


def test_idle_lists_the_costliest_first_with_its_sum() -> None:
    small = a_finding(subject="Job/ml/small", gpu_hours=1.0, cost_usd=8.0, team="vision")
    told = Rig(small, a_finding()).ask("idle in ml-shared-01").splitlines()
    assert told[0].endswith("2 GPUs idle, 4.0 GPU-h, $32.00")
    assert [line.split("`")[1] for line in told[1:]] == [SUBJECT, "Job/ml/small"]
    assert "1 GPU idle, 1.0 GPU-h" in Rig(small, a_finding()).ask("idle vision in ml-shared-01")
    assert "no GPU is known to be idle" in Rig().ask("idle")


def test_a_team_has_its_cards_and_what_has_none() -> None:
    told = Rig(a_finding(), PENDING).ask("team research in ml-shared-01")
    assert f"`{CARD}`" in told
    assert "Without a card:\n• :information_source: Waits for a borrowing limit: 4 GPUs" in told
    assert "There is no team `reserch`: `research`" in Rig().ask("team reserch")


def test_the_digest_counts_the_week_and_says_what_it_could_not_see() -> None:
    told = Rig(a_finding()).ask("digest in ml-shared-01")
    assert "alerts opened 1, resolved 0, cards held back 0, late 0" in told
    assert "I am alive: looked at" in told
    assert "nothing that I could not see" in told


def test_evidence_lists_everything_that_the_card_counts() -> None:
    devices = [
        {"node": "n", "uuid": f"GPU-{n:02}", "idle_since": "2026-11-05T09:00:00Z", "gpu_hours": 3.0}
        for n in range(40)
    ]
    finding = a_finding(evidence={**a_finding().evidence, "accelerators": devices})
    told = Rig(finding).ask(f"evidence ml-shared-01/{CARD}")
    assert all(f"`GPU-{n:02}`" in told for n in range(40))
    assert "activity_metric: `DCGM_FI_PROF_GR_ENGINE_ACTIVE`" in told


def test_a_very_long_answer_is_four_messages_and_a_count() -> None:
    devices = [{"node": "hyperpod-i-0a", "uuid": f"GPU-{n:036}"} for n in range(500)]
    finding = a_finding(evidence={**a_finding().evidence, "accelerators": devices})
    rig = Rig(finding)
    rig.run(f"evidence ml-shared-01/{CARD}")
    texts = [str(message["text"]) for _, message in rig.responder.answers]
    assert len(texts) == 4  # a response address takes five
    assert max(map(len, texts)) <= 3_600
    shown = sum(text.count("• ") for text in texts)
    assert f"+{500 - shown + texts_without_bullets(finding)} more lines" in texts[-1]


def texts_without_bullets(finding: Finding) -> int:
    """Lines of the evidence that are no device: one for each other value that there is."""
    values = (v for k, v in finding.evidence.items() if k != "accelerators")
    return sum(value not in (None, [], {}) for value in values)


@pytest.mark.parametrize(
    ("text", "kind", "span", "reason"),
    [
        (f"ack {CARD}", ActionKind.ACKNOWLEDGE, "", ""),
        (f"snooze {CARD.upper()} monday", ActionKind.SNOOZE, "monday", ""),
        (f"exempt {CARD} 7d warm pool", ActionKind.EXEMPT, "7d", "warm pool"),
    ],
)
def test_what_is_done_to_a_card_is_handed_to_the_reconciler_which_answers(
    text: str, kind: ActionKind, span: str, reason: str
) -> None:
    rig = Rig(a_finding())
    assert rig.ask(text) == ""
    (action,) = rig.actions
    assert (action.kind, action.span, action.reason) == (kind, span, reason)
    assert (action.cluster, action.card, action.id) == ("ml-shared-01", CARD, "1.2.a")
    assert action.response_url == URL


def test_a_card_that_is_none_is_said_and_changes_nothing() -> None:
    rig = Rig(a_finding())
    told = rig.ask(f"ack {CARD[:-1]}x")
    assert f"Near to it: `{CARD}`" in told
    assert rig.actions == []
    assert "There is no card `x`" in rig.ask("evidence ml-shared-01/x")
    assert "There is no card `x`" in rig.ask("evidence gone/x")
    assert f"Near to it: `{CARD}`" in rig.ask(f"evidence ml-shared-01/{CARD[:-1]}x")


def test_an_unknown_cluster_names_those_that_are_near() -> None:
    assert "There is no cluster `ml-othr`: `ml-other`" in Rig().ask("status in ml-othr")


def test_the_fallback_of_the_dialog_can_be_pasted() -> None:
    assert f"`/gpu exempt {CARD} 7d &lt;reason&gt;`" in Rig().ask(
        f"exempt-help ml-shared-01/{CARD}"
    )


def test_help_lists_every_command() -> None:
    told = Rig().ask("")
    for name in ("status", "why", "idle", "team", "digest", "snooze", "exempt", "ack"):
        assert f"`/gpu {name}" in told


def test_names_that_are_typed_or_found_speak_through_no_answer() -> None:
    hostile = a_finding(subject="Job/ml/<!channel>", owner="<!here>")
    rig = Rig(hostile)
    for text in (
        "status",
        "idle",
        "why <!channel>",
        "why <!everyone>",
        "team <!here>",
        "ack <@U1>",
    ):
        told = rig.ask(text)
        assert "<!channel>" not in told
        assert "<!everyone>" not in told
        assert "<@U1>" not in told
        assert "<!here>" not in told


def test_what_is_too_old_is_not_answered_and_not_repeated_for_ever() -> None:
    rig = Rig()
    assert rig.run("status", minutes_old=31) == {"answered": False, "reason": "too old"}
    rig.responder.failure = MessageGoneError("used_url")
    assert rig.run("status")["answered"] is False
    rig.responder.failure = NotAcceptedError("503")
    with pytest.raises(NotAcceptedError):
        rig.run("status")


def test_times_of_the_week_are_the_clusters() -> None:
    rig = Rig(a_finding())
    rig.clock.at = at("12:00") + timedelta(days=6)  # Wednesday of the next week
    assert "alerts opened 0" in rig.ask("digest in ml-shared-01")


def test_a_cluster_that_is_named_needs_no_look_at_its_cards() -> None:
    rig = Rig()
    assert rig.ask("ack 3f9a2c1b0d in ml-other") == ""
    assert [(a.cluster, a.card) for a in rig.actions] == [("ml-other", "3f9a2c1b0d")]


def test_an_old_card_does_not_show_the_evidence_of_a_new_incident() -> None:
    rig = Rig(a_finding())
    for time in ("12:05", "12:15", "12:30"):
        rig.later(time)
    rig.later("15:00", a_finding(since=at("14:00")))  # more than an hour after: another card
    told = rig.ask(f"evidence ml-shared-01/{CARD}")
    assert "None of its alerts is open any more." in told
    assert "GPU-1" not in told
    new = card_id("ml-shared-01", f"job|{SUBJECT}|20261105T150000Z")
    assert "GPU-1" in rig.ask(f"evidence ml-shared-01/{new}")


def test_an_unknown_team_is_never_told_that_it_has_no_idle_gpus() -> None:
    told = Rig(a_finding()).ask("idle reserch")
    assert told == "There is no team `reserch`: `research`"


def test_idleness_that_could_not_be_judged_is_not_told_as_none() -> None:
    told = Rig(unknown=(an_unknown(),)).ask("idle").splitlines()
    assert told[1] == "Not judged, of all teams: 1 subjects, `/gpu status` says more"
    assert told[2] == "*ml-other*, never looked at yet: idleness cannot be told"


def test_why_does_not_say_that_nothing_is_found_where_nothing_was_looked_at() -> None:
    told = Rig(a_finding()).ask("why sweep-a in ml-other")
    assert told.startswith("Nothing can be told of `sweep-a`: there is no evaluation.")


def test_why_of_an_unmentioned_job_names_what_could_not_be_read() -> None:
    blind = an_unknown(subject="kubernetes/pods", reason=UnknownReason.DENIED, blind=True)
    told = Rig(unknown=(blind,)).ask("why rerank in ml-shared-01")
    assert "Could not be read: `kubernetes/pods` (denied)" in told


def test_what_was_looked_at_long_ago_says_how_long() -> None:
    rig = Rig(a_finding())
    rig.clock.at = at("12:15")  # three ticks of five minutes: not yet late
    assert "ago" not in rig.ask("status in ml-shared-01")
    rig.clock.at = at("18:00")
    for command in ("status", "idle", "digest", "team research", "why sweep-a"):
        assert "*6 h 00 min ago*" in rig.ask(f"{command} in ml-shared-01")


def test_parts_that_could_not_be_read_are_counted_where_they_are_not_named() -> None:
    blind = tuple(an_unknown(subject=f"part-{n:02}", blind=True) for n in range(12))
    told = Rig(unknown=blind).ask("status in ml-shared-01")
    assert "`part-07` (low_coverage), +4 more" in told


def test_lists_of_evidence_are_shown_to_their_end() -> None:
    jobs = [f"Job/ml/number-{n:03}" for n in range(200)]
    told = Rig(a_finding(evidence={**a_finding().evidence, "jobs": jobs})).ask(
        f"evidence ml-shared-01/{CARD}"
    )
    assert all(f"• `{job}`" in told for job in jobs)


def test_a_long_answer_that_breaks_off_is_not_begun_again() -> None:
    devices = [{"node": "hyperpod-i-0a", "uuid": f"GPU-{n:036}"} for n in range(500)]
    rig = Rig(a_finding(evidence={**a_finding().evidence, "accelerators": devices}))
    taken = rig.responder.respond

    def respond(response_url: str, message: Any) -> None:
        if len(rig.responder.answers) == 2:
            raise NotAcceptedError("503")
        taken(response_url, message)

    rig.responder.respond = respond  # type: ignore[method-assign]
    assert rig.run(f"evidence ml-shared-01/{CARD}")["answered"] is False
    assert (
        len(rig.responder.answers) == 2
    )  # an address takes five: the rest is for another question


def test_an_evaluation_that_cannot_be_read_silences_one_cluster_only() -> None:
    rig = Rig(a_finding())

    def broken(key: str) -> Any:
        raise PermanentError(f"{key}: schema 9")

    rig.evaluations.get = broken  # type: ignore[method-assign]
    told = rig.ask("status")
    assert "Nothing of it can be told: there is no evaluation that can be read." in told
    assert "*ml-other*" in told
