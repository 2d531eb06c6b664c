"""What people decide about a card, how long it holds, and what comes of nobody deciding."""

from copy import replace
from datetime import timedelta
from typing import Any

import pytest

from steward.alerts.actions import ActionKind
from steward.cluster.policy import Alerting, Channel, Escalation, Severity
from tests.builders import NOON, a_cluster, at
from tests.unit.alerts.nouns import a_finding, an_evaluation, failed
from tests.unit.alerts.timeline import Timeline, every

ACK, SNOOZE, EXEMPT = ActionKind.ACKNOWLEDGE, ActionKind.SNOOZE, ActionKind.EXEMPT
PAGE = a_finding(severity=Severity.PAGE)


def opened(finding: Any = None, **alerting: Any) -> Timeline:
    cluster = a_cluster(alerting=Alerting(**alerting))
    return Timeline(cluster=cluster).play(an_evaluation("12:00", finding or a_finding()))


def still(line: Timeline, begin: str, end: str, finding: Any = None) -> Timeline:
    for now in every(5, at(begin), at(end)):
        line.play(an_evaluation(now, finding or a_finding()))
    return line


def test_the_first_to_acknowledge_is_named_and_the_second_told() -> None:
    line = opened()
    assert line.press(ACK, "12:03").kind == "done_acknowledge"
    second = line.press(ACK, "12:04", user="U2")
    assert (second.kind, second.facts["name"]) == ("already", "ana")
    assert line.card.content["acknowledged"]["name"] == "ana"
    assert line.notes == [("acknowledged", "12:03")]


def test_a_press_delivered_twice_is_one_and_answered_twice() -> None:
    line = opened()
    assert [line.press(ACK, "12:03").kind for _ in range(2)] == ["done_acknowledge"] * 2
    assert line.notes == [("acknowledged", "12:03")]


def test_a_press_on_what_is_over_changes_nothing_and_says_since_when() -> None:
    line = opened().play(an_evaluation("12:10"))
    answer = line.press(ACK, "12:11")
    assert (answer.kind, answer.facts["since"]) == ("closed", "2026-11-05T12:10:00Z")
    assert line.card.acknowledged is None


def test_an_unknown_card_is_not_found() -> None:
    assert opened().press(ACK, "12:03", key="another").kind == "not_found"


def test_a_condition_that_ends_in_a_snooze_reads_resolved_and_says_nothing_later() -> None:
    # Snoozed to 14:00 and cleared at 13:10: at 14:00 the card reads "resolved 13:10".
    line = opened()
    line.press(SNOOZE, "12:00", span="2h")
    still(line, "12:05", "13:00").play(an_evaluation("13:05"), an_evaluation("13:10"))
    before = list(line.posts)
    line.play(*(an_evaluation(t) for t in ("13:55", "14:00", "14:05")))
    assert line.card.content["resolved"] == "2026-11-05T13:10:00Z"
    assert line.card.content["snoozed"] is None
    assert line.posts == before
    assert ("resolved", "13:10") in line.notes  # somebody cared: the end is told in the thread


def test_a_snooze_that_ends_over_a_condition_that_still_is_reminds_once() -> None:
    line = opened()
    assert line.press(SNOOZE, "12:00", span="1h").facts["until"] == "2026-11-05T13:00:00Z"
    still(line, "12:05", "12:55")
    assert line.card.content["snoozed"]["until"] == "2026-11-05T13:00:00Z"
    still(line, "13:00", "13:30")
    assert line.notes == [("snoozed", "12:00"), ("snooze_ended", "13:00")]
    assert line.loud == ["snooze_ended"]
    assert line.card.content["snoozed"] is None


def test_two_who_snooze_at_once_mean_the_same_and_a_later_end_is_another() -> None:
    line = opened()
    line.press(SNOOZE, "12:00", span="1h")
    assert line.press(SNOOZE, "12:01", user="U2", span="1h").kind == "already"
    assert line.press(SNOOZE, "12:02", user="U2", span="4h").kind == "done_snooze"
    assert line.card.content["snoozed"]["name"] == "bo"


def test_a_snooze_goes_on_over_an_end_and_a_beginning() -> None:
    line = opened()
    line.press(SNOOZE, "12:00", span="4h")
    line.play(an_evaluation("12:10"), an_evaluation("12:30", a_finding()))
    assert line.card.content["state"] == "open"
    assert line.loud == []  # they said until when they want no word of it
    still(line, "15:55", "16:05")
    assert line.loud == ["snooze_ended"]


@pytest.mark.parametrize(("kind", "span"), [(ACK, ""), (SNOOZE, "4h")])
def test_what_gets_worse_breaks_through(kind: ActionKind, span: str) -> None:
    line = opened()
    line.press(kind, "12:01", span=span)
    still(line, "12:05", "12:10", PAGE)
    assert (line.card.acknowledged, line.card.snoozed) == (None, None)
    assert line.loud == ["louder"]
    line.press(kind, "12:11", user="U2", span=span)
    still(line, "12:15", "12:30", PAGE)  # known at this severity: quiet again
    assert line.loud == ["louder"]


def test_a_page_that_nobody_acknowledges_is_escalated_once_after_thirty_minutes() -> None:
    second = Channel(id="C0SECOND", name="managers")
    line = opened(PAGE, escalation=Escalation(channel=second, mention="S0ONCALL"))
    still(line, "12:05", "12:25", PAGE)
    assert line.notes == []
    still(line, "12:30", "13:30", PAGE)
    assert line.notes == [("escalated", "12:30")]
    (note,) = [c for c in line.state.cards.values() if c.kind == "note"]
    assert note.content["mention"] == "S0ONCALL"
    (copy,) = [c for c in line.state.cards.values() if c.kind == "copy"]
    assert (copy.channel, copy.content["escalated"]) == ("C0SECOND", "2026-11-05T12:30:00Z")


@pytest.mark.parametrize("kind", [ACK, SNOOZE])
def test_a_page_that_somebody_decided_about_is_not_escalated(kind: ActionKind) -> None:
    line = opened(PAGE)
    line.press(kind, "12:10", span="4h" if kind is SNOOZE else "")
    assert "escalated" not in dict(still(line, "12:15", "13:30", PAGE).notes)


def test_the_copy_in_the_second_channel_reads_resolved_too() -> None:
    second = Channel(id="C0SECOND", name="managers")
    line = opened(PAGE, escalation=Escalation(channel=second))
    still(line, "12:05", "12:30", PAGE).play(an_evaluation("12:40"), an_evaluation("12:45"))
    (copy,) = [c for c in line.state.cards.values() if c.kind == "copy"]
    assert (copy.content["state"], copy.delivered) == ("resolved", copy.desired)


def test_what_becomes_a_page_waits_its_thirty_minutes_from_then() -> None:
    line = still(opened(), "12:05", "14:00")
    still(line, "14:05", "14:30", PAGE)
    assert line.notes == []
    assert still(line, "14:35", "14:35", PAGE).notes == [("escalated", "14:35")]


def test_reminders_come_at_their_interval_and_not_with_an_end() -> None:
    # Interval 24 h, a condition of 61 h: two reminders.
    line = opened(reminder_hours=24)
    for hours in range(1, 62):
        line.play(an_evaluation(NOON + timedelta(hours=hours), a_finding()))
    line.play(an_evaluation(NOON + timedelta(hours=62)))
    assert [kind for kind, _ in line.notes].count("reminder") == 2


def test_an_acknowledged_card_is_not_brought_up_again() -> None:
    line = opened(reminder_hours=1)
    line.press(ACK, "12:30")
    assert line.loud == still(line, "12:35", "18:00").loud == []


def test_what_cannot_be_judged_for_a_day_is_handed_over_and_taken_back() -> None:
    line = opened()
    dark = failed("12:05")
    for hours in (*range(24), 24):
        line.play(replace(dark, at=at("12:05") + timedelta(hours=hours)))
    card = next(c for c in line.cards if c.key.startswith("job|"))
    assert card.content["state"] == "handed_over"
    line.play(an_evaluation(at("12:10") + timedelta(hours=24), a_finding()))
    card = next(c for c in line.cards if c.key.startswith("job|"))
    assert card.content["state"] == "open"
    assert "handed_over" in dict(line.notes)


def test_an_exemption_ends_the_alert_and_begins_again_when_it_ends() -> None:
    line = opened()
    assert line.press(EXEMPT, "12:03", span="1d").kind == "done_exempt"
    assert (line.card.content["state"], line.card.content["resolution"]) == ("resolved", "exempted")
    for hours in range(24):
        line.play(an_evaluation(at("12:05") + timedelta(hours=hours), a_finding()))
    assert len(line.cards) == 1
    line.play(an_evaluation(at("12:05") + timedelta(hours=24), a_finding()))
    assert [card.content["state"] for card in line.cards] == ["resolved", "open"]


def test_an_exemption_is_for_what_was_said_of_the_job_and_nothing_else() -> None:
    line = opened()
    line.press(EXEMPT, "12:03", span="1d")
    lost = a_finding(detector="preemptions", reason="thrash", severity=Severity.PAGE)
    line.play(an_evaluation("12:05", a_finding(), lost))
    (card,) = [c for c in line.cards if c.content["state"] == "open"]
    assert card.content["reason"] == "thrash"


def test_a_span_that_is_none_is_refused_with_what_can_be_written() -> None:
    line = opened()
    answer = line.press(SNOOZE, "12:03", span="soon")
    assert answer.kind == "bad_span"
    assert "45m, 4h, 7d or 2w" in answer.facts["error"]
    assert line.card.snoozed is None
