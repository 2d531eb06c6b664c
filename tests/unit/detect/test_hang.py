"""Suspected hangs as the detector follows them: four GPUs of one job at 8 USD an hour each."""

from copy import replace
from datetime import timedelta

import pytest

from steward.cluster.accelerators import IdleSince, UnknownReason
from steward.cluster.findings import Resolution
from steward.cluster.memory import Memory
from steward.cluster.policy import Override, Severity
from steward.cluster.snapshot import IdleEnd
from steward.detect.idle import detect
from tests.builders import DELAY, NOON, a_cluster, a_holder, a_part, a_snapshot, a_window, at
from tests.builders import at_time as later_sample
from tests.unit.cluster.test_hanging import an_hour, half_an_hour, stuck

CLUSTER = a_cluster()
EMPTY = Memory(cluster="ml-shared-01")
GPUS = tuple(f"GPU-{n}" for n in range(4))
KEYS = tuple(f"uid-sweep/{uuid}" for uuid in GPUS)
SUBJECT = "PyTorchJob/hyperpod-ns-research/sweep"


def since(first, last=NOON - DELAY, **changes):
    given = {"exact": True, "observed_seconds": (last - first).total_seconds()}
    return IdleSince(first=first, last=last, **(given | changes))


def a_job(when=NOON, **changes):
    """Four stuck GPUs as a tick sees them; `hung_since` only where it was looked up."""
    return [later_sample(stuck(uuid, **changes), when) for uuid in GPUS]


def first_seen(first="11:00"):
    """A hang since then, and the memory it leaves."""
    return detect(a_snapshot(*a_job(hung_since=since(at(first)))), EMPTY, CLUSTER)


def works(uuid, **changes):
    given = {
        "windows": (half_an_hour(1.0, 0.6), an_hour(1.0)),
        "tensor": (half_an_hour(0.4),),
        "power": (half_an_hour(350.0),),
    }
    return stuck(uuid, **(given | changes))


def ends(last, seconds, **changes):
    return tuple(IdleEnd(key=k, last=last, observed_seconds=seconds, **changes) for k in KEYS)


def test_a_hang_is_one_finding_with_its_hours_its_evidence_and_two_commands():
    (finding,) = first_seen().findings
    assert (finding.subject, finding.reason, finding.team, finding.severity) == (
        SUBJECT,
        "suspected_hang",
        "research",
        Severity.WARN,
    )
    # 11:00 to 11:58 are 58 minutes of four GPUs, at 8 USD an hour.
    assert (finding.since, finding.gpus) == (at("11:00"), 4)
    assert finding.gpu_hours == round(4 * 58 / 60, 6)
    assert finding.cost_usd == 30.93
    assert finding.parts == KEYS
    evidence = finding.evidence
    assert [a["uuid"] for a in evidence["accelerators"]] == list(GPUS)
    assert {(a["idle_since"], a["hung_since"]) for a in evidence["accelerators"]} == {
        ("2026-11-05T11:00:00Z", "2026-11-05T11:00:00Z")
    }
    assert evidence["coverage"] == 1
    assert evidence["samples"] == {"present": 120, "expected": 120, "invalid": 0}
    assert (evidence["window_minutes"], evidence["at_least"]) == (30, False)
    assert (evidence["activity_min"], evidence["activity_limit"]) == (1, 0.95)
    assert (evidence["tensor_max"], evidence["tensor_limit"]) == (0, 0.005)
    assert (evidence["power_max_watts"], evidence["power_limit_watts"]) == (95, 400)
    assert evidence["power_limit"] == 0.25
    assert (evidence["supports"], evidence["silent"]) == ({"tensor_activity": 4, "power": 4}, {})
    assert (evidence["job_gpus"], evidence["not_judged"]) == (4, 0)
    # Look first; what frees the GPUs stands apart, and is no deletion.
    assert finding.action.startswith("for pod in sweep-0; do kubectl -n hyperpod-ns-research exec")
    assert "py-spy dump" in finding.action
    assert evidence["release"].startswith("kubectl -n hyperpod-ns-research patch workloads.kueue")
    assert "delete" not in finding.action + evidence["release"]


def test_a_signal_that_is_not_there_is_called_silent():
    job = a_job(hung_since=since(at("11:00")), tensor=())
    (finding,) = detect(a_snapshot(*job), EMPTY, CLUSTER).findings
    assert finding.evidence["supports"] == {"power": 4}
    assert finding.evidence["silent"] == {"tensor_activity": 4}
    assert finding.evidence["tensor_max"] is None


def test_the_next_tick_adds_what_it_saw():
    later = at("12:05")
    (finding,) = detect(a_snapshot(*a_job(later), at=later), first_seen().memory, CLUSTER).findings
    assert finding.since == at("11:00")
    assert finding.gpu_hours == round(4 * 63 / 60, 6)


def test_without_a_look_back_the_window_is_all_that_is_proven():
    (finding,) = detect(a_snapshot(*a_job()), EMPTY, CLUSTER).findings
    assert (finding.since, finding.evidence["at_least"]) == (at("11:28"), True)
    assert finding.gpu_hours == 2  # half an hour of four


def test_work_ends_it_ten_minutes_after_it_was_last_shown():
    memory = first_seen().memory
    told = ends(at("12:01"), 180)
    for tick, running in (("12:05", 4), ("12:10", 0)):
        snapshot = a_snapshot(*map(works, GPUS), at=at(tick), idle_ends=told)
        found = detect(snapshot, memory, CLUSTER)
        # Over from the first tick on that knows it, and not for good until the second.
        assert (found.findings, found.unknown, len(found.cleared)) == ((), (), 1)
        assert len(found.memory.running_hangs()) == running
        memory = found.memory
    (over,) = found.cleared
    assert over.resolution is Resolution.ACTIVE_AGAIN
    # 11:00 to 12:01, the last sample of all four that showed it.
    assert over.finding.gpu_hours == round(4 * 61 / 60, 6)
    assert over.finding.evidence["hung_until"] == "2026-11-05T12:01:00Z"
    assert {a["gpu_hours"] for a in over.finding.evidence["accelerators"]} == {round(61 / 60, 6)}


def test_one_gpu_that_works_ends_it_for_all():
    memory = first_seen().memory
    job = [*a_job(at("12:10"))[:3], works("GPU-3")]
    found = detect(
        a_snapshot(*job, at=at("12:10"), idle_ends=ends(at("12:01"), 180)), memory, CLUSTER
    )
    assert found.findings == ()
    assert found.cleared[0].resolution is Resolution.ACTIVE_AGAIN
    assert found.cleared[0].finding.gpu_hours == round(4 * 61 / 60, 6)


def test_pods_that_are_gone_are_released():
    found = detect(a_snapshot(at=at("12:05")), first_seen().memory, CLUSTER)
    assert [c.resolution for c in found.cleared] == [Resolution.RELEASED]


def test_what_stops_and_does_nothing_is_told_on_until_it_counts_as_idle():
    # At 0 since 12:02: the hour still holds the hang, so that by it the GPUs are busy.
    memory = first_seen().memory
    rests = {"windows": (half_an_hour(1.0, 0.0), an_hour(1.0)), "power": (half_an_hour(95.0),)}
    for tick in ("12:05", "12:30", "12:55"):
        told = ends(at("12:01"), 180 if tick == "12:05" else 0, quiet=True)
        found = detect(
            a_snapshot(*a_job(at(tick), **rests), at=at(tick), idle_ends=told), memory, CLUSTER
        )
        (finding,) = found.findings
        assert (finding.reason, finding.since) == ("suspected_hang", at("11:00"))
        assert finding.gpu_hours == round(4 * 61 / 60, 6)  # not a minute more
        assert finding.evidence["hung_until"] == "2026-11-05T12:01:00Z"
        assert (found.cleared, found.unknown) == ((), ())
        memory = found.memory
    # 13:05: the hour (12:03, 13:03] is free of it, and idle.
    last = at("13:03")
    idle = {
        "windows": (half_an_hour(0.0), an_hour(0.0)),
        "idle_since": since(at("12:02"), last),
    }
    snapshot = a_snapshot(*a_job(at("13:05"), **idle), at=at("13:05"), idle_ends=told)
    found = detect(snapshot, memory, CLUSTER)
    (finding,) = found.findings
    assert (finding.reason, finding.since) == ("idle", at("12:02"))
    assert finding.gpu_hours == round(4 * 61 / 60, 6)  # 12:02 to 13:03, by chance as long
    (over,) = found.cleared
    assert (over.resolution, over.finding.reason) == (Resolution.REASON_CHANGED, "suspected_hang")
    assert over.finding.gpu_hours == round(4 * 61 / 60, 6)


def test_what_rests_for_a_moment_and_works_again_is_active_again():
    memory = first_seen().memory
    rests = {"windows": (half_an_hour(1.0, 0.0), an_hour(1.0))}
    for tick, quiet in (("12:05", True), ("12:10", False), ("12:15", False)):
        told = ends(at("12:01"), 180 if tick == "12:05" else 0, quiet=quiet)
        found = detect(
            a_snapshot(*a_job(at(tick), **rests), at=at(tick), idle_ends=told), memory, CLUSTER
        )
        memory = found.memory
    assert [c.resolution for c in found.cleared] == [Resolution.ACTIVE_AGAIN]
    assert found.cleared[0].finding.gpu_hours == round(4 * 61 / 60, 6)


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        (
            {"windows": (half_an_hour(1.0, present=20), an_hour(1.0)), "last_sample": None},
            "telemetry_lost",
        ),
        ({"windows": (half_an_hour(1.0, present=20), an_hour(1.0))}, "low_coverage"),
        ({"tensor": (), "power": ()}, "telemetry_lost"),  # only what showed it is gone
    ],
)
def test_what_cannot_be_judged_any_more_is_unknown_and_holds(lost, reason):
    memory = first_seen().memory
    job = [replace(gpu, **lost) for gpu in a_job(at("12:30"))]
    found = detect(a_snapshot(*job, at=at("12:30")), memory, CLUSTER)
    assert (found.findings, found.cleared) == ((), ())
    (line,) = found.unknown
    assert (line.subject, line.reason.value, line.gpus, line.parts) == (SUBJECT, reason, 4, KEYS)
    assert [i.stretches for i in found.memory.hangs] == [i.stretches for i in memory.hangs]
    # It was only that: what nobody suspected is busy by its hour all the while.
    fresh = detect(a_snapshot(*job, at=at("12:30")), EMPTY, CLUSTER)
    assert (fresh.findings, fresh.unknown) == ((), ())


def test_one_gpu_that_cannot_be_judged_holds_the_job_and_is_the_only_unknown_one():
    memory = first_seen().memory
    job = [*a_job()[:3], replace(a_job()[3], windows=(an_hour(1.0),), last_sample=None)]
    found = detect(a_snapshot(*job, at=at("12:05")), memory, CLUSTER)
    assert (found.findings, found.cleared) == ((), ())
    assert [(u.reason, u.parts) for u in found.unknown] == [
        (UnknownReason.TELEMETRY_LOST, (KEYS[3],))
    ]


def test_a_pod_that_cannot_be_read_holds_the_job():
    pods = replace(a_part("kubernetes/pods"), left_out=("hyperpod-ns-research/sweep-0",))
    parts = (pods, *(a_part(name) for name in ("kubernetes/nodes", "prometheus")))
    found = detect(a_snapshot(at=at("12:30"), parts=parts), first_seen().memory, CLUSTER)
    assert (found.findings, found.cleared) == ((), ())
    assert [(u.subject, u.reason, u.parts) for u in found.unknown] == [
        (SUBJECT, UnknownReason.UNREADABLE, KEYS)
    ]


def test_one_pod_of_a_job_that_cannot_be_read_holds_the_rest_of_it():
    second = a_holder(pod="sweep-1", pod_uid="uid-1")
    job = a_job()[:2]
    far = [stuck(uuid, holder=second, hung_since=since(at("11:00"))) for uuid in GPUS[2:]]
    near = [replace(gpu, hung_since=since(at("11:00"))) for gpu in job]
    memory = detect(a_snapshot(*near, *far), EMPTY, CLUSTER).memory
    pods = replace(a_part("kubernetes/pods"), left_out=("hyperpod-ns-research/sweep-1",))
    parts = (pods, *(a_part(name) for name in ("kubernetes/nodes", "prometheus")))
    still = [later_sample(gpu, at("12:05")) for gpu in job]
    found = detect(a_snapshot(*still, at=at("12:05"), parts=parts), memory, CLUSTER)
    assert (found.findings, found.cleared) == ((), ())
    assert [(u.reason, u.parts) for u in found.unknown] == [
        (UnknownReason.UNREADABLE, ("uid-1/GPU-2", "uid-1/GPU-3"))
    ]


def test_a_pod_that_joins_ends_nothing_until_it_can_be_judged():
    memory = first_seen().memory
    joined = a_holder(pod="sweep-1", pod_uid="uid-new", since=at("12:00"))
    young = stuck("GPU-9", holder=joined, windows=(), last_sample=None)
    found = detect(a_snapshot(*a_job(at("12:05")), young, at=at("12:05")), memory, CLUSTER)
    (finding,) = found.findings
    assert (finding.gpus, finding.since) == (4, at("11:00"))
    assert (finding.evidence["job_gpus"], finding.evidence["not_judged"]) == (5, 1)
    # Alone it would be no hang: not all of the job shows it.
    assert detect(a_snapshot(*a_job(), young), EMPTY, CLUSTER).findings == ()


def test_a_stretch_of_work_that_no_tick_saw_is_another_hang():
    memory = first_seen().memory
    begun = since(at("13:10"), at("13:58"))
    found = detect(
        a_snapshot(*a_job(at("14:00"), hung_since=begun), at=at("14:00")), memory, CLUSTER
    )
    (finding,) = found.findings
    assert finding.since == at("13:10")
    assert finding.gpu_hours == round(4 * 48 / 60, 6)


def test_one_gpu_that_worked_unseen_has_ended_it_for_all():
    # GPU-3 was seen until 13:12 and the rest until 11:58; all of them hang since 13:10 again.
    memory = first_seen().memory
    (incident,) = memory.hangs
    stretches = tuple(
        replace(s, last=at("13:12")) if s.uuid == "GPU-3" else s for s in incident.stretches
    )
    memory = replace(memory, hangs=(replace(incident, stretches=stretches),))
    begun = since(at("13:10"), at("13:58"))
    job = a_job(at("14:00"), hung_since=begun)
    (finding,) = detect(a_snapshot(*job, at=at("14:00")), memory, CLUSTER).findings
    assert finding.since == at("13:10")
    assert finding.gpu_hours == round(4 * 48 / 60, 6)


def test_an_idle_job_that_is_found_hung_after_an_outage_has_one_reason():
    idle = [
        replace(gpu, windows=(half_an_hour(0.0), an_hour(0.0)), idle_since=since(at("10:00")))
        for gpu in a_job()
    ]
    memory = detect(a_snapshot(*idle), EMPTY, CLUSTER).memory
    hung = a_job(at("14:00"), hung_since=since(at("13:00"), at("13:58")))
    found = detect(a_snapshot(*hung, at=at("14:00")), memory, CLUSTER)
    assert [f.reason for f in found.findings] == ["suspected_hang"]
    assert [c.finding.reason for c in found.cleared] == ["idle"]


def test_an_override_changes_the_window_and_the_severity():
    override = Override(teams=("research",), hang={"window_minutes": 60, "severity": "page"})
    cluster = a_cluster(overrides=(override,))
    assert detect(a_snapshot(*a_job()), EMPTY, cluster).findings == ()  # no signals over an hour
    hour = a_job(tensor=(a_window(0.0),))
    (finding,) = detect(a_snapshot(*hour), EMPTY, cluster).findings
    assert (finding.severity, finding.evidence["window_minutes"]) == (Severity.PAGE, 60)


def test_an_end_is_repeated_for_two_hours_and_then_forgotten():
    memory = first_seen().memory
    for minutes in (10, 125, 130):
        when = NOON + timedelta(minutes=minutes)
        found = detect(a_snapshot(at=when), memory, CLUSTER)
        memory = found.memory
        assert len(found.cleared) == (1 if minutes < 130 else 0)
    assert memory.hangs == ()


def test_a_failed_look_at_what_follows_is_no_proof_of_work():
    # At 0 since 12:02, and raw samples cannot be read: the windows tell that it hangs no more, and
    # not that it works. That is held like a rest; tensor activity would be work.
    memory = first_seen().memory
    rests = {"windows": (half_an_hour(1.0, 0.0), an_hour(1.0)), "power": (half_an_hour(95.0),)}
    for tick in ("12:05", "12:20"):
        found = detect(a_snapshot(*a_job(at(tick), **rests), at=at(tick)), memory, CLUSTER)
        assert [f.reason for f in found.findings] == ["suspected_hang"]
        assert found.findings[0].gpu_hours == round(4 * 58 / 60, 6)  # 11:00 to 11:58, as known
        assert found.cleared == ()
        memory = found.memory
    works_now = [later_sample(works(uuid), at("12:35")) for uuid in GPUS]
    (over,) = detect(a_snapshot(*works_now, at=at("12:35")), memory, CLUSTER).cleared
    assert over.resolution is Resolution.ACTIVE_AGAIN
