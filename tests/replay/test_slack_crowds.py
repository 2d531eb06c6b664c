"""Much at once, and names that nobody would choose; by hand.

The cases are in tests/alerting/crowds.py: jobs that wait for queues that do not exist.
"""

import re

import pytest

from tests.alerting.crowds import FINDINGS, HOSTILE, JOBS, TEAMS, URGENT, channel
from tests.alerting.kit import RESEARCH
from tests.alerting.told import shown, told
from tests.queues.scene import stamp


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


def test_each_of_120_teams_has_one_card_in_its_channel():
    one = told("teams-120")
    assert len(one.of("finding")) == len(TEAMS) == 120
    assert sorted(m["channel"] for m in one.messages) == sorted(map(channel, TEAMS))
    assert {m["posted_at"] for m in one.messages} == {stamp("10:00")}
    for team in TEAMS:
        (card,) = [m for m in one.messages if m["channel"] == channel(team)]
        assert team in shown(card)


def test_120_cards_that_do_not_change_are_posted_and_left_alone():
    calls = told("teams-120").of("slack")
    assert {call["method"] for call in calls} == {"chat.postMessage"}
    assert len(calls) == 120


def test_the_most_severe_of_60_come_first():
    posts = told("findings-60").calls()
    assert len(posts) == FINDINGS
    names = [re.search(r"job-\d\d", post["payload"]["text"])[0] for post in posts]
    urgent = [f"job-{number:02}" for number in range(FINDINGS - URGENT, FINDINGS)]
    assert sorted(names[:URGENT]) == urgent
    assert sorted(names) == [f"job-{number:02}" for number in range(FINDINGS)]


def test_200_jobs_with_one_wrong_queue_are_one_card():
    one = told("jobs-200")
    assert len(one.of("finding")) == JOBS
    (card,) = one.messages
    assert card["channel"] == RESEARCH
    assert len(card["versions"]) == 1
    text = shown(card)
    # One is named, and how many more there are; each waits for one GPU.
    assert "and 199 more" in text
    assert "200 GPUs" in text
    assert "gone" in text  # the name that is wrong


# --- names ---------------------------------------------------------------------------------------

ENTITY = re.compile(r"&(?:amp|lt|gt);")
ALLOWED = re.compile(r"<!date\^\d+\^[^<>|]*\|[^<>|]*>")
"""The one thing in angle brackets that a card writes itself: a time in the reader's zone."""


@pytest.fixture(scope="module")
def cards():
    return told("hostile-names").messages


def test_every_name_gets_its_card(cards):
    assert len(cards) == len(HOSTILE)
    one = told("hostile-names")
    assert [call["response"]["ok"] for call in one.calls()] == [True] * len(HOSTILE)
    assert all("blocks" in call["payload"] for call in one.calls())


def test_no_name_mentions_anybody_or_links_anywhere(cards):
    for card in cards:
        left = ALLOWED.sub("", shown(card))
        assert "<" not in left
        assert "&" not in ENTITY.sub("", left)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("<!channel>", "&lt;!channel&gt;"),
        ("a&b<c", "a&amp;b&lt;c"),
        ("&amp;lt;", "&amp;amp;lt;"),
        ("équipe-β", "équipe-β"),
        ("チーム-研究-训练", "チーム-研究-训练"),
        ("فريق-البحث", "فريق-البحث"),
    ],
)
def test_a_name_reads_as_it_was_given(cards, name, written):
    (card,) = [card for card in cards if f"{HOSTILE.index(name)}-{written}" in shown(card)]
    assert written in shown(card)


def test_a_name_of_63_characters_is_not_cut(cards):
    assert len(HOSTILE[9]) == 63
    assert any(HOSTILE[9] in shown(card) for card in cards)


def test_no_name_turns_the_line_around(cards):
    assert not any("\u202e" in shown(card) for card in cards)
