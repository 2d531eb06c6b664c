"""Rows in a DynamoDB table: keys `pk` and `sk`, a JSON `body`, its `schema`, and `expires_at`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import batched
from typing import TYPE_CHECKING

from steward.aws_errors import CLIENT_LIMITS, aws_call
from steward.errors import PermanentError, RetryableError
from steward.stores.state import Row, RowKey

if TYPE_CHECKING:
    from boto3 import Session
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import (
        AttributeValueTypeDef,
        UniversalAttributeValueTypeDef,
        WriteRequestUnionTypeDef,
    )

    from steward.ports import Clock

BATCH = 25
"""Most writes that one BatchWriteItem takes."""

ATTEMPTS = 6
"""Tries for the writes of a batch that the table leaves unprocessed: about 1.6 s of waiting."""


class DynamoRows:
    """Rows in a DynamoDB table, read consistently."""

    def __init__(self, session: Session, table: str, clock: Clock) -> None:
        self._session = session
        self._table = table
        self._clock = clock

    @cached_property
    def _client(self) -> DynamoDBClient:
        return self._session.client("dynamodb", config=CLIENT_LIMITS)

    def where(self, key: RowKey) -> str:
        """Name a row for people."""
        return f"table {self._table}, {key.partition}, {key.sort}"

    def query(self, partition: str) -> list[Row]:
        """Return all rows of a partition: one Query, page by page."""
        with aws_call(f"query table {self._table}, {partition}"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": partition}},
                ConsistentRead=True,
            )
            return [self._row(item) for page in pages for item in page["Items"]]

    def get(self, key: RowKey) -> Row | None:
        """Return a row; None where there is none."""
        with aws_call(f"read {self.where(key)}"):
            answer = self._client.get_item(
                TableName=self._table, Key=_key_item(key), ConsistentRead=True
            )
        return self._row(answer["Item"]) if "Item" in answer else None

    def put(self, row: Row) -> None:
        """Write a row, whatever stood there."""
        with aws_call(f"write {self.where(row.key)}"):
            self._client.put_item(TableName=self._table, Item=_item(row))

    def write(self, puts: Sequence[Row], deletes: Sequence[RowKey]) -> None:
        """Write rows, then delete rows, 25 a call.

        Raises
        ------
        RetryableError
            The table left writes unprocessed at every try; those before them stand.
        """
        requests: list[WriteRequestUnionTypeDef] = [
            {"PutRequest": {"Item": _item(r)}} for r in puts
        ]
        requests += [{"DeleteRequest": {"Key": _key_item(key)}} for key in deletes]
        for batch in batched(requests, BATCH, strict=False):
            self._write_batch(batch)

    def _write_batch(self, batch: Sequence[WriteRequestUnionTypeDef]) -> None:
        left = batch
        for attempt in range(ATTEMPTS):
            if attempt:
                self._clock.sleep(0.05 * 2 ** (attempt - 1))
            with aws_call(f"write {len(left)} rows to table {self._table}"):
                answer = self._client.batch_write_item(RequestItems={self._table: left})
            left = answer["UnprocessedItems"].get(self._table, [])
            if not left:
                return
        raise RetryableError(
            f"write to table {self._table}: {len(left)} of {len(batch)} rows are unprocessed after "
            f"{ATTEMPTS} tries (throttled?); the next run repeats them"
        )

    def _row(self, item: dict[str, AttributeValueTypeDef]) -> Row:
        key = RowKey(item["pk"]["S"], item["sk"]["S"])
        try:
            expires_at = int(item["expires_at"]["N"]) if "expires_at" in item else None
            schema = int(item["schema"]["N"])
            return Row(key=key, schema=schema, body=item["body"]["S"], expires_at=expires_at)
        except KeyError as error:
            raise PermanentError(
                f"{self.where(key)}: lacks {error}, so it is no row of ours; delete it"
            ) from error


def _item(row: Row) -> dict[str, UniversalAttributeValueTypeDef]:
    item = _key_item(row.key) | {"schema": {"N": str(row.schema)}, "body": {"S": row.body}}
    if row.expires_at is not None:
        item["expires_at"] = {"N": str(row.expires_at)}
    return item


def _key_item(key: RowKey) -> dict[str, UniversalAttributeValueTypeDef]:
    return {"pk": {"S": key.partition}, "sk": {"S": key.sort}}
