"""Where quota fits: room in pieces, places in the queue, priority classes."""

from datetime import timedelta

import pytest

from steward.cluster.kueue import PodSet, Requeue, ResourceFlavor
from steward.cluster.snapshot import PartStatus
from steward.detect.pending import detect
from tests.builders import NOON, a_holder, an_accelerator
from tests.pending_cases import (
    CLUSTER,
    EMPTY,
    FULL,
    GPU,
    LACKS_8,
    P5,
    PIECES,
    REFUSED,
    SPACE,
    a_condition,
    a_local_queue,
    a_node,
    a_queue,
    a_row,
    a_workload,
    a_world,
    found,
    hours_ago,
    in_use,
    reason_of,
    refused_with,
)


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(None, id="none"),
        pytest.param('topology "default" doesn\'t allow to fit any of 1 pod(s)', id="0.12"),
        pytest.param(
            f'topology "default" doesn\'t allow to fit any of 1 pod(s). Total nodes: 3; excluded: resource "{GPU}": 3',
            id="0.19",
        ),
    ],
)
def test_quota_that_fits_and_room_that_lies_in_pieces(inner):
    text = None if inner is None else f"{REFUSED}{inner}"
    finding = found(a_world(a_workload(gpus=4, message=text), **PIECES))
    assert finding.reason == "fragmentation"
    assert finding.evidence["nodes"] == [
        {"node": "a", "free": 2},
        {"node": "b", "free": 2},
        {"node": "c", "free": 2},
    ]
    assert (finding.evidence["need"], finding.evidence["available"]) == (4, 6)
    assert "a 2, b 2, c 2" in finding.evidence["sentence"]


def test_pods_that_fit_node_by_node_are_not_in_pieces():
    assert reason_of(a_workload(gpus=4, pods=2), **PIECES) == "not_evaluated"


def test_room_on_nodes_that_take_no_pods_is_none():
    # Four GPUs are free on a node that is being replaced: the rest is in pieces again.
    spare = a_node("d", health="UnschedulablePendingReplacement")
    world = PIECES | {"nodes": (*PIECES["nodes"], spare, a_node("full", gpus=0))}
    finding = found(a_world(a_workload(gpus=4), **world))
    assert finding.reason == "fragmentation"
    assert [one["node"] for one in finding.evidence["nodes"]] == ["a", "b", "c"]


@pytest.mark.parametrize("bad", [{"ready": False}, {"schedulable": False}])
def test_room_on_a_node_that_is_down_or_cordoned_is_none(bad):
    world = PIECES | {"nodes": (*PIECES["nodes"], a_node("d", **bad))}
    assert reason_of(a_workload(gpus=4), **world) == "fragmentation"


def test_a_flavor_that_names_no_label_is_of_every_node():
    # The queue's flavor is called "gpu" and says nothing of nodes.
    queue = a_queue(a_row(24, reserved=18, flavor="gpu"))
    world = PIECES | {"cluster_queues": (queue,), "resource_flavors": (ResourceFlavor(name="gpu"),)}
    assert reason_of(a_workload(gpus=4), **world) == "fragmentation"


def test_capacity_stands_in_where_nodes_do_not_say_what_is_allocatable():
    nodes = tuple(a_node(name, allocatable={}) for name in ("a", "b", "c"))
    assert reason_of(a_workload(gpus=4), **(PIECES | {"nodes": nodes})) == "fragmentation"


def test_what_kueue_counted_stands_in_where_a_template_names_nothing():
    # Four GPUs for one pod; for two pods of two each, every node has room.
    def world(count):
        return a_workload(gpus=4, pod_sets=(PodSet(name="main", count=count),))

    assert reason_of(world(1), **PIECES) == "fragmentation"
    assert reason_of(world(2), **PIECES) == "not_evaluated"


def test_slices_are_counted_by_their_kind():
    # Node a has one free slice of 3g and b another: two in sum, and a pod wants both. The whole
    # cards that other pods hold there are no slices.
    slice_ = "nvidia.com/mig-3g.40gb"
    nodes = tuple(a_node(name, allocatable={slice_: 2.0}) for name in ("a", "b"))
    held = tuple(
        an_accelerator(
            f"{name}-mig", node=name, mig="3g.40gb/0", fraction=3 / 7, holder=a_holder("x")
        )
        for name in ("a", "b")
    )
    whole = (*in_use("a", 2), *in_use("b", 2))
    pods = (PodSet(name="worker", count=1, per_pod={slice_: 2.0}),)
    queue = a_queue(a_row(4, reserved=2, resource=slice_))
    workload = a_workload(requests={slice_: 2.0}, pod_sets=pods)
    finding = found(
        a_world(workload, nodes=nodes, accelerators=(*held, *whole), cluster_queues=(queue,))
    )
    assert finding.reason == "fragmentation"
    assert [one["free"] for one in finding.evidence["nodes"]] == [1, 1]
    # A slice of 3g is 3/7 of a GPU.
    assert finding.gpus == pytest.approx(6 / 7, abs=1e-6)


def test_nodes_of_another_flavor_are_no_room():
    other = a_node("x", instance_type="ml.g6.12xlarge")
    world = PIECES | {"nodes": (*PIECES["nodes"], other)}
    labels = {"node.kubernetes.io/instance-type": P5}
    flavors = (ResourceFlavor(name=P5, node_labels=labels),)
    assert reason_of(a_workload(gpus=4), **world, resource_flavors=flavors) == "fragmentation"


def test_pieces_are_not_claimed_where_pods_could_not_be_read():
    refused = {"pods": PartStatus.DENIED}
    assert reason_of(a_workload(gpus=4), **PIECES, refused=refused) == "not_evaluated"


def test_a_topology_speaks_for_itself_where_nodes_were_not_read():
    text = f'{REFUSED}topology "default" allows to fit only 1 out of 2 pod(s)'
    finding = found(a_world(a_workload(message=text, pods=2)))
    assert finding.reason == "fragmentation"
    assert "room for 1 of 2" in finding.evidence["sentence"]
    assert "contradiction" not in finding.evidence


def strict(*rows):
    return (a_queue(*rows, strategy="StrictFIFO"),)


@pytest.mark.parametrize(
    "text", [pytest.param(LACKS_8, id="0.12"), pytest.param(None, id="0.18-none")]
)
def test_who_stands_behind_the_head_of_a_strict_queue_waits_for_it(text):
    # 4 GPUs are free and the second asks for 2; the head asks for 8 and nobody may pass it.
    head = a_workload("head", message=text, created=hours_ago(4))
    second = a_workload("second", gpus=2)
    queues = strict(a_row(16, reserved=12))
    findings = detect(a_world(second, head, cluster_queues=queues), EMPTY, CLUSTER).findings
    first, behind = findings
    assert (first.reason, behind.reason) == ("waiting_for_quota", "behind_head")
    assert behind.evidence["head"]["subject"] == f"PyTorchJob/{SPACE}/head"
    assert behind.evidence["head"]["reason"] == "waiting_for_quota"
    assert (behind.evidence["position"], behind.evidence["ahead"]) == (2, 1)
    assert first.evidence["sentence"] in behind.evidence["sentence"]
    assert (behind.evidence["need"], behind.evidence["available"]) == (2, 4)


def test_what_was_never_evaluated_stands_behind_others():
    # The sum of free quota says nothing: Kueue looks at one head at a time.
    one, two = (
        a_workload(name, gpus=size, created=hours_ago(hours))
        for name, size, hours in (("one", 8, 6), ("two", 4, 5))
    )
    third = a_workload("third", gpus=2, created=hours_ago(4))
    finding = next(
        f
        for f in detect(a_world(third, two, one), EMPTY, CLUSTER).findings
        if f.subject.endswith("third")
    )
    assert (finding.reason, finding.evidence["ahead"]) == ("not_evaluated", 2)
    assert finding.evidence["message"] is None
    assert "behind 2 workloads" in finding.evidence["sentence"]


def test_the_first_in_line_with_free_quota_is_not_evaluated():
    finding = found(a_world(a_workload()))
    assert (finding.reason, finding.evidence["ahead"]) == ("not_evaluated", 0)
    assert (finding.evidence["need"], finding.evidence["available"]) == (8, 16)


def test_what_was_evaluated_waits_for_quota_wherever_it_stands():
    # Its text is of a version that is not written yet, so the objects speak: nothing is free.
    first = a_workload("first", message=LACKS_8, created=hours_ago(5))
    second = a_workload("second", message="Words of tomorrow")
    _, finding = detect(a_world(first, second, cluster_queues=FULL), EMPTY, CLUSTER).findings
    assert (finding.reason, finding.evidence["position"]) == ("waiting_for_quota", 2)


def test_nobody_waits_behind_those_of_a_stopped_queue():
    # Both lead to the same ClusterQueue; what stands in a stopped LocalQueue is not in its line.
    stopped = a_local_queue("stopped", stop_policy="Hold")
    older = a_workload("older", queue="stopped", created=hours_ago(9))
    _, finding = detect(
        a_world(older, a_workload(), local_queues=(stopped, a_local_queue())), EMPTY, CLUSTER
    ).findings
    assert (finding.reason, finding.evidence["ahead"]) == ("not_evaluated", 0)


def test_another_priority_is_not_the_same_request():
    first = a_workload("first", message=LACKS_8, priority=100)
    other = a_workload("other")
    _, finding = detect(a_world(first, other, cluster_queues=FULL), EMPTY, CLUSTER).findings
    assert "same_as" not in finding.evidence
    assert finding.evidence["head"]["workload"] == first.name


def test_an_equal_workload_ahead_speaks_for_one_that_was_not_evaluated():
    # Since 0.18 Kueue moves workloads of the same shape aside together, without a word on each.
    first = a_workload("first", message=LACKS_8, created=hours_ago(5))
    twin = a_workload("twin", created=hours_ago(4))
    _, finding = detect(a_world(twin, first, cluster_queues=FULL), EMPTY, CLUSTER).findings
    assert finding.reason == "not_evaluated"
    assert finding.evidence["same_as"] == {
        "subject": f"PyTorchJob/{SPACE}/first",
        "message": LACKS_8,
    }
    assert "waits for the same" in finding.evidence["sentence"]


def test_the_text_of_an_eviction_is_no_evaluation():
    # Kueue repeats the eviction's text in QuotaReserved until it looks at the workload again.
    text = "Preempted to accommodate a workload (UID: x) due to prioritization in the ClusterQueue"
    evicted = a_condition("Evicted", reason="Preempted", message=text)
    back = a_workload("back", conditions=(evicted, refused_with(text)), created=hours_ago(9))
    first = a_workload("first", message=LACKS_8, priority=100)
    _, finding = sorted(
        detect(a_world(back, first, cluster_queues=FULL), EMPTY, CLUSTER).findings,
        key=lambda finding: finding.reason != "waiting_for_quota",
    )
    assert (finding.reason, finding.evidence["message"]) == ("not_evaluated", text)
    assert text not in finding.evidence["sentence"]


def test_a_back_off_is_told():
    later = Requeue(count=2, at=NOON + timedelta(minutes=10))
    finding = found(a_world(a_workload(requeue=later)))
    assert "until 2026-11-05T12:10:00Z" in finding.evidence["sentence"]
    over = Requeue(count=2, at=NOON)
    assert "until" not in found(a_world(a_workload(requeue=over))).evidence["sentence"]


@pytest.mark.parametrize("strategy", ["BestEffortFIFO", "StrictFIFO"])
@pytest.mark.parametrize("named", [None, "prod"])
def test_a_workload_without_a_priority_class_that_others_overtake(strategy, named):
    # Named is a class that does not exist: both weigh nothing.
    first = a_workload("first", created=hours_ago(1))
    plain = a_workload("plain", priority=0, priority_class=named, created=hours_ago(6))
    finding = found(a_world(plain, first, cluster_queues=(a_queue(strategy=strategy),)))
    assert finding.reason == "no_priority_class"
    assert finding.action == "kubectl get workloadpriorityclasses.kueue.x-k8s.io"
    assert finding.evidence["head"]["subject"] == f"PyTorchJob/{SPACE}/first"


@pytest.mark.parametrize(
    ("plain", "world"),
    [
        # Of the same priority; first in line; explained by Kueue; the classes were not listed, or
        # the class is Kubernetes' own.
        ({"priority": 75, "priority_class": None, "created": hours_ago(2.5)}, {}),
        ({"priority": 100, "priority_class": None}, {}),
        (
            {"priority": 0, "priority_class": None, "message": LACKS_8},
            {"cluster_queues": FULL},
        ),
        (
            {"priority": 0, "priority_class": "prod"},
            {"refused": {"workloadpriorityclasses": PartStatus.DENIED}},
        ),
        (
            {"priority": 0, "priority_class": "prod", "priority_class_kind": "PriorityClass"},
            {},
        ),
    ],
)
def test_a_missing_priority_class_is_not_always_to_blame(plain, world):
    workload = a_workload("plain", **{"created": hours_ago(6), **plain})
    findings = detect(a_world(workload, a_workload("first"), **world), EMPTY, CLUSTER).findings
    assert "no_priority_class" not in {finding.reason for finding in findings}


@pytest.mark.parametrize(
    ("priority", "of_the_head"),
    [
        # 50 is some class's, or was written by hand: it is not what one without a class has.
        (50, "production-training"),
        # The head has its priority without a class: a class is not how one gets ahead here.
        (0, None),
    ],
)
def test_a_priority_class_is_not_missed_where_priorities_come_without(priority, of_the_head):
    first = a_workload("first", priority_class=of_the_head)
    plain = a_workload("plain", priority=priority, priority_class=None, created=hours_ago(6))
    strict = (a_queue(strategy="StrictFIFO"),)
    seen = detect(a_world(plain, first, cluster_queues=strict), EMPTY, CLUSTER)
    told = {one.subject: one.reason for one in seen.findings}
    assert told[f"PyTorchJob/{SPACE}/plain"] == "behind_head"


def test_without_priority_classes_a_named_one_is_not_missed_and_the_refusal_is_said():
    first = a_workload("first", priority=100, message=LACKS_8)
    plain = a_workload("plain", priority=0, priority_class="gone", created=hours_ago(2.5))
    refused = {"workloadpriorityclasses": PartStatus.DENIED}
    seen = detect(a_world(first, plain, cluster_queues=FULL, refused=refused), EMPTY, CLUSTER)
    assert {one.subject: one.reason for one in seen.findings} == {
        f"PyTorchJob/{SPACE}/first": "waiting_for_quota",
        f"PyTorchJob/{SPACE}/plain": "not_evaluated",
    }
    assert [(one.subject, one.blind) for one in seen.unknown] == [
        ("kubernetes/workloadpriorityclasses", False)
    ]
