"""Findings about capacity: their evidence and the command that shows more."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from shlex import quote
from typing import Any

from steward.cluster.accelerators import Accelerator
from steward.cluster.capacity.failures import ProvisioningFault
from steward.cluster.capacity.inventory import Inventory, node_name
from steward.cluster.capacity.nodes import JOINING, NEVER_JOINED, NodeFault
from steward.cluster.capacity.quota import FlavorCapacity
from steward.cluster.figures import stamp, tidy
from steward.cluster.findings import Finding
from steward.cluster.policy import ClusterPolicy, Severity
from steward.cluster.queue_teams import team_of_queue
from steward.cluster.snapshot import Snapshot

DESCRIBED = 500
"""Characters of free text that are kept."""

SHOWN = 5
"""Events of one fault that are kept: the newest."""


class Reason(StrEnum):
    """Reasons of the `capacity` detector."""

    NODE_UNHEALTHY = "node_unhealthy"
    PROVISIONING_FAILED = "provisioning_failed"
    QUOTA_ABOVE_CAPACITY = "quota_above_capacity"


def node_finding(
    detector: str,
    fault: NodeFault,
    snapshot: Snapshot,
    inventory: Inventory,
    cluster: ClusterPolicy,
) -> Finding:
    """Make the finding of an unhealthy or lost node."""
    name = fault.name
    node, instance = inventory.nodes.get(name), inventory.instances.get(name)
    damping = cluster.thresholds.capacity.damping_minutes
    if fault.why == (NEVER_JOINED,):  # it has been waited for
        damping = max(0, damping - int(JOINING.total_seconds() // 60))
    action = f"kubectl describe node {quote(name)}"
    if node is None:
        action = _aws(cluster, "describe-cluster-node", "--node-id", name.removeprefix("hyperpod-"))
    return Finding(
        detector=detector,
        subject=f"Node/{name}",
        reason=Reason.NODE_UNHEALTHY.value,
        severity=cluster.thresholds.capacity.severity,
        team=None,
        since=fault.since,
        gpus=tidy(inventory.accelerators_of(name)),
        gpu_hours=None,
        cost_usd=None,
        action=action,
        damping_minutes=damping,
        evidence={
            "why": list(fault.why),
            "ready": node.ready if node else None,
            "health": node.health if node else None,
            "schedulable": node.schedulable if node else None,
            "instance_type": inventory.type_of(name),
            "instance_id": instance.instance_id if instance else None,
            **_group(inventory, inventory.claimant(name)),
            "status": instance.status if instance else None,
            "message": instance.message[:DESCRIBED] if instance else None,
            "node_recovery": inventory.node_recovery,
            "workloads": _workloads(one for one in snapshot.accelerators if one.node == name),
        },
    )


def failure_finding(
    detector: str, fault: ProvisioningFault, inventory: Inventory, cluster: ClusterPolicy
) -> Finding:
    """Make the finding of an instance, or of a group's, that does not come."""
    instance = inventory.instances.get(node_name(fault.instance_id or ""))
    of_group = inventory.groups.get(fault.group or "")
    types = of_group.instance_types if of_group else ()
    kind = instance.instance_type if instance else types[0] if len(types) == 1 else None
    each = inventory.of_type(kind)
    many = 1 if fault.instance_id else inventory.missing(fault.group) or 0
    where = (
        ("--node-id", fault.instance_id)
        if fault.instance_id
        else ("--instance-group-name", str(fault.group))
    )
    return Finding(
        detector=detector,
        subject=fault.subject,
        reason=Reason.PROVISIONING_FAILED.value,
        severity=Severity.INFO,
        team=None,
        since=fault.events[0].at,
        gpus=tidy((each or 0) * many),
        gpu_hours=None,
        cost_usd=None,
        action=_aws(cluster, "list-cluster-events", *where),
        damping_minutes=cluster.thresholds.capacity.damping_minutes,
        evidence={
            "instance_id": fault.instance_id,
            "instance_type": kind,
            "accelerators_each": each,
            **_group(inventory, fault.group),
            "status": instance.status if instance else None,
            "message": instance.message[:DESCRIBED] if instance else None,
            "event_count": len(fault.events),
            "events": [
                {
                    "id": event.id,
                    "at": stamp(event.at),
                    "resource_type": event.resource_type,
                    "description": event.description[:DESCRIBED],
                }
                for event in fault.events[-SHOWN:]
            ],
        },
    )


def quota_finding(
    detector: str,
    flavor: FlavorCapacity,
    snapshot: Snapshot,
    before: datetime | None,
    cluster: ClusterPolicy,
) -> Finding:
    """Make the finding of quotas that the nodes of their flavor cannot serve.

    It may have begun after the snapshot before (None: there is none), where it was not yet so.
    """
    began = flavor.began or snapshot.at
    teams = {
        queue.name: team_of_queue(queue, snapshot, cluster) for queue in snapshot.cluster_queues
    }
    return Finding(
        detector=detector,
        subject=f"ResourceFlavor/{flavor.flavor}",
        reason=Reason.QUOTA_ABOVE_CAPACITY.value,
        severity=cluster.thresholds.capacity.severity,
        team=None,
        since=max(began, before) if before else began,
        gpus=tidy(flavor.missing),
        gpu_hours=None,
        cost_usd=None,
        action=_nodes_of(flavor.flavor, snapshot),
        damping_minutes=cluster.thresholds.capacity.damping_minutes,
        evidence={
            "quota": tidy(flavor.quota),
            "capacity": tidy(flavor.capacity),
            "usable": tidy(flavor.usable),
            "missing": tidy(flavor.missing),
            "queues": [
                {
                    "team": team.name if (team := teams.get(queue)) else None,
                    "queue": queue,
                    "nominal": tidy(nominal),
                }
                for queue, nominal in sorted(flavor.queues.items())
            ],
            "cohorts": [
                {"cohort": cohort, "nominal": tidy(nominal)}
                for cohort, nominal in sorted(flavor.cohorts.items())
            ],
            "not_usable": [
                {"node": one.node, "why": one.why, "accelerators": tidy(one.accelerators)}
                for one in flavor.unusable
            ],
            "policy_capacity": sum(g.count * g.accelerators_per_instance for g in cluster.capacity),
            "policy_quotas": sum(team.accelerators for team in cluster.teams),
            "policy_buffer": cluster.buffer_accelerators,
        },
    )


def _group(inventory: Inventory, name: str | None) -> dict[str, Any]:
    state = inventory.groups.get(name or "")
    return {
        "group": name,
        "group_current": state.current if state else None,
        "group_target": state.target if state else None,
    }


def _workloads(accelerators: Iterable[Accelerator]) -> list[dict[str, Any]]:
    """Count the accelerators of a node by the job that holds them."""
    held: dict[str, list[float]] = defaultdict(list)
    for one in accelerators:
        held[one.holder.owner.subject].append(one.fraction)
    # Sorted, so that the sum is the same whatever the order.
    return [
        {"subject": subject, "gpus": tidy(sum(sorted(held[subject])))} for subject in sorted(held)
    ]


def _nodes_of(flavor: str, snapshot: Snapshot) -> str:
    """Give the kubectl line that lists the nodes of a flavor with their health."""
    found = (one.node_labels for one in snapshot.resource_flavors if one.name == flavor)
    labels = next(found, None) or (
        {"node.kubernetes.io/instance-type": flavor} if flavor.startswith("ml.") else {}
    )
    chosen = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    select = f"-l {quote(chosen)} " if chosen else ""
    return f"kubectl get nodes {select}-L sagemaker.amazonaws.com/node-health-status"


def _aws(cluster: ClusterPolicy, command: str, option: str, value: str) -> str:
    return (
        f"aws sagemaker {command} --region {quote(cluster.region)} "
        f"--cluster-name {quote(cluster.name)} {option} {quote(value)}"
    )
