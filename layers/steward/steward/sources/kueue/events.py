"""Kubernetes events about Workloads: either form that Kueue has written them in, as core/v1 shows it."""

from datetime import datetime

import msgspec

from steward.cluster.kueue import KueueEvent
from steward.sources.kubernetes.fields import MalformedError, Time, moment, required
from steward.sources.kubernetes.shapes import Shape
from steward.sources.kueue.fields import GROUP

ABOUT_WORKLOADS = "involvedObject.kind=Workload"
"""Field selector: leaves every other event on the server."""


class Involved(msgspec.Struct, rename="camel"):
    """What an event is about."""

    api_version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class Series(msgspec.Struct, rename="camel"):
    """Repetitions of an event that was written through events.k8s.io."""

    count: int | None = None
    last_observed_time: Time = None


class EventShape(Shape, rename="camel"):
    """An event."""

    involved_object: Involved | None = None
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    first_timestamp: Time = None
    last_timestamp: Time = None
    event_time: Time = None
    series: Series | None = None


def read_event(item: EventShape) -> KueueEvent | None:
    """Reduce an event; None where it is about another API's Workload.

    Events that Kueue writes through events.k8s.io (0.18 and later) have null first and last
    timestamps and no count here: their times are `eventTime` and the series'.

    Raises
    ------
    MalformedError
        It names no object, reason or time.
    """
    about, series = item.involved_object or Involved(), item.series or Series()
    if about.kind != "Workload" or (about.api_version or GROUP).partition("/")[0] != GROUP:
        return None
    return KueueEvent(
        namespace=required(about.namespace, "involvedObject: namespace"),
        workload=required(about.name, "involvedObject: name"),
        workload_uid=about.uid or None,
        reason=required(item.reason, "reason"),
        message=item.message or "",
        at=_last(item, series),
        count=max(item.count or 1, series.count or 1),
    )


def _last(item: EventShape, series: Series) -> datetime:
    stated = (
        moment(series.last_observed_time, "series: lastObservedTime"),
        moment(item.last_timestamp, "lastTimestamp"),
        moment(item.event_time, "eventTime"),
        moment(item.first_timestamp, "firstTimestamp"),
    )
    found = max(filter(None, stated), default=None)
    found = found or moment(item.metadata.creation_timestamp, "creationTimestamp")
    if found is None:
        raise MalformedError("eventTime is missing")
    return found
