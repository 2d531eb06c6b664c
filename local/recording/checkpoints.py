"""`checkpoints/*.json`: what listing a location shows, and what jobs told of their checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from local.recording.moments import moment
from local.recording.reading import list_files, read_json
from steward.checkpoint_events import CHECKPOINT_WRITTEN
from steward.errors import ConfigError

ANY_BUCKET = ""
"""Stands for every bucket in :attr:`CheckpointData.refusals`."""


class StoredFile(NamedTuple):
    """An object in a bucket."""

    bucket: str
    key: str
    last_modified: datetime
    size: int


@dataclass(slots=True)
class CheckpointData:
    """What a recording holds of checkpoints.

    Attributes
    ----------
    files : list of StoredFile
        By bucket and key; each is there from its time on. A key that is there more than once was
        written over.
    refusals : dict of str to dict
        By bucket, the answer that is an error.
    events : list of dict
        "Checkpoint Written", by time, then by file name and position in the file.
    """

    files: list[StoredFile] = field(default_factory=list)
    refusals: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    def refusal(self, bucket: str) -> dict[str, Any] | None:
        """Return the error that answers every listing of a bucket; None where it can be listed."""
        return self.refusals.get(bucket) or self.refusals.get(ANY_BUCKET)

    def visible(self, bucket: str, prefix: str, now: datetime) -> list[StoredFile]:
        """List what lies under a prefix at a time, by key."""
        newest: dict[str, StoredFile] = {}
        for one in self.files:
            if one.bucket == bucket and one.key.startswith(prefix) and one.last_modified <= now:
                newest[one.key] = max(newest.get(one.key, one), one)
        return sorted(newest.values(), key=lambda one: one.key.encode())


def read_checkpoints(folder: Path) -> CheckpointData:
    """Read the folder; nothing where it is absent.

    Raises
    ------
    ConfigError
        One line: the file, what is wrong with it, and the remedy.
    """
    found = CheckpointData()
    for path in list_files(folder, ".json"):
        document: Any = read_json(path)
        for number, one in enumerate(document if isinstance(document, list) else [document]):
            try:
                _add(found, one)
            except (TypeError, KeyError, ValueError) as error:
                said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise ConfigError(f"{path}: [{number}]: {said}; see docs/recordings.md") from error
    found.files.sort()
    found.events.sort(key=lambda event: moment(event["time"]))
    return found


def _add(found: CheckpointData, one: object) -> None:
    if not isinstance(one, Mapping):
        raise TypeError("is not a JSON object; write an object of a bucket or an event")
    if "Error" in one:
        error = one["Error"]
        if not isinstance(error, Mapping) or not isinstance(error.get("Code"), str):
            raise TypeError("Error has no Code; record the error as AWS gave it")
        found.refusals[str(one.get("bucket") or ANY_BUCKET)] = {"Error": dict(error)}
    elif "detail-type" in one:
        if one["detail-type"] != CHECKPOINT_WRITTEN:
            raise ValueError(
                f"detail-type is {one['detail-type']!r}, not {CHECKPOINT_WRITTEN!r}; put other "
                "events into events/"
            )
        if not isinstance(one.get("detail"), Mapping):
            raise TypeError("the event has no detail; record the whole EventBridge envelope")
        found.events.append(dict(one) | {"time": f"{moment(one['time']):%Y-%m-%dT%H:%M:%SZ}"})
    else:
        found.files.append(_file(one))


def _file(one: Mapping[str, Any]) -> StoredFile:
    bucket, key, size = one["bucket"], one["key"], one["size"]
    for name, value in (("bucket", bucket), ("key", key)):
        if not isinstance(value, str) or not value:
            raise TypeError(f"{name} is {value!r}, not a name")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise TypeError(f"size is {size!r}, not a number of bytes")
    return StoredFile(bucket, key, moment(one["last_modified"]), size)
