"""Kueue's objects; the samples follow its API reference, the numbers are worked out by hand."""

from typing import Any

import pytest

from steward.cluster.accelerators import Owner
from steward.sources.kubernetes_fields import MalformedError
from steward.sources.kueue_objects import read_cluster_queue, read_local_queue, read_workload

type Json = dict[str, Any]

GPU = "nvidia.com/gpu"
FLAVOR = "ml.g6e.12xlarge"


def preempted() -> Json:
    """A preempted Workload that is pending again, as Kueue 0.19 prints it."""
    why = "Preempted to accommodate a workload (UID: 9d10-2) due to reclamation within the cohort"
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "pytorchjob-pretrain-a41c9",
            "namespace": "hyperpod-ns-vision",
            "uid": "5f0c-1",
            "creationTimestamp": "2026-11-02T06:00:00Z",
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
                {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "…"},
                {"type": "Evicted", "status": "True", "reason": "Preempted", "message": why},
            ],
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
        ({}, None),
        ({"priorityClassName": ""}, None),
        (
            {"priorityClassName": "inference-priority", "priorityClassSource": "x"},
            "inference-priority",
        ),
        ({"priorityClassRef": {"name": "inference-priority"}}, "inference-priority"),
    ],
)
def test_the_priority_class_is_read_in_either_dialect(spec: Json, expected: str | None) -> None:
    item = admitted()
    item["spec"] = spec
    assert read_workload(item).priority_class == expected


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
        ("status", {"admission": "yes"}, "admission"),
        ("status", {"resourceRequests": [{"resources": {GPU: "a few"}}]}, "a few"),
    ],
)
def test_a_malformed_workload_is_refused_by_field(part: str, change: Json, named: str) -> None:
    item = preempted()
    item[part] |= change
    with pytest.raises(MalformedError, match=named):
        read_workload(item)


# --- queues --------------------------------------------------------------------------------------


def queue(quota: Json, status: Json) -> Json:
    flavors = [{"name": FLAVOR, "resources": [{"name": GPU, **quota}]}]
    return {
        "metadata": {"name": "hyperpod-ns-vision-clusterqueue"},
        "spec": {"cohort": "shared-pool", "resourceGroups": [{"flavors": flavors}]},
        "status": status,
    }


def usage(**amounts: str) -> list[Json]:
    return [{"name": FLAVOR, "resources": [{"name": GPU, **amounts}]}]


@pytest.mark.parametrize(
    ("quota", "limits"),
    [
        # Unset is not zero: unset is no limit, zero is no borrowing and nothing to lend.
        ({"nominalQuota": "12"}, (12.0, None, None)),
        ({"nominalQuota": "12", "borrowingLimit": None}, (12.0, None, None)),
        ({"nominalQuota": 12, "borrowingLimit": 0, "lendingLimit": "0"}, (12.0, 0.0, 0.0)),
        ({"nominalQuota": "1500m", "borrowingLimit": "1k"}, (1.5, 1000.0, None)),
    ],
)
def test_quotas_are_read_and_an_unset_limit_stays_unset(
    quota: Json, limits: tuple[float, float | None, float | None]
) -> None:
    (row,) = read_cluster_queue(queue(quota, {})).rows
    assert (row.nominal, row.borrowing_limit, row.lending_limit) == limits
    assert (row.reserved, row.used, row.borrowed) == (None, None, None)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        # Reserved and used are different numbers; the limit binds what is reserved.
        (
            {
                "flavorsReservation": usage(total="17", borrowed="5"),
                "flavorsUsage": usage(total="14", borrowed="2"),
            },
            (17.0, 14.0, 5.0),
        ),
        ({"flavorsUsage": usage(total="14", borrowed="2")}, (None, 14.0, 2.0)),
        # Without the number: max(0, total - nominal), which is how Kueue defines it.
        ({"flavorsReservation": usage(total="17")}, (17.0, None, 5.0)),
        ({"flavorsReservation": usage(total="3")}, (3.0, None, 0.0)),
    ],
)
def test_usage_is_read_with_what_is_borrowed(
    status: Json, expected: tuple[float | None, float | None, float | None]
) -> None:
    (row,) = read_cluster_queue(queue({"nominalQuota": "12"}, status)).rows
    assert (row.reserved, row.used, row.borrowed) == expected


def test_a_queue_without_cohort_has_none() -> None:
    item = queue({"nominalQuota": "12"}, {})
    item["spec"]["cohort"] = ""
    assert read_cluster_queue(item).cohort is None
    item["spec"]["cohortName"] = "shared-pool"
    assert read_cluster_queue(item).cohort == "shared-pool"


def test_a_malformed_queue_is_refused_by_field() -> None:
    with pytest.raises(MalformedError, match="borrowingLimit"):
        read_cluster_queue(queue({"nominalQuota": "12", "borrowingLimit": "half"}, {}))
    with pytest.raises(MalformedError, match="nominalQuota"):  # required; absent is not zero
        read_cluster_queue(queue({}, {}))
    with pytest.raises(MalformedError, match="clusterQueue"):
        read_local_queue({"metadata": {"namespace": "a", "name": "b"}, "spec": {}})
