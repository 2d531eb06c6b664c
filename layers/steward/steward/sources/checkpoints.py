"""Checkpoints in S3: a job's newest object, found by listing where its team says that it writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from steward.aws_errors import aws_call
from steward.cluster.checkpoints import Written, WrittenBy
from steward.errors import PermanentError, RetryableError, StewardError

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import ListObjectsV2RequestTypeDef

    from steward.cluster.policy import CheckpointLocation
    from steward.ports import Clock

S3 = "s3://"
JOB = "{job}"
PAGE = 1000
"""Keys that one call gives at most; more does not exist in S3."""

_DENIED = (
    "grant s3:ListBucket on the bucket to the function's role, or to the role that the policy names "
    "for the cluster"
)
_FOLDERS = ("/", "_$folder$")
"""How the keys of empty objects end that consoles and file systems keep in place of folders."""


_OF_A_CHECKPOINT = (
    r"[._-](?:global[._-]?)?(?:step|epoch|iter(?:ation)?|ckpt|checkpoint)s?(?![a-z]).*"
    r"|\.(?:pt|pth|ckpt|bin|safetensors|tar)"
)
"""What may follow a job's name in that of its checkpoint; anything else names another job."""


class _Object(NamedTuple):
    key: str
    at: datetime


class S3Checkpoints:
    """Finds checkpoints by listing; made anew for each tick, as it keeps what it listed.

    S3 gives keys in their own order, not by time: a listing says something only when it was read to
    its end. One that has no end within the bounds is unreadable, never empty.

    Parameters
    ----------
    client : callable
        Returns the client; called when something is listed. A bucket of another region than the
        client's is found by botocore itself.
    clock : Clock
        For the deadline.
    deadline_seconds : float
        After so long no further page is asked for.
    pages : int
        Pages of 1,000 keys that one listing may take.
    """

    def __init__(
        self,
        client: Callable[[], S3Client],
        clock: Clock,
        *,
        deadline_seconds: float = 20.0,
        pages: int = 10,
    ) -> None:
        self._client = client
        self._clock = clock
        self._until = clock.now() + timedelta(seconds=deadline_seconds)
        self._seconds = deadline_seconds
        self._pages = pages
        self._listed: dict[tuple[str, str], tuple[_Object, ...] | StewardError] = {}

    def newest(self, location: CheckpointLocation, job: str, before: datetime) -> Written | None:
        """Find the newest checkpoint of a job that is not later than a time.

        Of a location without `{job}`, the folder named for the job counts, if there is anything in
        it; else whatever has the job's name as a part of its path, alone or before what a checkpoint
        is called.
        """
        if not location.uri.startswith(S3):
            raise PermanentError(f"{location.uri}: only {S3} can be listed; correct the location")
        bucket, _, path = location.uri.removeprefix(S3).partition("/")
        prefix = path if path.endswith("/") or not path else f"{path}/"
        if JOB in prefix:
            found = self._list(bucket, prefix.replace(JOB, job))
        else:
            own = re.compile(f"{re.escape(job)}(?:{_OF_A_CHECKPOINT})?", re.IGNORECASE)
            found = self._list(bucket, f"{prefix}{job}/") or tuple(
                one
                for one in self._list(bucket, prefix)
                if any(map(own.fullmatch, one.key.removeprefix(prefix).split("/")))
            )
        counted = (o for o in found if o.at <= before and _is_marked(o.key, location.marker))
        newest = max(counted, key=lambda one: (one.at, one.key), default=None)
        if newest is None:
            return None
        return Written(uri=f"{S3}{bucket}/{newest.key}", at=newest.at, by=WrittenBy.STORAGE)

    def _list(self, bucket: str, prefix: str) -> tuple[_Object, ...]:
        """List once: the answer, or the refusal, is kept."""
        place = (bucket, prefix)
        if place not in self._listed:
            try:
                self._listed[place] = self._read(bucket, prefix)
            except StewardError as error:
                self._listed[place] = error
        found = self._listed[place]
        if isinstance(found, StewardError):
            raise found
        return found

    def _read(self, bucket: str, prefix: str) -> tuple[_Object, ...]:
        doing = f"list {S3}{bucket}/{prefix}"
        request: ListObjectsV2RequestTypeDef = {
            "Bucket": bucket,
            "Prefix": prefix,
            "MaxKeys": PAGE,
        }
        found: list[_Object] = []
        for _ in range(self._pages):
            if self._clock.now() >= self._until:
                raise RetryableError(
                    f"{doing}: not at its end after {self._seconds:g} s of looking for checkpoints; "
                    "the next tick tries again"
                )
            with aws_call(doing, denied=_DENIED):
                answer = self._client().list_objects_v2(**request)
            found += (
                _Object(one["Key"], one["LastModified"].astimezone(UTC))
                for one in answer.get("Contents", ())
                if one["Size"] or not one["Key"].endswith(_FOLDERS)
            )
            if not answer["IsTruncated"]:
                return tuple(found)
            request["ContinuationToken"] = answer["NextContinuationToken"]
        raise PermanentError(
            f"{doing}: more than {self._pages * PAGE:,} objects, which is as far as a tick looks; "
            f"name a location with {JOB}, let old checkpoints expire, or send heartbeats"
        )


def _is_marked(key: str, marker: str | None) -> bool:
    return marker is None or fnmatchcase(key.rpartition("/")[2], marker)
