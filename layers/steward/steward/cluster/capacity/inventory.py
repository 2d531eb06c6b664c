"""Nodes, instances and instance groups of a snapshot, side by side."""

from collections.abc import Iterable

from steward.cluster.amounts import accelerators_each, accelerators_in
from steward.cluster.capacity.memory import KnownNode
from steward.cluster.control_plane import ClusterNode
from steward.cluster.snapshot import Node, Snapshot

NODES = "kubernetes/nodes"
LIST, DESCRIBE = "sagemaker/ListClusterNodes", "sagemaker/DescribeCluster"
EVENTS = "sagemaker/ListClusterEvents"

UNHEALTHY = frozenset(
    {"Unschedulable", "UnschedulablePendingReboot", "UnschedulablePendingReplacement"}
)
"""HyperPod's health labels of a node that may not be used."""

FAILED = "Failure"
RUNNING = "Running"
SERVING = frozenset({RUNNING, "SystemUpdating"})
LEAVING = frozenset({"ShuttingDown", "NotFound"})
WORKING = frozenset({"Pending", "SystemUpdating", "DeepHealthCheckInProgress"})
"""SageMaker is at work on the instance: not a fault of it."""


class Inventory:
    """One snapshot's nodes, instances and groups, and which of the lists are whole.

    Parameters
    ----------
    snapshot : Snapshot
        As far as it was read.
    known : iterable of KnownNode
        What the memory knew before.
    """

    def __init__(self, snapshot: Snapshot, known: Iterable[KnownNode]) -> None:
        plane = snapshot.control_plane
        self.at = snapshot.at
        self.nodes = {node.name: node for node in snapshot.nodes}
        self.instances = {node_name(one.instance_id): one for one in plane.nodes}
        self.groups = {group.name: group for group in plane.groups}
        self.known = {node.name: node for node in known}
        self.node_recovery = plane.node_recovery
        self.nodes_whole = whole(snapshot, NODES)
        self.groups_whole = whole(snapshot, DESCRIBE)
        # No instance at all of groups that count some: one of the two is wrong.
        contradicted = not plane.nodes and any(group.current for group in plane.groups)
        self.instances_whole = whole(snapshot, LIST) and not contradicted
        self._types = {one.name: one.accelerators for one in snapshot.instance_types}
        self._serving: dict[str, int] = {}
        self._broken: dict[str, int] = {}
        for one in plane.nodes:
            if one.status in SERVING:
                self._serving[one.group] = self._serving.get(one.group, 0) + 1
            elif one.status == FAILED or one.status in LEAVING:
                self._broken[one.group] = self._broken.get(one.group, 0) + 1

    def group_of(self, name: str) -> str | None:
        """Name the instance group of a node, as far as it is known."""
        instance, known = self.instances.get(name), self.known.get(name)
        return instance.group if instance else known.group if known else None

    def claimant(self, name: str) -> str | None:
        """Name the group that a HyperPod node should be of: its own, else the only one of its type."""
        if (group := self.group_of(name)) or not name.startswith(node_name("")):
            return group
        kind = self.type_of(name)
        found = sorted(g.name for g in self.groups.values() if kind in g.instance_types)
        return found[0] if len(found) == 1 else None

    def claims(self, name: str) -> bool | None:
        """Whether the group of a node that is gone lacks an instance; None where nobody says."""
        group = self.claimant(name)
        if group is None and not self.groups_whole and name.startswith(node_name("")):
            return None
        missing = self.missing(group)
        return None if missing is None else missing > 0

    def type_of(self, name: str) -> str | None:
        """Tell the instance type of a node: its label, else its instance, else the memory."""
        node, instance = self.nodes.get(name), self.instances.get(name)
        if node and node.instance_type:
            return node.instance_type
        if instance:
            return instance.instance_type
        known = self.known.get(name)
        return known.instance_type if known else None

    def accelerators_of(self, name: str) -> float:
        """Count a node's accelerators; 0 where it has none, or where nobody says."""
        node, known = self.nodes.get(name), self.known.get(name)
        counted = (node.accelerators if node else None) or self.of_type(self.type_of(name))
        return float(counted or (known.accelerators if known else 0.0))

    def of_type(self, instance_type: str | None) -> int | None:
        """Count the accelerators of one instance; None where nobody says."""
        return self._types.get(instance_type) if instance_type else None

    def offered(self, node: Node) -> float:
        """Count the accelerators that pods may request on a node, in the units that it names."""
        named = [name for name in node.allocatable if accelerators_each(name)]
        if not named:
            # Without allocatable the kubelet has said nothing; with it, no device plugin has.
            return self.accelerators_of(node.name) if not node.allocatable else 0.0
        offered = accelerators_in(node.allocatable)
        # Neuron's plugin may name the same devices twice.
        return offered if node.accelerators is None else min(offered, float(node.accelerators))

    def missing(self, group: str | None) -> int | None:
        """Count the instances that a group lacks.

        Returns
        -------
        int or None
            Its target less what serves: of the group's own count and of the instances listed, the
            smaller one. 0 for a group that is no more, or for no group; None where the groups
            could not be read.
        """
        if group is None:
            return 0
        state = self.groups.get(group)
        if state is None:
            return 0 if self.groups_whole else None
        serving = self._serving.get(group, 0) if self.instances_whole else state.current
        return max(0, state.target - min(state.current, serving))

    def vacancies(self, group: str | None) -> int | None:
        """Count the instances that a group lacks and that are not listed as broken, either."""
        missing = self.missing(group)
        return None if missing is None else max(0, missing - self._broken.get(group or "", 0))

    def target(self, group: str | None) -> int | None:
        """Tell how many instances a group should have; None where that is not known."""
        state = self.groups.get(group or "")
        return state.target if state else None

    def unlisted(self, name: str) -> bool:
        """Whether a HyperPod node's instance is known to be listed no more."""
        group = self.group_of(name)
        return self.instances_whole and group is not None and name not in self.instances

    @property
    def dark(self) -> bool:
        """Whether SageMaker tells neither its instances nor its groups."""
        return not self.instances_whole and not self.groups_whole

    @property
    def joins(self) -> bool:
        """Whether instances can be told to be no nodes: nodes are named after them here."""
        return self.nodes_whole and (
            not self.nodes or not self.nodes.keys().isdisjoint(self.instances)
        )


def node_name(instance_id: str) -> str:
    """Name the Kubernetes node of an instance."""
    return f"hyperpod-{instance_id}"


def serves(instance: ClusterNode | None) -> bool:
    """Whether SageMaker says that an instance runs."""
    return instance is not None and instance.status in SERVING


def whole(snapshot: Snapshot, name: str) -> bool:
    """Whether a part was read and nothing of it left out."""
    part = snapshot.part(name)
    return snapshot.readable(name) and part is not None and not part.left_out
