"""The range of each key, and its JSON schema."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from local.policy import json_schema
from local.policy.reading import read
from tests.unit.policy.documents import BORROW, EXAMPLE, FOLDER, TEXT, edited, faults, resolved


@pytest.mark.parametrize("limit", [0, 10_000])
def test_the_ends_of_sagemakers_range_are_inside(limit: int, path: Path) -> None:
    cluster = resolved(path, edited(BORROW, f"          borrow_limit_percent: {limit}"))
    assert cluster.teams[1].borrow_limit_percent == limit


@pytest.mark.parametrize(
    ("key", "inside", "outside"),
    [
        ("activity_max", ["0%", "10%", "0.5%"], ["10.1%", "-1%"]),
        ("idle.window", ["15m", "24h", "900s"], ["1441m", "61s", "1h30m"]),
        ("startup_grace", ["0m", "60m"], ["-1m", "1.5m"]),
        ("coverage_min", ["50%", "100%"], ["49.9%", "100.1%"]),
        ("held_memory", ["1MiB", "1024GiB"], ["0MiB", "1025GiB", "1GB"]),
        ("page_after", ["0m", "168h", "7d"], ["169h"]),
        ("page_accelerators", ["0", "10000"], ["-1", "10001", "8.0"]),
        ("activity_min", ["50%", "100%"], ["49.9%", "101%", "0.95"]),
        ("tensor_max", ["0%", "10%", "0.5%"], ["10.1%", "-1%"]),
        ("power_max", ["0%", "60%"], ["61%", "100W"]),
        ("hang.window", ["5m", "24h"], ["4m", "1441m", "30"]),
        ("telemetry.damping", ["0m", "24h"], ["1441m"]),
        ("share", ["50%", "100%"], ["49.9%", "101%", "0.95"]),
        ("borrowing.window", ["5m", "24h"], ["4m", "1441m", "30"]),
        ("preemptions.count", ["2", "1000"], ["1", "1001", "3.0"]),
        ("period", ["1d", "90d", "36h"], ["23h", "91d", "90m"]),
        ("lost_gpu_hours", ["0", "0.5", "1000000"], ["-0.1", ".nan", "1000001"]),
        ("startup", ["0m", "24h"], ["1441m"]),
        ("checkpoint_interval", ["1m", "24h"], ["0m", "1441m"]),
        ("wait", ["0m", "30d"], ["721h"]),
        ("without_pods", ["0m", "24h"], ["1441m"]),
        ("capacity.damping", ["0m", "24h"], ["1441m"]),
        ("tick", ["5m", "24h"], ["0m", "1445m", "6m", "301s"]),
        ("scrape_interval", ["5s", "5m"], ["4s", "301s"]),
        ("delay", ["0s", "30m"], ["1801s"]),
        ("capacity.count", ["4", "10000"], ["0", "10001", "-4"]),
        ("usd_per_hour", ["0.01", "10000", "63"], ["0", "10000.01", "-1", ".nan"]),
    ],
)
def test_the_ends_of_each_range_are_inside(
    key: str, inside: list[str], outside: list[str], path: Path
) -> None:
    group, _, key = key.rpartition(".")
    within = rf"^ +{group}:.*\n(?: {{6}}(?:- |  ).*\n)*?" if group else "^"
    line = re.compile(rf"({within} +{key}:) \S+", flags=re.MULTILINE)
    assert len(line.findall(TEXT)) == 1
    for value in inside:
        resolved(path, line.sub(rf"\1 {value}", TEXT))
    for value in outside:
        said = faults(path, line.sub(rf"\1 {value}", TEXT))
        assert any(f".{key}: " in fault for fault in said), value


def test_ten_priority_classes_are_allowed_and_eleven_are_not(path: Path) -> None:
    last = "      - name: experimentation\n        weight: 25\n"
    more = [f"      - name: class-{n}\n        weight: {n}\n" for n in range(8)]
    assert len(resolved(path, edited(last, last + "".join(more[:7]))).priority_classes) == 10
    (line,) = faults(path, edited(last, last + "".join(more)))
    assert "clusters[0].priority_classes: " in line
    assert "at most 10" in line


def test_the_example_is_valid_by_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(json_schema())
    document: dict[str, Any] = read(EXAMPLE).document
    validator.validate(document)
    document["clusters"][0]["thresholds"]["idle"]["windw"] = "60m"
    document["slack"]["channels"]["#Gpu"] = "C0GPUMLOPS09"
    wrong = [error.message for error in validator.iter_errors(document)]
    assert len(wrong) == 2
    assert any("windw" in message for message in wrong)
    assert any("#Gpu" in message for message in wrong)


def test_every_key_of_the_schema_is_described() -> None:
    forms = [json_schema(), *json_schema()["$defs"].values()]
    keys = [
        (form["title"], key, about) for form in forms for key, about in form["properties"].items()
    ]
    assert len(keys) > 50
    assert [(title, key) for title, key, about in keys if not about.get("description")] == []


def test_every_key_is_explained_in_the_reference() -> None:
    reference = (FOLDER.parents[1] / "docs/policy.md").read_text(encoding="utf-8")
    forms = [json_schema(), *json_schema()["$defs"].values()]
    keys = {key for form in forms for key in form["properties"]}
    assert sorted(key for key in keys if f"`{key}`" not in reference) == []
