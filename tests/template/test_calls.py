"""What the functions really call is what their roles allow: recorded while they handle `events/`."""

import importlib
import json
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

type Document = dict[str, Any]

ROOT = Path(__file__).parents[2]
FUNCTIONS = {
    "plan_ticks": "PlanTicksRole",
    "take_snapshot": "TakeSnapshotRole",
    "evaluate_snapshot": "EvaluateSnapshotRole",
    "reconcile_alerts": "ReconcileAlertsRole",
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
}
"""Allowed, and rightly not among the recorded calls."""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The policy as the policy layer holds it."""
    compiled = tmp_path_factory.mktemp("policy") / "policy.json"
    example = policy_tool.load(ROOT / "layers" / "policy" / "governance.yaml")
    compiled.write_bytes(codec.dump(example))
    return compiled


def calls_of(function: str, running: Cloud, policy: Path) -> set[str]:
    """Run a function's handler over all its events; return the IAM actions of its AWS calls."""
    told = {**running.variables, "POLICY_PATH": str(policy), "AWS_REGION": "us-east-1"}
    calls: set[str] = set()

    def record(model: Any, **_: object) -> None:
        action = f"{model.service_model.signing_name}:{model.name}"
        calls.add(NAMED_OTHERWISE.get(action, action))

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
    return calls - NEEDS_NO_LEAVE


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory, policy: Path) -> dict[str, set[str]]:
    """IAM actions of each function's AWS calls."""
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
    function: str, role: str, calls: dict[str, set[str]], written: Document
) -> None:
    assert calls[function] <= allowed(written, role)
    assert allowed(written, role) - calls[function] <= BY_OTHERS


def test_a_forgotten_statement_would_be_noticed(
    calls: dict[str, set[str]], template: Document
) -> None:
    forgotten = statements(template, "PlanTicksRole")
    forgotten[:] = [item for item in forgotten if item.get("Sid") != "RememberPlan"]

    # It reads when a snapshot was last asked for, and writes that it asked.
    assert calls["plan_ticks"] - allowed(template, "PlanTicksRole") == {
        "dynamodb:GetItem",
        "dynamodb:PutItem",
    }
