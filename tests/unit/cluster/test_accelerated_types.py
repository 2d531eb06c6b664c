"""The table of accelerators: held against SageMaker's list of types and EC2's own description."""

import gzip
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import moto
import pytest
from botocore.session import get_session

from steward.cluster.accelerated_types import power_limit, tabled_accelerators

DATA: dict[str, Any] = json.loads(
    files("steward.cluster").joinpath("accelerated_types.json").read_bytes()
)
SHAPE: Any = get_session().get_service_model("sagemaker").shape_for("ClusterInstanceType")
TYPES: list[str] = SHAPE.enum

UNKNOWN: dict[str, str] = {}
"""Types that HyperPod takes and the table leaves out, each with what could not be verified."""

NOT_DESCRIBED = {"p6e-gb200.36xlarge"}
"""Types that EC2 describes to nobody without a reservation; the documentation has them."""

DOCUMENTED_OTHERWISE = {"trn2.3xlarge", "trn2.48xlarge"}
"""EC2's description gives a Trainium2 512 GiB; Neuron's own architecture page 96."""


def described() -> dict[str, Any]:
    """What DescribeInstanceTypes answered, as moto recorded it."""
    path = Path(moto.__file__).parent / "ec2" / "resources" / "instance_types.json.gz"
    found = json.loads(gzip.decompress(path.read_bytes()))
    types = found.values() if isinstance(found, dict) else found
    return {one["InstanceType"]: one for one in types}


EC2 = described()


@pytest.mark.parametrize("name", TYPES)
def test_every_type_of_hyperpod_is_in_the_table_or_listed_as_unknown(name: str) -> None:
    assert (tabled_accelerators(name) is None) == (name in UNKNOWN)


@pytest.mark.parametrize("name", TYPES)
def test_the_table_counts_what_ec2_describes(name: str) -> None:
    plain = name.removeprefix("ml.")
    if plain in NOT_DESCRIBED:
        assert plain not in EC2
        return
    one = EC2[plain]
    gpus = one.get("GpuInfo", {}).get("Gpus", [])
    devices = one.get("NeuronInfo", {}).get("NeuronDevices", [])
    assert tabled_accelerators(name) == sum(each["Count"] for each in gpus + devices)


@pytest.mark.parametrize("name", TYPES)
def test_the_table_has_the_memory_and_cores_that_ec2_describes(name: str) -> None:
    plain = name.removeprefix("ml.")
    if plain in NOT_DESCRIBED | DOCUMENTED_OTHERWISE or not tabled_accelerators(name):
        return
    hardware = DATA["accelerators"][DATA["families"][plain.partition(".")[0]]["accelerator"]]
    gpus = EC2[plain].get("GpuInfo", {}).get("Gpus", [])
    devices = EC2[plain].get("NeuronInfo", {}).get("NeuronDevices", [])
    (one,) = gpus + devices
    assert hardware["vendor"] == ("nvidia" if gpus else "neuron")
    # GiB are written without their fraction, as in AWS's own tables.
    assert hardware["memory_gib"] == one["MemoryInfo"]["SizeInMiB"] // 1024
    assert hardware.get("cores") == one.get("CoreInfo", {}).get("Count")


def test_a_trainium2_has_eight_cores_and_96_gib() -> None:
    # Neuron's architecture page: a trn2.48xlarge has 16 chips and 1,536 GiB of device memory.
    trainium2 = DATA["accelerators"]["Trainium2"]
    assert (trainium2["cores"], trainium2["memory_gib"]) == (8, 1536 // 16)


@pytest.mark.parametrize(
    ("name", "accelerators"),
    [
        ("ml.p5.48xlarge", 8),
        ("ml.p5.4xlarge", 1),
        ("ml.p6e-gb200.36xlarge", 4),  # 18 of them are an UltraServer of 72
        ("ml.g6e.16xlarge", 1),
        ("ml.g7e.12xlarge", 2),
        ("ml.trn1.32xlarge", 16),
        ("p4d.24xlarge", 8),  # without SageMaker's prefix
        ("ml.m5.large", 0),
        ("ml.c8g.48xlarge", 0),
        ("ml.p9.48xlarge", None),  # of a family that is not known yet
        ("ml.p5.96xlarge", None),  # a size that is not known yet
        ("ml.m5", None),
        ("", None),
    ],
)
def test_an_unknown_type_is_unknown_and_never_zero(name: str, accelerators: int | None) -> None:
    assert tabled_accelerators(name) == accelerators


def test_every_row_says_where_it_is_from() -> None:
    assert DATA["as_of"] == "2026-11"
    for family in DATA["families"].values():
        assert family["origin"].startswith("https://")
        assert family["accelerator"] in DATA["accelerators"]
    assert all(page.startswith("https://docs.aws.amazon.com/") for page in DATA["without"])
    for hardware in DATA["accelerators"].values():
        assert ("power_limit_watts" in hardware) == bool(hardware.get("power_origin"))
        # Neuron devices publish no limit and no such metric.
        assert (hardware["vendor"] == "neuron") == ("power_limit_watts" not in hardware)


@pytest.mark.parametrize(
    ("model", "watts"),
    [
        ("NVIDIA H100 80GB HBM3", 700),
        ("NVIDIA A100-SXM4-40GB", 400),
        ("NVIDIA A100-SXM4-80GB", 400),
        ("NVIDIA H200", 700),
        ("NVIDIA B200", 1000),
        ("NVIDIA B300 SXM6 AC", 1100),
        ("NVIDIA GB200", 1200),
        ("NVIDIA L4", 72),
        ("NVIDIA L40S", 350),
        ("NVIDIA A10G", 300),
        ("Tesla T4", 70),
        ("  nvidia  l4 ", 72),
        ("NVIDIA RTX PRO 4500 Blackwell Server Edition", 165),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 600),
        # Other boards of the same chips, with other limits, and what is no card at all.
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA RTX PRO 4500 Blackwell", None),
        ("NVIDIA L40", None),
        ("NVIDIA", None),
        ("", None),
        (None, None),
    ],
)
def test_a_power_limit_is_known_by_the_exporters_name(
    model: str | None, watts: float | None
) -> None:
    assert power_limit(model, None) == watts


@pytest.mark.parametrize(
    ("model", "instance_type", "watts"),
    [
        (None, "ml.p5.48xlarge", 700),
        (None, "g6.xlarge", 72),
        ("A name of next year", "ml.p5.48xlarge", 700),
        ("NVIDIA L4", "ml.p5.48xlarge", 72),  # what the card itself says comes first
        (None, "ml.trn2.48xlarge", None),
        (None, "ml.m5.large", None),
        (None, "ml.p5.96xlarge", None),
        (None, "ml.p9.48xlarge", None),
    ],
)
def test_the_instance_type_tells_the_limit_where_the_name_does_not(
    model: str | None, instance_type: str, watts: float | None
) -> None:
    assert power_limit(model, instance_type) == watts
