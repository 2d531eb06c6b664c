"""What arrives at the functions: EventBridge envelopes and queue messages. Unknown fields pass."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from steward.cluster.planning import SnapshotScope
from steward.codec import convert
from steward.errors import PermanentError

type AwareDatetime = Annotated[datetime, msgspec.Meta(tz=True)]

SOURCE = "gpu-steward"
"""Event source of everything this product puts on its bus."""

SNAPSHOT_REQUESTED = "Snapshot Requested"
SNAPSHOT_TAKEN = "Snapshot Taken"
SNAPSHOT_EVALUATED = "Snapshot Evaluated"


class EventEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """EventBridge's envelope around somebody's detail."""

    detail_type: str = msgspec.field(name="detail-type")
    source: str
    account: str = ""
    region: str = ""
    time: AwareDatetime
    detail: dict[str, Any]

    def named_cluster(self) -> str | None:
        """Return the cluster (name or ARN) that the event is about, if it names one.

        HyperPod's cluster events nest the details twice; the name stands in the outer
        `EventDetails`.
        """
        for place in (self.detail, self.detail.get("EventDetails")):
            if not isinstance(place, dict):
                continue
            for key in ("cluster", "ClusterName", "ClusterArn"):
                if isinstance(found := place.get(key), str) and found:
                    return found
        return None


class SnapshotRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A message that `plan_ticks` puts on the snapshot-requests queue."""

    cluster: str
    requested_at: AwareDatetime
    reason: str = ""
    scope: SnapshotScope = SnapshotScope.TICK


class SnapshotTaken(msgspec.Struct, frozen=True, kw_only=True):
    """Detail of "Snapshot Taken"."""

    cluster: str
    key: str
    at: AwareDatetime


class EvaluationReady(msgspec.Struct, frozen=True, kw_only=True):
    """Message on the evaluations queue."""

    cluster: str
    key: str
    at: AwareDatetime


class QueueRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One SQS record of a Lambda event."""

    message_id: str = msgspec.field(name="messageId")
    body: str


class QueueEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Lambda's event for an SQS batch."""

    records: list[QueueRecord] = msgspec.field(name="Records")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A wish for a fresh snapshot, whoever had it; no cluster means every cluster there."""

    cluster: str | None
    account: str = ""
    region: str = ""
    at: datetime
    scope: SnapshotScope = SnapshotScope.TICK


def parse[T](model: type[T], value: object, where: str) -> T:
    """Validate what arrived: JSON text, or the values that Lambda made of it.

    Raises
    ------
    PermanentError
        It is not such an event; names where it came from and the first fault.
    """
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise PermanentError(f"{where}: not JSON: {error}") from error
    return convert(model, value, where)


def parse_request(body: str, where: str) -> Request:
    """Read a snapshot-requests message: our own request, or an event that a rule put there.

    Raises
    ------
    PermanentError
        It is neither.
    """
    if '"detail-type"' in body:
        event = parse(EventEnvelope, body, where)
        return Request(
            cluster=event.named_cluster(),
            account=event.account,
            region=event.region,
            at=event.time,
            scope=_scope(event, where),
        )
    request = parse(SnapshotRequest, body, where)
    return Request(cluster=request.cluster, at=request.requested_at, scope=request.scope)


def _scope(event: EventEnvelope, where: str) -> SnapshotScope:
    """Tell what to read: only a wish addressed to us says so, other events mean what they mean."""
    asked = event.detail.get("scope") if event.detail_type == SNAPSHOT_REQUESTED else None
    return SnapshotScope.TICK if asked is None else convert(SnapshotScope, asked, f"{where}: scope")
