"""A template as one deployment sees it: its conditions decided, as CloudFormation decides them."""

from collections.abc import Mapping
from typing import Any

from steward.errors import ConfigError

NO_VALUE = {"Ref": "AWS::NoValue"}
_CONDITIONED = ("Resources", "Outputs")


def decide(template: Mapping[str, Any], **parameters: str) -> dict[str, Any]:
    """Drop what a deployment with these parameters does not have, and take every If's branch.

    Parameters
    ----------
    template : mapping
        A template with its intrinsic functions in their long form.
    **parameters : str
        Values of parameters (lists separated by commas); the others have their defaults.

    Raises
    ------
    ConfigError
        A condition is made with a function that is not known here.
    """
    defaults = {name: given.get("Default", "") for name, given in template["Parameters"].items()}
    deployment = _Deployment(defaults | parameters, template.get("Conditions", {}))
    kept = {section: deployment.kept(template.get(section, {})) for section in _CONDITIONED}
    rest = {name: part for name, part in template.items() if name != "Conditions"}
    found: dict[str, Any] = deployment.without_ifs(rest | kept)
    return found


class _Deployment:
    def __init__(self, parameters: Mapping[str, Any], conditions: Mapping[str, Any]) -> None:
        self._parameters = parameters
        self._conditions = conditions

    def kept(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """Keep what has no condition, or one that holds; it then has none any more."""
        return {
            name: {key: value for key, value in item.items() if key != "Condition"}
            for name, item in section.items()
            if "Condition" not in item or self._holds(item["Condition"])
        }

    def _holds(self, name: str) -> bool:
        return self._true(self._conditions[name])

    def _true(self, condition: Mapping[str, Any]) -> bool:
        ((function, given),) = condition.items()
        match function:
            case "Condition":
                return self._holds(given)
            case "Fn::Not":
                return not self._true(given[0])
            case "Fn::And":
                return all(self._true(part) for part in given)
            case "Fn::Equals":
                left, right = (self._text(side) for side in given)
                return left == right
        raise ConfigError(f"template.yaml: the rig decides no condition made with {function}")

    def _text(self, value: Any) -> str:
        if isinstance(value, Mapping) and "Ref" in value:
            return str(self._parameters[value["Ref"]])
        if isinstance(value, Mapping) and "Fn::Join" in value:
            delimiter, entries = value["Fn::Join"]
            return str(delimiter).join(self._text(entries).split(","))
        return str(value)

    def without_ifs(self, node: Any) -> Any:
        """Rebuild a part of the template; what a branch leaves without a value is left out."""
        if isinstance(node, list):
            built = [self.without_ifs(item) for item in node]
            return [item for item in built if item != NO_VALUE]
        if not isinstance(node, Mapping):
            return node
        if set(node) == {"Fn::If"}:
            name, *branches = node["Fn::If"]
            return self.without_ifs(branches[0 if self._holds(name) else 1])
        pairs = {key: self.without_ifs(value) for key, value in node.items()}
        return {key: value for key, value in pairs.items() if value != NO_VALUE}
