"""Who holds which accelerator: joins pods with the series that name them, and loses neither side.

Starts from allocations (pods that request accelerators), never from series: an allocated
accelerator without a series is there, and says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from copy import replace
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.accelerated_types import power_limit
from steward.cluster.accelerators import Accelerator, Holder, Owner, Window
from steward.cluster.amounts import mig_fraction
from steward.cluster.control_plane import ControlPlane
from steward.cluster.instance_types import usd_per_accelerator
from steward.cluster.kueue import Workload
from steward.cluster.memory import Device, Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import Node

if TYPE_CHECKING:
    from steward.cluster.pods import GpuPod
    from steward.ports import DeviceReading, KubernetesReading, MetricsReading


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """A node as far as anybody told us."""

    instance_type: str | None = None
    accelerators: int | None = None


def pods_without_device(
    kubernetes: KubernetesReading, metrics: MetricsReading, memory: Memory, born_before: datetime
) -> tuple[GpuPod, ...]:
    """Find pods that lack devices, are old enough to be judged, and are not remembered.

    Only for these is the metrics source asked whether telemetry has ever named them.
    """
    named = _by_pod(metrics.devices)
    remembered = Counter(device.pod_uid for device in memory.devices)
    return tuple(
        pod
        for pod in kubernetes.pods
        if pod.since <= born_before
        and len(named[pod.namespace, pod.name]) < pod.accelerators
        and remembered[pod.uid] < pod.accelerators
    )


def allocate(
    kubernetes: KubernetesReading,
    control_plane: ControlPlane,
    metrics: MetricsReading | None,
    looked_up: Collection[DeviceReading] | None,
    memory: Memory,
    cluster: ClusterPolicy,
    *,
    per_instance: Mapping[str, int | None],
) -> tuple[Accelerator, ...]:
    """Join every live pod's accelerators with their telemetry.

    Parameters
    ----------
    kubernetes, control_plane : KubernetesReading, ControlPlane
        Pods, nodes, workloads; instance types of nodes that Kubernetes did not show.
    metrics : MetricsReading or None
        Window statistics; None where the source could not be read.
    looked_up : collection of DeviceReading, or None
        Devices that named the pods of :func:`pods_without_device` earlier; None where that
        look-up failed.
    memory : Memory
        Devices that pods have been seen to hold.
    cluster : ClusterPolicy
        Windows and prices.
    per_instance : mapping of str to (int or None)
        Accelerators of an instance, by type: what its price is shared out over.

    Returns
    -------
    tuple of Accelerator
        As many a pod as it requests, sorted by key: those that telemetry names, those that it
        named before, and nameless ones for the rest.
    """
    places = _places(kubernetes.nodes, control_plane)
    workloads = _by_owner(kubernetes.workloads)
    named = _by_pod(metrics.devices if metrics else ())
    earlier = _by_pod(looked_up or ())
    remembered: dict[str, list[Device]] = defaultdict(list)
    for device in memory.devices:
        remembered[device.pod_uid].append(device)
    users = _users(kubernetes.pods, named)
    dark_nodes = _unattributed_nodes(kubernetes, metrics, places)
    found = []
    for pod in kubernetes.pods:
        holder = _holder(pod, workloads)
        place = places.get(pod.node, _Place())
        base = Accelerator(
            node=pod.node,
            uuid=None,
            holder=holder,
            fraction=mig_fraction(pod.resource.rpartition("/")[2].removeprefix("mig-")) or 1.0,
            instance_type=place.instance_type,
            usd_per_hour=usd_per_accelerator(place.instance_type, per_instance, cluster),
            windows=_empty_windows(cluster) if metrics else (),
        )
        devices = _measured(base, pod, _usable(pod, named), places, users)
        devices |= _remembered(base, devices, remembered[pod.uid])
        devices |= _measured_before(base, devices, _usable(pod, earlier), places)
        chosen = list(devices.values())[: pod.accelerators]
        missing = pod.accelerators - len(chosen)
        for ordinal in range(missing):
            nameless = replace(
                base,
                ordinal=ordinal,
                ever_seen=None if looked_up is None else False,
                unattributed=pod.node in dark_nodes,
            )
            chosen.append(nameless)
        found += chosen
    return tuple(sorted(found, key=lambda accelerator: accelerator.key))


def _holder(pod: GpuPod, workloads: Mapping[str, Workload]) -> Holder:
    # Kueue's Workload belongs to whatever carries the queue label: the pod itself, or an owner.
    itself = Owner(kind="Pod", namespace=pod.namespace, name=pod.name)
    owners = (owner.subject for owner in (itself, *pod.owner_chain))
    workload = next((workloads[subject] for subject in owners if subject in workloads), None)
    labels = pod.labels
    return Holder(
        namespace=pod.namespace,
        pod=pod.name,
        pod_uid=pod.uid,
        since=pod.since,
        owner=pod.owner,
        workload=workload.name if workload else None,
        priority_class=workload.priority_class
        if workload
        else labels.get("kueue.x-k8s.io/priority-class"),
        queue=workload.queue if workload else labels.get("kueue.x-k8s.io/queue-name"),
        created_by=pod.created_by,
    )


def _usable(
    pod: GpuPod, readings: Mapping[tuple[str, str], list[DeviceReading]]
) -> list[DeviceReading]:
    """Pick what tells of a pod: where it holds slices, nothing that is said of a whole card."""
    sliced = "/mig-" in pod.resource
    return [r for r in readings[pod.namespace, pod.name] if r.mig is not None or not sliced]


def _measured(
    base: Accelerator,
    pod: GpuPod,
    readings: Iterable[DeviceReading],
    places: Mapping[str, _Place],
    users: Mapping[tuple[str, str | None], set[str]],
) -> dict[tuple[str, str | None], Accelerator]:
    """Devices that series name now."""
    here = _here(readings, base, places)
    # A living series before one that has stopped: the stopped one may be a predecessor's.
    here.sort(key=lambda r: (r.last_sample is None, r.uuid, r.mig or ""))
    me = f"{pod.namespace}/{pod.name}"
    return {
        (r.uuid, r.mig): replace(
            base,
            uuid=r.uuid,
            mig=r.mig,
            fraction=_share(r.mig, base),
            activity_metric=r.activity_metric,
            windows=r.windows,
            last_sample=r.last_sample,
            held_bytes=r.held_bytes,
            tensor=r.tensor,
            power=r.power,
            power_limit_watts=r.power_limit_watts or _power_limit(r, base),
            ever_seen=True,
            shared_with=tuple(sorted(users[r.uuid, r.mig] - {me})),
        )
        for r in here
    }


def _here(
    readings: Iterable[DeviceReading], base: Accelerator, places: Mapping[str, _Place]
) -> list[DeviceReading]:
    """Pick what is said of a pod's own node: a namesake on another one is not that pod."""
    return [r for r in readings if r.node not in places or r.node == base.node]


def _power_limit(reading: DeviceReading, base: Accelerator) -> float | None:
    """Look the limit up by model; only where there is a draw to hold against it."""
    return power_limit(reading.model, base.instance_type) if reading.power else None


def _remembered(
    base: Accelerator,
    known: Mapping[tuple[str, str | None], Accelerator],
    devices: Iterable[Device],
) -> dict[tuple[str, str | None], Accelerator]:
    return {
        (d.uuid, d.mig): replace(
            base,
            uuid=d.uuid,
            mig=d.mig,
            fraction=_share(d.mig, base),
            ever_seen=True,
        )
        for d in devices
        if (d.uuid, d.mig) not in known
    }


def _measured_before(
    base: Accelerator,
    known: Mapping[tuple[str, str | None], Accelerator],
    readings: Iterable[DeviceReading],
    places: Mapping[str, _Place],
) -> dict[tuple[str, str | None], Accelerator]:
    return {
        (r.uuid, r.mig): replace(
            base, uuid=r.uuid, mig=r.mig, fraction=_share(r.mig, base), ever_seen=True
        )
        for r in _here(readings, base, places)
        if (r.uuid, r.mig) not in known
    }


def _users(
    pods: Iterable[GpuPod], named: Mapping[tuple[str, str], list[DeviceReading]]
) -> Mapping[tuple[str, str | None], set[str]]:
    """Live pods by the device that living series attribute to them; more than one is sharing."""
    users: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for pod in pods:
        for reading in named[pod.namespace, pod.name]:
            if reading.last_sample is not None:
                users[reading.uuid, reading.mig].add(f"{pod.namespace}/{pod.name}")
    return users


def _unattributed_nodes(
    kubernetes: KubernetesReading, metrics: MetricsReading | None, places: Mapping[str, _Place]
) -> set[str]:
    """Nodes with more nameless series than free accelerators: some belong to a pod, unsaid."""
    nameless = Counter(r.node for r in (metrics.devices if metrics else ()) if r.pod is None)
    taken: Counter[str] = Counter()
    for pod in kubernetes.pods:
        taken[pod.node] += pod.accelerators
    return {
        node
        for node, count in nameless.items()
        if node is not None
        and (capacity := places.get(node, _Place()).accelerators) is not None
        and count > capacity - taken[node]
    }


def _by_pod(readings: Iterable[DeviceReading]) -> dict[tuple[str, str], list[DeviceReading]]:
    found: dict[tuple[str, str], list[DeviceReading]] = defaultdict(list)
    for reading in readings:
        if reading.namespace is not None and reading.pod is not None:
            found[reading.namespace, reading.pod].append(reading)
    return found


def _by_owner(workloads: Iterable[Workload]) -> dict[str, Workload]:
    """Workloads by their owner; where a job has several, the admitted and newest one."""
    ranked = sorted(workloads, key=lambda w: (w.holds("Admitted"), w.created, w.name))
    return {workload.owner.subject: workload for workload in ranked if workload.owner}


def _places(nodes: Iterable[Node], control_plane: ControlPlane) -> dict[str, _Place]:
    places = {
        f"hyperpod-{node.instance_id}": _Place(instance_type=node.instance_type)
        for node in control_plane.nodes
    }
    for node in nodes:
        told = places.get(node.name, _Place()).instance_type
        places[node.name] = _Place(
            instance_type=node.instance_type or told, accelerators=node.accelerators
        )
    return places


def _share(mig: str | None, base: Accelerator) -> float:
    """Share of a GPU that a device is: as its slice says, else as its pod asked for it."""
    return (mig_fraction(mig) if mig else None) or base.fraction


def _empty_windows(cluster: ClusterPolicy) -> tuple[Window, ...]:
    interval = cluster.metrics.scrape_interval_seconds
    return tuple(
        Window(
            minutes=minutes, expected=minutes * 60 // interval, present=0, maximum=None, mean=None
        )
        for minutes in cluster.windows()
    )
