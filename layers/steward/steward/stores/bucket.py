"""What lies in the bucket: snapshots, evaluations, memories, and a pointer to the last snapshot.

Each store says what its objects mean and stands on `Objects`, which says only how bytes are kept:
S3 in Lambda, a dictionary in the local rig. So both write the same keys and the same bytes.
"""

import gzip
import zlib
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import msgspec

from steward.cluster.findings import SCHEMA as EVALUATION_SCHEMA
from steward.cluster.findings import Evaluation
from steward.cluster.memory import SCHEMA as MEMORY_SCHEMA
from steward.cluster.memory import Memory
from steward.cluster.snapshot import SCHEMA as SNAPSHOT_SCHEMA
from steward.cluster.snapshot import LastSnapshot, Snapshot
from steward.errors import PermanentError
from steward.stores.stored import decode, encode

POINTER_SCHEMA = 1
"""Version of the stored pointer to a cluster's last snapshot."""


class StoredObject(NamedTuple):
    """Bytes and their version tag, which changes whenever the content does."""

    data: bytes
    tag: str


class Objects(Protocol):
    """Bytes under keys.

    Raises
    ------
    DeniedError, RetryableError, PermanentError
        The call was refused, may succeed later, or stays wrong: see :mod:`steward.aws_errors`.
    """

    def url(self, key: str) -> str:
        """Name an object for people."""
        ...

    def get(self, key: str) -> StoredObject | None:
        """Return an object; None where there is none."""
        ...

    def exists(self, key: str) -> bool:
        """Tell whether there is an object."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write, whatever stood there."""
        ...

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Write and return the new tag, if the object still has this tag (None: does not exist).

        Raises
        ------
        ConflictError
            It has another tag, exists, or is gone.
        """
        ...


class Snapshots:
    """Snapshots, `snapshots/<cluster>/<YYYY>/<MM>/<DD>/<time>.json.gz`, and `latest/<cluster>.json`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def put(self, snapshot: Snapshot) -> str:
        """Store a snapshot and return its key."""
        key = dated_key("snapshots", snapshot.cluster, snapshot.at)
        self._objects.put(key, _pack(encode(Snapshot, snapshot, self._objects.url(key))))
        return key

    def get(self, key: str) -> Snapshot:
        """Load a snapshot."""
        return decode(
            Snapshot, _unpack(self._objects, key), SNAPSHOT_SCHEMA, self._objects.url(key)
        )

    def last(self, cluster: str) -> LastSnapshot | None:
        """Return the pointer to the cluster's last finished snapshot, if there is one."""
        key = f"latest/{cluster}.json"
        found = self._objects.get(key)
        if found is None:
            return None
        return decode(_Pointer, found.data, POINTER_SCHEMA, self._objects.url(key)).last

    def finish(self, cluster: str, last: LastSnapshot) -> None:
        """Move the pointer."""
        key = f"latest/{cluster}.json"
        self._objects.put(key, encode(_Pointer, _Pointer(last=last), self._objects.url(key)))


class Memories:
    """The memory of each cluster: `memory/<cluster>.json`, written only over what was read."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def load(self, cluster: str) -> tuple[Memory, str | None]:
        """Return the memory and its tag; an empty memory and None where there is none."""
        key = f"memory/{cluster}.json"
        found = self._objects.get(key)
        if found is None:
            return Memory(cluster=cluster), None
        return decode(Memory, found.data, MEMORY_SCHEMA, self._objects.url(key)), found.tag

    def save(self, memory: Memory, tag: str | None) -> str:
        """Write on condition that the tag still holds."""
        key = f"memory/{memory.cluster}.json"
        return self._objects.replace(key, encode(Memory, memory, self._objects.url(key)), tag)


class Evaluations:
    """Evaluations: `evaluations/<cluster>/<YYYY>/<MM>/<DD>/<time>.json.gz`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def put(self, evaluation: Evaluation) -> str:
        """Store an evaluation under the key that its cluster and time give."""
        key = dated_key("evaluations", evaluation.cluster, evaluation.at)
        self._objects.put(key, _pack(encode(Evaluation, evaluation, self._objects.url(key))))
        return key

    def get(self, key: str) -> Evaluation:
        """Load an evaluation."""
        return decode(
            Evaluation, _unpack(self._objects, key), EVALUATION_SCHEMA, self._objects.url(key)
        )

    def find(self, cluster: str, at: datetime) -> str | None:
        """Return the key of the evaluation of the snapshot at that time, if it was stored."""
        key = dated_key("evaluations", cluster, at)
        return key if self._objects.exists(key) else None


class _Pointer(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = POINTER_SCHEMA
    last: LastSnapshot


def dated_key(kind: str, cluster: str, at: datetime) -> str:
    """Key of one moment of one cluster; UTC days, so that a listing by day is a listing by prefix."""
    return f"{kind}/{cluster}/{at.astimezone(UTC):%Y/%m/%d/%Y%m%dT%H%M%SZ}.json.gz"


def _pack(data: bytes) -> bytes:
    # No time in the header: the same noun gives the same bytes, and so the same tag.
    return gzip.compress(data, compresslevel=6, mtime=0)


def _unpack(objects: Objects, key: str) -> bytes:
    found = objects.get(key)
    if found is None:
        raise PermanentError(
            f"{objects.url(key)}: no such object; expired by the bucket's life cycle, or never written"
        )
    try:
        return gzip.decompress(found.data)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise PermanentError(
            f"{objects.url(key)}: not a whole gzip file ({error}); delete it: the next tick "
            "writes a new one"
        ) from error
