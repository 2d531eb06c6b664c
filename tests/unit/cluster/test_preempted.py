"""What Kueue's messages, conditions and events say of a preemption, in the words of every version."""

import pytest

from steward.cluster.preemptions.memory import Words
from steward.cluster.preemptions.shown import NEAR, read_message, shown
from tests.builders import NOON
from tests.unit.detect.preemptions import HOUR, Kueue, a_condition, an_event, message

U, J = "9d10-2", "31bb-2"
TO = "Preempted to accommodate a workload "
RECLAIM = "due to reclamation within the cohort"
PATHS = "; preemptor path: /all/pool/speech-cq; preemptee path: /all/pool/vision-cq"
PRIORITIES = (
    "; preemptor effective priority: 70 (base: 70, boost: 0)"
    "; preemptee effective priority: 40 (base: 40, boost: 0)"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            f"{TO}(UID: {U}) {RECLAIM}",
            Words(cause="InCohortReclamation", uid=U),
            id="0.8",
        ),
        pytest.param(
            f"{TO}(UID: {U}, JobUID: {J}) {RECLAIM}",
            Words(cause="InCohortReclamation", uid=U, job_uid=J),
            id="0.11",
        ),
        pytest.param(
            f"{TO}(UID: {U}, JobUID: {J}) {RECLAIM}{PATHS}",
            Words(cause="InCohortReclamation", uid=U, job_uid=J, queue="speech-cq"),
            id="0.15",
        ),
        pytest.param(
            f"{TO}(UID: {U}, JobUID: {J}) {RECLAIM}{PATHS}{PRIORITIES}",
            Words(cause="InCohortReclamation", uid=U, job_uid=J, queue="speech-cq"),
            id="0.17 event",
        ),
        pytest.param(
            f"Previously: {TO}(UID: {U}, JobUID: {J}) {RECLAIM}",
            Words(cause="InCohortReclamation", uid=U, job_uid=J),
            id="admitted again",
        ),
        pytest.param(
            f"{TO}(UID: UNKNOWN, JobUID: UNKNOWN) {RECLAIM}{PATHS}",
            Words(cause="InCohortReclamation", queue="speech-cq"),
            id="nobody named",
        ),
        pytest.param(
            f"{TO}(UID: {U}, JobUID: UNKNOWN) due to something new",
            Words(uid=U),
            id="a rule of a later version",
        ),
        pytest.param("Exceeded the PodsReady timeout", Words(), id="no preemption"),
    ],
)
def test_every_version_s_words_name_the_rule_and_the_preemptor(text, words):
    assert read_message(text) == words


@pytest.mark.parametrize(
    ("why", "cause"),
    [
        ("prioritization in the ClusterQueue", "InClusterQueue"),
        ("reclamation within the cohort", "InCohortReclamation"),
        ("Fair Sharing within the cohort", "InCohortFairSharing"),
        ("reclamation within the cohort while borrowing", "InCohortReclaimWhileBorrowing"),
    ],
)
def test_each_of_kueue_s_four_rules_has_its_name(why, cause):
    assert read_message(f"{TO}(UID: {U}, JobUID: {J}) due to {why}{PATHS}").cause == cause


def test_condition_and_both_events_of_one_preemption_are_one():
    job = Kueue(runs=[(NOON - 2 * HOUR, NOON - HOUR / 2)])
    found = shown([job.at(NOON)], job.events(NOON))
    (one,) = found[job.uid]
    assert (one.at, one.durable) == (NOON - HOUR / 2, True)
    assert one.words.cause == "InCohortReclamation"


def test_events_further_apart_than_one_preemption_s_are_two():
    job = Kueue()
    first = NOON - HOUR / 2
    events = [an_event(job, first), an_event(job, first + NEAR), an_event(job, first + 2 * NEAR)]
    assert [one.at for one in shown([], events)[job.uid]] == [first, first + 2 * NEAR]


def test_the_condition_s_reason_names_the_rule_where_the_message_does_not():
    job = Kueue(runs=[(NOON - 2 * HOUR, NOON - HOUR)], message="", cause="InCohortFairSharing")
    assert shown([job.at(NOON)], [])[job.uid][0].words.cause == "InCohortFairSharing"


@pytest.mark.parametrize(
    "changes",
    [
        {"reason": "PodsReadyTimeout"},
        {"status": False},
        {"status": None},
        {"since": None},
    ],
)
def test_other_evictions_and_those_that_are_over_or_have_no_time_show_none(changes):
    told = {"reason": "Preempted", "since": NOON - HOUR, "message": message()} | changes
    evicted = a_condition("Evicted", told.pop("since"), **told)
    assert shown([Kueue(changes={"conditions": (evicted,)}).at(NOON)], []) == {}


def test_other_events_about_a_workload_show_none():
    job = Kueue()
    events = [
        an_event(job, NOON, reason) for reason in ("Pending", "PreemptedWorkload", "Admitted")
    ]
    assert shown([job.at(NOON)], events) == {}


def test_an_event_without_a_uid_is_of_the_workload_of_its_name_unless_that_is_younger():
    job = Kueue(created=NOON - HOUR)
    earlier = an_event(job, NOON - 2 * HOUR, workload_uid=None)
    later = an_event(job, NOON - HOUR / 2, workload_uid=None)
    assert [one.at for one in shown([job.at(NOON)], [earlier, later])[job.uid]] == [later.at]


def test_the_order_of_events_changes_nothing():
    job = Kueue(runs=[(NOON - 2 * HOUR, NOON - HOUR / 2)])
    events = job.events(NOON)
    assert shown([job.at(NOON)], events) == shown([job.at(NOON)], events[::-1])
