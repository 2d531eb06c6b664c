"""The pending detector, by hand: it is noon, and a workload that names nothing else waits since 09:00."""

import pytest

from steward.cluster.accelerators import Owner, UnknownReason
from steward.cluster.kueue import PodSet
from steward.cluster.policy import Override, Severity
from steward.cluster.snapshot import PartStatus
from steward.detect.pending import detect
from tests.builders import NOON, a_cluster
from tests.pending_cases import (
    CLUSTER,
    EMPTY,
    FULL,
    GPU,
    LACKS_8,
    LOCAL,
    P5,
    QUEUE,
    REFUSED,
    SPACE,
    a_condition,
    a_queue,
    a_row,
    a_workload,
    a_world,
    found,
    hours_ago,
    refused_with,
)

# What a finding says, and when.


def test_a_full_queue_is_told_with_its_numbers_and_what_would_change_it():
    # 16 GPUs of quota, 12 in use: 4 are free, 8 are needed, 4 more would do.
    message = f"{REFUSED}insufficient unused quota for {GPU} in flavor {P5}, 4 more needed"
    finding = found(
        a_world(a_workload(message=message), cluster_queues=(a_queue(a_row(16, reserved=12)),))
    )
    assert (finding.subject, finding.reason) == (f"PyTorchJob/{SPACE}/train", "waiting_for_quota")
    assert (finding.team, finding.owner, finding.severity) == ("research", "ana", Severity.INFO)
    assert finding.since == hours_ago(3)
    assert (finding.gpus, finding.gpu_hours, finding.cost_usd) == (8, None, None)
    assert finding.evidence == {
        "sentence": "Needs 8 GPUs of ml.p5.48xlarge; 4 GPUs are free to its queue now. It would start if 4 GPUs more were free.",
        "message": message,
        "need": 8,
        "available": 4,
        "resource": GPU,
        "flavor": P5,
        "missing": [
            {
                "resource": GPU,
                "flavor": P5,
                "need": 8,
                "available": 4,
                "unlimited": 4,
                "potential": 16,
            }
        ],
        "workload": "pytorchjob-train-a1b2c",
        "queue": LOCAL,
        "cluster_queue": QUEUE,
        "priority": 75,
        "priority_class": "production-training",
        "waiting_since": "2026-11-05T09:00:00Z",
        "position": 1,
        "ahead": 0,
        "workloads": 1,
    }
    assert (
        finding.action
        == f"kubectl -n {SPACE} describe workloads.kueue.x-k8s.io pytorchjob-train-a1b2c"
    )


def test_what_may_yet_start_is_told_after_two_hours():
    def world(hours):
        waiting = a_workload(message=LACKS_8, created=hours_ago(hours))
        return a_world(waiting, cluster_queues=FULL)

    assert detect(world(119 / 60), EMPTY, CLUSTER).findings == ()
    assert found(world(2)).reason == "waiting_for_quota"


def test_what_never_starts_is_told_at_once_and_warns():
    finding = found(a_world(a_workload(queue="nowhere", created=NOON)))
    assert (finding.reason, finding.severity) == ("missing_queue", Severity.WARN)


def test_a_wait_begins_anew_with_the_last_eviction():
    # Created at 06:00, preempted at 11:00: it has waited for one hour.
    evicted = a_condition("Evicted", reason="Preempted", since=hours_ago(1))
    workload = a_workload(created=hours_ago(6), conditions=(evicted, refused_with(LACKS_8)))
    assert detect(a_world(workload, cluster_queues=FULL), EMPTY, CLUSTER).findings == ()


def test_limits_follow_the_policy():
    short = Override(priority_classes=("production-training",), pending={"wait_minutes": 30})
    loud = Override(namespaces=(SPACE,), pending={"severity": "page"})
    cluster = a_cluster(overrides=(short, loud))
    waiting = a_workload(message=LACKS_8, created=hours_ago(0.5))
    assert found(a_world(waiting, cluster_queues=FULL), cluster=cluster).severity is Severity.INFO
    never = a_workload(queue="nowhere")
    assert found(a_world(never), cluster=cluster).severity is Severity.PAGE


def test_what_is_deactivated_waits_for_nothing():
    workload = a_workload(queue="nowhere", active=False)
    assert detect(a_world(workload), EMPTY, CLUSTER).findings == ()


# Message and objects.


def test_a_contradiction_shows_both_and_believes_the_message():
    # Kueue says that 8 are missing while all 16 are free.
    finding = found(a_world(a_workload(message=LACKS_8)))
    assert finding.reason == "waiting_for_quota"
    assert finding.evidence["message_class"] == "waiting_for_quota"
    assert finding.evidence["objects_class"] == "not_evaluated"
    assert "quota fits" in finding.evidence["contradiction"]
    # Of 8 asked for, 8 are missing: Kueue saw none free. The 16 of the objects would deny the reason.
    assert (finding.evidence["need"], finding.evidence["available"]) == (8, 0)


def test_a_capacity_that_was_raised_meanwhile_is_a_contradiction():
    text = (
        f"{REFUSED}insufficient quota for {GPU} in flavor {P5}, request > maximum capacity (8 > 4)"
    )
    finding = found(a_world(a_workload(message=text)))
    assert (finding.reason, finding.evidence["objects_class"]) == (
        "exceeds_capacity",
        "not_evaluated",
    )
    assert finding.evidence["capacity"] == 4


def test_a_text_that_nobody_knows_leaves_it_to_the_objects():
    text = "Words of a version that is not written yet"
    finding = found(a_world(a_workload(message=text), cluster_queues=FULL))
    assert (finding.reason, finding.evidence["message"]) == ("waiting_for_quota", text)
    assert "contradiction" not in finding.evidence


def test_a_contradicted_message_is_not_dressed_in_the_numbers_of_the_objects():
    text = (
        f"{REFUSED}insufficient quota for {GPU} in flavor {P5}, request > maximum capacity (8 > 4)"
    )
    finding = found(a_world(a_workload(message=text), cluster_queues=FULL))
    assert finding.evidence["objects_class"] == "waiting_for_quota"
    assert finding.evidence["missing"] == []


def test_of_several_flavors_the_one_that_is_nearest_is_told():
    # Neither fits; Kueue tries the first first, and so do the objects.
    queue = a_queue(a_row(16, reserved=12, flavor="ml.b"), a_row(8, reserved=8, flavor="ml.a"))
    text = f"{REFUSED}insufficient unused quota for cpu in flavor ml.b, 1 more needed, insufficient unused quota for {GPU} in flavor ml.a, 8 more needed, insufficient unused quota for {GPU} in flavor ml.b, 4 more needed"
    workload = a_workload(message=text)
    keys = ("flavor", "resource", "need", "available")
    both = found(a_world(workload, cluster_queues=(queue,))).evidence
    assert [both[key] for key in keys] == ["ml.b", GPU, 8, 4]
    # Where only the text speaks, accelerators come first, and the first flavor that it names.
    alone = found(a_world(workload, refused={"clusterqueues": PartStatus.DENIED})).evidence
    assert [alone[key] for key in keys] == ["ml.a", GPU, 8, 0]


def test_a_text_that_nobody_knows_is_shown_where_the_objects_explain_nothing():
    text = "Admission is gated by: example.com/gate"
    finding = found(a_world(a_workload(message=text)))
    assert finding.reason == "not_evaluated"
    assert finding.evidence["sentence"].endswith(f"Kueue says: {text}")
    # Kueue cuts its texts at 32 KiB; the sentence quotes the beginning, the evidence all of it.
    long = found(a_world(a_workload(message="x" * 32768))).evidence
    assert long["message"] == "x" * 32768
    assert long["sentence"].endswith(f"Kueue says: {'x' * 300}…")


# One job, several workloads.


def test_two_workloads_of_one_owner_are_one_finding():
    # The older leads with its message and its time; both together ask for 12 GPUs.
    owner = Owner(kind="RayCluster", namespace=SPACE, name="ray")
    old = a_workload("a", message=LACKS_8, created=hours_ago(5), owner_chain=(owner,))
    new = a_workload("b", gpus=4, owner_chain=(owner,))
    finding = found(a_world(new, old, cluster_queues=FULL))
    assert (finding.subject, finding.since) == (f"RayCluster/{SPACE}/ray", hours_ago(5))
    assert (finding.gpus, finding.evidence["workloads"]) == (12, 2)
    assert finding.evidence["workload"] == old.name


def test_the_one_that_is_due_leads():
    # One hour of waiting is not due, a missing queue is at once.
    owner = Owner(kind="RayCluster", namespace=SPACE, name="ray")
    old = a_workload("a", message=LACKS_8, created=hours_ago(1), owner_chain=(owner,))
    new = a_workload("b", queue="nowhere", created=NOON, owner_chain=(owner,))
    finding = found(a_world(new, old, cluster_queues=FULL))
    assert (finding.reason, finding.evidence["workload"]) == ("missing_queue", new.name)


def test_a_workload_without_an_owner_is_its_own_subject():
    workload = a_workload(queue="nowhere", owner=None, owner_chain=())
    assert found(a_world(workload)).subject == f"Workload/{SPACE}/{workload.name}"


def test_a_namespace_outside_the_policy_has_no_team():
    workload = a_workload(queue="nowhere", namespace="elsewhere")
    assert found(a_world(workload)).team is None


# What could not be read.


def test_without_workloads_nothing_is_said():
    memory = detect(a_world(a_workload(queue="nowhere")), EMPTY, CLUSTER).memory
    blind = detect(a_world(refused={"workloads": PartStatus.DENIED}), memory, CLUSTER)
    assert (blind.findings, blind.cleared, blind.memory) == ((), (), memory)
    (line,) = blind.unknown
    assert (line.subject, line.blind) == ("kubernetes/workloads", True)


@pytest.mark.parametrize("part", ["localqueues", "clusterqueues", "cohorts"])
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (PartStatus.DENIED, UnknownReason.DENIED),
        (PartStatus.UNREADABLE, UnknownReason.UNREADABLE),
    ],
)
def test_without_a_list_of_queues_only_the_message_speaks(part, status, reason):
    said, silent = a_workload("said", message=LACKS_8), a_workload("silent")
    detection = detect(a_world(said, silent, refused={part: status}), EMPTY, CLUSTER)
    (finding,) = detection.findings
    assert (finding.subject, finding.reason) == (f"PyTorchJob/{SPACE}/said", "waiting_for_quota")
    # The text says what is missing: 8 needed and 8 more than there are.
    assert (finding.evidence["need"], finding.evidence["available"]) == (8, 0)
    assert {(line.subject, line.reason) for line in detection.unknown} == {
        (f"kubernetes/{part}", reason),
        (f"PyTorchJob/{SPACE}/silent", reason),
    }
    assert not any(line.blind for line in detection.unknown)


def test_a_cohort_that_was_left_out_hides_quota():
    detection = detect(a_world(a_workload(), left_out={"cohorts": ("item 0",)}), EMPTY, CLUSTER)
    assert [line.subject for line in detection.unknown] == [f"PyTorchJob/{SPACE}/train"]


def test_of_several_pod_sets_the_message_does_not_say_what_is_free():
    sets = tuple(PodSet(name=name, count=1, per_pod={GPU: 4.0}) for name in ("a", "b"))
    workload = a_workload(message=LACKS_8, pod_sets=sets)
    finding = found(a_world(workload, refused={"clusterqueues": PartStatus.DENIED}))
    assert (finding.evidence["need"], finding.evidence["available"]) == (8, None)


@pytest.mark.parametrize(
    ("part", "name"),
    [("localqueues", f"{SPACE}/nowhere"), ("localqueues", "item 3"), ("clusterqueues", "item 3")],
)
def test_a_queue_that_was_left_out_is_not_missing(part, name):
    queue = "nowhere" if part == "localqueues" else LOCAL
    detection = detect(a_world(a_workload(queue=queue), left_out={part: (name,)}), EMPTY, CLUSTER)
    assert detection.findings == ()
    (line,) = detection.unknown
    assert (line.subject, line.reason, line.gpus) == (
        f"PyTorchJob/{SPACE}/train",
        UnknownReason.UNREADABLE,
        8,
    )


def test_a_workload_that_was_left_out_is_known_by_its_job():
    workload = a_workload(queue="nowhere")
    told = detect(a_world(workload), EMPTY, CLUSTER)
    left_out = {"workloads": (f"{SPACE}/{workload.name}", f"{SPACE}/other")}
    hidden = detect(a_world(left_out=left_out), told.memory, CLUSTER)
    assert (hidden.findings, hidden.cleared) == ((), ())
    assert {(line.subject, line.team) for line in hidden.unknown} == {
        (f"PyTorchJob/{SPACE}/train", "research"),
        (f"Workload/{SPACE}/other", "research"),
    }
