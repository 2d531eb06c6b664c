"""House rules about IAM: every statement is named, narrow, and its width explained."""

from collections.abc import Iterator
from typing import Any

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.template import Template

type Found = Iterator[tuple[list[str | int], dict[str, Any]]]


def _statements(node: object, path: list[str | int]) -> Found:
    """Yield every statement of every policy document below a node, each branch of an If too."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _statements(item, [*path, index])
    elif isinstance(node, dict):
        if "Effect" in node:
            yield path, node
        for key, value in node.items():
            yield from _statements(value, [*path, key])


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


class Statements(CloudFormationLintRule):
    """A role that can do more than its function does is an incident in waiting."""

    id = "E9008"
    shortdesc = "An IAM statement has a Sid, whole actions and ARNs"
    description = (
        '"*" needs a reason in the role\'s Metadata.StarReasons; PutEvents names its source'
    )

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Check the statements of every resource, and managed policies and reasons of roles."""
        found: list[RuleMatch] = []
        for name, resource in cfn.get_resources().items():
            reasons = resource.get("Metadata", {}).get("StarReasons", {})
            stars: set[str] = set()
            properties = resource.get("Properties", {})
            for path, statement in _statements(properties, ["Resources", name, "Properties"]):
                sid = statement.get("Sid") or properties.get("StatementId")
                if not sid:
                    found.append(RuleMatch(path, f"{name}: a statement without Sid"))
                if "*" in _list(statement.get("Resource")):
                    stars.add(sid or "")
                found += [
                    RuleMatch(path, f"{name}.{sid}: {fault}") for fault in self._faults(statement)
                ]
            found += [
                RuleMatch(["Resources", name], f"{name}.{sid}: {what}")
                for sids, what in (
                    (stars - set(reasons), '"*" without a reason in Metadata.StarReasons'),
                    (set(reasons) - stars, 'a reason for "*" that is not used'),
                )
                for sid in sorted(sids)
            ]
            if resource["Type"] == "AWS::IAM::Role" and "ManagedPolicyArns" in properties:
                found.append(RuleMatch(["Resources", name], f"{name}: a managed policy"))
            if resource["Type"] == "AWS::Serverless::Function" and "Policies" in properties:
                found.append(RuleMatch(["Resources", name], f"{name}: policies beside its role"))
        return found

    @staticmethod
    def _faults(statement: dict[str, Any]) -> Iterator[str]:
        if statement["Effect"] != "Allow":
            return
        condition = statement.get("Condition", {})
        actions = _list(statement.get("Action"))
        if "NotAction" in statement or any("*" in action for action in actions):
            yield "a wildcard action"
        principal = statement.get("Principal")
        accounts = principal.get("AWS") if isinstance(principal, dict) else None
        if principal == "*" or "*" in _list(accounts):
            yield "open to everybody"
        limits = {key for test in condition.values() for key in test}
        if accounts is not None and not limits & {"aws:PrincipalArn", "events:source"}:
            yield "a whole account is let in"
        if "events:PutEvents" in actions and "events:source" not in condition.get(
            "StringEquals", {}
        ):
            yield "PutEvents is not limited by events:source"
        for resource in _list(statement.get("Resource")):
            if isinstance(resource, str) and resource != "*" and not resource.startswith("arn:"):
                yield f"{resource!r} is not an ARN"
