"""What moto cannot say, through botocore's stub: refusals, lost races and throttling."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from boto3 import Session
from botocore.stub import Stubber

from steward.clock import FixedClock
from steward.cluster.memory import Memory
from steward.cluster.planning import Planned
from steward.errors import ConflictError, DeniedError, PermanentError, RetryableError
from steward.stores.bucket import Evaluations, Memories
from steward.stores.dynamo import DynamoRows
from steward.stores.s3 import S3Objects
from steward.stores.state import Alerts, Plan, RowKey
from tests.contract.stores import EMPTY, NOON, a_state, an_alert, dynamo


@pytest.mark.parametrize("operation", ["get_object", "head_object", "put_object"])
def test_a_refused_object_is_denied_and_never_taken_for_missing(
    aws: Session, operation: str
) -> None:
    objects = S3Objects(aws, "steward")
    code = "403" if operation == "head_object" else "AccessDenied"
    calls: dict[str, Callable[[], object]] = {
        "get_object": lambda: Memories(objects).load("ml"),
        "head_object": lambda: Evaluations(objects).find("ml", NOON),
        "put_object": lambda: Memories(objects).save(Memory(cluster="ml"), None),
    }

    stub = Stubber(objects._client)
    stub.add_client_error(operation, code, "Access Denied", http_status_code=403)

    with stub, pytest.raises(DeniedError) as denied:
        calls[operation]()

    assert "s3://steward/" in str(denied.value)
    if operation != "put_object":  # S3 says 403 for a missing key where listing is not allowed
        assert "s3:ListBucket" in str(denied.value)


@pytest.mark.parametrize("code", ["PreconditionFailed", "ConditionalRequestConflict"])
def test_both_of_s3s_answers_to_a_lost_race_are_conflicts(aws: Session, code: str) -> None:
    objects = S3Objects(aws, "steward")
    status = 412 if code == "PreconditionFailed" else 409

    stub = Stubber(objects._client)
    stub.add_client_error("put_object", code, http_status_code=status)

    with stub, pytest.raises(ConflictError, match=r"memory/ml\.json"):
        Memories(objects).save(Memory(cluster="ml"), '"tag"')


@pytest.mark.parametrize("operation", ["query", "get_item", "put_item", "batch_write_item"])
def test_a_refused_table_is_denied(aws: Session, operation: str) -> None:
    rows = DynamoRows(aws, "state", FixedClock(NOON))
    calls: dict[str, Callable[[], object]] = {
        "query": lambda: Alerts(rows).load("ml"),
        "get_item": lambda: Plan(rows).last("ml"),
        "put_item": lambda: Plan(rows).mark("ml", Planned(snapshot=NOON)),
        "batch_write_item": lambda: Alerts(rows).save(EMPTY, a_state([an_alert("Job/a/one")])),
    }

    stub = Stubber(rows._client)
    stub.add_client_error(operation, "AccessDeniedException", http_status_code=400)

    with stub, pytest.raises(DeniedError, match="table state"):
        calls[operation]()


def test_a_missing_table_is_permanent_and_named(aws: Session) -> None:
    rows = DynamoRows(aws, "nowhere", FixedClock(NOON))

    with pytest.raises(PermanentError, match=r"table nowhere, .* check the name in the settings"):
        Plan(rows).last("ml")


def test_an_item_that_is_no_row_of_ours_is_named(aws: Session) -> None:
    rows = dynamo(aws)
    item: Any = {"pk": {"S": "plan#ml"}, "sk": {"S": "snapshot"}, "schema": {"N": "1"}}
    aws.client("dynamodb").put_item(TableName=rows._table, Item=item)

    with pytest.raises(PermanentError, match="plan#ml, snapshot: lacks 'body'"):
        Plan(rows).last("ml")


def unprocessed(rows: DynamoRows, number: int) -> Any:
    key = {"pk": {"S": "cluster#ml"}, "sk": {"S": "alert#x"}}
    return {"UnprocessedItems": {rows._table: [{"DeleteRequest": {"Key": key}}] * number}}


def test_unprocessed_writes_are_repeated_after_a_pause(aws: Session) -> None:
    clock = FixedClock(NOON)
    rows = DynamoRows(aws, "state", clock)
    first, rest = [RowKey("cluster#ml", "alert#y")], [RowKey("cluster#ml", "alert#x")]

    with Stubber(rows._client) as stub:
        stub.add_response("batch_write_item", unprocessed(rows, 1))
        stub.add_response(
            "batch_write_item",
            {"UnprocessedItems": {}},
            {"RequestItems": unprocessed(rows, 1)["UnprocessedItems"]},  # the rest, not all again
        )
        rows.write([], first + rest)
        stub.assert_no_pending_responses()

    assert clock.now() - NOON == timedelta(milliseconds=50)


def test_writes_that_stay_unprocessed_are_given_up_for_this_run(aws: Session) -> None:
    clock = FixedClock(NOON)
    rows = DynamoRows(aws, "state", clock)

    stub = Stubber(rows._client)
    for _ in range(6):
        stub.add_response("batch_write_item", unprocessed(rows, 2))
    keys = [RowKey("cluster#ml", f"alert#{n}") for n in range(3)]

    with stub, pytest.raises(RetryableError, match="2 of 3 rows"):
        rows.write([], keys)

    # 0.05 + 0.1 + 0.2 + 0.4 + 0.8 s between six tries.
    assert clock.now() - NOON == timedelta(seconds=1.55)
