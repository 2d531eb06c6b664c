"""Why a workload waits, as the queues, quotas and nodes show it: what Kueue would say, were it asked now."""

from steward.cluster.kueue import Workload
from steward.cluster.pending.nodes import Nodes
from steward.cluster.pending.queues import Place, Queues
from steward.cluster.pending.sentences import (
    beyond,
    faulty,
    in_pieces,
    lacking,
    too_big,
    uncovered,
    unexplained,
)
from steward.cluster.pending.shown import Shown
from steward.cluster.snapshot import Snapshot
from steward.cluster.weighing import Quotas, Weighed
from steward.cluster.workloads import EVICTED, PREEMPTED, QUOTA_RESERVED, reserves, subject_of

_COHORTS = "kubernetes/cohorts"
_DEVICES = ("nvidia.com/", "aws.amazon.com/neuron")
"""Resources that only a flavor with accelerators has; what else a queue does not cover may be excluded from quota."""

_NO_UIDS = "UID: UNKNOWN"


class Objects:
    """The objects of a snapshot, asked for one pending workload at a time."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.queues = Queues(snapshot)
        self._nodes = Nodes(snapshot)
        self._quotas = Quotas(snapshot.cluster_queues, snapshot.cohorts, snapshot.workloads)
        self._evicted = [
            one for one in snapshot.workloads if reserves(one) and _being_preempted(one)
        ]

    def show(self, workload: Workload) -> Shown:
        """Say why a pending workload waits, whatever Kueue's message says."""
        if part := self.queues.unread(workload):
            return Shown(unread=part)
        if fault := self.queues.fault(workload):
            return faulty(least_requests(workload), fault)
        place = self.queues.place(workload)
        if place is None or self._cohorts_unread:
            return Shown(unread=_COHORTS)
        weighed = self._weigh(place, workload)
        return (
            self._never(workload, place, weighed)
            or self._in_line(workload, place, weighed)
            or self._lacking(workload, place, weighed)
            or self._in_pieces(workload, weighed)
            or unexplained(place, weighed, self._without_class(workload, place))
        )

    def available(self, workload: Workload, flavor: str, resource: str) -> float | None:
        """Tell what a workload's queue may still reserve; None where that is not known."""
        place = None if self.queues.unread(workload) else self.queues.place(workload)
        if place is None or self._cohorts_unread:
            return None
        rows = {(row.flavor, row.resource) for row in place.queue.rows}
        if (flavor, resource) not in rows:
            return None
        return self._quotas.tree(flavor, resource).available(place.queue.name)

    @property
    def _cohorts_unread(self) -> bool:
        part = self._snapshot.part(_COHORTS)
        return bool(self._snapshot.refused(_COHORTS)) or bool(part and part.left_out)

    def _weigh(self, place: Place, workload: Workload) -> Weighed:
        return self._quotas.weigh(place.queue.name, least_requests(workload))

    def _never(self, workload: Workload, place: Place, weighed: Weighed) -> Shown | None:
        names = [name for name in weighed.uncovered if name.startswith(_DEVICES)]
        if names:
            return uncovered(place, names[0], least_requests(workload)[names[0]])
        if never := [check for check in weighed.checks if not check.ever]:
            return beyond(place, never)
        flavors: dict[str, list[str]] = {}
        for row in place.queue.rows:
            flavors.setdefault(row.resource, []).append(row.flavor)
        found = self._nodes.too_big(workload, flavors)
        return too_big(found) if found else None

    def _in_line(self, workload: Workload, place: Place, weighed: Weighed) -> Shown | None:
        """Say so of what was never evaluated: it waits for its turn, whatever is free."""
        if evaluated(workload) or not place.ahead:
            return None
        return unexplained(place, weighed, self._without_class(workload, place))

    def _lacking(self, workload: Workload, place: Place, weighed: Weighed) -> Shown | None:
        if not weighed.lacking:
            return None
        victims = [subject_of(one) for one in self._victims(workload, place)]
        return lacking(weighed, sorted(victims))

    def _victims(self, workload: Workload, place: Place) -> list[Workload]:
        """Workloads being evicted for this one; where no text says for whom, for the head."""
        tree = {place.queue.name}
        if weighed := [(row.flavor, row.resource) for row in place.queue.rows]:
            tree |= set(self._quotas.tree(*weighed[0]).siblings(place.queue.name))
        found = []
        for victim in self._evicted:
            evicted = victim.condition(EVICTED)
            message = evicted.message if evicted else ""
            named = "UID: " in message and _NO_UIDS not in message
            meant = f"UID: {workload.uid}" in message if named else not place.ahead
            if meant and victim.cluster_queue in tree:
                found.append(victim)
        return found

    def _in_pieces(self, workload: Workload, weighed: Weighed) -> Shown | None:
        flavors = {check.resource: [check.flavor] for check in weighed.checks}
        pieces = self._nodes.pieces(workload, flavors)
        return in_pieces(pieces, weighed) if pieces else None

    def _without_class(self, workload: Workload, place: Place) -> str | None:
        """Say what is wrong with the priority class of a workload that others overtake."""
        if place.head is None or place.head.priority <= workload.priority:
            return None  # the head has the highest priority of all
        if workload.priority_class is None:
            # A priority that is not 0 comes from a class, and one without a class overtakes by itself.
            theirs = workload.priority == 0 and place.head.priority_class is not None
            return "it names no priority class" if theirs else None
        read = self._snapshot.readable("kubernetes/workloadpriorityclasses")
        known = {one.name for one in self._snapshot.priority_classes}
        ours = workload.priority_class_kind == "WorkloadPriorityClass"
        if read and ours and workload.priority_class not in known:
            return f"its priority class {workload.priority_class} does not exist"
        return None


def evaluated(workload: Workload) -> bool:
    """Whether Kueue has considered it since it was created, or evicted last."""
    reserved, evicted = workload.condition(QUOTA_RESERVED), workload.condition(EVICTED)
    if reserved is None or not reserved.message:
        return False
    # On an eviction Kueue sets QuotaReserved to False with the eviction's own text.
    return evicted is None or evicted.message != reserved.message


def least_requests(workload: Workload) -> dict[str, float]:
    """Give the least that it could start with: all of it, but for pods that partial admission spares."""
    requests = dict(workload.requests)
    for pod_set in workload.pod_sets:
        spared = pod_set.count - pod_set.min_count if pod_set.min_count is not None else 0
        for resource, amount in pod_set.per_pod.items():
            if resource in requests and spared > 0:
                requests[resource] = max(0.0, requests[resource] - spared * amount)
    return requests


def _being_preempted(workload: Workload) -> bool:
    evicted = workload.condition(EVICTED)
    return evicted is not None and evicted.status is True and evicted.reason == PREEMPTED
