"""What nodes have room for: a pod that none of them could ever hold, and room that lies in pieces."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from steward.cluster.amounts import accelerators_each
from steward.cluster.kueue import PodSet, ResourceFlavor, Workload
from steward.cluster.snapshot import Node, Snapshot

Flavors = Mapping[str, Collection[str]]
"""Resource to the flavors that it may come from."""

_NODES, _PODS = "kubernetes/nodes", "kubernetes/pods"
_SCHEDULABLE = frozenset({None, "Schedulable"})
"""HyperPod's label of a node that may take pods; other clusters have none."""


class TooBig(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that asks for more than any node has.

    Attributes
    ----------
    need, largest : float
        What one pod asks for; the most that a node of its flavors has to give.
    """

    pod_set: str
    resource: str
    need: float
    largest: float
    node: str


class Pieces(msgspec.Struct, frozen=True, kw_only=True):
    """Room that would do in sum, and not node by node.

    Attributes
    ----------
    per_pod, pods, fitting : float, int, int
        What one pod asks for; pods of the set; pods that the nodes have room for.
    free : dict of str to float
        Node to what is free there, most first.
    """

    pod_set: str
    resource: str
    per_pod: float
    pods: int
    fitting: int
    free: dict[str, float]


class Nodes:
    """The nodes of a snapshot and what accelerators are free on them."""

    def __init__(self, snapshot: Snapshot) -> None:
        nodes = snapshot.part(_NODES)
        whole = snapshot.readable(_NODES) and not (nodes and nodes.left_out)
        self._nodes = tuple(sorted(snapshot.nodes, key=lambda node: node.name)) if whole else ()
        self._pods_read = snapshot.readable(_PODS)
        self._flavors = {flavor.name: flavor for flavor in snapshot.resource_flavors}
        self._by_flavor: dict[str, list[Node]] = {}
        self._free: dict[tuple[tuple[str, ...], str], dict[str, float]] = {}
        self._most: dict[tuple[tuple[str, ...], str], tuple[float, str] | None] = {}
        # A MIG slice is told from another by the fraction that it is.
        self._held = Counter((one.node, round(one.fraction, 6)) for one in snapshot.accelerators)

    def too_big(self, workload: Workload, flavors: Flavors) -> TooBig | None:
        """Find a pod that asks for more than any node of its flavors has; None where none does.

        Parameters
        ----------
        workload : Workload
            With what one pod of each of its sets asks for.
        flavors : mapping of str to collection of str
            Resource to the flavors that it may come from.

        Notes
        -----
        A flavor without nodes may yet get larger ones, and a resource that no node has may yet be
        announced: neither is judged.
        """
        for pod_set in workload.pod_sets:
            named = _flavors(pod_set, workload, flavors)
            if not all(self._of([name]) for name in named):
                continue
            for resource, need in _by_weight(pod_set, workload):
                largest = self._largest(tuple(named), resource)
                if largest and need > largest[0] and pod_set.count:
                    return TooBig(
                        pod_set=pod_set.name,
                        resource=resource,
                        need=need,
                        largest=largest[0],
                        node=largest[1],
                    )
        return None

    def pieces(self, workload: Workload, flavors: Flavors) -> Pieces | None:
        """Find a pod set whose pods the free accelerators of its flavors' nodes hold in sum only."""
        if not self._pods_read:
            return None
        for pod_set in workload.pod_sets:
            named = tuple(_flavors(pod_set, workload, flavors))
            for resource, need in _by_weight(pod_set, workload):
                if not accelerators_each(resource):
                    continue
                free = self._rooms(named, resource)
                fitting = sum(int(room // need) for room in free.values())
                if fitting < pod_set.count and sum(free.values()) >= need * pod_set.count:
                    return Pieces(
                        pod_set=pod_set.name,
                        resource=resource,
                        per_pod=need,
                        pods=pod_set.count,
                        fitting=fitting,
                        free=free,
                    )
        return None

    def _rooms(self, flavors: tuple[str, ...], resource: str) -> dict[str, float]:
        """Tell what is free on the nodes of some flavors that take pods, most first."""
        key = (flavors, resource)
        if key not in self._free:
            each = round(accelerators_each(resource), 6)
            free = {
                node.name: _allocatable(node, resource) - self._held[node.name, each]
                for node in self._of(flavors)
                if _takes_pods(node)
            }
            most_first = sorted(free.items(), key=lambda item: (-item[1], item[0]))
            self._free[key] = {name: room for name, room in most_first if room > 0}
        return self._free[key]

    def _largest(self, flavors: tuple[str, ...], resource: str) -> tuple[float, str] | None:
        """Find how much of a resource a node has at most, and which one."""
        key = (flavors, resource)
        if key not in self._most:
            rooms = [(_allocatable(node, resource), node.name) for node in self._of(flavors)]
            most = min(((-room, name) for room, name in rooms if room > 0), default=None)
            self._most[key] = (-most[0], most[1]) if most else None
        return self._most[key]

    def _of(self, flavors: Iterable[str]) -> list[Node]:
        """Nodes that some flavors' quota is of, in the order of their names."""
        found = {node.name: node for name in flavors for node in self._of_one(name)}
        return [found[name] for name in sorted(found)]

    def _of_one(self, name: str) -> list[Node]:
        if name not in self._by_flavor:
            self._by_flavor[name] = self._look_up(name)
        return self._by_flavor[name]

    def _look_up(self, name: str) -> list[Node]:
        flavor = self._flavors.get(name)
        if flavor is not None and flavor.node_labels:
            return [node for node in self._nodes if _carries(node, flavor)]
        # HyperPod names flavors after instance types. Else one without labels is of every node.
        named_after = [node for node in self._nodes if node.instance_type == name]
        return named_after or (list(self._nodes) if flavor is not None else [])


def _flavors(pod_set: PodSet, workload: Workload, flavors: Flavors) -> list[str]:
    """Flavors whose nodes a set's pods may run on: those of its accelerators, else of anything."""
    asked = [name for name, _ in _by_weight(pod_set, workload) if name in flavors]
    leading = [name for name in asked if accelerators_each(name)] or asked
    return sorted({flavor for name in leading for flavor in flavors[name]})


def _carries(node: Node, flavor: ResourceFlavor) -> bool:
    return all(
        node.labels.get(label) == value
        or (label.endswith("/instance-type") and node.instance_type == value)
        for label, value in flavor.node_labels.items()
    )


def _takes_pods(node: Node) -> bool:
    return node.ready and node.schedulable and node.health in _SCHEDULABLE


def _by_weight(pod_set: PodSet, workload: Workload) -> list[tuple[str, float]]:
    """Give what one pod asks for: accelerators first, then by name."""
    amounts = pod_set.per_pod
    if not amounts and len(workload.pod_sets) == 1 and pod_set.count:
        # Its template names nothing: what Kueue counted for all pods is what each asks for.
        amounts = {name: one / pod_set.count for name, one in workload.requests.items()}
    asked = ((name, amount) for name, amount in amounts.items() if amount > 0)
    return sorted(asked, key=lambda item: (accelerators_each(item[0]) == 0, item[0]))


def _allocatable(node: Node, resource: str) -> float:
    """Tell what pods may request of a node: its capacity where it says nothing of that."""
    if not node.allocatable and accelerators_each(resource) == 1:
        return float(node.accelerators or 0)
    return node.allocatable.get(resource, 0.0)
