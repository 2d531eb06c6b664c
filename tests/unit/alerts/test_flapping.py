"""A condition that comes and goes: one card, re-opened in place, and then one word for all of it."""

from datetime import datetime, timedelta
from typing import Any

from steward.alerts.actions import ActionKind
from steward.cluster.findings import Finding, Resolution
from steward.cluster.policy import Severity
from tests.builders import at
from tests.unit.alerts.nouns import a_finding, an_evaluation, lost_telemetry
from tests.unit.alerts.timeline import Timeline, every


def node(**changes: Any) -> Finding:
    given: dict[str, Any] = {
        "detector": "capacity",
        "subject": "Node/n1",
        "reason": "node_unhealthy",
        "team": None,
    }
    return lost_telemetry(**(given | {"one_reason": True, "evidence": {}} | changes))


def swinging(begin: datetime, end: datetime, half: int = 12, **changes: Any) -> Timeline:
    """A node that is unhealthy for `half` minutes and then healthy for as long, seen every five."""
    line = Timeline()
    for now in every(5, begin, end):
        bad = ((now - begin) // timedelta(minutes=half)) % 2 == 0
        line.play(an_evaluation(now, *([node(**changes)] if bad else [])))
    return line


def test_what_comes_back_within_the_hour_opens_its_card_again_and_says_so_once() -> None:
    line = Timeline().play(
        an_evaluation("12:00", a_finding()),
        an_evaluation("12:10"),  # unseen for ten minutes: resolved
        an_evaluation("13:00", a_finding()),
        an_evaluation("13:05", a_finding()),
    )
    assert line.card.content["state"] == "open"
    assert line.notes == [("reopened", "13:00")]
    assert line.loud == ["reopened"]  # an edit alone would tell nobody


def test_six_hours_of_swings_are_one_card_and_one_note() -> None:
    # Seen for ten minutes in two swings of five only: it opens at 12:10, 12:35, 14:10, 14:35, 16:10,
    # 16:35. Between them it is seen and does not open: nor has it come to rest.
    line = swinging(at("12:00"), at("18:00"))
    assert [f"{t:%H:%M}" for t in line.card.openings] == [
        "12:10",
        "12:35",
        "14:10",
        "14:35",
        "16:10",
        "16:35",
    ]
    assert len(line.posts) == 2  # the card, and one note below it
    assert [kind for kind, _ in line.notes] == ["flapping"]
    assert line.card.content["flapping"] == {"since": "2026-11-05T12:10:00Z"}
    assert line.card.content["state"] == "open"


def test_while_it_flaps_a_swing_is_no_edit() -> None:
    line = swinging(at("12:00"), at("18:00"))
    card = [edit for edit in line.edits if "#" not in edit]
    # Resolved 12:20, open 12:35, resolved 12:45, flapping 14:10; then its numbers once an hour.
    assert len(card) <= 4 + 3


def test_an_hour_without_a_sign_of_it_ends_it_with_what_is_true_then() -> None:
    line = swinging(at("12:00"), at("14:45"))
    assert line.card.openings[-1] == at("14:35")  # last seen then, resolved at 14:45
    line.play(*(an_evaluation(now) for now in every(5, at("14:50"), at("15:40"))))
    assert (line.card.content["flapping"] is None, line.card.content["state"]) == (False, "open")
    line.play(an_evaluation("15:45"))
    assert (line.card.content["flapping"], line.card.content["state"]) == (None, "resolved")
    assert line.card.content["resolved"] == "2026-11-05T14:45:00Z"


def test_what_stays_for_an_hour_is_open_and_no_longer_flaps() -> None:
    line = swinging(at("12:00"), at("14:10"))
    line.play(*(an_evaluation(now, node()) for now in every(5, at("14:15"), at("15:05"))))
    assert line.card.content["flapping"] is not None
    line.play(an_evaluation("15:10", node()))
    assert (line.card.content["flapping"], line.card.content["state"]) == (None, "open")


def test_an_acknowledgement_outlives_the_swings_and_ends_with_a_real_reopening() -> None:
    line = Timeline().play(an_evaluation("12:00", a_finding()))
    line.press(ActionKind.ACKNOWLEDGE, "12:01")
    line.play(an_evaluation("12:10"))
    assert line.card.content["acknowledged"] is not None  # who knew of it stays written
    line.play(an_evaluation("12:30", a_finding()))
    assert line.card.acknowledged is None
    assert line.loud == ["reopened"]


def test_what_gets_worse_while_it_flaps_is_shown() -> None:
    line = swinging(at("12:00"), at("14:10"))
    assert line.card.content["flapping"] is not None
    line.play(an_evaluation("14:15", node(severity=Severity.PAGE)))
    assert line.card.severity == "page"


def test_an_exemption_ends_it_at_once() -> None:
    line = swinging(at("12:00"), at("14:10"))
    line.press(ActionKind.EXEMPT, "14:11", span="1d")
    line.play(an_evaluation("14:15", node()))
    assert line.card.content["resolution"] == Resolution.EXEMPTED
    assert line.card.content["state"] == "resolved"
    assert line.card.content["exempted"] == {
        "name": "ana",
        "reason": "known",
        "until": "2026-11-06T14:11:00Z",
    }


def test_what_comes_back_as_digest_material_opens_no_card_again() -> None:
    quiet = a_finding(severity=Severity.INFO)
    line = Timeline().play(an_evaluation("12:00", a_finding()), an_evaluation("12:10"))
    line.play(an_evaluation("12:30", quiet))
    assert (line.card.content["state"], line.notes) == ("resolved", [])
    line.play(an_evaluation("12:35", a_finding()))  # and loud again, within the hour
    assert (line.card.content["state"], line.notes) == ("open", [("reopened", "12:35")])
