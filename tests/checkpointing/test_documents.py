"""The manifest and the page say what the code does."""

import json
import re

import pytest
from ruamel.yaml import YAML
from steward_announce import DETAIL_TYPE, ENV, MARKER, SOURCE
from steward_checkpoint import EXIT_CODE

from tests.checkpointing.kit import EXAMPLE

README = (EXAMPLE / "README.md").read_text()


@pytest.fixture
def job():
    return YAML(typ="safe").load((EXAMPLE / "job.yaml").read_text())


@pytest.fixture
def pod(job):
    return job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]


def test_the_job_is_queued_in_its_namespace_with_a_priority(job):
    namespace = job["metadata"]["namespace"]
    assert job["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": f"{namespace}-localqueue",
        "kueue.x-k8s.io/priority-class": "experimentation-priority",
    }


def test_the_job_gives_the_helper_what_it_reads(job, pod):
    (container,) = pod["containers"]
    env = {one["name"]: one for one in container["env"]}
    assert {*ENV, "CHECKPOINT_URI", "STEWARD_GRACE_SECONDS"} == env.keys()
    assert float(env["STEWARD_GRACE_SECONDS"]["value"]) <= pod["terminationGracePeriodSeconds"]
    assert env["CHECKPOINT_URI"]["value"].endswith(f"/{job['metadata']['name']}/")


def test_the_job_writes_below_a_mount_and_starts_without_a_shell(pod):
    (container,) = pod["containers"]
    command = container["command"]
    assert command[0] == "torchrun"
    folder = command[command.index("/app/train_pytorch.py") + 1]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert mounts[f"/{folder.split('/')[1]}"] in {volume["name"] for volume in pod["volumes"]}


def test_gpus_are_requested_and_limited_alike(pod):
    """Kubernetes refuses an accelerator whose request and limit differ."""
    resources = pod["containers"][0]["resources"]
    assert resources["requests"]["nvidia.com/gpu"] == resources["limits"]["nvidia.com/gpu"] == 8


def test_the_statement_allows_this_event_and_no_other():
    (statement,) = map(json.loads, re.findall(r"```json\n(.*?)```", README, re.DOTALL))
    assert statement["Effect"] == "Allow"
    assert statement["Action"] == "events:PutEvents"
    assert statement["Condition"] == {
        "StringEquals": {"events:detail-type": DETAIL_TYPE, "events:source": SOURCE}
    }


def test_the_page_names_each_file_each_variable_the_marker_and_the_exit_code():
    for path in EXAMPLE.iterdir():
        if path.is_file() and path.name != "README.md":
            assert f"`{path.name}`" in README
    for name in (*ENV, "CHECKPOINT_URI", "STEWARD_GRACE_SECONDS", MARKER, str(EXIT_CODE)):
        assert name in README
