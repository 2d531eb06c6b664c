"""What arrives at the functions: EventBridge envelopes and queue messages. Unknown fields pass."""

from datetime import UTC, datetime
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

ALARM_CHANGED = "CloudWatch Alarm State Change"
"""Detail type of CloudWatch's event; an alarm's own action has another shape."""

_TIMESTAMP_DIGITS = 13

_PLACES = ("EventDetails", "requestParameters", "responseElements")
"""Parts of a detail that name a cluster where the detail itself does not."""


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

        HyperPod's cluster events nest the details twice, and the name stands in the outer
        `EventDetails`; CloudTrail's stand in what was asked or answered, in nobody's casing;
        alarms name the EKS cluster as a dimension of their metrics. A name goes before an ARN,
        which ends in an id.
        """
        if self.detail_type == ALARM_CHANGED:
            return _measured_cluster(self.detail)
        places = (self.detail, *(self.detail.get(name) for name in _PLACES))
        known = [_lower_keys(place) for place in places if isinstance(place, dict)]
        for key in ("cluster", "clustername", "clusterarn"):
            for place in known:
                if isinstance(found := place.get(key), str) and found:
                    return found
        return None


def _lower_keys(place: dict[str, Any]) -> dict[str, Any]:
    return {key.lower(): value for key, value in place.items()}


def _measured_cluster(detail: dict[str, Any]) -> str | None:
    """Return the one cluster that an alarm's metrics are of; a composite alarm has none."""
    match detail:
        case {"configuration": {"metrics": [*metrics]}}:
            found = {name for metric in metrics if (name := _dimension(metric))}
            return found.pop() if len(found) == 1 else None
    return None


def _dimension(metric: object) -> str | None:
    match metric:
        case {"metricStat": {"metric": {"dimensions": {"ClusterName": str(name)}}}}:
            return name
    return None


class SnapshotRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A message on the snapshot-requests queue: `plan_ticks`' own, or an alert that a topic sent.

    Attributes
    ----------
    requested_at : datetime or None
        What `plan_ticks` says; None in an alert, which was made when it was sent.
    """

    cluster: str
    requested_at: AwareDatetime | None = None
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
    attributes: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def sent(self) -> datetime | None:
        """When it was put on the queue; None where the queue does not say."""
        text = self.attributes.get("SentTimestamp", "")
        # Milliseconds since the epoch, 13 digits until the year 2286.
        if not (text.isascii() and text.isdigit() and len(text) <= _TIMESTAMP_DIGITS):
            return None
        return datetime.fromtimestamp(int(text) / 1000, UTC)


class QueueEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Lambda's event for an SQS batch."""

    records: list[QueueRecord] = msgspec.field(name="Records")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A wish for a fresh snapshot, whoever had it; no cluster means every cluster there.

    Attributes
    ----------
    planned : bool
        Whether `plan_ticks` asks; everything else is an event, whose turn may come a little later.
    """

    cluster: str | None
    account: str = ""
    region: str = ""
    at: datetime
    scope: SnapshotScope = SnapshotScope.TICK
    planned: bool = False


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


def parse_request(body: str, where: str, sent: datetime | None = None) -> Request:
    """Read a snapshot-requests message.

    It is our own request, an event that a rule put there, or an alert that a topic sent.

    Parameters
    ----------
    body, where : str
        The message, and how to name it.
    sent : datetime or None
        When it was put on the queue: an alert carries no time of its own.

    Raises
    ------
    PermanentError
        It is none of them, or nobody says when it was made.
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
    at = request.requested_at or sent
    if at is None:
        raise PermanentError(f"{where}: no requested_at, and no SentTimestamp of the queue")
    planned = request.requested_at is not None
    return Request(cluster=request.cluster, at=at, scope=request.scope, planned=planned)


def _scope(event: EventEnvelope, where: str) -> SnapshotScope:
    """Tell what to read: only a wish addressed to us says so, other events mean what they mean."""
    asked = event.detail.get("scope") if event.detail_type == SNAPSHOT_REQUESTED else None
    return SnapshotScope.TICK if asked is None else convert(SnapshotScope, asked, f"{where}: scope")
