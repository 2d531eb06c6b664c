"""Every file under events/ is a real payload: it parses, and the template's own rules route it."""

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from local import policy as policy_tool
from local.routing import read_routes
from steward.alerts.actions import CardAction
from steward.errors import PermanentError
from steward.events import (
    EvaluationReady,
    EventEnvelope,
    QueueEvent,
    QueueRecord,
    SnapshotTaken,
    parse,
    parse_request,
)
from steward.reconcile_events import ClusterLeft, parse_work
from steward.usecases.take_snapshot import clusters_wanted

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py"))


@cache
def routes_of(**parameters):
    return read_routes(ROOT / "template.yaml", **parameters)


def events(function):
    return sorted((ROOT / "events" / function).glob("*.json"))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_has_events(function):
    assert events(function)


ACCOUNT = ("111122223333", "us-east-1")
NAMED = {
    "node_health": "ml-shared-01",
    "cluster_event": "ml-shared-01",
    "cluster_state": "ml-shared-01",
    "snapshot_requested": "ml-shared-01",
    "preempted_event": "ml-shared-01",
    "cluster_changed": "ml-shared-01",
    "tick": "ml-shared-01",
    # Container Insights, and an alert's labels, know the EKS cluster only.
    "metric_alarm": "ml-shared-01-eks",
    "alert_topic": "ml-shared-01-eks",
    # HyperPod's ARNs end in an id; a composite alarm and the change of a quota name no cluster.
    "policy_changed": "arn:aws:sagemaker:us-east-1:111122223333:cluster/a1b2c3d4e5f6",
    "composite_alarm": None,
    "quota_changed": None,
}


@pytest.mark.parametrize("path", events("take_snapshot"), ids=lambda p: p.stem)
def test_a_request_names_its_cluster_or_its_account_and_region(path):
    batch = parse(QueueEvent, json.loads(path.read_text()), path.name)
    for record in batch.records:
        request = parse_request(record.body, path.name, record.sent)
        assert request.cluster == NAMED[path.stem]
        if '"detail-type"' in record.body:
            assert (request.account, request.region) == ACCOUNT


@pytest.mark.parametrize("path", events("take_snapshot"), ids=lambda p: p.stem)
def test_every_request_leads_to_the_example_cluster(path):
    clusters = policy_tool.load(ROOT / "layers/policy/governance.yaml").clusters
    batch = parse(QueueEvent, json.loads(path.read_text()), path.name)
    for record in batch.records:
        request = parse_request(record.body, path.name, record.sent)
        wanted = clusters_wanted(request, clusters, datetime(2026, 11, 5, 12, 5, tzinfo=UTC))
        assert [cluster.name for cluster in wanted] == ["ml-shared-01"]


@pytest.mark.parametrize("path", events("take_snapshot"), ids=lambda p: p.stem)
def test_only_plan_ticks_own_request_is_planned(path):
    batch = parse(QueueEvent, json.loads(path.read_text()), path.name)
    (record,) = batch.records
    planned = parse_request(record.body, path.name, record.sent).planned
    assert planned == (path.stem == "tick")


@pytest.mark.parametrize("path", events("take_snapshot"), ids=lambda p: p.stem)
def test_an_event_reaches_the_queue_by_one_rule(path):
    batch = parse(QueueEvent, json.loads(path.read_text()), path.name)
    routes = routes_of()
    for record in batch.records:
        event = json.loads(record.body)
        if "detail-type" not in event:
            continue  # plan_ticks and topics send to the queue themselves
        if event["source"].startswith("aws."):
            forwarded = routes.matching("default", event)
            assert [(t.kind, t.name) for t in forwarded] == [("bus", "StewardBus")]
        targets = routes.matching("StewardBus", event)
        assert [(t.kind, t.name) for t in targets] == [("queue", "SnapshotRequests")]


@pytest.mark.parametrize("path", events("record_checkpoints"), ids=lambda p: p.stem)
def test_what_tells_of_a_checkpoint_reaches_its_queue_by_one_rule(path):
    batch = parse(QueueEvent, json.loads(path.read_text()), path.name)
    bucket = "ml-shared-01-checkpoints"
    routes = routes_of(CheckpointBuckets=f"elsewhere,{bucket}")
    closed = routes_of(CheckpointBuckets="elsewhere")
    for record in batch.records:
        event = json.loads(record.body)
        targets = routes.matching("StewardBus", event)
        assert [(t.kind, t.name) for t in targets] == [("queue", "CheckpointsWritten")]
        assert routes.matching("StewardBus", event | {"replay-name": "july"}) == ()
        if event["source"] == "aws.s3":
            forwarded = routes.matching("default", event)
            assert [(t.kind, t.name) for t in forwarded] == [("bus", "StewardBus")]
            assert closed.matching("default", event) == closed.matching("StewardBus", event) == ()


@pytest.mark.parametrize("path", events("evaluate_snapshot"), ids=lambda p: p.stem)
def test_snapshot_taken_matches_the_rule_that_starts_the_function(path):
    event = json.loads(path.read_text())
    parse(SnapshotTaken, parse(EventEnvelope, event, path.name).detail, path.name)
    targets = routes_of().matching("StewardBus", event)
    assert [(t.kind, t.name) for t in targets] == [("function", "evaluate_snapshot")]
    replayed = event | {"replay-name": "july"}
    assert routes_of().matching("StewardBus", replayed) == ()


@pytest.mark.parametrize("path", events("reconcile_alerts"), ids=lambda p: p.stem)
def test_evaluations_are_ready(path):
    batch = parse(QueueEvent, json.loads(path.read_text()), path.name)
    for record in batch.records:
        kinds = {"action": CardAction, "cluster_left": ClusterLeft}
        work = parse_work(record.body, path.name)
        assert type(work) is kinds.get(path.stem, EvaluationReady)
        assert work.cluster == ("ml-shared-00" if path.stem == "cluster_left" else "ml-shared-01")


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        ({}, "detail-type"),
        ({"detail-type": "Snapshot Taken", "source": "x", "detail": {}}, "time"),
        (
            {"detail-type": "x", "source": "x", "time": "2026-11-05T12:00:00", "detail": {}},
            "$.time",  # a time without an offset is nobody's time
        ),
        (
            {"detail-type": "x", "source": "x", "time": "2026-11-05T12:00:00Z", "detail": "{}"},
            "detail",
        ),
    ],
)
def test_what_is_no_event_is_refused_with_its_fault(event, fault):
    with pytest.raises(PermanentError) as refused:
        parse(EventEnvelope, event, "the event")
    assert "the event" in str(refused.value)
    assert fault in str(refused.value)


def test_a_time_with_another_offset_is_the_same_time():
    body = json.dumps({"cluster": "ml", "requested_at": "2026-11-05T13:00:00+01:00"})
    assert parse_request(body, "m").at.isoformat() == "2026-11-05T13:00:00+01:00"
    assert parse_request(body, "m").at.timestamp() == 1793880000


# --- which cluster an event is about -------------------------------------------------------------


def about(detail_type="AWS API Call via CloudTrail", **detail):
    envelope = {"detail-type": detail_type, "source": "x", "time": "2026-11-05T12:00:00Z"}
    return parse_request(json.dumps(envelope | {"detail": detail}), "m").cluster


@pytest.mark.parametrize("key", ["cluster", "clusterName", "ClusterName", "ClusterArn"])
def test_a_wish_may_name_its_cluster_in_anybodys_words(key):
    assert about("Snapshot Requested", **{key: "ml"}) == "ml"


def test_what_a_call_asked_or_answered_names_its_cluster_in_any_casing():
    arn = "arn:aws:sagemaker:us-east-1:111122223333:cluster/a1b2c3d4e5f6"
    assert about(requestParameters={"CLUSTERNAME": "ml"}, responseElements=None) == "ml"
    assert about(requestParameters=None, responseElements={"clusterArn": arn}) == arn
    # A name says more than an ARN, which ends in an id, wherever each stands.
    assert (
        about(requestParameters={"clusterArn": arn}, responseElements={"clusterName": "m"}) == "m"
    )
    assert about(requestParameters={"clusterName": 7}) is None


def an_alarm(*dimensions):
    metrics = [{"id": "e1", "expression": "m1 + m2"}]
    metrics += [{"metricStat": {"metric": {"dimensions": given}}} for given in dimensions]
    return about("CloudWatch Alarm State Change", configuration={"metrics": metrics})


def test_an_alarm_is_about_the_one_cluster_that_its_metrics_are_of():
    assert an_alarm({"ClusterName": "ml-eks"}, {"ClusterName": "ml-eks", "x": "y"}) == "ml-eks"
    assert an_alarm({"ClusterName": "ml-eks"}, {"ClusterName": "other-eks"}) is None
    assert an_alarm({"Host": "h"}) is None
    assert about("CloudWatch Alarm State Change", configuration={"alarmRule": "ALARM(a)"}) is None


# --- when a request was made ---------------------------------------------------------------------


def test_an_alert_was_made_when_it_was_sent():
    sent = datetime(2026, 11, 5, 12, 4, 50, 250_000, tzinfo=UTC)
    stamp = str(round(sent.timestamp() * 1000))
    record = QueueRecord(message_id="1", body="{}", attributes={"SentTimestamp": stamp})
    assert record.sent == sent
    assert parse_request('{"cluster": "ml"}', "m", record.sent).at == sent


@pytest.mark.parametrize("stamp", [None, "", "soon", "-1", "1" * 14, "١٢"])
def test_a_queue_that_says_no_time_is_believed_no_time(stamp):
    attributes = {} if stamp is None else {"SentTimestamp": stamp}
    record = QueueRecord(message_id="1", body="{}", attributes=attributes)
    assert record.sent is None
    with pytest.raises(PermanentError, match="no requested_at"):
        parse_request('{"cluster": "ml"}', "m", record.sent)


def test_a_replays_alarms_ask_by_the_prefix_that_the_stack_is_given():
    def asks(name, **parameters):
        detail = {"alarmName": name, "state": {"value": "ALARM"}}
        alarm = {
            "detail-type": "CloudWatch Alarm State Change",
            "source": "aws.cloudwatch",
            "detail": detail,
        }
        return bool(routes_of(**parameters).matching("default", alarm))

    # By default it is not the stack's name that counts.
    assert asks("gpu-steward-trigger-evictions-ml-shared-01-eks")
    assert not asks("gpu-steward-dead-letters")
    other = {"TriggerAlarmPrefix": "ml-trigger-"}
    assert asks("ml-trigger-pending", **other)
    assert not asks("gpu-steward-trigger-pending", **other)
