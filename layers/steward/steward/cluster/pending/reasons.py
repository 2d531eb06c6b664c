"""Why a workload waits, and which of the reasons say the same with more or less detail."""

from enum import StrEnum


class Reason(StrEnum):
    """Reasons of the `pending` detector."""

    MISSING_QUEUE = "missing_queue"
    QUEUE_INACTIVE = "queue_inactive"
    UNKNOWN_FLAVOR = "unknown_flavor"
    EXCEEDS_CAPACITY = "exceeds_capacity"
    WAITING_FOR_QUOTA = "waiting_for_quota"
    BORROW_LIMIT = "borrow_limit"
    WAITING_FOR_PREEMPTION = "waiting_for_preemption"
    FRAGMENTATION = "fragmentation"
    BEHIND_HEAD = "behind_head"
    NOT_EVALUATED = "not_evaluated"
    RESERVED_WITHOUT_PODS = "reserved_without_pods"
    NO_PRIORITY_CLASS = "no_priority_class"


NEVER = frozenset(
    {
        Reason.MISSING_QUEUE,
        Reason.QUEUE_INACTIVE,
        Reason.UNKNOWN_FLAVOR,
        Reason.EXCEEDS_CAPACITY,
    }
)
"""Nothing that other workloads do can end these."""

UNEXPLAINED = frozenset({Reason.BEHIND_HEAD, Reason.NOT_EVALUATED, Reason.NO_PRIORITY_CLASS})
"""The objects show nothing that stands in the way but the queue itself."""

_QUOTA = frozenset({Reason.WAITING_FOR_QUOTA, Reason.BORROW_LIMIT, Reason.WAITING_FOR_PREEMPTION})

_WHY_INACTIVE = frozenset({Reason.MISSING_QUEUE, Reason.UNKNOWN_FLAVOR})
"""Why a queue is not active: of its workloads Kueue says no more than that."""

_UNSEEN = frozenset({Reason.UNKNOWN_FLAVOR, Reason.FRAGMENTATION})
"""Kueue also looks at taints, affinities and topologies: objects that show nothing do not deny it."""


def settle(message: Reason | None, objects: Reason | None) -> tuple[Reason | None, bool]:
    """Choose between what Kueue's message says and what the objects say.

    Returns
    -------
    Reason or None
        The more exact of two that say the same; else the message's; None where neither says.
    bool
        Whether the two contradict each other.
    """
    if message is None or objects is None or message is objects:
        return message or objects, False
    if message in _QUOTA and objects in _QUOTA:
        # A message never tells a limit from others' use, and a limit never that victims are chosen.
        return (objects if message is Reason.WAITING_FOR_QUOTA else message), False
    if message is Reason.QUEUE_INACTIVE and objects in _WHY_INACTIVE:
        return objects, False
    return message, message not in _UNSEEN or objects not in UNEXPLAINED
