"""Quota against requests, by hand: what never fits, what does not fit now, and what stands in the way."""

from copy import replace

import pytest

from steward.cluster.kueue import Cohort, PodSet, ResourceFlavor
from steward.cluster.policy import Severity
from steward.cluster.snapshot import PartStatus
from tests.builders import NOON, a_holder, an_accelerator
from tests.pending_cases import (
    FULL,
    GPU,
    LACKS_8,
    P5,
    QUEUE,
    REFUSED,
    SPACE,
    a_condition,
    a_node,
    a_queue,
    a_row,
    a_workload,
    a_world,
    an_admitted,
    found,
    reason_of,
    refused_with,
)

# Capacity.


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(None, id="none"),
        pytest.param(
            f"insufficient quota for {GPU} in flavor {P5}, request > maximum capacity (20 > 16)",
            id="0.12",
        ),
        pytest.param(
            f"insufficient quota for {GPU} in flavor {P5}, previously considered podsets requests (0) + current podset request (20) > maximum capacity (16)",
            id="0.19",
        ),
    ],
)
def test_a_request_beyond_capacity_has_the_same_numbers_in_every_wording(inner):
    # 20 GPUs of a quota of 16 without cohort, 10 of them free now.
    text = None if inner is None else f"{REFUSED}{inner}"
    workload = a_workload(gpus=20, pods=5, message=text, created=NOON)
    finding = found(a_world(workload, cluster_queues=(a_queue(a_row(16, reserved=6)),)))
    assert (finding.reason, finding.severity) == ("exceeds_capacity", Severity.WARN)
    assert (finding.evidence["need"], finding.evidence["available"]) == (20, 10)
    assert finding.evidence["missing"][0]["potential"] == 16
    assert "can never hold more than 16 GPUs" in finding.evidence["sentence"]


def test_every_flavor_counts_before_a_request_is_beyond_capacity():
    rows = (a_row(8), a_row(24, reserved=24, flavor="ml.p5e.48xlarge"))
    workload = a_workload(gpus=20, pods=5, conditions=(refused_with("Some text of tomorrow"),))
    finding = found(a_world(workload, cluster_queues=(a_queue(*rows),)))
    assert (finding.reason, finding.evidence["flavor"]) == ("waiting_for_quota", "ml.p5e.48xlarge")


def test_partial_admission_needs_no_more_than_its_least():
    # Five pods of 4 GPUs, and three would do: 12 of 16 may be had.
    pods = PodSet(name="worker", count=5, min_count=3, per_pod={GPU: 4.0})
    workload = a_workload(gpus=20, pod_sets=(pods,))
    assert reason_of(workload) == "not_evaluated"


def test_one_pod_that_no_node_can_hold():
    # 16 GPUs of quota, but 8 a node: one pod of 12 finds no place, however idle the cluster is.
    finding = found(a_world(a_workload(gpus=12, created=NOON), nodes=(a_node("a"), a_node("b"))))
    assert finding.reason == "exceeds_capacity"
    assert (finding.evidence["need"], finding.evidence["available"]) == (12, 8)
    assert finding.evidence["largest_node"] == {"node": "a", "allocatable": 8}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'{REFUSED}topology "default" doesn\'t allow to fit any of 1 pod(s)', GPU),
        ("words of a version that is not written yet", GPU),
        # Without the resource in any flavor the size does not matter.
        (f"{REFUSED}resource cpu unavailable in ClusterQueue", "cpu"),
    ],
)
def test_a_pod_that_no_node_can_hold_is_why_its_placement_failed(text, told):
    workload = a_workload(gpus=12, message=text, created=NOON)
    queues = (a_queue(a_row(16, reserved=12)),)
    finding = found(a_world(workload, nodes=(a_node("a"),), cluster_queues=queues))
    assert finding.reason == ("exceeds_capacity" if told == GPU else "unknown_flavor")
    assert finding.evidence["resource"] == told
    assert ("contradiction" in finding.evidence) == (told == "cpu")


def test_a_pod_that_no_node_can_hold_contradicts_that_it_waits_for_quota():
    # 12 of 16 are in use and 12 are asked for: Kueue waits for 8 more. What it says is told, and that
    # no node would hold the pod stands beside it.
    text = f"{REFUSED}insufficient unused quota for {GPU} in flavor {P5}, 8 more needed"
    queues = (a_queue(a_row(16, reserved=12)),)
    workload = a_workload(gpus=12, message=text)
    finding = found(a_world(workload, nodes=(a_node("a"),), cluster_queues=queues))
    assert (finding.reason, finding.severity) == ("waiting_for_quota", Severity.INFO)
    assert (finding.evidence["need"], finding.evidence["available"]) == (12, 4)
    assert finding.evidence["objects_class"] == "exceeds_capacity"
    assert "no node has more than 8 GPUs" in finding.evidence["contradiction"]


def test_cpu_above_a_node_counts_too():
    # 96 CPUs of quota, and 47 allocatable on every node.
    rows = (a_row(16), a_row(96, resource="cpu"))
    nodes = (a_node("a", allocatable={GPU: 8.0, "cpu": 47.0}),)
    workload = a_workload(more={"cpu": 64.0})
    finding = found(a_world(workload, cluster_queues=(a_queue(*rows),), nodes=nodes))
    assert (finding.reason, finding.evidence["resource"]) == ("exceeds_capacity", "cpu")
    assert (finding.evidence["need"], finding.evidence["available"]) == (64, 47)


@pytest.mark.parametrize(
    "world",
    [
        # Nodes that were not read, not all read, of another type, or without the resource as yet.
        {"refused": {"nodes": PartStatus.DENIED}, "nodes": ()},
        {"left_out": {"nodes": ("c",)}, "nodes": (a_node("a"),)},
        {"nodes": (a_node("a", instance_type="ml.g6.12xlarge"),), "resource_flavors": ()},
        {"nodes": (a_node("a", allocatable={"cpu": 190.0}),)},
    ],
)
def test_nothing_is_too_large_for_nodes_that_are_not_known(world):
    assert reason_of(a_workload(gpus=12), **world) == "not_evaluated"


def test_a_flavor_without_nodes_may_yet_get_larger_ones():
    queue = a_queue(a_row(16), a_row(16, flavor="ml.p6.48xlarge"))
    world = {"nodes": (a_node("a"),), "cluster_queues": (queue,)}
    assert reason_of(a_workload(gpus=12), **world) == "not_evaluated"


def test_labels_say_which_nodes_a_flavor_is_of():
    # The larger node is of no flavor that the queue has.
    flavors = (ResourceFlavor(name="gpu", node_labels={"pool": "train"}),)
    nodes = (a_node("a", labels={"pool": "train"}), a_node("b", gpus=16, labels={"pool": "serve"}))
    queue = a_queue(a_row(16, flavor="gpu"))
    finding = found(
        a_world(a_workload(gpus=12), nodes=nodes, resource_flavors=flavors, cluster_queues=(queue,))
    )
    assert (finding.reason, finding.evidence["available"]) == ("exceeds_capacity", 8)


# Quota.


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="none"),
        pytest.param(LACKS_8, id="0.12"),
        pytest.param("Workload no longer fits after processing another workload", id="0.19"),
    ],
)
def test_quota_in_use_is_waited_for(text):
    finding = found(a_world(a_workload(message=text), cluster_queues=FULL))
    assert finding.reason == "waiting_for_quota"
    assert (finding.evidence["need"], finding.evidence["available"]) == (8, 0)


@pytest.mark.parametrize(
    "text", [None, f"{REFUSED}insufficient unused quota for cpu in flavor {P5}, 4 more needed"]
)
def test_the_resource_that_lacks_is_named(text):
    # 8 GPUs are free, but of 96 CPUs only 44: 4 short of the 48 that are asked for.
    rows = (a_row(16), a_row(96, reserved=52, resource="cpu"))
    workload = a_workload(message=text, more={"cpu": 48.0})
    finding = found(a_world(workload, cluster_queues=(a_queue(*rows),)))
    assert (finding.reason, finding.evidence["resource"]) == ("waiting_for_quota", "cpu")
    assert (finding.evidence["need"], finding.evidence["available"]) == (48, 44)
    assert [row["resource"] for row in finding.evidence["missing"]] == ["cpu"]
    assert "It would start if 4 CPUs more were free." in finding.evidence["sentence"]


def pool(limit, *, lender_idle=8.0, reserved=6.0, cohort=None):
    """The team's queue of 4 GPUs that holds 6, and a lender of the same cohort."""
    own = a_queue(
        a_row(4, reserved=reserved, borrowing_limit=limit), cohort="team" if cohort else "pool"
    )
    lender = a_queue(a_row(lender_idle), name="lender", cohort="pool")
    cohorts = (Cohort(name="pool", parent=None), *([cohort] if cohort else []))
    return {"cluster_queues": (own, lender), "cohorts": cohorts}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="none"),
        pytest.param(f"{REFUSED}borrowing limit for {GPU} in flavor {P5} exceeded", id="0.5"),
        pytest.param(
            f"{REFUSED}insufficient unused quota for {GPU} in flavor {P5}, 4 more needed", id="0.19"
        ),
    ],
)
def test_a_limit_that_stands_between_a_team_and_idle_quota(text):
    # Nominal 4, limit 2, all 6 in use; the lender has 8 idle, of which 2 are lent: 6 left. 4 GPUs
    # would need a limit of 6.
    finding = found(a_world(a_workload(gpus=4, message=text), **pool(2.0)))
    assert finding.reason == "borrow_limit"
    assert finding.evidence["limits"] == [
        {"kind": "ClusterQueue", "name": QUEUE, "limit": 2, "needed": 6}
    ]
    assert (finding.evidence["need"], finding.evidence["available"]) == (4, 0)
    assert finding.evidence["missing"][0]["unlimited"] == 6
    assert "if the borrowing limit rose by 4 GPUs" in finding.evidence["sentence"]
    assert "contradiction" not in finding.evidence


def test_a_limit_is_not_blamed_where_the_lenders_have_nothing():
    # Without the limit there would be 2 more at most: others' use is in the way.
    finding = found(a_world(a_workload(gpus=4, message=None), **pool(2.0, lender_idle=4.0)))
    assert finding.reason == "waiting_for_quota"


@pytest.mark.parametrize("limit", [0.0, None])
def test_a_limit_of_nothing_is_no_limit_to_raise_but_a_rule(limit):
    world = pool(limit, reserved=4.0, lender_idle=8.0 if limit == 0 else 0.0)
    finding = found(a_world(a_workload(gpus=4), **world))
    assert finding.reason == "waiting_for_quota"
    assert ("may not borrow" in finding.evidence["sentence"]) == (limit == 0)


def test_a_limit_of_the_cohort_above_counts():
    # The queue itself may borrow anything; its cohort may borrow 1 from the pool, which has 8 idle.
    above = Cohort(
        name="team",
        parent="pool",
        rows=(a_row(0, borrowing_limit=1.0),),
    )
    finding = found(a_world(a_workload(gpus=4), **pool(None, cohort=above, reserved=4.0)))
    assert finding.reason == "borrow_limit"
    assert [(one["kind"], one["name"]) for one in finding.evidence["limits"]] == [
        ("Cohort", "team")
    ]


@pytest.mark.parametrize(
    "suffix",
    [
        pytest.param(". Pending the preemption of 1 workload(s)", id="0.12"),
        pytest.param(". Preempting 1 workload(s) failed, will retry.", id="0.19"),
    ],
)
def test_victims_that_were_chosen_are_waited_for(suffix):
    finding = found(a_world(a_workload(message=f"{LACKS_8}{suffix}"), cluster_queues=FULL))
    assert finding.reason == "waiting_for_preemption"
    assert (finding.evidence["need"], finding.evidence["available"]) == (8, 0)
    assert "Waits for 1 workload to be preempted" in finding.evidence["sentence"]


@pytest.mark.parametrize(
    ("to_whom", "reason"),
    [
        ("(UID: uid-train, JobUID: j)", "waiting_for_preemption"),
        ("(UID: uid-somebody, JobUID: j)", "waiting_for_quota"),
        ("(UID: UNKNOWN)", "waiting_for_preemption"),
    ],
)
def test_victims_that_still_hold_quota_are_found_by_their_conditions(to_whom, reason):
    evicted = a_condition(
        "Evicted",
        reason="Preempted",
        message=f"Preempted to accommodate a workload {to_whom} due to prioritization in the ClusterQueue",
    )
    victim = an_admitted("victim")
    victim = replace(victim, conditions=(*victim.conditions, evicted))
    pods = tuple(an_accelerator(holder=a_holder("victim")) for _ in range(8))
    waiting = a_workload(message=LACKS_8)
    finding = found(a_world(waiting, victim, cluster_queues=FULL, accelerators=pods))
    assert finding.reason == reason
    assert finding.evidence.get("victims") == (
        [f"PyTorchJob/{SPACE}/victim"] if reason == "waiting_for_preemption" else None
    )


def test_victims_in_a_tree_of_their_own_free_nothing_for_it():
    text = "Preempted to accommodate a workload (UID: UNKNOWN) due to prioritization in the ClusterQueue"
    evicted = a_condition("Evicted", reason="Preempted", message=text)
    victim = an_admitted("victim", cluster_queue="elsewhere")
    victim = replace(victim, conditions=(*victim.conditions, evicted))
    queues = (*FULL, a_queue(name="elsewhere", cohort="other"))
    pods = (an_accelerator(holder=a_holder("victim")),)
    waiting = a_workload(message=LACKS_8)
    finding = found(a_world(waiting, victim, cluster_queues=queues, accelerators=pods))
    assert finding.reason == "waiting_for_quota"


def test_what_no_limit_explains_decides():
    # The GPUs would be there but for the limit; the CPUs are in use, limit or not.
    own = a_queue(
        a_row(4, reserved=6, borrowing_limit=2.0),
        a_row(96, reserved=96, resource="cpu"),
        cohort="pool",
    )
    lender = a_queue(a_row(8), name="lender", cohort="pool")
    workload = a_workload(gpus=4, more={"cpu": 8.0})
    finding = found(a_world(workload, cluster_queues=(own, lender)))
    assert (finding.reason, finding.evidence["resource"]) == ("waiting_for_quota", "cpu")
    assert [row["resource"] for row in finding.evidence["missing"]] == [GPU, "cpu"]
