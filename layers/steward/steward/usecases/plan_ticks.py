"""Decide what is due, and ask for it: the only thing that a schedule starts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.planning import Planned, SnapshotScope
from steward.cluster.policy import ClusterPolicy
from steward.errors import StewardError

if TYPE_CHECKING:
    from steward.ports import Clock, DepartureQueue, PlanStore, SnapshotRequests

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


AUDIT_MINUTES = 24 * 60
"""One audit a day (UTC), the first at a cluster's first tick."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a tick did.

    Attributes
    ----------
    asked : tuple of str
        Clusters whose snapshot was asked for.
    left : tuple of str
        Clusters that were told to have left the policy.
    failed : dict of str to str
        Clusters for which something failed, with the reason.
    oldest_seconds : float or None
        Age of the oldest of the clusters' last evaluated snapshots; None where it is not known of
        every cluster: the rest would look younger than all.
    """

    asked: tuple[str, ...]
    left: tuple[str, ...]
    failed: dict[str, str]
    oldest_seconds: float | None


def snapshot_due(now: datetime, last: datetime | None, tick_minutes: int) -> bool:
    """Tell whether a cluster's snapshot is due: one in each slot of `tick_minutes`.

    Slots count from the epoch, so that a late or repeated schedule asks once and a missed one is
    due at the next.
    """
    tick = timedelta(minutes=tick_minutes)
    return last is None or (now - _EPOCH) // tick > (last - _EPOCH) // tick


def plan_ticks(
    clusters: Iterable[ClusterPolicy],
    *,
    plans: PlanStore,
    requests: SnapshotRequests,
    departures: DepartureQueue,
    clock: Clock,
) -> Plan:
    """Ask for every snapshot that is due, and tell of every cluster that left the policy.

    What fails for one cluster holds up no other and stays due: it is remembered as done, and a
    cluster that left is forgotten, only afterwards.

    Raises
    ------
    StewardError
        The table does not tell which clusters there are; what was due has been asked for.
    """
    now = clock.now()
    policies = {cluster.name: cluster for cluster in clusters}
    failed: dict[str, str] = {}
    asked = [c.name for c in policies.values() if _ask(c, now, plans, requests, failed)]
    known = plans.known()
    left = [
        name for name in sorted(known.keys() - policies) if _depart(name, now, departures, failed)
    ]
    since = {name: at for name, at in known.items() if name not in left}
    since |= {name: now for name in policies if name not in known}
    if since != known:
        plans.keep(since)
    ages = [_age(name, now, since[name], plans, failed) for name in policies]
    whole = [age for age in ages if age is not None]
    return Plan(
        asked=tuple(asked),
        left=tuple(left),
        failed=failed,
        oldest_seconds=max(whole, default=None) if len(whole) == len(ages) else None,
    )


def _ask(
    cluster: ClusterPolicy,
    now: datetime,
    plans: PlanStore,
    requests: SnapshotRequests,
    failed: dict[str, str],
) -> bool:
    """Ask for a cluster's snapshot if it is due; tells whether it was asked for."""
    try:
        last = plans.last(cluster.name)
        audit = snapshot_due(now, last.audit, AUDIT_MINUTES)
        if not audit and not snapshot_due(now, last.snapshot, cluster.tick_minutes):
            return False
        # An audit is a tick and more: it needs no tick beside it.
        scope = SnapshotScope.AUDIT if audit else SnapshotScope.TICK
        requests.ask(cluster.name, now, "tick", scope)
        plans.mark(cluster.name, Planned(snapshot=now, audit=now if audit else last.audit))
    except StewardError as error:
        failed[cluster.name] = str(error)
        return False
    return True


def _depart(
    cluster: str, now: datetime, departures: DepartureQueue, failed: dict[str, str]
) -> bool:
    try:
        departures.depart(cluster, now)
    except StewardError as error:
        failed[cluster] = str(error)
        return False
    return True


def _age(
    cluster: str, now: datetime, since: datetime, plans: PlanStore, failed: dict[str, str]
) -> float | None:
    """Give the age (seconds) of what is known of a cluster; None where that cannot be read.

    A cluster that was never evaluated is as old as its first plan: absent is not fresh.
    """
    try:
        at = plans.evaluated(cluster) or since
    except StewardError as error:
        failed.setdefault(cluster, str(error))
        return None
    return max(0.0, (now - at).total_seconds())
