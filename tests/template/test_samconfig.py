"""A plain `sam local invoke` finds the rig that `python -m local.invoke --serve` keeps up."""

import json
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from local import cloud
from local.invoke import PORT

type Document = dict[str, Any]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def config() -> Document:
    found: Document = tomllib.loads((ROOT / "samconfig.toml").read_text())["default"]
    return found


@pytest.fixture(params=["local_invoke", "local_start_lambda"])
def local(request: pytest.FixtureRequest, config: Document) -> Document:
    found: Document = config[request.param]["parameters"]
    return found


def parameters(local: Document) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in local["parameter_overrides"])


def test_a_function_in_a_container_talks_to_the_rig_at_its_time(local: Document) -> None:
    given = parameters(local)

    # Without an endpoint of its own a function would go to the account of whoever runs it.
    assert urlsplit(given["LocalEndpoint"]).port == PORT
    assert datetime.fromisoformat(given["LocalNow"]) == cloud.NOW


def test_every_override_is_a_parameter_of_the_template(local: Document, written: Document) -> None:
    assert set(parameters(local)) <= set(written["Parameters"])


def test_variables_name_what_the_rig_holds(local: Document) -> None:
    variables = json.loads((ROOT / local["env_vars"]).read_text())["Parameters"]
    name = cloud.LOCAL_NAME
    # moto's account is 123456789012, and a queue's URL is <endpoint>/<account>/<name>.
    queues = f"{parameters(local)['LocalEndpoint']}/123456789012"

    assert variables == {
        **dict.fromkeys(("BUCKET", "BUS", "STATE_TABLE", "SLACK_SECRET"), name),
        "SNAPSHOT_REQUESTS_URL": f"{queues}/{name}-requests",
        "EVALUATIONS_URL": f"{queues}/{name}.fifo",
        "COMMANDS_URL": f"{queues}/{name}-commands",
    }


def test_every_variable_is_declared_by_a_function(local: Document, written: Document) -> None:
    """What the template does not declare vanishes without a word on its way into the container."""
    declared = {
        name
        for resource in written["Resources"].values()
        if resource["Type"] == "AWS::Serverless::Function"
        for name in resource["Properties"]["Environment"]["Variables"]
    }

    assert set(json.loads((ROOT / local["env_vars"]).read_text())["Parameters"]) <= declared


def test_a_build_never_comes_from_the_cache(config: Document) -> None:
    # The cache does not know which wheels a layer holds: arm64 would get those of x86_64.
    assert config["build"]["parameters"]["cached"] is False
