"""Borrowing limits that bind, pools that are full, owners who wait for their own, and no limit at all.

Decides by Kueue's own arithmetic over what is reserved, row by row of every ClusterQueue, how long a
condition has lasted, and what would end it. Claims nothing where a part of the tree of quotas could
not be read. Page: docs/detectors/borrowing.md.
"""

from collections.abc import Iterator
from copy import replace
from datetime import datetime, timedelta

from steward.cluster.accelerators import UnknownReason
from steward.cluster.amounts import accelerators_each
from steward.cluster.borrowing import findings as say
from steward.cluster.borrowing.memory import (
    BorrowingMemory,
    IdleStep,
    Lasting,
    climb,
    go_on,
)
from steward.cluster.borrowing.places import Place, Scene
from steward.cluster.borrowing.waiting import runs
from steward.cluster.figures import tidy
from steward.cluster.findings import UNSEEN, Finding, Resolution, Unknown
from steward.cluster.incidents import follow
from steward.cluster.memory import Detection, Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.refusals import refusals
from steward.cluster.snapshot import Snapshot

NAME = say.NAME

_QUEUES, _WORKLOADS, _COHORTS = (
    "kubernetes/clusterqueues",
    "kubernetes/workloads",
    "kubernetes/cohorts",
)
_LOCAL_QUEUES = "kubernetes/localqueues"
_BLIND = (_QUEUES, _WORKLOADS, _COHORTS)
_USEFUL = (_LOCAL_QUEUES, "sagemaker/ListComputeQuotas")

_OF_WAITING = {say.LIMIT_BINDING, say.CLUSTER_FULL, say.RECLAIM_BLOCKED, say.AT_LIMIT}
"""Reasons that say of a queue that somebody waits in it, or nobody."""


def detect(snapshot: Snapshot, memory: Memory, cluster: ClusterPolicy) -> Detection:
    """Find queues that borrow up to their limit, would borrow more, or cannot get back their own.

    Parameters
    ----------
    snapshot : Snapshot
        ClusterQueues, Cohorts, LocalQueues and Workloads; the compute quotas for comparison.
    memory : Memory
        Since when each condition lasts, and what has lain idle.
    cluster : ClusterPolicy
        Thresholds and teams.

    Returns
    -------
    Detection
        At most one finding a row of a ClusterQueue, and one more where it has no limit; nothing but
        unknown lines while queues, cohorts or workloads cannot be read.
    """
    unknown = (
        *refusals(snapshot, NAME, blind=_BLIND, useful=_USEFUL),
        *_left_out(snapshot, cluster),
    )
    if any(line.blind for line in unknown) or not _listed(snapshot):
        return Detection(memory=memory, unknown=unknown)
    before = memory.borrowing
    gap = max(UNSEEN, timedelta(minutes=cluster.tick_minutes))
    scene = Scene(snapshot, cluster)
    places = {place.subject: place for place in _places(scene)}
    idle = _idle(scene, before, gap)
    watch = _Watch(before, snapshot.at, gap)
    findings = [
        finding
        for _, place in sorted(places.items())
        if runs(place.queue) and not place.queue.shares_idle
        for finding in _judge(place, watch, idle)
    ]
    told, cleared = follow(
        before.told, findings, lambda finding: _ended(finding, places, snapshot), snapshot.at
    )
    after = BorrowingMemory(told=told, lasting=watch.seen, idle=idle, at=snapshot.at)
    return Detection(
        memory=replace(memory, borrowing=after),
        findings=tuple(findings),
        cleared=cleared,
        unknown=unknown,
    )


def _listed(snapshot: Snapshot) -> bool:
    """Whether a snapshot says of queues and workloads at all, be it that Kueue is not installed."""
    return all(snapshot.part(name) for name in (_QUEUES, _WORKLOADS))


def _left_out(snapshot: Snapshot, cluster: ClusterPolicy) -> Iterator[Unknown]:
    """Say which objects were listed and could not be read; without a queue the tree is wrong."""
    for part, kind in ((_QUEUES, "ClusterQueue"), (_COHORTS, "Cohort"), (_WORKLOADS, "Workload")):
        found = snapshot.part(part)
        for name in found.left_out if found else ():
            team = cluster.team_of(name.partition("/")[0]) if part == _WORKLOADS else None
            yield Unknown(
                detector=NAME,
                subject=part if " " in name else f"{kind}/{name.removeprefix('/')}",
                reason=UnknownReason.UNREADABLE,
                team=team.name if team else None,
                blind=part != _WORKLOADS,
            )


def _places(scene: Scene) -> Iterator[Place]:
    for queue in scene.snapshot.cluster_queues:
        for row in queue.rows:
            yield Place(queue, row, scene)


class _Watch:
    """How long conditions have lasted: what was remembered, and what is seen now."""

    def __init__(self, before: BorrowingMemory, at: datetime, gap: timedelta) -> None:
        self._before = before.lasting
        self._at = at
        self._gap = gap
        self.seen: dict[str, Lasting] = {}

    def since(self, condition: str, place: Place, proven: datetime | None) -> datetime:
        """Remember that a condition is seen now, and tell since when it lasts."""
        key = f"{condition}|{place.subject}"
        self.seen[key] = go_on(self._before.get(key), proven, self._at, self._gap)
        return self.seen[key].since

    def long(self, since: datetime | None, place: Place) -> bool:
        """Whether something has lasted for the window."""
        window = timedelta(minutes=place.limits.window_minutes)
        return since is not None and self._at - since >= window


def _judge(place: Place, watch: _Watch, idle: say.Idle) -> Iterator[Finding]:
    finding = _one_reason(place, watch, idle)
    if finding:
        yield finding
    if place.limit is None and place.queue.cohort and place.each and place.others_lend > 0:
        yield say.unbounded(place, watch.since(say.UNBOUNDED, place, None), idle)


def _one_reason(place: Place, watch: _Watch, idle: say.Idle) -> Finding | None:
    """Choose the reason that says most; every condition is watched, told or not."""
    blocked = full = at_limit = None
    if place.blocked:
        proven = place.lacking_since(place.blocked, limits=True)
        blocked = watch.since(say.RECLAIM_BLOCKED, place, proven)
    if place.crowded_out:
        proven = place.lacking_since(place.crowded_out, limits=False)
        full = watch.since(say.CLUSTER_FULL, place, proven)
    if place.at_limit:
        at_limit = watch.since(say.AT_LIMIT, place, place.at_limit_since())
    if blocked and watch.long(blocked, place):
        return say.reclaim_blocked(place, blocked, idle)
    at_limit = at_limit if watch.long(at_limit, place) else None
    if at_limit and place.held_back:
        return say.limit_binding(place, place.held_back, at_limit, idle)
    if full and (at_limit or watch.long(full, place)):
        return say.cluster_full(place, at_limit or full, idle)
    known = place.scene.snapshot.readable(_LOCAL_QUEUES)
    return say.at_limit(place, at_limit, idle) if at_limit and known else None


def _idle(scene: Scene, before: BorrowingMemory, gap: timedelta) -> dict[str, tuple[IdleStep, ...]]:
    """Remember what queues would lend of their accelerators, and since when it has been idle."""
    at = scene.snapshot.at
    unbroken = before.at is not None and at - before.at <= gap
    known = before.idle if unbroken else {}
    idle = {}
    for name, queue in sorted(scene.quotas.queues.items()):
        for row in queue.rows:
            key = say.idle_key(name, row.flavor, row.resource)
            if not (queue.cohort and accelerators_each(row.resource)):
                continue
            released = scene.holdings.released(name, row.flavor, row.resource)
            if unbroken and before.at and released and released <= before.at:
                released = None  # what it freed was looked at then
            amount = scene.quotas.tree(row.flavor, row.resource).idle(name)
            if steps := climb(known.get(key, ()), amount, released, at):
                idle[key] = steps
    return idle


def _ended(finding: Finding, places: dict[str, Place], snapshot: Snapshot) -> Resolution | None:
    place = places.get(finding.subject)
    if place is None:
        return Resolution.RELEASED
    told = (finding.evidence["limit"], finding.evidence["nominal"])
    if told != (tidy(place.limit), tidy(place.row.nominal)):
        return Resolution.QUOTA_CHANGED
    workloads = snapshot.part(_WORKLOADS)
    unsure = not snapshot.readable(_LOCAL_QUEUES) or bool(workloads and workloads.left_out)
    return None if unsure and finding.reason in _OF_WAITING else Resolution.FIXED
