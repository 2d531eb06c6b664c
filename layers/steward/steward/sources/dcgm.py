"""DCGM series: which metrics are read, which values they can have, and whose a series is. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

type Labels = frozenset[tuple[str, str]]
"""Labels of a series, without its metric name."""


class Family(NamedTuple):
    """A metric, the values it can have (0 to `highest`) and what one of them is worth.

    Sources: `etc/default-counters.csv` of NVIDIA/dcgm-exporter for the units; `dcgm_structs.h` of
    NVIDIA/DCGM for the blank values, which all lie far above every limit here.
    """

    metric: str
    functions: tuple[str, ...]
    highest: float
    unit: float = 1

    def valid(self, value: float) -> bool:
        """Whether the value can be true; NaN cannot."""
        return 0 <= value <= self.highest


MAXIMUM, MINIMUM, MEAN, COUNT, NEWEST = (
    f"{name}_over_time" for name in ("max", "min", "avg", "count", "last")
)
TIMESTAMP = "timestamp"

ENGINE = Family("DCGM_FI_PROF_GR_ENGINE_ACTIVE", (MAXIMUM, MINIMUM, MEAN, COUNT), 1)
UTILISATION = Family("DCGM_FI_DEV_GPU_UTIL", (MAXIMUM, MINIMUM, MEAN, COUNT), 100, unit=100)
MEMORY = Family("DCGM_FI_DEV_FB_USED", (NEWEST,), 2**24)  # MiB: no card has 16 TiB
# A mean out of range betrays every blank value; these two never decide idle or busy.
TENSOR = Family("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", (MEAN,), 1)
POWER = Family("DCGM_FI_DEV_POWER_USAGE", (MEAN,), 10_000)  # W: no card draws 10 kW

ACTIVITY = (ENGINE, UTILISATION)
FAMILIES = (ENGINE, UTILISATION, MEMORY, TENSOR, POWER)
BY_METRIC = {family.metric: family for family in FAMILIES}


class Column(NamedTuple):
    """One instant query of a tick: a function of a metric, over so many minutes (0: none)."""

    metric: str
    function: str
    minutes: int


def columns(minutes: Sequence[int]) -> Iterator[Column]:
    """Name the instant queries of a tick: eight a window and five more, whatever the cluster."""
    for family in FAMILIES:
        spans = minutes if family in ACTIVITY else [max(minutes)]
        for function, span in product(family.functions, spans):
            yield Column(family.metric, function, span)
        if family in ACTIVITY:
            yield Column(family.metric, TIMESTAMP, 0)


class Device(NamedTuple):
    """A device of a holder: the identity that series are merged by."""

    uuid: str
    mig: str | None
    namespace: str | None
    pod: str | None

    @property
    def order(self) -> tuple[str, ...]:
        """What devices are sorted by."""
        return tuple(part or "" for part in self)

    @property
    def believed(self) -> tuple[Family, ...]:
        """Families that may tell its activity, best first; of a MIG slice utilisation is never."""
        return ACTIVITY if self.mig is None else (ENGINE,)


def attribute(series: Iterable[Labels]) -> dict[Labels, Device]:
    """Tell whose each series is; one without a UUID names no device and is left out.

    Every spelling counts: `UUID` or `uuid`, and an `exported_` label before the plain one, which
    then is the exporter's own. A series that names only an exporter belongs to nobody.
    """
    named = {labels: dict(labels) for labels in series}
    exporters = {
        _daemon(values)
        for values in named.values()
        if values.get("exported_pod") and values["exported_pod"] != values.get("pod")
    }
    found = {labels: _device(values, exporters) for labels, values in named.items()}
    return {labels: device for labels, device in found.items() if device is not None}


def node_of(series: Iterable[Labels]) -> str | None:
    """Tell the node that the series of a device name."""
    named = [dict(labels) for labels in series]
    for spelling in ("Hostname", "hostname", "node", "kubernetes_node"):
        if nodes := {values[spelling] for values in named if values.get(spelling)}:
            return min(nodes)
    return None


def _daemon(labels: Mapping[str, str]) -> tuple[str, str]:
    """Namespace and daemon set of the plain pair: its pods differ in their last part alone."""
    pod = labels.get("pod", "")
    return labels.get("namespace", ""), pod.rpartition("-")[0] or pod


def _device(labels: Mapping[str, str], exporters: Collection[tuple[str, str]]) -> Device | None:
    uuid = labels.get("UUID") or labels.get("uuid")
    if not uuid:
        return None
    profile, instance = labels.get("GPU_I_PROFILE", ""), labels.get("GPU_I_ID", "")
    # Prometheus renames only what collides with a label of its target, so each label by itself.
    namespace = labels.get("exported_namespace") or labels.get("namespace")
    pod = labels.get("exported_pod") or labels.get("pod")
    renamed = labels.get("exported_pod") or labels.get("exported_namespace")
    if not pod or (not renamed and _daemon(labels) in exporters):
        namespace = pod = None
    mig = f"{profile}/{instance}" if profile or instance else None
    return Device(uuid, mig, namespace, pod)
