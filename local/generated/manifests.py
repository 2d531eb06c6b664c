"""Manifests with placeholders, filled in many thousands of times a second."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

_FOLDER = Path(__file__).parent / "manifests"
_PLACEHOLDER = re.compile(r'"\$(\w+)"|\$(\w+)')
_WHEN = "2026-11-04T08:00:00Z"

LONG = "value: 0123456789abcdefghijklmnopqrstuvwxyz; " * 20
"""What launchers and charts leave in an annotation: 900 characters."""


class Text(NamedTuple):
    """JSON that is put in as it is."""

    json: str


type Value = str | int | Text
"""What stands for a placeholder; text free of what JSON escapes."""


class Manifest:
    """An object's JSON with placeholders (`$name`), cut up once.

    Parameters
    ----------
    document : dict
        A value that is nothing but a placeholder may become any JSON, one within a text only text.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        text = json.dumps(document, separators=(",", ":"))
        pieces = _PLACEHOLDER.split(text)
        self._fixed = pieces[::3]
        self._open = list(zip(pieces[1::3], pieces[2::3], strict=True))

    def fill(self, values: Mapping[str, Value]) -> str:
        """Write the object; every placeholder needs its value."""
        out = [self._fixed[0]]
        for (whole, within), fixed in zip(self._open, self._fixed[1:], strict=True):
            out += (_json(values[whole]) if whole else str(values[within]), fixed)
        return "".join(out)


def _json(value: Value) -> str:
    if isinstance(value, Text):
        return value.json
    return str(value) if isinstance(value, int) else f'"{value}"'


def plain(name: str) -> dict[str, Any]:
    """Load a manifest as it is written."""
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(_FOLDER / f"{name}.yaml")
    return loaded


@cache
def document(name: str) -> dict[str, Any]:
    """Load a manifest as a server would keep it: with the fields that each of its writers manages."""
    return with_managed_fields(plain(name))


def with_managed_fields(document: dict[str, Any]) -> dict[str, Any]:
    """Add `metadata.managedFields`, one entry for what was asked and one for what became of it."""
    asked = {"metadata": document["metadata"], "spec": document.get("spec", {})}
    entries = [_managed("platform-controller", asked, None)]
    if "status" in document:
        entries.append(_managed("kubelet", {"status": document["status"]}, "status"))
    return document | {"metadata": document["metadata"] | {"managedFields": entries}}


def _managed(manager: str, fields: Mapping[str, Any], subresource: str | None) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": _WHEN,
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields(fields),
        **({"subresource": subresource} if subresource else {}),
    }


def _fields(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return {f"f:{key}": _fields(inner) for key, inner in value.items()}
    if isinstance(value, list):
        named = [one for one in value if isinstance(one, dict) and "name" in one]
        return {
            f'k:{{"name":"{one["name"]}"}}': {".": {}, **_fields(one)}
            for one in named
            if not str(one["name"]).startswith("$")
        }
    return {}
