"""Take a snapshot: read every source of one cluster, each on its own, and store what was seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.planning import SnapshotScope
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import LastSnapshot
from steward.events import SNAPSHOT_TAKEN, Request
from steward.usecases.read_cluster import read_cluster

if TYPE_CHECKING:
    from steward.ports import (
        Bus,
        CheckpointStore,
        Clock,
        MemoryStore,
        SnapshotStore,
        Sources,
    )

OLDEST_REQUEST = timedelta(minutes=15)
"""A request older than this is dropped: the ticks since have repaired whatever it was about."""

_ARN_WITH_ID = re.compile(r"arn:[^:]+:sagemaker:[^:]*:[^:]*:cluster/[a-z0-9]{12}")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a wish for a snapshot; `key` is None where none was taken, with the reason."""

    cluster: str
    key: str | None
    reason: str
    refused: tuple[str, ...] = ()


def clusters_wanted(
    request: Request, clusters: Sequence[ClusterPolicy], now: datetime
) -> tuple[ClusterPolicy, ...]:
    """Resolve a request to clusters of the policy.

    A request too old names none. One that names a cluster (by name, by its EKS name, or by an ARN
    that ends in one) means that one. One that names none means every cluster of its account and
    region; so does an ARN that ends in an id, which the policy does not know.
    """
    if now - request.at > OLDEST_REQUEST:
        return ()
    if request.cluster:
        names = {request.cluster, request.cluster.rpartition("/")[2]}
        found = tuple(c for c in clusters if names & {c.name, c.eks_name})
        if found or _ARN_WITH_ID.fullmatch(request.cluster) is None:
            return found
    return tuple(
        c
        for c in clusters
        if request.region in {"", c.region}
        and (c.account is None or request.account in {"", c.account})
    )


def take_snapshot(
    cluster: ClusterPolicy,
    asked: datetime,
    scope: SnapshotScope = SnapshotScope.TICK,
    *,
    sources: Sources,
    snapshots: SnapshotStore,
    memories: MemoryStore,
    bus: Bus,
    clock: Clock,
    checkpoints: CheckpointStore,
) -> Outcome:
    """Read a cluster and announce the snapshot.

    Parameters
    ----------
    cluster : ClusterPolicy
        Which cluster, and how it is reached.
    asked : datetime
        When the newest request for it was made; not later than the last snapshot's start, it is
        already answered.
    scope : SnapshotScope
        What to read; a tick does not answer a wish for an audit.
    sources, snapshots, memories, bus, clock, checkpoints
        Ports.

    Returns
    -------
    Outcome
        A cluster that cannot be read is a snapshot with unknown parts, never an error.

    Raises
    ------
    StewardError
        The bucket or the bus failed: nothing was announced, and the request may be repeated.
    """
    last = snapshots.last(cluster.name)
    answered = answered_since(last, scope)
    if answered and asked <= answered:
        return Outcome(cluster=cluster.name, key=None, reason="already answered")
    started = clock.now()
    memory, _ = memories.load(cluster.name)
    snapshot, hourly = read_cluster(
        cluster,
        memory,
        sources,
        clock,
        last.hourly if last else None,
        scope,
        checkpoints=checkpoints,
    )
    key = snapshots.put(snapshot)
    bus.publish(
        SNAPSHOT_TAKEN,
        {
            "cluster": cluster.name,
            "key": key,
            "at": snapshot.at.isoformat(),
            "scope": snapshot.scope,
        },
    )
    audited = started if scope is SnapshotScope.AUDIT else (last.audited if last else None)
    finished = LastSnapshot(
        key=key,
        started=started,
        finished=clock.now(),
        audited=audited,
        hourly=hourly,
    )
    snapshots.finish(cluster.name, finished)
    refused = tuple(part.name for part in snapshot.refused(*(p.name for p in snapshot.parts)))
    return Outcome(cluster=cluster.name, key=key, reason="taken", refused=refused)


def answered_since(last: LastSnapshot | None, scope: SnapshotScope) -> datetime | None:
    """Tell since when a wish for that scope has been answered."""
    if last is None:
        return None
    return last.audited if scope is SnapshotScope.AUDIT else last.started
