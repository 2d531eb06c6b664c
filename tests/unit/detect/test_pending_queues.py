"""Queues that admit nobody: missing, misspelt, stopped, without their flavor."""

import shlex
from copy import replace

import pytest

from steward.cluster.accelerators import Owner
from steward.cluster.policy import Severity
from steward.cluster.snapshot import PartStatus
from tests.builders import NOON
from tests.pending_cases import (
    GPU,
    LOCAL,
    P5,
    QUEUE,
    REFUSED,
    SPACE,
    a_condition,
    a_local_queue,
    a_queue,
    a_row,
    a_workload,
    a_world,
    found,
    reason_of,
)


@pytest.mark.parametrize("version", ["none", "0.12", "0.19"])
def test_a_slip_in_a_queue_name_is_told_with_the_nearest_one(version):
    wrong = f"{SPACE}-localque"
    text = {
        "none": None,
        "0.12": f"LocalQueue {wrong} doesn't exist",
        "0.19": f"LocalQueue {wrong} doesn't exist",
    }[version]
    finding = found(a_world(a_workload(message=text, queue=wrong)))
    assert finding.reason == "missing_queue"
    assert finding.evidence["nearest"] == LOCAL
    assert (finding.evidence["message"], finding.evidence["need"]) == (text, 8)
    assert finding.evidence["available"] is None
    assert finding.action == (
        f"kubectl -n {SPACE} label pytorchjobs.kubeflow.org/train "
        f"kueue.x-k8s.io/queue-name={LOCAL} --overwrite"
    )


def test_the_nearest_name_of_another_namespace_is_told_but_not_labelled():
    # A job cannot use a queue of another namespace.
    queue = a_local_queue("team-queue", namespace="hyperpod-ns-audio")
    finding = found(a_world(a_workload(queue="team-queu"), local_queues=(queue,)))
    assert finding.evidence["nearest"] == "team-queue"
    assert finding.evidence["nearest_namespace"] == "hyperpod-ns-audio"
    assert finding.action == f"kubectl -n {SPACE} get localqueues.kueue.x-k8s.io"


def test_the_only_queue_of_a_namespace_is_the_nearest_whatever_was_typed():
    assert found(a_world(a_workload(queue="gpu"))).evidence["nearest"] == LOCAL


def test_a_name_for_the_shell_is_quoted():
    # The Job is owned by a JobSet, whose label counts: no label line, but a look.
    odd = a_workload(name="x; rm -rf /", queue="localqueue", namespace="a b")
    action = found(a_world(odd)).action
    assert shlex.split(action) == ["kubectl", "-n", "a b", "get", "localqueues.kueue.x-k8s.io"]


def test_an_owned_job_is_not_labelled():
    above = Owner(kind="HyperPodPyTorchJob", namespace=SPACE, name="train")
    workload = a_workload(queue="nowhere")
    workload = replace(workload, owner_chain=(*workload.owner_chain, above))
    finding = found(a_world(workload))
    assert finding.subject == f"HyperPodPyTorchJob/{SPACE}/train"
    assert finding.action == f"kubectl -n {SPACE} get localqueues.kueue.x-k8s.io"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="none"),
        pytest.param(f"ClusterQueue {QUEUE} doesn't exist", id="0.12"),
        pytest.param(f"ClusterQueue {QUEUE} is terminating or missing", id="0.19"),
    ],
)
def test_a_local_queue_that_leads_nowhere_is_missing_too(text):
    workload = a_workload(message=text)
    finding = found(a_world(workload, cluster_queues=(a_queue(name=f"{QUEUE}s"),)))
    assert "contradiction" not in finding.evidence
    assert finding.reason == "missing_queue"
    assert finding.evidence["queue_fault"] == {"kind": "ClusterQueue", "name": QUEUE}
    assert finding.evidence["nearest"] == f"{QUEUE}s"
    assert finding.action == "kubectl get clusterqueues.kueue.x-k8s.io"


def inactive(reason="Stopped"):
    return (a_condition("Active", true=False, reason=reason, message="Can't admit new workloads"),)


@pytest.mark.parametrize(
    ("kind", "world"),
    [
        ("ClusterQueue", {"cluster_queues": (a_queue(stop_policy="HoldAndDrain"),)}),
        ("ClusterQueue", {"cluster_queues": (a_queue(stop_policy="Hold"),)}),
        ("ClusterQueue", {"cluster_queues": (a_queue(conditions=inactive("Terminating")),)}),
        ("ClusterQueue", {"cluster_queues": (a_queue(conditions=inactive("TopologyNotFound")),)}),
        ("LocalQueue", {"local_queues": (a_local_queue(stop_policy="Hold"),)}),
        (
            "LocalQueue",
            {"local_queues": (a_local_queue(conditions=inactive("ClusterQueueIsInactive")),)},
        ),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="none"),
        pytest.param(f"ClusterQueue {QUEUE} is inactive", id="0.12"),
        pytest.param(f"ClusterQueue {QUEUE} is stopped", id="0.19"),
    ],
)
def test_a_queue_that_admits_nobody_is_told_at_once(kind, world, text):
    finding = found(a_world(a_workload(message=text, created=NOON), **world))
    assert (finding.reason, finding.severity) == ("queue_inactive", Severity.WARN)
    assert finding.evidence["queue_fault"]["kind"] == kind
    assert shlex.split(finding.action)[-2].startswith(kind.lower())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="none"),
        pytest.param(f"ClusterQueue {QUEUE} is inactive", id="0.12"),
        pytest.param(f"LocalQueue {LOCAL} is inactive", id="0.19"),
    ],
)
def test_a_queue_that_names_a_flavor_that_does_not_exist(text):
    # Of the workload Kueue says no more than that the queue is inactive; the queue says why.
    queue = a_queue(a_row(8), a_row(8, flavor="ml.p6"), conditions=inactive("FlavorNotFound"))
    finding = found(a_world(a_workload(message=text), cluster_queues=(queue,)))
    assert (finding.reason, finding.evidence["flavors"]) == ("unknown_flavor", ["ml.p6"])
    assert "contradiction" not in finding.evidence


def test_a_queue_that_says_nothing_of_itself_names_a_flavor_that_does_not_exist():
    # Kueue has not written the queue's condition Active yet: the flavors that are listed tell.
    queue = a_queue(a_row(8, flavor="ml.p6"), conditions=())
    finding = found(a_world(a_workload(created=NOON), cluster_queues=(queue,)))
    assert (finding.reason, finding.evidence["flavors"]) == ("unknown_flavor", ["ml.p6"])


@pytest.mark.parametrize(
    "world",
    [
        # Kueue knows the flavor: the list is older than it.
        pytest.param({"conditions": (a_condition("Active"),)}, id="active"),
        # A list without a single flavor says more of the list than of the queue.
        pytest.param({"conditions": (), "resource_flavors": ()}, id="no flavors"),
        pytest.param({"conditions": (), "left_out": "ml.p6"}, id="left out"),
        pytest.param({"conditions": (), "left_out": "item 2"}, id="nameless"),
    ],
)
def test_a_flavor_that_may_exist_is_not_missed(world):
    queue = a_queue(a_row(8, flavor="ml.p6"), conditions=world["conditions"])
    changes = {key: world[key] for key in ("resource_flavors",) if key in world}
    if lost := world.get("left_out"):
        changes["left_out"] = {"resourceflavors": (lost,)}
    assert reason_of(a_workload(), cluster_queues=(queue,), **changes) == "not_evaluated"


def test_a_flavor_is_not_missed_where_flavors_could_not_be_listed():
    queue = a_queue(a_row(8, flavor="ml.p6"), conditions=inactive("FlavorNotFound"))
    refused = {"resourceflavors": PartStatus.DENIED}
    assert reason_of(a_workload(), cluster_queues=(queue,), refused=refused) == "queue_inactive"


def test_a_resource_that_no_flavor_has():
    workload = a_workload(more={"nvidia.com/mig-3g.40gb": 2.0})
    finding = found(a_world(workload))
    assert (finding.reason, finding.evidence["resource"]) == (
        "unknown_flavor",
        "nvidia.com/mig-3g.40gb",
    )
    assert (finding.evidence["need"], finding.evidence["available"]) == (2, None)


def test_a_resource_outside_quota_is_no_obstacle():
    # Kueue can exclude resources from quota; network interfaces usually are.
    workload = a_workload(more={"vpc.amazonaws.com/efa": 32.0})
    assert reason_of(workload) == "not_evaluated"


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(f"resource {GPU} unavailable in ClusterQueue", id="0.12"),
        pytest.param(f"flavor {P5} doesn't match node affinity", id="0.12-affinity"),
        pytest.param(
            f"untolerated taint &Taint{{Key:a,Value:,Effect:NoSchedule,}} in flavor {P5}", id="0.19"
        ),
    ],
)
def test_a_flavor_that_its_pods_cannot_use_is_told_from_the_message(inner):
    # The objects show free quota: taints and affinities are not theirs to see.
    finding = found(a_world(a_workload(message=f"{REFUSED}{inner}", created=NOON)))
    assert (finding.reason, finding.severity) == ("unknown_flavor", Severity.WARN)
    assert "contradiction" not in finding.evidence
