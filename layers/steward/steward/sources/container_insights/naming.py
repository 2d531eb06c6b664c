"""What Container Insights calls things: its metrics, their values, and whose a series is. Pure.

Names and dimension sets follow the CloudWatch agent's metric declarations
(`translator/translate/otel/exporter/awsemf/kubernetes.go` of aws/amazon-cloudwatch-agent).
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from steward.ports import Signal

NAMESPACE = "ContainerInsights"
CLUSTER, PODS_NAMESPACE, POD = "ClusterName", "Namespace", "FullPodName"
"""Dimensions of a device's series. `PodName` is none of them: it is derived from the pod's owner."""


class Metric(NamedTuple):
    """A metric as GetMetricData names it."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]


class Family(NamedTuple):
    """A metric's name, the values it can have (0 to `highest`) and what one of them is worth.

    A `ratio` that its documentation calls a percentage, see :func:`scale_of`.
    """

    metric: str
    highest: float
    unit: float = 1
    ratio: bool = False

    def valid(self, value: float) -> bool:
        """Whether the value can be true; NaN cannot."""
        return 0 <= value <= self.highest


class Kind(NamedTuple):
    """A kind of accelerator: the dimensions that name one and its cores, and what is measured."""

    device: str
    core: str | None
    activity: Family
    memory: Family
    tensor: Family | None = None
    power: Family | None = None

    def family(self, signal: Signal) -> Family | None:
        """Return what tells a signal; None where this kind has no such metric."""
        named = {
            Signal.ACTIVITY: self.activity,
            Signal.TENSOR: self.tensor,
            Signal.POWER: self.power,
        }
        return named[signal]


_BYTES = 2**44  # no card has 16 TiB
GPU = Kind(
    "GpuDevice",
    None,
    Family("pod_gpu_utilization", 100, 100),
    Family("pod_gpu_memory_used", _BYTES),
    Family("pod_gpu_tensor_core_utilization", 100, 100, ratio=True),
    Family("pod_gpu_power_draw", 10_000),  # W: no card draws 10 kW
)
NEURON = Kind(
    "NeuronDevice",
    "NeuronCore",
    Family("pod_neuroncore_utilization", 100, 100),
    Family("pod_neuroncore_memory_usage_total", _BYTES),
)
KINDS = (GPU, NEURON)


def scale_of(family: Family, highest_seen: float) -> float:
    """Tell what a value of 1 stands for, from the highest value that a series had.

    The agent passes DCGM's tensor activity on as the ratio that it is, under a name that is
    documented as a percentage; a later version may scale it. A series that never exceeds 1 is read
    as a ratio: at worst that overstates an activity below 1 %, and so never makes a hang.
    """
    return 1 if family.ratio and highest_seen <= 1 else family.unit


class Device(NamedTuple):
    """A device of a pod: the identity that series are merged by."""

    namespace: str
    pod: str
    name: str
    kind: Kind

    @property
    def uuid(self) -> str:
        """Name it for the rest of the product: no dimension holds a UUID.

        The bare name is a number on a node (`nvidia0`): without its pod it would look as if every
        node shared one device.
        """
        return f"{self.namespace}/{self.pod}/{self.name}"


class Strand(NamedTuple):
    """One series of a device: its dimensions, and the core that it is of (None: the whole)."""

    core: str | None
    dimensions: frozenset[tuple[str, str]]

    def of(self, family: Family) -> Metric:
        """Name the metric of a family with these dimensions."""
        return Metric(NAMESPACE, family.metric, self.dimensions)


type Strands = dict[Device, tuple[Strand, ...]]
"""The series that each device has."""


def devices(kind: Kind, listed: Iterable[Metric]) -> Strands:
    """Find the devices that listed activity metrics are of; sums over pods and the like are none.

    A set of dimensions may have more than the declared ones: some versions document
    `ContainerName` as well. Two sets of one device are two series of it.
    """
    found: dict[Device, set[Strand]] = defaultdict(set)
    for metric in listed:
        said = dict(metric.dimensions)
        named = (said.get(PODS_NAMESPACE), said.get(POD), said.get(kind.device))
        if metric.name != kind.activity.metric or not all(named):
            continue
        namespace, pod, name = (text or "" for text in named)
        core = said.get(kind.core) if kind.core else None
        found[Device(namespace, pod, name, kind)].add(Strand(core, metric.dimensions))
    return {device: tuple(sorted(strands, key=_order)) for device, strands in sorted(found.items())}


def _order(strand: Strand) -> tuple[str, list[tuple[str, str]]]:
    return strand.core or "", sorted(strand.dimensions)
