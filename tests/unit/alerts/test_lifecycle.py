"""Timelines of 5 November, each state derived by hand from the rules in minutes."""

from copy import replace
from datetime import timedelta
from typing import Any

import pytest

from steward.alerts.model import Alert, AlertState, ReconcilerState
from steward.cluster.findings import DetectorStatus, Evaluation, Resolution
from steward.cluster.policy import ClusterPolicy, Exemption, Severity
from tests.builders import NOON, a_cluster, a_team, at
from tests.unit.alerts.nouns import (
    JUDGED,
    KEY,
    SUBJECT,
    a_finding,
    after,
    an_evaluation,
    an_unknown,
    ended,
    failed,
    fold,
    lost_telemetry,
)

LOST = "telemetry|Cluster/ml-shared-01|telemetry_lost"
SEEN = an_evaluation("12:00", a_finding())


def exempt(until: str) -> ClusterPolicy:
    promise = Exemption(
        detector="idle_gpus",
        subject="PyTorchJob/hyperpod-ns-research/*",
        reason="benchmarks",
        author="lead@example.com",
        until=at(until),
    )
    return a_cluster(teams=(a_team(exemptions=(promise,)),))


def test_an_undamped_finding_opens_at_the_evaluation_that_first_shows_it() -> None:
    alert = after(SEEN)
    assert (alert.state, alert.opened, alert.incident) == (AlertState.OPEN, NOON, NOON)
    assert alert.finding.since == at("09:00")  # when it began, not when it was seen


def test_a_damped_finding_opens_once_it_has_lasted_its_minutes() -> None:
    ticks = [an_evaluation(t, lost_telemetry()) for t in ("12:00", "12:05", "12:10")]
    assert [after(*ticks[:n], key=LOST).state for n in (1, 2, 3)] == ["damped", "damped", "open"]
    assert after(*ticks, key=LOST).opened == at("12:10")


def test_damping_counts_minutes_not_evaluations() -> None:
    gap = [an_evaluation("12:00", lost_telemetry()), an_evaluation("15:00", lost_telemetry())]
    assert after(*gap, key=LOST).opened == at("15:00")  # two looks, three hours: long enough
    rush = [an_evaluation(NOON + timedelta(minutes=n), lost_telemetry()) for n in range(10)]
    assert after(*rush, key=LOST).state == "damped"  # ten looks, nine minutes: not yet


def test_a_damped_finding_that_is_absent_while_judged_leaves_nothing() -> None:
    state = fold([an_evaluation("12:00", lost_telemetry()), an_evaluation("12:05")])
    assert state.alerts == {}


def test_a_damped_finding_that_cannot_be_judged_keeps_its_first_sight() -> None:
    blind = {**JUDGED, "telemetry": DetectorStatus.FAILED}
    alert = after(
        an_evaluation("12:00", lost_telemetry()),
        an_evaluation("12:05", detectors=blind),
        an_evaluation("12:10", lost_telemetry()),
        key=LOST,
    )
    assert (alert.state, alert.opened) == (AlertState.OPEN, at("12:10"))


def test_absence_resolves_after_ten_minutes_unseen() -> None:
    clearing = after(SEEN, an_evaluation("12:05"))
    assert (clearing.state, clearing.clearing) == (AlertState.OPEN, Resolution.RELEASED)
    alert = after(SEEN, an_evaluation("12:05"), an_evaluation("12:10"))
    assert (alert.state, alert.resolved) == (AlertState.RESOLVED, at("12:10"))


def test_one_absence_after_hours_of_silence_resolves() -> None:
    # Unseen for three hours is more than ten minutes, however few evaluations there were.
    assert after(SEEN, an_evaluation("15:00")).resolved == at("15:00")


def test_absences_closer_than_ten_minutes_do_not_add_up_to_more() -> None:
    looks = [an_evaluation(NOON + timedelta(minutes=n)) for n in range(1, 10)]
    assert after(SEEN, *looks).state is AlertState.OPEN


def test_a_finding_that_comes_back_while_clearing_stays_the_same_alert() -> None:
    alert = after(SEEN, an_evaluation("12:05"), an_evaluation("12:10", a_finding(gpu_hours=3.2)))
    assert (alert.state, alert.opened, alert.clearing) == (AlertState.OPEN, NOON, None)
    assert alert.finding.gpu_hours == 3.2


def test_the_end_and_its_final_numbers_are_the_detectors() -> None:
    # 12:00 showed 3.0 GPU-h; the last idle sample turned out to lie three minutes later.
    over = an_evaluation("12:10", cleared=(ended(gpu_hours=3.05, cost_usd=24.4),))
    alert = after(SEEN, replace(over, at=at("12:05")), over)
    assert alert.resolution is Resolution.ACTIVE_AGAIN
    assert (alert.finding.gpu_hours, alert.finding.cost_usd) == (3.05, 24.4)


def test_the_reason_for_the_end_survives_the_evaluation_that_told_it() -> None:
    alert = after(SEEN, an_evaluation("12:05", cleared=(ended(),)), an_evaluation("12:10"))
    assert alert.resolution is Resolution.ACTIVE_AGAIN


def test_the_repeated_end_of_an_earlier_incident_does_not_close_the_books_of_the_next() -> None:
    # The first stretch began at 09:00 and its end is still repeated; the second began at 11:00.
    earlier = ended(gpu_hours=1.5)
    later = ended(Resolution.RELEASED, since=at("11:00"), gpu_hours=1.1)
    over = an_evaluation("12:10", cleared=(later, earlier))
    alert = after(an_evaluation("12:00", a_finding(since=at("11:00"))), over)
    assert (alert.resolution, alert.finding.gpu_hours) == (Resolution.RELEASED, 1.1)


@pytest.mark.parametrize(
    ("finding", "resolution"),
    [
        (a_finding(), Resolution.RELEASED),  # the job has left the readable inventory
        (
            lost_telemetry(damping_minutes=0),
            Resolution.FIXED,
        ),  # the set-up stays; somebody mended it
    ],
)
def test_without_a_told_end_the_kind_of_subject_decides(
    finding: Any, resolution: Resolution
) -> None:
    timeline = [an_evaluation("12:00", finding), an_evaluation("12:10")]
    assert after(*timeline, key=finding.key).resolution is resolution


@pytest.mark.parametrize(
    "dark",
    [
        {"detectors": {**JUDGED, "idle_gpus": DetectorStatus.FAILED}},
        {"detectors": {}},  # the detector was not run at all
        {"unknown": (an_unknown(subject="kubernetes/pods", blind=True),)},
        {"unknown": (an_unknown(),)},  # the whole job
        {"unknown": (an_unknown(parts=("uid-sweep/GPU-1", "uid-sweep/GPU-2")),)},
    ],
)
def test_what_cannot_be_judged_neither_resolves_nor_changes(dark: dict[str, Any]) -> None:
    alert = after(SEEN, an_evaluation("12:10", **dark), an_evaluation("12:20", **dark))
    assert (alert.state, alert.finding) == (AlertState.OPEN, a_finding())
    assert (alert.unknown_since, alert.last_seen) == (at("12:10"), NOON)


@pytest.mark.parametrize(
    "elsewhere",
    [
        an_unknown(parts=("uid-sweep/GPU-2",)),  # another GPU of the job, which was busy
        an_unknown(subject="PyTorchJob/hyperpod-ns-research/other"),
        an_unknown(detector="telemetry"),
        an_unknown(detector="telemetry", subject="prometheus", blind=True),
        an_unknown(subject="kubernetes/nodes"),  # refused, but the detector can do without
    ],
)
def test_what_is_unknown_elsewhere_holds_nothing(elsewhere: Any) -> None:
    alert = after(SEEN, an_evaluation("12:10", unknown=(elsewhere,)))
    assert alert.state is AlertState.RESOLVED


def test_a_finding_without_parts_rests_on_its_whole_subject() -> None:
    whole = a_finding(parts=())
    partly = an_unknown(parts=("uid-sweep/GPU-2",))
    alert = after(an_evaluation("12:00", whole), an_evaluation("12:10", unknown=(partly,)))
    assert alert.state is AlertState.OPEN


def test_an_alert_is_stale_from_fifteen_minutes_unknown_and_no_longer_when_judged() -> None:
    dark = [failed(t) for t in ("12:05", "12:10", "12:15", "12:20")]
    assert [after(SEEN, *dark[:n]).stale for n in (1, 2, 3, 4)] == [False, False, False, True]
    assert after(SEEN, *dark).unknown_since == at("12:05")
    seen_again = after(SEEN, *dark, an_evaluation("12:25", a_finding()))
    assert (seen_again.stale, seen_again.unknown_since) == (False, None)
    absent = after(SEEN, *dark, an_evaluation("12:25"))
    assert (absent.state, absent.stale) == (AlertState.OPEN, False)  # 5 min since it was unknown


def test_the_unseen_minutes_count_from_the_last_unknown() -> None:
    timeline = [SEEN, an_evaluation("12:05"), failed("12:10"), an_evaluation("12:15")]
    assert after(*timeline).state is AlertState.OPEN
    assert after(*timeline, an_evaluation("12:20")).resolved == at("12:20")


def test_out_of_scope_is_not_looked_at_so_the_next_audit_can_end_it() -> None:
    # An audit at noon shows it, ticks do not look, the next day's audit does not show it.
    tick = {**JUDGED, "idle_gpus": DetectorStatus.OUT_OF_SCOPE}
    looks = [an_evaluation(NOON + timedelta(minutes=5 * n), detectors=tick) for n in range(1, 288)]
    before = after(SEEN, *looks)
    assert (before.stale, before.unknown_since) == (False, None)
    assert after(SEEN, *looks, an_evaluation(NOON + timedelta(days=1))).state == "resolved"


def test_what_a_detector_that_was_not_evaluated_says_opens_nothing() -> None:
    failing = {**JUDGED, "idle_gpus": DetectorStatus.FAILED}
    folded = fold([an_evaluation("12:00", a_finding(), detectors=failing)])
    # That it failed is said, once it has lasted: the alerts of the detector itself are not there.
    assert [(a.finding.detector, a.state) for a in folded.alerts.values()] == [
        ("steward", "damped")
    ]


def test_a_new_reason_ends_the_old_one_with_its_last_numbers_and_opens_in_the_same_step() -> None:
    held = a_finding(reason="idle_held", gpu_hours=3.5)
    state = fold([SEEN, an_evaluation("12:30", held)])
    old, new = state.alerts[KEY], state.alerts[held.key]
    assert (old.resolution, old.resolved) == (Resolution.REASON_CHANGED, at("12:30"))
    assert old.finding.gpu_hours == 3.0
    assert (new.state, new.opened) == (AlertState.OPEN, at("12:30"))
    assert new.incident == old.incident == NOON  # one incident, hence one card


def test_a_reason_that_takes_over_has_served_its_damping() -> None:
    held = a_finding(reason="idle_held", damping_minutes=10)
    assert fold([SEEN, an_evaluation("12:05", held)]).alerts[held.key].state is AlertState.OPEN


def test_a_damped_reason_that_gives_way_to_another_leaves_nothing() -> None:
    brief = a_finding(damping_minutes=10)
    state = fold(
        [an_evaluation("12:00", brief), an_evaluation("12:05", a_finding(reason="idle_held"))]
    )
    assert list(state.alerts) == [f"idle_gpus|{SUBJECT}|idle_held"]


def test_a_reason_that_may_coexist_serves_its_own_damping() -> None:
    node = {"detector": "capacity", "subject": "Node/n1", "one_reason": False}
    unhealthy = a_finding(**node, reason="node_unhealthy")
    failing = a_finding(**node, reason="provisioning_failed", damping_minutes=10)
    state = fold([an_evaluation("12:00", unhealthy), an_evaluation("12:05", unhealthy, failing)])
    assert state.alerts[failing.key].state is AlertState.DAMPED


def test_reasons_that_may_coexist_do_not_end_each_other() -> None:
    other = lost_telemetry(reason="no_telemetry", damping_minutes=0)
    first = lost_telemetry(damping_minutes=0)
    state = fold([an_evaluation("12:00", first), an_evaluation("12:05", other)])
    assert {alert.state for alert in state.alerts.values()} == {AlertState.OPEN}


@pytest.mark.parametrize("reason", ["idle", "idle_held"])
@pytest.mark.parametrize(("back", "incident"), [("13:10", "12:00"), ("13:15", "13:15")])
def test_what_opens_within_an_hour_of_the_end_continues_the_incident(
    back: str, incident: str, reason: str
) -> None:
    held = a_finding(reason=reason)
    state = fold([SEEN, an_evaluation("12:10"), an_evaluation(back, held)])
    assert state.alerts[held.key].incident == at(incident)


def test_what_is_seen_again_and_does_not_open_has_ended_when_it_did() -> None:
    lost = lost_telemetry()  # opens after ten minutes
    times = ("12:00", "12:05", "12:10")
    over = [*(an_evaluation(t, lost) for t in times), an_evaluation("12:20")]
    again = [an_evaluation("12:25", lost_telemetry(gpus=9)), an_evaluation("12:30")]
    alert = fold([*over, *again]).alerts[lost.key]
    assert (alert.state, alert.resolved, alert.finding.gpus) == ("resolved", at("12:20"), 2)
    damped = fold([*over, again[0]]).alerts[lost.key]
    assert (damped.state, damped.resolved, damped.finding.gpus) == ("damped", at("12:20"), 2)


def test_an_exemption_ends_what_is_open_and_keeps_more_from_opening() -> None:
    opened = fold([SEEN])
    promised = exempt("13:00")
    ended_by = fold([an_evaluation("12:05", a_finding(gpu_hours=3.1))], promised, opened)
    alert = ended_by.alerts[KEY]
    assert (alert.resolution, alert.finding.gpu_hours) == (Resolution.EXEMPTED, 3.1)
    later = fold([an_evaluation("12:30", a_finding())], promised, ended_by)
    assert later.alerts == ended_by.alerts
    assert fold([an_evaluation("12:30", a_finding())], promised).alerts == {}


def test_an_exemption_ends_what_cannot_be_judged_too() -> None:
    assert fold([failed("12:05")], exempt("13:00"), fold([SEEN])).alerts[KEY].state == "resolved"


def test_an_exemption_is_over_at_its_end() -> None:
    state = fold([an_evaluation("13:00", a_finding())], exempt("13:00"))
    assert state.alerts[KEY].opened == at("13:00")


@pytest.mark.parametrize("when", ["12:05", "12:00", "11:00"])
def test_an_evaluation_that_is_not_newer_changes_nothing(when: str) -> None:
    state = fold([SEEN, an_evaluation("12:05", a_finding(severity=Severity.PAGE))])
    assert fold([an_evaluation(when)], state=state) is state


def test_ended_alerts_are_kept_thirty_days() -> None:
    state = fold([SEEN, an_evaluation("12:10")])
    quiet = an_evaluation(at("12:10") + timedelta(days=30))
    assert KEY in fold([quiet], state=state).alerts
    assert KEY not in fold([replace(quiet, at=quiet.at + timedelta(minutes=5))], state=state).alerts


def test_a_step_repeated_over_what_was_half_stored_comes_to_the_same() -> None:
    # A crash may leave any part of a step's alerts stored under the older time.
    before = fold([SEEN])
    step = an_evaluation("12:05", a_finding(reason="idle_held", damping_minutes=10))
    whole = fold([step], state=before)
    for stored in whole.alerts:
        half: dict[str, Alert] = {**before.alerts, stored: whole.alerts[stored]}
        assert fold([step], state=replace(before, alerts=half)) == whole


def test_evidence_of_a_whole_large_cluster_is_bounded() -> None:
    devices = [{"node": f"n{n}", "uuid": f"GPU-{n}"} for n in range(10_000)]
    parts = tuple(f"uid/GPU-{n}" for n in range(10_000))
    alert = after(
        an_evaluation("12:00", a_finding(evidence={"accelerators": devices}, parts=parts))
    )
    kept = alert.finding.evidence
    assert (len(kept["accelerators"]), kept["omitted"]) == (500, {"accelerators": 9_500})
    dark = an_unknown(parts=("uid/GPU-9999",))
    held = fold([an_evaluation("12:10", unknown=(dark,))], state=_only(alert))
    assert held.alerts[KEY].state is AlertState.OPEN  # a part that is not listed still holds it


def _only(alert: Alert) -> ReconcilerState:
    return ReconcilerState(cluster="ml-shared-01", at=NOON, alerts={alert.key: alert})


def test_the_order_of_findings_within_an_evaluation_does_not_matter() -> None:
    findings = [a_finding(), a_finding(subject=f"{SUBJECT}-2"), lost_telemetry()]
    one = fold([an_evaluation("12:00", *findings)])
    other = fold([_reversed(an_evaluation("12:00", *findings))])
    assert list(one.alerts.items()) == list(other.alerts.items())


def _reversed(evaluation: Evaluation) -> Evaluation:
    return replace(evaluation, findings=evaluation.findings[::-1])


def test_an_end_that_is_known_is_not_held_by_what_went_dark_afterwards() -> None:
    # 12:05: seen to work, and said so. 12:10: its telemetry is gone; that it had ended stays true,
    # and ten minutes after it was last seen idle it resolves.
    alert = after(
        SEEN,
        an_evaluation("12:05", cleared=(ended(),)),
        an_evaluation("12:10", cleared=(ended(),), unknown=(an_unknown(),)),
    )
    assert (alert.state, alert.resolved) == (AlertState.RESOLVED, at("12:10"))
    assert alert.resolution is Resolution.ACTIVE_AGAIN
