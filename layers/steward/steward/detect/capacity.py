"""Capacity that is lost: unhealthy nodes, instances that do not come, quotas above what is left.

Page: docs/detectors/capacity.md.
"""

from collections.abc import Iterable, Mapping
from copy import replace
from datetime import datetime
from itertools import chain

from steward.cluster.accelerators import UnknownReason
from steward.cluster.capacity.ends import Ends, Judged
from steward.cluster.capacity.failures import judge_failures
from steward.cluster.capacity.findings import Reason, failure_finding, node_finding, quota_finding
from steward.cluster.capacity.inventory import DESCRIBE, EVENTS, LIST, NODES, Inventory
from steward.cluster.capacity.memory import CapacityMemory
from steward.cluster.capacity.nodes import judge_nodes
from steward.cluster.capacity.quota import COHORTS, FLAVORS, QUEUES, judge_quotas
from steward.cluster.findings import Finding, Unknown
from steward.cluster.incidents import Told, follow
from steward.cluster.memory import Detection, Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.refusals import refusals
from steward.cluster.snapshot import Snapshot

NAME = "capacity"


def detect(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> Detection:
    """Find lost capacity.

    Parameters
    ----------
    snapshot : Snapshot
        Nodes, instances and their groups, SageMaker's events, quotas.
    memory : Memory
        The nodes that were there, and what has been told.
    cluster : ClusterPolicy
        Thresholds, and whose queues are whose.

    Returns
    -------
    Detection
        At most one finding a node, instance group and flavor. Without Kubernetes' nodes nothing is
        judged, neither what is wrong nor what has ended.
    """
    refused = refusals(
        snapshot, NAME, blind=(NODES,), useful=(LIST, DESCRIBE, EVENTS, QUEUES, COHORTS, FLAVORS)
    )
    before = memory.capacity
    if any(line.blind for line in refused):
        told, cleared = follow(before.told, (), lambda _: None, snapshot.at)
        capacity = replace(before, told=told)
        return Detection(
            memory=replace(memory, capacity=capacity), cleared=cleared, unknown=refused
        )
    inventory = Inventory(snapshot, before.nodes)
    judged = _judge(snapshot, inventory, before)
    findings = _continued(_findings(snapshot, inventory, judged, cluster), before.told)
    ends = Ends(snapshot, inventory, judged)
    told, cleared = follow(before.told, findings, ends.resolution, snapshot.at)
    return Detection(
        memory=replace(
            memory,
            capacity=CapacityMemory(
                told=told,
                nodes=judged.nodes.known,
                joining=judged.nodes.joining,
                settled=judged.failures.settled,
            ),
        ),
        findings=findings,
        cleared=cleared,
        unknown=(*refused, *_held(told, findings, refused)),
    )


def _judge(snapshot: Snapshot, inventory: Inventory, before: CapacityMemory) -> Judged:
    running = {
        one.finding.subject.removeprefix("Node/")
        for one in before.told
        if one.cleared is None and one.finding.reason == Reason.NODE_UNHEALTHY
    }
    nodes = judge_nodes(inventory, before.joining, running)
    return Judged(
        nodes=nodes,
        failures=judge_failures(inventory, snapshot.control_plane.events, before.settled),
        quotas=judge_quotas(snapshot, inventory, nodes.faults),
    )


def _findings(
    snapshot: Snapshot, inventory: Inventory, judged: Judged, cluster: ClusterPolicy
) -> tuple[Finding, ...]:
    failures = judged.failures.faults
    found = chain(
        (failure_finding(NAME, fault, inventory, cluster) for fault in failures.values()),
        (
            node_finding(NAME, fault, snapshot, inventory, cluster)
            for name, fault in judged.nodes.faults.items()
            if f"Node/{name}" not in failures  # a subject carries one reason
        ),
        (
            quota_finding(NAME, flavor, snapshot, cluster)
            for flavor in judged.quotas.flavors.values()
            if flavor.missing
        ),
    )
    return tuple(sorted(found, key=lambda finding: finding.key))


def _continued(findings: Iterable[Finding], told: Iterable[Told]) -> tuple[Finding, ...]:
    """Keep the beginning of what has been told and has not ended."""
    began: Mapping[str, datetime] = {
        one.finding.key: one.finding.since for one in told if one.cleared is None
    }
    return tuple(
        replace(finding, since=min(finding.since, began.get(finding.key, finding.since)))
        for finding in findings
    )


def _held(
    told: Iterable[Told], findings: Iterable[Finding], refused: Iterable[Unknown]
) -> tuple[Unknown, ...]:
    """Say of which subjects nobody can tell whether what was told of them has ended."""
    found = {finding.key for finding in findings}
    denied = any(line.reason is UnknownReason.DENIED for line in refused)
    reason = UnknownReason.DENIED if denied else UnknownReason.UNREADABLE
    return tuple(
        Unknown(detector=NAME, subject=one.finding.subject, reason=reason, gpus=one.finding.gpus)
        for one in told
        if one.cleared is None and one.finding.key not in found
    )
