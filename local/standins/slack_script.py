"""Scripted answers: what Slack says in a recording, in place of what it would say."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from local.recording import Recording, moment
from steward.errors import ConfigError

_KEYS = {"from", "to", "method", "channel", "times", "status", "headers", "body", "listed_after"}


@dataclass(slots=True)
class ScriptedAnswer:
    """An answer in place of Slack's own; what is None matches everything.

    Attributes
    ----------
    start, end : datetime or None
        In force in [start, end).
    times : int or None
        How many calls it still answers.
    body : object
        JSON object, or text as it is.
    listed_after : timedelta or None
        None: the call is not carried out. Else it is, and a post of it appears in the history
        only so long afterwards (`listed_after` in seconds).
    """

    start: datetime | None = None
    end: datetime | None = None
    method: str | None = None
    channel: str | None = None
    times: int | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    listed_after: timedelta | None = None

    def matches(self, method: str, channel: str | None, now: datetime) -> bool:
        """Tell whether it answers this call."""
        return (
            self.times != 0
            and (self.start is None or self.start <= now)
            and (self.end is None or now < self.end)
            and self.method in {None, method}
            and self.channel in {None, channel}
        )


def read_script(script: Recording | Sequence[Mapping[str, Any]]) -> list[ScriptedAnswer]:
    """Read scripted answers, in the form of a recording's `slack/*.json`.

    Raises
    ------
    ConfigError
        One line: where, what is wrong with it, and the remedy.
    """
    given = _recorded(script) if isinstance(script, Recording) else [("script", script)]
    return [
        _scripted(entry, where)
        for where, entries in given
        for entry in entries
        if "kind" not in entry  # somebody's press or command, which is not an answer
    ]


def _recorded(recording: Recording) -> list[tuple[str, Sequence[Mapping[str, Any]]]]:
    return [(str(path), _entries(path)) for path in recording.slack_files()]


def _entries(path: Path) -> Sequence[Mapping[str, Any]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    entries = document if isinstance(document, list) else [document]
    if not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"{path}: not an object, or a list of objects; write one an answer")
    return entries


def _scripted(entry: Mapping[str, Any], where: str) -> ScriptedAnswer:
    if unknown := sorted(entry.keys() - _KEYS):
        raise ConfigError(
            f"{where}: unknown key {unknown[0]!r}; an answer has {', '.join(sorted(_KEYS))}"
        )
    try:
        start, end = (
            moment(entry[key]).astimezone(UTC) if entry.get(key) is not None else None
            for key in ("from", "to")
        )
        return ScriptedAnswer(
            start=start,
            end=end,
            method=entry.get("method"),
            channel=entry.get("channel"),
            times=None if entry.get("times") is None else int(entry["times"]),
            status=int(entry.get("status", 200)),
            headers={str(k): str(v) for k, v in (entry.get("headers") or {}).items()},
            body=entry.get("body"),
            listed_after=None
            if entry.get("listed_after") is None
            else timedelta(seconds=float(entry["listed_after"])),
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{where}: not a scripted answer: {error}; correct it") from error
