"""Who may exempt, and what nobody is told of for a while; by hand.

The case is in tests/alerting/exempting.py: Ana owns the team, Bo may exempt anything, Mallory nothing.
"""

import pytest

from tests.alerting.exempting import FIRST, SECOND
from tests.alerting.told import shown, told
from tests.queues.scene import stamp

TRAIN, TUNE = (f"Job/hyperpod-ns-research/{name}" for name in ("train", "tune"))


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


@pytest.fixture
def one():
    return told("exempt")


def card(one, short):
    (found,) = [message for message in one.messages if short in shown(message)]
    return found


def answers(one, user):
    taken = one.run.rig.slack.responses
    return [(r["at"], r["payload"]["text"]) for r in taken if r["path"].endswith(f"/{user}")]


def test_what_is_exempt_ends_at_once_and_stays_away(one):
    assert one.found("at", "status", "subject", "resolution") == [
        (stamp("10:00"), "firing", TRAIN, None),
        (stamp("10:00"), "firing", TUNE, None),
        (stamp("10:08"), "resolved", TRAIN, "exempted"),
        (stamp("10:21"), "resolved", TUNE, "exempted"),
    ]
    # The job that waits for the same queue from 10:15 on is none, and no card.
    assert len(one.messages) == 2
    assert one.lines[-1]["open"] == []


def test_a_card_says_who_exempted_it_why_and_until_when(one):
    text = shown(card(one, FIRST))
    assert "ana" in text
    assert "rerun for &lt;the paper&gt; &amp; co" in text
    assert "2026-11-12" in text  # seven days
    assert "bo" in shown(card(one, SECOND)).split()
    assert "2026-11-19" in shown(card(one, SECOND))  # two weeks


def test_each_change_is_one_edit(one):
    edits = {short: [v["at"] for v in card(one, short)["versions"]] for short in (FIRST, SECOND)}
    assert edits == {
        FIRST: [stamp("10:00"), stamp("10:08")],
        SECOND: [stamp("10:00"), stamp("10:21")],
    }


def test_each_press_of_exempt_opens_the_dialog(one):
    opened = one.of("slack", method="views.open")
    assert [line["at"] for line in opened] == [stamp("10:02"), stamp("10:07")]
    assert all(line["response"]["ok"] and line["channel"] is None for line in opened)
    assert {line["payload"]["view"]["callback_id"] for line in opened} == {"exempt"}


def test_whoever_may_not_changes_nothing_and_is_told_who_may(one):
    told_to = answers(one, "u0mallory")
    assert [when for when, _ in told_to if when < stamp("10:05")]
    refusals = [text for _, text in told_to if "research@example.com" in text]
    # By the dialog, and by the command.
    assert len(refusals) == 2
    assert not [call for call in one.calls() if stamp("10:00") < call["at"] < stamp("10:08")]
    assert not any("mallory" in shown(message) for message in one.messages)


def test_a_dialog_that_slack_delivers_twice_is_one_exemption(one):
    (when, text), *more = [a for a in answers(one, "u0ana") if a[0] >= stamp("10:08")]
    assert when == stamp("10:08")
    assert "2026-11-12" in text
    assert more == []
