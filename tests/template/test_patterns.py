"""Which events the template's rules let through, on the patterns that CloudFormation is given.

The events of services are those under `events/`, as they lie in the queues.
"""

import json
from typing import Any, cast

import boto3
import pytest
from moto.events.models import EventPattern

from tests.template.deployments import ROOT, Deploy, Document, spelt

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


def sent(function: str, name: str) -> list[Document]:
    """Return the events in the messages of a file under `events/`."""
    batch = json.loads((ROOT / "events" / function / f"{name}.json").read_text())
    bodies = [json.loads(record["body"]) for record in batch["Records"]]
    return [body for body in bodies if "detail-type" in body]


def changed(event: Document, **detail: object) -> Document:
    """Return the event with other values in its detail."""
    return event | {"detail": event["detail"] | detail}


(METRIC_ALARM,) = sent("take_snapshot", "metric_alarm")
(QUOTA_CHANGED,) = sent("take_snapshot", "quota_changed")
(MARKER,) = sent("record_checkpoints", "marker")
(HEARTBEAT,) = sent("record_checkpoints", "heartbeat")
TAKEN = an_event(
    "gpu-steward",
    "Snapshot Taken",
    {
        "cluster": "ml-shared-01",
        "key": "snapshots/ml-shared-01/2026/11/02/20261102T081500Z.json.gz",
        "at": "2026-11-02T08:15:00Z",
    },
)
AGAIN = {"replay-name": "last-week"}

HYPERPOD = {"cluster_state", "node_health", "cluster_event"}
CALLS = {"quota_changed", "policy_changed", "cluster_changed"}
ALARMS = {"metric_alarm", "composite_alarm"}
WISHES = {"snapshot_requested", "preempted_event", "asked by another"}

EVERYTHING = {
    **{n: sent("take_snapshot", n)[0] for n in HYPERPOD | CALLS | ALARMS},
    **{n: sent("take_snapshot", n)[0] for n in ("snapshot_requested", "preempted_event")},
    "asked by another": an_event("my.pipeline", "Snapshot Requested", {"cluster": "ml-shared-01"}),
    "alarm, back": changed(METRIC_ALARM, state={"value": "OK"}),
    "call, other casing": changed(QUOTA_CHANGED, eventName="updateComputeQuota"),
    "marker": MARKER,
    "heartbeat": HEARTBEAT,
    "taken": TAKEN,
    # What is for nobody:
    "alarm without data": changed(METRIC_ALARM, state={"value": "INSUFFICIENT_DATA"}),
    "alarm of ours": changed(METRIC_ALARM, alarmName="gpu-steward-dead-letters"),
    "alarm of another": changed(METRIC_ALARM, alarmName="cpu-high"),
    "alarm of another prefix": changed(METRIC_ALARM, alarmName="gpu-steward-2-trigger-pending-ml"),
    "call that failed": changed(QUOTA_CHANGED, errorCode="AccessDenied"),
    "call that reads": changed(QUOTA_CHANGED, eventName="DescribeComputeQuota"),
    "call of another service": changed(QUOTA_CHANGED, eventSource="ecs.amazonaws.com"),
    "marker elsewhere": changed(MARKER, bucket={"name": "somebody-elses"}),
    "marker, replayed": MARKER | AGAIN,
    "heartbeat, replayed": HEARTBEAT | AGAIN,
    "other SageMaker": an_event("aws.sagemaker", "SageMaker Training Job State Change", {}),
    "look-alike": an_event("somebody.else", "SageMaker HyperPod Cluster Event", {}),
    "look-alike alarm": METRIC_ALARM | {"source": "somebody.else"},
    "taken, replayed": TAKEN | AGAIN,
    "evaluated": an_event("gpu-steward", "Snapshot Evaluated", {"cluster": "ml-shared-01"}),
}
SPOKE = {
    "HyperPodEvents": HYPERPOD,
    "ApiCalls": CALLS | {"call, other casing"},
    "TriggerAlarms": ALARMS | {"alarm, back"},
    "SnapshotRequested": WISHES,
}
"""What each rule that fills the queue of requests is for; in a spoke there are no others."""

FORWARDED = {
    "ForwardServiceEvents": SPOKE["HyperPodEvents"],
    "ForwardApiCalls": SPOKE["ApiCalls"],
    "ForwardAlarms": SPOKE["TriggerAlarms"],
    "ForwardMarkers": {"marker", "marker, replayed"},  # the default bus has no archive of ours
}
TOLD = {
    "CheckpointWritten": {"heartbeat"},
    "MarkerWritten": {"marker"},
    # Never a replayed event, or an archive's replay would post last week's cards.
    "EvaluateSnapshotSnapshotTaken": {"taken"},
}
RULES = SPOKE | FORWARDED | TOLD


def let_through(deployed: Document, rule: str, role: str = "both") -> set[str]:
    given = spelt(deployed[rule]["Properties"]["EventPattern"], role)
    pattern = EventPattern.load(json.dumps(given))
    return {name for name, event in EVERYTHING.items() if pattern.matches_event(cast("Any", event))}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_lets_through_what_it_is_for_and_nothing_else(rule: str, deployed: Document) -> None:
    assert let_through(deployed, rule) == RULES[rule]


@pytest.mark.parametrize("rule", SPOKE)
def test_a_spokes_rules_are_the_same(rule: str, deploy: Deploy) -> None:
    assert let_through(deploy("spoke"), rule, "spoke") == SPOKE[rule]


def test_these_are_all_the_rules(deployed: Document, deploy: Deploy) -> None:
    def rules(resources: Document) -> set[str]:
        return {name for name, item in resources.items() if item["Type"] == "AWS::Events::Rule"}

    assert rules(deployed) == set(RULES)
    assert rules(deploy("hub")) == set(RULES) - set(SPOKE)
    assert rules(deploy("spoke")) == set(SPOKE)


def test_every_event_under_events_has_its_rule() -> None:
    named = {path.stem for path in (ROOT / "events" / "take_snapshot").glob("*.json")}

    # plan_ticks and alert topics send to the queue themselves.
    assert named - {"tick", "alert_topic"} == set().union(*SPOKE.values()) & named
    assert set().union(*RULES.values()) <= set(EVERYTHING)


def test_every_change_of_clusters_quotas_and_policies_is_heard_of(deployed: Document) -> None:
    names = {
        f"{verb}{noun}"
        for verb in ("Create", "Update", "Delete")
        for noun in ("Cluster", "ComputeQuota", "ClusterSchedulerConfig")
    } | {
        "UpdateClusterSoftware",
        "BatchAddClusterNodes",
        "BatchDeleteClusterNodes",
        "BatchReplaceClusterNodes",
        "BatchRebootClusterNodes",
    }
    for rule in ("ForwardApiCalls", "ApiCalls"):
        pattern = deployed[rule]["Properties"]["EventPattern"]["detail"]["eventName"]
        assert {each["equals-ignore-case"] for each in pattern} == names
    operations = boto3.client("sagemaker", region_name="us-east-1").meta.service_model
    assert names <= set(operations.operation_names)


def test_service_events_reach_the_stewards_bus_from_the_default_bus_in_one_hop(
    deployed: Document,
) -> None:
    for name in FORWARDED:
        forward = deployed[name]["Properties"]
        (target,) = forward["Targets"]
        # AWS services publish on the default bus only; a rule elsewhere would never see them.
        assert "EventBusName" not in forward
        assert target["Arn"] == {"Fn::GetAtt": ["StewardBus", "Arn"]}
        assert target["RoleArn"] == {"Fn::GetAtt": ["ForwardServiceEventsRole", "Arn"]}
    for name in (*SPOKE, *TOLD):
        assert deployed[name]["Properties"]["EventBusName"] == {"Ref": "StewardBus"}


def test_nothing_that_a_snapshot_leads_to_asks_for_a_snapshot(deployed: Document) -> None:
    """EventBridge breaks no loops: our own news must not come back in through the door."""
    for rule in SPOKE:
        assert not {"taken", "evaluated", "alarm of ours"} & let_through(deployed, rule)


def test_a_forwarder_may_forward_what_its_rules_let_through(deployed: Document) -> None:
    (statement,) = deployed["ForwardServiceEventsRole"]["Properties"]["Policies"][0][
        "PolicyDocument"
    ]["Statement"]
    sources = {
        source
        for rule in FORWARDED
        for source in deployed[rule]["Properties"]["EventPattern"]["source"]
    }

    assert set(statement["Condition"]["StringEquals"]["events:source"]) == sources


def test_a_pattern_that_forgets_replays_lets_them_through(deployed: Document) -> None:
    """Shows that the exclusion above is what keeps them out."""
    deployed["EvaluateSnapshotSnapshotTaken"]["Properties"]["EventPattern"].pop("replay-name")

    assert let_through(deployed, "EvaluateSnapshotSnapshotTaken") == {"taken", "taken, replayed"}


@pytest.mark.parametrize("role", ["both", "hub", "spoke"])
def test_every_rule_may_send_where_it_leads_and_to_the_dead_letters(
    role: str, deploy: Deploy
) -> None:
    resources = deploy(role)
    queues = {n for n, r in resources.items() if r["Type"] == "AWS::SQS::Queue"}
    for name, item in resources.items():
        if item["Type"] != "AWS::Events::Rule":
            continue
        (target,) = spelt(item["Properties"]["Targets"], role)
        led = target["Arn"].strip("<>").partition(".")[0]
        for queue in {led, "DeadLetters"} & queues:
            assert may_send(name, item["Properties"], queue, resources, role), (name, queue)


def may_send(rule: str, properties: Document, queue: str, resources: Document, role: str) -> bool:
    """Tell whether a queue's policy names a rule, or every rule of the bus that it listens on."""
    policy = resources[f"{queue}Policy"]["Properties"]["PolicyDocument"]
    named = {
        source
        for statement in spelt(policy["Statement"], role)
        if statement["Principal"] == {"Service": "events.amazonaws.com"}
        for condition in statement["Condition"].values()
        for source in condition["aws:SourceArn"]
    }
    every = any(source.endswith(":rule/<StewardBus>/*") for source in named)
    return f"<{rule}.Arn>" in named or (every and "EventBusName" in properties)


def test_a_rule_that_no_policy_names_is_noticed(deploy: Deploy) -> None:
    resources = deploy("both")
    forward = resources["ForwardAlarms"]["Properties"]

    assert may_send("ForwardAlarms", forward, "DeadLetters", resources, "both")
    assert not may_send("ForwardOthers", forward, "DeadLetters", resources, "both")
    assert not may_send("ForwardAlarms", forward, "SnapshotRequests", resources, "both")
