"""The capacity detector: instances that SageMaker tries to provide and cannot."""

from copy import replace
from datetime import timedelta

import pytest

from steward.cluster.policy import Severity
from steward.cluster.snapshot import PartStatus
from tests.builders import a_part, at
from tests.unit.detect.capacity_cluster import (
    ABC,
    PARTS,
    D,
    ended,
    event,
    group,
    instance,
    node,
    of,
    run,
    taken,
)

GROUP = "InstanceGroup/gpu"
PENDING = (*(instance(name) for name in "abc"), instance("d", "Pending", message="starting"))
LIFECYCLE = event(1, at("11:50"), description="lifecycle script failed")
CREATION = event(2, at("11:50") + timedelta(seconds=2), description="x" * 600)


def failing(*events, instances=PENDING, current=3, target=4, nodes=ABC, **changes):
    groups = (group(current, target),)
    return taken(nodes, instances, groups, events=events, **changes)


def subjects(detection):
    return [finding.subject for finding in of(detection, "provisioning_failed")]


def test_two_errors_of_one_instance_two_seconds_apart_are_one_finding():
    (found,) = run(failing(LIFECYCLE, CREATION))
    (finding,) = of(found, "provisioning_failed")
    assert (finding.subject, finding.severity) == (D, Severity.INFO)
    assert (finding.since, finding.gpus) == (at("11:50"), 8)  # the first of them; one p5 brings 8
    assert finding.damping_minutes == 10
    assert finding.action == (
        "aws sagemaker list-cluster-events --region us-east-1 --cluster-name ml-shared-01 "
        "--node-id i-d"
    )
    evidence = finding.evidence
    assert (evidence["event_count"], evidence["status"]) == (2, "Pending")
    assert [one["id"] for one in evidence["events"]] == ["event-1", "event-2"]
    assert evidence["events"][0] == {
        "id": "event-1",
        "at": "2026-11-05T11:50:00Z",
        "resource_type": "Instance",
        "description": "lifecycle script failed",
    }
    assert evidence["events"][1]["description"] == "x" * 500  # shown, never parsed, and cut


def test_an_error_that_names_only_the_group_joins_the_instance_within_five_minutes():
    near = event(2, at("11:55"), instance_id=None)
    far = event(3, at("11:56"), instance_id=None)
    assert subjects(run(failing(LIFECYCLE, near))[0]) == [D]
    # six minutes later it is another matter
    assert subjects(run(failing(LIFECYCLE, far))[0]) == [GROUP, D]
    elsewhere = event(4, at("11:50"), instance_id=None, group="other")
    (found,) = run(failing(LIFECYCLE, elsewhere))
    assert of(found, "provisioning_failed")[0].evidence["event_count"] == 1


def test_an_error_of_a_group_counts_all_that_the_group_lacks():
    alone = event(1, at("11:50"), instance_id=None)
    (found,) = run(failing(alone, instances=PENDING[:2], nodes=ABC[:2], current=2))
    (finding,) = of(found, "provisioning_failed")
    assert (finding.subject, finding.gpus) == (GROUP, 16)  # 4 - 2 instances of 8
    assert finding.action.endswith("--instance-group-name gpu")


def test_later_errors_of_the_instance_join_it_and_repeats_change_nothing():
    later = event(3, at("12:20"))
    first, again, joined = run(
        failing(LIFECYCLE, CREATION),
        failing(CREATION, LIFECYCLE, CREATION, at=at("12:05")),
        failing(LIFECYCLE, CREATION, later, at=at("12:25")),
    )
    assert first.findings == again.findings
    (finding,) = of(joined, "provisioning_failed")
    assert (finding.since, finding.evidence["event_count"]) == (at("11:50"), 3)


def test_the_beginning_stays_when_the_first_error_is_no_longer_listed():
    later = event(3, at("12:20"))
    found = run(failing(LIFECYCLE), failing(later, at=at("12:25")))[1]
    assert of(found, "provisioning_failed")[0].since == at("11:50")


@pytest.mark.parametrize("level", [None, "Info", "Warn"])
def test_an_event_of_another_level_or_of_none_is_no_failure(level):
    (found,) = run(failing(event(1, at("11:50"), level=level)))
    assert subjects(found) == []


def test_an_error_of_the_cluster_as_a_whole_names_no_instance():
    one = event(1, at("11:50"), instance_id=None, group=None, resource_type="Cluster")
    assert subjects(run(failing(one))[0]) == []


def test_an_instance_that_comes_up_is_fixed():
    up = taken(events=(LIFECYCLE, CREATION), at=at("12:05"))
    found = run(failing(LIFECYCLE, CREATION), up)[1]
    assert (found.findings, ended(found)[D]) == ((), "fixed")


def test_an_instance_that_runs_is_fixed_before_it_is_a_node():
    running = (*PENDING[:3], instance("d"))
    found = run(failing(LIFECYCLE), failing(LIFECYCLE, instances=running, at=at("12:05")))[1]
    assert (subjects(found), ended(found)[D]) == ([], "fixed")


def test_a_group_that_reached_its_target_with_another_instance_is_fixed():
    others = (*PENDING[:3], instance("e"))
    full = taken((*ABC, node("e")), others, events=(LIFECYCLE,), at=at("12:05"))
    given_up = failing(LIFECYCLE, instances=PENDING[:3])
    assert ended(run(given_up, full)[1])[D] == "fixed"


def test_a_group_whose_target_was_lowered_no_longer_wants_the_instance():
    lowered = failing(LIFECYCLE, instances=PENDING[:3], target=3, at=at("12:05"))
    assert ended(run(failing(LIFECYCLE), lowered)[1])[D] == "released"


def test_of_instances_that_were_given_up_only_as_many_are_told_as_the_group_lacks():
    # d and e were both given up; the group lacks one, and e is the newer attempt
    newer = event(3, at("12:04"), instance_id="i-e")
    found = run(
        failing(LIFECYCLE, instances=PENDING[:3]),
        failing(LIFECYCLE, newer, instances=PENDING[:3], at=at("12:05")),
    )[1]
    assert subjects(found) == ["Node/hyperpod-i-e"]
    assert ended(found)[D] == "released"


def test_an_instance_that_was_given_up_is_told_while_its_group_lacks_one():
    (found,) = run(failing(LIFECYCLE, CREATION, instances=PENDING[:3]))
    (finding,) = of(found, "provisioning_failed")
    assert (finding.subject, finding.gpus) == (D, 8)  # its type is the group's only one
    assert finding.evidence["status"] is None


def test_errors_before_the_group_was_complete_are_over():
    lost = failing(LIFECYCLE, CREATION, instances=PENDING[:3], at=at("14:00"))
    complete = taken((*ABC, node("e")), (*PENDING[:3], instance("e")), events=(LIFECYCLE,))
    _, first, second = run(complete, lost, replace(lost, at=at("14:05")))
    # What is lacking now is e, which was a node; d's errors are of a fault that was mended.
    for found in (first, second):
        assert subjects(found) == []
        assert [f.subject for f in of(found, "node_unhealthy")] == ["Node/hyperpod-i-e"]


def test_errors_about_a_node_are_the_nodes():
    broken = (*ABC, node("d", ready=False))
    (found,) = run(failing(LIFECYCLE, nodes=broken))
    assert subjects(found) == []
    # four of five: the group was never complete, and d was one of its nodes
    before = taken(groups=(group(4, 5),))
    lost = failing(LIFECYCLE, instances=PENDING[:3], target=5, at=at("12:05"))
    was_one = run(before, lost)[1]
    assert subjects(was_one) == []
    assert [f.subject for f in of(was_one, "node_unhealthy")] == [D]


def test_an_instance_that_may_be_a_node_that_could_not_be_read_is_judged_by_what_sagemaker_says():
    unread = replace(a_part("kubernetes/nodes"), left_out=("item 3",))
    parts = (unread, *(a_part(name) for name in PARTS if name != "kubernetes/nodes"))
    # Pending: it does not run. No longer listed: it may be a node still.
    assert subjects(run(failing(LIFECYCLE, parts=parts))[0]) == [D]
    assert subjects(run(failing(LIFECYCLE, parts=parts, instances=PENDING[:3]))[0]) == []


def test_where_only_the_events_can_be_read_an_error_of_what_is_no_node_is_told_for_a_day():
    dark = {"denied": ("sagemaker/ListClusterNodes", "sagemaker/DescribeCluster")}

    def seen(when, *events, nodes=ABC):
        return taken(nodes, (), (), at=when, events=events, **dark)

    (found,) = run(seen(at("12:00"), LIFECYCLE, CREATION))
    (finding,) = of(found, "provisioning_failed")
    assert (finding.subject, finding.evidence["event_count"]) == (D, 2)
    assert finding.gpus == 0  # nobody tells its type
    nameless = event(1, at("11:50"), group=None)
    assert subjects(run(seen(at("12:00"), nameless))[0]) == [D]
    up = run(seen(at("12:05"), LIFECYCLE, CREATION, nodes=(*ABC, node("d"))), memory=found.memory)
    assert ended(up[0])[D] == "fixed"
    # both errors are of 11:50 the day before
    old = run(seen(at("11:51") + timedelta(days=1), LIFECYCLE, CREATION), memory=found.memory)
    assert ended(old[0])[D] == "expired"


def test_a_failed_instance_with_errors_is_told_once_and_as_provisioning():
    failed = (*PENDING[:3], instance("d", "Failure"))
    (found,) = run(failing(LIFECYCLE, instances=failed))
    told = [f.reason for f in found.findings if f.subject == D]
    assert told == ["provisioning_failed"]
    # A day without news later it is an instance that failed.
    later = run(failing(instances=failed, at=at("12:05")), memory=found.memory)[0]
    assert [f.reason for f in later.findings if f.subject == D] == ["node_unhealthy"]
    assert ended(later)[D] == "reason_changed"


def test_a_day_without_an_error_is_no_news():
    old = event(1, at("12:00") - timedelta(hours=24))
    young = event(1, at("12:00") - timedelta(hours=23, minutes=59))
    assert subjects(run(failing(old))[0]) == []
    assert subjects(run(failing(young))[0]) == [D]
    expired = run(failing(young), failing(young, at=at("12:05")))[1]
    assert ended(expired)[D] == "expired"


def test_an_unknown_type_brings_an_unknown_number():
    other = (*PENDING[:3], instance("d", "Pending", instance_type="ml.p9.48xlarge"))
    (found,) = run(failing(LIFECYCLE, instances=other))
    (finding,) = of(found, "provisioning_failed")
    assert (finding.gpus, finding.evidence["accelerators_each"]) == (0, None)


@pytest.mark.parametrize("denied", ["sagemaker/ListClusterEvents", "sagemaker/DescribeCluster"])
def test_what_could_not_be_asked_holds_what_was_told(denied):
    groups = () if denied.endswith("DescribeCluster") else (group(3),)
    dark = taken(ABC, PENDING[:3], groups, at=at("12:05"), denied=(denied,))
    found = run(failing(LIFECYCLE, instances=PENDING[:3]), dark)[1]
    assert (subjects(found), found.cleared) == ([], ())
    assert [(line.subject, line.reason, line.blind) for line in found.unknown] == [
        (denied, "denied", False),
        (D, "denied", False),
    ]


def test_without_groups_an_instance_that_is_listed_and_does_not_run_still_fails():
    dark = taken(ABC, PENDING, (), events=(LIFECYCLE,), denied=("sagemaker/DescribeCluster",))
    assert subjects(run(dark)[0]) == [D]


def test_without_the_list_of_instances_the_groups_count_tells():
    denied = ("sagemaker/ListClusterNodes",)
    # one of four is lacking, and the instance that the error names is no node
    assert subjects(run(failing(LIFECYCLE, instances=(), denied=denied))[0]) == [D]
    # the group counts four: that instance runs, or another in its place
    full = failing(LIFECYCLE, instances=(), current=4, at=at("12:05"), denied=denied)
    found = run(failing(LIFECYCLE), full)[1]
    assert (subjects(found), ended(found)[D]) == ([], "fixed")


def test_an_instance_that_is_listed_and_does_not_run_fails_whatever_its_group_counts():
    five = (*(instance(name) for name in "abce"), instance("d", "Failure"))
    nodes = (*ABC, node("e"))
    first, second = run(
        failing(LIFECYCLE, instances=five, nodes=nodes, current=4),
        failing(LIFECYCLE, instances=five, nodes=nodes, current=4, at=at("12:05")),
    )
    assert subjects(first) == subjects(second) == [D]


def test_a_cluster_without_events_has_none_and_that_is_an_answer():
    # ListClusterEvents exists with continuous provisioning only
    parts = tuple(
        a_part(name, PartStatus.ABSENT if name == "sagemaker/ListClusterEvents" else PartStatus.OK)
        for name in PARTS
    )
    (found,) = run(failing(parts=parts))
    assert (subjects(found), found.unknown) == ([], ())
