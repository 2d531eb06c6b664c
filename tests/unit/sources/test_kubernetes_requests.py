"""The scheduler's rule for adding up containers, by cases worked out by hand."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from steward.sources.kubernetes.fields import MalformedError
from steward.sources.kubernetes.requests import (
    Amounts,
    effective_requests,
    is_accelerator,
    may_request_accelerators,
)
from steward.sources.kubernetes.shapes import PodSpec

GPU = "nvidia.com/gpu"


def requests_of(spec: dict[str, Any], *wanted: Any) -> Amounts:
    return effective_requests(msgspec.convert(spec, PodSpec), *wanted)


def container(requests: Any = None, limits: Any = None, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests, "limits": limits}, **more}


def gpus(count: int, **more: Any) -> dict[str, Any]:
    return container({GPU: str(count)}, {GPU: str(count)}, **more)


def sidecar(count: int) -> dict[str, Any]:
    return gpus(count, restartPolicy="Always")


def test_containers_run_together_so_they_add_up() -> None:
    assert requests_of({"containers": [gpus(1), gpus(2), {"name": "log"}]}) == {GPU: 3}


@pytest.mark.parametrize(
    ("starting", "running", "expected"),
    [
        # A plain init container is over before the containers start: the larger of the two.
        ([gpus(4)], [gpus(1)], 4),
        ([gpus(1), gpus(2)], [gpus(8)], 8),
        # Init containers run one after the other, never together.
        ([gpus(3), gpus(2)], [gpus(1)], 3),
        # A sidecar keeps running beside the containers.
        ([sidecar(1)], [gpus(2)], 3),
        # A plain one runs beside the sidecars that were started before it, not after it.
        ([sidecar(1), gpus(4)], [gpus(2)], 5),
        ([gpus(4), sidecar(1)], [gpus(2)], 4),
        ([sidecar(2), gpus(1), sidecar(3), gpus(1)], [gpus(1)], 6),
    ],
)
def test_init_containers_count_by_kubernetes_rule(
    starting: list[Any], running: list[Any], expected: int
) -> None:
    spec = {"initContainers": starting, "containers": running}
    assert requests_of(spec) == {GPU: expected}


def test_each_resource_takes_its_own_maximum() -> None:
    # The init container needs the more memory, the container the more GPUs: the pod needs both.
    spec = {
        "initContainers": [container({"memory": "4Gi", GPU: "1"})],
        "containers": [container({"memory": "1Gi", GPU: "2"})],
    }
    assert requests_of(spec) == {"memory": 4 * 2**30, GPU: 2}


def test_a_missing_request_is_the_limit_and_a_present_one_is_not_raised_to_it() -> None:
    spec = {
        "containers": [
            container({"cpu": "500m"}, {"cpu": "4", "memory": "1Ki", GPU: "2"}),
        ]
    }
    assert requests_of(spec) == {"cpu": Fraction(1, 2), "memory": 1024, GPU: 2}


def test_accelerators_take_the_larger_of_request_and_limit() -> None:
    # Kubernetes refuses a pod in which they differ; should one be there, it holds the larger.
    assert requests_of({"containers": [container({GPU: "1"}, {GPU: "2"})]}) == {GPU: 2}
    assert requests_of({"containers": [container({GPU: "2"}, {GPU: "1"})]}) == {GPU: 2}


def test_what_is_not_wanted_is_not_even_parsed() -> None:
    spec = {"containers": [container({"cpu": "nonsense", GPU: "1"})]}
    assert requests_of(spec, is_accelerator) == {GPU: 1}


def test_nothing_and_zero_are_no_request() -> None:
    assert requests_of({}) == {}
    assert requests_of({"containers": [gpus(0), {"resources": None}]}) == {}


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "two"},
        {"containers": ["one"]},
        {"containers": [{"resources": "many"}]},
        {"containers": [container({GPU: "many"})]},
        {"containers": [container({GPU: None})]},
    ],
)
def test_what_the_api_does_not_promise_is_named(spec: dict[str, Any]) -> None:
    with pytest.raises((MalformedError, msgspec.ValidationError)):
        requests_of(spec)


@pytest.mark.parametrize(
    ("resource", "accelerator"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-3g.40gb", True),
        ("aws.amazon.com/neurondevice", True),
        ("aws.amazon.com/neuron", True),
        ("aws.amazon.com/neuroncore", True),
        ("vpc.amazonaws.com/efa", False),
        ("cpu", False),
        ("example.com/gpu", False),
    ],
)
def test_accelerators_are_known_by_their_resource(resource: str, accelerator: bool) -> None:  # noqa: FBT001  # a case's expectation
    assert is_accelerator(resource) is accelerator


@pytest.mark.parametrize(
    ("resource", "possible"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-1g.10gb", True),
        ("aws.amazon.com/neuroncore", True),
        ("cpu", False),
        ("vpc.amazonaws.com/efa", False),
    ],
)
def test_the_bytes_of_a_pod_tell_whether_it_can_hold_an_accelerator(
    resource: str,
    possible: bool,  # noqa: FBT001  # a case's expectation
) -> None:
    spec = msgspec.json.encode({"containers": [container({resource: "1"})]})
    assert may_request_accelerators(spec) is possible
    # Never the other way round: what is an accelerator is never passed over.
    assert possible or not is_accelerator(resource)
