"""One run after another against a Slack that fails in every way it can."""

from copy import replace
from datetime import timedelta
from typing import Any

import pytest

from local.twins import InMemoryRows
from steward.alerts.errors import (
    ChannelError,
    CredentialsError,
    MessageGoneError,
    NotAcceptedError,
    RefusedContentError,
    UnknownOutcomeError,
)
from steward.alerts.model import Card, Posted, ReconcilerState
from steward.cluster.findings import Evaluation, Finding
from steward.cluster.policy import Policy, Severity
from steward.errors import RetryableError
from steward.stores.state import Alerts
from steward.usecases.reconcile_alerts import reconcile
from tests.builders import NOON, a_cluster, a_team, at
from tests.fakes import FixedTime
from tests.unit.alerts.nouns import SUBJECT, a_finding, an_evaluation, lost_telemetry
from tests.unit.usecases.fake_people import FakeDirectory, FakePager
from tests.unit.usecases.fake_slack import AnswerLostError, FakeSlack

CARD = f"job|{SUBJECT}|20261105T120000Z"
OPEN = ":warning: 1 of 8 GPUs idle · research · job sweep-a"
ENDED = ":white_check_mark: Resolved: 1 of 8 GPUs idle · research · job sweep-a"
LIMITED = NotAcceptedError("429", retry_after_seconds=7)


class Rig:
    """A cluster, its store, its Slack and its clock."""

    def __init__(self, *failures: Any, closed: tuple[str, ...] = ()) -> None:
        self.clock = FixedTime()
        self.slack = FakeSlack(self.clock, failures=list(failures), closed=set(closed))
        self.store = Alerts(InMemoryRows())
        teams = (a_team(), a_team("vision"))
        self.policy = Policy(schema=1, clusters=(a_cluster(teams=teams),))

    def run(self, evaluation: Evaluation, *, minutes_late: int = 0) -> dict[str, Any]:
        self.clock.at = evaluation.at + timedelta(minutes=minutes_late)
        return reconcile(
            evaluation,
            policy=self.policy,
            alerts=self.store,
            messenger=self.slack,
            directory=FakeDirectory(),
            pager=FakePager(),
            clock=self.clock,
        )

    def card(self, key: str = CARD) -> Card:
        return self.store.load("ml-shared-01").cards[key]


def see(when: str, *findings: Finding, **changes: Any) -> Evaluation:
    return an_evaluation(when, *(findings or (a_finding(**changes),)))


def of(name: str, **changes: Any) -> Finding:
    return a_finding(subject=f"PyTorchJob/ml/{name}", **changes)


def test_a_problem_is_one_message_from_its_beginning_to_its_end() -> None:
    rig = Rig()
    first = rig.run(see("12:00"))
    assert (first["opened"], first["posts"], first["undelivered"]) == (1, 1, 0)
    assert rig.slack.headers("C0RESEARCH") == [OPEN]
    assert rig.run(see("12:05"))["updates"] == 0  # nothing new to tell
    rig.run(an_evaluation("12:10"))
    over = rig.run(an_evaluation("12:15"))
    assert (over["resolved"], over["updates"]) == (1, 1)
    assert rig.slack.headers() == [ENDED]
    assert (rig.card().closed, rig.card().trouble) == (True, None)
    assert rig.run(an_evaluation("12:20"))["updates"] == 0


@pytest.mark.parametrize("late", ["12:10", "12:05", "12:00"])
def test_repeated_and_late_evaluations_change_nothing(late: str) -> None:
    rig = Rig()
    rig.run(see("12:00"))
    rig.run(see("12:10"))
    calls = list(rig.slack.calls)
    assert rig.run(an_evaluation(late))["applied"] is False
    assert rig.slack.calls == calls


def test_running_numbers_edit_hourly_and_an_escalation_at_once() -> None:
    rig = Rig()
    rig.run(see("12:00"))
    rig.run(see("12:30", gpu_hours=3.5))
    assert rig.slack.calls == ["post C0RESEARCH"]
    rig.run(see("12:35", gpu_hours=3.6, severity=Severity.PAGE))
    assert rig.slack.headers() == [OPEN.replace(":warning:", ":rotating_light:")]
    rig.run(see("13:00", gpu_hours=4.0, severity=Severity.PAGE))
    assert rig.slack.calls == ["post C0RESEARCH", "update C0RESEARCH"]
    rig.run(see("13:05", gpu_hours=4.1, severity=Severity.PAGE))  # nobody acknowledged the page
    assert rig.slack.calls[2:] == ["update C0RESEARCH", "post C0RESEARCH"]
    rig.run(see("14:00", gpu_hours=4.9, severity=Severity.PAGE))  # 55 min after the last delivery
    assert len(rig.slack.calls) == 4
    rig.run(see("14:05", gpu_hours=5.0, severity=Severity.PAGE))
    assert rig.slack.calls[4:] == ["update C0RESEARCH"]


def test_what_should_be_shown_is_stored_before_anything_is_sent() -> None:
    rig = Rig(UnknownOutcomeError("timeout"))
    rig.run(see("12:00"))
    card = rig.card()
    assert card.intent is not None
    assert (card.intent.revision, card.intent.at) == (card.desired, NOON)
    assert (card.delivered, card.posted) == (None, None)


@pytest.mark.parametrize("failure", [AnswerLostError("reset"), UnknownOutcomeError("timeout")])
def test_an_unanswered_post_is_looked_up_before_it_is_repeated(
    failure: UnknownOutcomeError,
) -> None:
    rig = Rig(failure)
    first = rig.run(see("12:00"))
    assert (first["undelivered"], first["troubles"]) == (1, {CARD: str(failure)})
    rig.run(see("12:05"))
    accepted = isinstance(failure, AnswerLostError)
    assert rig.slack.calls[1] == "find C0RESEARCH"
    assert rig.slack.calls[2:] == (["update C0RESEARCH"] if accepted else ["post C0RESEARCH"])
    assert rig.slack.headers() == [OPEN]  # once, either way


def test_a_post_that_had_arrived_is_not_late_because_its_answer_was() -> None:
    rig = Rig(AnswerLostError("reset"))
    rig.run(see("12:00"))
    rig.run(see("12:30", severity=Severity.PAGE))
    assert rig.card().announced_at == NOON
    assert "late" not in str(rig.slack.messages[0].shown)


def test_a_found_post_that_shows_what_it_should_is_left_alone() -> None:
    rig = Rig(AnswerLostError("reset"))
    rig.run(see("12:00"))
    again = rig.run(see("12:00"))  # the same message again: nothing new to show
    assert (again["recovered"], again["posts"], again["updates"]) == (1, 0, 0)
    assert rig.card().delivered == rig.card().desired


def lost(hidden_minutes: int) -> AnswerLostError:
    """Slack accepts the post, its answer is lost, and the history does not show it yet."""
    return AnswerLostError("reset", hidden_minutes=hidden_minutes)


def test_a_duplicate_that_the_history_shows_late_is_deleted() -> None:
    rig = Rig(lost(8))
    rig.run(see("12:00"))
    rig.run(see("12:05"))
    assert rig.slack.headers() == [OPEN, OPEN]  # the second post was right: the first looked lost
    assert rig.run(see("12:10"))["deleted"] == 1
    assert [m.ts for m in rig.slack.messages] == ["2.0"]
    assert rig.card().posted == Posted(channel="C0RESEARCH", ts="2.0")
    calls = len(rig.slack.calls)
    rig.run(see("12:15"))
    assert len(rig.slack.calls) == calls  # settled


def test_an_hour_after_the_attempt_a_post_that_nothing_shows_never_was() -> None:
    rig = Rig(UnknownOutcomeError("timeout"))
    for when in ("12:00", "12:05", "12:59"):
        rig.run(see(when))
    assert [a.at for a in rig.card().doubtful] == [NOON]
    rig.run(see("13:00"))
    assert rig.card().doubtful == ()
    rig.run(see("13:05", severity=Severity.PAGE))
    assert [call.split()[0] for call in rig.slack.calls] == [
        *("post", "find", "post"),  # 12:00 and 12:05
        *("find", "find"),  # 12:59 and 13:00
        "update",
    ]


def test_the_first_of_two_doubtful_posts_to_appear_is_the_card() -> None:
    rig = Rig(lost(8), None, lost(60))
    rig.run(see("12:00"))
    rig.run(see("12:05"))
    assert rig.run(see("12:10"))["recovered"] == 1
    assert rig.card().posted == Posted(channel="C0RESEARCH", ts="1.0")
    assert rig.run(see("13:10"))["deleted"] == 1
    assert [m.ts for m in rig.slack.messages] == ["1.0"]


def test_a_duplicate_of_a_closed_card_is_still_deleted() -> None:
    rig = Rig(lost(30))
    rig.run(see("12:00"))
    rig.run(see("12:05"))
    rig.run(an_evaluation("12:15"))
    assert rig.slack.headers() == [OPEN, ENDED]
    rig.run(an_evaluation("12:30"))
    assert (rig.slack.headers(), rig.card().doubtful) == ([ENDED], ())


def test_a_doubt_that_cannot_be_looked_up_holds_no_edit_and_stays() -> None:
    rig = Rig(lost(8), None, None, CredentialsError("missing_scope"))
    rig.run(see("12:00"))
    rig.run(see("12:05"))
    outcome = rig.run(see("12:10", severity=Severity.PAGE))
    assert (outcome["updates"], outcome["undelivered"]) == (1, 0)
    assert rig.run(see("12:15", severity=Severity.PAGE))["deleted"] == 1


@pytest.mark.parametrize(
    ("failure", "calls"),
    [
        (NotAcceptedError("503"), 2),  # tried again
        (AnswerLostError("reset"), 1),  # the next look-up does not find it any more
        (MessageGoneError("cant_delete_message"), 1),  # nothing that we could do
    ],
)
def test_a_deletion_is_made_once_and_where_it_fails_again(failure: Exception, calls: int) -> None:
    rig = Rig(lost(8), None, None, None, failure)
    for when in ("12:00", "12:05", "12:10", "12:15", "13:00", "13:05"):
        rig.run(see(when))
    assert rig.slack.calls.count("delete C0RESEARCH") == calls
    assert rig.card().doubtful == ()


def test_a_run_that_dies_after_the_post_is_repeated_without_a_second_one() -> None:
    class DyingStore(Alerts):
        """Takes what comes before the delivery and dies at what comes after it."""

        saves = 0

        def save_card(self, cluster: str, card: Card) -> None:
            self.saves += 1
            if self.saves == 2:
                raise RetryableError("the table did not answer")
            super().save_card(cluster, card)

    rig = Rig()
    rig.store = DyingStore(InMemoryRows())
    with pytest.raises(RetryableError):
        rig.run(see("12:00"))
    assert rig.run(see("12:00"))["recovered"] == 1
    assert rig.slack.headers() == [OPEN]


def test_two_refusals_and_a_restart_make_one_message() -> None:
    rig = Rig(NotAcceptedError("503"), NotAcceptedError("503"))
    for when in ("12:00", "12:05", "12:10"):
        rig.run(see(when))
    assert rig.slack.calls == ["post C0RESEARCH"] * 3
    assert rig.slack.headers() == [OPEN]


def test_a_rate_limit_holds_its_channel_and_no_other() -> None:
    rig = Rig(LIMITED)
    outcome = rig.run(
        see("12:00", of("a"), of("b"), of("c", team="vision"), lost_telemetry(damping_minutes=0))
    )
    assert rig.slack.calls == ["post C0RESEARCH", "post C0VISION00", "post C0PLATFORM1"]
    assert outcome["undelivered"] == 2
    assert rig.run(see("12:05", of("a"), of("b"), of("c", team="vision")))["posts"] == 2


def test_a_refusal_of_one_card_holds_no_other_of_the_channel() -> None:
    rig = Rig(NotAcceptedError("unheard_of"))
    assert rig.run(see("12:00", of("a"), of("b")))["posts"] == 1


def test_the_most_severe_goes_first() -> None:
    rig = Rig()
    rig.run(see("12:00", of("a"), of("b", severity=Severity.PAGE), of("c")))
    assert [h.split()[-1] for h in rig.slack.headers()] == ["b", "a", "c"]


def test_refused_blocks_are_sent_once_more_as_text_alone() -> None:
    rig = Rig(RefusedContentError("invalid_blocks: /blocks/2/text/text"))
    outcome = rig.run(see("12:00"))
    message = rig.slack.messages[0].shown
    assert set(message) == {"text"}
    assert "1 of 8 GPUs idle" in message["text"]
    assert "nvidia-smi" in message["text"]
    assert (outcome["posts"], outcome["undelivered"]) == (1, 0)
    assert "/blocks/2/text/text" in str(rig.card().trouble)
    rig.run(see("12:05"))
    assert len(rig.slack.calls) == 2  # what was said as text is said
    rig.run(see("12:10", severity=Severity.PAGE))
    assert "blocks" in rig.slack.messages[0].shown  # a new revision tries blocks again


def test_text_that_is_refused_too_is_not_tried_a_third_time() -> None:
    rig = Rig(RefusedContentError("invalid_blocks"), RefusedContentError("no_text"))
    outcome = rig.run(see("12:00"))
    assert len(rig.slack.calls) == 2
    assert outcome["undelivered"] == 1


def test_a_closed_channel_sends_its_cards_to_the_platform_team_once_with_the_reason() -> None:
    rig = Rig(closed=("C0RESEARCH",))
    rig.run(see("12:00", of("a"), of("b")))
    assert rig.slack.calls.count("post C0RESEARCH") == 1  # the second card need not ask again
    assert len(rig.slack.headers("C0PLATFORM1")) == 2
    note = rig.slack.messages[0].shown["blocks"][1]["text"]["text"]
    assert "Meant for #gpu-research" in note
    assert "is_archived" in note
    rig.slack.closed.clear()
    rig.run(see("12:05", of("a", severity=Severity.PAGE), of("b")))
    assert len(rig.slack.messages) == 2  # they stay where they are


def test_a_card_in_a_channel_that_closes_later_moves_with_its_next_change() -> None:
    rig = Rig()
    rig.run(see("12:00"))
    rig.slack.closed.add("C0RESEARCH")
    rig.run(see("12:05", severity=Severity.PAGE))
    assert len(rig.slack.headers("C0PLATFORM1")) == 1


def test_a_closed_platform_channel_is_trouble_and_tried_again() -> None:
    rig = Rig(closed=("C0RESEARCH", "C0PLATFORM1"))
    outcome = rig.run(see("12:00"))
    assert outcome["undelivered"] == 1
    assert "is_archived" in str(rig.card().trouble)
    rig.slack.closed.clear()
    rig.run(see("12:05"))
    assert rig.slack.headers("C0PLATFORM1") == [OPEN]
    assert rig.card().trouble is None


def test_bad_credentials_stop_the_run_at_once() -> None:
    rig = Rig(CredentialsError("token_revoked"))
    outcome = rig.run(see("12:00", of("a"), of("b"), of("c", team="vision")))
    assert len(rig.slack.calls) == 1
    assert (outcome["undelivered"], len(outcome["troubles"])) == (3, 1)
    assert rig.run(see("12:05", of("a"), of("b"), of("c", team="vision")))["posts"] == 3


def test_a_scope_that_only_the_history_lacks_holds_only_what_needs_it() -> None:
    rig = Rig(UnknownOutcomeError("timeout"), CredentialsError("missing_scope"))
    rig.run(see("12:00", of("a")))
    outcome = rig.run(see("12:05", of("a"), of("b")))
    assert rig.slack.calls[1:] == ["find C0RESEARCH", "post C0RESEARCH"]
    assert outcome["undelivered"] == 1


def test_a_lost_lookup_leaves_the_attempt_open() -> None:
    rig = Rig(AnswerLostError("reset"), UnknownOutcomeError("timeout"))
    for when in ("12:00", "12:05", "12:10"):
        rig.run(see(when))
    assert rig.slack.headers() == [OPEN]


def test_an_unreachable_channel_at_the_lookup_sends_the_card_elsewhere() -> None:
    rig = Rig(UnknownOutcomeError("timeout"), ChannelError("not_in_channel"))
    rig.run(see("12:00"))
    rig.run(see("12:05"))
    assert rig.slack.headers("C0PLATFORM1") == [OPEN]


def test_a_post_found_in_a_channel_that_its_card_has_left_is_deleted_once_the_card_stands() -> None:
    rig = Rig(lost(0), ChannelError("not_in_channel"), NotAcceptedError("503"))
    rig.run(see("12:00"))
    rig.run(see("12:05"))  # the history cannot be read, and the platform channel takes nothing
    rig.run(see("12:10"))
    assert rig.slack.headers() == [OPEN, OPEN]  # never none of them
    rig.run(see("12:15"))
    assert (rig.slack.headers("C0PLATFORM1"), rig.slack.headers("C0RESEARCH")) == ([OPEN], [])


def test_a_silent_slack_is_not_waited_for_card_by_card() -> None:
    rig = Rig(*[UnknownOutcomeError("timeout")] * 9)
    outcome = rig.run(see("12:00", *(of(name) for name in "abcdef")))
    assert (len(rig.slack.calls), outcome["undelivered"]) == (2, 6)


def test_look_ups_without_an_answer_count_towards_the_silence_of_slack() -> None:
    rig = Rig(lost(8), lost(8))
    rig.run(see("12:00", of("a"), of("b")))
    rig.run(see("12:05", of("a"), of("b")))  # both are posted again
    silence = UnknownOutcomeError("timeout")
    rig.slack.failures = [silence, None, silence]
    rig.slack.calls.clear()
    page = {"severity": Severity.PAGE}
    assert rig.run(see("12:10", of("a", **page), of("b", **page)))["undelivered"] == 1
    assert [call.split()[0] for call in rig.slack.calls] == ["find", "update", "find"]


def test_an_edit_with_an_unknown_outcome_is_made_again_in_place() -> None:
    rig = Rig(None, AnswerLostError("reset"))
    rig.run(see("12:00"))
    rig.run(see("12:05", severity=Severity.PAGE))
    rig.run(see("12:10", severity=Severity.PAGE))
    assert rig.slack.calls == ["post C0RESEARCH", "update C0RESEARCH", "update C0RESEARCH"]
    assert len(rig.slack.messages) == 1


def test_a_message_that_somebody_deleted_is_posted_anew() -> None:
    rig = Rig()
    rig.run(see("12:00"))
    rig.slack.messages.clear()  # somebody deletes it
    rig.run(see("12:05", severity=Severity.PAGE))
    assert [m.ts for m in rig.slack.messages] == ["2.0"]
    assert rig.card().posted == replace(rig.card().posted, ts="2.0")  # type: ignore[arg-type]


def test_what_began_and_ended_while_slack_was_away_is_told_late_and_resolved() -> None:
    rig = Rig(*[NotAcceptedError("503")] * 3)
    rig.run(see("12:00"))
    rig.run(an_evaluation("12:05"))
    rig.run(an_evaluation("12:10"))
    rig.run(an_evaluation("12:15"))
    assert rig.slack.headers() == [ENDED]
    assert "15 min late" in str(rig.slack.messages[0].shown)
    assert rig.card().closed


def test_a_card_is_not_closed_before_its_end_is_shown() -> None:
    # The post of 12:00 arrived; by the time it is found the problem has ended and the edit fails.
    rig = Rig(AnswerLostError("reset"), None, NotAcceptedError("503"))
    rig.run(see("12:00"))
    rig.run(an_evaluation("12:10"))
    assert (rig.slack.headers(), rig.card().closed) == ([OPEN], False)
    rig.run(an_evaluation("12:15"))
    assert (rig.slack.headers(), rig.card().closed) == ([ENDED], True)


def test_a_delivery_that_lags_its_detection_says_so() -> None:
    rig = Rig()
    rig.run(see("12:00"), minutes_late=11)
    assert "11 min late" in str(rig.slack.messages[0].shown)
    rig.run(see("12:15", severity=Severity.PAGE))
    assert "11 min late" in str(rig.slack.messages[0].shown)  # an edit does not change that


def test_each_attempt_has_its_own_id_and_the_same_facts_make_the_same_one() -> None:
    ids = []
    for _ in range(2):
        rig = Rig(NotAcceptedError("503"))
        rig.run(see("12:00"))
        rig.run(see("12:00"))
        ids.append(rig.slack.messages[0].attempt.id)
        assert rig.card().attempts == 2
    assert ids[0] == ids[1]


def test_a_new_reason_within_the_incident_edits_the_message() -> None:
    rig = Rig()
    rig.run(see("12:00"))
    outcome = rig.run(see("12:30", reason="idle_held"))
    assert (outcome["opened"], outcome["resolved"]) == (1, 1)
    assert rig.slack.headers() == [OPEN.replace("idle", "idle, memory held", 1)]


def test_a_problem_that_returns_within_the_hour_is_the_same_message_and_word_of_it() -> None:
    rig = Rig()
    rig.run(see("12:00"))
    rig.run(an_evaluation("12:10"))
    rig.run(see("12:15"))
    card, note = rig.slack.messages
    assert rig.slack.headers()[0] == OPEN
    assert (note.shown["thread_ts"], note.shown["reply_broadcast"]) == (card.ts, True)


def test_a_problem_that_returns_later_is_a_new_message() -> None:
    rig = Rig()
    rig.run(see("12:00"))
    rig.run(an_evaluation("12:10"))
    rig.run(see("13:15"))
    assert rig.slack.headers() == [ENDED, OPEN]


def test_a_cluster_that_left_the_policy_is_dropped() -> None:
    rig = Rig()
    outcome = rig.run(replace(see("12:00"), cluster="gone"))
    assert outcome["reason"] == "cluster not in the policy"
    assert rig.store.load("gone") == ReconcilerState(cluster="gone")


def test_the_outcome_counts_what_stands() -> None:
    rig = Rig()
    outcome = rig.run(see("12:00", of("a"), of("b", severity=Severity.INFO), lost_telemetry()))
    assert outcome == {
        "cluster": "ml-shared-01",
        "at": "2026-11-05T12:00:00Z",
        "applied": True,
        "opened": 2,
        "resolved": 0,
        "open": 2,
        "damped": 1,
        "stale": 0,
        "posts": 1,
        "updates": 0,
        "recovered": 0,
        "deleted": 0,
        "undelivered": 0,
        "refusals": 0,
        "late_seconds": 0.0,
        "troubles": {},
    }


def test_delivery_times_are_the_clocks_and_alert_times_the_evaluations() -> None:
    rig = Rig()
    rig.run(see("12:00"), minutes_late=2)
    assert rig.card().delivered_at == at("12:02")
    (alert,) = rig.store.load("ml-shared-01").alerts.values()
    assert alert.opened == NOON
