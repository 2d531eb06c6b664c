"""Record what jobs and storage tell of checkpoints: a batch of events, one write a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from steward.checkpoint_events import (
    CHECKPOINT_WRITTEN,
    OBJECT_CREATED,
    Heartbeat,
    ObjectCreated,
)
from steward.cluster.checkpoints import Written, WrittenBy
from steward.errors import PermanentError, StewardError
from steward.events import EventEnvelope, QueueRecord, parse
from steward.telemetry import logger
from steward.usecases.checkpoint_places import S3, Job, MarkedPlaces

if TYPE_CHECKING:
    from steward.cluster.policy import Policy
    from steward.ports import CheckpointStore

AHEAD = timedelta(minutes=5)
"""How far a clock may be ahead: times from further ahead would keep out everything that is true."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """What was recorded of how many jobs, and the messages that the queue is to deliver again."""

    jobs: int
    dropped: int
    failed_messages: tuple[str, ...]


def record_checkpoints(
    records: Iterable[QueueRecord], policy: Policy, store: CheckpointStore, now: datetime
) -> Recorded:
    """Reduce a batch of events to jobs and record what they tell.

    Parameters
    ----------
    records : iterable of QueueRecord
        EventBridge's envelopes, as rules put them on the queue.
    policy : Policy
        Knows clusters, namespaces and markers.
    store : CheckpointStore
        Port.
    now : datetime
        An event that is dated later is dropped.

    Returns
    -------
    Recorded
        A malformed message is failed (it ends in the dead-letter queue, where it can be read); so
        are all messages of a job that could not be recorded. An event that speaks of nothing in the
        policy is dropped and counted.
    """
    places = MarkedPlaces(policy)
    told: dict[Job, dict[Written, None]] = {}
    messages: dict[Job, list[str]] = {}
    failed: set[str] = set()
    dropped = 0
    for record in records:
        try:
            event = parse(EventEnvelope, record.body, f"message {record.message_id}")
            jobs, written = _read(event, policy, places, f"message {record.message_id}")
        except PermanentError as error:
            logger.error("malformed checkpoint event", error=str(error))
            failed.add(record.message_id)
            continue
        if not jobs or written.at > now + AHEAD:
            dropped += 1
            _log_dropped(written, "dated ahead" if jobs else "nobody's in the policy")
            continue
        for job in jobs:
            told.setdefault(job, {})[written] = None
            messages.setdefault(job, []).append(record.message_id)
    for job in sorted(told):
        try:
            store.record(job.cluster, job.namespace, job.name, *told[job])
        except StewardError as error:
            logger.error("checkpoint not recorded", job=job, error=str(error))
            failed.update(messages[job])
    return Recorded(jobs=len(told), dropped=dropped, failed_messages=tuple(sorted(failed)))


def _log_dropped(written: Written, reason: str) -> None:
    """Log it; most objects of a bucket are no markers, and worth no line each."""
    level = logger.debug if written.by is WrittenBy.MARKER else logger.warning
    level("checkpoint dropped", uri=written.uri, by=written.by, reason=reason)


def _read(
    event: EventEnvelope, policy: Policy, places: MarkedPlaces, where: str
) -> tuple[Sequence[Job], Written]:
    """Tell whose checkpoint an event tells of, and what it tells."""
    at = event.time.astimezone(UTC)
    if event.detail_type == CHECKPOINT_WRITTEN:
        beat = parse(Heartbeat, event.detail, where)
        cluster = policy.cluster(beat.cluster)
        known = cluster is not None and cluster.team_of(beat.namespace) is not None
        jobs = (Job(beat.cluster, beat.namespace, beat.job),) if known else ()
        return jobs, Written(uri=beat.uri, at=at, by=WrittenBy.HEARTBEAT, step=beat.step)
    if event.detail_type == OBJECT_CREATED and event.source == "aws.s3":
        created = parse(ObjectCreated, event.detail, where)
        bucket, key = created.bucket.name, created.object.key
        written = Written(uri=f"{S3}{bucket}/{key}", at=at, by=WrittenBy.MARKER)
        return places.jobs(bucket, key), written
    raise PermanentError(
        f"{where}: {event.detail_type!r} of {event.source!r} tells of no checkpoint; correct the "
        "rule that put it on the queue"
    )
