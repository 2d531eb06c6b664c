"""Quota that is held while no pod has an accelerator."""

from copy import replace
from datetime import timedelta

import pytest

from steward.cluster.accelerators import Owner, UnknownReason
from steward.cluster.policy import Severity
from steward.cluster.snapshot import PartStatus
from steward.detect.pending import detect
from tests.builders import NOON, a_holder, a_part, an_accelerator
from tests.pending_cases import (
    CLUSTER,
    EMPTY,
    FULL,
    LACKS_8,
    P5,
    SPACE,
    a_condition,
    a_workload,
    a_world,
    an_admitted,
    found,
    hours_ago,
)


@pytest.mark.parametrize("count", [8, 16])
def test_quota_that_is_held_without_pods(count):
    # 16 GPUs admitted 130 minutes ago and no pod: 16 x 130/60 GPU-hours.
    held = an_admitted(gpus=count, hours=130 / 60)
    finding = found(a_world(held))
    assert (finding.reason, finding.severity) == ("reserved_without_pods", Severity.INFO)
    assert finding.since == NOON - timedelta(minutes=130)
    assert finding.gpus == count
    assert finding.gpu_hours == pytest.approx(count * 130 / 60, abs=1e-6)
    assert finding.cost_usd is None
    assert (finding.evidence["need"], finding.evidence["available"]) == (count, None)
    assert (
        finding.action
        == f"kubectl -n {SPACE} describe workloads.kueue.x-k8s.io pytorchjob-running-a1b2c"
    )
    assert finding.evidence["release"].startswith(f"kubectl -n {SPACE} patch")


def test_half_an_hour_is_left_for_pods_to_start():
    assert detect(a_world(an_admitted(hours=29 / 60)), EMPTY, CLUSTER).findings == ()
    assert found(a_world(an_admitted(hours=0.5))).reason == "reserved_without_pods"


@pytest.mark.parametrize(
    "holder",
    [
        a_holder("x", workload="pytorchjob-running-a1b2c"),
        a_holder("running", workload=None),
    ],
)
def test_a_pod_is_known_by_its_workload_or_its_owner(holder):
    pods = (an_accelerator(holder=holder),)
    assert detect(a_world(an_admitted(), accelerators=pods), EMPTY, CLUSTER).findings == ()


@pytest.mark.parametrize(
    "held",
    [
        # Its admission checks are still open; it holds CPUs only.
        an_admitted(conditions=(a_condition("QuotaReserved"),)),
        an_admitted(assigned={P5: {"cpu": 8.0}}),
    ],
)
def test_what_may_not_start_or_holds_no_accelerators_is_not_missed(held):
    assert detect(a_world(held), EMPTY, CLUSTER).findings == ()


def test_a_second_admission_has_its_own_half_hour():
    # Pods were seen at 10:00; it was evicted, and admitted again at 11:45.
    pods = (an_accelerator(holder=a_holder("running")),)
    ten = a_world(an_admitted(hours=9), accelerators=pods, at=hours_ago(2))
    memory = detect(ten, EMPTY, CLUSTER).memory
    assert detect(a_world(an_admitted(hours=0.25)), memory, CLUSTER).findings == ()


def test_only_those_that_are_due_are_counted_as_held_in_vain():
    owner = Owner(kind="RayCluster", namespace=SPACE, name="ray")
    old = an_admitted("a", hours=2, owner_chain=(owner,))
    new = an_admitted("b", hours=0.1, gpus=4, owner_chain=(owner,))
    waiting = a_workload("c", gpus=2, owner_chain=(owner,), created=NOON)
    finding = found(a_world(waiting, new, old))
    assert (finding.gpus, finding.gpu_hours, finding.evidence["workloads"]) == (8, 16, 1)


def test_what_waits_and_what_is_held_in_vain_are_counted_apart():
    # The one that waits has done so for three hours and leads; the other holds 8 GPUs for two.
    owner = Owner(kind="RayCluster", namespace=SPACE, name="ray")
    held = an_admitted("a", hours=2, owner_chain=(owner,))
    waiting = a_workload("c", gpus=2, message=LACKS_8, owner_chain=(owner,))
    finding = found(a_world(waiting, held, cluster_queues=FULL))
    assert (finding.reason, finding.gpus, finding.gpu_hours) == ("waiting_for_quota", 2, None)


def test_contradictory_conditions_are_named():
    # Kueue #14811: a recovery eviction leaves all three true.
    held = an_admitted()
    evicted = a_condition("Evicted", reason="NodeFailures")
    held = replace(held, conditions=(*held.conditions, evicted))
    finding = found(a_world(held))
    assert finding.evidence["conditions"] == ["Admitted", "Evicted", "QuotaReserved"]


def test_the_half_hour_counts_from_when_pods_were_last_seen_whatever_the_ticks():
    pods = (an_accelerator(holder=a_holder("running")),)
    held = an_admitted(hours=5)

    def run(*ticks):
        memory = EMPTY
        detection = None
        for minute in ticks:
            at = NOON + timedelta(minutes=minute)
            shown = pods if minute <= 0 else ()
            world = a_world(held, at=at, accelerators=shown)
            detection = detect(world, memory, CLUSTER)
            memory = detection.memory
        return detection.findings

    assert run(0, 29) == ()
    (finding,) = run(0, 30)
    assert finding.since == NOON
    assert run(0, 30) == run(-5, 0, 5, 10, 15, 20, 25, 30)


def test_without_pods_nothing_is_said_about_them():
    held = an_admitted()
    told = detect(a_world(held), EMPTY, CLUSTER)
    blind = detect(a_world(held, refused={"pods": PartStatus.DENIED}), told.memory, CLUSTER)
    assert (blind.findings, blind.cleared) == ((), ())
    lines = {(line.subject, line.reason, line.blind) for line in blind.unknown}
    # The call, and the job whose alert it holds.
    assert lines == {
        ("kubernetes/pods", UnknownReason.DENIED, False),
        (f"PyTorchJob/{SPACE}/running", UnknownReason.DENIED, False),
    }


def test_a_refused_list_of_pods_is_one_line_where_nothing_was_told():
    detection = detect(a_world(an_admitted(), refused={"pods": PartStatus.DENIED}), EMPTY, CLUSTER)
    assert [line.subject for line in detection.unknown] == ["kubernetes/pods"]


def test_what_had_ended_before_pods_were_refused_is_not_held():
    held, pods = an_admitted(), (an_accelerator(holder=a_holder("running")),)
    memory = detect(a_world(held), EMPTY, CLUSTER).memory
    memory = detect(a_world(held, accelerators=pods, at=hours_ago(-0.1)), memory, CLUSTER).memory
    refused = a_world(held, refused={"pods": PartStatus.DENIED}, at=hours_ago(-0.2))
    lines = detect(refused, memory, CLUSTER).unknown
    assert [line.subject for line in lines] == ["kubernetes/pods"]


def test_pods_that_are_seen_need_no_others():
    pods = (an_accelerator(holder=a_holder("running")),)
    left_out = {"pods": (f"{SPACE}/p", "item 1")}
    detection = detect(a_world(an_admitted(), left_out=left_out, accelerators=pods), EMPTY, CLUSTER)
    assert (detection.findings, detection.unknown) == ((), ())


def test_a_pod_without_a_name_may_be_anybodys():
    (line,) = detect(a_world(an_admitted(), left_out={"pods": ("item 1",)}), EMPTY, CLUSTER).unknown
    assert line.subject == f"PyTorchJob/{SPACE}/running"


def test_a_pod_that_could_not_be_read_may_be_the_one():
    held, left_out = an_admitted(), {"pods": (f"{SPACE}/some-pod",)}
    detection = detect(a_world(held, left_out=left_out), EMPTY, CLUSTER)
    assert detection.findings == ()
    (line,) = detection.unknown
    assert (line.subject, line.reason) == (f"PyTorchJob/{SPACE}/running", UnknownReason.UNREADABLE)
    elsewhere = {"pods": ("hyperpod-ns-audio/some-pod",)}
    assert found(a_world(held, left_out=elsewhere)).reason == "reserved_without_pods"


def test_pods_whose_owners_could_not_be_read_may_be_anybodys():
    # A JobSet's pods are owned by its Jobs: without the list of Jobs they are nobody's. As long as
    # that lasts, the JobSet is not known to lack pods.
    jobset = Owner(kind="JobSet", namespace=SPACE, name="running")
    held = an_admitted(owner=jobset, owner_chain=(jobset,))
    job = Owner(kind="Job", namespace=SPACE, name="running-workers-0")
    pods = (
        an_accelerator("gpu-0", holder=a_holder("running-workers-0-0", owner=job, workload=None)),
    )
    world = a_world(held, accelerators=pods)
    denied = replace(world, parts=(*world.parts, a_part("kubernetes/jobs", PartStatus.DENIED)))
    seen = detect(denied, EMPTY, CLUSTER)
    assert seen.findings == ()
    assert [(one.subject, one.reason) for one in seen.unknown] == [
        ("kubernetes/jobs", UnknownReason.DENIED),
        (f"JobSet/{SPACE}/running", UnknownReason.DENIED),
    ]
    # Where the Jobs could be read and lead nowhere, the pods are somebody else's.
    read = replace(world, parts=(*world.parts, a_part("kubernetes/jobs")))
    assert found(read).reason == "reserved_without_pods"


def test_a_refused_list_of_owners_is_not_needed_where_every_job_has_its_pods():
    job = Owner(kind="Job", namespace=SPACE, name="notebook")
    pods = (
        an_accelerator("gpu-0", holder=a_holder("running", workload="pytorchjob-running-a1b2c")),
        an_accelerator("gpu-1", holder=a_holder("notebook-0", owner=job, workload=None)),
    )
    world = a_world(an_admitted(), accelerators=pods)
    denied = replace(world, parts=(*world.parts, a_part("kubernetes/jobs", PartStatus.DENIED)))
    assert detect(denied, EMPTY, CLUSTER).unknown == ()
