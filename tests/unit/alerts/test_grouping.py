"""Which findings are one problem to a reader, and what hides what follows from it."""

from typing import Any

from steward.cluster.accelerators import UnknownReason
from steward.cluster.findings import DetectorStatus, Finding
from steward.cluster.policy import Severity
from tests.unit.alerts.nouns import a_finding, an_evaluation, an_unknown, lost_telemetry
from tests.unit.alerts.timeline import Timeline

EYES = ("idle_gpus", "pending", "capacity")


def waiting(name: str, **changes: Any) -> Finding:
    given: dict[str, Any] = {
        "detector": "pending",
        "subject": f"Job/hyperpod-ns-research/{name}",
        "reason": "missing_queue",
        "gpus": 4,
        "gpu_hours": None,
        "cost_usd": None,
        "evidence": {"queue": "hyperpod-ns-reserch-localqueue", "message": ""},
    }
    return a_finding(**(given | changes))


def node(name: str, **changes: Any) -> Finding:
    given: dict[str, Any] = {
        "detector": "capacity",
        "subject": f"Node/{name}",
        "reason": "node_unhealthy",
        "team": None,
        "gpus": 8,
        "evidence": {},
    }
    return a_finding(**(given | changes))


def test_two_hundred_jobs_with_one_wrong_queue_name_are_one_card() -> None:
    jobs = [waiting(f"j{n:03}") for n in range(200)]
    line = Timeline().play(an_evaluation("12:00", *jobs))
    told = line.card.content
    assert (told["subjects"], told["group_gpus"]) == (200, 800)
    assert (len(told["members"]), told["members_omitted"]) == (20, 179)  # the lead is the 200th
    line.play(an_evaluation("12:05", *jobs, waiting("late")))
    assert line.card.content["subjects"] == 201


def test_another_team_reason_or_queue_is_another_card() -> None:
    line = Timeline().play(
        an_evaluation(
            "12:00",
            waiting("a"),
            waiting("b", team="vision"),
            waiting("c", reason="queue_inactive"),
            waiting("d", evidence={"queue": "other"}),
        )
    )
    assert len(line.cards) == 4


def test_one_job_with_many_symptoms_is_one_card() -> None:
    thrash = a_finding(detector="preemptions", reason="thrash", severity=Severity.PAGE)
    line = Timeline().play(an_evaluation("12:00", a_finding(), thrash))
    told = line.card.content
    assert (told["reason"], told["subjects"], told["group_gpus"]) == ("thrash", 1, 1)
    assert [other["reason"] for other in told["others"]] == ["idle"]


def test_the_card_stands_until_the_last_of_its_jobs_is_gone() -> None:
    line = Timeline().play(an_evaluation("12:00", waiting("a"), waiting("b")))
    line.play(an_evaluation("12:10", waiting("b")))
    assert (line.card.content["state"], line.card.content["subjects"]) == ("open", 1)
    assert [o["subject"] for o in line.card.content["others"]] == ["Job/hyperpod-ns-research/a"]
    line.play(an_evaluation("12:20"))
    assert line.card.content["state"] == "resolved"


def test_a_node_failure_is_one_card_whatever_follows_from_it() -> None:
    devices = [{"node": "n1", "uuid": f"GPU-{n}"} for n in range(8)]
    idle = a_finding(evidence={"accelerators": devices})
    quota = a_finding(
        detector="capacity",
        subject="ResourceFlavor/p5",
        reason="quota_above_capacity",
        team=None,
        evidence={"not_usable": [{"node": "n1", "why": "not ready"}]},
    )
    line = Timeline().play(an_evaluation("12:00", node("n1"), idle, quota))
    assert line.card.key.startswith("capacity|Node/n1|")
    assert [hidden["reason"] for hidden in line.card.content["follows"]] == [
        "quota_above_capacity",
        "idle",
    ]
    # The node is back and they still are: now they are news of their own.
    line.play(*(an_evaluation(t, idle, quota) for t in ("12:05", "12:10")))
    assert [card.content["state"] for card in line.cards].count("open") == 2


def test_what_also_stands_on_other_nodes_is_no_consequence() -> None:
    devices = [{"node": node, "uuid": f"GPU-{node}"} for node in ("n1", "n2")]
    line = Timeline().play(
        an_evaluation("12:00", node("n1"), a_finding(evidence={"accelerators": devices}))
    )
    assert len(line.cards) == 2


def unreachable(when: str) -> Any:
    blind = tuple(
        an_unknown(
            detector=name, subject="kubernetes/pods", reason=UnknownReason.DENIED, blind=True
        )
        for name in EYES
    )
    return an_evaluation(when, unknown=blind)


def test_a_cluster_that_cannot_be_read_is_one_card_after_fifteen_minutes() -> None:
    line = Timeline().play(an_evaluation("12:00", a_finding()))
    line.play(*(unreachable(t) for t in ("12:05", "12:10", "12:15")))
    assert len(line.cards) == 1
    line.play(unreachable("12:20"))
    told = {card.content["reason"]: card.content for card in line.cards}
    assert told["cluster_unreachable"]["evidence"]["refused"] == ["kubernetes/pods"]
    # A card that cannot be judged says so itself: whoever reads it must not take it for the truth.
    assert told["idle"]["stale_since"] == "2026-11-05T12:05:00Z"
    assert told["cluster_unreachable"]["since"] == "2026-11-05T12:05:00Z"
    line.play(an_evaluation("12:25", a_finding()), an_evaluation("12:35", a_finding()))
    states = {card.content["reason"]: card.content["state"] for card in line.cards}
    assert states == {"cluster_unreachable": "resolved", "idle": "open"}


def test_lost_telemetry_of_a_whole_cluster_hides_lesser_troubles_of_it() -> None:
    whole = lost_telemetry(severity=Severity.PAGE, damping_minutes=0)
    lesser = lost_telemetry(reason="unattributed", damping_minutes=0)
    line = Timeline().play(an_evaluation("12:00", whole, lesser))
    assert line.card.content["reason"] == "telemetry_lost"
    assert [hidden["reason"] for hidden in line.card.content["follows"]] == ["unattributed"]


def test_the_steward_says_that_a_detector_fails() -> None:
    line = Timeline()
    for when in ("12:00", "12:05", "12:10", "12:15"):
        line.play(an_evaluation(when, detectors={"idle_gpus": DetectorStatus.FAILED}))
    assert (line.card.content["reason"], line.card.channel) == ("detector_failed", "C0PLATFORM1")
