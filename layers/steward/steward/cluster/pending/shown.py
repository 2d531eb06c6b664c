"""What one source (Kueue's message, or the objects) shows of why a workload waits."""

from typing import Any

import msgspec

from steward.cluster.amounts import accelerators_each
from steward.cluster.figures import tidy
from steward.cluster.kueue import Workload
from steward.cluster.pending.amounts import said
from steward.cluster.pending.messages import Fact, Reading
from steward.cluster.pending.reasons import NEVER, Reason

_QUOTED = 300
"""Characters of a text that a sentence quotes; the evidence has all of it."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A reason, the sentence that says it, and the numbers behind it.

    Attributes
    ----------
    reason : Reason or None
        None: this source says nothing.
    unread : str or None
        The part without which it says nothing, where that is why.
    resource, flavor : str or None
        What decides, and of which flavor.
    need, available : float or None
        Of that, in base units; None where not known.
    unplaceable : bool
        Whether one pod is larger than any node: the same as a placement that failed, said exactly.
    evidence : dict
        JSON values beside these.
    """

    reason: Reason | None = None
    sentence: str = ""
    unread: str | None = None
    resource: str | None = None
    flavor: str | None = None
    need: float | None = None
    available: float | None = None
    unplaceable: bool = False
    evidence: dict[str, Any] = msgspec.field(default_factory=dict)


def request(resource: str | None, flavor: str | None, need: float | None) -> str:
    """Begin a sentence with what a workload needs."""
    if resource is None or need is None:
        return f"Needs {resource or 'resources'}" + (f" of {flavor}" if flavor else "")
    return f"Needs {said(resource, need)}" + (f" of {flavor}" if flavor else "")


def quoted(text: str) -> str:
    """Quote Kueue in a sentence, which a text of up to 32 KiB would not be."""
    return f"Kueue says: {text if len(text) <= _QUOTED else f'{text[:_QUOTED]}…'}"


def by_message(workload: Workload, reading: Reading, text: str, like: Shown) -> Shown:
    """Say what Kueue's message says, and no more.

    Parameters
    ----------
    workload : Workload
        Which it is about: the text rarely says what was asked for.
    reading, text : Reading, str
        The message.
    like : Shown
        Of several flavors and resources that the text names, the one that this names is told.
    """
    if reading.reason is None:
        return Shown()
    fact = _decisive(reading, like)
    need, available = _numbers(workload, fact)
    return Shown(
        reason=reading.reason,
        sentence=_sentence(reading, fact, need, text),
        resource=fact.resource,
        flavor=fact.flavor,
        need=need,
        available=available,
        evidence={} if fact.capacity is None else {"capacity": tidy(fact.capacity)},
    )


def _decisive(reading: Reading, like: Shown) -> Fact:
    """Pick the fact that the reason rests on: accelerators before anything else."""
    same = [fact for fact in reading.facts if fact.reason is reading.reason]
    facts = same or [fact for fact in reading.facts if fact.reason not in NEVER]

    def weight(fact: Fact) -> tuple[bool, bool]:
        other = fact.resource is None or not accelerators_each(fact.resource)
        return (fact.resource, fact.flavor) != (like.resource, like.flavor), other

    return min(facts, key=weight, default=Fact(reason=Reason.NOT_EVALUATED))


def _numbers(workload: Workload, fact: Fact) -> tuple[float | None, float | None]:
    if fact.resource is None:
        return None, None
    need = workload.requests.get(fact.resource) if fact.need is None else fact.need
    asking = [one for one in workload.pod_sets if one.per_pod.get(fact.resource)]
    # The text counts from the pod set that failed: of several nobody knows what came before it.
    if need is None or fact.missing is None or len(asking) > 1:
        return need, None
    return need, max(0.0, need - fact.missing)


def _sentence(reading: Reading, fact: Fact, need: float | None, text: str) -> str:
    head = request(fact.resource, fact.flavor, need)
    sentence = quoted(text)
    match reading.reason:
        case Reason.EXCEEDS_CAPACITY:
            most = "its queue"
            if fact.resource and fact.capacity is not None:
                most = f"the {said(fact.resource, fact.capacity)} that its queue"
            sentence = f"{head}; that is more than {most} can ever hold. It can run only with a smaller request or a larger quota."
        case Reason.WAITING_FOR_QUOTA if fact.resource and fact.missing is not None:
            more = said(fact.resource, fact.missing)
            sentence = f"{head}; it would start if {more} more were free."
        case Reason.WAITING_FOR_QUOTA:
            sentence = f"Other workloads took the quota that it needs; it would start once enough is free again. {quoted(text)}"
        case Reason.BORROW_LIMIT:
            sentence = f"{head}; that is more than its queue may borrow. It would start if more of its own quota were free, or if the borrowing limit were higher."
        case Reason.WAITING_FOR_PREEMPTION:
            sentence = f"{_victims(reading)} It starts once their quota is free."
        case Reason.FRAGMENTATION if fact.pods is not None:
            sentence = f"Its quota fits, but its pods do not: the nodes have room for {fact.fitting} of {fact.pods}, placed as the topology asks. It would start if free accelerators lay closer together."
    return sentence


def _victims(reading: Reading) -> str:
    if reading.victims is None:
        return "Waits for workloads that are being preempted, or that another preemptor chose too."
    return f"Waits for {reading.victims} workload{'' if reading.victims == 1 else 's'} to be preempted."
