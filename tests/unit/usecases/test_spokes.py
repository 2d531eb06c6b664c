"""One policy for every stack: whoever is asked for a cluster reads it, and nobody else does."""

import json

import pytest

from functions.take_snapshot import handler as take_snapshot_handler
from local.application import LocalApp, VirtualClock
from local.envelopes import LambdaContext
from local.twins import InMemoryObjects, InMemoryRows, InMemorySender
from steward import bootstrap
from steward.bootstrap import App
from steward.clock import FixedClock
from steward.cluster.planning import SnapshotScope
from steward.cluster.policy import Policy
from steward.errors import ConfigError
from steward.events import QueueRecord
from steward.settings import Settings
from steward.sinks.queues import EvaluationSender, SnapshotRequestSender
from steward.stores.bucket import Snapshots
from steward.stores.claims import Claims
from steward.stores.state import Plan
from steward.telemetry import logger
from steward.usecases.coalescing import Turns
from steward.usecases.plan_ticks import plan_ticks
from steward.usecases.serve_requests import serve_requests
from steward.usecases.take_snapshot import Outcome
from tests.builders import NOON, a_cluster
from tests.fakes import FixedTime

HUB = "https://sqs.us-east-1.amazonaws.com/111122223333/gpu-steward-snapshot-requests"
IRELAND = "https://sqs.eu-west-1.amazonaws.com/444455556666/spoke-snapshot-requests"
OREGON = "https://sqs.us-west-2.amazonaws.com/444455556666/spoke-snapshot-requests"
POLICY = Policy(
    schema=1,
    clusters=(
        a_cluster(),
        a_cluster(name="ml-ireland-1", spoke_queue_url=IRELAND),
        a_cluster(name="ml-ireland-2", spoke_queue_url=IRELAND),
        a_cluster(name="ml-oregon", spoke_queue_url=OREGON),
    ),
)
STACKS = {HUB: False, IRELAND: True, OREGON: True}
"""Each stack's queue, and whether the stack is a spoke."""


def served(queue_url, bodies, *, spoke, policy=POLICY):
    """Names of the clusters that a stack reads when these messages lie in its queue."""
    taken = []

    def take(cluster, asked, scope):
        taken.append(cluster.name)
        return Outcome(cluster=cluster.name, key="k", reason="taken")

    records = [QueueRecord(message_id=str(n), body=body) for n, body in enumerate(bodies)]
    objects = InMemoryObjects()
    turns = Turns(
        Claims(objects), Snapshots(objects), FixedClock(NOON), owner="run", left=lambda: 600.0
    )
    serve_requests(records, policy.read_by(queue_url, spoke=spoke), NOON, take, turns)
    return taken


def test_what_the_hub_plans_is_read_once_by_the_stack_that_the_policy_names():
    queues = {url: InMemorySender(FixedClock(NOON)) for url in STACKS}
    spokes = {c.name: queues[c.spoke_queue_url] for c in POLICY.clusters if c.spoke_queue_url}
    plan_ticks(
        POLICY.clusters,
        plans=Plan(InMemoryRows()),
        requests=SnapshotRequestSender(queues[HUB], spokes),
        departures=EvaluationSender(InMemorySender(FixedClock(NOON))),
        clock=FixedTime(),
    )

    assert {
        url: served(url, [m.body for m in queues[url].messages], spoke=spoke)
        for url, spoke in STACKS.items()
    } == {
        HUB: ["ml-shared-01"],
        IRELAND: ["ml-ireland-1", "ml-ireland-2"],
        OREGON: ["ml-oregon"],
    }


@pytest.mark.parametrize("cluster", [c.name for c in POLICY.clusters])
def test_an_event_that_reaches_every_stack_is_served_by_one(cluster):
    # A member may forward to the hub what a spoke's own rule has put into its queue already.
    event = {
        "detail-type": "SageMaker HyperPod Cluster Node Health Event",
        "source": "aws.sagemaker",
        "account": "444455556666",
        "region": "eu-west-1",
        "time": NOON.isoformat(),
        "detail": {"ClusterName": cluster},
    }
    everybody = [served(url, [json.dumps(event)], spoke=spoke) for url, spoke in STACKS.items()]

    assert sorted(everybody) == [[], [], [cluster]]


def test_a_cluster_that_names_the_hubs_own_queue_is_read_by_the_hub():
    # Its requests go there: were they dropped, nobody would watch the cluster and nobody say so.
    policy = Policy(schema=1, clusters=(a_cluster(spoke_queue_url=HUB),))
    body = json.dumps({"cluster": "ml-shared-01", "requested_at": NOON.isoformat()})

    assert served(HUB, [body], spoke=False, policy=policy) == ["ml-shared-01"]


def test_a_spoke_whose_policy_does_not_name_it_says_which_request_it_dropped(caplog):
    # Whoever silenced the logger before: what it says is this case's business.
    caplog.set_level("WARNING", logger=logger.name)
    policy = Policy(schema=1, clusters=(a_cluster(),))  # an older policy than the hub's
    body = json.dumps({"cluster": "ml-ireland-1", "requested_at": NOON.isoformat()})

    assert served(IRELAND, [body], spoke=True, policy=policy) == []
    (warning,) = [r for r in caplog.records if r.levelname == "WARNING"]
    assert (warning.cluster, warning.reason) == ("ml-ireland-1", "not read by this stack")


@pytest.mark.parametrize(
    ("role", "queue_url", "expected"),
    [
        ("both", HUB, ["ml-shared-01"]),
        ("spoke", IRELAND, ["ml-ireland-1", "ml-ireland-2"]),
        ("", "", ["ml-shared-01"]),  # the rig names neither
    ],
)
def test_the_handler_knows_its_stack_by_its_environment(role, queue_url, expected, monkeypatch):
    taken = []

    def take(cluster, asked, scope, **ports):
        taken.append(cluster.name)
        return Outcome(cluster=cluster.name, key="k", reason="taken")

    monkeypatch.setattr(take_snapshot_handler, "take_snapshot", take)
    settings = Settings.from_environment({"ROLE": role, "SNAPSHOT_REQUESTS_URL": queue_url})
    bootstrap.use(LocalApp(settings, POLICY, VirtualClock(NOON)))
    bodies = [{"cluster": c.name, "requested_at": NOON.isoformat()} for c in POLICY.clusters]
    records = [{"messageId": str(n), "body": json.dumps(b)} for n, b in enumerate(bodies)]
    context = LambdaContext(function_name="take_snapshot", aws_request_id="1")
    try:
        answer = take_snapshot_handler.handler({"Records": records}, context)
    finally:
        bootstrap.use(None)

    assert taken == expected
    assert answer == {"batchItemFailures": []}  # what is not read here is not tried again


def test_plan_ticks_of_a_hub_asks_spokes_and_has_no_queue_of_its_own():
    app = App(Settings.from_environment({"SNAPSHOT_REQUESTS_URL": ""}))
    app.policy = POLICY

    with pytest.raises(ConfigError, match=r"cluster ml-shared-01: .*Role=hub"):
        app.requests.ask("ml-shared-01", NOON, "tick", SnapshotScope.TICK)
    assert {name: sender._url for name, sender in app.requests._spokes.items()} == {
        "ml-ireland-1": IRELAND,
        "ml-ireland-2": IRELAND,
        "ml-oregon": OREGON,
    }
