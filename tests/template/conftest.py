"""The template as written, as CloudFormation gets it after SAM's transform, and as a role has it."""

from collections.abc import Callable
from copy import deepcopy

import pytest
from samtranslator.translator.transform import transform as sam_transform

from local.conditions import decide
from tests.template.deployments import GIVEN, ROOT, Deploy, Document, read


class _NoManagedPolicies:
    """The template names no managed policy, so none has to be looked up in an account."""

    def load(self) -> dict[str, str]:
        return {}


@pytest.fixture(scope="session")
def written() -> Document:
    return read(ROOT / "template.yaml")


@pytest.fixture
def template(written: Document) -> Document:
    """A copy that a test may break."""
    return deepcopy(written)


@pytest.fixture
def transform(monkeypatch: pytest.MonkeyPatch) -> Callable[[Document], Document]:
    """SAM's own transform, and the conditions of a deployment in one stack; gives the resources.

    Local folders become the uploads that `sam deploy` puts in their place.
    """
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    def transform(document: Document, role: str = "both") -> Document:
        uploaded = deepcopy(document)
        for resource in uploaded["Resources"].values():
            for key in ("CodeUri", "ContentUri"):
                if key in resource["Properties"]:
                    resource["Properties"][key] = f"s3://uploads/{resource['Properties'][key]}"
        transformed: Document = sam_transform(uploaded, {}, _NoManagedPolicies())
        resources: Document = decide(transformed, **GIVEN[role])["Resources"]
        return resources

    return transform


@pytest.fixture
def deployed(written: Document, transform: Callable[[Document], Document]) -> Document:
    """Resources of the transformed template in one stack, by logical id."""
    return transform(written)


@pytest.fixture
def deploy(written: Document, transform: Callable[..., Document]) -> Deploy:
    """Resources of a deployment of a role."""
    return lambda role: transform(written, role)
