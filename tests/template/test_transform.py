"""What CloudFormation is given once SAM has transformed the template."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.conditions import decide
from tests.template.deployments import Deploy

type Document = dict[str, Any]


def of_type(resources: Document, kind: str) -> dict[str, Document]:
    return {n: r["Properties"] for n, r in resources.items() if r["Type"] == kind}


def logical_id(reference: Document) -> str:
    """Return what a Ref or a GetAtt names; of another intrinsic, its text."""
    found: str = (
        reference["Fn::GetAtt"][0] if "Fn::GetAtt" in reference else str(*reference.values())
    )
    return found


def allowed(role: Document) -> Iterator[tuple[str, str]]:
    """Yield the (action, logical id of the resource) pairs that a role may use."""
    for policy in role["Policies"]:
        for item in policy["PolicyDocument"]["Statement"]:
            statement = item["Fn::If"][1] if "Fn::If" in item else item
            actions = statement["Action"]
            resource = statement["Resource"]
            for action in [actions] if isinstance(actions, str) else actions:
                if statement["Effect"] == "Allow" and isinstance(resource, dict):
                    yield action, logical_id(resource)


def unprotected(resources: Document) -> list[str]:
    """Name every queue hand-over for which the sender's role has no leave."""
    roles = of_type(resources, "AWS::IAM::Role")
    functions = of_type(resources, "AWS::Lambda::Function")

    def may(role: Document, action: str, queue: str) -> bool:
        return (action, queue) in set(allowed(roles[logical_id(role)]))

    missing: list[str] = []
    for name, config in of_type(resources, "AWS::Lambda::EventInvokeConfig").items():
        queue = logical_id(config["DestinationConfig"]["OnFailure"]["Destination"])
        if not may(functions[logical_id(config["FunctionName"])]["Role"], "sqs:SendMessage", queue):
            missing.append(f"{name}: {queue}")
    for name, schedule in of_type(resources, "AWS::Scheduler::Schedule").items():
        queue = logical_id(schedule["Target"]["DeadLetterConfig"]["Arn"])
        if not may(schedule["Target"]["RoleArn"], "sqs:SendMessage", queue):
            missing.append(f"{name}: {queue}")
    for name, mapping in of_type(resources, "AWS::Lambda::EventSourceMapping").items():
        queue = logical_id(mapping["EventSourceArn"])
        role = functions[logical_id(mapping["FunctionName"])]["Role"]
        missing += [
            f"{name}: {action}"
            for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
            if not may(role, action, queue)
        ]
    return missing


def test_every_failure_queue_may_be_written_and_every_polled_queue_read(deployed: Document) -> None:
    assert unprotected(deployed) == []


@pytest.mark.parametrize(
    ("role", "sid", "missing"),
    [
        ("PlanTicksRole", "KeepFailures", ["PlanTicksEventInvokeConfig: DeadLetters"]),
        (
            "EvaluateSnapshotRole",
            "KeepFailures",
            ["EvaluateSnapshotEventInvokeConfig: DeadLetters"],
        ),
        (
            "ReconcileAlertsRole",
            "PollEvaluations",
            [
                f"ReconcileAlertsEvaluation: sqs:{action}"
                for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
            ],
        ),
        (
            "RunCommandRole",
            "PollCommands",
            [
                f"RunCommandCommand: sqs:{action}"
                for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
            ],
        ),
        (
            "RecordCheckpointsRole",
            "PollCheckpoints",
            [
                f"RecordCheckpointsCheckpoint: sqs:{action}"
                for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
            ],
        ),
    ],
)
def test_a_queue_without_leave_is_noticed(
    role: str,
    sid: str,
    missing: list[str],
    template: Document,
    transform: Callable[[Document], Document],
) -> None:
    document = template["Resources"][role]["Properties"]["Policies"][0]["PolicyDocument"]
    document["Statement"] = [s for s in document["Statement"] if s.get("Sid") != sid]

    assert unprotected(transform(template)) == missing


def test_one_unnamed_schedule_starts_plan_ticks_every_five_minutes(deployed: Document) -> None:
    ((name, schedule),) = of_type(deployed, "AWS::Scheduler::Schedule").items()

    assert name == "PlanTicksTick"
    # A name would be unique in the account and region: a second stack could not be deployed.
    assert "Name" not in schedule
    # On the clock, so that Scheduler's precision of a minute cannot carry a tick into another slot.
    assert schedule["ScheduleExpression"] == "cron(0/5 * * * ? *)"
    assert "<aws.scheduler.scheduled-time>" in schedule["Target"]["Input"]
    # A new id each attempt: a key made of it would make a retry look like news.
    assert "execution-id" not in schedule["Target"]["Input"]


def test_functions_are_polled_as_their_queues_need(deployed: Document) -> None:
    mappings = of_type(deployed, "AWS::Lambda::EventSourceMapping")
    snapshots = mappings["TakeSnapshotSnapshotRequest"]
    evaluations = mappings["ReconcileAlertsEvaluation"]
    checkpoints = mappings["RecordCheckpointsCheckpoint"]

    assert len(mappings) == 4
    # One fault gives several events about a second apart: one batch, one snapshot.
    assert snapshots["MaximumBatchingWindowInSeconds"] == 20
    # Lambda takes more than 10 of a standard queue only with a window, and never of a FIFO queue.
    assert snapshots["BatchSize"] == 100
    # A job writes many objects at once, and everything that is told of a job is one write.
    assert (checkpoints["BatchSize"], checkpoints["MaximumBatchingWindowInSeconds"]) == (100, 60)
    # A cluster whose Slack is silent takes ten seconds of the sixty that the function has.
    assert evaluations["BatchSize"] == 4
    assert "MaximumBatchingWindowInSeconds" not in evaluations
    # Somebody waits for the answer: neither for another's command, nor for a window.
    commands = mappings["RunCommandCommand"]
    assert commands["BatchSize"] == 1
    assert "MaximumBatchingWindowInSeconds" not in commands
    for mapping in mappings.values():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_there_is_no_alias_so_no_build_id_is_needed(deployed: Document) -> None:
    assert of_type(deployed, "AWS::Lambda::Alias") == {}
    assert of_type(deployed, "AWS::Lambda::Version") == {}


def test_layers_follow_the_architecture_of_the_functions(
    deployed: Document, written: Document
) -> None:
    layers = of_type(deployed, "AWS::Lambda::LayerVersion")

    assert len(layers) == 3
    for properties in (*layers.values(), *of_type(deployed, "AWS::Lambda::Function").values()):
        key = (
            "CompatibleArchitectures"
            if "CompatibleArchitectures" in properties
            else "Architectures"
        )
        assert properties[key] == [{"Ref": "Arch"}]
    for resource in written["Resources"].values():
        if resource["Type"] == "AWS::Serverless::LayerVersion":
            # Without it `sam build` takes the default architecture, whatever Arch says.
            assert resource["Metadata"]["BuildArchitecture"] == {"Ref": "Arch"}


def test_one_parameter_feeds_both_log_levels(deployed: Document) -> None:
    for function in of_type(deployed, "AWS::Lambda::Function").values():
        assert function["LoggingConfig"]["ApplicationLogLevel"] == {"Ref": "LogLevel"}
        assert function["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"] == {"Ref": "LogLevel"}


COMMON = {
    "POWERTOOLS_LOG_LEVEL",
    "POWERTOOLS_SERVICE_NAME",
    "POLICY_PATH",
    "LOCAL_ENDPOINT",
    "LOCAL_NOW",
    "AWS_ENDPOINT_URL",
}


@pytest.mark.parametrize(
    ("function", "names"),
    [
        ("PlanTicks", {"STATE_TABLE", "SNAPSHOT_REQUESTS_URL", "EVALUATIONS_URL"}),
        # It must be deployable in a cluster's own account: no table, no Slack, only its own queue.
        ("TakeSnapshot", {"BUCKET", "BUS", "ROLE", "SNAPSHOT_REQUESTS_URL"}),
        ("EvaluateSnapshot", {"BUCKET", "BUS", "EVALUATIONS_URL"}),
        ("ReconcileAlerts", {"BUCKET", "STATE_TABLE", "SLACK_SECRET"}),
        # Neither reads what the steward knows, nor writes it.
        ("AnswerSlack", {"EVALUATIONS_URL", "COMMANDS_URL", "SLACK_SECRET"}),
        ("RunCommand", {"BUCKET", "STATE_TABLE", "EVALUATIONS_URL"}),
        ("RecordCheckpoints", {"BUCKET"}),
    ],
)
def test_a_function_is_told_only_what_it_uses(
    function: str, names: set[str], deployed: Document
) -> None:
    assert set(deployed[function]["Properties"]["Environment"]["Variables"]) == COMMON | names


@pytest.mark.parametrize("name", ["LocalEndpoint", "LocalNow"])
def test_a_deployment_cannot_be_pointed_at_a_rig(name: str, written: Document) -> None:
    parameter = written["Parameters"][name]

    # botocore reads an empty AWS_ENDPOINT_URL as unset, and Settings an empty LOCAL_ENDPOINT.
    assert parameter["Default"] == ""
    # CloudFormation refuses what the pattern does not match as a whole. With an endpoint the Slack
    # token and the cluster's bearer token would travel to it, without TLS.
    assert re.fullmatch(parameter["AllowedPattern"], "") is not None
    assert re.fullmatch(parameter["AllowedPattern"], "http://172.17.0.1:8930") is None


def test_slack_reaches_one_function_whose_signature_check_is_the_door(deployed: Document) -> None:
    ((name, url),) = of_type(deployed, "AWS::Lambda::Url").items()
    permissions = of_type(deployed, "AWS::Lambda::Permission").values()
    open_to_all = [p for p in permissions if p["Principal"] == "*"]

    assert name == "AnswerSlackUrl"
    # Slack cannot sign for IAM; whoever sends is told apart by Slack's own signature.
    assert url["AuthType"] == "NONE"
    assert {logical_id(p["FunctionName"]) for p in open_to_all} == {"AnswerSlack"}
    # Since October 2025 a URL needs both, and the second only by way of the URL.
    assert {p["Action"]: p.get("InvokedViaFunctionUrl", False) for p in open_to_all} == {
        "lambda:InvokeFunctionUrl": False,
        "lambda:InvokeFunction": True,
    }


def test_a_flood_from_outside_can_be_kept_from_taking_the_account_s_concurrency(
    written: Document, deploy: Deploy
) -> None:
    limited = deploy("hub")["AnswerSlack"]["Properties"]
    alone = decide(written, Role="both")["Resources"]["AnswerSlack"]["Properties"]

    assert limited["ReservedConcurrentExecutions"] == {"Ref": "AnswerSlackConcurrency"}
    # A reservation is taken from the account's ten or thousand: nobody is made to.
    assert "ReservedConcurrentExecutions" not in alone


def test_a_command_is_not_run_once_slack_takes_no_answer_any_more(deployed: Document) -> None:
    # A response_url is good for 30 minutes.
    assert deployed["Commands"]["Properties"]["MessageRetentionPeriod"] == 30 * 60


def test_metrics_of_two_stacks_are_told_apart(deployed: Document) -> None:
    for function in of_type(deployed, "AWS::Lambda::Function").values():
        variables = function["Environment"]["Variables"]
        assert variables["POWERTOOLS_SERVICE_NAME"] == {"Ref": "AWS::StackName"}


def test_stores_are_private_encrypted_and_outlive_the_stack(deployed: Document) -> None:
    bucket = deployed["Bucket"]["Properties"]

    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert "BucketEncryption" in bucket
    tls, *_ = deployed["BucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert (tls["Effect"], tls["Condition"]) == (
        "Deny",
        {"Bool": {"aws:SecureTransport": "false"}},
    )
    for name in ("StateTable", "LedgerTable"):
        table = deployed[name]["Properties"]
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
        assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]
    for name in ("Bucket", "StateTable", "LedgerTable"):
        assert deployed[name]["DeletionPolicy"] == "Retain"
        assert deployed[name]["UpdateReplacePolicy"] == "Retain"


def test_what_can_be_replaced_by_the_next_tick_expires_and_the_rest_stays(
    deployed: Document,
) -> None:
    rules = deployed["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]

    # Ticks are kept 30 days; the memory and the pointer to the last snapshot have no end.
    assert {r["Prefix"]: r["ExpirationInDays"] for r in rules if "ExpirationInDays" in r} == {
        "snapshots/": 30,
        "evaluations/": 30,
        "checkpoints/": 30,
        "claims/": 1,
    }
