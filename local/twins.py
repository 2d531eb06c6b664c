"""In-memory twins of the bucket, the state table, the bus and the queues.

The stores and senders themselves are the product's own, over these instead of over AWS:
`Snapshots(InMemoryObjects())`, `Alerts(InMemoryRows())`, `EvaluationSender(InMemorySender(clock))`.
Everything is held as the bytes or the text that AWS would hold, so that what cannot be stored
fails here too. One contract suite proves that both behave alike.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from steward.cluster.policy import Policy
from steward.errors import ConflictError
from steward.events import SOURCE
from steward.ports import Clock
from steward.sinks.bus import detail_text
from steward.sinks.queues import Fifo
from steward.stores.bucket import StoredObject
from steward.stores.policy_file import read_policy
from steward.stores.state import Row, RowKey
from steward.stores.stored import encode

DEDUPLICATION = timedelta(minutes=5)
"""How long an SQS FIFO queue knows a message again."""


class InMemoryObjects:
    """The bucket as a dictionary; a tag is a digest of the content, as S3's is."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def url(self, key: str) -> str:
        """Name an object for people."""
        return f"memory://{key}"

    def get(self, key: str) -> StoredObject | None:
        """Return an object; None where there is none."""
        data = self.objects.get(key)
        return None if data is None else StoredObject(data, _tag(data))

    def exists(self, key: str) -> bool:
        """Tell whether there is an object."""
        return key in self.objects

    def put(self, key: str, data: bytes) -> None:
        """Write, whatever stood there."""
        self.objects[key] = data

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Write and return the new tag, if the object still has this tag (None: does not exist).

        Raises
        ------
        ConflictError
            It has another tag, exists, or is gone.
        """
        found = self.get(key)
        if (found.tag if found else None) != tag:
            raise ConflictError(f"write {self.url(key)}: somebody else wrote first")
        self.objects[key] = data
        return _tag(data)


class InMemoryRows:
    """The state table as a dictionary; like DynamoDB's, a query is ordered by sort key."""

    def __init__(self) -> None:
        self.rows: dict[RowKey, Row] = {}

    def where(self, key: RowKey) -> str:
        """Name a row for people."""
        return f"memory, {key.partition}, {key.sort}"

    def query(self, partition: str) -> list[Row]:
        """Return all rows of a partition."""
        return [self.rows[key] for key in sorted(self.rows) if key.partition == partition]

    def get(self, key: RowKey) -> Row | None:
        """Return a row; None where there is none."""
        return self.rows.get(key)

    def put(self, row: Row) -> None:
        """Write a row, whatever stood there."""
        self.rows[row.key] = row

    def write(self, puts: Sequence[Row], deletes: Sequence[RowKey]) -> None:
        """Write rows, then delete rows."""
        for row in puts:
            self.put(row)
        for key in deletes:
            self.rows.pop(key, None)


class InMemoryPolicy:
    """A policy that went through its stored form."""

    def __init__(self, policy: Policy) -> None:
        self._data = encode(Policy, policy, "memory://policy")

    def load(self) -> Policy:
        """Load the compiled policy."""
        return read_policy(self._data, "memory://policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event on the bus; `detail` is JSON text."""

    source: str
    detail_type: str
    detail: str


class InMemoryBus:
    """The bus as a list, oldest first."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Record one event."""
        event = Event(source=SOURCE, detail_type=detail_type, detail=detail_text(detail))
        self.events.append(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message on a queue; `fifo` is None on a standard queue."""

    body: str
    fifo: Fifo | None = None


class InMemorySender:
    """A queue as a list, oldest first; what was sent stays until the reader clears it."""

    def __init__(self, clock: Clock) -> None:
        self.messages: list[Message] = []
        self._clock = clock
        self._known: dict[str, datetime] = {}

    def send(self, body: str, fifo: Fifo | None = None) -> None:
        """Record one message; drop a repeat within five minutes, as a FIFO queue does."""
        if fifo is not None:
            now = self._clock.now()
            known = self._known.get(fifo.deduplication)
            if known is not None and now - known < DEDUPLICATION:
                return
            self._known[fifo.deduplication] = now
        self.messages.append(Message(body=body, fifo=fifo))


def _tag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()}"'
