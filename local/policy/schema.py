"""The JSON schema of the document, and what it tells of a key that was refused."""

from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails

from local.policy.document import PolicyDocument
from local.policy.faults import Fault, KeyPath, show, suggest


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # keys are titles
        return False


@cache
def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the document, for editors and other tools; not to be changed."""
    form = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": form} | PolicyDocument.model_json_schema(schema_generator=_Schema)


def fault_of(error: ErrorDetails) -> Fault:
    """Word what pydantic found wrong with one key, with the key's description as the remedy."""
    path: KeyPath = tuple(step for step in error["loc"] if step != "[key]")
    node = _node(path)
    about = node.get("description", "see docs/policy.md")
    value = show(error["input"])
    match error["type"]:
        case "refused":
            return Fault(path, error["ctx"]["message"], error["ctx"]["remedy"])
        case "missing":
            return Fault(path, "is missing", f"add it: {about}")
        case "extra_forbidden":
            keys = _followed(_node(path[:-1])).get("properties", {})
            return Fault(path, "is not a known key", suggest(str(path[-1]), keys, "known are"))
        case "literal_error":
            allowed = node["enum"] if "enum" in node else [node["const"]]
            remedy = suggest(str(error["input"]), map(str, allowed), "allowed are")
            return Fault(path, f"{value} is not allowed", remedy)
        case "model_type" | "dict_type":
            return Fault(path, f"{value} should be a mapping of keys", f"expected: {about}")
    return Fault(path, f"{value}: {error['msg'].replace('Input', 'it')}", f"expected: {about}")


def _node(path: KeyPath) -> dict[str, Any]:
    """Find what the JSON schema says of a key; empty where it knows no such key."""
    node = json_schema()
    for step in path:
        node = _followed(node)
        node = node.get("items" if isinstance(step, int) else "properties", {})
        node = node if isinstance(step, int) else node.get(step, {})
    return node


def _followed(node: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference, or the one branch of an optional key that is not null."""
    node = next((branch for branch in node.get("anyOf", []) if branch != {"type": "null"}), node)
    name = str(node.get("$ref", "")).removeprefix("#/$defs/")
    return json_schema()["$defs"][name] if name else node
