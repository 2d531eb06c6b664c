"""The house rules hold for the template, and each of them fails on a template that breaks it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cfnlint.config import ConfigMixIn
from cfnlint.decode.decode import decode_str
from cfnlint.rules import Rules
from cfnlint.runner import run_template_by_data

type Document = dict[str, Any]
type Break = Callable[[Document], object]

RULES = Path(__file__).parent / "rules"


def faults(document: Document) -> dict[str, list[str]]:
    """Return the messages of the house rules by rule id."""
    node, errors = decode_str(json.dumps(document))
    assert not errors
    found: dict[str, list[str]] = {}
    config = ConfigMixIn(regions=["us-east-1"])
    for match in run_template_by_data(node, config, Rules.create_from_directory(str(RULES))):
        found.setdefault(match.rule.id, []).append(match.message)
    return found


def properties(document: Document, name: str) -> Document:
    found: Document = document["Resources"][name]["Properties"]
    return found


def statement(document: Document, role: str, sid: str) -> Document:
    """Return one statement of a role, wherever an If has put it."""
    (policy,) = properties(document, role)["Policies"]
    for item in policy["PolicyDocument"]["Statement"]:
        plain: Document = item["Fn::If"][1] if "Fn::If" in item else item
        if plain["Sid"] == sid:
            return plain
    raise AssertionError(sid)


def tick(document: Document) -> Document:
    found: Document = properties(document, "PlanTicks")["Events"]["Tick"]
    return found


def snapshot_taken(document: Document) -> Document:
    found: Document = properties(document, "EvaluateSnapshot")["Events"]["SnapshotTaken"]
    return found


def spokes_store(document: Document) -> Document:
    items = properties(document, "BucketPolicy")["PolicyDocument"]["Statement"]
    found: Document = items[-1]["Fn::If"][1]
    assert found["Sid"] == "SpokesStoreSnapshots"
    return found


def second_schedule(document: Document) -> None:
    properties(document, "EvaluateSnapshot")["Events"]["Tick"] = tick(document)


def alias(**wiring: str) -> Break:
    """Publish an alias with BuildId only where `wiring` says."""

    def apply(document: Document) -> None:
        document["Parameters"]["BuildId"] = {"Type": "String"}
        function = properties(document, "PlanTicks")
        function["AutoPublishAlias"] = "live"
        if "digest" in wiring:
            function["AutoPublishCodeSha256"] = {"Ref": wiring["digest"]}
        if "variable" in wiring:
            function["Environment"]["Variables"]["BUILD_ID"] = {"Ref": wiring["variable"]}

    return apply


BROKEN: list[tuple[str, str, Break]] = [
    ("E9001", "Timeout", lambda t: properties(t, "TakeSnapshot").pop("Timeout")),
    ("E9001", "MemorySize", lambda t: properties(t, "PlanTicks").pop("MemorySize")),
    ("E9001", "Role", lambda t: properties(t, "PlanTicks").pop("Role")),
    ("E9001", "retention", lambda t: properties(t, "PlanTicksLogs").pop("RetentionInDays")),
    ("E9001", "retention", lambda t: properties(t, "PlanTicks").pop("LoggingConfig")),
    (
        "E9001",
        "shares PlanTicksRole",
        lambda t: properties(t, "TakeSnapshot").update(
            Role={"Fn::GetAtt": ["PlanTicksRole", "Arn"]}
        ),
    ),
    (
        "E9001",
        "shares PlanTicksLogs",
        lambda t: properties(t, "TakeSnapshot")["LoggingConfig"].update(
            LogGroup={"Ref": "PlanTicksLogs"}
        ),
    ),
    (
        "E9002",
        "OnFailure",
        lambda t: properties(t, "PlanTicks")["EventInvokeConfig"].pop("DestinationConfig"),
    ),
    (
        "E9002",
        "MaximumRetryAttempts",
        lambda t: properties(t, "EvaluateSnapshot")["EventInvokeConfig"].pop(
            "MaximumRetryAttempts"
        ),
    ),
    (
        "E9002",
        "MaximumEventAgeInSeconds",
        lambda t: properties(t, "EvaluateSnapshot").pop("EventInvokeConfig"),
    ),
    (
        "E9003",
        "reserved concurrency",
        lambda t: properties(t, "ReconcileAlerts").update(ReservedConcurrentExecutions=1),
    ),
    (
        "E9003",
        "partial batch",
        lambda t: properties(t, "TakeSnapshot")["Events"]["SnapshotRequest"]["Properties"].pop(
            "FunctionResponseTypes"
        ),
    ),
    ("E9003", "below 4706 s", lambda t: properties(t, "TakeSnapshot").update(Timeout=781)),
    ("E9003", "below 360 s", lambda t: properties(t, "Evaluations").pop("VisibilityTimeout")),
    ("E9003", "RedrivePolicy", lambda t: properties(t, "SnapshotRequests").pop("RedrivePolicy")),
    (
        "E9003",
        "not of the same kind",
        lambda t: properties(t, "Evaluations")["RedrivePolicy"].update(
            deadLetterTargetArn={"Fn::GetAtt": ["DeadLetters", "Arn"]}
        ),
    ),
    (
        "E9003",
        "no batching window",
        lambda t: (
            properties(t, "ReconcileAlerts")["Events"]["Evaluation"]["Properties"].update(
                MaximumBatchingWindowInSeconds=5
            ),
            properties(t, "Evaluations").update(VisibilityTimeout=365),
        ),
    ),
    (
        "E9003",
        "not of this template",
        lambda t: properties(t, "TakeSnapshot")["Events"]["SnapshotRequest"]["Properties"].update(
            Queue="arn:aws:sqs:us-east-1:111122223333:elsewhere"
        ),
    ),
    ("E9004", "2 schedules", second_schedule),
    ("E9004", "0 schedules", lambda t: properties(t, "PlanTicks").pop("Events")),
    ("E9004", "ScheduleV2", lambda t: tick(t).update(Type="Schedule")),
    (
        "E9004",
        "outside",
        lambda t: t["Resources"].update(
            Extra={"Type": "AWS::Scheduler::Schedule", "Properties": {}}
        ),
    ),
    ("E9004", "OmitName", lambda t: tick(t)["Properties"].pop("OmitName")),
    ("E9004", "RetryPolicy", lambda t: tick(t)["Properties"].pop("RetryPolicy")),
    ("E9004", "DeadLetterConfig", lambda t: tick(t)["Properties"].pop("DeadLetterConfig")),
    (
        "E9005",
        "no dead-letter queue",
        lambda t: snapshot_taken(t)["Properties"].pop("DeadLetterConfig"),
    ),
    (
        "E9005",
        "event age",
        lambda t: properties(t, "ForwardServiceEvents")["Targets"][0].pop("RetryPolicy"),
    ),
    (
        "E9005",
        "SnapshotRequests has no policy",
        lambda t: t["Resources"].pop("SnapshotRequestsPolicy"),
    ),
    ("E9005", "DeadLetters has no policy", lambda t: t["Resources"].pop("DeadLettersPolicy")),
    (
        "E9005",
        "DeadLetters has no policy",
        lambda t: properties(t, "DeadLettersPolicy")["PolicyDocument"]["Statement"][0].pop(
            "Condition"
        ),
    ),
    (
        "E9005",
        "is FIFO",
        lambda t: snapshot_taken(t)["Properties"].update(
            DeadLetterConfig={"Arn": {"Fn::GetAtt": ["DeadLettersFifo", "Arn"]}}
        ),
    ),
    (
        "E9006",
        "replay-name",
        lambda t: snapshot_taken(t)["Properties"]["Pattern"].pop("replay-name"),
    ),
    ("E9007", "AutoPublishCodeSha256", alias(variable="BuildId")),
    ("E9007", "BUILD_ID", alias(digest="BuildId")),
    ("E9008", "without Sid", lambda t: statement(t, "PlanTicksRole", "RememberPlan").pop("Sid")),
    (
        "E9008",
        "without a reason",
        lambda t: t["Resources"]["TakeSnapshotRole"]["Metadata"]["StarReasons"].pop("JoinVpc"),
    ),
    (
        "E9008",
        "without a reason",
        lambda t: statement(t, "ReconcileAlertsRole", "KeepAlerts").update(Resource="*"),
    ),
    (
        "E9008",
        "not used",
        lambda t: t["Resources"]["PlanTicksRole"].update(
            Metadata={"StarReasons": {"WriteLogs": "once upon a time"}}
        ),
    ),
    (
        "E9008",
        "wildcard action",
        lambda t: statement(t, "ReconcileAlertsRole", "KeepAlerts").update(Action="dynamodb:*"),
    ),
    (
        "E9008",
        "not an ARN",
        lambda t: statement(t, "PlanTicksRole", "RememberPlan").update(Resource="state"),
    ),
    (
        "E9008",
        "events:source",
        lambda t: statement(t, "TakeSnapshotRole", "PublishSnapshotTaken").pop("Condition"),
    ),
    (
        "E9008",
        "open to everybody",
        lambda t: properties(t, "BucketPolicy")["PolicyDocument"]["Statement"][0].update(
            Effect="Allow", Action="s3:GetObject"
        ),
    ),
    (
        "E9008",
        "open to everybody",
        lambda t: properties(t, "SpokesMayPublish")["Statement"].update(Principal={"AWS": "*"}),
    ),
    (
        "E9008",
        "a whole account is let in",
        lambda t: spokes_store(t).pop("Condition"),
    ),
    ("E9008", "without Sid", lambda t: properties(t, "MembersMayForward").pop("StatementId")),
    (
        "E9008",
        "managed policy",
        lambda t: properties(t, "PlanTicksRole").update(
            ManagedPolicyArns=["arn:aws:iam::aws:policy/AdministratorAccess"]
        ),
    ),
    (
        "E9008",
        "beside its role",
        lambda t: properties(t, "PlanTicks").update(Policies=["AdministratorAccess"]),
    ),
    (
        "E9009",
        "shares its folder",
        lambda t: properties(t, "TakeSnapshot").update(CodeUri="functions/plan_ticks"),
    ),
]


def test_the_template_keeps_every_house_rule(template: Document) -> None:
    assert faults(template) == {}


def test_an_alias_with_build_id_twice_is_accepted(template: Document) -> None:
    alias(digest="BuildId", variable="BuildId")(template)

    assert faults(template) == {}


@pytest.mark.parametrize(("rule", "message", "break_it"), BROKEN)
def test_a_broken_template_is_refused_by_its_rule(
    rule: str, message: str, break_it: Break, template: Document
) -> None:
    break_it(template)

    found = faults(template)
    assert set(found) == {rule}
    assert any(message in text for text in found[rule])


def test_every_house_rule_is_shown_to_fail() -> None:
    ids = {rule.id for rule in Rules.create_from_directory(str(RULES)).values()}

    assert {rule for rule, _, _ in BROKEN} == ids
