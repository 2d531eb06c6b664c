"""House rules about what starts something: the schedule and the rules on the buses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.template import Template

FUNCTION = "AWS::Serverless::Function"
QUEUE = "AWS::SQS::Queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """One target of one EventBridge rule, written out or as a function's event."""

    name: str
    path: list[str]
    pattern: dict[str, Any]
    target: str | None
    settings: dict[str, Any]


def _target(reference: object) -> str | None:
    """Return the logical id that a Ref or a GetAtt names."""
    if isinstance(reference, dict):
        if isinstance(name := reference.get("Ref"), str):
            return name
        if isinstance(got := reference.get("Fn::GetAtt"), list):
            return str(got[0])
    return None


def _rules(cfn: Template) -> Iterator[_Rule]:
    for name, resource in cfn.get_resources(["AWS::Events::Rule"]).items():
        for target in resource["Properties"].get("Targets", []):
            yield _Rule(
                name=name,
                path=["Resources", name],
                pattern=resource["Properties"].get("EventPattern", {}),
                target=_target(target["Arn"]),
                settings=target,
            )
    for function, resource in cfn.get_resources([FUNCTION]).items():
        for name, event in resource["Properties"].get("Events", {}).items():
            if event["Type"] == "EventBridgeRule":
                yield _Rule(
                    name=f"{function}.{name}",
                    path=["Resources", function, "Properties", "Events", name],
                    pattern=event["Properties"].get("Pattern", {}),
                    target=function,
                    settings=event["Properties"],
                )


class OneSchedule(CloudFormationLintRule):
    """One schedule decides from policy and state what is due; a second one would be a second truth."""

    id = "E9004"
    shortdesc = "There is exactly one schedule, and it has a net"
    description = "One ScheduleV2 with OmitName, a retry policy and a dead-letter queue"

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Count the schedules of every kind and look at the one."""
        found: list[RuleMatch] = []
        schedules: list[tuple[list[str], dict[str, Any]]] = []
        for function, resource in cfn.get_resources([FUNCTION]).items():
            for name, event in resource["Properties"].get("Events", {}).items():
                path = ["Resources", function, "Properties", "Events", name]
                if event["Type"] == "ScheduleV2":
                    schedules.append((path, event["Properties"]))
                elif event["Type"] == "Schedule":
                    found.append(RuleMatch(path, "Schedule is an old-style rule: use ScheduleV2"))
        found += [
            RuleMatch(["Resources", name], f"{name}: a schedule outside its function's events")
            for name in cfn.get_resources(["AWS::Scheduler::Schedule"])
        ]
        if len(schedules) != 1:
            found.append(RuleMatch(["Resources"], f"{len(schedules)} schedules instead of one"))
        for path, schedule in schedules:
            if schedule.get("OmitName") is not True:
                found.append(RuleMatch(path, "OmitName is not set: a second stack would collide"))
            retry = schedule.get("RetryPolicy", {})
            if not {"MaximumRetryAttempts", "MaximumEventAgeInSeconds"} <= set(retry):
                found.append(RuleMatch(path, "RetryPolicy states no retries or no event age"))
            if "Arn" not in schedule.get("DeadLetterConfig", {}):
                found.append(RuleMatch(path, "DeadLetterConfig names no queue"))
        return found


class RuleNets(CloudFormationLintRule):
    """EventBridge retries for a day and then forgets; a queue that it may not write to loses all."""

    id = "E9005"
    shortdesc = "A rule has a dead-letter queue, a short event age, and leave to send"
    description = (
        "DeadLetterConfig, RetryPolicy, and a queue policy for every queue that a rule uses"
    )

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Check every target of every rule, and the policies of the queues that they use."""
        found: list[RuleMatch] = []
        queues = cfn.get_resources([QUEUE])
        open_queues = self._open_to_rules(cfn)
        for rule in _rules(cfn):
            dead = _target(rule.settings.get("DeadLetterConfig", {}).get("Arn"))
            if dead not in queues:
                found.append(RuleMatch(rule.path, f"{rule.name}: no dead-letter queue"))
            elif queues[dead]["Properties"].get("FifoQueue"):
                found.append(
                    RuleMatch(rule.path, f"{rule.name}: {dead} is FIFO, which rules refuse")
                )
            if "MaximumEventAgeInSeconds" not in rule.settings.get("RetryPolicy", {}):
                found.append(RuleMatch(rule.path, f"{rule.name}: event age not set (a day)"))
            found += [
                RuleMatch(rule.path, f"{rule.name}: {queue} has no policy for events.amazonaws.com")
                for queue in (dead, rule.target)
                if queue in queues and queue not in open_queues
            ]
        return found

    @staticmethod
    def _open_to_rules(cfn: Template) -> set[str | None]:
        """Return the queues that EventBridge may send to, by a policy that says from which rules."""
        found: set[str | None] = set()
        for policy in cfn.get_resources(["AWS::SQS::QueuePolicy"]).values():
            for item in policy["Properties"]["PolicyDocument"]["Statement"]:
                statement = item["Fn::If"][1] if "Fn::If" in item else item
                sources = [
                    source
                    for operator in statement.get("Condition", {}).values()
                    for key, source in operator.items()
                    if key == "aws:SourceArn"
                ]
                if (
                    statement["Effect"] == "Allow"
                    and statement["Principal"] == {"Service": "events.amazonaws.com"}
                    and statement["Action"] == "sqs:SendMessage"
                    and sources
                ):
                    found |= {_target(queue) for queue in policy["Properties"]["Queues"]}
        return found


class ReplayedEvents(CloudFormationLintRule):
    """Only the queue of snapshot requests may see a replay: it asks for the present, not the past."""

    id = "E9006"
    shortdesc = "A rule that starts a function leaves out replayed events"
    description = "Functions behind a rule lead to cards or the ledger: replay-name must not exist"

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Check every rule whose target is a function."""
        functions = cfn.get_resources([FUNCTION])
        return [
            RuleMatch(rule.path, f"{rule.name}: replay-name is not excluded")
            for rule in _rules(cfn)
            if rule.target in functions and rule.pattern.get("replay-name") != [{"exists": False}]
        ]
