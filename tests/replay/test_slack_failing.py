"""Slack that refuses, does not answer, or is away for a day; by hand.

The cases are in tests/alerting/failing.py. A job that waits for a queue that does not exist is told at
the first tick that sees it, on a card in its team's channel.
"""

import pytest

from tests.alerting.crowds import channel
from tests.alerting.failing import CHANNELS, CONTENT, CREDENTIALS, EDITS, POINTER, UNANSWERED
from tests.alerting.kit import PLATFORM
from tests.alerting.told import shown, told
from tests.queues.scene import stamp


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


def in_channel(one, team):
    return [call for call in one.calls() if call["channel"] == channel(team)]


def standing(one, team):
    return [message for message in one.messages if message["channel"] == channel(team)]


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("team", CONTENT)
def test_refused_content_goes_out_as_text_at_once(team):
    refused, sent = in_channel(told("slack-refuses"), team)
    assert (refused["at"], sent["at"]) == (stamp("10:00"), stamp("10:00"))
    assert refused["response"]["error"] == CONTENT[team]["body"]["error"]
    assert "blocks" in refused["payload"]
    assert "blocks" not in sent["payload"]
    for word in (f"team `{team}`", "job train", "8 GPUs", "kubectl -n hyperpod-ns-"):
        assert word in sent["payload"]["text"]


def test_the_refusal_is_printed_with_its_pointer():
    refused, _ = in_channel(told("slack-refuses"), "blocks")
    assert refused["response"]["response_metadata"]["messages"] == [POINTER]


@pytest.mark.parametrize("team", CHANNELS)
def test_a_closed_channels_card_goes_to_the_platform_channel_once_and_says_why(team):
    one = told("slack-refuses")
    # Tried once: the card has another place from then on.
    assert [call["at"] for call in in_channel(one, team)] == [stamp("10:00")]
    (card,) = [m for m in one.messages if f"Meant for #gpu-{team}," in shown(m)]
    assert (card["channel"], card["posted_at"]) == (PLATFORM, stamp("10:00"))
    assert CHANNELS[team]["body"]["error"] in shown(card)
    assert len(card["versions"]) == 1


def test_a_limited_channel_is_left_alone_until_the_next_run():
    # Retry-After 7: nothing more in this run, whose end cannot be waited for; the next is at 10:05.
    one = told("slack-refuses")
    calls = in_channel(one, "limited")
    assert [call["at"] for call in calls] == [stamp("10:00"), stamp("10:05")]
    (card,) = standing(one, "limited")
    assert "5 min late" in shown(card)


def test_nobody_else_is_held_up():
    # The last of nine in the order of their names, behind eight that were refused something.
    (call,) = in_channel(told("slack-refuses"), "zebra")
    assert (call["at"], call["response"]["ok"]) == (stamp("10:00"), True)


def test_each_refused_card_stands_once():
    one = told("slack-refuses")
    assert len(one.messages) == len(one.of("finding")) == 9
    assert len(one.calls()) == 9 + len(CONTENT) + len(CHANNELS) + 1


def test_a_token_that_is_refused_is_tried_once_a_run():
    one = told("slack-credentials")
    calls = [(call["at"], call["response"].get("error")) for call in one.calls()]
    tried = zip(("10:00", "10:05", "10:10", "10:15"), CREDENTIALS, strict=True)
    assert calls[:4] == [(stamp(when), code) for when, code in tried]
    assert calls[4:] == [(stamp("10:20"), None)] * 3
    assert {m["channel"] for m in one.messages} == {channel(t) for t in ("alpha", "beta", "gamma")}


@pytest.mark.parametrize("team", EDITS)
def test_a_card_that_cannot_be_edited_is_posted_anew_and_edited_there(team):
    first, refused, anew, edited = in_channel(told("slack-edits"), team)
    assert (first["method"], first["at"]) == ("chat.postMessage", stamp("10:00"))
    assert refused["method"] == "chat.update"
    assert refused["response"]["error"] == EDITS[team]["body"]["error"]
    assert refused["payload"]["ts"] == first["response"]["ts"]
    assert (anew["method"], anew["at"]) == ("chat.postMessage", stamp("10:05"))
    assert (edited["method"], edited["at"]) == ("chat.update", stamp("10:15"))
    assert edited["payload"]["ts"] == anew["response"]["ts"]
    assert edited["response"]["ok"] is True


# --- what is not answered ------------------------------------------------------------------------


@pytest.mark.parametrize("team", UNANSWERED)
def test_a_card_whose_answer_told_nothing_stands_once_at_the_end(team):
    assert len(standing(told("slack-unanswered"), team)) == 1


@pytest.mark.parametrize("number", range(3), ids=list(UNANSWERED)[:3])
def test_what_was_not_posted_is_posted_by_the_next_run(number):
    one, team = told("slack-unanswered"), list(UNANSWERED)[number]
    tried, posted = in_channel(one, team)
    minutes = 5 * number
    assert (tried["at"], tried["response"].get("ok")) == (stamp(f"10:{minutes:02}"), False)
    assert (posted["at"], posted["response"]["ok"]) == (stamp(f"10:{minutes + 5:02}"), True)


def test_what_was_posted_all_the_same_is_found_and_not_posted_again():
    # Posted at 10:15; the history shows it at 10:20.
    posts = [x for x in in_channel(told("slack-unanswered"), "lost") if "Message" in x["method"]]
    assert [call["at"] for call in posts] == [stamp("10:15")]
    (card,) = standing(told("slack-unanswered"), "lost")
    assert card["posted_at"] == stamp("10:15")


def test_a_duplicate_that_the_history_shows_later_is_taken_away():
    # Posted at 10:20, not shown at 10:25, so posted again; shown at 10:30.
    calls = in_channel(told("slack-unanswered"), "lost-for-long")
    assert [(call["method"], call["at"]) for call in calls] == [
        ("chat.postMessage", stamp("10:20")),
        ("chat.postMessage", stamp("10:25")),
        ("chat.delete", stamp("10:30")),
    ]
    (card,) = standing(told("slack-unanswered"), "lost-for-long")
    assert card["posted_at"] == stamp("10:25")


def test_the_history_is_asked_before_every_second_post():
    one = told("slack-unanswered")
    for team in UNANSWERED:
        methods = [x["method"] for x in one.of("slack", channel=channel(team))]
        first, second, *_ = methods
        assert (first, second) == ("chat.postMessage", "conversations.history")


# --- a day without Slack -------------------------------------------------------------------------


def test_after_a_day_without_slack_each_card_is_right_and_there_once():
    one = told("slack-away")
    cards = {name: m for name in ("early", "ended", "short", "long") for m in one.messages
             if f"waits-{name}" in shown(m)}  # fmt: skip
    assert len(one.messages) == len(cards) == 4
    assert one.notes == []
    for name in ("early", "long"):
        assert "Resolved" not in shown(cards[name])
    # Gone from 11:55 and 14:55 on, last seen the hour before.
    for name, when in (("ended", "12:00"), ("short", "15:00")):
        assert "Resolved" in shown(cards[name])
        assert when in shown(cards[name])
    # Two were there before, and two came at once when Slack did.
    assert {cards[name]["posted_at"] for name in ("early", "ended")} == {stamp("08:00")}
    assert {cards[name]["posted_at"] for name in ("short", "long")} == {stamp("09:00", 1)}


def test_a_slack_that_is_away_is_asked_twice_a_run():
    one = told("slack-away")
    failed = [line["at"] for line in one.of("slack") if line["response"].get("status") == 503]
    assert failed
    assert all(failed.count(when) <= 2 for when in failed)
    assert max(failed) == stamp("08:00", 1)


def test_slack_changes_no_finding():
    one = told("slack-away")
    assert one.found("at", "status", "subject") == [
        (stamp("08:00"), "firing", "Job/hyperpod-ns-research/waits-early"),
        (stamp("08:00"), "firing", "Job/hyperpod-ns-research/waits-ended"),
        (stamp("10:00"), "firing", "Job/hyperpod-ns-research/waits-long"),
        (stamp("10:00"), "firing", "Job/hyperpod-ns-research/waits-short"),
        (stamp("12:00"), "resolved", "Job/hyperpod-ns-research/waits-ended"),
        (stamp("15:00"), "resolved", "Job/hyperpod-ns-research/waits-short"),
    ]
