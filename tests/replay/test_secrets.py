"""Nothing secret that stands in a cluster's objects is ever stored or posted."""

import gzip
import json
from datetime import UTC, datetime, timedelta

import pytest

from local import application
from local.replay import replay
from local.twins import InMemoryObjects, InMemoryRows
from tests import handmade

START = datetime(2026, 11, 5, 9, 50, tzinfo=UTC)
END = START + timedelta(minutes=30)
BORN = START - timedelta(hours=4)
PLANTED = "hunter2-do-not-keep"
"""Planted wherever people put secrets; any piece of it in a stored object is a leak."""


def hide(item):
    """Plant the secret in an object's annotations, finalizers' neighbours and managed fields."""
    item["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": PLANTED}),
        "example.com/token": PLANTED,
    }
    item["metadata"]["managedFields"] = [{"manager": PLANTED, "fieldsV1": {"f:env": PLANTED}}]
    return item


def container():
    return {
        "name": "main",
        "image": f"registry.example.com/{PLANTED}:1",
        "command": ["sh", "-c", PLANTED],
        "args": [f"--token={PLANTED}"],
        "env": [{"name": "API_KEY", "value": PLANTED}],
        "envFrom": [{"secretRef": {"name": PLANTED}}],
        "volumeMounts": [
            {"name": PLANTED, "mountPath": f"/etc/{PLANTED}", "subPath": PLANTED},
            {"name": PLANTED, "mountPath": "/mnt/ckpt", "subPath": PLANTED},
        ],
        "resources": {"requests": {"nvidia.com/gpu": "1"}},
    }


def workload(name):
    job = handmade.controller("batch/v1", "Job", name)
    return hide(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                "name": f"job-{name}-1a2b3",
                "namespace": handmade.NAMESPACE,
                "uid": f"uid-w-{name}",
                "creationTimestamp": BORN.isoformat(),
                "ownerReferences": [job],
            },
            "spec": {
                "queueName": f"{handmade.NAMESPACE}-localqueue",
                "podSets": [
                    {
                        "name": "main",
                        "count": 1,
                        "template": {
                            "metadata": {"annotations": {"example.com/token": PLANTED}},
                            "spec": {
                                "containers": [container()],
                                "volumes": [{"name": PLANTED, "secret": {"secretName": PLANTED}}],
                            },
                        },
                    }
                ],
            },
        }
    )


@pytest.fixture
def stores(monkeypatch):
    """Every bucket and table that a replay makes."""
    monkeypatch.setenv("METRICS", "recorded")
    made = []

    def remember(kind):
        def make():
            made.append(kind())
            return made[-1]

        return make

    monkeypatch.setattr(application, "InMemoryObjects", remember(InMemoryObjects))
    monkeypatch.setattr(application, "InMemoryRows", remember(InMemoryRows))
    return made


def test_no_planted_secret_is_found_in_anything_stored_or_said(tmp_path, stores):
    folder = handmade.header(tmp_path, START, END)
    pod = hide(
        handmade.pod(
            "train-0",
            BORN.isoformat(),
            owner=handmade.controller("batch/v1", "Job", "train"),
            labels={"example.com/password": PLANTED, "sagemaker.user/created-by": "somebody"},
        )
    )
    pod["spec"]["containers"] = [container()]
    pod["spec"]["initContainers"] = [container() | {"name": "init"}]
    job = hide(handmade.owned("batch/v1", "Job", "train"))
    job["spec"] = {"template": {"spec": {"containers": [container()]}}}
    handmade.kubernetes(
        folder,
        BORN,
        nodes=[hide(handmade.node(**{"example.com/join-token": PLANTED}))],
        pods=[pod],
        jobs=[job],
        workloads=[workload("train")],
        namespaces=[
            hide(
                {
                    "metadata": {
                        "name": handmade.NAMESPACE,
                        "labels": {"example.com/token": PLANTED},
                    }
                }
            )
        ],
    )
    handmade.write(
        folder / "eks" / "ListAddons.json", {"addons": ["amazon-cloudwatch-observability"]}
    )
    settings = json.dumps({"agent": {"config": {"token": PLANTED}}, PLANTED: {"level": PLANTED}})
    add_on = {"addonName": "amazon-cloudwatch-observability", "status": "ACTIVE"}
    add_on |= {"addonVersion": "v2.4.0", "configurationValues": settings, "tags": {"t": PLANTED}}
    handmade.write(
        folder / "eks" / "DescribeAddon.amazon-cloudwatch-observability.json", {"addon": add_on}
    )
    idle = [(BORN + timedelta(minutes=n), 0.0) for n in range(4 * 60 + 40)]
    handmade.metrics(folder, handmade.series("GPU-1", "train-0", idle))
    told = []
    done = replay(folder, told.append)
    # The incident was really played: it was found, stored and told.
    found = [line["reason"] for line in told if line.get("detector") == "idle_gpus"]
    assert (done.failures, found) == (0, ["idle"])
    assert any(line["type"] == "slack" for line in told)
    objects = next(store for store in stores if isinstance(store, InMemoryObjects))
    rows = next(store for store in stores if isinstance(store, InMemoryRows))
    stored = {key: opened(data) for key, data in objects.objects.items()}
    assert any(key.startswith("snapshots/") and "train-0" in text for key, text in stored.items())
    # The one thing that is kept of mounts; their names, and other paths, are not.
    assert any('"declared_checkpoints":"/mnt/ckpt"' in text for text in stored.values())
    assert [key for key, text in stored.items() if PLANTED in text] == []
    assert PLANTED not in repr(vars(rows))
    assert PLANTED not in json.dumps(told)


def opened(data):
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
