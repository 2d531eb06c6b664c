"""Lives of cards: what flaps, what people press, what is told again and what is not; by hand.

The cases are in tests/alerting/lives.py. What is seen opens after ten minutes where it is a node, at
once where it is a job's wrong queue, and ends when it has not been seen for ten.
"""

from datetime import timedelta

import pytest

from tests.alerting.kit import PLATFORM, RESEARCH
from tests.alerting.lives import EVIDENCE, SWING, SWINGS, TYPED, typed_at
from tests.alerting.told import shown, told, words
from tests.queues.scene import at, machine_name, stamp
from tests.recordings import iso

NODE = f"Node/{machine_name(0)}"
JOB = "Job/hyperpod-ns-research/train"


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


def versions(message):
    return [version["at"] for version in message["versions"]]


def answers(one, user):
    """What somebody was told, and when."""
    lines = one.of("slack", method="response_url")
    told_to = [r["path"].rpartition("/")[2] for r in one.run.rig.slack.responses]
    assert len(told_to) == len(lines)
    pairs = zip(told_to, lines, strict=True)
    return [(line["at"], line["payload"]["text"]) for to, line in pairs if to == user]


# --- flapping ------------------------------------------------------------------------------------


def test_six_hours_of_flapping_are_findings_each_time():
    # Seen from 10:00 to 10:10 and not from 10:12 to 10:22: opens 10:10, ends 10:20; again 24 min on.
    expected = []
    for number in range(SWINGS):
        begin = at("10:10") + 2 * number * SWING
        expected += [(iso(begin), "firing"), (iso(begin + timedelta(minutes=10)), "resolved")]
    assert told("flapping").found("at", "status") == expected
    assert expected[-1] == (stamp("15:56"), "resolved")


def test_six_hours_of_flapping_are_one_card_and_one_note():
    one = told("flapping")
    (card,) = one.messages
    (note,) = one.notes
    assert (card["channel"], card["posted_at"]) == (PLATFORM, stamp("10:10"))
    # The note of the second opening says from the third on that it flaps.
    assert (note["thread_ts"], note["broadcast"]) == (card["ts"], True)
    assert versions(note) == [stamp("10:34"), stamp("10:58")]
    assert "flapping" in shown(note).lower()


def test_a_card_that_flaps_says_so_and_is_edited_hourly_at_most():
    (card,) = told("flapping").messages
    flapping = [v for v in card["versions"] if stamp("10:58") <= v["at"] < stamp("16:56")]
    assert [version["at"] for version in flapping] == [
        stamp(f"{hour}:58") for hour in range(10, 16)
    ]
    # Openings at 10:10 and every 24 minutes: three by 10:58, fifteen by 15:58.
    for version, times in ((flapping[0], 3), (flapping[-1], 15)):
        text = shown({"versions": [version]})
        assert "*Flapping* since" in text
        assert "10:10 UTC" in text
        assert f"{times} times" in text


def test_flapping_ends_an_hour_after_the_last_change():
    (card,) = told("flapping").messages
    # The last end is at 15:56.
    assert versions(card)[-1] == stamp("16:56")
    assert "flapping" not in card["versions"][-1]["payload"]["text"].lower()
    assert "Resolved" in shown(card)
    assert "15:56" in shown(card)


# --- two events of one failure -------------------------------------------------------------------


def test_two_events_of_one_failure_are_one_finding_and_one_card():
    one = told("pair-of-events")
    # Seen by the events' snapshot at 10:01; ten minutes later is 10:11, and the next look 10:15.
    assert one.found("at", "status", "subject", "reason") == [
        (stamp("10:15"), "firing", NODE, "node_unhealthy")
    ]
    (card,) = one.messages
    assert (card["posted_at"], one.notes) == (stamp("10:15"), [])


def test_events_ask_for_snapshots_until_they_are_old():
    keys = told("pair-of-events").run.app.objects.objects
    taken = [key.rpartition("/")[2][9:15] for key in keys if key.startswith("snapshots/")]
    # The second event is newer than the snapshot of the first, and waits for its minute; at 10:41
    # the first is 40 minutes old.
    assert [when for when in taken if int(when[2:4]) % 5] == ["100100", "100200"]
    assert "104000" in taken


# --- snoozes -------------------------------------------------------------------------------------


def test_a_snooze_that_outlasts_its_condition_ends_without_a_word():
    one = told("snooze-outlasted")
    assert one.found("at", "status", "resolution") == [
        (stamp("10:00"), "firing", None),
        (stamp("13:10"), "resolved", "released"),
    ]
    (card,) = one.messages
    assert "Resolved" in shown(card)
    assert "13:10" in shown(card)
    # Snoozed until 14:00:30; the recording goes on to 14:10.
    assert max(call["at"] for call in one.of("slack")) == stamp("13:10")
    assert not any(note["broadcast"] for note in one.notes)


def test_a_snooze_shows_who_and_until_when():
    one = told("snooze-outlasted")
    (card,) = one.messages
    snoozed = {"versions": [v for v in card["versions"] if v["at"] == stamp("10:00:30")]}
    assert "ana" in shown(snoozed)
    assert "14:00" in shown(snoozed)
    assert [note["posted_at"] for note in one.notes] == [stamp("10:00:30"), stamp("13:10")]
    ((when, text),) = answers(one, "u0ana")
    assert when == stamp("10:00:30")
    assert "14:00" in text


def test_a_snooze_that_ends_over_its_condition_is_one_reminder():
    one = told("snooze-ends")
    # Until 11:02; the first look after it is at 11:05.
    assert [(note["posted_at"], note["broadcast"]) for note in one.notes] == [
        (stamp("10:02"), False),
        (stamp("11:05"), True),
    ]
    assert one.notes[1]["channel"] == RESEARCH
    (card,) = one.messages
    assert "Resolved" not in shown(card)
    assert one.found("at", "status") == [(stamp("10:00"), "firing")]


# --- two people ----------------------------------------------------------------------------------


def test_of_two_people_who_acknowledge_the_first_is_named():
    one = told("two-acknowledge")
    (note, *rest) = one.notes
    assert note["posted_at"] == stamp("10:02")
    assert "ana" in shown(note)
    # Somebody cared, so the end is told: gone from 10:28, last seen 10:25, ended 10:35.
    assert [other["posted_at"] for other in rest] == [stamp("10:35")]
    assert not any("bo" in shown(message).split() for message in (*one.messages, *one.notes))


def test_the_second_is_told_of_the_first():
    (when, text), _ = answers(told("two-acknowledge"), "u0bo")
    assert when == stamp("10:02:01")
    assert "ana" in text
    assert "10:02" in text


def test_a_press_that_slack_delivers_again_changes_nothing():
    one = told("two-acknowledge")
    (card,) = one.messages
    # Opened, acknowledged, ended.
    assert versions(card) == [stamp("10:00"), stamp("10:02"), stamp("10:35")]
    # Four seconds later the queue knows it again; ten minutes later it is answered as before.
    first, *again = answers(one, "u0ana")
    assert [when for when, _ in again] == [stamp("10:12")]
    assert {text for _, text in again} == {first[1]}


def test_a_press_on_a_card_that_is_over_says_so():
    *_, (when, text) = answers(told("two-acknowledge"), "u0bo")
    assert when == stamp("10:35:40")
    assert "over since" in text
    assert "10:35" in text
    assert told("two-acknowledge").calls()[-1]["at"] == stamp("10:35")


# --- commands ------------------------------------------------------------------------------------


def test_every_command_is_answered_at_once_and_to_whoever_typed_it():
    one = told("commands")
    given = [*(typed_at(number) for number in range(len(TYPED))), EVIDENCE]
    lines = one.of("slack", method="response_url")
    assert [line["at"] for line in lines] == [iso(when) for when in given]
    for line in lines:
        assert line["response"] == {"ok": True}
        assert line["channel"] is None
        assert line["payload"]["response_type"] == "ephemeral"
        assert line["payload"]["text"]
        assert "<!channel>" not in "\n".join(words(line["payload"]))


def test_a_command_answers_what_was_asked():
    one = told("commands")
    given = dict(zip((*TYPED, "evidence"), one.of("slack", method="response_url"), strict=True))
    said = {text: "\n".join(words(line["payload"])) for text, line in given.items()}
    assert "train" in said["why train"]
    assert "queue" in said["why train"]
    assert "research" in said["team research"]
    for text in ("help", "", "frobnicate <!channel>"):
        assert "/gpu" in said[text]
    assert "14:09" in said[TYPED[8]]  # four hours from 10:09
    assert "90d" in said[TYPED[9]]  # what can be written instead
    assert "0123456789" in said[TYPED[10]]


def test_only_the_snooze_changes_the_card():
    one = told("commands")
    (card,) = one.messages
    (note,) = one.notes
    assert versions(card) == [stamp("10:00"), stamp("10:09")]
    assert note["posted_at"] == stamp("10:09")


# --- the steward itself --------------------------------------------------------------------------


def test_a_cluster_that_cannot_be_read_is_a_card_and_no_finding():
    one = told("unreachable")
    (card,) = one.messages
    assert (card["channel"], card["posted_at"]) == (PLATFORM, stamp("10:15"))
    assert one.of("finding") == []
    assert one.lines[-1]["open"] == []
