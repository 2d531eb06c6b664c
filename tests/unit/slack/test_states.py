"""How a card says where it stands: decisions, flapping, grouping, what it hides, buttons, notes."""

from typing import Any

import pytest

from local.standins.slack_blocks import check
from steward.cluster.policy import Severity
from steward.slack.buttons import card_of as pressed
from steward.slack.cards import render, render_text
from steward.slack.replies import reply
from tests.unit.alerts.nouns import KEY, a_finding, an_evaluation, fold
from tests.unit.alerts.test_grouping import node, waiting
from tests.unit.alerts.timeline import Timeline
from tests.unit.slack.test_cards import content, header, words
from tests.unit.slack.told import UNTOUCHED, card_of

STORY = ":warning: 1 of 8 GPUs idle · research · job sweep-a"
AT = "2026-11-05T12:03:00Z"
ANA: dict[str, Any] = {"user": "U1", "name": "ana", "at": AT, "until": None}
NOON = "<!date^1793880180^{date_short_pretty} {time}|2026-11-05 12:03 UTC>"


def second(message: dict[str, Any]) -> str:
    text: str = message["blocks"][1]["text"]["text"]
    return text


def actions(message: dict[str, Any]) -> list[str]:
    (block,) = [b for b in message["blocks"] if b["type"] == "actions"] or [{"elements": []}]
    return [element["action_id"] for element in block["elements"]]


def test_an_open_card_has_its_four_buttons_and_says_whose_they_are() -> None:
    message = render(content())
    assert actions(message) == ["acknowledge", "snooze", "exempt", "evidence"]
    (block,) = [b for b in message["blocks"] if b["type"] == "actions"]
    assert pressed(block["block_id"]) == ("ml-shared-01", "3f9a2c1b0d")
    values = [option["value"] for option in block["elements"][1]["options"]]
    assert values == ["1h", "4h", "monday"]
    check(message)


@pytest.mark.parametrize("block_id", ["", "card", "card/x", "other/c/1", "card//1"])
def test_a_press_on_another_block_is_on_no_card(block_id: str) -> None:
    assert pressed(block_id) is None


def test_an_acknowledged_card_says_by_whom_and_needs_no_such_button() -> None:
    message = render(content(acknowledged=ANA))
    assert second(message) == f":eyes: *Acknowledged* by ana {NOON}"
    assert actions(message) == ["snooze", "exempt", "evidence"]


def test_a_resolved_card_has_no_buttons() -> None:
    over = [an_evaluation("12:00", a_finding()), an_evaluation("12:10")]
    assert actions(render(content(*over, acknowledged=ANA))) == []


def test_a_snoozed_card_says_until_when() -> None:
    assert second(render(content(snoozed=ANA | {"until": AT}))) == (
        f":zzz: *Snoozed* by ana until {NOON}"
    )


def test_an_exemption_says_by_whom_why_and_until_when() -> None:
    over = [an_evaluation("12:00", a_finding()), an_evaluation("12:10")]
    told = content(
        *over, resolution="exempted", exempted={"name": "ana", "reason": "warm pool", "until": AT}
    )
    assert second(render(told)).endswith(f": exempted, by ana until {NOON}: warm pool")


def test_a_flapping_card_counts() -> None:
    told = content(flapping={"since": AT})
    told["running"]["openings"] = 5
    assert second(render(told)).startswith(f":left_right_arrow: *Flapping* since {NOON}: opened 5")


def test_what_was_held_back_says_why_and_is_not_called_late() -> None:
    held = {"why": "quiet_hours", "since": AT}
    message = render(content(held=held, delivered="2026-11-05T18:00:00Z"))
    assert second(message) == f":crescent_moon: Held back since {NOON}: quiet hours"
    assert "late" not in words(message)


def test_what_nobody_acknowledged_says_so() -> None:
    assert "escalated" in second(render(content(escalated=AT)))


def test_what_is_handed_over_is_neither_open_nor_resolved() -> None:
    message = render(content(state="handed_over", stale_since=AT))
    assert header(message).startswith(":grey_question: Not judged for a day: 1 of 8 GPUs idle")
    assert actions(message) == ["acknowledge", "snooze", "exempt", "evidence"]
    assert "*Do this*" not in words(message)


def test_owners_are_mentioned_only_where_the_delivery_says_so() -> None:
    assert "<@U0OWNER>" in words(render(content(mentions=["U0OWNER"])))
    assert "<@" not in words(render(content()))


def test_two_hundred_jobs_are_told_in_one_line_and_four_names() -> None:
    line = Timeline().play(an_evaluation("12:00", *(waiting(f"j{n:03}") for n in range(200))))
    message = render({**UNTOUCHED, **line.card.content})
    assert header(message) == (
        ":warning: Never starts, its queue does not exist: 800 GPUs · research · job j199 and 199 more"
    )
    assert "It is for the first of them; the others need the same." in words(message)
    listed = words(message).partition("*Also waiting for the same*\n")[2].splitlines()
    assert [row.partition(":")[0] for row in listed[:4]] == [
        f"• `Job/hyperpod-ns-research/j{n:03}`" for n in range(4)
    ]
    assert listed[4] == "• +195 more: press Show evidence"
    check(message)


def test_what_follows_from_it_is_named_on_it() -> None:
    hidden = {
        "detector": "capacity",
        "reason": "quota_above_capacity",
        "subject": "ResourceFlavor/p5",
    }
    alert = fold([an_evaluation("12:00", node("n1"))]).alerts["capacity|Node/n1|node_unhealthy"]
    told = words(render(card_of(alert, follows=[hidden])))
    assert "• capacity/quota_above_capacity: `ResourceFlavor/p5`" in told


def test_the_steward_speaks_of_itself() -> None:
    alert = fold([an_evaluation("12:00", a_finding(reason="cluster_unreachable", gpus=0.0))])
    told = card_of(next(iter(alert.alerts.values())))
    assert header(render(told)).startswith(":warning: Cluster cannot be read · research")


def note(kind: str, **changes: Any) -> dict[str, Any]:
    given = {
        "note": kind,
        "state": "note",
        "card": "3f9a2c1b0d",
        "cluster": "ml-shared-01",
        "at": AT,
        "name": "ana",
        "until": AT,
        "times": 3,
        "mention": None,
        "broadcast": False,
        "about": content(),
    }
    return given | changes


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (note("acknowledged"), f":eyes: *Acknowledged* by ana {NOON}"),
        (note("snoozed"), f":zzz: *Snoozed* by ana until {NOON}"),
        (note("resolved"), f":white_check_mark: *Resolved* {NOON}"),
        (
            note("snooze_ended", broadcast=True),
            f":alarm_clock: *The snooze has ended, and it is still so*\n{STORY}",
        ),
        (
            note("escalated", broadcast=True, mention="S0ONCALL", name=None),
            f"<!subteam^S0ONCALL> :rotating_light: *Nobody has acknowledged this page*\n{STORY}",
        ),
        (
            # An edit of a reply that the channel shows: without its subject nobody knows what flaps.
            note("flapping", broadcast=False, times=3),
            ":left_right_arrow: *Flapping*: it opens and ends again and again, 3 times by "  # noqa: ISC004
            f"{NOON}. The card stays open, and is edited at most once an hour, until it has come "
            f"to rest for an hour.\n{STORY}",
        ),
        (
            note("louder", broadcast=True, about=content(severity="page")),
            ":chart_with_upwards_trend: *It got worse* since ana decided about it\n"  # noqa: ISC004
            ":rotating_light: 1 of 8 GPUs idle · research · job sweep-a",
        ),
    ],
)
def test_a_note_is_one_line_and_what_the_channel_sees_stands_alone(
    told: dict[str, Any], line: str
) -> None:
    message = render(told)
    assert message["text"] == message["blocks"][0]["text"]["text"] == render_text(told) == line
    check(message)


@pytest.mark.parametrize(
    "kind", ["reopened", "flapping", "reminder", "handed_over", "snoozed", "resolved"]
)
def test_every_note_can_be_written_without_what_it_does_not_need(kind: str) -> None:
    check(render(note(kind, name=None, times=None)))


def test_a_copy_says_where_its_card_stands() -> None:
    told = content(note="copy", home={"channel": "C0RESEARCH", "ts": "1.1"})
    assert second(render(told)) == (
        "A copy: the card stands in <#C0RESEARCH>, where nobody has acknowledged it: answer there, or here."
    )
    known = content(note="copy", home={"channel": "C0RESEARCH", "ts": "1.1"}, acknowledged=ANA)
    assert second(render(known)) == "A copy: the card stands in <#C0RESEARCH>."


def test_no_name_of_a_person_speaks_through_a_note_or_an_answer() -> None:
    name = "<!channel> `x` a&b<c"
    told = [render(note(kind, name=name))["text"] for kind in ("acknowledged", "snoozed", "louder")]
    told.append(reply("already", card="c", name=name, at=AT, until=AT)["text"])
    told.append(reply("not_permitted", card=name, who=[name])["text"])
    told.append(reply("done_exempt", card="c", until=AT, reason=name)["text"])
    for text in told:
        assert "<!channel>" not in text
        assert "&lt;!channel&gt;" in text


@pytest.mark.parametrize("who", ["everyone", "U0 x", "<!here>", "C0CHANNEL", "u0abc"])
def test_only_ids_that_a_policy_can_name_are_mentioned(who: str) -> None:
    text = render(note("escalated", mention=who))["text"]
    assert "<@" not in text.replace(NOON, "")
    assert "<!here>" not in text


def test_a_severity_of_its_own_has_an_icon_of_its_own() -> None:
    for severity, icon in (
        (Severity.PAGE, ":rotating_light:"),
        (Severity.INFO, ":information_source:"),
    ):
        evaluation = an_evaluation("12:00", a_finding(severity=severity))
        assert header(render(content(evaluation, key=KEY))).startswith(icon)
