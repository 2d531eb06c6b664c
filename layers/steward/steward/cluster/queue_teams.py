"""Whose a ClusterQueue is."""

from steward.cluster.kueue import ClusterQueue
from steward.cluster.policy import ClusterPolicy, Scope, Team
from steward.cluster.snapshot import Snapshot

_SUFFIX = "-clusterqueue"
"""HyperPod names a team's queue `<its namespace>-clusterqueue`."""


def namespaces_of(queue: ClusterQueue, snapshot: Snapshot) -> tuple[str, ...]:
    """Name the namespaces that use a queue: those of its LocalQueues, else the one in its name."""
    local = {q.namespace for q in snapshot.local_queues if q.cluster_queue == queue.name}
    if local or not queue.name.endswith(_SUFFIX):
        return tuple(sorted(local))
    return (queue.name.removesuffix(_SUFFIX),)


def team_of_queue(queue: ClusterQueue, snapshot: Snapshot, cluster: ClusterPolicy) -> Team | None:
    """Find the team of a queue; None for HyperPod's own, and for one that several teams share."""
    if queue.shares_idle:
        return None
    named = cluster.team_of(queue.name.removesuffix(_SUFFIX))
    if named:
        return named
    found = [cluster.team_of(namespace) for namespace in namespaces_of(queue, snapshot)]
    names = {team.name if team else None for team in found}
    return found[0] if len(names) == 1 else None


def scope_of_queue(queue: ClusterQueue, snapshot: Snapshot, cluster: ClusterPolicy) -> Scope:
    """Tell which thresholds hold for a queue as a whole."""
    team = team_of_queue(queue, snapshot, cluster)
    namespaces = namespaces_of(queue, snapshot)
    return Scope(
        team=team.name if team else None,
        namespace=namespaces[0] if len(namespaces) == 1 else None,
    )
