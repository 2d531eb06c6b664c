"""How a finding of the pending detector ends."""

import json
from copy import replace
from datetime import timedelta

import pytest

from steward.cluster.accelerators import UnknownReason
from steward.cluster.findings import Resolution
from steward.cluster.snapshot import PartStatus
from steward.detect.pending import detect
from tests.builders import NOON, a_holder, an_accelerator
from tests.pending_cases import (
    CLUSTER,
    EMPTY,
    FULL,
    LACKS_8,
    LOCAL,
    P5,
    PIECES,
    REFUSED,
    SPACE,
    a_condition,
    a_node,
    a_queue,
    a_row,
    a_workload,
    a_world,
    an_admitted,
    hours_ago,
    refused_with,
)

TOLD = detect(a_world(a_workload(message=LACKS_8), cluster_queues=FULL), EMPTY, CLUSTER)
LATER = NOON + timedelta(minutes=5)


def ending(*workloads, memory=TOLD.memory, **changes):
    """How the finding told at noon has ended by 12:05."""
    detection = detect(a_world(*workloads, at=LATER, **changes), memory, CLUSTER)
    return [(one.resolution, one.finding.reason) for one in detection.cleared]


def test_a_workload_that_holds_quota_now_was_admitted():
    admitted = an_admitted("train", hours=0)
    assert ending(admitted) == [(Resolution.ADMITTED, "waiting_for_quota")]


def test_a_workload_that_is_gone_was_released():
    assert ending() == [(Resolution.RELEASED, "waiting_for_quota")]


def test_a_workload_that_was_deactivated_was_released():
    assert ending(a_workload(active=False)) == [(Resolution.RELEASED, "waiting_for_quota")]


def test_a_workload_that_ran_between_two_ticks_has_finished():
    ended = a_workload(conditions=(a_condition("Finished"),))
    assert ending(ended) == [(Resolution.FINISHED, "waiting_for_quota")]


def test_the_workload_that_led_decides_not_its_sibling():
    # One job, two workloads: the one that was told of is deactivated, the other runs.
    led = a_workload()
    sibling = replace(an_admitted("b"), owner=led.owner, owner_chain=led.owner_chain)
    pods = (an_accelerator(holder=a_holder("train")),)
    assert ending(a_workload(active=False), sibling, accelerators=pods) == [
        (Resolution.RELEASED, "waiting_for_quota")
    ]


@pytest.mark.parametrize(
    ("successor", "resolution"),
    [
        (an_admitted("train"), Resolution.ADMITTED),
        (a_workload(created=LATER), Resolution.RELEASED),
    ],
)
def test_a_workload_that_was_made_anew_decides_for_the_old_one(successor, resolution):
    # Kueue makes a new Workload when a job's shape changes.
    successor = replace(successor, name="pytorchjob-train-zzzzz", uid="new")
    pods = (an_accelerator(holder=a_holder("train")),)
    assert ending(successor, accelerators=pods) == [(resolution, "waiting_for_quota")]


def test_a_workload_that_was_evicted_since_had_been_admitted():
    evicted = a_condition("Evicted", reason="Preempted", since=NOON + timedelta(minutes=1))
    again = a_workload(conditions=(evicted, refused_with(LACKS_8)))
    assert ending(again, cluster_queues=FULL) == [(Resolution.ADMITTED, "waiting_for_quota")]


def test_another_reason_ends_the_old_one():
    stopped = (a_queue(stop_policy="Hold"),)
    detection = detect(
        a_world(a_workload(), at=LATER, cluster_queues=stopped), TOLD.memory, CLUSTER
    )
    assert [finding.reason for finding in detection.findings] == ["queue_inactive"]
    assert ending(a_workload(), cluster_queues=stopped) == [
        (Resolution.REASON_CHANGED, "waiting_for_quota")
    ]


def test_a_queue_that_was_mended_ends_its_reason_though_the_next_is_not_due_yet():
    waiting = a_workload(queue="nowhere", created=hours_ago(1))
    memory = detect(a_world(waiting), EMPTY, CLUSTER).memory
    mended = a_workload(queue=LOCAL, created=hours_ago(1))
    assert ending(mended, memory=memory) == [(Resolution.REASON_CHANGED, "missing_queue")]


def test_nothing_ends_while_it_cannot_be_judged():
    refused = {"clusterqueues": PartStatus.DENIED}
    assert ending(a_workload(), refused=refused) == []


def test_pods_that_start_after_all_end_it_as_admitted():
    memory = detect(a_world(an_admitted()), EMPTY, CLUSTER).memory
    pods = (an_accelerator(holder=a_holder("running")),)
    assert ending(an_admitted(), memory=memory, accelerators=pods) == [
        (Resolution.ADMITTED, "reserved_without_pods")
    ]


def test_quota_that_is_given_back_ends_it_as_released():
    memory = detect(a_world(an_admitted()), EMPTY, CLUSTER).memory
    evicted = a_condition("Evicted", reason="PodsReadyTimeout", since=LATER)
    back = a_workload("running", conditions=(evicted,))
    assert ending(back, memory=memory) == [(Resolution.RELEASED, "reserved_without_pods")]


def test_an_end_is_repeated_for_two_hours_and_then_forgotten():
    memory = TOLD.memory
    told = []
    for minutes in (5, 120, 125, 130):
        world = a_world(at=NOON + timedelta(minutes=minutes))
        detection = detect(world, memory, CLUSTER)
        memory = detection.memory
        told.append(len(detection.cleared))
    assert told == [1, 1, 0, 0]
    assert memory.pending.told == ()


def test_evidence_is_json():
    first = a_workload("first", message=LACKS_8, created=hours_ago(5))
    detection = detect(
        a_world(first, a_workload("twin"), an_admitted(), cluster_queues=FULL), EMPTY, CLUSTER
    )
    assert len(detection.findings) == 3
    for finding in detection.findings:
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence


@pytest.mark.parametrize("part", ["localqueues", "clusterqueues", "cohorts"])
def test_a_refused_list_does_not_make_a_reason_less_exact(part):
    # Kueue's text says that quota lacks; that a limit stands in the way, only the queues show.
    borrower = a_queue(a_row(8, 8, borrowing_limit=4), cohort="pool")
    lender = a_queue(a_row(24), name="lender", cohort="pool")
    world = {"cluster_queues": (borrower, lender)}
    first = detect(a_world(a_workload(message=LACKS_8), **world), EMPTY, CLUSTER)
    assert [one.reason for one in first.findings] == ["borrow_limit"]
    hidden = a_world(a_workload(message=LACKS_8), refused={part: PartStatus.DENIED}, **world)
    second = detect(hidden, first.memory, CLUSTER)
    assert (second.findings, second.cleared) == ((), ())
    # The line of the job is what holds its finding.
    assert [(one.subject, one.reason) for one in second.unknown] == [
        (f"kubernetes/{part}", UnknownReason.DENIED),
        (f"PyTorchJob/{SPACE}/train", UnknownReason.DENIED),
    ]
    # Another text is news, whatever cannot be read.
    text = f"{REFUSED}flavor {P5} not found"
    hidden = a_world(a_workload(message=text), refused={part: PartStatus.DENIED}, **world)
    third = detect(hidden, second.memory, CLUSTER)
    assert [one.reason for one in third.findings] == ["unknown_flavor"]


@pytest.mark.parametrize(
    ("reason", "part", "workloads", "world"),
    [
        ("fragmentation", "nodes", (a_workload(gpus=4),), PIECES),
        ("fragmentation", "pods", (a_workload(gpus=4),), PIECES),
        ("exceeds_capacity", "nodes", (a_workload(gpus=12),), {"nodes": (a_node("a"),)}),
        (
            "unknown_flavor",
            "resourceflavors",
            (a_workload(),),
            {
                "cluster_queues": (
                    a_queue(
                        a_row(8, flavor="ml.p6"),
                        conditions=(a_condition("Active", true=False, reason="FlavorNotFound"),),
                    ),
                )
            },
        ),
        (
            "no_priority_class",
            "workloadpriorityclasses",
            (
                a_workload(priority_class="gone", priority=0),
                a_workload("first", priority=90, created=NOON),
            ),
            {},
        ),
    ],
)
def test_what_showed_a_reason_and_cannot_be_read_now_does_not_change_it(
    reason, part, workloads, world
):
    first = detect(a_world(*workloads, **world), EMPTY, CLUSTER)
    assert [one.reason for one in first.findings] == [reason]
    refused = {part: PartStatus.DENIED}
    gone = {"nodes": ()} if part == "nodes" else {}
    hidden = a_world(*workloads, refused=refused, **(world | gone))
    second = detect(hidden, first.memory, CLUSTER)
    assert (second.findings, second.cleared) == ((), ())
    assert (f"PyTorchJob/{SPACE}/train", UnknownReason.DENIED) in {
        (one.subject, one.reason) for one in second.unknown
    }
    # Read again, it goes on as if nothing had been.
    third = detect(a_world(*workloads, **world), second.memory, CLUSTER)
    assert third.findings == first.findings
