"""A save of the reconciler's state that is cut off at any write, and then repeated."""

import copy

import pytest
from boto3 import Session
from botocore.exceptions import EndpointConnectionError

from local.twins import InMemoryRows
from steward.clock import FixedClock
from steward.errors import RetryableError
from steward.stores.dynamo import DynamoRows
from steward.stores.state import Alerts, Row
from tests.contract.stores import EMPTY, LATER, NOON, a_card, a_state, an_alert, dynamo


class BreakingRows(InMemoryRows):
    """Fails at the nth write, and at every one after it."""

    def __init__(self) -> None:
        super().__init__()
        self.left: float = float("inf")

    def put(self, row: Row) -> None:
        if not self.left:
            raise RetryableError("cut off")
        self.left -= 1
        super().put(row)


class BreakingDynamoRows(DynamoRows):
    """Loses the connection at the nth call that writes, and at every one after it."""

    def __init__(self, aws: Session, table: str) -> None:
        super().__init__(aws, table, FixedClock(NOON))
        self.left: float = float("inf")
        for call in ("BatchWriteItem", "PutItem"):
            self._client.meta.events.register(
                f"before-parameter-build.dynamodb.{call}", self._count
            )

    def _count(self, **_: object) -> None:
        if not self.left:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1")
        self.left -= 1


def breaking(kind: str, request: pytest.FixtureRequest) -> BreakingRows | BreakingDynamoRows:
    if kind == "twin":
        return BreakingRows()
    aws: Session = request.getfixturevalue("aws")
    return BreakingDynamoRows(aws, dynamo(aws)._table)


@pytest.mark.parametrize(("kind", "writes"), [("aws", 4), ("twin", 61)])
def test_a_save_cut_off_anywhere_keeps_the_old_time_and_is_completed_by_a_repeat(
    kind: str, writes: int, request: pytest.FixtureRequest
) -> None:
    # 40 alerts and 20 cards differ and 5 alerts go. In DynamoDB: 60 puts and 5 deletes in batches
    # of 25 are three calls, and the head is the fourth; in the twin every put is a write.
    kept = [an_alert(f"Job/a/{n}") for n in range(20)]
    gone = [an_alert(f"Job/gone/{n}") for n in range(5)]
    old = a_state([*kept, *gone], at=NOON)
    grown = [copy.replace(alert, last_seen=LATER) for alert in kept]
    new = a_state(
        [*grown, *(an_alert(f"Job/b/{n}") for n in range(20))],
        [a_card(f"c{n}") for n in range(20)],
        at=LATER,
    )
    for after in range(writes):
        rows = breaking(kind, request)
        store = Alerts(rows)
        store.save(EMPTY, old)
        rows.left = after

        with pytest.raises(RetryableError):
            store.save(old, new)

        rows.left = float("inf")
        half = store.load("ml")
        # The evaluation of LATER counts as not folded, so it will be folded again.
        assert half.at == NOON
        store.save(half, new)
        assert store.load("ml") == new

    rows = breaking(kind, request)
    Alerts(rows).save(EMPTY, old)
    rows.left = writes
    Alerts(rows).save(old, new)
    assert rows.left == 0  # the sweep above cut off at every one of them
