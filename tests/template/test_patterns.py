"""Which events the template's rules let through, on the patterns that CloudFormation is given.

The HyperPod events have the shapes that AWS documents for EventBridge.
"""

import json
from typing import Any, cast

import pytest
from moto.events.models import EventPattern

type Document = dict[str, Any]

CLUSTER_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghij12"


def an_event(source: str, detail_type: str, detail: Document, **extra: object) -> Document:
    return {
        "version": "0",
        "id": "0d8a7b9e-7a43-4f0a-9d4a-1f6a7f0f5c11",
        "detail-type": detail_type,
        "source": source,
        "account": "111122223333",
        "time": "2026-11-02T08:15:30Z",
        "region": "us-east-1",
        "resources": [CLUSTER_ARN] if source == "aws.sagemaker" else [],
        "detail": detail,
        **extra,
    }


STATE_CHANGE = an_event(
    "aws.sagemaker",
    "SageMaker HyperPod Cluster State Change",
    {
        "ClusterArn": CLUSTER_ARN,
        "ClusterName": "ml-shared-01",
        "ClusterStatus": "Updating",
        "CreationTime": 1793520930000,
        "FailureMessage": "",
        "InstanceGroups": [
            {
                "InstanceGroupName": "gpu-a",
                "InstanceType": "ml.p5.48xlarge",
                "CurrentCount": 3,
                "TargetCount": 4,
                "Status": "InService",
                "ThreadsPerCore": 1,
            }
        ],
        "NodeRecovery": "Automatic",
        "Orchestrator": {"Eks": {"ClusterArn": "arn:aws:eks:us-east-1:111122223333:cluster/ml"}},
        "VpcConfig": {},
    },
)
NODE_HEALTH = an_event(
    "aws.sagemaker",
    "SageMaker HyperPod Cluster Node Health Event",
    {
        "ClusterName": "ml-shared-01",
        "ClusterArn": CLUSTER_ARN,
        "InstanceId": "i-0123456789abcdef0",
        "Tags": {},
        "HealthSummary": {
            "HealthStatus": "Unhealthy",
            "HealthStatusReason": "XID 79",
            "RepairAction": "Replace",
            "Recommendation": "",
        },
    },
)
CLUSTER_EVENT = an_event(
    "aws.sagemaker",
    "SageMaker HyperPod Cluster Event",
    {
        "EventDetails": {
            "EventId": "7f1a7f36-6a0b-4c51-8f54-5b3a3f0d2c10",
            "ClusterArn": CLUSTER_ARN,
            "ClusterName": "ml-shared-01",
            "InstanceGroupName": "gpu-a",
            "InstanceId": "i-0123456789abcdef0",
            "ResourceType": "Instance",
            "EventTime": 1793520930000,
            "EventLevel": "Error",
            "Description": "Insufficient capacity",
            "EventDetails": {"EventMetadata": {"Instance": None}},
        }
    },
)
OTHER_SAGEMAKER = an_event("aws.sagemaker", "SageMaker Training Job State Change", {})
LOOKALIKE = an_event("somebody.else", "SageMaker HyperPod Cluster Event", {})
REQUESTED = an_event("gpu-steward", "Snapshot Requested", {"cluster": "ml-shared-01"})
TAKEN = an_event(
    "gpu-steward",
    "Snapshot Taken",
    {
        "cluster": "ml-shared-01",
        "key": "snapshots/ml-shared-01/2026/11/02/20261102T081500Z.json.gz",
        "at": "2026-11-02T08:15:00Z",
    },
)
TAKEN_AGAIN = TAKEN | {"replay-name": "last-week"}
EVALUATED = an_event("gpu-steward", "Snapshot Evaluated", {"cluster": "ml-shared-01"})
ALARM = an_event("aws.cloudwatch", "CloudWatch Alarm State Change", {"alarmName": "steward"})

EVERYTHING = {
    "state change": STATE_CHANGE,
    "node health": NODE_HEALTH,
    "cluster event": CLUSTER_EVENT,
    "other SageMaker": OTHER_SAGEMAKER,
    "look-alike": LOOKALIKE,
    "requested": REQUESTED,
    "taken": TAKEN,
    "taken, replayed": TAKEN_AGAIN,
    "evaluated": EVALUATED,
    "alarm": ALARM,
}
HYPERPOD = {"state change", "node health", "cluster event"}


def let_through(deployed: Document, rule: str) -> set[str]:
    pattern = EventPattern.load(json.dumps(deployed[rule]["Properties"]["EventPattern"]))
    return {name for name, event in EVERYTHING.items() if pattern.matches_event(cast("Any", event))}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("ForwardServiceEvents", HYPERPOD),
        ("HyperPodEvents", HYPERPOD),
        ("SnapshotRequested", {"requested"}),
        # Never a replayed event, or an archive's replay would post last week's cards.
        ("EvaluateSnapshotSnapshotTaken", {"taken"}),
    ],
)
def test_a_rule_lets_through_what_it_is_for_and_nothing_else(
    rule: str, expected: set[str], deployed: Document
) -> None:
    assert let_through(deployed, rule) == expected


def test_these_are_all_the_rules(deployed: Document) -> None:
    rules = {name for name, item in deployed.items() if item["Type"] == "AWS::Events::Rule"}

    assert rules == {
        "ForwardServiceEvents",
        "HyperPodEvents",
        "SnapshotRequested",
        "EvaluateSnapshotSnapshotTaken",
    }


def test_service_events_reach_the_stewards_bus_from_the_default_bus_in_one_hop(
    deployed: Document,
) -> None:
    forward = deployed["ForwardServiceEvents"]["Properties"]
    (target,) = forward["Targets"]

    # AWS services publish on the default bus only; a rule elsewhere would never see them.
    assert "EventBusName" not in forward
    assert target["Arn"] == {"Fn::GetAtt": ["StewardBus", "Arn"]}
    assert target["RoleArn"] == {"Fn::GetAtt": ["ForwardServiceEventsRole", "Arn"]}
    for name in ("HyperPodEvents", "SnapshotRequested", "EvaluateSnapshotSnapshotTaken"):
        assert deployed[name]["Properties"]["EventBusName"] == {"Ref": "StewardBus"}


def test_nothing_that_a_snapshot_leads_to_asks_for_a_snapshot(deployed: Document) -> None:
    """EventBridge breaks no loops: our own news must not come back in through the door."""
    for rule in ("HyperPodEvents", "SnapshotRequested"):
        assert not {"taken", "evaluated"} & let_through(deployed, rule)


def test_a_pattern_that_forgets_replays_lets_them_through(deployed: Document) -> None:
    """Shows that the exclusion above is what keeps them out."""
    deployed["EvaluateSnapshotSnapshotTaken"]["Properties"]["EventPattern"].pop("replay-name")

    assert let_through(deployed, "EvaluateSnapshotSnapshotTaken") == {"taken", "taken, replayed"}
