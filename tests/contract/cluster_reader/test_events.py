"""The cluster's events: which are read, and how many."""

from datetime import timedelta
from typing import Any

import pytest

from tests.contract.cluster_reader.answers import NOW, PARTS, error, event, world
from tests.contract.cluster_reader.readers import ReaderOf, Serve, details, statuses

OPERATION = "sagemaker/ListClusterEvents"


def with_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    return world() | {OPERATION: {"Events": events}}


def test_events_of_the_last_day_are_read_whatever_their_level(
    serve: Serve, reader_of: ReaderOf
) -> None:
    day = timedelta(hours=24)
    plain = event(3, NOW - timedelta(hours=1))
    for member in ("EventLevel", "InstanceGroupName", "InstanceId", "Description"):
        del plain[member]  # older events name no level; a cluster's own name no instance
    serve(
        with_events(
            [
                event(1, NOW - day - timedelta(seconds=1)),
                event(2, NOW - day + timedelta(seconds=1), EventLevel="Info"),
                plain,
                event(4, NOW, EventLevel="Fatal"),
            ]
        )
    )
    found = reader_of().read().control_plane.events
    assert [(one.id, one.level) for one in found] == [
        ("e-4", "Fatal"),
        ("e-3", None),
        ("e-2", "Info"),
    ]
    assert (found[1].group, found[1].instance_id, found[1].description) == (None, None, "")


@pytest.mark.parametrize(("there", "kept"), [(199, 199), (200, 200), (201, 200), (450, 200)])
def test_no_more_than_the_newest_two_hundred_are_kept(
    serve: Serve, reader_of: ReaderOf, there: int, kept: int
) -> None:
    serve(with_events([event(n, NOW - timedelta(minutes=n)) for n in range(there)]))
    reading = reader_of().read()
    assert [one.id for one in reading.control_plane.events] == [f"e-{n}" for n in range(kept)]
    assert statuses(reading) == dict.fromkeys(PARTS, "ok")
    # A list that was cut says so; one that was not has nothing to say.
    said = "of the last day's events only the newest 200"
    assert details(reading).get(OPERATION) == (said if there > kept else None)


def test_pages_after_the_newest_two_hundred_are_not_asked_for(
    serve: Serve, reader_of: ReaderOf
) -> None:
    serve(with_events([event(n, NOW - timedelta(minutes=n)) for n in range(1000)]))
    reader = reader_of()
    asked: list[int] = []
    reader._sagemaker.meta.events.register(
        "before-parameter-build.sagemaker.ListClusterEvents", lambda **_: asked.append(1)
    )
    reader.read()
    assert len(asked) == 3  # two pages of 100, and one that shows that there is more


@pytest.mark.parametrize(
    "members", [{"ResourceType": None}, {"EventTime": "soon"}, {"EventTime": None}]
)
def test_a_malformed_event_is_left_out_and_named(
    serve: Serve, reader_of: ReaderOf, members: dict[str, Any]
) -> None:
    odd = event(1, NOW - timedelta(minutes=1), **members)
    serve(with_events([odd, event(2, NOW - timedelta(minutes=2))]))
    reading = reader_of().read()
    assert [one.id for one in reading.control_plane.events] == ["e-2"]
    part = next(p for p in reading.parts if p.name == OPERATION)
    assert (part.status, part.left_out) == ("ok", ("e-1",))


@pytest.mark.parametrize(
    ("described", "code", "status"),
    [
        ("AccessDeniedException", "ValidationException", "absent"),  # its mode is not known
        ("AccessDeniedException", "UnsupportedOperationException", "absent"),
        ("AccessDeniedException", "ResourceNotFound", "unreadable"),
        ("AccessDeniedException", "AccessDeniedException", "denied"),
    ],
)
def test_what_a_refusal_of_events_means_where_the_mode_is_not_known(
    serve: Serve, reader_of: ReaderOf, described: str, code: str, status: str
) -> None:
    serve(world() | {"sagemaker/DescribeCluster": error(described), OPERATION: error(code)})
    reading = reader_of().read()
    assert statuses(reading)[OPERATION] == status
    assert reading.control_plane.events == ()
    assert code in details(reading)[OPERATION]
