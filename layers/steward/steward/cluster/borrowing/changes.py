"""Quotas that changed under the evaluations: workloads that are older prove nothing of before."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from steward.cluster.borrowing.memory import QuotaSeen, see_quota
from steward.cluster.borrowing.places import Place
from steward.cluster.kueue import QuotaRow
from steward.cluster.quota import NodeKind
from steward.cluster.snapshot import Snapshot


class Changes:
    """Since when quotas are what they are.

    Parameters
    ----------
    before : mapping of str to QuotaSeen
        What the memory holds.
    snapshot : Snapshot
        With the ClusterQueues and Cohorts as they are now.
    """

    def __init__(self, before: Mapping[str, QuotaSeen], snapshot: Snapshot) -> None:
        self.seen = {
            key: see_quota(
                before.get(key),
                f"{row.nominal:g} {row.borrowing_limit}",
                f"{row.lending_limit} {parent}",
                snapshot.at,
            )
            for key, parent, row in sorted(_rows(snapshot), key=lambda one: one[0])
        }
        self._cohorts = tuple(cohort.name for cohort in snapshot.cohorts)

    def own(self, place: Place) -> datetime | None:
        """Tell since when a queue's own quota and limit are known to be what they are now."""
        return self.seen[_key(NodeKind.QUEUE, place.queue.name, place.row)].own_since

    def pool(self, place: Place) -> datetime | None:
        """Tell since when nothing that decides what a queue can have is known to have changed."""
        names = (place.queue.name, *place.tree.siblings(place.queue.name))
        keys = [_key(NodeKind.QUEUE, name, place.row) for name in names]
        keys += [_key(NodeKind.COHORT, name, place.row) for name in self._cohorts]
        rows = (self.seen[key] for key in keys if key in self.seen)
        times = (when for row in rows for when in (row.own_since, row.shared_since) if when)
        return max(times, default=None)


def _rows(snapshot: Snapshot) -> Iterator[tuple[str, str | None, QuotaRow]]:
    for queue in snapshot.cluster_queues:
        for row in queue.rows:
            yield _key(NodeKind.QUEUE, queue.name, row), queue.cohort, row
    for cohort in snapshot.cohorts:
        for row in cohort.rows:
            yield _key(NodeKind.COHORT, cohort.name, row), cohort.parent, row


def _key(kind: NodeKind, name: str, row: QuotaRow) -> str:
    return f"{kind}/{name}/{row.flavor}/{row.resource}"
