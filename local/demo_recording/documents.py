"""The YAML files beside this module: templates of what a cluster answers, filled in and read."""

import json
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).parent
SETUP = "2026-08-03T09:14:22Z"
"""When the cluster was set up."""

_SHARED = {"arn": "arn:aws:sagemaker:us-east-1:111122223333", "setup": SETUP}

type Json = dict[str, Any]


def read(text: str) -> list[Any]:
    """Read the documents of a YAML text."""
    return list(YAML(typ="safe", pure=True).load_all(text))


def fill(name: str, values: Mapping[str, object] | None = None) -> list[Any]:
    """Fill a template in (`manifests/pod`) and read its documents.

    Lists and mappings go in as JSON, which is YAML too.
    """
    given = (values or {}).items()
    shown = {key: one if isinstance(one, str) else json.dumps(one) for key, one in given}
    text = (HERE / f"{name}.yaml").read_text(encoding="utf-8")
    return read(Template(text).substitute(_SHARED | shown))
