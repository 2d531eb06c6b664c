"""Kueue's texts on why a workload is not admitted, in the wordings of 0.5 to 0.19.

Kueue lists one reason a flavor that it tried (`pkg/scheduler/flavorassigner`), so a refusal that can
never change counts only where every flavor that is named has one.
"""

import re
from collections.abc import Iterable

import msgspec

from steward.cluster.kueue import Condition
from steward.cluster.pending.amounts import read_amount
from steward.cluster.pending.reasons import NEVER, Reason


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One reason of a refusal; amounts in base units, None where the wording names none.

    Attributes
    ----------
    flavor : str or None
        None where the reason is not about one.
    need : float or None
        What was asked for, with what earlier pod sets of the same workload took.
    missing : float or None
        What more would have to be free.
    capacity : float or None
        The most that the queue could ever hold.
    pods, fitting : int or None
        Pods (or slices) to be placed, and those that the topology has room for.
    """

    reason: Reason
    resource: str | None = None
    flavor: str | None = None
    need: float | None = None
    missing: float | None = None
    capacity: float | None = None
    pods: int | None = None
    fitting: int | None = None


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a text says.

    Attributes
    ----------
    reason : Reason or None
        None: no wording that is known here.
    victims : int or None
        Workloads that it waits for, where the text counts them.
    """

    reason: Reason | None = None
    facts: tuple[Fact, ...] = ()
    victims: int | None = None


_NAME = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?"
_RESOURCE = r"[A-Za-z0-9](?:[\w./-]*[A-Za-z0-9])?"
_IN_FLAVOR = rf"for (?P<{{0}}_resource>{_RESOURCE}) (?:in )?flavor (?P<{{0}}_flavor>{_NAME})"
_ITEM = r'(?:[^,"]|"[^"]*")*?: \d+'
_FACT = re.compile(
    rf"insufficient unused quota (?:in cohort )?{_IN_FLAVOR.format('unused')}"
    r"(?:, (?P<missing>\S+) more needed)?"
    rf"|insufficient quota {_IN_FLAVOR.format('quota')}(?:"
    r", previously considered podsets requests \((?P<earlier>[^)]*)\)"
    r" \+ current podset request \((?P<current>[^)]*)\) > maximum capacity \((?P<capacity>[^)]*)\)"
    r"|, request > maximum capacity \((?P<request>\S+) > (?P<capacity_2>[^)]*)\)"
    r"|, one pod per zero-count podset request \((?P<one_pod>[^)]*)\)"
    r" > maximum capacity \((?P<capacity_3>[^)]*)\)"
    r"| in ClusterQueue)?"
    rf"|borrowing limit {_IN_FLAVOR.format('limit')} exceeded"
    rf"|resource (?P<unavailable>{_RESOURCE}) unavailable in ClusterQueue"
    rf"|untolerated taint .*? in flavor (?P<taint_flavor>{_NAME})"
    rf"|flavor (?P<wrong_flavor>{_NAME}) (?:doesn't match node affinity|not found)"
    r'|Flavor "(?P<topology_flavor>[^"]*)" (?:does not support|supports only|does not contain)'
    r" [\w ]*"
    r'|topology "[^"]*" (?:doesn\'t allow to fit any of (?P<pods>\d+)'
    r"|allows to fit only (?P<fitting>-?\d+) out of (?P<pods_2>\d+)) (?:pod|slice)\(s\)"
    rf"(?:\. Total nodes: \d+(?:; excluded: {_ITEM}(?:, {_ITEM})*)?)?"
)
_POD_SET = re.compile(r"(?:couldn't|failed to) assign flavors to pod set [^:]*: ")
_SUFFIX = re.compile(
    r"\. (?:Pending the preemption of (?P<victims>\d+) workload\(s\)"
    r"|Preempting (?P<failed>\d+) workload\(s\) failed, will retry\.?)"
)
_WHOLE = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (r"no longer fits after processing another workload", Reason.WAITING_FOR_QUOTA),
        (r"overlapping preemption targets", Reason.WAITING_FOR_PREEMPTION),
        (r"other workloads in the cohort were prioritized", Reason.WAITING_FOR_PREEMPTION),
        (r"\b(?:Local|Cluster)Queue \S+ (?:doesn't exist|not found)", Reason.MISSING_QUEUE),
        (
            r"\b(?:Local|Cluster)Queue \S+ is (?:inactive|stopped|terminating)",
            Reason.QUEUE_INACTIVE,
        ),
        (r"workload namespace doesn't match ClusterQueue selector", Reason.QUEUE_INACTIVE),
        (r"workload has failed admission checks", Reason.QUEUE_INACTIVE),
    )
)
_NEAREST = (
    Reason.WAITING_FOR_QUOTA,
    Reason.BORROW_LIMIT,
    Reason.FRAGMENTATION,
    Reason.EXCEEDS_CAPACITY,
    Reason.UNKNOWN_FLAVOR,
)
"""What may open first: of several flavors the first of these is what the workload waits for."""

_WORST = (
    Reason.EXCEEDS_CAPACITY,
    Reason.UNKNOWN_FLAVOR,
    Reason.WAITING_FOR_QUOTA,
    Reason.BORROW_LIMIT,
    Reason.FRAGMENTATION,
)
"""What must open last: of several pod sets, or resources of one flavor, all must pass."""


_BY_REASON = {
    "NoMatchingFlavor": Reason.UNKNOWN_FLAVOR,
    "WaitingForQuota": Reason.WAITING_FOR_QUOTA,
    "ExceedsMaxQuota": Reason.EXCEEDS_CAPACITY,
    "TopologyPlacementFailed": Reason.FRAGMENTATION,
    "WaitingForPreemptedWorkloads": Reason.WAITING_FOR_PREEMPTION,
}
"""Reasons of the condition that say as much as a text (0.18.5 and later, behind a feature gate)."""


def read_condition(condition: Condition | None) -> Reading:
    """Classify why quota is not reserved: by its text, else by its reason."""
    if condition is None or condition.status is True:
        return Reading()
    reading = read_message(condition.message)
    if reading.reason is not None:
        return reading
    return Reading(reason=_BY_REASON.get(condition.reason))


def read_message(text: str) -> Reading:
    """Classify a text of the condition QuotaReserved, or of a Pending event.

    Parameters
    ----------
    text : str
        As Kueue wrote it.

    Returns
    -------
    Reading
        A pod set waits for the flavor that may open first; a workload for the pod set that is worst
        off. Beside text that nobody knows here, nothing is said to be impossible for ever: that
        text may be of a flavor which is not.
    """
    starts = list(_POD_SET.finditer(text))
    if not starts:
        found = (reason for pattern, reason in _WHOLE if pattern.search(text))
        return Reading(reason=next(found, None))
    suffix = _SUFFIX.search(text)
    end = suffix.start() if suffix else len(text)
    ends = [*(start.start() for start in starts[1:]), end]
    facts: list[Fact] = []
    reasons = set()
    for start, stop in zip(starts, ends, strict=True):
        body = text[start.end() : stop]
        here = [_fact(match) for match in _FACT.finditer(body)]
        facts += here
        reasons.add(_of_pod_set(here, known=not _FACT.sub("", body).strip(" ,;.")))
    reason = next((one for one in _WORST if one in reasons), None)
    if suffix and reason not in NEVER:
        reason = Reason.WAITING_FOR_PREEMPTION
    victims = int(suffix["victims"] or suffix["failed"]) if suffix else None
    return Reading(reason=reason, facts=tuple(facts), victims=victims)


def _of_pod_set(facts: Iterable[Fact], *, known: bool) -> Reason | None:
    by_flavor: dict[str | None, set[Reason]] = {}
    for fact in facts:
        if fact.flavor is None and fact.reason is Reason.UNKNOWN_FLAVOR:
            return fact.reason  # no flavor at all has the resource
        by_flavor.setdefault(fact.flavor, set()).add(fact.reason)
    worst = {next(r for r in _WORST if r in reasons) for reasons in by_flavor.values()}
    reason = next((one for one in _NEAREST if one in worst), None)
    return reason if known or reason not in NEVER else None


def _fact(match: re.Match[str]) -> Fact:
    if flavor := match["unused_flavor"]:
        return Fact(
            reason=Reason.WAITING_FOR_QUOTA,
            resource=match["unused_resource"],
            flavor=flavor,
            missing=_amount(match["missing"]),
        )
    if flavor := match["quota_flavor"]:
        return Fact(
            reason=Reason.EXCEEDS_CAPACITY,
            resource=match["quota_resource"],
            flavor=flavor,
            need=_needed(match),
            capacity=_amount(match["capacity"] or match["capacity_2"] or match["capacity_3"]),
        )
    if flavor := match["limit_flavor"]:
        return Fact(reason=Reason.BORROW_LIMIT, resource=match["limit_resource"], flavor=flavor)
    if pods := match["pods"] or match["pods_2"]:
        # Kueue 0.9.0 printed pods below zero.
        fitting = max(0, int(match["fitting"] or 0))
        return Fact(reason=Reason.FRAGMENTATION, pods=int(pods), fitting=fitting)
    return Fact(
        reason=Reason.UNKNOWN_FLAVOR,
        resource=match["unavailable"],
        flavor=match["taint_flavor"] or match["wrong_flavor"] or match["topology_flavor"],
    )


def _needed(match: re.Match[str]) -> float | None:
    if match["current"] is None:
        return _amount(match["request"] or match["one_pod"])
    earlier, current = _amount(match["earlier"]), _amount(match["current"])
    return None if earlier is None or current is None else earlier + current


def _amount(text: str | None) -> float | None:
    return None if text is None else read_amount(text)
