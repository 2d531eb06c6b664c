"""What the objects show, put into sentences: what a workload needs, what is there, what would change it."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from steward.cluster.amounts import accelerators_each
from steward.cluster.figures import tidy
from steward.cluster.pending.amounts import said
from steward.cluster.pending.nodes import Pieces, TooBig
from steward.cluster.pending.queues import Fault, Place
from steward.cluster.pending.reasons import Reason
from steward.cluster.pending.shown import Shown, request
from steward.cluster.quota import Limit
from steward.cluster.weighing import Check, Weighed

_NAMED, _LISTED = 8, 20
"""Nodes with room that a sentence names, and that the evidence lists: those with most of it."""


def lacking(weighed: Weighed, victims: Sequence[str]) -> Shown:
    """Say what is missing now: quota that others use, or a limit on what may be borrowed.

    What lacks for want of quota decides; a limit only where nothing else lacks.
    """
    check = next((one for one in weighed.lacking if not one.limited), weighed.lacking[0])
    limits = [limit for limit in check.limits if limit.needed > limit.limit]
    evidence: dict[str, Any] = {"missing": [_missing(one) for one in weighed.lacking]}
    if limits:
        evidence["limits"] = [_limit(limit) for limit in limits]
    if victims:
        several = f"{_several(len(victims), 'workload')} being preempted still hold{'s' if len(victims) == 1 else ''} quota"
        text = f"{_needs(check)}; {_free(check)} now, and {several}. It starts once that is free."
        return _of(
            check, Reason.WAITING_FOR_PREEMPTION, text, {**evidence, "victims": list(victims)}
        )
    more = said(check.resource, check.missing)
    if weighed.limited and limits and all(limit.limit > 0 for limit in limits):
        rise = said(check.resource, max(limit.needed - limit.limit for limit in limits))
        names = " and ".join(
            f"{limit.kind.value} {limit.name} ({said(check.resource, limit.limit)})"
            for limit in limits
        )
        text = f"{_needs(check)}; {_free(check)} to its queue within the borrowing limit of {names}, while others leave enough idle. It would start if {more} more of its own quota were free, or if the borrowing limit rose by {rise}."
        return _of(check, Reason.BORROW_LIMIT, text, evidence)
    barred = any(limit.limit == 0 for limit in limits)
    also = " Its queue may not borrow (borrowing limit 0)." if barred else ""
    text = f"{_needs(check)}; {_free(check)} to its queue now.{also} It would start if {more} more were free."
    return _of(check, Reason.WAITING_FOR_QUOTA, text, evidence)


def _limit(limit: Limit) -> dict[str, Any]:
    return {
        "kind": limit.kind.value,
        "name": limit.name,
        "limit": tidy(limit.limit),
        "needed": tidy(limit.needed),
    }


def faulty(requests: Mapping[str, float], fault: Fault) -> Shown:
    """Say what is wrong with a queue that admits nobody."""
    evidence: dict[str, Any] = {"queue_fault": {"kind": fault.kind, "name": fault.name}}
    if fault.reason is Reason.MISSING_QUEUE:
        evidence |= {"nearest": fault.nearest, "nearest_namespace": fault.nearest_namespace}
        named = f"{fault.kind} {fault.name} does not exist" if fault.name else "It has no queue"
        hint = f" The nearest name is {_nearest(fault)}." if fault.nearest else ""
        text = f"{named}: {fault.detail}.{hint} It can never be admitted like this."
    elif fault.reason is Reason.UNKNOWN_FLAVOR:
        evidence["flavors"] = list(fault.flavors)
        them = "it" if len(fault.flavors) == 1 else "them"
        text = f"{fault.kind} {fault.name} names {_list(fault.flavors, 'a ResourceFlavor that does not exist', 'ResourceFlavors that do not exist')}, so it admits nobody. It can be admitted once an administrator creates {them} or takes {them} out of the queue."
    else:
        text = f"{fault.kind} {fault.name} admits nobody: {fault.detail.rstrip('.')}. It can be admitted once an administrator starts the queue again."
    resource = _leading(requests)
    need = requests[resource] if resource else None
    return Shown(
        reason=fault.reason, sentence=text, resource=resource, need=need, evidence=evidence
    )


def uncovered(place: Place, resource: str, need: float) -> Shown:
    """Say that no flavor of the queue has a resource."""
    return Shown(
        reason=Reason.UNKNOWN_FLAVOR,
        sentence=f"{request(resource, None, need)}; no flavor of ClusterQueue {place.queue.name} has {resource} ({_offered(place)}). It can run only with a resource that the queue has, or in another queue.",
        resource=resource,
        need=need,
    )


def beyond(place: Place, checks: list[Check]) -> Shown:
    """Say that a request is larger than the queue could ever hold."""
    check = checks[0]
    most = said(check.resource, check.potential)
    text = f"{_needs(check)}; ClusterQueue {place.queue.name} can never hold more than {most}, however idle the cluster. It can run only if it asks for {most} at most, or with a larger quota."
    return _of(check, Reason.EXCEEDS_CAPACITY, text, {"missing": [_missing(one) for one in checks]})


def too_big(found: TooBig) -> Shown:
    """Say that one pod is larger than any node."""
    most = said(found.resource, found.largest)
    return Shown(
        reason=Reason.EXCEEDS_CAPACITY,
        sentence=f"One pod of {found.pod_set} needs {said(found.resource, found.need)}; no node has more than {most} to give ({found.node}). It can run only with pods of {most} at most: split the request over more of them.",
        resource=found.resource,
        need=found.need,
        available=found.largest,
        unplaceable=True,
        evidence={
            "per_pod": tidy(found.need),
            "largest_node": {"node": found.node, "allocatable": tidy(found.largest)},
        },
    )


def in_pieces(found: Pieces, weighed: Weighed) -> Shown:
    """Say that free accelerators lie on too many nodes."""
    check = next((one for one in weighed.checks if one.resource == found.resource), None)
    most = list(islice(found.free.items(), _LISTED))
    rooms = ", ".join(f"{node} {amount:g}" for node, amount in most[:_NAMED])
    total = sum(found.free.values())
    pods = "one pod needs" if found.pods == 1 else f"each of {found.pods} pods needs"
    return Shown(
        reason=Reason.FRAGMENTATION,
        sentence=f"Its quota fits and {said(found.resource, total)} are free, but in pieces: {pods} {said(found.resource, found.per_pod)} on one node, and the nodes have room for {_several(found.fitting, 'pod')} ({rooms}). It would start if workloads on fewer nodes ended, or with smaller pods.",
        resource=found.resource,
        flavor=check.flavor if check else None,
        need=check.need if check else None,
        available=check.available if check else None,
        evidence={
            "per_pod": tidy(found.per_pod),
            "pods": found.pods,
            "fitting": found.fitting,
            "nodes": [{"node": node, "free": tidy(room)} for node, room in most],
            "nodes_with_room": len(found.free),
        },
    )


def unexplained(place: Place, weighed: Weighed, classless: str | None) -> Shown:
    """Nothing but the queue stands in the way; the caller names the head and why it waits."""
    behind = _several(place.ahead, "workload")
    if classless:
        reason = Reason.NO_PRIORITY_CLASS
        above = "others of higher priority go first"
        text = f"Waits behind {behind} in ClusterQueue {place.queue.name}: {classless}, so that {above}. It would move up with a priority class."
    elif place.ahead and place.strict:
        reason = Reason.BEHIND_HEAD
        text = f"ClusterQueue {place.queue.name} admits strictly in order (StrictFIFO), and {behind} are ahead. It starts after them."
        if place.ahead == 1:
            text = text.replace("are ahead. It starts after them", "is ahead. It starts after it")
    elif place.ahead:
        reason = Reason.NOT_EVALUATED
        text = f"Kueue has not considered it yet: it is behind {behind} in ClusterQueue {place.queue.name}, which considers one at a time."
    else:
        reason = Reason.NOT_EVALUATED
        text = f"It is first in ClusterQueue {place.queue.name} and its quota fits, but Kueue has not admitted it yet. If this lasts, Kueue itself needs a look."
    check = next(iter(weighed.lacking), next(iter(weighed.checks), None))
    evidence = {"missing": [_missing(one) for one in weighed.lacking]} if weighed.lacking else {}
    return _of(check, reason, text, evidence) if check else Shown(reason=reason, sentence=text)


def _of(check: Check, reason: Reason, sentence: str, evidence: dict[str, Any]) -> Shown:
    return Shown(
        reason=reason,
        sentence=sentence,
        resource=check.resource,
        flavor=check.flavor,
        need=check.need,
        available=check.available,
        evidence=evidence,
    )


def _missing(check: Check) -> dict[str, Any]:
    return {
        "resource": check.resource,
        "flavor": check.flavor,
        "need": tidy(check.need),
        "available": tidy(check.available),
        "unlimited": tidy(check.unlimited),
        "potential": tidy(check.potential),
    }


def _needs(check: Check) -> str:
    return request(check.resource, check.flavor, check.need)


def _free(check: Check) -> str:
    return f"{said(check.resource, check.available)} {'is' if check.available == 1 else 'are'} free"


def _leading(requests: Iterable[str]) -> str | None:
    """Pick the resource that a workload is known by: accelerators before anything else."""
    return min(requests, key=lambda name: (accelerators_each(name) == 0, name), default=None)


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _list(names: tuple[str, ...], one: str, many: str) -> str:
    return f"{one if len(names) == 1 else many} ({', '.join(names)})"


def _nearest(fault: Fault) -> str:
    where = f" in namespace {fault.nearest_namespace}" if fault.nearest_namespace else ""
    return f"{fault.nearest}{where}"


def _offered(place: Place) -> str:
    resources = sorted({row.resource for row in place.queue.rows})
    return f"it has {', '.join(resources)}" if resources else "it has no quota at all"
