"""A recording that was opened: what it answers at a time."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from local.recording.checkpoints import CheckpointData, read_checkpoints
from local.recording.cloudwatch import CloudWatchData, read_cloudwatch
from local.recording.header import Header
from local.recording.reading import (
    Delivered,
    Timeline,
    check_tail,
    find_memories,
    find_snapshots,
    list_files,
    read_events,
    read_json,
    read_object,
    read_timeline,
)
from local.recording.slack import Press, read_presses

SOURCES = ("sagemaker", "eks", "kubernetes")
"""Folders of answers: each may hold one subfolder a time, in force until the next one."""

CACHED_FILES = 512
"""Parsed files kept: a few folders of every source; a replay moves on and needs no older ones."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A recording that was opened, and so checked. Parsed answers are shared: do not change them.

    Attributes
    ----------
    cluster : str
        The policy's name of the cluster.
    start, end : datetime
        First tick, and the time that no tick is later than (UTC); the same where `now` is set.
    now : datetime or None
        The time of a recording that is a single tick.
    cloudwatch : CloudWatchData
        What `cloudwatch/` holds; nothing where it is absent.
    checkpoints : CheckpointData
        What `checkpoints/` holds; nothing where it is absent.
    presses : tuple of Press
        What people pressed and typed in Slack, by time.
    """

    folder: Path
    cluster: str
    start: datetime
    end: datetime
    tick: timedelta
    now: datetime | None
    note: str
    cloudwatch: CloudWatchData = field(repr=False, compare=False)
    checkpoints: CheckpointData = field(repr=False, compare=False)
    presses: tuple[Press, ...] = field(repr=False, compare=False)
    _timelines: Mapping[str, Timeline] = field(repr=False, compare=False)
    _events: tuple[Delivered, ...] = field(repr=False, compare=False)
    _snapshots: tuple[tuple[datetime, Path], ...] = field(repr=False, compare=False)
    _memories: tuple[tuple[datetime, Path], ...] = field(repr=False, compare=False)
    _parsed: Callable[[Path], Any] = field(
        default_factory=lambda: lru_cache(CACHED_FILES)(read_json), repr=False, compare=False
    )

    @classmethod
    def open(cls, folder: Path) -> "Recording":
        """Open a recording and check every file that can be checked by itself.

        Raises
        ------
        ConfigError
            One line: the file, what is wrong with it, and the remedy.
        """
        header = Header(folder / "recording.yaml")
        timelines = {source: read_timeline(folder / source) for source in SOURCES}
        for timeline in timelines.values():
            for _, answers in timeline:
                for path in answers.values():
                    read_object(path)
        for path in list_files(folder / "metrics", ".om"):
            check_tail(path)
        return cls(
            folder=folder,
            cluster=header.cluster,
            start=header.start,
            end=header.end,
            tick=header.tick,
            now=header.now,
            note=header.note,
            cloudwatch=read_cloudwatch(folder / "cloudwatch"),
            checkpoints=read_checkpoints(folder / "checkpoints"),
            presses=read_presses(folder / "slack"),
            _timelines=timelines,
            _events=read_events(folder / "events"),
            _snapshots=find_snapshots(folder / "snapshots"),
            _memories=find_memories(folder / "memory"),
        )

    def kubernetes(self, resource: str, at: datetime) -> dict[str, Any] | None:
        """Return what `kubectl get <resource> -A -o json` printed; None where it was not recorded."""
        return self._answer("kubernetes", at, f"{resource}.json")

    def has_kubernetes(self, at: datetime) -> bool:
        """Whether a folder is in force; without one every call is denied."""
        return self._in_force("kubernetes", at) is not None

    def sagemaker(
        self, operation: str, identifier: str | None, at: datetime
    ) -> dict[str, Any] | None:
        """Return what the AWS CLI printed; None where it was not recorded.

        `Describe….json` without an identifier answers for every identifier.
        """
        return self._answer("sagemaker", at, *_names(operation, identifier))

    def eks(self, operation: str, name: str | None, at: datetime) -> dict[str, Any] | None:
        """Return what the AWS CLI printed; see :meth:`sagemaker`."""
        return self._answer("eks", at, *_names(operation, name))

    def metric_files(self) -> list[Path]:
        """List `metrics/*.om` and `metrics/*.prom`."""
        return self.files("metrics", ".om", ".prom")

    @property
    def has_metrics(self) -> bool:
        """Whether there is a `metrics/` folder; without one Prometheus is unreachable."""
        return (self.folder / "metrics").is_dir()

    def events(self) -> list[Delivered]:
        """Return the EventBridge events, by when each is delivered, then as their files have them.

        However it was recorded, `time` is in the form that EventBridge delivers.
        """
        return list(self._events)

    def slack_files(self) -> list[Path]:
        """List `slack/*.json`."""
        return self.files("slack", ".json")

    def snapshots(self) -> list[tuple[datetime, Path]]:
        """List the stored snapshots with their times, oldest first."""
        return list(self._snapshots)

    @property
    def memory(self) -> Path | None:
        """The newest stored memory from before the first tick; None: the cluster has none yet."""
        before = [path for at, path in self._memories if at < self.start]
        return before[-1] if before else None

    @property
    def governance(self) -> Path | None:
        """The recording's own policy; None: the example policy is in force."""
        path = self.folder / "governance.yaml"
        return path if path.is_file() else None

    def files(self, name: str, *suffixes: str) -> list[Path]:
        """List the files of one of the recording's folders, by name; none where it is absent."""
        return list_files(self.folder / name, *suffixes)

    def _in_force(self, source: str, at: datetime) -> Mapping[str, Path] | None:
        timeline = self._timelines[source]
        later = bisect_right(timeline, at, key=lambda entry: entry[0])
        return timeline[later - 1][1] if later else None

    def _answer(self, source: str, at: datetime, *names: str) -> dict[str, Any] | None:
        files = self._in_force(source, at) or {}
        path = next((files[name] for name in names if name in files), None)
        answer: dict[str, Any] | None = None if path is None else self._parsed(path)
        return answer


def _names(operation: str, identifier: str | None) -> tuple[str, ...]:
    if identifier is None:
        return (f"{operation}.json",)
    own = f"{operation}.{identifier}.json"
    return (own, f"{operation}.json") if operation.startswith("Describe") else (own,)
