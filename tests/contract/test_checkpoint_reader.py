"""One suite for the checkpoint reader: over moto's S3, and over the rig's stand-in for it."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from boto3 import Session
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from local.recording import Recording
from local.standins.s3 import S3Standin
from steward.clock import FixedClock
from steward.cluster.checkpoints import Written, WrittenBy
from steward.cluster.policy import CheckpointLocation
from steward.errors import DeniedError, PermanentError, RetryableError
from steward.sources.checkpoints import S3Checkpoints
from tests.serving import serving

NOON = datetime(2026, 11, 5, 12, tzinfo=UTC)
NAMES = itertools.count()
ONCE = Config(retries={"total_max_attempts": 1})


class Stored(NamedTuple):
    key: str
    minutes_ago: float = 60
    size: int = 10


class Storage(NamedTuple):
    """A bucket, and the client that reaches it."""

    bucket: str
    client: Any

    def reader(self, **options: Any) -> S3Checkpoints:
        return S3Checkpoints(lambda: self.client, options.pop("clock", FixedClock(NOON)), **options)

    def newest(
        self, prefix: str, job: str = "train", *, before: datetime = NOON, marker: str | None = None
    ) -> str | None:
        """Key of the newest checkpoint."""
        location = CheckpointLocation(uri=f"s3://{self.bucket}/{prefix}", marker=marker)
        found = self.reader().newest(location, job, before)
        return None if found is None else found.uri.removeprefix(f"s3://{self.bucket}/")


type Store = Callable[[Sequence[Stored]], Storage]


def in_moto(aws: Session, files: Sequence[Stored]) -> Storage:
    bucket = f"checkpoints-{next(NAMES)}"
    aws.client("s3").create_bucket(Bucket=bucket)
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for one in files:
        made = backend.put_object(bucket, one.key, b"x" * one.size)
        made.last_modified = (NOON - timedelta(minutes=one.minutes_ago)).replace(tzinfo=None)
    return Storage(bucket, aws.client("s3", config=ONCE))


def recorded(folder: Path, documents: Sequence[object]) -> Recording:
    (folder / "checkpoints").mkdir(exist_ok=True)
    (folder / "recording.yaml").write_text(f"cluster: ml-shared-01\nnow: {NOON.isoformat()}\n")
    (folder / "checkpoints" / "a.json").write_text(json.dumps(documents))
    return Recording.open(folder)


def documents(bucket: str, files: Sequence[Stored]) -> list[object]:
    return [
        {
            "bucket": bucket,
            "key": one.key,
            "last_modified": (NOON - timedelta(minutes=one.minutes_ago)).isoformat(),
            "size": one.size,
        }
        for one in files
    ]


def client_of(url: str) -> Any:
    session = Session(aws_access_key_id="key", aws_secret_access_key="secret")
    return session.client("s3", region_name="us-east-1", endpoint_url=url, config=ONCE)


@pytest.fixture(params=["moto", "stand-in"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "moto":
        aws = request.getfixturevalue("aws")
        yield lambda files: in_moto(aws, files)
        return
    running: list[Any] = []

    def stand_in(files: Sequence[Stored]) -> Storage:
        # Everything is visible: an object later than the eviction is the reader's to leave out.
        recording = recorded(tmp_path, documents("checkpoints", files))
        server = serving(S3Standin(recording, lambda: NOON + timedelta(days=1)))
        running.append(server)
        return Storage("checkpoints", client_of(server.__enter__()))

    yield stand_in
    for server in running:
        server.__exit__(None, None, None)


# --- which object is the newest ------------------------------------------------------------------


def test_the_newest_object_of_the_jobs_own_prefix_is_its_checkpoint(store: Store) -> None:
    storage = store([Stored("r/train/step-2", 20), Stored("r/train/step-1", 40)])
    location = CheckpointLocation(uri=f"s3://{storage.bucket}/r/{{job}}/")
    assert storage.reader().newest(location, "train", NOON) == Written(
        uri=f"s3://{storage.bucket}/r/train/step-2",
        at=NOON - timedelta(minutes=20),
        by=WrittenBy.STORAGE,
    )


def test_nothing_there_is_no_checkpoint_and_no_error(store: Store) -> None:
    assert store([]).newest("r/{job}/") is None


def test_an_object_of_the_moment_of_the_eviction_counts_and_a_later_one_does_not(
    store: Store,
) -> None:
    # S3 and Kueue both tell whole seconds: at the same one, nobody knows which was first.
    storage = store([Stored("r/train/a", 30), Stored("r/train/b", 30 - 1 / 60)])
    assert storage.newest("r/{job}/", before=NOON - timedelta(minutes=30)) == "r/train/a"
    assert storage.newest("r/{job}/", before=NOON - timedelta(minutes=30, seconds=1)) is None


def test_empty_objects_in_place_of_folders_are_no_checkpoints(store: Store) -> None:
    folders = [Stored("r/train/", 5, 0), Stored("r/train/step-9_$folder$", 5, 0)]
    assert store(folders).newest("r/{job}/") is None


def test_an_object_whose_name_only_begins_like_the_jobs_is_another_jobs(store: Store) -> None:
    storage = store([Stored("r/train-large/step-1", 5), Stored("r/train/step-1", 50)])
    assert storage.newest("r/{job}/") == "r/train/step-1"
    assert storage.newest("r/{job}") == "r/train/step-1"
    assert storage.newest("r/") == "r/train/step-1"


def test_with_a_marker_only_objects_of_its_name_count(store: Store) -> None:
    # A shard of a checkpoint that was cut off is newer, and restores nothing.
    storage = store(
        [
            Stored("r/train/step-1/shard", 41),
            Stored("r/train/step-1/_SUCCESS", 40, 0),
            Stored("r/train/step-2/shard", 20),
        ]
    )
    assert storage.newest("r/{job}/", marker="_SUCCESS") == "r/train/step-1/_SUCCESS"
    assert storage.newest("r/{job}/", marker="_S*") == "r/train/step-1/_SUCCESS"
    assert storage.newest("r/{job}/", marker="*.metadata") is None
    assert storage.newest("r/{job}/") == "r/train/step-2/shard"


def test_without_the_jobs_name_in_it_a_location_is_searched_for_the_job(store: Store) -> None:
    storage = store(
        [
            Stored("r/llm/runs/train/step-1", 40),
            Stored("r/llm/runs/train-2/step-9", 10),
            Stored("r/train-large.pt", 10),
        ]
    )
    assert storage.newest("r/") == "r/llm/runs/train/step-1"
    # A team that is called as the job: what lies above the location says nothing of it.
    assert storage.newest("r/", job="r") is None


@pytest.mark.parametrize(
    ("key", "job"),
    [
        ("train.pt", "train"),
        ("train-step-100.pt", "train"),
        ("2026/train_epoch3/model.bin", "train"),
        ("train.ckpt-41", "train"),
        ("train-global_step500/mp_rank_00", "train"),
        # Of two jobs of which one is called as the other begins, the longer name is meant.
        ("train-7b-step-100.pt", "train-7b"),
    ],
)
def test_a_checkpoint_may_be_called_as_its_job_and_by_its_step(
    store: Store, key: str, job: str
) -> None:
    storage = store([Stored(f"r/{key}")])
    jobs = ("train", "train-7b", "7b", "rain", "step")
    assert [one for one in jobs if storage.newest("r/", job=one)] == [job]


@pytest.mark.parametrize(
    "key",
    ["train-2.pt", "train-large.pt", "train-stepwise/1.pt", "retrain-step-1.pt", "trainstep1"],
)
def test_what_only_begins_as_the_job_is_another_jobs(store: Store, key: str) -> None:
    assert store([Stored(f"r/{key}")]).newest("r/") is None


def test_where_the_job_has_a_folder_nothing_else_is_its(store: Store) -> None:
    storage = store([Stored("r/train/step-1", 40), Stored("r/copies/train/step-1", 10)])
    assert storage.newest("r/") == "r/train/step-1"
    # Written by the run after the eviction: the folder is the job's, and held nothing before.
    assert storage.newest("r/", before=NOON - timedelta(minutes=50)) is None


def test_a_whole_bucket_may_be_a_location(store: Store) -> None:
    assert store([Stored("train/step-1", 40)]).newest("") == "train/step-1"


def test_keys_are_what_they_are_in_the_bucket(store: Store) -> None:
    # Names that URLs and XML have to escape; a control character is legal in a key.
    key = "r/train/step=1 & <final>/ä+%20\u0001"
    assert store([Stored(key, 40)]).newest("r/{job}/") == key


# --- how far it looks ----------------------------------------------------------------------------


def test_a_listing_goes_on_behind_its_first_page(store: Store) -> None:
    # Keys come in their own order: the newest is the last of 1,001, alone on the second page.
    files = [Stored(f"r/train/{number:04}", 60) for number in range(1000)]
    assert store([*files, Stored("r/train/1000", 10)]).newest("r/{job}/") == "r/train/1000"


def test_a_listing_without_an_end_is_unreadable_and_one_that_just_ends_is_not(
    store: Store,
) -> None:
    storage = store([Stored(f"r/train/{number:04}", 60) for number in range(1000)] + [Stored("s")])
    everything = CheckpointLocation(uri=f"s3://{storage.bucket}/")
    own = CheckpointLocation(uri=f"s3://{storage.bucket}/r/{{job}}/")
    with pytest.raises(PermanentError, match=r"more than 1,000 objects.*\{job\}"):
        storage.reader(pages=1).newest(everything, "other", NOON)
    assert storage.reader(pages=1).newest(own, "train", NOON) is not None


class Slow:
    """A clock that moves by eight seconds whenever it is read."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        self.at += timedelta(seconds=8)
        return self.at

    def sleep(self, seconds: float) -> None:
        raise AssertionError


def test_after_its_time_the_reader_asks_for_no_further_page(store: Store) -> None:
    # Made at 8 s, so until 28 s; pages are asked for at 16 s, 24 s and, no more, 32 s.
    storage = store([Stored(f"r/train/{number:04}", 60) for number in range(2001)])
    location = CheckpointLocation(uri=f"s3://{storage.bucket}/r/{{job}}/")
    reader = storage.reader(clock=Slow())
    with pytest.raises(RetryableError, match=r"not at its end after 20 s.*next tick"):
        reader.newest(location, "train", NOON)


# --- refusals ------------------------------------------------------------------------------------

# As the S3 API reference prints them (Error responses).
REFUSALS = {
    "AccessDenied": (403, DeniedError, "s3:ListBucket"),
    "NoSuchBucket": (404, PermanentError, "does not exist"),
    "SlowDown": (503, RetryableError, "next run"),
}


def refusing_aws(code: str) -> Any:
    """A client whose every answer is S3's own form of a refusal."""
    session = Session(aws_access_key_id="key", aws_secret_access_key="secret")
    client = session.client("s3", region_name="us-east-1", config=ONCE)
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>No.</Message>'
        "<RequestId>656c76696e6727</RequestId><HostId>Uuag1LuByRx9e6j5</HostId></Error>"
    ).encode()

    class Raw:
        def stream(self) -> Iterator[bytes]:
            yield body

    def answer(request: Any, **_: object) -> Any:
        headers: Any = {"content-type": "application/xml", "content-length": str(len(body))}
        return AWSResponse(request.url, REFUSALS[code][0], headers, Raw())

    client.meta.events.register("before-send.s3.ListObjectsV2", answer)
    return client


@pytest.mark.parametrize("side", ["aws", "stand-in"])
@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_a_refusal_is_named_for_what_it_is(code: str, side: str, tmp_path: Path) -> None:
    location = CheckpointLocation(uri="s3://theirs/r/{job}/")
    recording = recorded(tmp_path, [{"Error": {"Code": code, "Message": "No."}}])
    _, kind, said = REFUSALS[code]
    with serving(S3Standin(recording, lambda: NOON)) as url:
        client = refusing_aws(code) if side == "aws" else client_of(url)
        reader = S3Checkpoints(lambda: client, FixedClock(NOON))
        with pytest.raises(kind, match=rf"list s3://theirs/r/train/: {code}.*{said}") as refused:
            reader.newest(location, "train", NOON)
    assert type(refused.value) is kind


def test_a_missing_bucket_of_motos_is_as_permanent_as_amazons(aws: Session) -> None:
    reader = Storage("nobodys", aws.client("s3", config=ONCE)).reader()
    with pytest.raises(PermanentError, match="NoSuchBucket"):
        reader.newest(CheckpointLocation(uri="s3://nobodys/"), "train", NOON)


def test_a_refusal_of_one_bucket_leaves_the_others_readable(tmp_path: Path) -> None:
    refusal = {"bucket": "theirs", "Error": {"Code": "AccessDenied", "Message": "No."}}
    recording = recorded(tmp_path, [refusal, *documents("ours", [Stored("r/train/a")])])
    with serving(S3Standin(recording, lambda: NOON)) as url:
        client = client_of(url)
        assert Storage("ours", client).newest("r/{job}/") == "r/train/a"
        with pytest.raises(DeniedError):
            Storage("theirs", client).newest("r/{job}/")


def test_the_answer_to_a_listing_is_kept_for_the_tick_be_it_a_refusal(tmp_path: Path) -> None:
    asked = []
    recording = recorded(tmp_path, [{"Error": {"Code": "AccessDenied", "Message": "No."}}])
    with serving(S3Standin(recording, lambda: NOON)) as url:
        client = client_of(url)
        client.meta.events.register("before-send.s3.ListObjectsV2", lambda **_: asked.append(1))
        reader = S3Checkpoints(lambda: client, FixedClock(NOON))
        for job in ("one", "one", "two"):
            with pytest.raises(DeniedError):
                reader.newest(CheckpointLocation(uri=f"s3://b/{job}/{{job}}/"), job, NOON)
    assert len(asked) == 2  # the two prefixes


def test_what_is_no_s3_location_is_not_asked_for() -> None:
    def client() -> Any:
        raise AssertionError

    reader = S3Checkpoints(client, FixedClock(NOON))
    with pytest.raises(PermanentError, match=r"fsx://shared/: only s3://"):
        reader.newest(CheckpointLocation(uri="fsx://shared/"), "train", NOON)
