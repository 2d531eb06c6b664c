"""`checkpoints/`: what its files may hold, and what the rig shows of them."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from boto3 import Session
from werkzeug.test import Client
from werkzeug.wrappers import Response

from local.cloud import cloud
from local.recording import Recording
from local.recording.checkpoints import read_checkpoints
from local.standins.s3 import S3Standin
from steward.errors import ConfigError

NOON = datetime(2026, 11, 5, 12, tzinfo=UTC)
S3 = "{http://s3.amazonaws.com/doc/2006-03-01/}"

type Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(document: object, name: str = "a.json") -> Path:
        folder = tmp_path / "checkpoints"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(document))
        return folder

    return write


def a_file(**changes: Any) -> dict[str, Any]:
    given = {"bucket": "b", "key": "r/train/1", "last_modified": "2026-11-05T11:00:00Z", "size": 1}
    return {name: value for name, value in (given | changes).items() if value is not None}


def an_event(**changes: Any) -> dict[str, Any]:
    given = {
        "detail-type": "Checkpoint Written",
        "source": "gpu-steward.training",
        "time": "2026-11-05T13:30:00+02:00",
        "detail": {"cluster": "ml-shared-01", "namespace": "n", "job": "train", "uri": "u"},
    }
    return {name: value for name, value in (given | changes).items() if value is not None}


# --- the files -----------------------------------------------------------------------------------


def test_objects_events_and_refusals_may_stand_in_one_list_or_alone(write: Write) -> None:
    refusal = {"Error": {"Code": "AccessDenied", "Message": "No."}}
    write([a_file(), an_event(), refusal | {"bucket": "theirs"}], "a.json")
    write(a_file(key="r/train/0", more="x"), "b.json")
    found = read_checkpoints(write([], "c.json"))
    assert [one.key for one in found.files] == ["r/train/0", "r/train/1"]
    # The same moment, in the form that EventBridge delivers.
    assert [event["time"] for event in found.events] == ["2026-11-05T11:30:00Z"]
    assert (found.refusal("theirs"), found.refusal("b")) == (refusal, None)


def test_a_refusal_without_a_bucket_is_every_buckets(write: Write) -> None:
    mine = {"Error": {"Code": "NoSuchBucket"}}
    found = read_checkpoints(write([{"Error": {"Code": "SlowDown"}}, {"bucket": "b"} | mine]))
    assert found.refusal("anything") == {"Error": {"Code": "SlowDown"}}
    assert found.refusal("b") == mine


def test_no_folder_is_nothing_there(tmp_path: Path) -> None:
    found = read_checkpoints(tmp_path / "checkpoints")
    assert (found.files, found.events, found.refusal("b")) == ([], [], None)


def test_events_come_by_their_times_and_then_as_they_were_written(write: Write) -> None:
    early, late = "2026-11-05T09:00:00Z", "2026-11-05T10:00:00Z"
    write([an_event(id="3", time=late)], "b.json")
    folder = write([an_event(id="2", time=late), an_event(id="1", time=early)], "a.json")
    assert [event["id"] for event in read_checkpoints(folder).events] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (5, r"a\.json: \[0\]: is not a JSON object"),
        ([a_file(), "x"], r"a\.json: \[1\]: is not a JSON object"),
        (a_file(bucket=None), r"\[0\]: 'bucket' is missing; see docs/recordings\.md"),
        (a_file(key=""), r"key is '', not a name"),
        (a_file(last_modified=None), "'last_modified' is missing"),
        (a_file(last_modified="yesterday"), "'yesterday' is not a time"),
        (a_file(last_modified="2026-11-05T11:00:00"), "lacks an offset"),
        (a_file(size=None), "'size' is missing"),
        (a_file(size=-1), "size is -1"),
        (a_file(size="10"), "size is '10'"),
        (an_event(time=None), "'time' is missing"),
        (an_event(detail=None), "no detail"),
        (an_event(**{"detail-type": "Object Created"}), "put other events into events/"),
        ({"Error": "AccessDenied"}, "Error has no Code"),
        ({"Error": {"Message": "No."}}, "Error has no Code"),
        ({}, "'bucket' is missing"),
    ],
)
def test_what_is_none_of_them_is_refused_when_the_recording_is_opened(
    write: Write, tmp_path: Path, document: object, fault: str
) -> None:
    write(document)
    (tmp_path / "recording.yaml").write_text("cluster: ml-shared-01\nnow: 2026-11-05T12:00:00Z\n")
    with pytest.raises(ConfigError, match=fault) as refused:
        Recording.open(tmp_path)
    assert "checkpoints/a.json" in str(refused.value)
    assert "\n" not in str(refused.value)


# --- what is shown -------------------------------------------------------------------------------


def listing(write: Write, document: object, now: datetime, **asked: str) -> Response:
    folder = write(document).parent
    (folder / "recording.yaml").write_text("cluster: ml-shared-01\nnow: 2026-11-05T12:00:00Z\n")
    client = Client(S3Standin(Recording.open(folder), lambda: now))
    query: Mapping[str, str] = {"list-type": "2"} | asked
    return client.get("/b", query_string=query)


def keys(response: Response) -> list[str | None]:
    assert response.status_code == 200
    root = ET.fromstring(response.get_data())  # noqa: S314 - the rig's own answer
    return [one.text for one in root.iter(f"{S3}Key")]


def test_an_object_is_there_from_its_time_on(write: Write) -> None:
    document = [a_file(), a_file(key="later", last_modified="2026-11-05T12:00:01Z")]
    assert keys(listing(write, document, NOON)) == ["r/train/1"]
    assert keys(listing(write, document, NOON + timedelta(seconds=1))) == ["later", "r/train/1"]


def test_a_key_that_was_written_over_shows_its_newest_time_so_far(write: Write) -> None:
    document = [a_file(), a_file(last_modified="2026-11-05T11:50:00Z", size=2)]
    root = ET.fromstring(listing(write, document, NOON).get_data())  # noqa: S314 - as above
    assert [one.text for one in root.iter(f"{S3}LastModified")] == ["2026-11-05T11:50:00.000Z"]
    earlier = listing(write, document, NOON - timedelta(minutes=11))
    root = ET.fromstring(earlier.get_data())  # noqa: S314 - as above
    assert [one.text for one in root.iter(f"{S3}LastModified")] == ["2026-11-05T11:00:00.000Z"]


def test_keys_come_in_the_order_of_their_bytes_and_in_pages(write: Write) -> None:
    document = [a_file(key=key) for key in ("b", "a/2", "B", "a/10", "ä")]
    assert keys(listing(write, document, NOON)) == ["B", "a/10", "a/2", "b", "ä"]
    assert keys(listing(write, document, NOON, prefix="a/")) == ["a/10", "a/2"]
    page = {"max-keys": "2", "continuation-token": "2"}
    assert keys(listing(write, document, NOON, **page)) == ["a/2", "b"]


def test_a_token_that_nobody_gave_is_refused(write: Write) -> None:
    response = listing(write, [a_file()], NOON, **{"continuation-token": "x"})
    assert response.status_code == 400
    assert b"<Code>InvalidArgument</Code>" in response.get_data()


def test_the_rig_lists_the_stewards_own_bucket_and_the_recordings_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METRICS", "recorded")
    with cloud(tmp_path / "recording", "127.0.0.1") as running:
        session: Session = running.session
        s3 = session.client("s3", endpoint_url=running.rig.url)
        own = s3.list_objects_v2(Bucket=running.variables["BUCKET"], Prefix="memory/")
        assert [one["Key"] for one in own["Contents"]] == ["memory/ml-shared-01.json"]
        others = s3.list_objects_v2(Bucket="nobody-ever-made-this", Prefix="research/")
        assert others["KeyCount"] == 0
