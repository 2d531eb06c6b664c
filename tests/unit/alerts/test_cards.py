"""Which card an alert is on, where it goes, and which changes are worth an edit."""

from copy import replace
from datetime import timedelta
from typing import Any

import pytest

from steward.alerts import cards as layout
from steward.alerts.cards import by_urgency, route
from steward.alerts.model import Attempt, Card, CardKind, Posted, ReconcilerState
from steward.alerts.revisions import revision
from steward.cluster.findings import Evaluation, Resolution
from steward.cluster.policy import ClusterPolicy, Severity
from tests.builders import NOON, a_cluster, a_team, at
from tests.unit.alerts.nouns import (
    SUBJECT,
    a_finding,
    an_evaluation,
    ended,
    failed,
    fold,
    lost_telemetry,
)

CARD = f"job|{SUBJECT}|20261105T120000Z"
CLUSTER = a_cluster()


def lay_out(state: ReconcilerState, cluster: ClusterPolicy) -> dict[str, Card]:
    """The cards alone, laid out at the time of the last evaluation."""
    assert state.at is not None
    laid = layout.lay_out(state, cluster, state.at)
    return {key: card for key, card in laid.items() if card.kind is CardKind.CARD}


def laid_out(*evaluations: Evaluation, cards: dict[str, Card] | None = None) -> dict[str, Card]:
    """Cards after a timeline, laid out at each step as the reconciler does."""
    state = ReconcilerState(cluster="ml-shared-01", cards=cards or {})
    for evaluation in evaluations:
        state = fold([evaluation], CLUSTER, state)
        state = replace(state, cards=lay_out(state, CLUSTER))
    return state.cards


def shown(card: Card, when: str) -> Card:
    """The card as recorded after its delivery."""
    return replace(
        card,
        delivered=card.desired,
        delivered_at=at(when),
        posted=Posted(channel=card.channel, ts="1.1"),
        closed=card.content["state"] == "resolved",
    )


ATTEMPT = Attempt(cluster="c", card=CARD, channel="C0RESEARCH", revision="r", id="i", at=NOON)
SEEN = an_evaluation("12:00", a_finding())
FIRST = laid_out(SEEN)[CARD]


def next_card(after_minutes: int, *findings: Any, **changes: Any) -> Card:
    """The delivered card of noon, laid out again after the next evaluation."""
    state = fold([SEEN])
    state = replace(state, cards={CARD: shown(FIRST, "12:00")})
    evaluation = an_evaluation(NOON + timedelta(minutes=after_minutes), *findings, **changes)
    return lay_out(fold([evaluation], CLUSTER, state), CLUSTER)[CARD]


def test_a_card_is_named_by_its_problem_and_incident() -> None:
    assert (FIRST.key, FIRST.channel, FIRST.severity) == (CARD, "C0RESEARCH", "warn")
    assert (FIRST.delivered, FIRST.closed) == (None, False)


def test_info_alone_is_digest_material() -> None:
    assert laid_out(an_evaluation("12:00", a_finding(severity=Severity.INFO))) == {}


def test_a_card_follows_its_alert_even_where_that_becomes_info() -> None:
    card = next_card(5, a_finding(severity=Severity.INFO))
    assert (card.severity, card.desired != card.delivered) == ("info", True)


def test_an_info_alert_that_grows_loud_gets_its_card_then() -> None:
    quiet = an_evaluation("12:00", a_finding(severity=Severity.INFO))
    assert list(laid_out(quiet, an_evaluation("12:05", a_finding()))) == [CARD]


def test_a_damped_alert_has_no_card() -> None:
    assert laid_out(an_evaluation("12:00", lost_telemetry())) == {}


def test_telemetry_goes_to_the_platform_channel_whatever_the_team() -> None:
    assert route(lost_telemetry(team="research"), CLUSTER) == "C0PLATFORM1"
    assert route(a_finding(), CLUSTER) == "C0RESEARCH"


@pytest.mark.parametrize("team", [None, "unknown-team", "silent"])
def test_without_a_team_channel_the_platform_team_is_told(team: str | None) -> None:
    cluster = a_cluster(teams=(a_team("silent", channel=None),))
    assert route(a_finding(team=team), cluster) == "C0PLATFORM1"


def test_telemetry_is_one_card_a_reason() -> None:
    pods = [lost_telemetry(subject=f"Cluster/{n}", damping_minutes=0) for n in "ab"]
    other = lost_telemetry(reason="no_telemetry", damping_minutes=0)
    cards = laid_out(an_evaluation("12:00", *pods, other))
    assert [key.rpartition("|")[0] for key in cards] == [
        "telemetry|no_telemetry",
        "telemetry|telemetry_lost",
    ]
    lost = cards["telemetry|telemetry_lost|20261105T120000Z"].content
    assert (lost["subjects"], lost["group_gpus"]) == (2, 4)  # two GPUs each
    assert [member["subject"] for member in lost["members"]] == ["Cluster/a"]


def test_running_numbers_alone_wait_an_hour_after_the_delivery() -> None:
    grown = a_finding(gpu_hours=3.9, cost_usd=31.2)
    assert next_card(59, grown) == shown(FIRST, "12:00")
    card = next_card(60, grown)
    assert card.desired != card.delivered
    assert card.content["running"]["gpu_hours"] == 3.9


def test_a_card_whose_numbers_stand_still_is_not_edited_however_long_it_stays() -> None:
    lost = lost_telemetry(damping_minutes=0)
    (first,) = laid_out(an_evaluation("12:00", lost)).values()
    cards = {first.key: shown(first, "12:00")}
    assert (
        laid_out(an_evaluation("12:00", lost), an_evaluation("19:00", lost), cards=cards) == cards
    )
    drifted = replace(lost, evidence={**lost.evidence, "judged_gpus": 16, "share": 0.125})
    for when, edited in (("12:55", False), ("13:00", True)):
        card = laid_out(an_evaluation("12:00", lost), an_evaluation(when, drifted), cards=cards)
        assert (card != cards) is edited


def test_measurements_of_the_window_are_running_numbers() -> None:
    drifted = {**a_finding().evidence, "coverage": 0.95, "samples": {"present": 57, "expected": 60}}
    assert next_card(5, a_finding(evidence=drifted)) == shown(FIRST, "12:00")


@pytest.mark.parametrize(
    "change",
    [
        {"severity": Severity.PAGE},
        {"gpus": 2},
        {"action": "kubectl -n hyperpod-ns-research scale deployment/sweep-a --replicas=0"},
        {"since": at("08:00")},
        {"evidence": {**a_finding().evidence, "busy": 6}},
    ],
)
def test_anything_else_is_shown_at_once_with_the_newest_numbers(change: dict[str, Any]) -> None:
    card = next_card(5, a_finding(gpu_hours=3.1, **change))
    assert card.desired != card.delivered
    assert card.content["running"]["gpu_hours"] == 3.1


def test_an_undelivered_card_always_carries_the_newest_numbers() -> None:
    card = laid_out(SEEN, an_evaluation("12:05", a_finding(gpu_hours=3.1)))[CARD]
    assert card.content["running"]["gpu_hours"] == 3.1


def test_a_clearing_alert_is_not_yet_news() -> None:
    assert next_card(5) == shown(FIRST, "12:00")


def test_the_end_is_shown_with_its_reason_and_final_numbers() -> None:
    final = a_finding().evidence | {"idle_until": "2026-11-05T12:03:00Z"}
    card = next_card(10, cleared=(ended(gpu_hours=3.05, evidence=final),))
    told = card.content
    assert (told["state"], told["resolution"]) == ("resolved", Resolution.ACTIVE_AGAIN)
    assert told["running"]["gpu_hours"] == 3.05
    assert told["running"]["as_of"] == "2026-11-05T12:03:00Z"  # to the last sample, not the tick
    assert told["resolved"] == "2026-11-05T12:10:00Z"


def test_a_closed_card_is_left_alone() -> None:
    over = [SEEN, an_evaluation("12:10")]
    closed = shown(laid_out(*over)[CARD], "12:10")
    state = replace(fold(over), cards={CARD: closed})
    state = fold([an_evaluation("13:15", a_finding())], CLUSTER, state)
    cards = lay_out(state, CLUSTER)
    assert cards[CARD] is closed
    quiet = fold([an_evaluation("15:00")], CLUSTER, replace(fold(over), cards={CARD: closed}))
    assert lay_out(quiet, CLUSTER)[CARD] is closed  # nor do its numbers ever refresh
    # The same problem more than an hour later is a new incident and hence a new card.
    assert list(cards) == [CARD, f"job|{SUBJECT}|20261105T131500Z"]


def test_a_new_reason_edits_the_same_card_and_keeps_what_was() -> None:
    held = a_finding(reason="idle_held", gpu_hours=3.5)
    card = next_card(30, held)
    assert card.posted == Posted(channel="C0RESEARCH", ts="1.1")
    assert (card.content["state"], card.content["reason"]) == ("open", "idle_held")
    assert [(o["reason"], o["gpu_hours"]) for o in card.content["others"]] == [("idle", 3.0)]


@pytest.mark.parametrize("reason", ["idle", "idle_held"])
def test_a_card_whose_end_was_shown_opens_again_within_the_hour(reason: str) -> None:
    over = [SEEN, an_evaluation("12:10")]
    state = replace(fold(over), cards={CARD: shown(laid_out(*over)[CARD], "12:10")})
    state = fold([an_evaluation("13:10", a_finding(reason=reason))], CLUSTER, state)
    card = lay_out(state, CLUSTER)[CARD]
    assert (card.closed, card.content["state"]) == (False, "open")
    assert card.openings == (at("12:00"), at("13:10"))


def test_a_stale_alert_says_since_when_it_could_not_be_judged() -> None:
    dark = [failed(t) for t in ("12:05", "12:10", "12:15", "12:20")]
    card = laid_out(SEEN, *dark)[CARD]
    assert card.content["stale_since"] == "2026-11-05T12:05:00Z"
    assert card.content["running"]["as_of"] == "2026-11-05T12:00:00Z"
    assert laid_out(SEEN, *dark[:3])[CARD].content["stale_since"] is None


@pytest.mark.parametrize(
    ("change", "channel"),
    [
        ({}, "C0ELSEWHERE"),  # nothing sent yet: the policy of today decides
        ({"posted": Posted(channel="C0RESEARCH", ts="1.1")}, "C0RESEARCH"),
        ({"rerouted": "#gpu-research is archived"}, "C0RESEARCH"),
        (
            {"intent": ATTEMPT},
            "C0RESEARCH",  # it may be there already
        ),
        ({"doubtful": (ATTEMPT,)}, "C0RESEARCH"),  # likewise
    ],
)
def test_a_cards_channel_never_changes_once_something_was_sent(
    change: dict[str, Any], channel: str
) -> None:
    team = a_team(channel=replace(a_team().channel, id="C0ELSEWHERE"))  # type: ignore[arg-type]
    state = replace(fold([SEEN]), cards={CARD: replace(FIRST, **change)})
    evaluation = an_evaluation("12:05", a_finding(severity=Severity.PAGE))
    cluster = a_cluster(teams=(team,))
    assert lay_out(fold([evaluation], cluster, state), cluster)[CARD].channel == channel


def test_cards_go_out_most_severe_first_then_in_order_of_detection() -> None:
    def card(severity: str, detected: str) -> Card:
        content = {"detected": f"2026-11-05T{detected}:00Z"}
        return Card(
            key=severity + detected, channel="C", severity=severity, content=content, desired="r"
        )

    cards = [
        card("warn", "10:00"),
        card("page", "11:00"),
        card("info", "09:00"),
        card("page", "10:30"),
    ]
    assert [c.key for c in by_urgency(cards)] == [
        "page10:30",
        "page11:00",
        "warn10:00",
        "info09:00",
    ]


def test_long_lists_are_cut_and_what_is_left_out_is_counted() -> None:
    devices = [{"node": "n", "uuid": f"GPU-{n}"} for n in range(700)]
    evidence = {**a_finding().evidence, "accelerators": devices}
    content = laid_out(an_evaluation("12:00", a_finding(evidence=evidence)))[CARD].content
    assert (len(content["evidence"]["accelerators"]), content["omitted"]) == (
        20,
        {"accelerators": 680},
    )


def test_equal_facts_have_equal_revisions_whatever_their_order() -> None:
    assert revision({"a": 1, "b": [2]}) == revision({"b": [2], "a": 1})
    assert revision({"a": 1}) != revision({"a": 2})


def test_a_card_that_lost_its_alerts_is_ended_not_left_open() -> None:
    # A save was cut short and its message never came back: the card is there, its alert is not.
    state = ReconcilerState(cluster="ml-shared-01", at=at("12:30"))
    posted = lay_out(replace(state, cards={CARD: shown(FIRST, "12:00")}), CLUSTER)[CARD]
    assert (posted.content["state"], posted.content["resolution"]) == ("resolved", "expired")
    assert posted.desired != posted.delivered
    assert lay_out(replace(state, cards={CARD: FIRST}), CLUSTER) == {}  # nobody has seen that one


def test_an_end_not_yet_delivered_outlives_its_alert() -> None:
    over = laid_out(SEEN, an_evaluation("12:10"))
    state = ReconcilerState(cluster="ml-shared-01", at=at("12:30"), cards=over)
    assert lay_out(state, CLUSTER) == over


def test_an_alert_that_ends_before_its_card_was_stored_gets_one_that_says_so() -> None:
    # The step that opened it stored the alert, then the process died before the card.
    state = fold([an_evaluation("12:10")], CLUSTER, fold([SEEN]))
    assert lay_out(state, CLUSTER)[CARD].content["state"] == "resolved"
    later = fold([an_evaluation("12:15")], CLUSTER, state)
    assert lay_out(later, CLUSTER) == {}  # long over: no news


def test_closed_cards_are_kept_thirty_days() -> None:
    closed = shown(laid_out(SEEN, an_evaluation("12:10"))[CARD], "12:10")
    for minutes, kept in ((0, True), (5, False)):
        moment = at("12:10") + timedelta(days=30, minutes=minutes)
        state = ReconcilerState(cluster="ml-shared-01", at=moment, cards={CARD: closed})
        assert (CARD in lay_out(state, CLUSTER)) is kept
