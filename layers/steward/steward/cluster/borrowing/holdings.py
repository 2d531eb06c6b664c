"""What the Workloads that hold quota now prove of the past: so much was in use at the least."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime

from steward.cluster.kueue import Workload
from steward.cluster.workloads import EVICTED, FINISHED, reserved_since, reserves


class Holdings:
    """Reservations by flavor and resource, with their times.

    Parameters
    ----------
    workloads : iterable of Workload
        All of a cluster.
    at : datetime
        Stands in where a Workload does not say when it reserved its quota.
    """

    def __init__(self, workloads: Iterable[Workload], at: datetime) -> None:
        self._held: dict[tuple[str, str], list[tuple[datetime, str, float]]] = defaultdict(list)
        self._released: dict[tuple[str, str, str], datetime] = {}
        for workload in workloads:
            since = min(reserved_since(workload) or at, at)
            queue = workload.cluster_queue or ""
            if reserves(workload):
                for flavor, amounts in workload.assigned.items():
                    for resource, amount in amounts.items():
                        self._held[flavor, resource].append((since, queue, amount))
            elif ended := _ended(workload):
                for resource, flavor in _had(workload):
                    key = (queue, flavor, resource)
                    when = min(ended, at)
                    self._released[key] = max(when, self._released.get(key, when))
        for held in self._held.values():
            held.sort()

    def since(
        self, flavor: str, resource: str, holds: Callable[[datetime], bool]
    ) -> datetime | None:
        """Find since when something has held that more usage can only make truer.

        Parameters
        ----------
        flavor, resource : str
            What it is about.
        holds : callable
            Whether what was :meth:`used` at the least by some time makes it true.

        Returns
        -------
        datetime or None
            None where what is held now does not prove it.
        """
        times = sorted({when for when, _, _ in self._held.get((flavor, resource), [])})
        found = bisect_left(times, x=True, key=holds)
        return times[found] if found < len(times) else None

    def used(self, flavor: str, resource: str, until: datetime) -> dict[str, float]:
        """Tell what each ClusterQueue used at the least at some time: what it still holds of it."""
        usage: dict[str, float] = defaultdict(float)
        for when, queue, amount in self._held.get((flavor, resource), []):
            if when > until:
                break
            usage[queue] += amount
        return usage

    def released(self, queue: str, flavor: str, resource: str) -> datetime | None:
        """Tell when a workload of a queue last gave some of it back, as far as objects show."""
        return self._released.get((queue, flavor, resource))


def _ended(workload: Workload) -> datetime | None:
    ends = (workload.condition(FINISHED), workload.condition(EVICTED))
    return next((end.since for end in ends if end and end.status), None)


def _had(workload: Workload) -> set[tuple[str, str]]:
    """Name resource and flavor of what it held: its admission stays on record once it has finished."""
    return {pair for pod_set in workload.pod_sets for pair in pod_set.flavors.items()}
