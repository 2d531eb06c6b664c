"""One suite for the store of claims: over moto's S3, and over the twin."""

from copy import replace
from datetime import timedelta

import pytest

from local.twins import InMemoryObjects
from steward.cluster.claims import Claim
from steward.cluster.planning import SnapshotScope
from steward.errors import ConflictError
from steward.ports import ClaimStore
from steward.stores.bucket import Objects
from steward.stores.claims import Claims
from tests.contract.stores import NOON, s3

CLAIM = Claim(
    start=NOON,
    scope=SnapshotScope.TICK,
    owner="invocation-1",
    events_after=NOON + timedelta(seconds=60),
)


@pytest.fixture(params=["aws", "twin"])
def objects(request: pytest.FixtureRequest) -> Objects:
    if request.param == "twin":
        return InMemoryObjects()
    return s3(request.getfixturevalue("aws"))


def test_a_claim_comes_back_as_it_was_saved(objects: Objects) -> None:
    store: ClaimStore = Claims(objects)

    assert store.load("ml") == (None, None)
    tag = store.save("ml", CLAIM, None)

    assert store.load("ml") == (CLAIM, tag)
    # The layout that the bucket's rules (life cycle, access) rely on; a cluster's claim is its own.
    assert objects.exists("claims/ml.json")
    assert store.load("ml-2") == (None, None)


def test_of_two_that_claim_one_gets_it(objects: Objects) -> None:
    store = Claims(objects)
    tag = store.save("ml", CLAIM, None)
    theirs = replace(CLAIM, owner="invocation-2")

    with pytest.raises(ConflictError):
        store.save("ml", theirs, None)
    newer = store.save("ml", theirs, tag)
    with pytest.raises(ConflictError):
        store.save("ml", CLAIM, tag)

    assert store.load("ml") == (theirs, newer)


@pytest.mark.parametrize("data", [b'{"schema": 99}', b"{", b""])
def test_a_claim_that_nobody_can_read_is_written_over(objects: Objects, data: bytes) -> None:
    objects.put("claims/ml.json", data)
    store = Claims(objects)

    found, tag = store.load("ml")
    store.save("ml", CLAIM, tag)

    assert found is None
    assert store.load("ml")[0] == CLAIM
