"""Pods, nodes and references, reduced to what the nouns hold."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from steward.cluster.snapshot import Node
from steward.sources.kubernetes import objects
from steward.sources.kubernetes.fields import MalformedError
from steward.sources.kubernetes.objects import BoundPod, Reference
from steward.sources.kubernetes.shapes import Metadata, NodeShape, PodShape, Shape

type Json = dict[str, Any]


def read_pod(item: Json, *created_by: str) -> BoundPod | None:
    shape = msgspec.convert(item, PodShape)
    return objects.read_pod(shape, created_by) if created_by else objects.read_pod(shape)


def read_node(item: Json) -> Node:
    return objects.read_node(msgspec.convert(item, NodeShape))


def pod(**changes: Any) -> Json:
    """Make a Running pod with two GPUs; `changes` replace its spec, status or metadata fields."""
    container = {
        "name": "train",
        "image": "registry/train:1",
        "command": ["python", "--password=hunter2"],
        "args": ["--token", "hunter2"],
        "env": [{"name": "AWS_SECRET", "value": "hunter2"}],
        "resources": {"limits": {"nvidia.com/gpu": "2"}},
    }
    metadata = {
        "namespace": "hyperpod-ns-audio",
        "name": "trainer-2",
        "uid": "77aa",
        "creationTimestamp": "2026-11-02T06:00:00Z",
        "annotations": {"note": "hunter2"},
        "labels": {
            "kueue.x-k8s.io/queue-name": "hyperpod-ns-audio-localqueue",
            "sagemaker.user/created-by": "mira",
            "job-name": "trainer",
            "customer": "hunter2",
        },
    }
    spec = {"nodeName": "hyperpod-i-1", "containers": [container]}
    status = {"phase": "Running", "startTime": "2026-11-02T08:00:00+02:00"}
    parts: dict[str, Json] = {"metadata": metadata, "spec": spec, "status": status}
    for name, change in changes.items():
        parts[name] = parts[name] | change
    return {"kind": "Pod", **parts}


def test_a_pod_keeps_nothing_but_what_the_noun_holds() -> None:
    read = read_pod(pod())
    assert read is not None
    assert read.pod.labels == {"kueue.x-k8s.io/queue-name": "hyperpod-ns-audio-localqueue"}
    assert read.pod.created_by == "mira"
    assert "hunter2" not in msgspec.json.encode(read).decode()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        # The first label of the list that the pod has, whatever the order on the pod.
        ({"sagemaker.user/created-by": "mira", "example.com/owner": "audio"}, "audio"),
        ({"sagemaker.user/created-by": "mira", "example.com/owner": ""}, "mira"),
        ({"app": "trainer"}, None),
        ({"sagemaker.user/created-by": 7}, None),
    ],
)
def test_the_labels_that_name_the_maker_are_data(labels: Json, expected: str | None) -> None:
    item = pod(metadata={"labels": labels})
    read = read_pod(item, "example.com/owner", "sagemaker.user/created-by")
    assert read is not None
    assert read.pod.created_by == expected


@pytest.mark.parametrize(
    ("changes", "live"),
    [
        ({}, True),
        ({"status": {"phase": "Pending"}}, True),  # bound: its GPUs are taken while it pulls
        ({"metadata": {"deletionTimestamp": "2026-11-02T08:59:00Z"}}, True),  # until it is gone
        ({"status": {"phase": "Unknown"}}, True),  # its node is silent: nothing is given back
        ({"status": {"phase": None}}, True),  # bound, and the kubelet has not said a word yet
        ({"status": {"phase": "Succeeded"}}, False),
        ({"status": {"phase": "Failed"}}, False),
        ({"spec": {"nodeName": None}}, False),
        ({"spec": {"nodeName": ""}}, False),
        ({"spec": {"containers": [{"name": "c"}]}}, False),
    ],
)
def test_a_pod_holds_accelerators_from_binding_to_its_end(changes: Json, live: bool) -> None:  # noqa: FBT001  # a case's expectation
    assert (read_pod(pod(**changes)) is not None) is live


def test_a_pod_counts_from_its_start_else_from_its_creation() -> None:
    started, unstarted = read_pod(pod()), read_pod(pod(status={"startTime": None}))
    assert started is not None
    assert unstarted is not None
    # 08:00 at an offset of two hours is 06:00 in UTC.
    assert started.pod.since == datetime(2026, 11, 2, 6, tzinfo=UTC)
    assert unstarted.pod.since == datetime(2026, 11, 2, 6, tzinfo=UTC)


def test_epoch_seconds_are_a_time_as_well() -> None:
    read = read_pod(pod(status={"startTime": 1793599200}))
    assert read is not None
    # 1793599200 = 2026-11-02T06:00:00Z: 20759 days of 86400 s since 1970, and six hours.
    assert read.pod.since == datetime(2026, 11, 2, 6, tzinfo=UTC)


def test_slices_of_several_profiles_are_one_pod_named_after_the_most() -> None:
    resources = {"requests": {"nvidia.com/mig-1g.10gb": "3", "nvidia.com/mig-3g.40gb": "1"}}
    read = read_pod(pod(spec={"containers": [{"resources": resources}]}))
    assert read is not None
    assert (read.pod.accelerators, read.pod.resource) == (4, "nvidia.com/mig-1g.10gb")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"metadata": {"uid": None}}, "uid"),
        ({"metadata": {"name": 7}}, "name"),
        ({"metadata": {"labels": ["a"]}}, "labels"),
        ({"status": {"startTime": "yesterday"}}, "startTime"),
        ({"status": {"startTime": 1e18}}, "startTime"),  # epoch seconds beyond any calendar
        ({"status": {"startTime": "0001-01-01T00:00:00+05:00"}}, "startTime"),  # year 0 in UTC
        ({"status": {"startTime": "2026-11-02T06:00:00"}}, "without an offset"),
        ({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "500m"}}}]}}, "0.5"),
        ({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "-2"}}}]}}, "-2"),
        ({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "9M"}}}]}}, "9e.06"),
        ({"metadata": {"ownerReferences": [{"kind": "Job", "name": "x"}]}}, "apiVersion"),
    ],
)
def test_a_malformed_pod_is_named_by_its_field(changes: Json, named: str) -> None:
    with pytest.raises((MalformedError, msgspec.ValidationError), match=named):
        read_pod(pod(**changes))


# --- who controls it -----------------------------------------------------------------------------


def reference(kind: str, *, controller: bool | None = None, api: str = "batch/v1") -> Json:
    return {"apiVersion": api, "kind": kind, "name": "x", "controller": controller}


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        (None, None),
        ([], None),
        ([reference("Job", controller=True)], Reference("batch", "Job", "x")),
        # Owners for garbage collection only stand beside the controller.
        (
            [reference("Config", api="v1"), reference("Job", controller=True)],
            Reference("batch", "Job", "x"),
        ),
        ([reference("Job")], Reference("batch", "Job", "x")),
        # Several, none in control: a Workload of a pod group, for example. None is the owner.
        ([reference("Pod", api="v1"), reference("Pod", api="v1")], None),
        ([reference("Node", controller=True, api="v1")], Reference("", "Node", "x")),
    ],
)
def test_the_controller_is_the_owner_else_the_only_one_there_is(
    references: Any, expected: Reference | None
) -> None:
    metadata = msgspec.convert({"ownerReferences": references}, Metadata)
    assert objects.read_controller(metadata) == expected


# --- nodes and namespaces ------------------------------------------------------------------------


def node(labels: Json, capacity: Json | None) -> Json:
    return {
        "metadata": {"name": "hyperpod-i-1", "labels": labels},
        "status": {"capacity": capacity},
    }


COUNT, PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.product"


@pytest.mark.parametrize(
    ("labels", "capacity", "expected"),
    [
        ({}, {"cpu": "192", "nvidia.com/gpu": "8"}, 8),
        # Time slicing shows every GPU several times in capacity; the label counts cards.
        ({COUNT: "8"}, {"nvidia.com/gpu": "32"}, 8),
        # MIG, mixed: no whole GPU is left in capacity; only the label knows.
        ({COUNT: "8"}, {"nvidia.com/gpu": "0", "nvidia.com/mig-3g.40gb": "16"}, 8),
        ({}, {"nvidia.com/gpu": "0", "nvidia.com/mig-3g.40gb": "16"}, None),
        # MIG, single: the label itself counts slices, and the product says so.
        (
            {COUNT: "56", PRODUCT: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"},
            {"nvidia.com/gpu": "56"},
            None,
        ),
        ({}, {"aws.amazon.com/neurondevice": "16", "aws.amazon.com/neuroncore": "32"}, 16),
        ({}, {"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "32"}, 16),
        ({}, {"aws.amazon.com/neuroncore": "32"}, None),
        # A CPU node, and a GPU node whose device plugin is down: no device can be allocated.
        ({}, {"cpu": "8", "memory": "32Gi"}, 0),
        ({}, {"nvidia.com/gpu": "0"}, 0),
        ({COUNT: "unknown"}, {"nvidia.com/gpu": "8"}, 8),
    ],
)
def test_a_node_counts_whole_devices_or_says_that_it_does_not_know(
    labels: Json, capacity: Json, expected: int | None
) -> None:
    assert read_node(node(labels, capacity)).accelerators == expected


def test_a_node_that_has_not_reported_its_capacity_is_not_a_cpu_node() -> None:
    assert read_node({"metadata": {"name": "new"}, "status": {}}).accelerators is None


def test_a_node_tells_its_type_health_and_whether_it_takes_pods() -> None:
    labels = {
        "beta.kubernetes.io/instance-type": "ml.g5.12xlarge",
        "sagemaker.amazonaws.com/node-health-status": "UnschedulablePendingReplacement",
    }
    item = node(labels, {"nvidia.com/gpu": "4"})
    item["spec"] = {"unschedulable": True}
    item["status"]["conditions"] = [
        {"type": "MemoryPressure", "status": "False"},
        {"type": "Ready", "status": "Unknown"},
    ]
    read = read_node(item)
    assert read.instance_type == "ml.g5.12xlarge"
    assert read.health == "UnschedulablePendingReplacement"
    assert (read.ready, read.schedulable) == (False, False)
    item["spec"], item["status"]["conditions"][1]["status"] = {}, "True"
    item["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "ml.p5.48xlarge"
    read = read_node(item)
    assert read.instance_type == "ml.p5.48xlarge"  # the present name before the deprecated one
    assert (read.ready, read.schedulable) == (True, True)


@pytest.mark.parametrize(
    "item",
    [
        {"status": {}},
        node({}, {"nvidia.com/gpu": "eight"}),
        {"metadata": {"name": "n"}, "status": {"conditions": {"Ready": True}}},
    ],
)
def test_a_malformed_node_is_refused(item: Json) -> None:
    with pytest.raises((MalformedError, msgspec.ValidationError)):
        read_node(item)


def test_a_namespace_is_its_name_and_labels() -> None:
    labels = {"sagemaker.amazonaws.com/sagemaker-managed-queue": "true"}
    item = {"metadata": {"name": "hyperpod-ns-audio", "labels": labels}}
    read = objects.read_namespace(msgspec.convert(item, Shape))
    assert read == ("hyperpod-ns-audio", labels)
