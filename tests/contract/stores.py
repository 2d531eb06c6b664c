"""What the suites of the stores share: small nouns, and fresh places in moto to keep them."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from boto3 import Session

from steward.alerts.model import Alert, AlertState, Card, ReconcilerState
from steward.clock import FixedClock
from steward.cluster.control_plane import ControlPlane
from steward.cluster.findings import DetectorStatus, Evaluation, Finding
from steward.cluster.memory import Device, Memory
from steward.cluster.planning import SnapshotScope
from steward.cluster.policy import Severity
from steward.cluster.snapshot import Part, PartStatus, Snapshot
from steward.stores.dynamo import DynamoRows
from steward.stores.s3 import S3Objects

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)
NAMES = itertools.count()


def a_snapshot(at: datetime = NOON, detail: str = "") -> Snapshot:
    return Snapshot(
        cluster="ml",
        scope=SnapshotScope.TICK,
        at=at,
        window_end=at - timedelta(minutes=2),
        parts=(Part(name="prometheus", status=PartStatus.OK, at=at, detail=detail),),
        control_plane=ControlPlane(),
        nodes=(),
        namespaces=None,
        workloads=(),
        cluster_queues=(),
        local_queues=(),
        accelerators=(),
    )


def an_evaluation() -> Evaluation:
    return Evaluation(
        snapshot="snapshots/ml/2026/11/02/20261102T120000Z.json.gz",
        cluster="ml",
        scope=SnapshotScope.TICK,
        at=NOON,
        detectors={"idle_gpus": DetectorStatus.EVALUATED},
        findings=(a_finding("Job/team-a/train"),),
        cleared=(),
        unknown=(),
    )


def a_memory(uuid: str) -> Memory:
    device = Device(node="node-1", uuid=uuid, mig=None, pod_uid="pod-1", seen=NOON)
    return Memory(cluster="ml", at=NOON, devices=(device,))


def a_finding(subject: str, evidence: dict[str, Any] | None = None) -> Finding:
    return Finding(
        detector="idle_gpus",
        subject=subject,
        reason="idle",
        severity=Severity.WARN,
        team="research",
        since=NOON,
        gpus=8.0,
        gpu_hours=2.5,
        cost_usd=None,
        action="look",
        evidence={"coverage": 1.0, "accelerators": []} if evidence is None else evidence,
    )


def an_alert(subject: str, evidence: dict[str, Any] | None = None) -> Alert:
    return Alert(
        finding=a_finding(subject, evidence),
        state=AlertState.OPEN,
        first_seen=NOON,
        last_seen=NOON,
        held_until=NOON,
    )


def a_card(key: str) -> Card:
    return Card(key=key, channel="C1", severity="warn", content={"lines": [1, "two"]}, desired="r1")


def a_state(
    alerts: Sequence[Alert] = (), cards: Sequence[Card] = (), at: datetime | None = NOON
) -> ReconcilerState:
    return ReconcilerState(
        cluster="ml",
        at=at,
        alerts={alert.key: alert for alert in alerts},
        cards={card.key: card for card in cards},
    )


EMPTY = a_state(at=None)


def s3(aws: Session) -> S3Objects:
    bucket = f"steward-{next(NAMES)}"
    aws.client("s3").create_bucket(Bucket=bucket)
    return S3Objects(aws, bucket)


def dynamo(aws: Session) -> DynamoRows:
    table = f"state-{next(NAMES)}"
    aws.client("dynamodb").create_table(
        TableName=table,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return DynamoRows(aws, table, FixedClock(NOON))
