"""Capacity that is lost: unhealthy nodes, instances that do not come, quotas above what is left.

Page: docs/detectors/capacity.md.
"""

from collections.abc import Collection, Iterable, Mapping
from copy import replace
from datetime import datetime, timedelta
from itertools import chain

from steward.cluster.accelerators import UnknownReason
from steward.cluster.capacity.ends import Ends, Judged
from steward.cluster.capacity.failures import judge_failures
from steward.cluster.capacity.findings import Reason, failure_finding, node_finding, quota_finding
from steward.cluster.capacity.inventory import DESCRIBE, EVENTS, LIST, NODES, Inventory
from steward.cluster.capacity.memory import CapacityMemory
from steward.cluster.capacity.nodes import judge_nodes
from steward.cluster.capacity.quota import COHORTS, FLAVORS, QUEUES, judge_quotas
from steward.cluster.findings import UNSEEN, Finding, Unknown
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
        At most one finding a node, instance group and flavor. Without Kubernetes' nodes only what
        SageMaker itself says of an instance is told.
    """
    refused = refusals(
        snapshot, NAME, blind=(NODES,), useful=(LIST, DESCRIBE, EVENTS, QUEUES, COHORTS, FLAVORS)
    )
    before = memory.capacity
    inventory = Inventory(snapshot, before.nodes)
    judged = _judge(snapshot, inventory, before)
    found = _findings(snapshot, memory.at, inventory, judged, cluster)
    findings = _continued(found, before.told, snapshot.at)
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
    snapshot: Snapshot,
    last: datetime | None,
    inventory: Inventory,
    judged: Judged,
    cluster: ClusterPolicy,
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
            quota_finding(NAME, flavor, snapshot, last, cluster)
            for flavor in judged.quotas.flavors.values()
            if flavor.missing
        ),
    )
    return tuple(sorted(found, key=lambda finding: finding.key))


def _continued(
    findings: Iterable[Finding], told: Iterable[Told], at: datetime
) -> tuple[Finding, ...]:
    """Keep the beginning of what has been told and has not ended for good."""
    began: Mapping[str, datetime] = {
        one.finding.key: one.finding.since for one in told if _goes_on(one, at)
    }
    return tuple(
        replace(finding, since=min(finding.since, began.get(finding.key, finding.since)))
        for finding in findings
    )


def _goes_on(one: Told, at: datetime) -> bool:
    """Tell whether its alert is still the same: it opened, and has not been unseen for long."""
    if one.cleared is None:
        return True
    opened = one.cleared - one.finding.since >= timedelta(minutes=one.finding.damping_minutes)
    return opened and at - one.cleared < UNSEEN


def _held(
    told: Iterable[Told], findings: Iterable[Finding], refused: Collection[Unknown]
) -> tuple[Unknown, ...]:
    """Say of which subjects nobody can tell whether what was told of them has ended.

    A refusal of nodes says so of all of them.
    """
    if any(line.blind for line in refused):
        return ()
    found = {finding.key for finding in findings}
    denied = any(line.reason is UnknownReason.DENIED for line in refused)
    reason = UnknownReason.DENIED if denied else UnknownReason.UNREADABLE
    return tuple(
        Unknown(detector=NAME, subject=one.finding.subject, reason=reason, gpus=one.finding.gpus)
        for one in told
        if one.cleared is None and one.finding.key not in found
    )
