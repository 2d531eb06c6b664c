"""The idle detector, by hand: a GPU costs 8 USD an hour here, windows end two minutes before a tick."""

from copy import replace
from datetime import timedelta

from steward.cluster.accelerators import IdleSince, Owner, UnknownReason
from steward.cluster.findings import Resolution
from steward.cluster.memory import Memory
from steward.cluster.policy import IdleLimits, Override, Severity, Thresholds
from steward.cluster.snapshot import IdleEnd, PartStatus
from steward.detect.idle import detect
from tests.builders import (
    DELAY,
    NOON,
    a_cluster,
    a_holder,
    a_part,
    a_snapshot,
    a_window,
    an_accelerator,
    at,
    at_time,
)

CLUSTER = a_cluster()
EMPTY = Memory(cluster="ml-shared-01")
BUSY = (a_window(0.9),)


def idle_from(when, uuid="GPU-1", **changes):
    """A GPU idle since then, as the first tick that sees it idle reads it."""
    last = changes.pop("last", NOON - DELAY)
    found = IdleSince(
        first=when, last=last, exact=True, observed_seconds=(last - when).total_seconds()
    )
    return an_accelerator(uuid, idle_since=found, last_sample=last, **changes)


def test_hours_and_cost_count_from_the_first_idle_sample():
    # Idle from 08:58 to the last sample at 11:58: three hours, 24 USD at 8 USD an hour.
    found = detect(a_snapshot(idle_from(at("8:58"))), EMPTY, CLUSTER)
    (finding,) = found.findings
    assert (finding.subject, finding.reason, finding.team) == (
        "PyTorchJob/hyperpod-ns-research/sweep",
        "idle",
        "research",
    )
    assert finding.since == at("8:58")
    assert (finding.gpus, finding.gpu_hours, finding.cost_usd) == (1, 3, 24)
    assert finding.severity is Severity.WARN
    assert finding.evidence["accelerators"] == [
        {
            "node": "hyperpod-i-0a",
            "uuid": "GPU-1",
            "mig": None,
            "pod": "sweep-0",
            "idle_since": "2026-11-05T08:58:00Z",
            "at_least": False,
            "held_bytes": 0,
            "gpu_hours": 3,
        }
    ]
    assert finding.evidence["coverage"] == 1


def test_only_the_idle_gpu_of_a_job_is_counted():
    # Four GPUs on one node, three near 90 %, one at zero for three hours: 3 GPU-hours, not 12.
    job = [idle_from(at("8:58"))] + [an_accelerator(f"GPU-{n}", windows=BUSY) for n in (2, 3, 4)]
    (finding,) = detect(a_snapshot(*job), EMPTY, CLUSTER).findings
    assert (finding.gpus, finding.gpu_hours) == (1, 3)
    assert [a["uuid"] for a in finding.evidence["accelerators"]] == ["GPU-1"]
    assert (finding.evidence["job_gpus"], finding.evidence["busy"]) == (4, 3)
    # Part of a job: look before anybody stops three healthy GPUs.
    assert finding.action == "kubectl -n hyperpod-ns-research exec sweep-0 -- nvidia-smi"


def test_a_job_over_two_nodes_is_one_finding_that_names_both():
    other = a_holder(pod="sweep-1", pod_uid="uid-sweep-1")
    snapshot = a_snapshot(
        idle_from(at("10:58")), idle_from(at("8:58"), "GPU-9", holder=other, node="hyperpod-i-0b")
    )
    (finding,) = detect(snapshot, EMPTY, CLUSTER).findings
    assert finding.since == at("8:58")
    assert finding.gpu_hours == 4  # one hour and three
    assert {a["node"] for a in finding.evidence["accelerators"]} == {
        "hyperpod-i-0a",
        "hyperpod-i-0b",
    }


def test_a_wholly_idle_job_is_released_through_its_workload():
    (finding,) = detect(a_snapshot(idle_from(at("8:58"))), EMPTY, CLUSTER).findings
    assert finding.action == (
        "kubectl -n hyperpod-ns-research patch workloads.kueue.x-k8s.io pytorchjob-sweep-a1b2c "
        '--type=merge -p \'{"spec":{"active":false}}\''
    )


def test_a_mig_slice_counts_its_fraction_in_hours_and_money():
    # 3g of a GPU for three hours: 9/7 GPU-hours; at 8 USD an hour 10.29 USD.
    slice_ = idle_from(at("8:58"), mig="3g.40gb/1", fraction=3 / 7)
    (finding,) = detect(a_snapshot(slice_), EMPTY, CLUSTER).findings
    assert finding.gpus == round(3 / 7, 6)
    assert finding.gpu_hours == round(9 / 7, 6)
    assert finding.cost_usd == 10.29


def test_without_a_price_there_are_hours_and_no_dollars():
    (finding,) = detect(
        a_snapshot(idle_from(at("8:58"), usd_per_hour=None)), EMPTY, CLUSTER
    ).findings
    assert (finding.gpu_hours, finding.cost_usd) == (3, None)
    assert finding.evidence["price"] is None


def test_all_holding_memory_is_idle_held_and_one_that_does_not_makes_it_idle():
    held = {"held_bytes": 30 * 2**30}
    both = a_snapshot(idle_from(at("8:58"), **held), idle_from(at("8:58"), "GPU-2", **held))
    assert detect(both, EMPTY, CLUSTER).findings[0].reason == "idle_held"
    mixed = a_snapshot(idle_from(at("8:58"), **held), idle_from(at("8:58"), "GPU-2"))
    assert detect(mixed, EMPTY, CLUSTER).findings[0].reason == "idle"


def test_eight_gpus_idle_for_more_than_four_hours_page():
    def severity(since, count, **changes):
        gpus = [idle_from(since, f"GPU-{n}", **changes) for n in range(count)]
        return detect(a_snapshot(*gpus), EMPTY, CLUSTER).findings[0].severity

    assert severity(at("7:57"), 8) is Severity.PAGE  # 4 h 1 min
    assert severity(at("7:58"), 8) is Severity.WARN  # exactly 4 h is not over 4 h
    assert severity(at("7:57"), 7) is Severity.WARN
    assert severity(at("7:57"), 8, held_bytes=2**31) is Severity.WARN  # idle_held only warns


def test_the_next_tick_adds_what_it_saw_and_keeps_the_beginning():
    gpu = idle_from(at("8:58"))
    first = detect(a_snapshot(gpu), EMPTY, CLUSTER)
    later = NOON + timedelta(minutes=5)
    again = at_time(replace(gpu, idle_since=None), later)
    (finding,) = detect(a_snapshot(again, at=later), first.memory, CLUSTER).findings
    assert finding.since == at("8:58")
    assert finding.gpu_hours == round(3 + 5 / 60, 6)


def test_one_missed_tick_loses_nothing():
    gpu = idle_from(at("8:58"))
    first = detect(a_snapshot(gpu), EMPTY, CLUSTER)
    later = NOON + timedelta(minutes=30)
    again = at_time(replace(gpu, idle_since=None), later)
    (finding,) = detect(a_snapshot(again, at=later), first.memory, CLUSTER).findings
    assert finding.gpu_hours == 3.5


def test_hours_that_nobody_saw_are_not_counted():
    # Telemetry was gone from 12:00 to 15:00; at 16:02 the window (15:00, 16:00] is all there is.
    gpu = idle_from(at("8:58"))
    first = detect(a_snapshot(gpu), EMPTY, CLUSTER)
    later = at("16:02")
    again = at_time(replace(gpu, idle_since=None), later)
    (finding,) = detect(a_snapshot(again, at=later), first.memory, CLUSTER).findings
    assert finding.since == at("8:58")
    assert finding.gpu_hours == 4  # three before, one after; three hours unseen


def test_active_again_closes_with_the_last_idle_sample():
    gpu = idle_from(at("8:58"))
    first = detect(a_snapshot(gpu), EMPTY, CLUSTER)
    later = NOON + timedelta(minutes=5)
    woke = replace(at_time(gpu, later), windows=BUSY, idle_since=None)
    end = IdleEnd(key=gpu.key, last=at("12:00"), observed_seconds=120)
    second = detect(a_snapshot(woke, at=later, idle_ends=(end,)), first.memory, CLUSTER)
    assert second.findings == ()
    (cleared,) = second.cleared
    assert cleared.resolution is Resolution.ACTIVE_AGAIN
    assert cleared.finding.gpu_hours == round(3 + 2 / 60, 6)  # 08:58 to 12:00
    assert cleared.finding.evidence["idle_until"] == "2026-11-05T12:00:00Z"
    (accelerator,) = cleared.finding.evidence["accelerators"]
    assert accelerator["gpu_hours"] == round(3 + 2 / 60, 6)


def test_a_pod_that_is_gone_is_released_not_active_again():
    first = detect(a_snapshot(idle_from(at("8:58"))), EMPTY, CLUSTER)
    second = detect(a_snapshot(at=NOON + timedelta(minutes=5)), first.memory, CLUSTER)
    (cleared,) = second.cleared
    assert cleared.resolution is Resolution.RELEASED
    assert cleared.finding.gpu_hours == 3


def test_an_ended_incident_is_repeated_for_two_hours_and_then_forgotten():
    first = detect(a_snapshot(idle_from(at("8:58"))), EMPTY, CLUSTER)
    # Last seen at 12:00: its end is final ten minutes later, and two hours run from there.
    gone = detect(a_snapshot(at=at("12:10")), first.memory, CLUSTER)
    repeat = detect(a_snapshot(at=at("14:05")), gone.memory, CLUSTER)
    assert [c.finding.gpu_hours for c in repeat.cleared] == [3]
    late = detect(a_snapshot(at=at("14:10")), repeat.memory, CLUSTER)
    assert (late.cleared, late.memory.idle) == ((), ())


def test_telemetry_that_stops_leaves_the_stretch_as_it_is():
    gpu = idle_from(at("8:58"))
    first = detect(a_snapshot(gpu), EMPTY, CLUSTER)
    dark = replace(gpu, windows=(a_window(None, present=0),), last_sample=None, idle_since=None)
    second = detect(a_snapshot(dark, at=at("13:30")), first.memory, CLUSTER)
    assert (second.findings, second.cleared) == ((), ())
    (unknown,) = second.unknown
    assert (unknown.subject, unknown.reason, unknown.parts) == (
        "PyTorchJob/hyperpod-ns-research/sweep",
        UnknownReason.TELEMETRY_LOST,
        (gpu.key,),
    )
    assert [i.stretches for i in second.memory.idle] == [i.stretches for i in first.memory.idle]


def test_a_pod_that_cannot_be_read_holds_what_is_known_of_it_and_ends_nothing():
    first = detect(a_snapshot(idle_from(at("8:58"))), EMPTY, CLUSTER)
    pods = replace(
        a_part("kubernetes/pods"), left_out=("hyperpod-ns-research/sweep-0", "default/x", "item 3")
    )
    parts = (*(a_part(f"kubernetes/{name}") for name in ("nodes", "workloads")), pods)
    second = detect(
        a_snapshot(at=at("12:30"), parts=(*parts, a_part("prometheus"))), first.memory, CLUSTER
    )
    assert (second.findings, second.cleared) == ((), ())
    # The known pod speaks for its job and names the part that is held; the others for themselves.
    assert [(u.subject, u.reason, u.team, u.parts) for u in second.unknown] == [
        (
            "PyTorchJob/hyperpod-ns-research/sweep",
            UnknownReason.UNREADABLE,
            "research",
            ("uid-sweep/GPU-1",),
        ),
        ("Pod/default/x", UnknownReason.UNREADABLE, None, ()),
        ("kubernetes/pods", UnknownReason.UNREADABLE, None, ()),
    ]
    assert [i.stretches for i in second.memory.idle] == [i.stretches for i in first.memory.idle]


def test_one_gpu_that_takes_over_from_another_goes_on_with_the_same_incident():
    # GPU-1 idles 08:58 to 12:00, GPU-2 from 11:08: at 12:05 neither is idle by its window, which is
    # not yet ten minutes without it; 3 h 2 min and 1 h.
    first = detect(a_snapshot(idle_from(at("8:58"))), EMPTY, CLUSTER)
    busy = (replace(an_accelerator(), windows=BUSY), an_accelerator("GPU-2", windows=BUSY))
    end = IdleEnd(key="uid-sweep/GPU-1", last=at("12:00"), observed_seconds=120)
    pause = detect(a_snapshot(*busy, at=at("12:05"), idle_ends=(end,)), first.memory, CLUSTER)
    other = idle_from(at("11:08"), "GPU-2", last=at("12:08"))
    third = detect(a_snapshot(busy[0], other, at=at("12:10")), pause.memory, CLUSTER)
    (finding,) = third.findings
    assert finding.since == at("8:58")
    assert finding.gpu_hours == round(242 / 60, 6)
    assert [a["uuid"] for a in finding.evidence["accelerators"]] == ["GPU-2"]


def test_idle_again_after_its_end_is_another_incident_counted_from_nothing():
    first = detect(a_snapshot(idle_from(at("8:58"))), EMPTY, CLUSTER)
    busy = replace(an_accelerator(), windows=BUSY)
    woke = detect(a_snapshot(busy, at=at("12:05")), first.memory, CLUSTER)
    again = idle_from(at("12:58"), last=at("13:58"))
    third = detect(a_snapshot(again, at=at("14:00")), woke.memory, CLUSTER)
    assert (third.findings[0].gpu_hours, third.cleared) == (1, ())


def test_a_gpu_that_wakes_and_idles_again_inside_an_incident_counts_both_stretches():
    # GPU-2 idles all the time and keeps the incident open; GPU-1 idles 3 h, works, idles 1 h more.
    steady = idle_from(at("8:58"), "GPU-2")
    first = detect(a_snapshot(idle_from(at("8:58")), steady), EMPTY, CLUSTER)
    quiet = replace(steady, idle_since=None)
    woke = an_accelerator(windows=BUSY, last_sample=at("12:03"))
    second = detect(
        a_snapshot(woke, at_time(quiet, at("12:05")), at=at("12:05")), first.memory, CLUSTER
    )
    again = idle_from(at("12:58"), last=at("13:58"))
    window = detect(
        a_snapshot(at_time(quiet, at("13:00")), woke, at=at("13:00")), second.memory, CLUSTER
    )
    third = detect(
        a_snapshot(again, at_time(quiet, at("14:00")), at=at("14:00")), window.memory, CLUSTER
    )
    # GPU-2: 08:58 to 13:58 = 5 h; GPU-1: 3 h and 1 h.
    assert third.findings[0].gpu_hours == 9
    assert third.findings[0].since == at("8:58")


def test_a_beginning_that_could_not_be_looked_up_says_at_least():
    (finding,) = detect(a_snapshot(an_accelerator()), EMPTY, CLUSTER).findings
    assert finding.evidence["at_least"] is True
    assert finding.since == at("10:58")  # the window's own start is all that is proven
    assert finding.gpu_hours == 1


def test_a_beginning_found_later_replaces_at_least():
    first = detect(a_snapshot(an_accelerator()), EMPTY, CLUSTER)
    later = NOON + timedelta(minutes=5)
    found = idle_from(at("8:58"), last=later - DELAY)
    (finding,) = detect(a_snapshot(found, at=later), first.memory, CLUSTER).findings
    assert (finding.since, finding.evidence["at_least"]) == (at("8:58"), False)
    assert finding.gpu_hours == round(3 + 5 / 60, 6)


def test_denied_pods_make_no_finding_and_one_line():
    first = detect(a_snapshot(idle_from(at("8:58"))), EMPTY, CLUSTER)
    denied = a_snapshot(at=at("12:05"), refused={"kubernetes/pods": PartStatus.DENIED})
    second = detect(denied, first.memory, CLUSTER)
    assert (second.findings, second.cleared) == ((), ())
    assert [(u.subject, u.reason, u.blind) for u in second.unknown] == [
        ("kubernetes/pods", UnknownReason.DENIED, True)
    ]
    assert second.memory == first.memory


def test_an_unreachable_prometheus_opens_nothing_and_resolves_nothing():
    first = detect(a_snapshot(idle_from(at("8:58"))), EMPTY, CLUSTER)
    blind = a_snapshot(
        an_accelerator(windows=()), at=at("12:05"), refused={"prometheus": PartStatus.UNREADABLE}
    )
    second = detect(blind, first.memory, CLUSTER)
    assert (second.findings, second.cleared) == ((), ())
    assert [(u.subject, u.reason, u.blind) for u in second.unknown] == [
        ("prometheus", UnknownReason.UNREADABLE, True),
        ("PyTorchJob/hyperpod-ns-research/sweep", UnknownReason.UNREADABLE, False),
    ]


def test_denied_nodes_are_said_and_hide_nothing():
    found = detect(
        a_snapshot(idle_from(at("8:58")), refused={"kubernetes/nodes": PartStatus.DENIED}),
        EMPTY,
        CLUSTER,
    )
    assert [u.subject for u in found.unknown] == ["kubernetes/nodes"]
    assert len(found.findings) == 1


def test_an_override_for_an_owner_kind_changes_window_and_severity():
    override = Override(
        owner_kinds=("Deployment",), idle={"window_minutes": 120, "severity": "info"}
    )
    cluster = a_cluster(overrides=(override,), thresholds=Thresholds(idle=IdleLimits()))
    service = a_holder(owner=Owner(kind="Deployment", namespace="hyperpod-ns-research", name="web"))
    windows = (a_window(0.0), a_window(0.5, present=120, minutes=120))
    serving = idle_from(at("8:58"), holder=service, windows=windows)
    assert detect(a_snapshot(serving), EMPTY, cluster).findings == ()
    quiet = replace(serving, windows=(a_window(0.0), a_window(0.0, present=120, minutes=120)))
    (finding,) = detect(a_snapshot(quiet), EMPTY, cluster).findings
    assert (finding.severity, finding.evidence["window_minutes"]) == (Severity.INFO, 120)


def test_a_namespace_outside_governance_has_no_team():
    holder = a_holder(
        namespace="default", owner=Owner(kind="Pod", namespace="default", name="debug")
    )
    (finding,) = detect(a_snapshot(idle_from(at("8:58"), holder=holder)), EMPTY, CLUSTER).findings
    assert finding.team is None


def test_owners_that_can_no_longer_be_read_do_not_end_an_incident_under_another_name():
    namespace = "hyperpod-ns-research"
    deployment = Owner(kind="Deployment", namespace=namespace, name="web")
    gpu = idle_from(at("8:58"), holder=a_holder("web", owner=deployment))
    first = detect(a_snapshot(gpu), EMPTY, CLUSTER)
    later = at("12:05")
    replicas = Owner(kind="ReplicaSet", namespace=namespace, name="web-6d4f")
    seen = at_time(replace(gpu, idle_since=None, holder=a_holder("web", owner=replicas)), later)
    denied = a_part("kubernetes/replicasets", PartStatus.DENIED)
    snapshot = a_snapshot(seen, at=later)
    second = detect(replace(snapshot, parts=(*snapshot.parts, denied)), first.memory, CLUSTER)
    assert [f.subject for f in second.findings] == ["Deployment/hyperpod-ns-research/web"]
    assert second.cleared == ()


def test_a_list_of_owners_matters_only_where_an_accelerators_owner_would_be_in_it():
    # The job's own list is refused, and one that only a waiting workload led to.
    job = Owner(kind="Job", namespace="hyperpod-ns-research", name="train")
    gpu = idle_from(at("8:58"), holder=a_holder("train", owner=job))
    refused = [a_part(f"kubernetes/{name}", PartStatus.DENIED) for name in ("jobs", "pytorchjobs")]
    snapshot = a_snapshot(gpu)
    found = detect(replace(snapshot, parts=(*snapshot.parts, *refused)), EMPTY, CLUSTER)
    assert [line.subject for line in found.unknown] == ["kubernetes/jobs"]


def replicas_of_web(*gpus, now, left_out=()):
    """GPUs as a tick sees them that could not read, of the lists of owners, that ReplicaSet."""
    owner = Owner(kind="ReplicaSet", namespace="hyperpod-ns-research", name="web-6d4f")
    held = a_holder("web", owner=owner)
    seen = [at_time(replace(gpu, idle_since=None, holder=held), now) for gpu in gpus]
    status = PartStatus.OK if left_out else PartStatus.DENIED
    lists = replace(a_part("kubernetes/replicasets", status), left_out=left_out)
    snapshot = a_snapshot(*seen, at=now)
    return replace(snapshot, parts=(*snapshot.parts, lists))


def test_one_owner_that_could_not_be_read_does_not_end_an_incident_under_another_name():
    owner = Owner(kind="Deployment", namespace="hyperpod-ns-research", name="web")
    gpu = idle_from(at("8:58"), holder=a_holder("web", owner=owner))
    first = detect(a_snapshot(gpu), EMPTY, CLUSTER)
    snapshot = replicas_of_web(gpu, now=at("12:05"), left_out=("hyperpod-ns-research/web-6d4f",))
    second = detect(snapshot, first.memory, CLUSTER)
    assert [f.subject for f in second.findings] == ["Deployment/hyperpod-ns-research/web"]
    assert second.cleared == ()


def test_without_owners_the_busy_part_of_a_job_still_belongs_to_it():
    owner = Owner(kind="Deployment", namespace="hyperpod-ns-research", name="web")
    gpu = idle_from(at("8:58"), holder=a_holder("web", owner=owner))
    busy = replace(gpu, uuid="GPU-2", windows=BUSY)
    first = detect(a_snapshot(gpu, busy), EMPTY, CLUSTER)
    second = detect(replicas_of_web(gpu, busy, now=at("12:05")), first.memory, CLUSTER)
    (finding,) = second.findings
    assert (finding.evidence["job_gpus"], finding.evidence["busy"]) == (2, 1)
    # Nobody is told to stop a job of which half works.
    assert finding.action == first.findings[0].action
    assert finding.action.endswith("-- nvidia-smi")
