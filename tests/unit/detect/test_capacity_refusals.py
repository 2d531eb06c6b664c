"""The capacity detector: what was refused is unknown, and ends nothing."""

from copy import replace
from datetime import timedelta

from steward.cluster.kueue import Cohort
from steward.cluster.snapshot import PartStatus
from tests.builders import a_part, at
from tests.unit.detect.capacity_cluster import (
    ABC,
    FLAVOR,
    LETTERS,
    PARTS,
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


def test_without_nodes_nothing_that_rests_on_them_begins_ends_or_is_forgotten():
    lost = run(taken(), taken(with_d(ready=False), at=at("12:05")))[1]
    blind, back = run(
        taken((), at=at("12:10"), denied=("nodes",)), taken(at=at("12:15")), memory=lost.memory
    )
    assert (blind.findings, blind.cleared) == ((), ())
    assert [(line.subject, line.reason, line.blind) for line in blind.unknown] == [
        ("kubernetes/nodes", "denied", True)
    ]
    remembered = (blind.memory.capacity.nodes, blind.memory.capacity.told)
    assert remembered == (lost.memory.capacity.nodes, lost.memory.capacity.told)
    assert ended(back) == {FLAVOR: "fixed", D: "fixed"}


def test_without_nodes_a_failure_that_sagemaker_itself_tells_is_found():
    # Kubernetes is refused as a whole; SageMaker says Failure of one, which needs no second witness.
    failed = (*running(*"abc"), instance("d", "Failure"))
    denied = {"denied": ("nodes", "clusterqueues", "cohorts", "resourceflavors")}
    (found,) = run(taken((), failed, (group(3),), cluster_queues=(), **denied))
    (finding,) = found.findings
    assert (finding.subject, finding.evidence["why"]) == (D, ["Failure"])
    # What runs, to SageMaker, may be a node or not.
    (found,) = run(taken((), running(*LETTERS), cluster_queues=(), **denied))
    assert found.findings == ()


def test_a_node_that_no_group_ever_claimed_is_released_once_a_list_of_nodes_lacks_it():
    # Nodes are readable and SageMaker is not: what is gone from a readable inventory is released.
    dark = {"denied": ("sagemaker/ListClusterNodes", "sagemaker/DescribeCluster")}
    found = run(
        taken(with_d(ready=False), (), (), **dark), taken(ABC, (), (), at=at("12:05"), **dark)
    )[1]
    assert ended(found) == {D: "released"}
    # 24 are left for 28, as before
    assert [finding.subject for finding in found.findings] == [FLAVOR]


def test_a_node_of_which_nobody_says_whether_it_is_missed_is_forgotten_after_a_day():
    dark = {"denied": ("sagemaker/ListClusterNodes", "sagemaker/DescribeCluster")}
    gone = [taken(ABC, (), (), at=at(when), **dark) for when in ("12:05", "23:55")]
    next_day = taken(ABC, (), (), at=at("12:05") + timedelta(days=1), **dark)
    _, first, evening, later = run(taken(instances=(), groups=(), **dark), *gone, next_day)
    assert len(first.memory.capacity.nodes) == len(evening.memory.capacity.nodes) == 4
    assert len(later.memory.capacity.nodes) == 3


def test_an_end_that_is_known_is_repeated_though_nodes_are_refused():
    fixed = run(taken(with_d(ready=False)), taken(at=at("12:05")))[1]
    (blind,) = run(taken((), at=at("12:10"), denied=("nodes",)), memory=fixed.memory)
    assert ended(blind) == {FLAVOR: "fixed", D: "fixed"}


def test_without_queues_a_quota_finding_is_held_and_nodes_are_judged():
    down = taken(with_d(ready=False))
    again = taken(with_d(ready=False), cluster_queues=(), at=at("12:05"), denied=("clusterqueues",))
    found = run(down, again)[1]
    assert [finding.subject for finding in found.findings] == [D]
    assert found.cleared == ()
    assert [(line.subject, line.blind) for line in found.unknown] == [
        ("kubernetes/clusterqueues", False),
        (FLAVOR, False),
    ]


def test_without_cohorts_more_may_be_promised_so_that_nothing_ends():
    pool = (Cohort(name="shared-pool", parent=None, rows=(row(6.0),)),)
    found = run(taken(cohorts=pool), taken(at=at("12:05"), denied=("cohorts",)))[1]
    assert (found.findings, found.cleared) == ((), ())
    assert [line.subject for line in found.unknown] == ["kubernetes/cohorts", FLAVOR]


def test_without_flavors_only_those_named_after_a_type_are_judged():
    named = queue("research", 40.0, rows=(row(40.0), row(40.0, flavor="reserved")))
    changes = {"resource_flavors": (), "cluster_queues": (named,)}
    (found,) = run(taken(**changes, denied=("resourceflavors",)))
    assert [finding.subject for finding in found.findings] == [FLAVOR]


def test_without_groups_a_node_that_is_gone_is_not_judged():
    broken = taken(with_d(ready=False))
    dark = taken(ABC, running(*"abc"), (), at=at("12:05"), denied=("sagemaker/DescribeCluster",))
    found = run(broken, dark)[1]
    assert of(found, "node_unhealthy") == []
    assert [line.subject for line in found.unknown] == ["sagemaker/DescribeCluster", D]
    # and once the group can be read again, it is told
    lost = run(taken(ABC, running(*"abc"), (group(3),), at=at("12:10")), memory=found.memory)[0]
    assert [finding.subject for finding in of(lost, "node_unhealthy")] == [D]


def test_a_node_of_which_no_instance_was_ever_listed_belongs_to_the_only_group_of_its_type():
    denied = {"denied": ("sagemaker/ListClusterNodes",)}
    start = taken(instances=(), groups=(group(4),), **denied)
    _, lost, back = run(
        start,
        taken(ABC, (), (group(3),), at=at("12:05"), **denied),
        taken((*ABC, node("e")), (), (group(4),), at=at("12:10"), **denied),
    )
    (finding,) = of(lost, "node_unhealthy")
    assert (finding.subject, finding.evidence["group"]) == (D, "gpu")
    assert ended(back)[D] == "fixed"
    lowered = taken(ABC, (), (group(3, 3),), at=at("12:05"), **denied)
    assert of(run(start, lowered)[1], "node_unhealthy") == []
    # With two groups of the type, which of them was it of?
    two = (group(3), group(1, 1, name="other"))
    found = run(
        taken(instances=(), groups=two, **denied), taken(ABC, (), two, at=at("12:05"), **denied)
    )[1]
    assert of(found, "node_unhealthy") == []


def test_without_instances_and_groups_a_node_that_is_gone_is_remembered():
    denied = {"denied": ("sagemaker/ListClusterNodes", "sagemaker/DescribeCluster")}
    _, dark, lost = run(
        taken(instances=(), groups=(), **denied),
        taken(ABC, (), (), at=at("12:05"), **denied),
        taken(ABC, running(*"abc"), (group(3),), at=at("12:10")),
    )
    assert of(dark, "node_unhealthy") == []
    (finding,) = of(lost, "node_unhealthy")
    assert (finding.subject, finding.since) == (D, at("12:05"))


def test_an_empty_list_of_instances_of_a_group_that_counts_some_is_not_believed():
    # Else each of the four nodes would have lost its instance.
    found = run(
        taken(with_d(ready=False)), taken(with_d(ready=False), (), (group(4),), at=at("12:05"))
    )[1]
    assert [f.subject for f in of(found, "node_unhealthy")] == [D]
    later = run(taken(ABC, (), (group(4),), at=at("12:10")), memory=found.memory)[0]
    assert of(later, "node_unhealthy") == []


def test_without_instances_nodes_are_judged_by_kubernetes_and_a_failure_is_held():
    failed = (*running(*"abc"), instance("d", "Failure"))
    dark = taken(
        (*ABC[:2], node("c", ready=False), node("d")),
        (),
        (group(4),),
        at=at("12:05"),
        denied=("sagemaker/ListClusterNodes",),
    )
    found = run(taken(with_d(), failed), dark)[1]
    assert [f.subject for f in of(found, "node_unhealthy")] == ["Node/hyperpod-i-c"]
    assert found.cleared == ()
    assert [line.subject for line in found.unknown] == ["sagemaker/ListClusterNodes", D]


def test_without_instances_one_that_never_was_a_node_is_held():
    failed = taken(ABC, (*running(*"abc"), instance("d", "Failure")), (group(3),))
    dark = taken(ABC, (), (group(4),), at=at("12:05"), denied=("sagemaker/ListClusterNodes",))
    found = run(failed, dark)[1]
    assert D not in ended(found)
    assert [line.subject for line in found.unknown] == ["sagemaker/ListClusterNodes", D]


def test_a_node_that_could_not_be_read_is_not_taken_for_lost():
    parts = tuple(
        replace(a_part(name), left_out=("hyperpod-i-d",) if name == "kubernetes/nodes" else ())
        for name in PARTS
    )
    down = taken(with_d(ready=False))
    found = run(down, taken(ABC, running(*LETTERS), at=at("12:05"), parts=parts))[1]
    assert (found.findings, found.cleared) == ((), ())
    assert [line.subject for line in found.unknown] == [D, FLAVOR]
    assert {line.reason for line in found.unknown} == {"unreadable"}


def test_a_part_that_is_absent_is_an_answer():
    # Kueue is not installed: there are no quotas, which is nothing to be unknown
    parts = tuple(
        a_part(name, PartStatus.ABSENT if name == "kubernetes/clusterqueues" else PartStatus.OK)
        for name in PARTS
    )
    (found,) = run(taken(with_d(ready=False), cluster_queues=(), parts=parts))
    assert [finding.subject for finding in found.findings] == [D]
    assert found.unknown == ()
