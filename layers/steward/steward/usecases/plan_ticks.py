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
    from steward.ports import Clock, PlanStore, SnapshotRequests

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


AUDIT_MINUTES = 24 * 60
"""One audit a day (UTC), the first at a cluster's first tick."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Clusters whose snapshot was asked for, and those where asking failed, with the reason."""

    asked: tuple[str, ...]
    failed: dict[str, str]


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
    clock: Clock,
) -> Plan:
    """Ask for every snapshot that is due.

    A cluster that cannot be asked for holds up no other; it stays due, because what was asked for
    is remembered only after the asking.
    """
    now = clock.now()
    asked: list[str] = []
    failed: dict[str, str] = {}
    for cluster in clusters:
        try:
            last = plans.last(cluster.name)
            audit = snapshot_due(now, last.audit, AUDIT_MINUTES)
            if not audit and not snapshot_due(now, last.snapshot, cluster.tick_minutes):
                continue
            # An audit is a tick and more: it needs no tick beside it.
            requests.ask(
                cluster.name, now, "tick", SnapshotScope.AUDIT if audit else SnapshotScope.TICK
            )
            plans.mark(cluster.name, Planned(snapshot=now, audit=now if audit else last.audit))
        except StewardError as error:
            failed[cluster.name] = str(error)
        else:
            asked.append(cluster.name)
    return Plan(asked=tuple(asked), failed=failed)
