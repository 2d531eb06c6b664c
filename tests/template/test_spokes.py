"""What a spoke may do, and how a hub and its spokes fit together.

Across accounts both sides must allow a call; each deployment has its conditions decided.
"""

import re
from fnmatch import fnmatchcase

import pytest

from local.policy.names import QUEUE
from tests.template.deployments import (
    ROOT,
    Deploy,
    Document,
    as_list,
    faults,
    of_type,
    read,
    spelt,
    statements,
)

# --- what a spoke may do -------------------------------------------------------------------------


def test_take_snapshot_of_a_spoke_may_do_this_and_nothing_else(deploy: Deploy) -> None:
    resources = deploy("spoke")
    bucket = "arn:aws:s3:::gpu-steward-bucket-abc"
    granted = {
        (action, resource)
        for item in statements(resources, "spoke", "TakeSnapshotRole").values()
        if item["Effect"] == "Allow" and item["Sid"] != "JoinVpc"
        for action in as_list(item["Action"])
        for resource in as_list(item["Resource"])
        if not action.startswith(("sagemaker:", "eks:", "aps:", "cloudwatch:", "sts:"))
    }

    # Beside reading its own account's clusters: its log and queue, some prefixes of the hub's
    # bucket, the hub's bus, and names in the buckets of checkpoints. No table, no secret, no queue of the hub's.
    assert granted == {
        ("logs:CreateLogStream", "<TakeSnapshotLogs.Arn>"),
        ("logs:PutLogEvents", "<TakeSnapshotLogs.Arn>"),
        ("sqs:ReceiveMessage", "<SnapshotRequests.Arn>"),
        ("sqs:DeleteMessage", "<SnapshotRequests.Arn>"),
        ("sqs:GetQueueAttributes", "<SnapshotRequests.Arn>"),
        ("s3:ListBucket", bucket),
        ("s3:GetObject", f"{bucket}/memory/*"),
        ("s3:GetObject", f"{bucket}/latest/*"),
        ("s3:GetObject", f"{bucket}/claims/*"),
        ("s3:GetObject", f"{bucket}/checkpoints/*"),
        ("s3:PutObject", f"{bucket}/snapshots/*"),
        ("s3:PutObject", f"{bucket}/latest/*"),
        ("s3:PutObject", f"{bucket}/claims/*"),
        ("s3:ListBucket", "arn:aws:s3:::ml-shared-01-checkpoints"),
        ("s3:ListBucket", "arn:aws:s3:::ml-other-checkpoints"),
        ("events:PutEvents", "arn:aws:events:us-east-1:111122223333:event-bus/gpu-steward"),
    }


def test_a_spoke_reads_clusters_with_the_same_rights_as_the_one_stack(deploy: Deploy) -> None:
    reading = ("sagemaker:", "eks:", "aps:", "cloudwatch:", "sts:", "ec2:")

    def rights(role: str) -> list[Document]:
        return [
            item
            for item in statements(deploy(role), role, "TakeSnapshotRole").values()
            if as_list(item["Action"])[0].startswith(reading)
        ]

    assert rights("spoke") == rights("both") != []


def test_a_spoke_is_told_of_the_hub_and_of_its_own_queue(deploy: Deploy) -> None:
    def told(role: str) -> Document:
        found = deploy(role)["TakeSnapshot"]["Properties"]["Environment"]["Variables"]
        names = ("ROLE", "BUCKET", "BUS", "SNAPSHOT_REQUESTS_URL")
        return {name: spelt(found[name], role) for name in names}

    assert told("spoke") == {
        "ROLE": "spoke",
        "BUCKET": "gpu-steward-bucket-abc",
        "BUS": "arn:aws:events:us-east-1:111122223333:event-bus/gpu-steward",
        "SNAPSHOT_REQUESTS_URL": "<SnapshotRequests>",
    }
    assert told("both") == {
        "ROLE": "both",
        "BUCKET": "<Bucket>",
        "BUS": "<StewardBus>",
        "SNAPSHOT_REQUESTS_URL": "<SnapshotRequests>",
    }


def test_events_of_a_spokes_account_go_straight_to_its_queue(deploy: Deploy) -> None:
    resources = deploy("spoke")
    rules = of_type(resources, "AWS::Events::Rule")

    assert set(rules) == {"HyperPodEvents", "ApiCalls", "TriggerAlarms", "SnapshotRequested"}
    for rule in rules.values():
        assert "EventBusName" not in rule  # AWS services publish on the default bus only
        assert [t["Arn"] for t in rule["Targets"]] == [{"Fn::GetAtt": ["SnapshotRequests", "Arn"]}]
    for queue in ("SnapshotRequestsPolicy", "DeadLettersPolicy"):
        (rules_send, *_) = resources[queue]["Properties"]["PolicyDocument"]["Statement"]
        ((sources),) = rules_send["Condition"].values()
        assert spelt(sources["aws:SourceArn"], "spoke") == [
            "<HyperPodEvents.Arn>",
            "<ApiCalls.Arn>",
            "<TriggerAlarms.Arn>",
            "<SnapshotRequested.Arn>",
        ]


# --- how a hub and its spokes fit together -------------------------------------------------------


def test_the_queue_that_a_spoke_polls_is_named_in_advance(
    deploy: Deploy, written: Document
) -> None:
    # So that the policy and the hub can name it before the spoke is there: both take that name.
    name = deploy("spoke")["SnapshotRequests"]["Properties"]["QueueName"]
    pattern = written["Parameters"]["SpokeQueueArns"]["AllowedPattern"]

    assert name == {"Fn::Sub": "${AWS::StackName}-snapshot-requests"}
    called = "gpu-steward-spoke-snapshot-requests"
    assert QUEUE.accepts(f"https://sqs.eu-west-1.amazonaws.com/444455556666/{called}")
    assert re.fullmatch(pattern, f"arn:aws:sqs:eu-west-1:444455556666:{called}")


@pytest.mark.parametrize(
    ("role", "queue", "targets"),
    [
        (
            "both",
            "<SnapshotRequests>",
            {
                "<SnapshotRequests.Arn>",
                "arn:aws:sqs:eu-west-1:444455556666:spoke-snapshot-requests",
            },
        ),
        ("hub", "", {"arn:aws:sqs:eu-west-1:444455556666:spoke-snapshot-requests"}),
    ],
)
def test_plan_ticks_may_send_to_its_own_queue_and_to_those_of_its_spokes(
    role: str, queue: str, targets: set[str], deploy: Deploy
) -> None:
    resources = deploy(role)
    told = resources["PlanTicks"]["Properties"]["Environment"]["Variables"]
    sending = {
        resource
        for item in statements(resources, role, "PlanTicksRole").values()
        if item["Action"] == "sqs:SendMessage"
        and item["Sid"] not in {"KeepFailures", "TellOfDepartures"}
        for resource in as_list(item["Resource"])
    }

    assert spelt(told["SNAPSHOT_REQUESTS_URL"], role) == queue
    assert sending == targets


@pytest.mark.parametrize("role", ["both", "spoke"])
def test_a_queue_is_open_to_the_rules_and_to_the_topics_that_were_named(
    role: str, deploy: Deploy
) -> None:
    document = deploy(role)["SnapshotRequestsPolicy"]["Properties"]["PolicyDocument"]
    rules, topics, *_ = spelt(document["Statement"], role)

    assert rules["Principal"] == {"Service": "events.amazonaws.com"}
    assert (topics["Principal"], topics["Action"]) == (
        {"Service": "sns.amazonaws.com"},
        "sqs:SendMessage",
    )
    # Whoever may publish to these may have a cluster looked at; any topic's service could otherwise.
    assert topics["Condition"] == {
        "ArnEquals": {"aws:SourceArn": ["arn:aws:sns:us-east-1:111122223333:gpu-alerts"]}
    }


def test_a_spokes_queue_is_open_to_the_hubs_plan_ticks_alone(deploy: Deploy) -> None:
    document = deploy("spoke")["SnapshotRequestsPolicy"]["Properties"]["PolicyDocument"]
    _, _, hub = spelt(document["Statement"], "spoke")

    assert (hub["Effect"], hub["Principal"], hub["Action"]) == (
        "Allow",
        {"AWS": "111122223333"},
        "sqs:SendMessage",
    )
    pattern = hub["Condition"]["ArnLike"]["aws:PrincipalArn"]
    assert let_through(pattern, "111122223333") == {"PlanTicksRole"}
    assert let_through(pattern, "444455556666") == set()


def let_through(pattern: str, account: str) -> set[str]:
    """Name the roles of this template, in an account, whose ARN an ArnLike pattern takes."""
    names = [
        "PlanTicksRole",
        "TakeSnapshotRole",
        "EvaluateSnapshotRole",
        "ReconcileAlertsRole",
        "RecordCheckpointsRole",
        "ForwardServiceEventsRole",
    ]
    # CloudFormation names a role <stack>-<logical id>-<random>.
    return {
        name
        for name in names
        if fnmatchcase(f"arn:aws:iam::{account}:role/gpu-steward-{name}-1A2B3C4D5E6F", pattern)
    }


@pytest.mark.parametrize("role", ["both", "hub"])
def test_the_hubs_bucket_lets_spokes_do_what_their_role_does_and_no_more(
    role: str, deploy: Deploy
) -> None:
    document = deploy(role)["BucketPolicy"]["Properties"]["PolicyDocument"]
    _, *spokes = spelt(document["Statement"], role)
    opened = {
        (action, resource.removeprefix("<Bucket.Arn>"))
        for item in spokes
        for action in as_list(item["Action"])
        for resource in as_list(item["Resource"])
    }
    used = {
        (action, resource.removeprefix("arn:aws:s3:::gpu-steward-bucket-abc"))
        for item in statements(deploy("spoke"), "spoke", "TakeSnapshotRole").values()
        for action in as_list(item["Action"])
        for resource in as_list(item["Resource"])
        if action.startswith("s3:") and item["Sid"] != "ListCheckpoints"
    }

    # Across accounts both sides must allow: less on either is a spoke that fails, more a risk.
    assert opened == used
    for item in spokes:
        assert item["Principal"] == {"AWS": ["444455556666", "777788889999"]}
        pattern = item["Condition"]["ArnLike"]["aws:PrincipalArn"]
        assert let_through(pattern, "444455556666") == {"TakeSnapshotRole"}


@pytest.mark.parametrize("role", ["both", "hub"])
def test_the_hubs_bus_takes_the_news_of_spokes_and_the_events_of_members(
    role: str, deploy: Deploy
) -> None:
    policies = of_type(deploy(role), "AWS::Events::EventBusPolicy")
    opened = {name: spelt(given["Statement"], role) for name, given in policies.items()}

    assert set(opened) == {
        "SpokesMayPublish",
        "MembersMayForward",
        "SpokesMayTellOfCheckpoints",
        "MembersMayTellOfCheckpoints",
    }
    for statement in opened.values():
        assert (statement["Action"], statement["Resource"]) == (
            "events:PutEvents",
            "<StewardBus.Arn>",
        )
    spokes, members = opened["SpokesMayPublish"], opened["MembersMayForward"]
    assert spokes["Principal"] == {"AWS": ["444455556666", "777788889999"]}
    assert spokes["Condition"]["StringEquals"] == {
        "events:source": "gpu-steward",
        "events:detail-type": "Snapshot Taken",
    }
    pattern = spokes["Condition"]["ArnLike"]["aws:PrincipalArn"]
    assert let_through(pattern, "777788889999") == {"TakeSnapshotRole"}
    assert members["Principal"] == {"AWS": ["222233334444"]}
    # All three begin with aws.: nobody but AWS itself can put such an event on a bus.
    assert members["Condition"] == {
        "StringEquals": {"events:source": ["aws.sagemaker", "aws.cloudwatch", "aws.s3"]}
    }
    # Jobs tell of their checkpoints and of nothing else: no snapshot, no evaluation, no request.
    for name, accounts in (
        ("SpokesMayTellOfCheckpoints", spokes["Principal"]),
        ("MembersMayTellOfCheckpoints", members["Principal"]),
    ):
        assert opened[name]["Principal"] == accounts
        assert opened[name]["Condition"] == {
            "StringEquals": {
                "events:source": "gpu-steward.training",
                "events:detail-type": "Checkpoint Written",
            }
        }


# --- a member without a spoke --------------------------------------------------------------------

MEMBER = ROOT / "examples" / "member-events.yaml"


def test_a_members_template_is_sound() -> None:
    assert faults(read(MEMBER)) == ["E9004 0 schedules instead of one"]


def test_a_member_forwards_what_the_hub_forwards_of_its_own(deploy: Deploy) -> None:
    member = read(MEMBER)["Resources"]
    hub = deploy("hub")
    rules = of_type(hub, "AWS::Events::Rule")
    forwarders = {name for name in rules if name.startswith("Forward")}

    assert set(of_type(member, "AWS::Events::Rule")) == forwarders
    for name in forwarders:
        rule = member[name]["Properties"]
        assert rule["EventPattern"] == rules[name]["EventPattern"]
        assert "EventBusName" not in rule
        (target,) = rule["Targets"]
        assert target["Arn"] == {"Ref": "HubBusArn"}
    (statement,) = statements(member, "spoke", "ForwardServiceEventsRole").values()
    # What the hub's bus policy lets in, and nothing wider.
    taken = hub["MembersMayForward"]["Properties"]["Statement"]["Condition"]
    assert statement["Condition"] == taken


def test_what_a_member_could_not_forward_is_kept() -> None:
    member = read(MEMBER)["Resources"]
    (statement,) = member["DeadLettersPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    sources = statement["Condition"]["ArnEquals"]["aws:SourceArn"]
    named = {(each["Fn::If"][1] if "Fn::If" in each else each)["Fn::GetAtt"][0] for each in sources}

    assert named == set(of_type(member, "AWS::Events::Rule"))
