"""Nodes that fail and come back, instances that do not come, quotas above what is left; by hand.

The cases are in tests/queues/capacity.py: four nodes of 8 accelerators, a tick every five minutes.
What is seen opens after ten minutes, and ends when it has not been seen for ten.
"""

import pytest

from tests.queues.scene import instance, machine_name, stamp
from tests.queues.told import Told

FLAVOR = "ResourceFlavor/ml.p5.48xlarge"
FIRST = f"Node/{machine_name(0)}"


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


@pytest.fixture(params=("0.12", "0.19"))
def nodes(request):
    return Told(f"capacity-node-{request.param}", "capacity")


def test_a_node_that_is_away_is_told_after_ten_minutes_and_ends_when_it_is_back(nodes):
    # Away since 10:03 and seen so from 10:05 to 10:25. 28 are promised, and 24 are there.
    rows = nodes.rows("at", "status", "subject", "reason", "severity", "since", "gpus")
    node = ("node_unhealthy", "warn", stamp("10:03"), 8)
    quotas = ("quota_above_capacity", "warn", stamp("10:03"), 4)
    assert sorted(rows) == [
        (stamp("10:15"), "firing", FIRST, *node),
        (stamp("10:15"), "firing", FLAVOR, *quotas),
        (stamp("10:35"), "resolved", FIRST, *node),
        (stamp("10:35"), "resolved", FLAVOR, *quotas),
    ]
    assert {line["resolution"] for line in nodes.found[2:]} == {"fixed"}
    # The second node was away for five minutes, seen at one tick: nobody is told.
    assert nodes.open == nodes.dark == []


def test_a_node_is_told_with_what_it_takes_down(nodes):
    evidence = nodes.found[0]["evidence"]
    assert evidence["why"] == ["not Ready", "UnschedulablePendingReplacement"]
    assert evidence["workloads"] == [{"subject": "Job/hyperpod-ns-research/train", "gpus": 8}]
    assert (evidence["instance_id"], evidence["node_recovery"]) == (instance(0), "Automatic")


def test_quotas_are_held_against_the_nodes_that_are_left(nodes):
    evidence = nodes.found[1]["evidence"]
    keys = ("quota", "capacity", "usable", "missing")
    assert tuple(evidence[key] for key in keys) == (28, 32, 24, 4)
    assert [(queue["team"], queue["nominal"]) for queue in evidence["queues"]] == [
        ("platform-mlops", 4),
        ("product-genai", 10),
        ("research", 14),
    ]
    assert [node["node"] for node in evidence["not_usable"]] == [machine_name(0)]


def test_two_events_of_one_failure_are_one_finding():
    told = Told("capacity-provisioning", "capacity")
    (found,) = told.found
    keys = ("at", "status", "subject", "reason", "severity", "since", "gpus")
    # The event at 10:01 asks for a snapshot; ten minutes later is 10:11, and the next look 10:15.
    assert tuple(found[key] for key in keys) == (
        stamp("10:15"), "firing", f"Node/{machine_name(3)}", "provisioning_failed", "info",
        stamp("10:01"), 8,
    )  # fmt: skip
    evidence = found["evidence"]
    assert (evidence["event_count"], evidence["instance_id"]) == (2, instance(3))
    assert [event["id"] for event in evidence["events"]] == ["9a-1", "9a-2"]
    # 24 are promised of the 24 that are there.
    assert len(told.open) == 1


def test_quotas_above_all_there_ever_was_end_when_they_are_lowered():
    told = Told("capacity-quotas", "capacity")
    # 4 + 26 + 10 = 40 of 32; seen last at 10:20.
    assert told.rows("at", "status", "subject", "reason", "since", "gpus", "resolution") == [
        (stamp("10:10"), "firing", FLAVOR, "quota_above_capacity", stamp("10:00"), 8, None),
        (
            stamp("10:30"), "resolved", FLAVOR, "quota_above_capacity", stamp("10:00"), 8,
            "quota_changed",
        ),
    ]  # fmt: skip
    evidence = told.found[0]["evidence"]
    assert (evidence["quota"], evidence["usable"], evidence["not_usable"]) == (40, 32, [])
