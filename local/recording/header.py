"""`recording.yaml`: which cluster, from when to when."""

import re
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode

from local.recording.moments import moment
from steward.errors import ConfigError

KEYS = ("cluster", "from", "to", "tick", "now", "note")

_TICK = re.compile(r"([1-9]\d*)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_SHORTEST = timedelta(minutes=1)
_EPOCH = re.compile(r"\d{9,}(\.\d+)?")


class Header:
    """`recording.yaml`, read as text so that no YAML type guesses at a time or an id."""

    def __init__(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise ConfigError(f"{path.parent}: no such folder; name the folder of a recording")
        if not path.is_file():
            raise ConfigError(f"{path}: missing; write one with cluster, from and to")
        self._path = path
        self._lines: dict[str, int] = {}
        self._values: dict[str, str] = {}
        for key, value, line in _scalars(path):
            self._add(key, value, line)
        self.cluster = self._required("cluster")
        self.note = self._values.get("note", "").strip()
        self.tick = self._tick()
        self.now = self._time("now") if self._values.get("now") else None
        start, end = (
            self.now if self.now and not self._values.get(key) else self._time(key)
            for key in ("from", "to")
        )
        if end < start:
            raise self._error("to", "is before `from`; swap them")
        # A recording with `now` is that one tick, whatever period its data cover.
        self.start, self.end = self.now or start, self.now or end

    def _add(self, key: str, value: str, line: int) -> None:
        if key not in KEYS:
            near = get_close_matches(key, KEYS, n=1, cutoff=0)[0]
            raise ConfigError(f"{self._path}:{line}: unknown key {key!r}; did you mean {near!r}?")
        if key in self._lines:
            raise ConfigError(f"{self._path}:{line}: {key!r} is there twice; keep one")
        self._lines[key], self._values[key] = line, value

    def _error(self, key: str, fault: str) -> ConfigError:
        line = self._lines.get(key)
        return ConfigError(f"{self._path}{f':{line}' if line else ''}: {key} {fault}")

    def _required(self, key: str) -> str:
        value = self._values.get(key, "").strip()
        if not value:
            raise self._error(key, f"is missing; add `{key}: …`")
        return value

    def _time(self, key: str) -> datetime:
        try:
            text = self._required(key)
            return moment(float(text) if _EPOCH.fullmatch(text) else text)
        except ValueError as error:
            raise self._error(key, str(error)) from error

    def _tick(self) -> timedelta:
        text = self._values.get("tick") or "5m"
        match = _TICK.fullmatch(text)
        if match is None:
            raise self._error("tick", f"{text!r} is not a duration; write it like 5m, 1h or 300s")
        tick = timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
        if tick < _SHORTEST:
            raise self._error("tick", f"{text!r} is too short: no schedule fires within a minute")
        return tick


def _scalars(path: Path) -> list[tuple[str, str, int]]:
    """Read the key, text and line of every pair of a flat YAML mapping."""
    try:
        root = YAML(typ="base", pure=True).compose(path)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.problem}; correct it") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML in UTF-8; correct it") from error
    if not isinstance(root, MappingNode):
        raise ConfigError(f"{path}: not a mapping; write `key: value` lines")
    pairs = []
    for key, value in root.value:
        line = key.start_mark.line + 1
        if not (isinstance(key, ScalarNode) and isinstance(value, ScalarNode)):
            raise ConfigError(f"{path}:{line}: not a simple value; write `key: value` lines")
        pairs.append((key.value, value.value, line))
    return pairs
