"""Where a Workload's pods are said to write checkpoints: an annotation, else a mount's path."""

import json
from typing import Any

import msgspec
import pytest

from steward.sources.kueue.declared import declared_checkpoints
from steward.sources.kueue.workload_shapes import WorkloadShape
from steward.sources.kueue.workloads import read_workload

type Json = dict[str, Any]

KEY = "gpu-steward/checkpoints"


def template(*paths: object, annotation: object = None) -> Json:
    mounts = [{"name": f"v{number}", "mountPath": path} for number, path in enumerate(paths)]
    found: Json = {"spec": {"containers": [{"name": "main", "volumeMounts": mounts}]}}
    return found | ({} if annotation is None else {"metadata": {"annotations": {KEY: annotation}}})


def declared(*templates: Json | None, annotation: object = None) -> str | None:
    item: Json = {"metadata": {"name": "w"}}
    if annotation is not None:
        item["metadata"]["annotations"] = {"example.com/token": "x", KEY: annotation}
    item["spec"] = {"podSets": [{"name": "main", "template": one} for one in templates]}
    return declared_checkpoints(msgspec.json.decode(json.dumps(item), type=WorkloadShape))


def test_the_workloads_annotation_is_the_declaration() -> None:
    assert declared(template("/ckpt"), annotation=" s3://b/{job}/ ") == "s3://b/{job}/"


def test_the_pod_templates_annotation_is_one_too_and_comes_second() -> None:
    spoken = template("/ckpt", annotation="fsx")
    assert declared(spoken) == "fsx"
    assert declared(template("/ckpt"), spoken) == "fsx"
    assert declared(spoken, annotation="s3") == "s3"


@pytest.mark.parametrize("value", ["", "  ", 5, True, ["/ckpt"], {}])
def test_an_annotation_that_says_nothing_is_none(value: object) -> None:
    # Kubernetes allows text only; a recording was checked by nobody.
    assert declared(template(), annotation=value) is None
    assert declared(template("/ckpt"), annotation=value) == "/ckpt"


@pytest.mark.parametrize(
    "path",
    ["/checkpoints", "/mnt/Checkpoints/", "/fsx/checkpoint/llm", "/data/my-ckpts", "/ckpt"],
)
def test_a_mount_that_is_called_so_is_a_declaration(path: str) -> None:
    assert declared(template("/data", path)) == path


@pytest.mark.parametrize(
    "path", ["/", "", None, "/data", "/check/points", "/ckpt/a/b", "/etc/chkpt"]
)
def test_a_mount_that_is_not_called_so_in_its_last_two_parts_is_none(path: object) -> None:
    assert declared(template(path)) is None


def test_the_first_mount_that_is_called_so_is_taken() -> None:
    assert declared(None, template("/data"), template("/x", "/ckpt/a", "/ckpt/b")) == "/ckpt/a"


@pytest.mark.parametrize("value", ["x" * 600, "/ckpt/" + "x" * 600])
def test_no_more_than_512_characters_are_kept(value: str) -> None:
    assert declared(template(), annotation=value) == value[:512]
    if value.startswith("/"):
        assert declared(template(value)) == value[:512]


def test_a_workload_that_says_nothing_declares_nothing() -> None:
    assert declared_checkpoints(WorkloadShape()) is None
    assert declared(None, {}, {"spec": {}}, {"metadata": None, "spec": None}) is None
    nothing: list[Json] = [{"metadata": {"annotations": None}}, {"metadata": {}}]
    assert declared(*nothing) is None


def test_a_workload_carries_its_declaration() -> None:
    item = {
        "metadata": {
            "name": "w",
            "namespace": "ns",
            "uid": "u",
            "creationTimestamp": "2026-11-02T06:00:00Z",
            "annotations": {KEY: "s3://b/"},
        },
        "spec": {"podSets": []},
    }
    shape = msgspec.json.decode(json.dumps(item), type=WorkloadShape)
    assert read_workload(shape).workload.declared_checkpoints == "s3://b/"
