"""Events about Workloads, in the forms that Kueue has written."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from steward.cluster.kueue import KueueEvent
from steward.sources.kubernetes.fields import MalformedError
from steward.sources.kueue.events import EventShape, read_event

type Json = dict[str, Any]

ABOUT = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "namespace": "hyperpod-ns-vision",
    "name": "job-embed",
    "uid": "31bb-2",
}


def read(**fields: Any) -> KueueEvent | None:
    item = {"involvedObject": ABOUT, "reason": "Pending", "message": "why", **fields}
    return read_event(msgspec.convert(item, EventShape))


def at(minute: int) -> str:
    return f"2026-11-02T08:{minute:02}:00Z"


@pytest.mark.parametrize(
    ("fields", "minute", "count"),
    [
        # core/v1, as Kueue up to 0.17 writes it: merged, with a count and two times.
        ({"firstTimestamp": at(1), "lastTimestamp": at(20), "count": 7}, 20, 7),
        # events.k8s.io, seen through core/v1: null times, no count.
        ({"firstTimestamp": None, "lastTimestamp": None, "eventTime": at(5), "count": 0}, 5, 1),
        # The same, repeated: the series says how often, and when last.
        ({"eventTime": at(5), "series": {"count": 4, "lastObservedTime": at(30)}}, 30, 4),
        ({"firstTimestamp": at(3)}, 3, 1),
        ({"metadata": {"creationTimestamp": at(9)}}, 9, 1),
    ],
)
def test_an_event_is_of_its_last_occurrence_whichever_form_it_has(
    fields: Json, minute: int, count: int
) -> None:
    assert read(**fields) == KueueEvent(
        namespace="hyperpod-ns-vision",
        workload="job-embed",
        workload_uid="31bb-2",
        reason="Pending",
        message="why",
        at=datetime(2026, 11, 2, 8, minute, tzinfo=UTC),
        count=count,
    )


@pytest.mark.parametrize(
    ("about", "ours"),
    [
        ({"apiVersion": "kueue.x-k8s.io/v1beta1"}, True),
        ({"apiVersion": None}, True),
        ({"apiVersion": "example.com/v1"}, False),  # another API's Workload
        ({"kind": "Pod"}, False),
    ],
)
def test_only_kueues_workloads_are_meant(about: Json, ours: bool) -> None:  # noqa: FBT001  # a case's expectation
    assert (read(eventTime=at(5), involvedObject=ABOUT | about) is not None) is ours


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "eventTime is missing"),
        ({"eventTime": at(5), "reason": ""}, "reason is missing"),
        ({"eventTime": "just now"}, "eventTime"),
        ({"eventTime": at(5), "involvedObject": ABOUT | {"name": None}}, "name is missing"),
    ],
)
def test_an_event_of_nothing_or_at_no_time_is_named(fields: Json, named: str) -> None:
    with pytest.raises(MalformedError, match=named):
        read(**fields)
