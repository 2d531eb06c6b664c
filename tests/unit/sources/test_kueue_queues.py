"""Queues and Cohorts in either API form; the numbers are worked out by hand."""

from typing import Any

import msgspec
import pytest

from steward.cluster.kueue import (
    ClusterQueue,
    Cohort,
    Fungibility,
    LocalQueue,
    Preemption,
    QueueCounts,
)
from steward.sources.kubernetes.fields import MalformedError
from steward.sources.kueue import queues as kueue_queues
from steward.sources.kueue.queue_shapes import ClusterQueueShape, CohortShape, LocalQueueShape

type Json = dict[str, Any]

GPU = "nvidia.com/gpu"
FLAVOR = "ml.g6e.12xlarge"


def read_cluster_queue(item: Json) -> ClusterQueue:
    return kueue_queues.read_cluster_queue(msgspec.convert(item, ClusterQueueShape))


def read_local_queue(item: Json) -> LocalQueue:
    return kueue_queues.read_local_queue(msgspec.convert(item, LocalQueueShape))


def read_cohort(item: Json) -> Cohort:
    return kueue_queues.read_cohort(msgspec.convert(item, CohortShape))


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


def test_a_queue_that_names_nothing_has_kueues_defaults() -> None:
    read = read_cluster_queue({"metadata": {"name": "q"}})
    assert read == ClusterQueue(name="q", cohort=None, rows=(), conditions=())
    assert (read.strategy, read.stop_policy, read.weight) == ("BestEffortFIFO", "None", 1.0)
    assert (read.counts.pending, read.weighted_share) == (None, None)  # not said is not zero


def test_every_setting_of_a_queue_is_read() -> None:
    item = queue({"nominalQuota": "12"}, {})
    item["metadata"]["labels"] = {"sagemaker.amazonaws.com/sagemaker-managed-queue": "true"}
    item["spec"] |= {
        "queueingStrategy": "StrictFIFO",
        "stopPolicy": "HoldAndDrain",
        "preemption": {
            "withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 50},
        },
        "fairSharing": {"weight": "500m"},
    }
    item["status"] = {
        "pendingWorkloads": 3,
        "reservingWorkloads": 2,
        "admittedWorkloads": 1,
        "fairSharing": {"weightedShare": 2**63 - 1},
    }
    read = read_cluster_queue(item)
    assert (read.strategy, read.stop_policy) == ("StrictFIFO", "HoldAndDrain")
    assert read.preemption == Preemption(
        within_cluster_queue="LowerPriority",
        reclaim_within_cohort="Any",
        borrow_within_cohort="LowerPriority",
        max_priority_threshold=50,
    )
    assert read.weight == 0.5
    assert read.weighted_share == 9223372036854775807
    assert read.counts == QueueCounts(pending=3, reserving=2, admitted=1)
    assert read.managed
    item["spec"]["fairSharing"] = {"weight": 0}
    assert read_cluster_queue(item).weight == 0.0  # an infinite share, not the default


@pytest.mark.parametrize(
    ("borrow", "preempt", "expected"),
    [
        ("Borrow", "Preempt", ("MayStopSearch", "MayStopSearch")),
        ("MayStopSearch", "MayStopSearch", ("MayStopSearch", "MayStopSearch")),
        ("TryNextFlavor", "TryNextFlavor", ("TryNextFlavor", "TryNextFlavor")),
        (None, None, ("MayStopSearch", "TryNextFlavor")),
    ],
)
def test_fungibility_is_told_in_the_words_of_the_later_form(
    borrow: str | None, preempt: str | None, expected: tuple[str, str]
) -> None:
    item = queue({"nominalQuota": "12"}, {})
    item["spec"]["flavorFungibility"] = {"whenCanBorrow": borrow, "whenCanPreempt": preempt}
    read = read_cluster_queue(item).fungibility
    assert (read.when_can_borrow, read.when_can_preempt) == expected
    item["spec"]["flavorFungibility"] = {"preference": "PreemptionOverBorrowing"}
    assert read_cluster_queue(item).fungibility == Fungibility(preference="PreemptionOverBorrowing")


def test_admission_checks_are_read_in_either_form() -> None:
    item = queue({"nominalQuota": "12"}, {})
    item["spec"]["admissionChecks"] = ["capacity"]
    assert read_cluster_queue(item).admission_checks == ("capacity",)
    rules = [{"name": "capacity", "onFlavors": [FLAVOR]}, {"name": "budget"}]
    item["spec"] |= {"admissionChecks": None, "admissionChecksStrategy": {"admissionChecks": rules}}
    assert read_cluster_queue(item).admission_checks == ("capacity", "budget")


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("hyperpod-ns-idle-resource-sharing-cq-0", True),
        ("hyperpod-ns-idle-resource-sharing-cq-12", True),
        ("hyperpod-ns-idle-clusterqueue", False),  # a team may be called idle
        ("hyperpod-ns-vision-clusterqueue", False),
    ],
)
def test_hyperpods_queues_for_idle_capacity_are_told_from_a_teams(
    name: str,
    shares: bool,  # noqa: FBT001  # a case's expectation
) -> None:
    assert read_cluster_queue({"metadata": {"name": name}}).shares_idle is shares


def test_rows_keep_the_order_in_which_flavors_are_tried_and_their_group() -> None:
    def group(*flavors: str) -> Json:
        quotas = [{"name": GPU, "nominalQuota": "8"}, {"name": "cpu", "nominalQuota": "96"}]
        return {"flavors": [{"name": flavor, "resources": quotas} for flavor in flavors]}

    item = queue({}, {})
    item["spec"]["resourceGroups"] = [group("b", "a"), group("c")]
    rows = read_cluster_queue(item).rows
    assert [(row.group, row.flavor, row.resource) for row in rows] == [
        (0, "b", GPU),
        (0, "b", "cpu"),
        (0, "a", GPU),
        (0, "a", "cpu"),
        (1, "c", GPU),
        (1, "c", "cpu"),
    ]


def test_a_local_queue_tells_its_policy_and_counts() -> None:
    item: Json = {
        "metadata": {"namespace": "hyperpod-ns-vision", "name": "q"},
        "spec": {"clusterQueue": "cq", "stopPolicy": "Hold"},
        "status": {"pendingWorkloads": 1, "reservingWorkloads": 0},
    }
    read = read_local_queue(item)
    assert (read.namespace, read.cluster_queue, read.stop_policy) == (
        "hyperpod-ns-vision",
        "cq",
        "Hold",
    )
    assert read.counts == QueueCounts(pending=1, reserving=0, admitted=None)


@pytest.mark.parametrize("key", ["parent", "parentName"])
def test_a_cohort_is_a_pool_of_its_own_below_another(key: str) -> None:
    quota = {"name": GPU, "nominalQuota": "4", "lendingLimit": "1"}
    item: Json = {
        "metadata": {"name": "research"},
        "spec": {
            key: "company",
            "resourceGroups": [{"flavors": [{"name": FLAVOR, "resources": [quota]}]}],
            "fairSharing": {"weight": 2},
        },
    }
    read = read_cohort(item)
    assert (read.name, read.parent, read.weight) == ("research", "company", 2.0)
    (row,) = read.rows
    assert (row.nominal, row.borrowing_limit, row.lending_limit) == (4.0, None, 1.0)
    assert (row.reserved, row.used, row.borrowed) == (None, None, None)
    assert read_cohort({"metadata": {"name": "bare"}}) == Cohort(name="bare", parent=None)
