"""What a tick lists, in which order and how each is read."""

from collections.abc import Sequence
from copy import replace
from functools import partial

import msgspec

from steward.cluster.kueue import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    Topology,
    WorkloadPriorityClass,
)
from steward.cluster.namespaces import MANAGED, governed
from steward.cluster.snapshot import Node
from steward.ports import KubernetesReading, Wanted
from steward.sources.kubernetes.listing import Reading
from steward.sources.kubernetes.lists import CORE, Lists
from steward.sources.kubernetes.objects import (
    NODE_LABELS,
    POD_LABELS,
    BoundPod,
    Controlled,
    Reference,
    read_controlled,
    read_namespace,
    read_node,
    read_pod,
)
from steward.sources.kubernetes.owners import (
    Link,
    OwnerKey,
    OwnerKind,
    attach,
    attach_workload,
    missing,
)
from steward.sources.kubernetes.requests import may_request_accelerators
from steward.sources.kubernetes.session import METADATA_ONLY
from steward.sources.kubernetes.shapes import NodeShape, PodShape, Shape
from steward.sources.kueue.events import ABOUT_WORKLOADS, EventShape, read_event
from steward.sources.kueue.fields import GROUP, OLDER_VERSIONS, VERSIONS
from steward.sources.kueue.queue_shapes import ClusterQueueShape, CohortShape, LocalQueueShape
from steward.sources.kueue.queues import read_cluster_queue, read_cohort, read_local_queue
from steward.sources.kueue.setup import (
    PriorityClassShape,
    ResourceFlavorShape,
    read_flavor,
    read_priority_class,
)
from steward.sources.kueue.topology import TopologyShape, read_topology
from steward.sources.kueue.workload_shapes import WorkloadShape, finished_before
from steward.sources.kueue.workloads import JOB_UID, QueuedWorkload, read_workload

KUEUE_RESOURCES = (
    "clusterqueues",
    "localqueues",
    "resourceflavors",
    "workloadpriorityclasses",
    "workloads",
)
OLDER_RESOURCES = ("cohorts", "topologies")
RESOURCES = ("nodes", "namespaces", *OLDER_RESOURCES, *KUEUE_RESOURCES, "pods", "events")
"""Read at every tick, small ones first; owners follow, as far as pods and Workloads name them."""

LIVE_PODS = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Leaves unbound and finished pods on the server: they hold no accelerator."""

_NAMESPACES = Reading(shape=Shape, reduce=read_namespace, labels=None)
_EVENTS = Reading(shape=EventShape, reduce=read_event)
_CLUSTER_QUEUES = Reading(
    shape=ClusterQueueShape, reduce=read_cluster_queue, labels=frozenset({MANAGED})
)
_LOCAL_QUEUES = Reading(shape=LocalQueueShape, reduce=read_local_queue)
_COHORTS = Reading(shape=CohortShape, reduce=read_cohort)
_TOPOLOGIES = Reading(shape=TopologyShape, reduce=read_topology)
_FLAVORS = Reading(shape=ResourceFlavorShape, reduce=read_flavor)
_PRIORITY_CLASSES = Reading(shape=PriorityClassShape, reduce=read_priority_class)


class _Kueue(msgspec.Struct, frozen=True, kw_only=True):
    """Kueue's objects; empty where they were refused."""

    cluster_queues: tuple[ClusterQueue, ...] = ()
    local_queues: tuple[LocalQueue, ...] = ()
    cohorts: tuple[Cohort, ...] = ()
    resource_flavors: tuple[ResourceFlavor, ...] = ()
    priority_classes: tuple[WorkloadPriorityClass, ...] = ()
    topologies: tuple[Topology, ...] = ()


def read_tick(lists: Lists, wanted: Wanted, created_by: Sequence[str]) -> KubernetesReading:
    """Read what `wanted` covers; `created_by` are labels that name who made an object."""
    listed = lists.read_as("namespaces", CORE, _NAMESPACES, accept=METADATA_ONLY)
    namespaces = None if listed is None else dict(listed)
    roots = _roots(lists.versions(GROUP, KUEUE_RESOURCES, VERSIONS))
    kueue = _read_kueue(lists, roots)
    nodes = lists.read_as("nodes", CORE, _nodes(kueue))
    workloads = _read_workloads(lists, roots, wanted, created_by)
    ours = None
    if namespaces is not None and not wanted.everywhere:
        # Where Kueue admits jobs their pods matter at once, whoever governs the namespace.
        queued = {w.workload.namespace for w in workloads if not w.workload.holds("Finished")}
        ours = governed(namespaces, wanted.namespaces) | queued
    reading = Reading(
        shape=PodShape,
        reduce=partial(read_pod, created_by=created_by),
        matters=may_request_accelerators,
        labels=frozenset({*POD_LABELS, *created_by}),
        unique=True,
    )
    within = None if ours is None else sorted(ours)
    pods = lists.read_as("pods", CORE, reading, within=within, fields=LIVE_PODS) or ()
    links = _read_owners(lists, pods, workloads, created_by)
    events = lists.read_as("events", CORE, _EVENTS, fields=ABOUT_WORKLOADS) or ()
    return KubernetesReading(
        pods=tuple(attach(pod, links) for pod in pods),
        nodes=nodes or (),
        namespaces=namespaces,
        workloads=tuple(attach_workload(one, links) for one in workloads),
        cluster_queues=kueue.cluster_queues,
        local_queues=kueue.local_queues,
        cohorts=kueue.cohorts,
        resource_flavors=kueue.resource_flavors,
        priority_classes=kueue.priority_classes,
        topologies=kueue.topologies,
        events=events,
        governed=ours,
        parts=tuple(lists.parts),
    )


def _nodes(kueue: _Kueue) -> Reading[NodeShape, Node]:
    """Read nodes with the labels that flavors and topologies go by: no others are anybody's."""
    kept = {level for topology in kueue.topologies for level in topology.levels}
    kept |= {label for flavor in kueue.resource_flavors for label in flavor.node_labels}
    return Reading(
        shape=NodeShape,
        reduce=partial(read_node, kept=frozenset(kept)),
        labels=frozenset({*NODE_LABELS, *kept}),
    )


def _read_kueue(lists: Lists, roots: Sequence[str]) -> _Kueue:
    older = _roots(lists.versions(GROUP, OLDER_RESOURCES, OLDER_VERSIONS))
    kueue = _Kueue()
    if older:
        kueue = replace(
            kueue,
            cohorts=lists.read_as("cohorts", older, _COHORTS) or (),
            topologies=lists.read_as("topologies", older, _TOPOLOGIES) or (),
        )
    if not roots:
        return kueue
    return replace(
        kueue,
        cluster_queues=lists.read_as("clusterqueues", roots, _CLUSTER_QUEUES) or (),
        local_queues=lists.read_as("localqueues", roots, _LOCAL_QUEUES) or (),
        resource_flavors=lists.read_as("resourceflavors", roots, _FLAVORS) or (),
        priority_classes=lists.read_as("workloadpriorityclasses", roots, _PRIORITY_CLASSES) or (),
    )


def _read_workloads(
    lists: Lists, roots: Sequence[str], wanted: Wanted, created_by: Sequence[str]
) -> tuple[QueuedWorkload, ...]:
    reading = Reading(
        shape=WorkloadShape,
        reduce=partial(read_workload, created_by=created_by),
        matters=lambda item: not finished_before(item, wanted.finished_after),
        labels=frozenset({JOB_UID, *created_by}),
        unique=True,
    )
    return (lists.read_as("workloads", roots, reading) if roots else None) or ()


def _roots(versions: Sequence[str]) -> list[str]:
    return [f"/apis/{GROUP}/{version}" for version in versions]


def _read_owners(
    lists: Lists,
    pods: Sequence[BoundPod],
    workloads: Sequence[QueuedWorkload],
    created_by: Sequence[str],
) -> dict[OwnerKey, Link]:
    """List the kinds of owners that pods and Workloads lead to, and those that these lead to."""
    links = {
        # Kueue queues the pods of a Deployment one by one: a Workload's owner may be such a pod.
        (Reference("", "Pod", one.pod.name), one.pod.namespace): Link(
            one.controller, one.pod.created_by
        )
        for one in pods
    }
    owned = [(one.controller, one.pod.namespace) for one in pods]
    owned += [
        (one.controller, one.workload.namespace)
        for one in workloads
        if not one.workload.holds("Finished")
    ]
    listed: set[OwnerKind] = set()
    while kinds := missing(owned, links, listed):
        for kind in kinds:
            listed.add(kind)
            for one in _read_kind(lists, kind, created_by):
                reference = Reference(kind.group, kind.kind, one.name)
                links[reference, one.namespace] = Link(one.controller, one.created_by)
    return links


def _read_kind(lists: Lists, kind: OwnerKind, created_by: Sequence[str]) -> tuple[Controlled, ...]:
    version = kind.version or lists.version(kind.group, (kind.resource,))
    if not version:
        return ()
    reading = Reading(
        shape=Shape,
        reduce=partial(read_controlled, created_by=created_by),
        labels=frozenset(created_by),
    )
    root = f"/apis/{kind.group}/{version}"
    return lists.read_as(kind.resource, root, reading, accept=METADATA_ONLY) or ()
