"""The files of a recording, by what they hold; each is checked by itself as it is found."""

import gzip
import json
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from local.recording.moments import moment, named_moment
from steward.errors import ConfigError

_UNTIMED = datetime.min.replace(tzinfo=UTC)
_TAIL = 256

type Timeline = tuple[tuple[datetime, Mapping[str, Path]], ...]
"""When each folder of a source begins to be in force, and its files by name, oldest first."""


def list_files(folder: Path, *suffixes: str) -> list[Path]:
    """List the visible files of a folder that end so, by name; none where it is absent."""
    if not folder.is_dir():
        return []
    named = (p for p in folder.iterdir() if p.name.endswith(suffixes) and p.is_file())
    return sorted(path for path in named if not path.name.startswith("."))


def read_json(path: Path) -> object:
    """Read a JSON file, gzipped or not.

    Raises
    ------
    ConfigError
        One line: the file, what is wrong with it, and the remedy.
    """
    try:
        data = path.read_bytes()
        document: object = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno}); record it again"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not JSON: not UTF-8 text; record it again") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; record it again") from error
    return document


def read_object(path: Path) -> dict[str, Any]:
    """Read an answer; :class:`ConfigError` where it is not a JSON object."""
    answer = read_json(path)
    if not isinstance(answer, dict):
        raise ConfigError(
            f"{path}: not a JSON object; record the whole answer, as the command prints it"
        )
    return answer


def read_timeline(folder: Path) -> Timeline:
    """Find a source's folders; files outside a `<time>` folder count as the oldest one."""
    if not folder.is_dir():
        return ()
    untimed = {path.name: path for path in list_files(folder, ".json")}
    if untimed and folder.name == "kubernetes":
        raise ConfigError(
            f"{next(iter(untimed.values()))}: outside a <time> folder; "
            "move it to kubernetes/YYYYMMDDTHHMMSSZ/"
        )
    timed = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    found = [(named_moment(p, p.name), {f.name: f for f in list_files(p, ".json")}) for p in timed]
    return ((_UNTIMED, untimed), *found) if untimed else tuple(found)


def check_tail(path: Path) -> None:
    """Check that an OpenMetrics file has its end; :class:`ConfigError` where it was cut off."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        tail = file.read()
    if not tail.rstrip().endswith(b"# EOF"):
        raise ConfigError(f"{path}: does not end with `# EOF`; it was cut off, or add that line")


class Delivered(NamedTuple):
    """An EventBridge event, and when it is delivered."""

    at: datetime
    event: dict[str, Any]


def read_events(folder: Path) -> tuple[Delivered, ...]:
    """Read the EventBridge events, by when each is delivered, then by file name and position.

    That is its `time`, or `delivered` where a delivery was late or repeated; that member is ours and
    not the event's.
    """
    found: list[Delivered] = []
    for path in list_files(folder, ".json"):
        document: Any = read_json(path)
        for event in document if isinstance(document, list) else [document]:
            if not isinstance(event, dict) or "time" not in event:
                raise ConfigError(
                    f"{path}: an event without `time`; record the whole EventBridge envelope"
                )
            found.append(_delivered(event, path))
    # Files come by name and the sort is stable: events of one time keep that order.
    return tuple(sorted(found, key=lambda one: one.at))


def _delivered(event: dict[str, Any], path: Path) -> Delivered:
    times = {}
    for key in ("time", "delivered"):
        try:
            times[key] = moment(event.get(key, event["time"]))
        except ValueError as error:
            raise ConfigError(f"{path}: {key} {error}") from error
    if times["delivered"] < times["time"]:
        raise ConfigError(f"{path}: delivered is before `time`; swap them")
    sent = {name: value for name, value in event.items() if name != "delivered"}
    return Delivered(times["delivered"], sent | {"time": f"{times['time']:%Y-%m-%dT%H:%M:%SZ}"})


def find_snapshots(folder: Path) -> tuple[tuple[datetime, Path], ...]:
    """Find the stored snapshots with their times, oldest first, and check that each can be read."""
    paths = list_files(folder, ".json.gz")
    found = tuple((named_moment(p, p.name.removesuffix(".json.gz")), p) for p in paths)
    for _, path in found:
        read_object(path)
    return found


def find_memories(folder: Path) -> tuple[tuple[datetime, Path], ...]:
    """Find the stored memories with their times, oldest first, and check that each can be read."""
    paths = list_files(folder, ".json")
    found = tuple((named_moment(p, p.name.removesuffix(".json")), p) for p in paths)
    for _, path in found:
        read_object(path)
    return found
