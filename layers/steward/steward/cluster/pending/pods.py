"""Admitted workloads whose quota is reserved while none of their pods holds an accelerator."""

from collections.abc import Mapping
from datetime import datetime

from steward.cluster.amounts import accelerators_in
from steward.cluster.kueue import Workload
from steward.cluster.snapshot import Snapshot
from steward.cluster.workloads import ADMITTED, EVICTED, QUOTA_RESERVED, reserves, subject_of

PODS = "kubernetes/pods"


def assigned(workload: Workload) -> float:
    """Count the accelerators that its admission reserves now."""
    return sum(accelerators_in(held) for held in workload.assigned.values())


def admitted(workload: Workload) -> bool:
    """Whether it may run its pods, and has accelerators to run them on."""
    return reserves(workload) and workload.holds(ADMITTED) and assigned(workload) > 0


class Pods:
    """Which admitted workloads have pods that hold accelerators, now and when last.

    Parameters
    ----------
    snapshot : Snapshot
        With its pods' accelerators.
    seen : mapping of str to datetime
        What the memory holds: Workload UID to the newest snapshot that showed some.

    Attributes
    ----------
    owners : tuple of str
        Lists that would say whose pods some are, and that could not be read.
    """

    def __init__(self, snapshot: Snapshot, seen: Mapping[str, datetime]) -> None:
        self._part = snapshot.part(PODS)
        self._names = {(one.holder.namespace, one.holder.workload) for one in snapshot.accelerators}
        self._owners = {one.holder.owner.subject for one in snapshot.accelerators}
        self.readable = snapshot.readable(PODS)
        running = sorted(filter(admitted, snapshot.workloads), key=lambda one: one.uid)
        holding = {one.uid for one in running if self.readable and self._hold(one)}
        self._strays = _strays(snapshot)
        doubted = {one.namespace for one in running if one.uid not in holding}
        self.owners = tuple(sorted({self._strays[name] for name in doubted & self._strays.keys()}))
        self.seen = {
            one.uid: snapshot.at if one.uid in holding else seen[one.uid]
            for one in running
            if one.uid in holding or one.uid in seen
        }

    def judged(self, workload: Workload) -> bool:
        """Whether it is known if it has pods: none that could not be read may be its own."""
        return self.readable and (self._hold(workload) or self.hidden_by(workload) is None)

    def hidden_by(self, workload: Workload) -> str | None:
        """Name the part that may hide pods of a workload; None where all are known."""
        left_out = self._part.left_out if self._part else ()
        hidden = any(
            "/" not in name or name.startswith(f"{workload.namespace}/") for name in left_out
        )
        return PODS if hidden or not self.readable else self._strays.get(workload.namespace)

    def without_since(self, workload: Workload) -> datetime | None:
        """Tell since when an admitted workload has no pods; None where it has some."""
        if not admitted(workload) or self._hold(workload):
            return None
        condition = workload.condition(ADMITTED)
        began = (condition.since if condition else None) or workload.created
        return max(began, self.seen.get(workload.uid, began))

    def _hold(self, workload: Workload) -> bool:
        name = (workload.namespace, workload.name)
        return name in self._names or subject_of(workload) in self._owners


def _strays(snapshot: Snapshot) -> dict[str, str]:
    """Give namespaces with pods that no Workload is known to have, and the list that would say so.

    Only where that list could not be read: a Job's pods may be those of a JobSet then.
    """
    holders = {
        (one.holder.namespace, one.holder.owner.kind, one.holder.workload)
        for one in snapshot.accelerators
    }
    lists = {
        (namespace, f"kubernetes/{kind.lower()}s")
        for namespace, kind, workload in holders
        if workload is None
    }
    return {
        namespace: name
        for namespace, name in sorted(lists, reverse=True)
        if snapshot.refused(name) or ((part := snapshot.part(name)) and part.left_out)
    }


def contradictory(workload: Workload) -> list[str]:
    """Name the conditions that cannot all be true (Kueue #14811); none where they agree."""
    told = [kind for kind in (ADMITTED, EVICTED, QUOTA_RESERVED) if workload.holds(kind)]
    return told if EVICTED in told and len(told) == 3 else []
