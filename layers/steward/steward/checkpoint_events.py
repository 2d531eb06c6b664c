"""Events that tell of a checkpoint, as they arrive. Unknown fields pass."""

from typing import Annotated

import msgspec

CHECKPOINT_WRITTEN = "Checkpoint Written"
"""Detail type of a heartbeat, which a job sends to the steward's bus."""

OBJECT_CREATED = "Object Created"
"""Detail type of S3's event, which becomes a marker where the policy knows the object."""

type Name = Annotated[
    str, msgspec.Meta(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", max_length=253)
]
type Uri = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
type Step = Annotated[int, msgspec.Meta(ge=0)]


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """Detail of "Checkpoint Written"; `job` is the name of the job's top owner."""

    cluster: str
    namespace: Name
    job: Name
    uri: Uri
    step: Step | None = None


class S3Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """The bucket of an S3 event."""

    name: str


class S3Object(msgspec.Struct, frozen=True, kw_only=True):
    """The object of an S3 event; through EventBridge its key is not URL-encoded."""

    key: str


class ObjectCreated(msgspec.Struct, frozen=True, kw_only=True):
    """Detail of S3's "Object Created"."""

    bucket: S3Bucket
    object: S3Object
