"""House rules about functions: what each must state, whatever starts it."""

from collections.abc import Iterator
from typing import Any

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.template import Template

FUNCTION = "AWS::Serverless::Function"
ASYNCHRONOUS = {
    "CloudWatchEvent",
    "CloudWatchLogs",
    "EventBridgeRule",
    "IoTRule",
    "S3",
    "Schedule",
    "ScheduleV2",
    "SNS",
}
"""SAM event types whose hand-over to Lambda's own queue counts as success."""


def _functions(cfn: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, resource in cfn.get_resources([FUNCTION]).items():
        yield name, resource["Properties"]


def _fault(name: str, message: str, *path: str) -> RuleMatch:
    return RuleMatch(["Resources", name, *path], f"{name}: {message}")


def _target(reference: object) -> str | None:
    """Return the logical id that a Ref or a GetAtt names."""
    if isinstance(reference, dict):
        if isinstance(name := reference.get("Ref"), str):
            return name
        if isinstance(got := reference.get("Fn::GetAtt"), list):
            return str(got[0])
    return None


class FunctionBasics(CloudFormationLintRule):
    """Nothing is left to Lambda's defaults (3 s, 128 MB, a log group that is kept for ever)."""

    id = "E9001"
    shortdesc = "A function states timeout, memory, its own role and its own log group"
    description = "Timeout, MemorySize, a role and a log group with retention, none of them shared"

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Check every function, and that no two share a role or a log group."""
        found: list[RuleMatch] = []
        owners: dict[str, str] = {}
        groups = cfn.get_resources(["AWS::Logs::LogGroup"])
        for name, properties in _functions(cfn):
            found += [
                _fault(name, f"{key} is not set", "Properties")
                for key in ("Timeout", "MemorySize")
                if key not in properties
            ]
            role = _target(properties.get("Role"))
            group = _target(properties.get("LoggingConfig", {}).get("LogGroup"))
            if role is None:
                found.append(_fault(name, "Role does not name a role of this template"))
            if group not in groups or "RetentionInDays" not in groups[group]["Properties"]:
                found.append(_fault(name, "LoggingConfig.LogGroup names no group with retention"))
            for shared in filter(None, (role, group)):
                if (other := owners.setdefault(shared, name)) != name:
                    found.append(_fault(name, f"shares {shared} with {other}"))
        return found


class AsynchronousFunction(CloudFormationLintRule):
    """Lambda's queue takes an event at once; what the function fails at later needs a net."""

    id = "E9002"
    shortdesc = "An asynchronous function states retries, event age and failure destination"
    description = "EventInvokeConfig with OnFailure, MaximumRetryAttempts, MaximumEventAgeInSeconds"

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Check every function that an asynchronous event starts."""
        found: list[RuleMatch] = []
        for name, properties in _functions(cfn):
            kinds = {event["Type"] for event in properties.get("Events", {}).values()}
            if not kinds & ASYNCHRONOUS:
                continue
            config = properties.get("EventInvokeConfig", {})
            found += [
                _fault(name, f"EventInvokeConfig.{key} is not set", "Properties")
                for key in ("MaximumRetryAttempts", "MaximumEventAgeInSeconds")
                if key not in config
            ]
            if "Destination" not in config.get("DestinationConfig", {}).get("OnFailure", {}):
                found.append(_fault(name, "EventInvokeConfig has no OnFailure destination"))
        return found


class PolledFunction(CloudFormationLintRule):
    """A queue's message must neither be lost, nor come back while it is being worked on."""

    id = "E9003"
    shortdesc = "A polled function answers for parts of a batch, and its queue gives it time"
    description = "Partial batch answers, no reserved concurrency, redrive policy, six timeouts"

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Check every function with an SQS event, and its queue."""
        found: list[RuleMatch] = []
        queues = cfn.get_resources(["AWS::SQS::Queue"])
        for name, properties in _functions(cfn):
            for event in properties.get("Events", {}).values():
                if event["Type"] != "SQS":
                    continue
                mapping = event["Properties"]
                queue = _target(mapping["Queue"])
                if queue is None or queue not in queues:
                    found.append(_fault(name, "polls a queue that is not of this template"))
                    continue
                if "ReservedConcurrentExecutions" in properties:
                    # Pollers receive more than may run; each throttled receive counts.
                    found.append(_fault(name, "is polled and has reserved concurrency"))
                if "ReportBatchItemFailures" not in mapping.get("FunctionResponseTypes", []):
                    found.append(_fault(name, "does not report partial batch failures"))
                found += self._queue(queue, queues, properties, mapping)
        return found

    @staticmethod
    def _queue(
        name: str, queues: dict[str, Any], function: dict[str, Any], mapping: dict[str, Any]
    ) -> Iterator[RuleMatch]:
        queue = queues[name]["Properties"]
        window = mapping.get("MaximumBatchingWindowInSeconds", 0)
        needed = 6 * function.get("Timeout", 3) + window
        if queue.get("VisibilityTimeout", 30) < needed:
            yield _fault(name, f"VisibilityTimeout is below {needed} s (6 timeouts and the window)")
        dead = _target(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"))
        if dead not in queues:
            yield _fault(name, "RedrivePolicy names no dead-letter queue of this template")
            return
        if queue.get("FifoQueue", False) != queues[dead]["Properties"].get("FifoQueue", False):
            yield _fault(name, f"{dead} is not of the same kind (standard or FIFO)")
        if queue.get("FifoQueue") and window:
            yield _fault(name, "a FIFO queue knows no batching window")


class Alias(CloudFormationLintRule):
    """A change of layer alone leaves a published version's id, so the alias keeps the old layer."""

    id = "E9007"
    shortdesc = "An alias comes with BuildId, twice"
    description = "AutoPublishCodeSha256 and the variable BUILD_ID both refer to BuildId"

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Check every function that publishes an alias."""
        build_id = {"Ref": "BuildId"}
        found: list[RuleMatch] = []
        for name, properties in _functions(cfn):
            if "AutoPublishAlias" not in properties:
                continue
            if properties.get("AutoPublishCodeSha256") != build_id:
                found.append(_fault(name, "AutoPublishCodeSha256 does not refer to BuildId"))
            variables = properties.get("Environment", {}).get("Variables", {})
            if variables.get("BUILD_ID") != build_id:
                found.append(_fault(name, "the variable BUILD_ID does not refer to BuildId"))
        return found


class OneFolder(CloudFormationLintRule):
    """A folder shared by two functions is never valid in the build's cache, and blurs purposes."""

    id = "E9009"
    shortdesc = "Each function has a folder of its own"
    description = "No two functions share a CodeUri"

    def match(self, cfn: Template) -> list[RuleMatch]:
        """Compare the folders of all functions."""
        found: list[RuleMatch] = []
        owners: dict[str, str] = {}
        for name, properties in _functions(cfn):
            folder = str(properties.get("CodeUri", "")).strip("/")
            if (other := owners.setdefault(folder, name)) != name:
                found.append(_fault(name, f"shares its folder {folder!r} with {other}"))
        return found
