"""The template as written, and as CloudFormation gets it after SAM's transform."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml
from samtranslator.translator.transform import transform as sam_transform

ROOT = Path(__file__).parents[2]

type Document = dict[str, Any]
"""A template, or a part of one, with intrinsic functions in their long form."""


class _NoManagedPolicies:
    """The template names no managed policy, so none has to be looked up in an account."""

    def load(self) -> dict[str, str]:
        return {}


@pytest.fixture(scope="session")
def written() -> Document:
    document: Document = json.loads(json.dumps(cfn_yaml.load(str(ROOT / "template.yaml"))))
    return document


@pytest.fixture
def template(written: Document) -> Document:
    """A copy that a test may break."""
    return deepcopy(written)


@pytest.fixture
def transform(monkeypatch: pytest.MonkeyPatch) -> Callable[[Document], Document]:
    """SAM's own transform; local folders become the uploads that `sam deploy` puts in their place."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    def transform(document: Document) -> Document:
        uploaded = deepcopy(document)
        for resource in uploaded["Resources"].values():
            for key in ("CodeUri", "ContentUri"):
                if key in resource["Properties"]:
                    resource["Properties"][key] = f"s3://uploads/{resource['Properties'][key]}"
        resources: Document = sam_transform(uploaded, {}, _NoManagedPolicies())["Resources"]
        return resources

    return transform


@pytest.fixture
def deployed(written: Document, transform: Callable[[Document], Document]) -> Document:
    """Resources of the transformed template, by logical id."""
    return transform(written)
