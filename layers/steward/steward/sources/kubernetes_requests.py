"""What a pod asks of its node: the rule by which the scheduler adds up containers."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from steward.sources.kubernetes_fields import MalformedError, mapping, objects
from steward.sources.quantity import parse

GPU = "nvidia.com/gpu"
NEURON_DEVICES = ("aws.amazon.com/neurondevice", "aws.amazon.com/neuron")
"""Whole Neuron devices: the name up to Neuron 2.19, and the one since."""

_ACCELERATORS = {GPU, "nvidia.com/gpu.shared", *NEURON_DEVICES, "aws.amazon.com/neuroncore"}
_MIG = "nvidia.com/mig-"

type Amounts = dict[str, Fraction]


def is_accelerator(resource: str) -> bool:
    """Tell whether a resource is an accelerator or a slice of one."""
    return resource in _ACCELERATORS or resource.startswith(_MIG)


def effective_requests(
    spec: Mapping[str, Any], wanted: Callable[[str], bool] = lambda _: True
) -> Amounts:
    """Add up what a pod requests of each wanted resource.

    Parameters
    ----------
    spec : mapping
        A pod's (or pod template's) `spec`.
    wanted : callable
        Which resources to count; the others are not even parsed.

    Returns
    -------
    dict of str to Fraction
        In base units; zero amounts are left out.

    Raises
    ------
    MalformedError
        A field or a quantity is not what the API promises.

    Notes
    -----
    Kubernetes' rule (kubernetes.io, "Sidecar containers", resource sharing within containers):
    containers and restartable init containers (sidecars) run together; a plain init container runs
    alone, beside the sidecars started before it. The pod needs the larger of the two, by resource.
    """
    running: Amounts = {}
    for container in objects(spec, "containers"):
        _add(running, _container(container, wanted))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in objects(spec, "initContainers"):
        own = _container(container, wanted)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, own)
        else:
            _raise(starting, sidecars, own)
    _add(running, sidecars)
    _raise(running, starting)
    return {resource: amount for resource, amount in running.items() if amount}


def _container(container: Mapping[str, Any], wanted: Callable[[str], bool]) -> Amounts:
    resources = mapping(container, "resources")
    requests, limits = mapping(resources, "requests"), mapping(resources, "limits")
    amounts: Amounts = {}
    for resource in requests.keys() | limits.keys():
        if not wanted(resource):
            continue
        # A missing request defaults to the limit. Accelerators cannot be overcommitted: where the
        # two differ, the larger one is held.
        given = [side[resource] for side in (requests, limits) if resource in side]
        try:
            parsed = [parse(value) for value in given]
        except ValueError as error:
            raise MalformedError(f"resources: {resource}: {error}") from error
        amounts[resource] = max(parsed) if is_accelerator(resource) else parsed[0]
    return amounts


def _add(total: Amounts, more: Amounts) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, Fraction()) + amount


def _raise(total: Amounts, *together: Amounts) -> None:
    need: Amounts = {}
    for amounts in together:
        _add(need, amounts)
    for resource, amount in need.items():
        total[resource] = max(total.get(resource, Fraction()), amount)
