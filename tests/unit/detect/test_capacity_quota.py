"""The capacity detector: quotas that nothing is left to serve."""

from copy import replace

import pytest

from steward.cluster.kueue import Cohort, ResourceFlavor
from steward.cluster.policy import Severity
from tests.builders import at
from tests.unit.detect.capacity_cluster import (
    ABC,
    EMPTY,
    FLAVOR,
    LABEL,
    LETTERS,
    P5,
    QUEUES,
    D,
    ended,
    group,
    instance,
    node,
    of,
    queue,
    row,
    run,
    running,
    taken,
    with_d,
)


def test_three_of_four_nodes_serve_24_of_28():
    # 3 x 8 = 24 usable; 4 + 14 + 10 = 28 promised; 28 - 24 = 4
    first, second = run(taken(with_d(ready=False)), taken(with_d(ready=False), at=at("12:05")))
    (finding,) = of(first, "quota_above_capacity")
    # d is not Ready since 06:00
    assert (finding.subject, finding.gpus, finding.since) == (FLAVOR, 4, at("06:00"))
    assert (finding.severity, finding.damping_minutes) == (Severity.WARN, 10)
    assert finding.evidence == {
        "quota": 28,
        "capacity": 32,
        "usable": 24,
        "missing": 4,
        "queues": [
            {
                "team": "platform-mlops",
                "queue": "hyperpod-ns-platform-mlops-clusterqueue",
                "nominal": 4,
            },
            # it neither lends nor borrows, and is promised its 10 all the same
            {
                "team": "product-genai",
                "queue": "hyperpod-ns-product-genai-clusterqueue",
                "nominal": 10,
            },
            {"team": "research", "queue": "hyperpod-ns-research-clusterqueue", "nominal": 14},
        ],
        "cohorts": [],
        "not_usable": [{"node": "hyperpod-i-d", "why": "not Ready", "accelerators": 8}],
        # the policy's own numbers, to compare
        "policy_capacity": 32,
        "policy_quotas": 28,
        "policy_buffer": 4,
    }
    assert finding.action == (
        f"kubectl get nodes -l node.kubernetes.io/instance-type={P5} "
        "-L sagemaker.amazonaws.com/node-health-status"
    )
    assert of(second, "quota_above_capacity")[0].since == at("06:00")


def since(nodes, memory=EMPTY, **changes):
    (found,) = run(taken(nodes, **changes), memory=memory)
    (finding,) = of(found, "quota_above_capacity")
    return finding.since


def test_it_began_when_the_node_was_lost_that_was_one_too_many():
    c, d = (
        node(name, ready=False, since=at(when)) for name, when in (("c", "11:20"), ("d", "11:40"))
    )
    # 32, from 11:20 on 24, from 11:40 on 16: below 28 from the first, below 20 from the second.
    assert since((*ABC[:2], c, d)) == at("11:20")
    twenty = {"cluster_queues": (queue("research", 20.0),)}
    assert since((*ABC[:2], c, d), **twenty) == at("11:40")
    # Nobody says since when c is cordoned; with d it is too little since 11:40 at the latest.
    cordoned = node("c", schedulable=False)
    assert since((*ABC[:2], cordoned, d)) == at("11:40")
    assert since((*ABC[:2], cordoned, node("d", schedulable=False))) == at("12:00")
    # 40 were promised before a node was lost: first seen now.
    assert since((*ABC, d), cluster_queues=(queue("research", 40.0),)) == at("12:00")


def test_it_did_not_begin_before_the_last_look_that_did_not_find_it():
    # d is lost since 11:40 and 24 sufficed until the quotas were raised, after 11:55.
    looked = replace(EMPTY, at=at("11:55"))
    assert since((*ABC, node("d", ready=False, since=at("11:40"))), looked) == at("11:55")
    assert since((*ABC, node("d", ready=False, since=at("11:58"))), looked) == at("11:58")


def test_quotas_that_the_nodes_just_serve_are_no_finding():
    queues = (queue("research", 24.0),)
    assert (
        of(run(taken(with_d(ready=False), cluster_queues=queues))[0], "quota_above_capacity") == []
    )
    queues = (queue("research", 25.0),)
    (finding,) = of(
        run(taken(with_d(ready=False), cluster_queues=queues))[0], "quota_above_capacity"
    )
    assert finding.gpus == 1


def test_quotas_above_a_cluster_that_never_was_larger_are_the_same_finding():
    (found,) = run(taken(cluster_queues=(queue("research", 40.0),)))
    (finding,) = found.findings
    assert (finding.reason, finding.gpus) == ("quota_above_capacity", 8)
    assert finding.evidence["not_usable"] == []


def test_a_quota_on_a_type_that_the_cluster_lacks_has_nothing_to_serve_it():
    lacking = queue("research", 8.0, rows=(row(8.0, flavor="ml.p4d.24xlarge"),))
    (found,) = run(taken(cluster_queues=(lacking,)))
    (finding,) = found.findings
    assert (finding.subject, finding.gpus) == ("ResourceFlavor/ml.p4d.24xlarge", 8)
    assert finding.evidence["capacity"] == 0


def test_the_queue_for_idle_capacity_promises_nothing_and_a_cohorts_own_quota_does():
    shares = queue("idle-resource-sharing-cq-1", 4.0, shares_idle=True)
    (found,) = run(taken(with_d(ready=False), cluster_queues=(*QUEUES, shares)))
    assert of(found, "quota_above_capacity")[0].evidence["quota"] == 28
    pool = Cohort(name="shared-pool", parent=None, rows=(row(6.0),))
    (found,) = run(taken(cohorts=(pool,)))
    (finding,) = of(found, "quota_above_capacity")
    assert finding.gpus == 28 + 6 - 32
    assert finding.evidence["cohorts"] == [{"cohort": "shared-pool", "nominal": 6}]


def test_mig_slices_count_their_share():
    # 2 slices 3g of each of 8 GPUs: 16 x 3/7 = 48/7 accelerators; 20 slices are 60/7
    sliced = node("a", accelerators=None, allocatable={"nvidia.com/mig-3g.40gb": 16.0, "cpu": 1.0})
    asked = queue("research", 20.0, "nvidia.com/mig-3g.40gb")
    (found,) = run(taken((sliced,), groups=(group(1, 1),), cluster_queues=(asked,)))
    (finding,) = found.findings
    assert finding.evidence["quota"] == pytest.approx(60 / 7, abs=1e-6)
    assert finding.evidence["usable"] == pytest.approx(48 / 7, abs=1e-6)
    assert finding.gpus == pytest.approx(12 / 7, abs=1e-6)
    # 5/7 x 3 and 11/7 x 3 are 16/7 x 3, though not in the last digit of a float
    just = tuple(
        queue(team, slices, "nvidia.com/mig-3g.40gb")
        for team, slices in (("research", 5.0), ("platform-mlops", 11.0))
    )
    assert run(taken((sliced,), groups=(group(1, 1),), cluster_queues=just))[0].findings == ()


def test_an_accelerator_that_the_kubelet_does_not_offer_is_not_usable():
    # 7 of d's 8 may be requested: 31 usable for 32
    nodes = with_d(allocatable={"cpu": 190.0, "nvidia.com/gpu": 7.0})
    (found,) = run(taken(nodes, cluster_queues=(queue("research", 32.0),)))
    (finding,) = found.findings
    assert finding.gpus == 1
    assert finding.evidence["not_usable"] == [
        {"node": "hyperpod-i-d", "why": "not allocatable", "accelerators": 1}
    ]


def test_neuron_devices_that_a_node_names_twice_count_once():
    # the same 16 under the old and the new name
    named = {"aws.amazon.com/neurondevice": 16.0, "aws.amazon.com/neuron": 16.0}
    trainium = node("t", instance_type="ml.trn1.32xlarge", accelerators=16, allocatable=named)
    rows = (row(20.0, "aws.amazon.com/neurondevice", "ml.trn1.32xlarge"),)
    asked = queue("research", 0.0, rows=rows)
    (found,) = run(taken((trainium,), groups=(group(1, 1),), cluster_queues=(asked,)))
    (finding,) = found.findings
    assert (finding.gpus, finding.evidence["usable"]) == (4, 16)


def test_slices_that_pose_as_whole_gpus_are_counted_as_quotas_count_them():
    # MIG strategy "single": 8 GPUs cut in seven are 56 nvidia.com/gpu to Kubernetes and to Kueue
    cut = node("a", accelerators=None, allocatable={"cpu": 1.0, "nvidia.com/gpu": 56.0})
    asked = {"groups": (group(1, 1),), "cluster_queues": (queue("research", 60.0),)}
    (found,) = run(taken((cut,), **asked))
    (finding,) = found.findings
    assert (finding.gpus, finding.evidence["capacity"]) == (4, 56)
    (down,) = run(taken((replace(cut, ready=False),), **asked))
    assert of(down, "quota_above_capacity")[0].evidence["not_usable"][0]["accelerators"] == 56


def test_a_flavor_has_the_nodes_that_its_labels_choose():
    half = ResourceFlavor(name="reserved", node_labels={"pool": "reserved"})
    nodes = (node("a", labels={"pool": "reserved"}), node("b", labels={"pool": "other"}), node("c"))
    asked = queue("research", 9.0, rows=(row(9.0, flavor="reserved"),))
    (found,) = run(
        taken(nodes, groups=(group(3, 3),), resource_flavors=(half,), cluster_queues=(asked,))
    )
    (finding,) = found.findings
    assert (finding.subject, finding.evidence["usable"]) == ("ResourceFlavor/reserved", 8)
    assert finding.action.startswith("kubectl get nodes -l pool=reserved -L ")


def test_a_flavor_that_names_the_type_has_nodes_whose_type_only_their_instance_tells():
    bare = tuple(node(name, instance_type=None, labels={}) for name in LETTERS)
    (found,) = run(taken(bare, running(*LETTERS)))
    assert found.findings == ()


@pytest.mark.parametrize("labels", [{}, {LABEL: P5}])
def test_a_node_whose_type_nobody_tells_is_not_taken_for_one_of_another_type(labels):
    # Neither a label nor an instance says what they are; 4 x 8 serve 28, and 3 x 8 do not.
    flavors = (ResourceFlavor(name=P5, node_labels=labels),)
    dark = {"denied": ("sagemaker/ListClusterNodes", "sagemaker/DescribeCluster")}
    bare = [node(name, instance_type=None, labels={}) for name in LETTERS]
    for nodes, missing in ((tuple(bare), []), (tuple(bare[:3]), [4])):
        (found,) = run(taken(nodes, (), (), resource_flavors=flavors, **dark))
        assert [finding.gpus for finding in found.findings] == missing


def test_a_ready_node_whose_instance_failed_is_no_capacity():
    (found,) = run(taken(with_d(), (*running(*"abc"), instance("d", "Failure")), (group(4),)))
    (finding,) = of(found, "quota_above_capacity")
    assert finding.evidence["not_usable"] == [
        {"node": "hyperpod-i-d", "why": "Failure", "accelerators": 8}
    ]


def test_a_lost_node_is_named_among_what_is_not_usable():
    found = run(taken(), taken(ABC, running(*"abc"), (group(3),), at=at("12:05")))[1]
    (finding,) = of(found, "quota_above_capacity")
    assert (finding.evidence["capacity"], finding.evidence["usable"]) == (32, 24)
    assert finding.evidence["not_usable"] == [
        {"node": "hyperpod-i-d", "why": "gone from Kubernetes", "accelerators": 8}
    ]


def test_quotas_that_are_lowered_end_as_quota_changed_and_nodes_that_return_as_fixed():
    down = taken(with_d(ready=False))
    lower = (*QUEUES[:2], queue("product-genai", 6.0))  # 4 + 14 + 6 = 24
    changed = run(down, taken(with_d(ready=False), cluster_queues=lower, at=at("12:05")))[1]
    assert ended(changed) == {FLAVOR: "quota_changed"}
    assert ended(run(down, taken(at=at("12:05")))[1]) == {FLAVOR: "fixed", D: "fixed"}
    # 28 become 27, which 24 do not serve: what ended it is the node that came back
    fewer = (*QUEUES[:2], queue("product-genai", 9.0))
    assert ended(run(down, taken(cluster_queues=fewer, at=at("12:05")))[1])[FLAVOR] == "fixed"
    none = run(down, taken(with_d(ready=False), cluster_queues=(), at=at("12:05")))[1]
    assert ended(none) == {FLAVOR: "quota_changed"}
