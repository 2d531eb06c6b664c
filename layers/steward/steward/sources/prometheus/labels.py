"""Labels of accelerator series: which device a series is about, and who holds that. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from steward.sources.prometheus.families import (
    ACTIVITY,
    ENGINE,
    LEVELS,
    MEMORY,
    TENSOR,
    WINDOWED,
    Family,
)

_EXPORTERS = ("dcgm-exporter", "neuron-monitor")
"""In the name of an exporter's pod: what the charts of NVIDIA and AWS call their daemon sets."""

_CORES_PER_DEVICE = {"inf1": 4, "inf2": 2, "trn1": 2, "trn1n": 2}
"""By instance family, where no series says it; a trn2 device has as many as it is configured to."""

_NEURON = "/neuron"

_OF_CARDS = (*WINDOWED, *LEVELS)
_OF_SLICES = (ENGINE, TENSOR, *MEMORY)


class SeriesLabels(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is read of a series' labels, under every spelling that exporters and scrapers use.

    Prometheus renames only what collides with a label of its target (`exported_`), so each label
    counts by itself. Of a NeuronCore the exporter tells the instance and the core's index; some
    pipelines add the device's.
    """

    uuid: str = msgspec.field(default="", name="UUID")
    uuid_lower: str = msgspec.field(default="", name="uuid")
    profile: str = msgspec.field(default="", name="GPU_I_PROFILE")
    slice: str = msgspec.field(default="", name="GPU_I_ID")
    pod: str = ""
    exported_pod: str = ""
    namespace: str = ""
    exported_namespace: str = ""
    host_name: str = msgspec.field(default="", name="Hostname")
    host_name_lower: str = msgspec.field(default="", name="hostname")
    node: str = ""
    kubernetes_node: str = ""
    model: str = msgspec.field(default="", name="modelName")
    model_lower: str = msgspec.field(default="", name="model_name")
    instance_id: str = ""
    instance_type: str = ""
    core: str = msgspec.field(default="", name="neuroncore")
    neuron_device: str = ""
    neuron_device_index: str = ""
    cores_per_device: str = msgspec.field(default="", name="neuroncore_per_device_count")


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
    def activity(self) -> tuple[Family, ...]:
        """Families that may tell its activity, best first; of a MIG slice utilisation is never."""
        return ACTIVITY if self.mig is None else (ENGINE,)

    @property
    def families(self) -> tuple[Family, ...]:
        """Families that are its own: a card's power and its limit are none of its slices'."""
        return _OF_CARDS if self.mig is None else _OF_SLICES


class Owned(NamedTuple):
    """Whose a series is: a device, and which part of it (a NeuronCore; empty: all of it)."""

    device: Device
    part: str


def attribute(series: Sequence[SeriesLabels]) -> list[Owned | None]:
    """Tell whose each series is; None for one that names no device.

    An `exported_` label goes before the plain one, which then is the exporter's own. A series that
    names only an exporter belongs to nobody.
    """
    exporters = {
        _daemon(labels)
        for labels in series
        if labels.exported_pod and labels.exported_pod != labels.pod
    }
    cores = {
        labels.instance_id: int(labels.cores_per_device)
        for labels in series
        if labels.cores_per_device.isdecimal() and int(labels.cores_per_device)
    }
    return [_owned(labels, exporters, cores) for labels in series]


def node_of(series: Iterable[SeriesLabels]) -> str | None:
    """Tell the node that the series of a device name, by the most telling label first."""
    named = [
        (rank, name)
        for labels in series
        for rank, name in enumerate(
            (
                labels.host_name,
                labels.host_name_lower,
                labels.node,
                labels.kubernetes_node,
                # HyperPod calls a node after its instance.
                f"hyperpod-{labels.instance_id}" if labels.core and labels.instance_id else "",
            )
        )
        if name
    ]
    return min(named)[1] if named else None


def model_of(series: Iterable[SeriesLabels]) -> str | None:
    """Tell what the series of a device call it."""
    named = {name for labels in series if (name := labels.model or labels.model_lower)}
    return min(named, default=None)


def instance_of(uuid: str) -> str | None:
    """Tell the instance that a Neuron device's identity names; None for any other device."""
    instance, found, _ = uuid.rpartition(_NEURON)
    return instance if found else None


def _daemon(labels: SeriesLabels) -> tuple[str, str]:
    """Namespace and daemon set of the plain pair: its pods differ in their last part alone."""
    return labels.namespace, labels.pod.rpartition("-")[0] or labels.pod


def _owned(
    labels: SeriesLabels, exporters: Collection[tuple[str, str]], cores: Mapping[str, int]
) -> Owned | None:
    uuid = labels.uuid or labels.uuid_lower
    part = ""
    if not uuid and labels.core:
        uuid, part = _neuron_device(labels, cores), labels.core
    if not uuid:
        return None
    namespace: str | None = labels.exported_namespace or labels.namespace
    pod: str | None = labels.exported_pod or labels.pod
    if not (pod and namespace) or (_plain(labels) and _is_exporter(labels, exporters)):
        namespace = pod = None
    mig = f"{labels.profile}/{labels.slice}" if labels.profile or labels.slice else None
    return Owned(Device(uuid, mig, namespace, pod), part)


def _plain(labels: SeriesLabels) -> bool:
    return not (labels.exported_pod or labels.exported_namespace)


def _is_exporter(labels: SeriesLabels, exporters: Collection[tuple[str, str]]) -> bool:
    daemon = _daemon(labels)
    return daemon in exporters or any(name in daemon[1] for name in _EXPORTERS)


def _neuron_device(labels: SeriesLabels, cores: Mapping[str, int]) -> str:
    """Name a core's device; empty where the instance, or how many cores make one, is not known."""
    index = labels.neuron_device or labels.neuron_device_index
    if not index:
        family = labels.instance_type.removeprefix("ml.").partition(".")[0]
        size = cores.get(labels.instance_id) or _CORES_PER_DEVICE.get(family)
        if size is None or not labels.core.isdecimal():
            return ""
        index = str(int(labels.core) // size)
    return f"{labels.instance_id}{_NEURON}{index}" if labels.instance_id else ""
