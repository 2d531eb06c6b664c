"""The rig with the rest of AWS behind it: a bucket, tables, queues, a bus and a secret, all seeded.

For functions that run in a container: they find at the rig what their events speak of.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from local import demo_recording
from local.application import LocalApp, VirtualClock
from local.recording import Recording
from local.replay import load_policy
from local.rig import CREDENTIALS, SLACK_SECRET, Rig, environment, serve
from steward.cluster.memory import Memory
from steward.settings import Settings
from steward.usecases.evaluate_snapshot import fold
from steward.usecases.read_cluster import read_cluster

if TYPE_CHECKING:
    from types_boto3_dynamodb.literals import ScalarAttributeTypeType

NOW = datetime(2026, 11, 5, 12, 5, tzinfo=UTC)
"""The container's time: the events under `events/` are of about then."""

TICK = timedelta(minutes=5)
FOLDED = (NOW - 3 * TICK, NOW - 2 * TICK)
"""Ticks whose snapshots the seeded memory has folded in; those after it wait to be evaluated."""

WAITING = (NOW - TICK, NOW)


_RUN = count()

LOCAL_NAME = "gpu-steward-local"
"""Name of bucket, bus, table and secret at a port that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A running rig and what a function is told of it.

    Attributes
    ----------
    variables : dict of str to str
        Environment variables, for those of them that the template declares.
    session : boto3.Session
        Dummy credentials; give clients `endpoint_url=rig.url`.
    """

    rig: Rig
    variables: dict[str, str]
    session: boto3.Session


@contextmanager
def cloud(folder: Path, host: str, port: int = 0) -> Iterator[Cloud]:
    """Serve the demo's recording at :data:`NOW`, with everything that functions store or send to.

    Parameters
    ----------
    folder : Path
        Where the recording is written.
    host, port : str, int
        Address to bind: loopback, or the container bridge.
    """
    recording = Recording.open(demo_recording.write(folder))
    policy = load_policy(recording)
    clock = VirtualClock(FOLDED[0])
    names = [name for c in policy.clusters for name in (c.name, c.eks_name)]
    rest = DomainDispatcherApplication(create_backend_app)
    with serve(recording, names, clock.now, host=host, port=port, otherwise=rest) as rig:
        session = boto3.Session(
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            region_name=CREDENTIALS["AWS_REGION"],
        )
        # One process may run several, and its backend forgets nothing: each has names of its own, the
        # one at a known port known ones.
        name = LOCAL_NAME if port else f"gpu-steward-{rig.url.rpartition(':')[2]}-{next(_RUN)}"
        variables = _create(session, rig.url, name)
        with environment(rig.url):
            app = LocalApp(Settings(region="us-east-1", local_endpoint=rig.url), policy, clock)
            _fill(app, clock, recording.cluster)
        s3 = session.client("s3", endpoint_url=rig.url)
        for key, data in app.objects.objects.items():
            s3.put_object(Bucket=variables["BUCKET"], Key=key, Body=data)
        variables |= {"LOCAL_ENDPOINT": rig.url, "AWS_ENDPOINT_URL": rig.url}
        variables["LOCAL_NOW"] = NOW.isoformat()
        yield Cloud(rig=rig, variables=variables, session=session)


def _create(session: boto3.Session, url: str, name: str) -> dict[str, str]:
    session.client("s3", endpoint_url=url).create_bucket(Bucket=name)
    session.client("events", endpoint_url=url).create_event_bus(Name=name)
    text: ScalarAttributeTypeType = "S"
    session.client("dynamodb", endpoint_url=url).create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": text},
            {"AttributeName": "sk", "AttributeType": text},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    sqs = session.client("sqs", endpoint_url=url)
    requests = sqs.create_queue(QueueName=f"{name}-requests")["QueueUrl"]
    made = sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})
    commands = sqs.create_queue(QueueName=f"{name}-commands")["QueueUrl"]
    secrets = session.client("secretsmanager", endpoint_url=url)
    secrets.create_secret(Name=name, SecretString=json.dumps(SLACK_SECRET))
    return {
        "BUCKET": name,
        "BUS": name,
        "STATE_TABLE": name,
        "SNAPSHOT_REQUESTS_URL": requests,
        "EVALUATIONS_URL": made["QueueUrl"],
        "COMMANDS_URL": commands,
        "SLACK_SECRET": name,
    }


def _fill(app: LocalApp, clock: VirtualClock, cluster: str) -> None:
    """Take snapshots; fold the older ones into a memory, store evaluations of the newer ones."""
    policy = next(c for c in app.policy.clusters if c.name == cluster)
    memory, tag = Memory(cluster=cluster), None
    for when in (*FOLDED, *WAITING):
        clock.move_to(when)
        snapshot, _ = read_cluster(policy, memory, app.sources, clock)
        key = app.snapshots.put(snapshot)
        evaluation, memory = fold(key, snapshot, memory, policy)
        if when in FOLDED:
            tag = app.memories.save(memory, tag)
        else:
            app.evaluations.put(evaluation)
