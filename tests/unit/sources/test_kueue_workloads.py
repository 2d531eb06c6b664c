"""Workloads; the samples follow Kueue's API reference, the numbers are worked out by hand."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from steward.cluster.accelerators import Owner
from steward.cluster.kueue import AdmissionCheck, Evictions, PodSet, Requeue, Workload
from steward.sources.kubernetes.fields import MalformedError
from steward.sources.kueue import workloads as kueue_workloads
from steward.sources.kueue.workload_shapes import WorkloadShape, finished_before

type Json = dict[str, Any]

GPU = "nvidia.com/gpu"
FLAVOR = "ml.g6e.12xlarge"


def read_workload(item: Json) -> Workload:
    return kueue_workloads.read_workload(msgspec.convert(item, WorkloadShape)).workload


def preempted() -> Json:
    """A preempted Workload that is pending again, as Kueue 0.19 prints it."""
    why = (
        "Preempted to accommodate a workload (UID: 9d10-2, JobUID: 31bb-2) due to reclamation "
        "within the cohort; preemptor path: /shared-pool/hyperpod-ns-speech-clusterqueue; "
        "preemptee path: /shared-pool/hyperpod-ns-vision-clusterqueue"
    )
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "pytorchjob-pretrain-a41c9",
            "namespace": "hyperpod-ns-vision",
            "uid": "5f0c-1",
            "creationTimestamp": "2026-11-02T06:00:00Z",
            "labels": {"kueue.x-k8s.io/job-uid": "77aa-1"},
        },
        "spec": {
            "active": True,
            "priority": 40,
            "priorityClassRef": {
                "group": "kueue.x-k8s.io",
                "kind": "WorkloadPriorityClass",
                "name": "training-priority",
            },
            "queueName": "hyperpod-ns-vision-localqueue",
            "podSets": [
                {
                    "name": "worker",
                    "count": 3,
                    "template": {"spec": {"containers": [{"resources": {"requests": {GPU: "4"}}}]}},
                }
            ],
        },
        "status": {
            "conditions": [
                {
                    "type": "QuotaReserved",
                    "status": "False",
                    "reason": "Pending",
                    "lastTransitionTime": "2026-11-02T09:20:04Z",
                    "message": "couldn't assign flavors to pod set worker: insufficient unused "
                    "quota for nvidia.com/gpu in flavor ml.g6e.12xlarge, 4 more needed",
                },
                {
                    "type": "Evicted",
                    "status": "True",
                    "reason": "Preempted",
                    "lastTransitionTime": "2026-11-02T09:20:00Z",
                    "message": why,
                },
                {
                    "type": "Preempted",
                    "status": "True",
                    "reason": "InCohortReclamation",
                    "lastTransitionTime": "2026-11-02T09:20:00Z",
                    "message": why,
                },
                {"type": "Requeued", "status": "True", "reason": "Preempted", "message": why},
                {
                    "type": "Admitted",
                    "status": "False",
                    "reason": "NoReservation",
                    "message": "The workload has no reservation",
                },
            ],
            "schedulingStats": {
                "evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 2}]
            },
            "accumulatedPastExecutionTimeSeconds": 5400,
            "resourceRequests": [{"name": "worker", "resources": {GPU: "12"}}],
        },
    }


def admitted() -> Json:
    """An admitted Workload of two pod sets, as Kueue 0.12 prints it."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": "job-embed-0be12",
            "namespace": "hyperpod-ns-speech",
            "uid": "31bb-2",
            "creationTimestamp": "2026-11-02T06:00:00Z",
        },
        "spec": {"priority": 70, "queueName": "hyperpod-ns-speech-localqueue"},
        "status": {
            "admission": {
                "clusterQueue": "hyperpod-ns-speech-clusterqueue",
                "podSetAssignments": [
                    {
                        "name": "head",
                        "count": 1,
                        "flavors": {"cpu": "ml.m5.large"},
                        "resourceUsage": {"cpu": "1500m"},
                    },
                    {
                        "name": "worker",
                        "count": 4,
                        "flavors": {"cpu": FLAVOR, GPU: FLAVOR},
                        "resourceUsage": {"cpu": "16", GPU: "8"},
                    },
                ],
            },
            "conditions": [{"type": "Admitted", "status": "True", "reason": "Admitted"}],
        },
    }


def test_a_pending_workload_reserves_nothing_and_says_why() -> None:
    workload = read_workload(preempted())
    assert workload.assigned == {}
    assert workload.cluster_queue is None
    assert workload.requests == {GPU: 12.0}
    assert workload.holds("Evicted")
    assert not workload.holds("QuotaReserved")


def test_of_a_preempted_workload_nothing_is_lost_that_kueue_says_of_it() -> None:
    workload = read_workload(preempted())
    at = datetime(2026, 11, 2, 9, 20, tzinfo=UTC)
    assert [(one.type, one.status, one.reason, one.since) for one in workload.conditions] == [
        ("QuotaReserved", False, "Pending", at.replace(second=4)),
        ("Evicted", True, "Preempted", at),
        ("Preempted", True, "InCohortReclamation", at),
        ("Requeued", True, "Preempted", None),
        ("Admitted", False, "NoReservation", None),
    ]
    waits, evicted, preempted_by = (workload.conditions[n].message for n in range(3))
    assert waits.endswith("in flavor ml.g6e.12xlarge, 4 more needed")
    assert evicted == preempted_by
    assert "(UID: 9d10-2, JobUID: 31bb-2)" in evicted
    assert evicted.endswith("preemptee path: /shared-pool/hyperpod-ns-vision-clusterqueue")
    assert workload.evictions == (Evictions(reason="Preempted", underlying_cause="", count=2),)
    assert (workload.past_seconds, workload.job_uid) == (5400, "77aa-1")
    assert (workload.priority, workload.queue) == (40, "hyperpod-ns-vision-localqueue")


def test_what_a_workload_asks_is_what_kueue_last_considered_else_what_it_specifies() -> None:
    item = preempted()
    item["status"]["resourceRequests"] = [{"name": "worker", "resources": {GPU: "16"}}]
    assert read_workload(item).requests == {GPU: 16.0}
    del item["status"]["resourceRequests"]
    assert read_workload(item).requests == {GPU: 12.0}  # 3 pods of 4


def test_an_admission_is_summed_over_pod_sets_by_flavor() -> None:
    workload = read_workload(admitted())
    assert workload.requests == {"cpu": 17.5, GPU: 8.0}
    assert workload.assigned == {"ml.m5.large": {"cpu": 1.5}, FLAVOR: {"cpu": 16.0, GPU: 8.0}}


def test_a_request_considered_before_the_admission_is_not_counted_again() -> None:
    item = admitted()
    item["status"]["resourceRequests"] = [{"name": "worker", "resources": {GPU: "8"}}]
    assert read_workload(item).requests == {"cpu": 17.5, GPU: 8.0}


def test_pods_that_are_done_for_good_give_their_share_back() -> None:
    # 1 of 4 workers is reclaimable: three quarters of 16 cores and 8 GPUs are still reserved.
    item = admitted()
    item["status"]["reclaimablePods"] = [{"name": "worker", "count": 1}]
    workload = read_workload(item)
    assert workload.assigned == {"ml.m5.large": {"cpu": 1.5}, FLAVOR: {"cpu": 12.0, GPU: 6.0}}
    assert workload.requests == {"cpu": 17.5, GPU: 8.0}


def test_a_finished_workload_reserves_nothing_though_its_admission_stays_on_record() -> None:
    item = admitted()
    item["status"]["conditions"].append({"type": "Finished", "status": "True"})
    workload = read_workload(item)
    assert workload.assigned == {}
    assert workload.cluster_queue == "hyperpod-ns-speech-clusterqueue"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (None, None)),
        ({"priorityClassName": ""}, (None, None)),
        (
            {
                "priorityClassName": "inference-priority",
                "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
            },
            ("inference-priority", "WorkloadPriorityClass"),
        ),
        (
            {"priorityClassName": "high", "priorityClassSource": "scheduling.k8s.io/priorityclass"},
            ("high", "PriorityClass"),
        ),
        ({"priorityClassName": "high", "priorityClassSource": ""}, ("high", None)),
        (
            {"priorityClassRef": {"kind": "WorkloadPriorityClass", "name": "inference-priority"}},
            ("inference-priority", "WorkloadPriorityClass"),
        ),
        (
            {"priorityClassRef": {"kind": "PriorityClass", "name": "high"}},
            ("high", "PriorityClass"),
        ),
    ],
)
def test_the_priority_class_is_read_in_either_form(
    spec: Json, expected: tuple[str | None, str | None]
) -> None:
    item = admitted()
    item["spec"] = spec
    workload = read_workload(item)
    assert (workload.priority_class, workload.priority_class_kind) == expected


def test_what_a_workload_does_not_say_has_kueues_defaults() -> None:
    item = admitted()
    item["spec"], item["status"] = {}, {}
    workload = read_workload(item)
    assert (workload.priority, workload.active, workload.queue) == (0, True, None)
    assert (workload.requests, workload.conditions, workload.owner) == ({}, (), None)
    item["spec"] = {"active": False}
    assert not read_workload(item).active


def test_the_owner_is_the_object_that_was_queued() -> None:
    item = admitted()
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "embed", "controller": True}
    item["metadata"]["ownerReferences"] = [reference]
    expected = Owner(kind="Job", namespace="hyperpod-ns-speech", name="embed")
    assert read_workload(item).owner == expected


@pytest.mark.parametrize(
    ("part", "change", "named"),
    [
        ("metadata", {"uid": None}, "uid"),
        ("metadata", {"creationTimestamp": None}, "creationTimestamp"),
        ("spec", {"priority": "high"}, "priority"),
        ("spec", {"priority": True}, "priority"),
        ("spec", {"queueName": 7}, "queueName"),
        ("status", {"conditions": [{"type": "Admitted"}]}, "status is missing"),
        ("status", {"schedulingStats": {"evictions": [{"count": 2}]}}, "reason is missing"),
        ("status", {"requeueState": {"requeueAt": "soon"}}, "requeueAt"),
        ("status", {"admission": "yes"}, "admission"),
        ("status", {"resourceRequests": [{"resources": {GPU: "a few"}}]}, "a few"),
    ],
)
def test_a_malformed_workload_is_refused_by_field(part: str, change: Json, named: str) -> None:
    item = preempted()
    item[part] |= change
    with pytest.raises((MalformedError, msgspec.ValidationError), match=named):
        read_workload(item)


def test_pod_sets_join_what_was_asked_for_with_what_was_admitted() -> None:
    # Partial admission: three of four workers, of which one is done for good.
    item = admitted()
    template = {"spec": {"containers": [{"resources": {"requests": {GPU: "2", "cpu": "4"}}}]}}
    item["spec"]["podSets"] = [
        {"name": "head", "count": 1, "topologyRequest": {"preferred": "rack"}},
        {"name": "worker", "count": 4, "minCount": 2, "template": template},
    ]
    _, worker = item["status"]["admission"]["podSetAssignments"]
    worker["count"] = 3
    worker["topologyAssignment"] = {
        "levels": ["kubernetes.io/hostname"],
        "domains": [{"values": ["n-1"], "count": 2}, {"values": ["n-2"], "count": 1}],
    }
    item["status"]["reclaimablePods"] = [{"name": "worker", "count": 1}]
    assert read_workload(item).pod_sets == (
        PodSet(name="head", count=1, admitted=1, flavors={"cpu": "ml.m5.large"}, topology="rack"),
        PodSet(
            name="worker",
            count=4,
            min_count=2,
            per_pod={GPU: 2.0, "cpu": 4.0},
            admitted=3,
            reclaimable=1,
            flavors={"cpu": FLAVOR, GPU: FLAVOR},
            nodes={"n-1": 2, "n-2": 1},
        ),
    )


def test_an_admission_that_counts_no_pods_is_of_all_of_them() -> None:
    # Of old Workloads, says Kueue: the specification's count holds. 1 of 4 is done: 6 of 8 GPUs.
    item = admitted()
    item["spec"]["podSets"] = [{"name": "head"}, {"name": "worker", "count": 4}]
    for assignment in item["status"]["admission"]["podSetAssignments"]:
        del assignment["count"]
    item["status"]["reclaimablePods"] = [{"name": "worker", "count": 1}]
    workload = read_workload(item)
    assert [one.admitted for one in workload.pod_sets] == [1, 4]
    assert workload.assigned[FLAVOR][GPU] == 6.0


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([], []),
        ([("Preempted", "", 2)], [("Preempted", "", 2)]),
        # 0.12 puts the cause into the reason; 0.13 and later have a field for it.
        (
            [("DeactivatedDueToRequeuingLimitExceeded", "", 1), ("Deactivated", "", 3)],
            [("Deactivated", "RequeuingLimitExceeded", 1), ("Deactivated", "", 3)],
        ),
        # An upgrade leaves both forms of the same fact behind: one counter.
        (
            [
                ("DeactivatedDueToAdmissionCheck", "", 1),
                ("Deactivated", "AdmissionCheck", 2),
            ],
            [("Deactivated", "AdmissionCheck", 3)],
        ),
    ],
)
def test_evictions_are_counted_by_reason_and_cause_whichever_version_wrote_them(
    listed: list[tuple[str, str, int]], expected: list[tuple[str, str, int]]
) -> None:
    item = preempted()
    keys = ("reason", "underlyingCause", "count")
    item["status"]["schedulingStats"] = {
        "evictions": [dict(zip(keys, one, strict=True)) for one in listed]
    }
    found = read_workload(item).evictions
    assert found == tuple(
        Evictions(reason=reason, underlying_cause=cause, count=count)
        for reason, cause, count in expected
    )


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, None),
        ({"accumulatedPastExecutionTimeSeconds": 5400}, 5400),
        ({"accumulatedPastExexcutionTimeSeconds": 5400}, 5400),
        ({"accumulatedPastExecutionTimeSeconds": 0}, 0),  # said to be none is not unsaid
    ],
)
def test_past_seconds_are_read_in_either_spelling(status: Json, expected: int | None) -> None:
    item = preempted()
    del item["status"]["accumulatedPastExecutionTimeSeconds"]
    item["status"] |= status
    assert read_workload(item).past_seconds == expected


def test_the_rest_of_a_status_is_kept_as_kueue_says_it() -> None:
    item = preempted()
    item["spec"]["maximumExecutionTimeSeconds"] = 86400
    item["status"] |= {
        "requeueState": {"count": 2, "requeueAt": "2026-11-02T09:30:00Z"},
        "admissionChecks": [{"name": "capacity", "state": "Retry", "message": "later"}],
        "unhealthyNodes": [{"name": "hyperpod-i-0a"}],
    }
    workload = read_workload(item)
    assert workload.max_execution_seconds == 86400
    assert workload.requeue == Requeue(count=2, at=datetime(2026, 11, 2, 9, 30, tzinfo=UTC))
    assert workload.admission_checks == (
        AdmissionCheck(name="capacity", state="Retry", message="later"),
    )
    assert workload.unhealthy_nodes == ("hyperpod-i-0a",)
    assert read_workload(preempted()).requeue is None


def test_the_queued_objects_uid_is_in_a_label_else_in_the_reference() -> None:
    item = admitted()
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "embed", "uid": "by-reference"}
    item["metadata"]["ownerReferences"] = [reference]
    assert read_workload(item).job_uid == "by-reference"
    item["metadata"]["labels"] = {"kueue.x-k8s.io/job-uid": "by-label"}
    assert read_workload(item).job_uid == "by-label"
    del item["metadata"]["labels"], item["metadata"]["ownerReferences"]
    assert read_workload(item).job_uid is None


def test_a_workload_without_status_or_spec_waits_and_says_nothing() -> None:
    item = preempted()
    del item["status"], item["spec"]
    workload = read_workload(item)
    assert (workload.conditions, workload.pod_sets, workload.assigned) == ((), (), {})
    assert workload.past_seconds is None


def test_no_environment_or_argument_is_kept() -> None:
    item = preempted()
    (pod_set,) = item["spec"]["podSets"]
    pod_set["template"]["metadata"] = {"annotations": {"note": "hunter2"}}
    pod_set["template"]["spec"]["containers"][0] |= {
        "env": [{"name": "TOKEN", "value": "hunter2"}],
        "args": ["--password", "hunter2"],
        "command": ["hunter2"],
    }
    item["metadata"]["annotations"] = {"note": "hunter2"}
    assert "hunter2" not in msgspec.json.encode(read_workload(item)).decode()


# --- on sight ------------------------------------------------------------------------------------

LIMIT = datetime(2026, 10, 26, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (
            {"type": "Finished", "status": "True", "lastTransitionTime": "2026-10-26T08:59:59Z"},
            True,
        ),
        (
            {"type": "Finished", "status": "True", "lastTransitionTime": "2026-10-26T09:00:00Z"},
            False,
        ),
        # 10:59:59 at two hours east of UTC is 08:59:59.
        (
            {
                "type": "Finished",
                "status": "True",
                "lastTransitionTime": "2026-10-26T10:59:59+02:00",
            },
            True,
        ),
        (
            {"type": "Finished", "status": "False", "lastTransitionTime": "2026-10-01T00:00:00Z"},
            False,
        ),
        ({"type": "Finished", "status": "True"}, False),
        ({"type": "Finished", "status": "True", "lastTransitionTime": "long ago"}, False),
        ({"type": "Finished", "status": 1}, False),
        (
            {
                "type": "Admitted",
                "reason": "Finished",
                "lastTransitionTime": "2026-10-01T00:00:00Z",
            },
            False,
        ),
    ],
)
def test_only_what_certainly_finished_before_is_dropped_unread(
    condition: Json,
    expected: bool,  # noqa: FBT001  # a case's expectation
) -> None:
    item = msgspec.json.encode({"status": {"conditions": [condition]}})
    assert finished_before(item, LIMIT) is expected
    assert not finished_before(item, None)


def test_bytes_that_are_no_workload_are_not_dropped_but_read_and_named() -> None:
    assert not finished_before(b'{"status": {"conditions": "Finished"', LIMIT)
    assert not finished_before(b'["Finished"]', LIMIT)
