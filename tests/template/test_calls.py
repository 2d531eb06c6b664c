"""What the functions really call is what their roles allow: recorded while they handle `events/`."""

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from local import policy as policy_tool
from local.cloud import Cloud, cloud
from local.envelopes import LambdaContext
from local.rig import environment
from steward import bootstrap, codec
from steward.bootstrap import App
from steward.settings import Settings
from tests.template.deployments import as_list

type Document = dict[str, Any]

ROOT = Path(__file__).parents[2]
FUNCTIONS = {
    "plan_ticks": "PlanTicksRole",
    "take_snapshot": "TakeSnapshotRole",
    "evaluate_snapshot": "EvaluateSnapshotRole",
    "reconcile_alerts": "ReconcileAlertsRole",
    "answer_slack": "AnswerSlackRole",
    "run_command": "RunCommandRole",
    "record_checkpoints": "RecordCheckpointsRole",
}
NAMED_OTHERWISE = {"s3:HeadObject": "s3:GetObject", "s3:ListObjectsV2": "s3:ListBucket"}
"""Operations whose IAM action has another name."""

NEEDS_NO_LEAVE = {"sts:GetCallerIdentity"}
"""Every identity may ask who it is: the Kubernetes token is such a question, signed in advance."""

BY_OTHERS = {
    "logs:CreateLogStream",  # Lambda itself writes the log
    "logs:PutLogEvents",
    "sqs:ReceiveMessage",  # Lambda itself polls
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "ec2:CreateNetworkInterface",  # Lambda itself joins the VPC
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
    "s3:ListBucket",  # makes S3 tell absent from denied; checkpoints are listed after a preemption
    "aps:QueryMetrics",  # a signed HTTP request, not a call of botocore's
    "cloudwatch:GetMetricData",  # only where the policy's metrics backend is container_insights
    "cloudwatch:ListMetrics",
    "sts:AssumeRole",  # only where the policy names a role
    "sns:Publish",  # only where the policy's escalation names a topic
}
"""Allowed, and rightly not among the recorded calls."""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The policy as the policy layer holds it."""
    compiled = tmp_path_factory.mktemp("policy") / "policy.json"
    example = policy_tool.load(ROOT / "layers" / "policy" / "governance.yaml")
    compiled.write_bytes(codec.dump(example))
    return compiled


@dataclass
class Recorded:
    """What a function called.

    Attributes
    ----------
    actions : set of str
        IAM actions.
    rows : set of (str, str)
        Actions on the state table, and the partition key that each was about.
    """

    actions: set[str] = field(default_factory=set)
    rows: set[tuple[str, str]] = field(default_factory=set)


def partitions(given: Document) -> Iterator[str]:
    """Yield the partition keys that a call of DynamoDB's names, wherever it names them."""
    for key, value in given.items():
        if key in {"pk", ":pk"}:
            yield value["S"]
        elif isinstance(value, dict):
            yield from partitions(value)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from partitions(item) if isinstance(item, dict) else ()


def calls_of(function: str, running: Cloud, policy: Path) -> Recorded:
    """Run a function's handler over all its events; return its AWS calls."""
    told = {**running.variables, "POLICY_PATH": str(policy), "AWS_REGION": "us-east-1"}
    calls = Recorded()

    def record(params: Document, model: Any, **_: object) -> None:
        action = f"{model.service_model.signing_name}:{model.name}"
        calls.actions.add(NAMED_OTHERWISE.get(action, action))
        if action.startswith("dynamodb:"):
            calls.rows |= {(action, key) for key in partitions(params)}

    handler = importlib.import_module(f"functions.{function}.handler").handler
    with environment(running.rig.url):
        app = App(Settings.from_environment(told))
        # Emitted for every call, whatever answers it, paginators and presigned URLs included.
        app.session.events.register("before-parameter-build", record)
        bootstrap.use(app)
        try:
            for event in sorted((ROOT / "events" / function).glob("*.json")):
                handler(
                    json.loads(event.read_text()),
                    LambdaContext(function_name=function, aws_request_id=event.stem),
                )
        finally:
            bootstrap.use(None)
    calls.actions -= NEEDS_NO_LEAVE
    return calls


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory, policy: Path) -> dict[str, Recorded]:
    """Each function's AWS calls."""
    folder = tmp_path_factory.mktemp("cloud") / "recording"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METRICS", "recorded")  # which Prometheus answers makes no call another
        with cloud(folder, "127.0.0.1") as running:
            return {function: calls_of(function, running, policy) for function in FUNCTIONS}


def statements(written: Document, role: str) -> list[Document]:
    (policy,) = written["Resources"][role]["Properties"]["Policies"]
    found: list[Document] = policy["PolicyDocument"]["Statement"]
    return found


def allowed(written: Document, role: str) -> set[str]:
    found: set[str] = set()
    for item in statements(written, role):
        statement = item["Fn::If"][1] if "Fn::If" in item else item
        actions = statement["Action"]
        if statement["Effect"] == "Allow":
            found |= {actions} if isinstance(actions, str) else set(actions)
    return found


@pytest.mark.parametrize(("function", "role"), FUNCTIONS.items())
def test_a_function_calls_what_its_role_allows_and_its_role_allows_nothing_else(
    function: str, role: str, calls: dict[str, Recorded], written: Document
) -> None:
    called = calls[function].actions
    assert called <= allowed(written, role)
    assert allowed(written, role) - called <= BY_OTHERS


def refused_rows(written: Document, role: str, called: Recorded) -> set[tuple[str, str]]:
    """Return the calls about rows that no statement of the role allows."""
    leave = [
        (action, pattern)
        for statement in statements(written, role)
        if "dynamodb:LeadingKeys" in json.dumps(statement)
        for action in as_list(statement["Action"])
        for pattern in statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    ]
    return {
        (action, key)
        for action, key in called.rows
        if not any(a == action and fnmatchcase(key, pattern) for a, pattern in leave)
    }


@pytest.mark.parametrize(("function", "role"), FUNCTIONS.items())
def test_a_function_touches_only_the_rows_that_its_role_allows(
    function: str, role: str, calls: dict[str, Recorded], written: Document
) -> None:
    called = calls[function]
    assert {action for action, _ in called.rows} == {
        action for action in called.actions if action.startswith("dynamodb:")
    }
    assert refused_rows(written, role, called) == set()


def test_a_forgotten_statement_would_be_noticed(
    calls: dict[str, Recorded], template: Document
) -> None:
    forgotten = statements(template, "PlanTicksRole")
    forgotten[:] = [item for item in forgotten if item.get("Sid") != "RememberPlan"]

    called = calls["plan_ticks"]
    # It writes what it asked for; it may still read, but only the reconciler's rows.
    assert called.actions - allowed(template, "PlanTicksRole") == {"dynamodb:PutItem"}
    refused = refused_rows(template, "PlanTicksRole", called)
    assert {key.partition("#")[0] for _, key in refused} == {"plan"}
    assert {action for action, _ in refused} == {"dynamodb:GetItem", "dynamodb:PutItem"}
