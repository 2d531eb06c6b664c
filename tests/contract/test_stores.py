"""One suite for the stores of the bucket, and the policy: over moto's S3, and over twins."""

import copy
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from local.twins import InMemoryObjects, InMemoryPolicy
from steward import codec
from steward.cluster.memory import Memory
from steward.cluster.policy import Policy
from steward.cluster.snapshot import LastSnapshot
from steward.errors import ConflictError, PermanentError
from steward.ports import (
    EvaluationStore,
    MemoryStore,
    SnapshotStore,
)
from steward.stores.bucket import Evaluations, Memories, Objects, Snapshots
from steward.stores.policy_file import PolicyFile
from tests.contract.stores import LATER, NOON, a_memory, a_snapshot, an_evaluation, s3


@pytest.fixture(params=["aws", "twin"])
def objects(request: pytest.FixtureRequest) -> Objects:
    if request.param == "twin":
        return InMemoryObjects()
    return s3(request.getfixturevalue("aws"))


# --- snapshots -----------------------------------------------------------------------------------


def test_a_snapshot_comes_back_as_it_was_put(objects: Objects) -> None:
    store: SnapshotStore = Snapshots(objects)

    key = store.put(a_snapshot())

    # The layout that bucket rules (life cycle, access) and people rely on.
    assert key == "snapshots/ml/2026/11/02/20261102T120000Z.json.gz"
    assert store.get(key) == a_snapshot()


def test_a_snapshot_lies_under_its_utc_day(objects: Objects) -> None:
    # 01:30 in Berlin's winter is 00:30 UTC; half an hour after midnight there is still yesterday here.
    berlin = datetime.fromisoformat("2026-11-03T00:30:00+01:00")

    key = Snapshots(objects).put(a_snapshot(at=berlin))

    assert key == "snapshots/ml/2026/11/02/20261102T233000Z.json.gz"


def test_of_two_snapshots_of_one_moment_the_second_stands(objects: Objects) -> None:
    store = Snapshots(objects)
    store.put(a_snapshot(detail="first"))

    key = store.put(a_snapshot(detail="second"))

    assert store.get(key) == a_snapshot(detail="second")


def test_a_missing_snapshot_is_named(objects: Objects) -> None:
    with pytest.raises(PermanentError, match=r"snapshots/ml/gone\.json\.gz: no such object"):
        Snapshots(objects).get("snapshots/ml/gone.json.gz")


def test_a_cut_off_snapshot_is_named(objects: Objects) -> None:
    store = Snapshots(objects)
    key = store.put(a_snapshot())
    whole = objects.get(key)
    assert whole is not None

    objects.put(key, whole.data[:-9])  # the gzip trailer is eight bytes: one of content is gone too

    with pytest.raises(PermanentError, match=r"20261102T120000Z\.json\.gz: not a whole gzip file"):
        store.get(key)


def test_a_cluster_without_snapshots_has_no_pointer(objects: Objects) -> None:
    assert Snapshots(objects).last("ml") is None


def test_the_pointer_is_the_clusters_own_and_moves(objects: Objects) -> None:
    store: SnapshotStore = Snapshots(objects)
    store.finish("ml", LastSnapshot(key="k1", started=NOON, finished=NOON))
    store.finish("other", LastSnapshot(key="k9", started=NOON, finished=NOON))
    second = LastSnapshot(key="k2", started=LATER, finished=LATER + timedelta(seconds=9))

    store.finish("ml", second)

    assert store.last("ml") == second
    assert objects.exists("latest/ml.json")


def test_a_pointer_of_another_schema_is_refused(objects: Objects) -> None:
    objects.put("latest/ml.json", b'{"schema":2,"pointer":{}}')

    with pytest.raises(PermanentError, match=r"latest/ml\.json: has schema 2, .* schema 1"):
        Snapshots(objects).last("ml")


# --- memory --------------------------------------------------------------------------------------


def test_a_cluster_without_memory_has_an_empty_one_and_no_tag(objects: Objects) -> None:
    store: MemoryStore = Memories(objects)

    assert store.load("ml") == (Memory(cluster="ml"), None)


def test_a_memory_is_written_over_the_one_that_was_read(objects: Objects) -> None:
    store: MemoryStore = Memories(objects)
    first = store.save(a_memory("GPU-1"), None)

    second = store.save(a_memory("GPU-2"), first)

    assert store.load("ml") == (a_memory("GPU-2"), second)
    assert objects.exists("memory/ml.json")


def test_a_memory_that_somebody_changed_is_not_overwritten(objects: Objects) -> None:
    store = Memories(objects)
    tag = store.save(a_memory("GPU-1"), None)
    store.save(a_memory("GPU-2"), tag)

    with pytest.raises(ConflictError):
        store.save(a_memory("GPU-3"), tag)

    assert store.load("ml")[0] == a_memory("GPU-2")


def test_a_first_memory_does_not_overwrite_another_first_memory(objects: Objects) -> None:
    store = Memories(objects)
    store.save(a_memory("GPU-1"), None)

    with pytest.raises(ConflictError):
        store.save(a_memory("GPU-2"), None)

    assert store.load("ml")[0] == a_memory("GPU-1")


def test_a_memory_deleted_since_it_was_read_is_a_conflict(objects: Objects) -> None:
    # The tag was another object's: whoever deleted it wanted the memory to start anew.
    other = Memories(objects).save(copy.replace(a_memory("GPU-1"), cluster="other"), None)

    with pytest.raises(ConflictError):
        Memories(objects).save(a_memory("GPU-1"), other)

    assert Memories(objects).load("ml") == (Memory(cluster="ml"), None)


def test_an_unknown_memory_schema_is_refused(objects: Objects) -> None:
    Memories(objects).save(copy.replace(a_memory("GPU-1"), schema=2), None)

    with pytest.raises(PermanentError, match=r"memory/ml\.json: has schema 2, .* schema 1"):
        Memories(objects).load("ml")


# --- evaluations ---------------------------------------------------------------------------------


def test_an_evaluation_comes_back_and_is_found_by_its_time(objects: Objects) -> None:
    store: EvaluationStore = Evaluations(objects)

    key = store.put(an_evaluation())

    assert key == "evaluations/ml/2026/11/02/20261102T120000Z.json.gz"
    assert store.get(key) == an_evaluation()
    assert store.find("ml", NOON) == key


def test_no_evaluation_is_found_at_another_time_or_of_another_cluster(objects: Objects) -> None:
    store = Evaluations(objects)
    store.put(an_evaluation())

    assert store.find("ml", LATER) is None
    assert store.find("other", NOON) is None


def test_an_evaluation_put_twice_is_one_object(objects: Objects) -> None:
    store = Evaluations(objects)
    first = store.put(an_evaluation())
    before = objects.get(first)

    second = store.put(an_evaluation())

    assert second == first
    assert objects.get(second) == before
    assert before is not None
    # RFC 1952: bytes 4 to 7 are a time stamp, and zero is "none": so the bytes never depend on when.
    assert before.data[4:8] == bytes(4)


def test_a_missing_evaluation_is_named(objects: Objects) -> None:
    with pytest.raises(PermanentError, match=r"evaluations/ml/gone\.json\.gz: no such object"):
        Evaluations(objects).get("evaluations/ml/gone.json.gz")


# --- the policy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "twin"])
def test_the_policy_comes_back_as_it_was_compiled(kind: str, tmp_path: Path) -> None:
    policy = Policy(schema=1, clusters=())
    path = tmp_path / "policy.json"
    path.write_bytes(codec.dump(policy))
    stores: dict[str, Callable[[], PolicyFile | InMemoryPolicy]] = {
        "file": lambda: PolicyFile(str(path)),
        "twin": lambda: InMemoryPolicy(policy),
    }

    assert stores[kind]().load() == policy
