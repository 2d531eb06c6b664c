"""One suite for the store of told checkpoints: over moto's S3, and over its twin."""

from datetime import timedelta
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.twins import InMemoryObjects
from steward.cluster.checkpoints import Written, WrittenBy
from steward.errors import ConflictError, PermanentError
from steward.ports import CheckpointStore
from steward.stores.bucket import Objects
from steward.stores.checkpoints import ATTEMPTS, KEPT, Checkpoints
from tests.contract.stores import NOON, s3

TRAIN = ("ml", "hyperpod-ns-research", "train")
KEY = "checkpoints/ml/hyperpod-ns-research/train.json"


@pytest.fixture(params=["aws", "twin"])
def objects(request: pytest.FixtureRequest) -> Objects:
    if request.param == "twin":
        return InMemoryObjects()
    return s3(request.getfixturevalue("aws"))


def beat(minute: int, by: WrittenBy = WrittenBy.HEARTBEAT, uri: str = "s3://b/k") -> Written:
    return Written(uri=uri, at=NOON + timedelta(minutes=minute), by=by, step=minute)


def test_of_a_job_that_told_nothing_nothing_is_known(objects: Objects) -> None:
    store: CheckpointStore = Checkpoints(objects)
    assert store.told(*TRAIN) == ()


def test_what_was_told_comes_back_oldest_first_and_is_the_jobs_own(objects: Objects) -> None:
    store: CheckpointStore = Checkpoints(objects)
    store.record(*TRAIN, beat(5))
    store.record(*TRAIN, beat(9), beat(2, WrittenBy.MARKER))
    assert store.told(*TRAIN) == (beat(2, WrittenBy.MARKER), beat(5), beat(9))
    assert store.told("ml", "hyperpod-ns-research", "train-2") == ()
    assert store.told("other", "hyperpod-ns-research", "train") == ()
    assert objects.exists(KEY)


class Closed(InMemoryObjects):
    """Can be closed to every further write."""

    closed = False

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        assert not self.closed
        return super().replace(key, data, tag)


def test_a_repeated_one_is_not_even_written() -> None:
    objects = Closed()
    store = Checkpoints(objects)
    store.record(*TRAIN, beat(5), beat(6))
    objects.closed = True
    store.record(*TRAIN, beat(5))
    assert store.told(*TRAIN) == (beat(5), beat(6))


def test_the_newest_few_of_each_kind_are_kept(objects: Objects) -> None:
    store = Checkpoints(objects)
    store.record(*TRAIN, beat(0, WrittenBy.MARKER))
    store.record(*TRAIN, *(beat(minute) for minute in range(1, KEPT + 3)))
    # Two heartbeats are too many; they push out heartbeats, and no marker.
    kept = [one.step for one in store.told(*TRAIN)]
    assert kept == [0, *range(3, KEPT + 3)]


def test_a_run_s_last_heartbeat_outlives_six_hours_of_the_next_run_s(objects: Objects) -> None:
    # Preempted at minute 5 and back at 10; then one every five minutes, and the next look at 360.
    store = Checkpoints(objects)
    store.record(*TRAIN, beat(4))
    for minute in range(15, 361, 5):
        store.record(*TRAIN, beat(minute))
    assert store.told(*TRAIN)[0] == beat(4)


def test_a_late_one_takes_its_place_or_is_too_old(objects: Objects) -> None:
    store = Checkpoints(objects)
    store.record(*TRAIN, *(beat(minute) for minute in range(10, 10 + 2 * KEPT, 2)))
    full = store.told(*TRAIN)
    store.record(*TRAIN, beat(9))
    assert store.told(*TRAIN) == full
    store.record(*TRAIN, beat(13))
    assert [one.step for one in store.told(*TRAIN)][:3] == [12, 13, 14]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.builds(
            beat,
            st.integers(0, 60),
            st.sampled_from([WrittenBy.MARKER, WrittenBy.HEARTBEAT]),
            st.sampled_from(["s3://b/1", "s3://b/2"]),
        ),
        max_size=60,
    ),
    st.randoms(use_true_random=False),
    st.integers(1, 7),
)
def test_order_batches_and_repeats_change_nothing(told, random, size):
    shuffled = [*told, *told[:5]]
    random.shuffle(shuffled)
    together, apart = Checkpoints(InMemoryObjects()), Checkpoints(InMemoryObjects())
    with patch("steward.stores.checkpoints.KEPT", 16):
        together.record(*TRAIN, *told)
        for first in range(0, len(shuffled), size):
            apart.record(*TRAIN, *shuffled[first : first + size])
    assert apart.told(*TRAIN) == together.told(*TRAIN)
    # By the definition of what is kept: the newest so many of each kind.
    for by in (WrittenBy.MARKER, WrittenBy.HEARTBEAT):
        times = sorted(one.at for one in {*told} if one.by is by)
        assert [o.at for o in together.told(*TRAIN) if o.by is by] == times[-16:]


class Racing(InMemoryObjects):
    """Another writer gets in between each read and write, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._left = times

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        if self._left:
            self._left -= 1
            other = Checkpoints(self)
            left, self._left = self._left, 0
            other.record(*TRAIN, beat(left, WrittenBy.MARKER))
            self._left = left
        return super().replace(key, data, tag)


def test_a_lost_race_is_run_again_and_loses_neither() -> None:
    objects = Racing(ATTEMPTS - 1)
    Checkpoints(objects).record(*TRAIN, beat(30))
    told = Checkpoints(objects).told(*TRAIN)
    assert [one.step for one in told] == [0, 1, 2, 3, 30]


def test_a_race_that_is_always_lost_is_a_conflict_and_the_others_stand() -> None:
    objects = Racing(ATTEMPTS)
    with pytest.raises(ConflictError):
        Checkpoints(objects).record(*TRAIN, beat(30))
    assert [one.step for one in Checkpoints(objects).told(*TRAIN)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("namespace", "job"),
    [
        ("hyperpod-ns-research", "../../memory/ml"),
        ("hyperpod-ns-research", "Train"),
        ("hyperpod-ns-research", ""),
        ("hyperpod-ns-research", ".."),
        ("hyperpod-ns-research", "train\n"),
        ("a/b", "train"),
        ("hyperpod-ns-research", "x" * 254),
    ],
)
def test_a_name_that_is_not_kubernetes_is_refused(namespace: str, job: str) -> None:
    store = Checkpoints(InMemoryObjects())
    with pytest.raises(PermanentError, match="is not the name of a"):
        store.record("ml", namespace, job, beat(1))
    with pytest.raises(PermanentError, match="is not the name of a"):
        store.told("ml", namespace, job)


def test_another_schema_is_refused_and_not_written_over(objects: Objects) -> None:
    objects.put(KEY, b'{"schema":2,"told":{}}')
    store = Checkpoints(objects)
    with pytest.raises(PermanentError, match=r"train\.json: has schema 2, .* schema 1"):
        store.told(*TRAIN)
    with pytest.raises(PermanentError, match="has schema 2"):
        store.record(*TRAIN, beat(1))
