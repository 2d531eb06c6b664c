"""The queues as pending workloads stand in them: who is ahead, and which queues cannot admit at all."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cached_property

import msgspec

from steward.cluster.kueue import ClusterQueue, Condition, LocalQueue, Workload
from steward.cluster.lines import STRICT, lines
from steward.cluster.pending.reasons import Reason
from steward.cluster.snapshot import Snapshot

LOCAL_QUEUES, CLUSTER_QUEUES = "kubernetes/localqueues", "kubernetes/clusterqueues"

_FLAVORS = "kubernetes/resourceflavors"

_ACTIVE, _FLAVOR_NOT_FOUND, _NOT_STOPPED = "Active", "FlavorNotFound", "None"
_NEAR = 0.6
"""Least likeness (difflib) at which a name passes for a slip of another."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Why no workload of a queue can be admitted.

    Attributes
    ----------
    kind, name : str
        LocalQueue or ClusterQueue; which one.
    detail : str
        For people: what is wrong with it.
    nearest, nearest_namespace : str or None
        Of a missing one: the existing name that is most like it, or the only one of the workload's
        namespace; and the namespace of a LocalQueue.
    flavors : tuple of str
        ResourceFlavors that it names and that do not exist.
    """

    reason: Reason
    kind: str
    name: str
    detail: str
    nearest: str | None = None
    nearest_namespace: str | None = None
    flavors: tuple[str, ...] = ()


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pending workload stands in its queue.

    Attributes
    ----------
    line : tuple of Workload
        All that wait, in the queue's order.
    ahead : int
        How many of them come before it.
    """

    queue: ClusterQueue
    line: tuple[Workload, ...]
    ahead: int

    @property
    def head(self) -> Workload | None:
        """Who is first, where that is somebody else."""
        return self.line[0] if self.ahead else None

    @property
    def strict(self) -> bool:
        """Whether nobody may pass the head."""
        return self.queue.strategy == STRICT


class Queues:
    """The queues of a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
        With its LocalQueues and ClusterQueues, as far as they were read.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._local = {(one.namespace, one.name): one for one in snapshot.local_queues}
        self._cluster = {one.name: one for one in snapshot.cluster_queues}

    def unread(self, workload: Workload) -> str | None:
        """Name the part without which nothing can be said of a workload's queues, if there is one."""
        if not self._snapshot.readable(LOCAL_QUEUES):
            return LOCAL_QUEUES
        local = self._local_queue(workload)
        if local is None:
            name = f"{workload.namespace}/{workload.queue}"
            left_out = self._left_out(LOCAL_QUEUES)
            return LOCAL_QUEUES if name in left_out or _nameless(left_out) else None
        # A ClusterQueue that is left out also takes its quota out of every sum.
        if not self._snapshot.readable(CLUSTER_QUEUES) or self._left_out(CLUSTER_QUEUES):
            return CLUSTER_QUEUES
        return None

    def cluster_queue(self, workload: Workload) -> str | None:
        """Name the ClusterQueue that a workload's LocalQueue leads to, whether it exists or not."""
        local = self._local_queue(workload)
        return local.cluster_queue if local else None

    def fault(self, workload: Workload) -> Fault | None:
        """Tell why a workload's queue admits nobody; None where it does, or is not known."""
        local = self._local_queue(workload)
        if local is None:
            return self._missing(workload)
        if local.stop_policy != _NOT_STOPPED:
            return _stopped("LocalQueue", local.name, local.stop_policy)
        return self._behind(local) or _inactive("LocalQueue", local.name, local.conditions)

    def _behind(self, local: LocalQueue) -> Fault | None:
        """Tell what is wrong with the ClusterQueue that a LocalQueue leads to."""
        queue = self._cluster.get(local.cluster_queue)
        if queue is None:
            return Fault(
                reason=Reason.MISSING_QUEUE,
                kind="ClusterQueue",
                name=local.cluster_queue,
                detail=f"LocalQueue {local.name} leads to it, and it does not exist",
                nearest=_nearest(local.cluster_queue, self._cluster),
            )
        if queue.stop_policy != _NOT_STOPPED:
            return _stopped("ClusterQueue", queue.name, queue.stop_policy)
        if missing := self._missing_flavors(queue):
            return Fault(
                reason=Reason.UNKNOWN_FLAVOR,
                kind="ClusterQueue",
                name=queue.name,
                detail="it names flavors that do not exist",
                flavors=missing,
            )
        return _inactive("ClusterQueue", queue.name, queue.conditions)

    def place(self, workload: Workload) -> Place | None:
        """Find where a workload stands; None where its queue is not known."""
        queue = self._cluster.get(self.cluster_queue(workload) or "")
        if queue is None:
            return None
        line = self._lines.get(queue.name, ())
        ahead = self._positions.get(workload.uid, len(line))
        return Place(queue=queue, line=line, ahead=ahead)

    @cached_property
    def _positions(self) -> dict[str, int]:
        lines = self._lines.values()
        return {one.uid: position for line in lines for position, one in enumerate(line)}

    @cached_property
    def _lines(self) -> dict[str, tuple[Workload, ...]]:
        return lines(self._snapshot)

    def _local_queue(self, workload: Workload) -> LocalQueue | None:
        return self._local.get((workload.namespace, workload.queue or ""))

    def _left_out(self, name: str) -> tuple[str, ...]:
        part = self._snapshot.part(name)
        return part.left_out if part else ()

    def _missing(self, workload: Workload) -> Fault:
        here = [name for namespace, name in self._local if namespace == workload.namespace]
        elsewhere = {name: namespace for namespace, name in sorted(self._local, reverse=True)}
        wanted = workload.queue or ""
        nearest = _nearest(wanted, here) or (here[0] if len(here) == 1 else None)
        namespace: str | None = workload.namespace
        if nearest is None:
            nearest = _nearest(wanted, elsewhere)
            namespace = elsewhere.get(nearest or "")
        return Fault(
            reason=Reason.MISSING_QUEUE,
            kind="LocalQueue",
            name=wanted,
            detail=f"namespace {workload.namespace} has no such queue"
            if wanted
            else "the workload names none",
            nearest=nearest,
            nearest_namespace=namespace,
        )

    def _missing_flavors(self, queue: ClusterQueue) -> tuple[str, ...]:
        """Name the flavors that keep a queue from being active, or will once it says whether it is."""
        told = any(one.type == _ACTIVE for one in queue.conditions)
        blamed = _passive(queue.conditions, _FLAVOR_NOT_FOUND) is not None
        if not self._snapshot.readable(_FLAVORS) or (told and not blamed):
            return ()
        left_out = set(self._left_out(_FLAVORS))
        if any(" " in name for name in left_out):
            return ()  # one that does not say its name may be any
        known = {one.name for one in self._snapshot.resource_flavors} | left_out
        # A queue that says nothing of itself is not judged by a list that is empty.
        return tuple(sorted({row.flavor for row in queue.rows} - known)) if known or blamed else ()


def _nameless(left_out: Iterable[str]) -> bool:
    """Whether something was left out of a list of namespaced objects that does not say its name."""
    return any("/" not in name for name in left_out)


def _nearest(name: str, names: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, sorted(names), n=1, cutoff=_NEAR)), None)


def _stopped(kind: str, name: str, policy: str) -> Fault:
    detail = f"it is stopped (stopPolicy {policy})"
    return Fault(reason=Reason.QUEUE_INACTIVE, kind=kind, name=name, detail=detail)


def _passive(conditions: Iterable[Condition], reason: str | None = None) -> Condition | None:
    """Find the condition that says that a queue is not active, for a reason if one is named."""
    found = (one for one in conditions if one.type == _ACTIVE and one.status is False)
    return next((one for one in found if reason in {None, one.reason}), None)


def _inactive(kind: str, name: str, conditions: Iterable[Condition]) -> Fault | None:
    condition = _passive(conditions)
    if condition is None:
        return None
    detail = f"it is not active ({condition.reason})"
    if condition.message:
        detail = f"{detail}: {condition.message}"
    return Fault(reason=Reason.QUEUE_INACTIVE, kind=kind, name=name, detail=detail)
