"""What the tests deploy: the template as it is read, and a full set of parameters for each role."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cfnlint import core
from cfnlint.config import ConfigMixIn
from cfnlint.decode import cfn_yaml
from cfnlint.decode.decode import decode_str
from cfnlint.runner import run_template_by_data

ROOT = Path(__file__).parents[2]

type Document = dict[str, Any]
"""A template, or a part of one, with intrinsic functions in their long form."""

type Deploy = Callable[[str], Document]
"""Gives the resources of a deployment of a role, its conditions decided."""

HOUSE_RULES = Path(__file__).parent / "rules"

HUB = {
    "SlackSecretArn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:gpu-steward/slack-a1b2c3",
    "SpokeQueueArns": "arn:aws:sqs:eu-west-1:444455556666:spoke-snapshot-requests",
    "SpokeAccountIds": "444455556666,777788889999",
    "MemberAccountIds": "222233334444",
    "CheckpointBuckets": "ml-shared-01-checkpoints,ml-other-checkpoints",
    "PagerTopicArns": "arn:aws:sns:us-east-1:111122223333:on-call",
    "AnswerSlackConcurrency": "20",
    "AlarmTopicArn": "arn:aws:sns:us-east-1:111122223333:steward-alarms",
}
READER = {
    "ClusterArns": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghij12",
    "EksClusterArns": "arn:aws:eks:us-east-1:111122223333:cluster/ml-shared-01-eks",
    "AmpWorkspaceArns": "arn:aws:aps:us-east-1:111122223333:workspace/ws-1",
    "AssumeRoleArns": "arn:aws:iam::222233334444:role/gpu-steward-reader",
    "SubnetIds": "subnet-0123456789abcdef0",
    "SecurityGroupIds": "sg-0123456789abcdef0",
    "CheckpointBuckets": "ml-shared-01-checkpoints,ml-other-checkpoints",
    "AlertTopicArns": "arn:aws:sns:us-east-1:111122223333:gpu-alerts",
    "AlarmEksCluster": "ml-shared-01-eks",
}
SPOKE = {
    "HubAccountId": "111122223333",
    "HubBucket": "gpu-steward-bucket-abc",
    "HubBusArn": "arn:aws:events:us-east-1:111122223333:event-bus/gpu-steward",
    "AlarmTopicArn": "arn:aws:sns:us-east-1:444455556666:steward-alarms",
}
GIVEN = {
    "both": {"Role": "both", **HUB, **READER},
    "hub": {"Role": "hub", **HUB},
    "spoke": {"Role": "spoke", **READER, **SPOKE},
}
"""Parameters of a deployment of each role that leaves nothing out that the role may have."""

DEFAULTS = {"TriggerAlarmPrefix": "gpu-steward-trigger-", "SnapshotAgeLimit": "1800"}
"""Parameters that every role has, and that a deployment need not give."""


def read(path: Path) -> Document:
    document: Document = json.loads(json.dumps(cfn_yaml.load(str(path))))
    return document


def of_type(resources: Document, kind: str) -> dict[str, Document]:
    return {n: r["Properties"] for n, r in resources.items() if r["Type"] == kind}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(resources: Document, role: str, name: str) -> dict[str, Document]:
    (policy,) = resources[name]["Properties"]["Policies"]
    items = spelt(policy["PolicyDocument"]["Statement"], role)
    return {item["Sid"]: item for item in items}


def spelt(value: Any, role: str) -> Any:
    """Spell out what CloudFormation would: parameters as given, resources as `<id>` or `<id.Arn>`."""
    match value:
        case list():
            return [spelt(item, role) for item in value]
        case {"Ref": name}:
            found = _named(name, role)
        case {"Fn::GetAtt": parts}:
            found = f"<{'.'.join(parts)}>"
        case {"Fn::Join": [delimiter, items]}:
            found = delimiter.join(spelt(items, role))
        case {"Fn::Split": [delimiter, text]}:
            found = spelt(text, role).split(delimiter)
        case {"Fn::Sub": [text, own]}:
            found = _filled(text, own, role)
        case {"Fn::Sub": text}:
            found = _filled(text, {}, role)
        case dict():
            found = {key: spelt(item, role) for key, item in value.items()}
        case _:
            found = value
    return found


def _filled(text: str, own: Document, role: str) -> str:
    return re.sub(
        r"\$\{([^}]+)\}",
        lambda m: spelt(own[m[1]], role) if m[1] in own else _named(m[1], role),
        text,
    )


_PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::StackName": "gpu-steward",
}


def _named(name: str, role: str) -> Any:
    if name in _PSEUDO:
        return _PSEUDO[name]
    if name.endswith(("Arns", "Ids", "Buckets")):
        return GIVEN[role][name].split(",")
    return GIVEN[role].get(name, DEFAULTS.get(name, f"<{name}>"))


def faults(document: Document) -> list[str]:
    """Lint a deployment with cfn-lint's own rules and the house's."""
    node, errors = decode_str(json.dumps(document))
    assert not errors
    rules = core.get_rules([str(HOUSE_RULES)], [], ["W"])
    config = ConfigMixIn(regions=["us-east-1"])
    return [f"{m.rule.id} {m.message}" for m in run_template_by_data(node, config, rules)]
