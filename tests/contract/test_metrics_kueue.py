"""Kueue's own metrics: what every metrics reader owes (one number a fact, no number where none is)."""

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from local.metrics.openmetrics import Series
from steward.cluster.kueue import KueueMetrics, QueueMetrics
from tests.contract.metrics_series import SERVERS, Cases, Metrics, series

OURS: dict[str, Any] = {"job": "kueue", "cluster_name": "ours"}
GPUS: dict[str, Any] = {"flavor": "ml.p5.48xlarge", "resource": "nvidia.com/gpu", "cohort": "pool"}
EVICTED = "kueue_evicted_workloads_total"

recorded = Cases()


@pytest.fixture(scope="module", params=SERVERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with recorded.served(request.param) as served:
        yield served


@pytest.fixture
def metrics(url: str, request: pytest.FixtureRequest) -> Metrics:
    return Metrics(url, request.function.end)


def _two_queues(end: datetime) -> list[Series]:
    def gauge(metric: str, value: float, **labels: str) -> Series:
        return series(f"kueue_{metric}", end, [value] * 5, **(OURS | labels))

    return [
        gauge("build_info", 1, git_version="v0.16.2", git_commit="c0ffee"),
        *(
            gauge("pending_workloads", 7, cluster_queue="a", status="active", replica_role=role)
            for role in ("leader", "follower")
        ),
        gauge("pending_workloads", 2, cluster_queue="a", status="inadmissible"),
        gauge("pending_workloads", math.nan, cluster_queue="b", status="active"),
        gauge("admitted_active_workloads", 3, cluster_queue="a"),
        gauge("admitted_active_workloads", math.inf, cluster_queue="b"),
        gauge("cluster_queue_resource_usage", 12, cluster_queue="a", **GPUS),
        gauge("cluster_queue_nominal_quota", 14, cluster_queue="a", **GPUS),
        gauge("cluster_queue_nominal_quota", 0, cluster_queue="b", **GPUS),
        gauge("cluster_queue_borrowing_limit", 0, cluster_queue="a", **GPUS),
        series(
            EVICTED,
            end,
            [12.0] * 30 + [0.0] * 10 + [5.0] * 10,
            cluster_queue="a",
            reason="Preempted",
            **OURS,
        ),
        series(
            "kueue_pending_workloads",
            end,
            [9.0] * 5,
            cluster_queue="z",
            status="active",
            cluster_name="theirs",
        ),
    ]


@recorded(_two_queues)
def test_every_fact_is_told_once_by_queue(metrics: Metrics) -> None:
    assert metrics.kueue("ours") == KueueMetrics(
        version="v0.16.2",
        queues=(
            QueueMetrics(
                cluster_queue="a",
                pending={"active": 7, "inadmissible": 2},  # two replicas say 7: 7, not 14
                admitted=3,
                evicted={"Preempted": 5},  # 12, restarted at 0, 5 since
                usage={"ml.p5.48xlarge": {"nvidia.com/gpu": 12}},
                nominal={"ml.p5.48xlarge": {"nvidia.com/gpu": 14}},
            ),
            # What is no number is no data; a quota of nothing is a quota.
            QueueMetrics(cluster_queue="b", nominal={"ml.p5.48xlarge": {"nvidia.com/gpu": 0}}),
        ),
    )


@recorded(_two_queues)
def test_another_clusters_queues_are_left_out_where_the_label_is_configured(
    metrics: Metrics,
) -> None:
    assert [q.cluster_queue for q in metrics.kueue("ours").queues] == ["a", "b"]
    assert [q.cluster_queue for q in metrics.kueue().queues] == ["a", "b", "z"]


@recorded(
    lambda end: [
        series("kueue_pending_workloads", end, [1.0], cluster_queue="a", status="active"),
        series(
            "kueue_pending_workloads", end, [4.0], newest=301, cluster_queue="old", status="active"
        ),
    ]
)
def test_a_kueue_that_tells_no_version_has_none(metrics: Metrics) -> None:
    # 0.12 exports no build_info; a queue that was deleted has no newest sample.
    assert metrics.kueue() == KueueMetrics(
        version=None, queues=(QueueMetrics(cluster_queue="a", pending={"active": 1}),)
    )


@recorded(
    lambda end: [
        # The leader is replaced 20 minutes ago: its successor counts from 0, under its own name.
        series(
            EVICTED,
            end,
            [3.0] * 20 + [4.0] * 20,
            newest=30 + 20 * 60,
            cluster_queue="a",
            reason="Preempted",
            replica_role="leader",
            pod="kueue-a",
        ),
        series(
            EVICTED,
            end,
            [0.0] * 5 + [2.0] * 15,
            cluster_queue="a",
            reason="Preempted",
            replica_role="leader",
            pod="kueue-b",
        ),
        # Before, it followed, and counted the same.
        series(
            EVICTED,
            end,
            [3.0] * 20 + [4.0] * 20,
            newest=30 + 20 * 60,
            cluster_queue="a",
            reason="Preempted",
            replica_role="follower",
            pod="kueue-b",
        ),
        # One reason under two causes.
        *(
            series(
                EVICTED,
                end,
                [1.0] * 30 + [float(1 + more)] * 30,
                cluster_queue="a",
                reason="Deactivated",
                underlying_cause=cause,
            )
            for cause, more in (("RequeuingLimitExceeded", 1), ("AdmissionCheck", 3))
        ),
        # Two hours ago is not within the hour.
        series(
            EVICTED,
            end,
            [0.0, 8.0] + [8.0] * 118,
            cluster_queue="b",
            reason="Preempted",
        ),
    ]
)
def test_evictions_are_counted_through_restarts_and_not_for_every_replica(
    metrics: Metrics,
) -> None:
    first, second = metrics.kueue().queues
    # 3 to 4, then from 0 to 2; and 1 to 2 and 1 to 4 by cause.
    assert first.evicted == {"Preempted": 3, "Deactivated": 4}
    assert second.evicted == {"Preempted": 0}


@recorded(lambda _: [])
def test_a_cluster_without_kueues_metrics_has_none(metrics: Metrics) -> None:
    assert metrics.kueue() == KueueMetrics()
