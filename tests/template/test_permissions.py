"""What each role may do: stated here by hand from the design, and equal to the template."""

from typing import Any

import pytest
from cfnlint.data import AdditionalSpecs
from cfnlint.helpers import load_resource

type Document = dict[str, Any]

OWN_LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
POLLING = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
ALLOWED = {
    # Asks for snapshots, remembers when it asked; tells of clusters that left, reads ages.
    "PlanTicksRole": OWN_LOGS | {"sqs:SendMessage", "dynamodb:GetItem", "dynamodb:PutItem"},
    # Reads one cluster and its memory, writes the snapshot, says so. No table, no Slack.
    "TakeSnapshotRole": OWN_LOGS
    | POLLING
    | {
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
        "events:PutEvents",
        "sagemaker:DescribeCluster",
        "sagemaker:ListClusterEvents",
        "sagemaker:ListClusterNodes",
        "sagemaker:ListComputeQuotas",
        "sagemaker:ListClusterSchedulerConfigs",
        "sagemaker:DescribeClusterSchedulerConfig",
        "eks:DescribeAddon",
        "eks:DescribeCluster",
        "eks:ListAddons",
        "aps:QueryMetrics",
        "cloudwatch:GetMetricData",
        "cloudwatch:ListMetrics",
        "sts:AssumeRole",
        "ec2:CreateNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:DeleteNetworkInterface",
        "ec2:AssignPrivateIpAddresses",
        "ec2:UnassignPrivateIpAddresses",
    },
    # Folds a snapshot into the memory; its failures go to the dead letters. No cluster, no Slack.
    "EvaluateSnapshotRole": OWN_LOGS
    | {"sqs:SendMessage", "s3:GetObject", "s3:ListBucket", "s3:PutObject", "events:PutEvents"},
    # Reads evaluations, keeps alerts, speaks in Slack, tells pagers.
    "ReconcileAlertsRole": OWN_LOGS
    | POLLING
    | {
        "s3:GetObject",
        "s3:ListBucket",
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:BatchWriteItem",
        "secretsmanager:GetSecretValue",
        "sns:Publish",
    },
    # Checks signatures, opens the dialog, hands everything on: no bucket, no table.
    "AnswerSlackRole": OWN_LOGS | {"sqs:SendMessage", "secretsmanager:GetSecretValue"},
    # Reads what is known, and hands actions on: writes nothing, and knows no secret.
    "RunCommandRole": OWN_LOGS
    | POLLING
    | {"s3:GetObject", "s3:ListBucket", "dynamodb:Query", "sqs:SendMessage"},
    # Keeps what it is told of checkpoints, and nothing else.
    "RecordCheckpointsRole": OWN_LOGS | POLLING | {"s3:GetObject", "s3:ListBucket", "s3:PutObject"},
    # EventBridge's own role for the one hop from the default bus.
    "ForwardServiceEventsRole": {"events:PutEvents"},
}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(written: Document, role: str) -> list[Document]:
    (policy,) = written["Resources"][role]["Properties"]["Policies"]
    items = policy["PolicyDocument"]["Statement"]
    return [item["Fn::If"][1] if "Fn::If" in item else item for item in items]


def actions(written: Document, role: str) -> set[str]:
    return {
        action
        for statement in statements(written, role)
        if statement["Effect"] == "Allow"
        for action in as_list(statement["Action"])
    }


def known_to_aws(action: str) -> Document | None:
    """Look an action up in AWS's own list (cfn-lint ships it); None where AWS knows no such action."""
    service, _, name = action.lower().partition(":")
    found: Document | None = (
        load_resource(AdditionalSpecs, "Policies.json")
        .get(service, {})
        .get("Actions", {})
        .get(name)
    )
    return found


@pytest.mark.parametrize("role", ALLOWED)
def test_a_role_may_do_what_the_design_says_and_nothing_else(role: str, written: Document) -> None:
    assert actions(written, role) == ALLOWED[role]


def test_every_role_is_listed_here(written: Document) -> None:
    roles = {n for n, r in written["Resources"].items() if r["Type"] == "AWS::IAM::Role"}

    assert roles == set(ALLOWED)


@pytest.mark.parametrize("role", ALLOWED)
def test_every_action_exists(role: str) -> None:
    # cfn-lint's own check of action names skips templates that SAM transforms.
    assert {action for action in ALLOWED[role] if known_to_aws(action) is None} == set()


def test_a_misspelt_action_is_unknown() -> None:
    assert known_to_aws("sagemaker:ListComputeQuotas") is not None
    assert known_to_aws("sagemaker:ListComputeQuota") is None


def test_every_resource_is_allowed_only_where_aws_takes_nothing_narrower(
    written: Document,
) -> None:
    wide = {
        (statement["Sid"], action)
        for role in ALLOWED
        for statement in statements(written, role)
        if statement["Effect"] == "Allow" and "*" in as_list(statement["Resource"])
        for action in as_list(statement["Action"])
    }
    narrower = {
        (sid, action) for sid, action in wide if (known_to_aws(action) or {}).get("Resources")
    }

    # CloudWatch's list has datasets for these two; what an agent publishes is documented on "*" only.
    metrics = {
        ("ReadContainerInsights", f"cloudwatch:{a}") for a in ("GetMetricData", "ListMetrics")
    }
    # Lambda itself makes and removes the network interfaces, and checks for these four on "*".
    assert narrower == metrics | {
        ("JoinVpc", f"ec2:{action}")
        for action in (
            "CreateNetworkInterface",
            "DeleteNetworkInterface",
            "AssignPrivateIpAddresses",
            "UnassignPrivateIpAddresses",
        )
    }


def test_code_inside_take_snapshot_may_not_use_the_rights_that_lambda_needs(
    written: Document,
) -> None:
    by_sid = {statement["Sid"]: statement for statement in statements(written, "TakeSnapshotRole")}
    denied = by_sid["KeepCodeOutOfVpc"]

    assert denied["Effect"] == "Deny"
    assert denied["Action"] == by_sid["JoinVpc"]["Action"]
    assert set(denied["Condition"]["ArnLike"]) == {"lambda:SourceFunctionArn"}


def test_only_who_speaks_to_slack_reads_its_secret(written: Document) -> None:
    readers = {
        role: statement["Resource"]
        for role in ALLOWED
        for statement in statements(written, role)
        if "secretsmanager:GetSecretValue" in as_list(statement["Action"])
    }

    # RunCommand answers to an address that came with the command.
    secret = {"Ref": "SlackSecretArn"}
    assert readers == {"ReconcileAlertsRole": secret, "AnswerSlackRole": secret}


def test_rows_of_the_state_table_are_kept_apart(written: Document) -> None:
    rows = {
        (role, action, key)
        for role in ALLOWED
        for statement in statements(written, role)
        for action in as_list(statement["Action"])
        if action.startswith("dynamodb:")
        for key in statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    }

    assert rows == {
        ("PlanTicksRole", "dynamodb:GetItem", "plan#*"),
        ("PlanTicksRole", "dynamodb:PutItem", "plan#*"),
        # How old what was folded is; cards have one writer.
        ("PlanTicksRole", "dynamodb:GetItem", "cluster#*"),
        ("ReconcileAlertsRole", "dynamodb:Query", "cluster#*"),
        ("ReconcileAlertsRole", "dynamodb:PutItem", "cluster#*"),
        ("ReconcileAlertsRole", "dynamodb:BatchWriteItem", "cluster#*"),
        ("RunCommandRole", "dynamodb:Query", "cluster#*"),
    }


def test_each_queue_takes_messages_from_those_whom_the_design_names(written: Document) -> None:
    senders: dict[str, set[str]] = {}
    for role in ALLOWED:
        for statement in statements(written, role):
            if "sqs:SendMessage" in as_list(statement["Action"]):
                resource = statement["Resource"]
                queue = resource.get("Ref") or resource["Fn::GetAtt"][0]
                senders.setdefault(queue, set()).add(role)

    assert senders == {
        "SnapshotRequests": {"PlanTicksRole"},
        "SpokeQueueArns": {"PlanTicksRole"},
        "Evaluations": {
            "EvaluateSnapshotRole",
            "PlanTicksRole",  # clusters that left
            "AnswerSlackRole",  # buttons
            "RunCommandRole",  # /gpu exempt, /gpu snooze
        },
        "Commands": {"AnswerSlackRole"},
        "DeadLetters": {"PlanTicksRole", "EvaluateSnapshotRole"},
    }


def test_pagers_are_told_by_the_reconciler_alone_and_only_where_the_deployment_names_them(
    written: Document,
) -> None:
    tellers = {
        role: statement["Resource"]
        for role in ALLOWED
        for statement in statements(written, role)
        if "sns:Publish" in as_list(statement["Action"])
    }

    assert tellers == {"ReconcileAlertsRole": {"Ref": "PagerTopicArns"}}


def test_objects_are_written_only_below_the_prefixes_that_a_function_owns(
    written: Document,
) -> None:
    prefixes: dict[tuple[str, str], set[str]] = {}
    for role in ALLOWED:
        for statement in statements(written, role):
            for action in as_list(statement["Action"]):
                if action in {"s3:GetObject", "s3:PutObject"}:
                    found = prefixes.setdefault((role, action), set())
                    texts = (as_list(arn["Fn::Sub"])[0] for arn in as_list(statement["Resource"]))
                    found |= {text[text.index("}/") + 1 :] for text in texts}

    def below(*names: str) -> set[str]:
        return {f"/{name}/*" for name in names}

    assert prefixes == {
        ("TakeSnapshotRole", "s3:GetObject"): below("memory", "latest", "claims", "checkpoints"),
        ("TakeSnapshotRole", "s3:PutObject"): below("snapshots", "latest", "claims"),
        ("EvaluateSnapshotRole", "s3:GetObject"): below("snapshots", "memory", "evaluations"),
        ("EvaluateSnapshotRole", "s3:PutObject"): below("memory", "evaluations"),
        ("ReconcileAlertsRole", "s3:GetObject"): below("evaluations"),
        ("RunCommandRole", "s3:GetObject"): below("evaluations"),
        ("RecordCheckpointsRole", "s3:GetObject"): below("checkpoints"),
        ("RecordCheckpointsRole", "s3:PutObject"): below("checkpoints"),
    }
