"""What a pod asks of its node: the rule by which the scheduler adds up containers."""

from collections.abc import Callable
from fractions import Fraction

from steward.cluster.quantity import parse
from steward.sources.kubernetes.fields import MalformedError
from steward.sources.kubernetes.shapes import Container, PodSpec, Resources

GPU = "nvidia.com/gpu"
NEURON_DEVICES = ("aws.amazon.com/neurondevice", "aws.amazon.com/neuron")
"""Whole Neuron devices: the name up to Neuron 2.19, and the one since."""

_ACCELERATORS = {GPU, "nvidia.com/gpu.shared", *NEURON_DEVICES, "aws.amazon.com/neuroncore"}
_MIG = "nvidia.com/mig-"
_TRACES = (b"nvidia.com", b"aws.amazon.com")

type Amounts = dict[str, Fraction]


def is_accelerator(resource: str) -> bool:
    """Tell whether a resource is an accelerator or a slice of one."""
    return resource in _ACCELERATORS or resource.startswith(_MIG)


def may_request_accelerators(item: bytes) -> bool:
    """Tell from an object's bytes whether it can name an accelerator; most pods do not."""
    return any(trace in item for trace in _TRACES)


def effective_requests(spec: PodSpec, wanted: Callable[[str], bool] = lambda _: True) -> Amounts:
    """Add up what a pod requests of each wanted resource.

    Parameters
    ----------
    spec : PodSpec
        Of a pod or a pod template.
    wanted : callable
        Which resources to count; the others are not even parsed.

    Returns
    -------
    dict of str to Fraction
        In base units; zero amounts are left out.

    Raises
    ------
    MalformedError
        A quantity is not what the API promises.

    Notes
    -----
    Kubernetes' rule (kubernetes.io, "Sidecar containers", resource sharing within containers):
    containers and restartable init containers (sidecars) run together; a plain init container runs
    alone, beside the sidecars started before it. The pod needs the larger of the two, by resource.
    """
    running: Amounts = {}
    for container in spec.containers or ():
        _add(running, _container(container, wanted))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.init_containers or ():
        own = _container(container, wanted)
        if container.restart_policy == "Always":
            _add(sidecars, own)
        else:
            _raise(starting, sidecars, own)
    _add(running, sidecars)
    _raise(running, starting)
    return {resource: amount for resource, amount in running.items() if amount}


def _container(container: Container, wanted: Callable[[str], bool]) -> Amounts:
    resources = container.resources or Resources()
    requests, limits = resources.requests or {}, resources.limits or {}
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
