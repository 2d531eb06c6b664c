"""Bring a production tick home: `make fetch-tick CLUSTER=… AT=…` (docs/capture.md).

The newest stored snapshot that is not later than AT, and the memory in force before it, become a
recording of one tick. 0: it is there; 1: the bucket refused or has no such snapshot; 2: bad input.
"""

import argparse
import gzip
import secrets
import shutil
import sys
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import boto3
from botocore.exceptions import BotoCoreError

from local.capture.names import Pseudonyms
from local.capture.policy_copy import copy_policy
from local.capture.state import write_file, write_header
from local.live import find, folder_given, said, signed_in, time_given
from local.recording import moment_name
from local.recording.moments import named_moment
from steward import codec
from steward.aws_errors import aws_call
from steward.cluster.figures import stamp
from steward.cluster.memory import Memory
from steward.cluster.snapshot import Snapshot
from steward.errors import ConfigError, PermanentError, StewardError

LONGEST_GAP = timedelta(days=2)
"""How far before AT a snapshot is looked for: after that long a pause, it is another story."""

_DENIED = "allow s3:GetObject, s3:GetObjectVersion, s3:ListBucket and s3:ListBucketVersions"


class Tick(NamedTuple):
    """A stored snapshot, as it lies in the bucket, and the memory that it was folded into."""

    at: datetime
    key: str
    snapshot: bytes
    memory: tuple[datetime, bytes] | None


class Store:
    """The steward's bucket, read with the person's own access."""

    def __init__(self, session: boto3.Session, bucket: str) -> None:
        self._client: Any = session.client("s3")
        self._bucket = bucket

    def fetch(self, cluster: str, at: datetime) -> Tick:
        """Find and load the newest snapshot that is not later than `at`.

        Raises
        ------
        StewardError
            There is none, it is not one, or the bucket refused.
        """
        found = next(self._before(cluster, at), None)
        if found is None:
            raise PermanentError(
                f"s3://{self._bucket}/snapshots/{cluster}/: no snapshot within {LONGEST_GAP.days} "
                f"days before {stamp(at)}; correct AT, or the cluster's name"
            )
        when, key = found
        data = self._get(key)
        taken = _snapshot(data, self._url(key)).at
        return Tick(when, key, data, self._memory(cluster, taken))

    def _before(self, cluster: str, at: datetime) -> Iterator[tuple[datetime, str]]:
        """Name the snapshots up to a time, newest first, day by day."""
        pages = self._client.get_paginator("list_objects_v2")
        day = at.date()
        while day >= (at - LONGEST_GAP).date():
            prefix = f"snapshots/{cluster}/{day:%Y/%m/%d}/"
            with aws_call(f"list {self._url(prefix)}", denied=_DENIED):
                keys = [
                    one["Key"]
                    for page in pages.paginate(Bucket=self._bucket, Prefix=prefix)
                    for one in page.get("Contents", ())
                ]
            times = [(when, key) for key in keys if (when := _time(key)) is not None]
            yield from ((when, key) for when, key in sorted(times, reverse=True) if when <= at)
            day -= timedelta(days=1)

    def _memory(self, cluster: str, taken: datetime) -> tuple[datetime, bytes] | None:
        """Find the newest version of the memory that does not know of a snapshot yet."""
        key = f"memory/{cluster}.json"
        pages = self._client.get_paginator("list_object_versions")
        with aws_call(f"list the versions of {self._url(key)}", denied=_DENIED):
            versions = [
                one["VersionId"]
                for page in pages.paginate(Bucket=self._bucket, Prefix=key)
                for one in page.get("Versions", ())
                if one["Key"] == key
            ]
        # S3 lists the newest first; of two within a second, too.
        oldest_first = versions[::-1]

        def known(version: str) -> datetime:
            memory = codec.load(Memory, self._get(key, version), self._url(key))
            return memory.at or datetime.min.replace(tzinfo=UTC)

        # A memory only ever moves on: a few versions tell which of a week's thousands it is.
        later = bisect_left(oldest_first, taken, key=known)
        if not later:
            return None
        data = self._get(key, oldest_first[later - 1])
        at = codec.load(Memory, data, self._url(key)).at
        return None if at is None else (at, data)

    def _get(self, key: str, version: str = "") -> bytes:
        named = {"VersionId": version} if version else {}
        with aws_call(f"read {self._url(key)}", denied=_DENIED):
            answer = self._client.get_object(Bucket=self._bucket, Key=key, **named)
            body: bytes = answer["Body"].read()
        return body

    def _url(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"


def write_recording(tick: Tick, cluster: str, policy_file: Path, out: Path) -> None:
    """Write the recording of one tick: it is there as a whole, or not at all.

    Raises
    ------
    ConfigError
        `out` is not empty, or the policy is wrong.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"OUT={out}: is not empty; name a new folder")
    # The key of its pseudonyms is forgotten at once: one file has nothing to agree with.
    names = Pseudonyms(salt=secrets.token_bytes(32))
    policy = copy_policy(policy_file, cluster, names)
    new = out.with_name(f".{out.name}.new")
    shutil.rmtree(new, ignore_errors=True)  # of a run that was stopped
    path = new / "snapshots" / f"{moment_name(tick.at)}.json.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(tick.snapshot)
    note = f"The stored snapshot {tick.key}. "
    if tick.memory is None:
        note += "The memory from before it is gone: since when things hold may be lost."
    else:
        at, data = tick.memory
        write_file(new / "memory" / f"{moment_name(at)}.json", data.decode())
        note += f"The memory is that of {stamp(at)}."
    write_file(new / "governance.yaml", policy)
    write_header(new, {"cluster": cluster, "now": stamp(tick.at), "note": note})
    new.replace(out)


def bucket_of(session: boto3.Session, stack: str) -> str:
    """Find the bucket by the stack's outputs.

    Raises
    ------
    ConfigError
        The stack has no such output: it is a spoke's, or another one.
    StewardError
        CloudFormation refused or did not answer.
    """
    client: Any = session.client("cloudformation")
    with aws_call(f"describe the stack {stack}", denied="set BUCKET, or allow DescribeStacks"):
        (found,) = client.describe_stacks(StackName=stack)["Stacks"]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
    if "BucketName" not in outputs:
        raise ConfigError(f"STACK={stack}: has no output BucketName; set BUCKET")
    return str(outputs["BucketName"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="fetch-tick", description=__doc__.splitlines()[0])
    parser.add_argument("--cluster", required=True, help="its name in the policy")
    parser.add_argument("--at", required=True, help="2026-11-02T09:00:00Z")
    parser.add_argument("--bucket", default="", help="the steward's; else the stack's output")
    parser.add_argument("--stack", default="gpu-steward", help="where BUCKET is not given")
    parser.add_argument("--out", type=Path, help="folder of the recording")
    parser.add_argument("--governance", type=Path, default=Path("layers/policy/governance.yaml"))
    given = parser.parse_args(arguments)
    try:
        at = time_given("AT", given.at)
        find(given.cluster, given.governance)
        session = boto3.Session()
        signed_in(session)
        bucket = given.bucket or bucket_of(session, given.stack)
        tick = Store(session, bucket).fetch(given.cluster, at)
        out = folder_given(given.out, f"{given.cluster}-{moment_name(tick.at)}")
        write_recording(tick, given.cluster, given.governance, out)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except BotoCoreError as error:
        print(f"AWS: {error}; set AWS_PROFILE and AWS_REGION", file=sys.stderr)
        return 2
    except StewardError as error:
        print(said(error), file=sys.stderr)
        return 1
    print(f"{tick.key} ({at - tick.at} before AT)", file=sys.stderr)
    print(out)
    return 0


def _time(key: str) -> datetime | None:
    path = Path(key)
    try:
        return named_moment(path, path.name.removesuffix(".json.gz"))
    except ConfigError:
        return None


def _snapshot(data: bytes, where: str) -> Snapshot:
    try:
        return codec.load(Snapshot, gzip.decompress(data), where)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise PermanentError(f"{where}: not a whole gzip file: {error}; take another AT") from error


if __name__ == "__main__":
    sys.exit(main())
