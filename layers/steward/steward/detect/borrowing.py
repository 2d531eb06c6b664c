"""Borrowing limits that bind, pools that are full, owners who wait for their own, and no limit at all.

Decides by Kueue's own arithmetic over what is reserved, row by row of every ClusterQueue, how long a
condition has lasted, and what would end it. Claims nothing where a part of the tree of quotas could
not be read. Page: docs/detectors/borrowing.md.
"""

from collections.abc import Iterable, Iterator
from copy import replace
from datetime import datetime, timedelta

from steward.cluster.accelerators import UnknownReason
from steward.cluster.amounts import accelerators_each
from steward.cluster.borrowing import findings as say
from steward.cluster.borrowing.changes import Changes
from steward.cluster.borrowing.memory import (
    BorrowingMemory,
    IdleStep,
    Lasting,
    QuotaSeen,
    climb,
    go_on,
)
from steward.cluster.borrowing.places import Asking, Place, Scene
from steward.cluster.borrowing.waiting import runs
from steward.cluster.figures import tidy
from steward.cluster.findings import UNSEEN, Finding, Resolution, Unknown
from steward.cluster.incidents import Told, follow
from steward.cluster.memory import Detection, Memory
from steward.cluster.policy import ClusterPolicy
from steward.cluster.queue_teams import namespaces_of
from steward.cluster.refusals import refusals
from steward.cluster.snapshot import PartStatus, Snapshot

NAME = say.NAME

_QUEUES, _WORKLOADS, _COHORTS = (
    "kubernetes/clusterqueues",
    "kubernetes/workloads",
    "kubernetes/cohorts",
)
_LOCAL_QUEUES = "kubernetes/localqueues"
_BLIND = (_QUEUES, _WORKLOADS, _COHORTS)
_USEFUL = (_LOCAL_QUEUES, "sagemaker/ListComputeQuotas")

_KINDS = {
    _QUEUES: "ClusterQueue",
    _COHORTS: "Cohort",
    _LOCAL_QUEUES: "LocalQueue",
    _WORKLOADS: "Workload",
}
_OF_TEAMS = {_LOCAL_QUEUES, _WORKLOADS}
"""Lists of namespaced objects: one that is left out hides who waits, and no quota."""

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
    watch = _Watch(before, snapshot, gap)
    findings = [
        finding
        for _, place in sorted(places.items())
        if runs(place.queue) and not place.queue.shares_idle
        for finding in _judge(place, watch, idle)
    ]
    told, cleared = follow(
        before.told, findings, lambda finding: _ended(finding, places), snapshot.at
    )
    after = BorrowingMemory(
        told=told, lasting=watch.seen, idle=idle, quotas=watch.quotas, at=snapshot.at
    )
    return Detection(
        memory=replace(memory, borrowing=after),
        findings=tuple(findings),
        cleared=cleared,
        unknown=(*unknown, *_undecided(told, findings, snapshot)),
    )


def _listed(snapshot: Snapshot) -> bool:
    """Whether a snapshot says of queues and workloads at all, be it that Kueue is not installed."""
    return all(snapshot.part(name) for name in (_QUEUES, _WORKLOADS))


def _left_out(snapshot: Snapshot, cluster: ClusterPolicy) -> Iterator[Unknown]:
    """Say which objects were listed and could not be read; without a queue the tree is wrong."""
    for part, kind in _KINDS.items():
        found = snapshot.part(part)
        for name in found.left_out if found else ():
            team = cluster.team_of(name.partition("/")[0]) if part in _OF_TEAMS else None
            yield Unknown(
                detector=NAME,
                subject=part if " " in name else f"{kind}/{name.removeprefix('/')}",
                reason=UnknownReason.UNREADABLE,
                team=team.name if team else None,
                blind=part not in _OF_TEAMS,
            )


def _places(scene: Scene) -> Iterator[Place]:
    for queue in scene.snapshot.cluster_queues:
        for row in queue.rows:
            yield Place(queue, row, scene)


class _Watch:
    """How long conditions have lasted: what was remembered, and what is seen now."""

    def __init__(self, before: BorrowingMemory, snapshot: Snapshot, gap: timedelta) -> None:
        self._before = before.lasting
        self._at = snapshot.at
        self._gap = gap
        self._changes = Changes(before.quotas, snapshot)
        self.seen: dict[str, Lasting] = {}

    @property
    def quotas(self) -> dict[str, QuotaSeen]:
        """Quotas for the memory."""
        return self._changes.seen

    def at_limit(self, place: Place) -> datetime:
        """Tell since when a queue is at its limit: another limit is another condition."""
        changed = self._changes.own(place)
        proven = _not_before(changed, place.at_limit_since())
        return self._since(say.AT_LIMIT, place, proven, changed)

    def lacking(self, reason: str, place: Place, asking: tuple[Asking, ...]) -> datetime:
        """Tell since when workloads lack something of a row."""
        proven = place.lacking_since(asking, limits=reason == say.RECLAIM_BLOCKED)
        return self._since(reason, place, _not_before(self._changes.pool(place), proven))

    def unbounded(self, place: Place) -> datetime:
        """Tell since when nothing limits a queue."""
        return self._since(say.UNBOUNDED, place, None)

    def _since(
        self,
        condition: str,
        place: Place,
        proven: datetime | None,
        changed: datetime | None = None,
    ) -> datetime:
        """Remember that a condition is seen now, and tell since when it lasts."""
        key = f"{condition}|{place.subject}"
        before = self._before.get(key)
        if before and changed and before.since < changed:
            before = None
        self.seen[key] = go_on(before, proven, self._at, self._gap)
        return self.seen[key].since

    def long(self, since: datetime | None, place: Place) -> bool:
        """Whether something has lasted for the window."""
        window = timedelta(minutes=place.limits.window_minutes)
        return since is not None and self._at - since >= window


def _not_before(changed: datetime | None, proven: datetime | None) -> datetime | None:
    """Take from a proof what it says of a time when the quota was another."""
    return max(changed, proven) if changed and proven else proven


def _judge(place: Place, watch: _Watch, idle: say.Idle) -> Iterator[Finding]:
    finding = _one_reason(place, watch, idle)
    if finding:
        yield finding
    if place.limit is None and place.queue.cohort and place.each and place.others_lend > 0:
        yield say.unbounded(place, watch.unbounded(place), idle)


def _one_reason(place: Place, watch: _Watch, idle: say.Idle) -> Finding | None:
    """Choose the reason that says most; every condition is watched, told or not."""
    blocked = full = at_limit = None
    if place.blocked:
        blocked = watch.lacking(say.RECLAIM_BLOCKED, place, place.blocked)
    if place.crowded_out:
        full = watch.lacking(say.CLUSTER_FULL, place, place.crowded_out)
    if place.at_limit:
        at_limit = watch.at_limit(place)
    if blocked and watch.long(blocked, place):
        return say.reclaim_blocked(place, blocked, idle)
    at_limit = at_limit if watch.long(at_limit, place) else None
    if at_limit and place.held_back:
        return say.limit_binding(place, place.held_back, at_limit, idle)
    if full and (at_limit or watch.long(full, place)):
        return say.cluster_full(place, at_limit or full, idle)
    return say.at_limit(place, at_limit, idle) if at_limit and _all_seen(place) else None


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


def _ended(finding: Finding, places: dict[str, Place]) -> Resolution | None:
    place = places.get(finding.subject)
    if place is None:
        return Resolution.RELEASED
    told = (finding.evidence["limit"], finding.evidence["nominal"])
    if told != (tidy(place.limit), tidy(place.row.nominal)):
        return Resolution.QUOTA_CHANGED
    sure = finding.reason not in _OF_WAITING or _all_seen(place)
    return Resolution.FIXED if sure else None


def _undecided(
    told: Iterable[Told], findings: Iterable[Finding], snapshot: Snapshot
) -> Iterator[Unknown]:
    """Say which rows were told of and cannot be judged now: that holds what was told."""
    now = {finding.key for finding in findings}
    part = snapshot.part(_LOCAL_QUEUES)
    denied = part is not None and part.status is PartStatus.DENIED
    for one in told:
        if one.cleared is None and one.finding.key not in now:
            yield Unknown(
                detector=NAME,
                subject=one.finding.subject,
                reason=UnknownReason.DENIED if denied else UnknownReason.UNREADABLE,
                team=one.finding.team,
                gpus=one.finding.gpus,
            )


def _all_seen(place: Place) -> bool:
    """Whether everybody who may wait in a queue could be read."""
    snapshot = place.scene.snapshot
    queues, workloads = snapshot.part(_LOCAL_QUEUES), snapshot.part(_WORKLOADS)
    if queues is None or not snapshot.readable(_LOCAL_QUEUES) or queues.left_out:
        return False
    spaces = namespaces_of(place.queue, snapshot)
    left_out = workloads.left_out if workloads else ()
    return not any("/" not in name or name.partition("/")[0] in spaces for name in left_out)
