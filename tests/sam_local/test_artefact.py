"""What the build put together: things that a container would not miss, and Lambda would."""

from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[2] / ".aws-sam" / "build"

pytestmark = pytest.mark.sam


@pytest.mark.parametrize("layer", ["DepsLayer", "StewardLayer"])
def test_every_module_is_compiled_whatever_the_clock_says(layer: str) -> None:
    folder = BUILD / layer / "python"
    modules = sorted(folder.rglob("*.py"))

    assert modules
    for module in modules:
        compiled = module.parent / "__pycache__" / f"{module.stem}.cpython-313.pyc"
        # PEP 552: four bytes of magic, then flags: 1 is "hash-based, never check the source".
        assert compiled.read_bytes()[:8] == MAGIC_NUMBER + bytes([1, 0, 0, 0]), module


def test_the_layer_carries_only_the_services_that_are_called() -> None:
    data = BUILD / "DepsLayer" / "python" / "botocore" / "data"

    assert {path.name for path in data.iterdir() if path.is_dir()} == {
        "dynamodb",
        "eks",
        "events",
        "s3",
        "sagemaker",
        "secretsmanager",
        "sqs",
        "sts",
    }
    # Without these no client can be made at all.
    for name in ("endpoints.json", "partitions.json", "sdk-default-configuration.json"):
        assert (data / name).is_file()


def test_layers_stay_far_below_lambdas_limit() -> None:
    size = sum(path.stat().st_size for path in BUILD.rglob("*") if path.is_file())

    # Lambda takes 250 MB unzipped, layers included; what is above 40 MB came in by mistake.
    assert size < 40 * 2**20


def test_a_function_folder_holds_its_handler_and_nothing_else() -> None:
    for function in (
        "PlanTicks",
        "TakeSnapshot",
        "EvaluateSnapshot",
        "ReconcileAlerts",
        "RecordCheckpoints",
    ):
        assert [path.name for path in (BUILD / function).iterdir()] == ["handler.py"]


def test_the_policy_lies_where_the_functions_look() -> None:
    assert (BUILD / "PolicyLayer" / "policy" / "policy.json").is_file()
