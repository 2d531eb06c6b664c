"""The capacity detector: nodes that are unhealthy or lost, and nodes that were taken out."""

from copy import replace
from datetime import timedelta

import pytest

from steward.cluster.accelerators import Owner
from steward.cluster.policy import CapacityLimits, Severity, Thresholds
from steward.detect.capacity import detect
from tests.builders import a_holder, an_accelerator, at
from tests.unit.detect.capacity_cluster import (
    ABC,
    CLUSTER,
    CPU,
    EMPTY,
    LETTERS,
    P5,
    D,
    ended,
    group,
    instance,
    node,
    of,
    run,
    running,
    taken,
    with_d,
)


def test_a_healthy_cluster_with_quotas_it_can_serve_has_no_findings():
    # 28 of quota on 4 x 8 = 32 accelerators
    (found,) = run(taken())
    assert (found.findings, found.unknown, found.cleared) == ((), (), ())


def test_a_node_that_is_not_ready_is_told_since_its_condition_changed():
    holder = a_holder("sweep")
    other = a_holder("eval", owner=Owner(kind="Job", namespace="hyperpod-ns-research", name="eval"))
    held = (
        an_accelerator("GPU-1", node="hyperpod-i-d", holder=other),
        *(an_accelerator(f"GPU-{n}", node="hyperpod-i-d", holder=holder) for n in (2, 3)),
        an_accelerator("GPU-4", node="hyperpod-i-a", holder=holder),
    )
    nodes = with_d(ready=False, since=at("11:40"))
    instances = (*running(*"abc"), instance("d", message="kubelet stopped"))
    (found,) = run(taken(nodes, instances, accelerators=held))
    (finding,) = of(found, "node_unhealthy")
    assert (finding.subject, finding.team, finding.owner) == (D, None, None)
    assert (finding.since, finding.gpus) == (at("11:40"), 8)
    assert (finding.severity, finding.damping_minutes) == (Severity.WARN, 10)
    assert finding.action == "kubectl describe node hyperpod-i-d"
    assert finding.evidence == {
        "why": ["not Ready"],
        "ready": False,
        "health": "Schedulable",
        "schedulable": True,
        "instance_type": P5,
        "instance_id": "i-d",
        "group": "gpu",
        "group_current": 4,
        "group_target": 4,
        "status": "Running",
        "message": "kubelet stopped",
        "node_recovery": "Automatic",
        # what runs on that node, by job; the job's GPU elsewhere is not counted
        "workloads": [
            {"subject": "Job/hyperpod-ns-research/eval", "gpus": 1},
            {"subject": "PyTorchJob/hyperpod-ns-research/sweep", "gpus": 2},
        ],
    }


@pytest.mark.parametrize(
    "health",
    ["Unschedulable", "UnschedulablePendingReboot", "UnschedulablePendingReplacement"],
)
def test_a_health_label_that_bars_a_node_is_a_finding_though_it_is_ready(health):
    first, second = run(taken(with_d(health=health)), taken(with_d(health=health), at=at("12:05")))
    (finding,) = of(second, "node_unhealthy")
    assert (finding.subject, finding.evidence["why"]) == (D, [health])
    # nobody says since when; it was first seen at noon, not now
    assert finding.since == of(first, "node_unhealthy")[0].since == at("12:00")


def test_a_cordon_is_an_administrators_choice_and_still_no_capacity():
    (found,) = run(taken(with_d(schedulable=False)))
    assert of(found, "node_unhealthy") == []
    (finding,) = of(found, "quota_above_capacity")
    assert finding.evidence["not_usable"] == [
        {"node": "hyperpod-i-d", "why": "cordoned", "accelerators": 8}
    ]


def test_a_node_without_a_health_label_is_no_hyperpod_instance_and_judged_by_ready_alone():
    nodes = (node(name="ip-10-0-0-1", health=None, ready=False), *ABC)
    (found,) = run(taken(nodes, running(*"abc"), (group(3, 3),)))
    (finding,) = of(found, "node_unhealthy")
    assert (finding.subject, finding.evidence["instance_id"]) == ("Node/ip-10-0-0-1", None)
    gone = run(taken(ABC, running(*"abc"), (group(3, 3),), at=at("12:05")), memory=found.memory)[0]
    assert ended(gone)["Node/ip-10-0-0-1"] == "released"  # nobody says that it should be there


def test_a_cpu_node_counts_no_accelerators():
    cpu = node("cpu", instance_type=CPU, accelerators=None, allocatable={"cpu": 16.0}, ready=False)
    (found,) = run(taken((*(node(n) for n in LETTERS), cpu)))
    (finding,) = found.findings
    assert (finding.subject, finding.gpus) == ("Node/hyperpod-i-cpu", 0)


def test_accelerators_that_a_node_does_not_tell_are_those_of_its_type():
    (found,) = run(taken(with_d(ready=False, accelerators=None)))
    assert of(found, "node_unhealthy")[0].gpus == 8


def test_the_name_of_a_node_is_quoted_for_the_shell():
    (found,) = run(taken(with_d(name="d;rm -rf", ready=False)))
    assert of(found, "node_unhealthy")[0].action == "kubectl describe node 'd;rm -rf'"


def test_an_instance_that_failed_is_a_finding_whether_or_not_it_ever_was_a_node():
    instances = (*running(*"abc"), instance("d", "Failure", message="no capacity"))
    (as_node,) = run(taken(with_d(), instances))
    (never,) = run(taken(ABC, instances, (group(3),)))
    for found in (as_node, never):
        (finding,) = of(found, "node_unhealthy")
        assert (finding.subject, finding.gpus) == (D, 8)
        assert finding.evidence["message"] == "no capacity"
    assert never.findings[0].action == (
        "aws sagemaker describe-cluster-node --region us-east-1 --cluster-name ml-shared-01 "
        "--node-id i-d"
    )


@pytest.mark.parametrize("status", ["Pending", "SystemUpdating", "DeepHealthCheckInProgress"])
def test_what_sagemaker_is_at_work_on_is_not_unhealthy(status):
    working = (*running(*"abc"), instance("d", status))
    for changes in ({"ready": False}, {"health": "Unschedulable"}):
        (found,) = run(taken(with_d(**changes), working))
        assert of(found, "node_unhealthy") == []
        # and yet nothing can be started on it: 24 usable for 28
        assert of(found, "quota_above_capacity")[0].gpus == 4
    gone = run(taken(), taken(ABC, working, (group(3),), at=at("12:05")))[1]
    assert of(gone, "node_unhealthy") == []
    # A verdict of the health monitor is none of that work.
    (found,) = run(taken(with_d(health="UnschedulablePendingReplacement"), working))
    assert [finding.subject for finding in of(found, "node_unhealthy")] == [D]


def test_mending_a_node_that_has_been_told_does_not_end_it():
    working = (*running(*"abc"), instance("d", "SystemUpdating"))
    broken = with_d(ready=False, since=at("11:50"))
    found = run(taken(broken), taken(broken, working, at=at("12:05")))[1]
    assert of(found, "node_unhealthy")[0].since == at("11:50")
    back = run(taken(at=at("12:10")), memory=found.memory)[0]
    assert ended(back)[D] == "fixed"


def test_an_instance_that_runs_and_does_not_become_a_node_is_told_after_ten_minutes():
    start = taken(ABC, running(*LETTERS))
    found = run(
        start,
        taken(ABC, running(*LETTERS), at=at("12:05")),
        taken(ABC, running(*LETTERS), at=at("12:10")),
    )
    assert [len(of(one, "node_unhealthy")) for one in found] == [0, 0, 1]
    (finding,) = of(found[2], "node_unhealthy")
    assert (finding.evidence["why"], finding.since) == (["runs and is no node"], at("12:00"))
    assert finding.damping_minutes == 0  # the ten minutes are over: not ten more
    joined = run(taken(at=at("12:15")), memory=found[2].memory)[0]
    assert ended(joined)[D] == "fixed"
    assert joined.memory.capacity.joining == {}


def test_a_list_that_was_refused_in_between_does_not_start_the_ten_minutes_anew():
    dark = taken(ABC, (), (group(4),), at=at("12:05"), denied=("sagemaker/ListClusterNodes",))
    found = run(taken(ABC, running(*LETTERS)), dark, taken(ABC, running(*LETTERS), at=at("12:10")))
    assert [len(of(one, "node_unhealthy")) for one in found] == [0, 0, 1]


def test_where_nodes_are_not_named_after_instances_none_of_them_is_missed():
    nodes = tuple(node(name, name=f"ip-10-0-0-{name}") for name in LETTERS)
    found = run(taken(nodes, running(*LETTERS)), taken(nodes, running(*LETTERS), at=at("13:00")))
    assert [one.findings for one in found] == [(), ()]


def test_a_node_that_is_gone_while_its_group_wants_it_is_lost():
    lost = taken(ABC, running(*"abc"), (group(3),), at=at("12:05"))
    later = taken(ABC, running(*"abc"), (group(3),), at=at("12:20"))
    _, first, second = run(taken(), lost, later)
    for found in (first, second):
        (finding,) = of(found, "node_unhealthy")
        assert (finding.subject, finding.gpus, finding.since) == (D, 8, at("12:05"))
        assert finding.evidence["why"] == ["gone from Kubernetes"]
        assert (finding.evidence["ready"], finding.evidence["health"]) == (None, None)
        assert (finding.evidence["group_current"], finding.evidence["group_target"]) == (3, 4)


def test_a_node_that_is_gone_while_its_instance_is_still_listed_is_lost():
    # current equals target: SageMaker has not noticed
    found = run(taken(), taken(ABC, running(*LETTERS), at=at("12:05")))[1]
    assert [finding.subject for finding in of(found, "node_unhealthy")] == [D]


def test_a_node_that_was_never_seen_is_not_missed():
    (found,) = run(taken(ABC, running(*"abc"), (group(3),)))
    assert of(found, "node_unhealthy") == []


def test_a_replaced_node_is_fixed_once_its_group_is_complete_again():
    waiting = (*running(*"abc"), instance("e", "Pending"))
    arrived = (*ABC, node("e"))
    _, lost, pending, done, later = run(
        taken(),
        taken(ABC, running(*"abc"), (group(3),), at=at("12:05")),
        # SageMaker counts the new instance before it runs
        taken(ABC, waiting, (group(4),), at=at("12:10")),
        taken(arrived, running(*"abce"), (group(4),), at=at("12:15")),
        taken(arrived, running(*"abce"), (group(4),), at=at("15:00")),
    )
    assert [len(of(one, "node_unhealthy")) for one in (lost, pending, done)] == [1, 1, 0]
    assert ended(done)[D] == "fixed"
    assert {one.name for one in done.memory.capacity.nodes} == {one.name for one in arrived}
    assert later.cleared == ()  # an end is repeated for two hours only


def test_a_node_that_is_removed_on_purpose_is_no_finding():
    leaving = (*running(*"abc"), instance("d", "ShuttingDown"))
    steps = run(
        taken(),
        taken(with_d(ready=False, since=at("12:03")), leaving, (group(4, 3),), at=at("12:05")),
        taken(ABC, running(*"abc"), (group(3, 3),), at=at("12:10")),
    )
    assert [of(one, "node_unhealthy") for one in steps] == [[], [], []]
    assert {one.name for one in steps[2].memory.capacity.nodes} == {one.name for one in ABC}


def test_a_node_that_shuts_down_while_its_group_wants_it_is_a_finding():
    leaving = (*running(*"abc"), instance("d", "ShuttingDown"))
    found = run(taken(), taken(with_d(), leaving, (group(4, 4),), at=at("12:05")))[1]
    (finding,) = of(found, "node_unhealthy")
    assert (finding.subject, finding.evidence["why"]) == (D, ["ShuttingDown"])


def test_an_unhealthy_node_that_is_given_up_is_released():
    broken = taken(with_d(ready=False))
    lowered = taken(ABC, running(*"abc"), (group(3, 3),), at=at("12:05"))
    assert ended(run(broken, lowered)[1])[D] == "released"
    # and already while it shuts down
    leaving = (*running(*"abc"), instance("d", "ShuttingDown"))
    shutting = taken(with_d(ready=False), leaving, (group(3, 3),), at=at("12:05"))
    assert ended(run(broken, shutting)[1])[D] == "released"


def test_a_node_that_outlives_its_instance_is_given_up_with_it():
    # Kubernetes still shows it, not Ready; SageMaker lists it no more, and nobody wants it back
    broken = with_d(ready=False, since=at("11:50"))
    found = run(taken(broken), taken(broken, running(*"abc"), (group(3, 3),), at=at("12:05")))[1]
    assert (of(found, "node_unhealthy"), ended(found)[D]) == ([], "released")
    # a quota finding goes on: 24 usable for 28
    assert of(found, "quota_above_capacity")[0].gpus == 4


def test_of_lost_nodes_only_as_many_are_missed_as_their_group_lacks():
    # d is lost at 12:05; then the target is lowered to 3 and c goes: 2 of 3 are there, one is
    # lacking, and d went first
    both_gone = (node("a"), node("b"))
    _, _, found = run(
        taken(),
        taken(ABC, running(*"abc"), (group(3, 4),), at=at("12:05")),
        taken(both_gone, running(*"ab"), (group(2, 3),), at=at("12:10")),
    )
    assert [finding.subject for finding in of(found, "node_unhealthy")] == [D]


def test_what_is_listed_as_broken_is_lacking_before_what_is_gone():
    # 3 wanted, a and b run: one is lacking, and that is d, which failed; c was removed
    broken = (*running(*"ab"), instance("d", "Failure"))
    nodes = (node("a"), node("b"), node("d", ready=False))
    found = run(taken(), taken(nodes, broken, (group(2, 3),), at=at("12:05")))[1]
    assert [finding.subject for finding in of(found, "node_unhealthy")] == [D]


def test_a_node_that_does_not_come_back_from_an_update_is_lost_since_it_went():
    updating = (*running(*"abc"), instance("d", "SystemUpdating"))
    _, mended, lost = run(
        taken(),
        taken(ABC, updating, (group(4),), at=at("12:05")),
        taken(ABC, running(*LETTERS), (group(4),), at=at("12:10")),
    )
    assert of(mended, "node_unhealthy") == []
    (finding,) = of(lost, "node_unhealthy")
    assert (finding.evidence["why"], finding.since) == (["gone from Kubernetes"], at("12:05"))


def test_a_node_that_flaps_is_told_anew_and_ends_each_time():
    down = {"ready": False}
    steps = run(
        taken(with_d(**down, since=at("11:58"))),
        taken(with_d(since=at("12:04")), at=at("12:05")),
        taken(with_d(**down, since=at("12:09")), at=at("12:10")),
        taken(with_d(since=at("12:14")), at=at("12:15")),
    )
    assert [[f.since for f in of(one, "node_unhealthy")] for one in steps] == [
        [at("11:58")],
        [],
        [at("12:09")],
        [],
    ]
    assert [ended(one).get(D) for one in steps] == [None, "fixed", None, "fixed"]
    # Pairs of cards are what the alerts' own minutes prevent, by this:
    assert of(steps[0], "node_unhealthy")[0].damping_minutes == 10


def test_severity_and_damping_are_the_policys():
    limits = Thresholds(capacity=CapacityLimits(damping_minutes=30, severity=Severity.PAGE))
    loud = replace(CLUSTER, thresholds=limits)
    found = detect(taken(with_d(ready=False)), EMPTY, loud)
    assert {(f.severity, f.damping_minutes) for f in found.findings} == {(Severity.PAGE, 30)}


def test_a_condition_in_the_future_began_now():
    nodes = with_d(ready=False, since=at("12:00") + timedelta(minutes=3))
    assert of(run(taken(nodes))[0], "node_unhealthy")[0].since == at("12:00")


def days(*states):
    """Evaluate a cluster at times of a day; each state is the time, and since when node d is down."""
    return run(
        *(
            taken(with_d(ready=since is None, since=at(since) if since else None), at=at(when))
            for when, since in states
        )
    )


def test_a_node_that_is_back_for_a_moment_keeps_the_beginning_that_was_told():
    # Down at 10:00, told from 10:10 on; up at 10:15, and down again at 10:18: unseen for less than
    # ten minutes, its alert has not ended.
    *_, last = days(("10:00", "10:00"), ("10:10", "10:00"), ("10:15", None), ("10:20", "10:18"))
    (finding,) = of(last, "node_unhealthy")
    assert finding.since == at("10:00")
    # Up for ten minutes: what comes then is another one.
    *_, last = days(("10:00", "10:00"), ("10:10", "10:00"), ("10:15", None), ("10:26", "10:25"))
    assert of(last, "node_unhealthy")[0].since == at("10:25")


def test_a_node_that_was_never_told_of_begins_anew_with_its_next_fault():
    # Down for five minutes: damped, and forgotten when it was up again.
    *_, last = days(("10:00", "10:00"), ("10:05", None), ("10:10", "10:09"))
    (finding,) = of(last, "node_unhealthy")
    assert finding.since == at("10:09")
