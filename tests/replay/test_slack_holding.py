"""When people are told: nights, enough for one day, and nobody who answers; by hand.

The cases are in tests/alerting/holding.py: jobs that wait for queues that do not exist, each on a card
of its own.
"""

import pytest

from tests.alerting.holding import ONCALL, TOPIC
from tests.alerting.kit import RESEARCH
from tests.alerting.told import shown, told
from tests.queues.scene import stamp


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


def posted(one):
    """When each job's card was posted; those that were not are not there."""
    return {
        m["versions"][0]["payload"]["text"].partition(" job ")[2].split(" ")[0]: m["posted_at"]
        for m in one.messages
    }


# --- a page that nobody acknowledges -------------------------------------------------------------


@pytest.fixture
def pages():
    return told("page-unanswered")


def test_a_page_is_escalated_once_after_half_an_hour(pages):
    (copy,) = [message for message in pages.messages if message["channel"] == ONCALL]
    assert copy["posted_at"] == stamp("10:30")
    assert "unseen" in shown(copy)
    loud = [note for note in pages.notes if note["broadcast"]]
    assert [(note["channel"], note["posted_at"]) for note in loud] == [(RESEARCH, stamp("10:30"))]
    assert "<!here>" in shown(loud[0])


def test_the_pager_is_told_once(pages):
    (page,) = pages.of("page")
    assert (page["at"], page["topic_arn"]) == (stamp("10:30"), TOPIC)
    assert "unseen" in page["message"]


def test_what_was_acknowledged_or_does_not_page_is_not_escalated(pages):
    text = "\n".join(
        shown(m) for m in (*pages.messages, *pages.notes) if m["posted_at"] > stamp("10:06")
    )
    assert "known" not in text
    assert "quiet" not in text


def test_the_end_of_a_page_is_told_on_card_and_copy_and_in_the_thread(pages):
    # Gone from 11:04 on, last seen 11:00.
    ended = [m for m in pages.messages if "Resolved" in shown(m)]
    assert sorted(m["channel"] for m in ended) == sorted([RESEARCH, ONCALL])
    assert {m["versions"][-1]["at"] for m in ended} == {stamp("11:10")}
    assert pages.notes[-1]["posted_at"] == stamp("11:10")
    assert pages.notes[-1]["broadcast"] is False


# --- quiet hours ---------------------------------------------------------------------------------


def test_a_night_holds_new_cards_and_nothing_else():
    one = told("quiet-night")
    # Madrid is an hour ahead: 23:00 to 07:00 there is 22:00 to 06:00, its last minute included.
    assert posted(one) == {
        "before": stamp("21:50"),
        "pages": stamp("01:00", 1),
        "waits": stamp("06:10", 1),
    }


def test_a_card_from_before_the_night_is_edited_in_it():
    (card,) = [m for m in told("quiet-night").messages if m["posted_at"] == stamp("21:50")]
    assert stamp("00:30", 1) in [version["at"] for version in card["versions"]]


def test_a_card_that_waited_says_since_when():
    (card,) = [m for m in told("quiet-night").messages if m["posted_at"] == stamp("06:10", 1)]
    assert "23:00" in shown(card)
    assert "quiet hours" in shown(card).lower()


def test_a_night_changes_no_finding():
    one = told("quiet-night")
    assert one.found("at", "status") == [
        (stamp("21:50"), "firing"),
        (stamp("23:00"), "firing"),
        (stamp("23:00"), "firing"),
        (stamp("00:30", 1), "firing"),
        (stamp("01:00", 1), "firing"),
        # Gone from 01:55 on, last seen at 01:50.
        (stamp("02:00", 1), "resolved"),
    ]


# --- enough for one day --------------------------------------------------------------------------


def test_a_daily_cap_holds_what_is_too_much_until_the_next_day():
    # Two of research: 10:00 and 10:30. The third is over at 13:00; the fourth waits until midnight.
    assert posted(told("daily-cap")) == {
        "one": stamp("10:00"),
        "two": stamp("10:30"),
        "page": stamp("12:00"),
        "else": stamp("12:00"),
        "four": stamp("00:00", 1),
    }


def test_a_card_that_was_too_much_says_since_when_it_waited():
    (card,) = [m for m in told("daily-cap").messages if m["posted_at"] == stamp("00:00", 1)]
    assert "11:30" in shown(card)
