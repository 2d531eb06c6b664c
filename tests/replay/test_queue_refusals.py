"""What is refused for a while ends nothing, begins nothing anew, and is said once; by hand.

Workloads, ClusterQueues and nodes are denied from 12:12 to 12:32: at the ticks of 12:15 to 12:30.
"""

import pytest

from tests.queues.scene import machine_name, stamp
from tests.queues.told import Told, lines_of

RECORDING = "refused-for-a-while"
NOON = stamp("12:00")
QUEUE = "ClusterQueue/hyperpod-ns-research-clusterqueue/ml.p5.48xlarge/nvidia.com/gpu"
JOB = "Job/hyperpod-ns-research"

OPEN = [
    # 24 of 28 are reserved since 10:00, and 8 are wanted since 09:00.
    ("borrowing", NOON, QUEUE, "cluster_full", stamp("10:00")),
    ("capacity", stamp("12:10"), f"Node/{machine_name(0)}", "node_unhealthy", stamp("11:30")),
    # 28 of 24, since the node was lost; ten minutes after it was first seen.
    (
        "capacity",
        stamp("12:10"),
        "ResourceFlavor/ml.p5.48xlarge",
        "quota_above_capacity",
        stamp("11:30"),
    ),
    ("pending", NOON, f"{JOB}/runs", "reserved_without_pods", stamp("10:00")),
    ("pending", NOON, f"{JOB}/waits", "waiting_for_quota", stamp("09:00")),
    ("preemptions", NOON, f"{JOB}/hit", "without_checkpoint", stamp("11:50")),
]
NEEDS = {
    "borrowing": ("clusterqueues", "workloads"),
    "capacity": ("clusterqueues", "nodes"),
    "pending": ("clusterqueues", "nodes", "workloads"),
    "preemptions": ("workloads",),
}


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


@pytest.mark.parametrize("detector", NEEDS)
def test_what_was_told_before_is_neither_ended_nor_told_again(detector):
    told = Told(RECORDING, detector)
    keys = ("detector", "at", "subject", "reason", "since")
    assert sorted(told.rows(*keys)) == [row for row in OPEN if row[0] == detector]
    assert {line["status"] for line in told.found} == {"firing"}
    assert len(told.open) == len(told.found)


@pytest.mark.parametrize(("detector", "needs"), NEEDS.items())
def test_each_detector_says_once_what_it_was_refused(detector, needs):
    dark = Told(RECORDING, detector).dark
    said = [(one["at"], one["subject"], one["reason"], "ended" in one) for one in dark]
    refused = [f"kubernetes/{resource}" for resource in needs]
    calls = [row for row in said if row[1].startswith("kubernetes/")]
    assert sorted(calls) == [
        *((stamp("12:15"), subject, "denied", False) for subject in refused),
        *((stamp("12:35"), subject, "denied", True) for subject in refused),
    ]


@pytest.mark.parametrize("detector", NEEDS)
def test_beside_calls_only_what_was_told_before_is_said_to_be_unknown(detector):
    told = Told(RECORDING, detector)
    others = [one for one in told.dark if not one["subject"].startswith("kubernetes/")]
    assert {one["subject"] for one in others} <= {line["subject"] for line in told.found}
    assert len({(one["subject"], "ended" in one) for one in others}) == len(others)


def test_nothing_is_unknown_at_the_end_that_was_refused_in_between():
    left = {one["subject"] for one in lines_of(RECORDING)[-1]["unknown"]}
    assert not {one for one in left if one.startswith("kubernetes/")}
