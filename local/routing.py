"""Who is started by what: read from the template's own rules, so that a replay routes as AWS would."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from moto.events.models import EventPattern
from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from local.conditions import decide
from steward.errors import ConfigError

DEFAULT_BUS = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a rule leads to: a function (by its folder), a queue or another bus (by logical id)."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule on a bus."""

    name: str
    bus: str
    pattern: str
    targets: tuple[Target, ...]

    def matches(self, event: Mapping[str, Any]) -> bool:
        """Tell whether EventBridge would pass the event on."""
        return bool(_pattern(self.pattern).matches_event(dict(event)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Everything that starts something.

    Attributes
    ----------
    scheduled : tuple of (str, str)
        Function folder and the schedule's Input (JSON).
    pollers : dict of str to (str, int)
        Queue to the function that polls it, and its batch size.
    variables : dict of str to dict of str to str
        Function folder to its environment variables that name a resource (by logical id).
    addresses : tuple of str
        Folders of the functions that have a Function URL.
    """

    scheduled: tuple[tuple[str, str], ...]
    rules: tuple[Rule, ...]
    pollers: dict[str, tuple[str, int]]
    variables: dict[str, dict[str, str]]
    addresses: tuple[str, ...]

    def matching(self, bus: str, event: Mapping[str, Any]) -> tuple[Target, ...]:
        """Find the targets of an event on a bus."""
        return tuple(
            target
            for rule in self.rules
            if rule.bus == bus and rule.matches(event)
            for target in rule.targets
        )

    def queue_behind(self, variable: str) -> str:
        """Find the queue whose URL a function is given under a variable's name."""
        named = {v[variable] for v in self.variables.values() if variable in v}
        if len(named) != 1:
            raise ConfigError(
                f"template.yaml: {variable} names {sorted(named) or 'nothing'}, not one queue"
            )
        return named.pop()

    @property
    def answering(self) -> str:
        """The function that Slack's requests arrive at."""
        if len(self.addresses) != 1:
            raise ConfigError(
                f"template.yaml: {sorted(self.addresses) or 'no function'} has a "
                "FunctionUrlConfig; Slack is given the URL of one"
            )
        return self.addresses[0]


def read_routes(template: Path, **parameters: str) -> Routes:
    """Read the routes of a SAM template, deployed whole.

    Parameters
    ----------
    template : Path
        The template.
    **parameters : str
        Values of its parameters (lists separated by commas); the others have their defaults.

    Raises
    ------
    ConfigError
        A target or a bus is none of the template's resources, or a pattern cannot be spelt out.
    """
    document = load_template(template)
    known = _given(document["Parameters"], parameters)
    resources = decide(document, **parameters)["Resources"]
    functions = {
        name: resource["Properties"]["CodeUri"].rstrip("/").rpartition("/")[2]
        for name, resource in resources.items()
        if resource["Type"] == "AWS::Serverless::Function"
    }
    scheduled: list[tuple[str, str]] = []
    rules: list[Rule] = []
    pollers: dict[str, tuple[str, int]] = {}
    variables: dict[str, dict[str, str]] = {}
    for name, folder in functions.items():
        properties = resources[name]["Properties"]
        values = properties.get("Environment", {}).get("Variables", {})
        variables[folder] = {
            key: ref for key, value in values.items() if (ref := _logical_id(value))
        }
        for trigger, event in properties.get("Events", {}).items():
            given = event["Properties"]
            if event["Type"] == "ScheduleV2":
                scheduled.append((folder, given.get("Input", "{}")))
            elif event["Type"] == "SQS":
                queue = _logical_id(given["Queue"])
                pollers[queue or ""] = (folder, int(given.get("BatchSize", 10)))
            elif event["Type"] == "EventBridgeRule":
                target = Target(kind="function", name=folder)
                rules.append(_rule(f"{name}{trigger}", given, given["Pattern"], (target,), known))
    for name, resource in resources.items():
        if resource["Type"] == "AWS::Events::Rule":
            given = resource["Properties"]
            targets = tuple(_target(name, t["Arn"], resources, functions) for t in given["Targets"])
            rules.append(_rule(name, given, given["EventPattern"], targets, known))
    return Routes(
        scheduled=tuple(scheduled),
        rules=tuple(rules),
        pollers=pollers,
        variables=variables,
        addresses=tuple(
            folder
            for name, folder in functions.items()
            if "FunctionUrlConfig" in resources[name]["Properties"]
        ),
    )


def load_template(template: Path) -> dict[str, Any]:
    """Read a template; short-form tags (`!GetAtt a.b`) become their long form (`Fn::GetAtt`)."""
    yaml = YAML(typ="safe", pure=True)
    yaml.constructor.add_multi_constructor("!", _intrinsic)
    with template.open() as file:
        document: dict[str, Any] = yaml.load(file)
    return document


def _intrinsic(constructor: Any, tag: str, node: Any) -> dict[str, Any]:
    name = tag.lstrip("!")
    if isinstance(node, ScalarNode):
        value: Any = node.value
    elif isinstance(node, SequenceNode):
        value = constructor.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, MappingNode)  # noqa: S101 - YAML has three kinds of node
        value = constructor.construct_mapping(node, deep=True)
    return {name if name in {"Ref", "Condition"} else f"Fn::{name}": value}


def _rule(
    name: str,
    given: Mapping[str, Any],
    pattern: Any,
    targets: tuple[Target, ...],
    values: Mapping[str, Any],
) -> Rule:
    bus = _logical_id(given.get("EventBusName")) or DEFAULT_BUS
    text = json.dumps(_spelt(pattern, values))
    return Rule(name=name, bus=bus, pattern=text, targets=targets)


def _given(kinds: Mapping[str, Mapping[str, Any]], given: Mapping[str, str]) -> dict[str, Any]:
    """Give the parameters their values: a text, or the list that a text with commas stands for."""
    values = {name: given.get(name, str(kind.get("Default", ""))) for name, kind in kinds.items()}
    return {
        name: value.split(",") if kinds[name]["Type"] == "CommaDelimitedList" else value
        for name, value in values.items()
    }


def _spelt(node: Any, values: Mapping[str, Any]) -> Any:
    """Spell a pattern out as CloudFormation does, with the parameters that were given."""
    if isinstance(node, list):
        return [_spelt(item, values) for item in node]
    if not isinstance(node, dict):
        return node
    if set(node) == {"Ref"} and node["Ref"] in values:
        return values[node["Ref"]]
    if any(name == "Ref" or name.startswith("Fn::") for name in node):
        raise ConfigError(f"template.yaml: the rig cannot spell {node!r} out in a pattern")
    return {key: _spelt(item, values) for key, item in node.items()}


def _target(
    rule: str, arn: Any, resources: Mapping[str, Any], functions: Mapping[str, str]
) -> Target:
    name = _logical_id(arn)
    kinds = {"AWS::SQS::Queue": "queue", "AWS::Events::EventBus": "bus"}
    if name is not None and name in functions:
        return Target(kind="function", name=functions[name])
    if name is None or resources.get(name, {}).get("Type") not in kinds:
        raise ConfigError(
            f"template.yaml: rule {rule} leads to {arn!r}, which the rig cannot route"
        )
    return Target(kind=kinds[resources[name]["Type"]], name=name)


def _logical_id(value: Any) -> str | None:
    if isinstance(value, dict):
        if isinstance(reference := value.get("Ref"), str):
            return reference
        if isinstance(attribute := value.get("Fn::GetAtt"), str):
            return attribute.partition(".")[0]
    return None


@cache
def _pattern(text: str) -> Any:
    return EventPattern.load(text)
