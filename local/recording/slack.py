"""`slack/*.json`: what people pressed and typed, as Slack sent it; scripted answers lie beside it."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode

from local.recording.moments import moment
from local.recording.reading import list_files, read_json
from steward.errors import ConfigError

_FIELDS = {"interaction": "payload", "command": "command"}
"""Kinds, and the form field without which Slack sends none of them."""

_KEYS = {"time", "kind", "body"}


class Press(NamedTuple):
    """A button that was pressed, a dialog that was sent, or a command that was typed.

    Attributes
    ----------
    kind : str
        `interaction` or `command`.
    body : str
        The form as Slack sends it: what is signed.
    """

    at: datetime
    kind: str
    body: str


def read_presses(folder: Path) -> tuple[Press, ...]:
    """Read the presses and commands, by time, then by file name and position in the file.

    Raises
    ------
    ConfigError
        One line: the file, what is wrong with it, and the remedy.
    """
    found: list[Press] = []
    for path in list_files(folder, ".json"):
        document: Any = read_json(path)
        for number, one in enumerate(document if isinstance(document, list) else [document]):
            if not isinstance(one, Mapping):
                raise ConfigError(
                    f"{path}: [{number}]: is not a JSON object; write an object a press, command "
                    "or scripted answer"
                )
            if "kind" not in one:
                continue  # an answer, which the stand-in reads
            try:
                found.append(_press(one))
            except (TypeError, ValueError) as error:
                raise ConfigError(f"{path}: [{number}]: {error}; see docs/recordings.md") from error
    return tuple(sorted(found, key=lambda press: press.at))


def _press(one: Mapping[str, Any]) -> Press:
    kind = one["kind"]
    if kind not in _FIELDS:
        raise ValueError(f"kind is {kind!r}, not interaction or command")
    if unknown := sorted(one.keys() - _KEYS):
        raise ValueError(f"unknown key {unknown[0]!r}; a press has time, kind and body")
    for name in ("time", "body"):
        if name not in one:
            raise ValueError(f"{name} is missing")
    try:
        at = moment(one["time"])
    except ValueError as error:
        raise ValueError(f"time {error}") from error
    return Press(at, kind, _form(kind, one["body"]))


def _form(kind: str, body: Any) -> str:
    """Write a body as the form that Slack sends; text is taken as it is, to the byte."""
    if isinstance(body, Mapping):
        given = {"payload": json.dumps(body)} if kind == "interaction" else body
        if wrong := [name for name, value in given.items() if not isinstance(value, str)]:
            raise TypeError(f"body.{wrong[0]} is no text; a command has flat fields")
        body = urlencode(given)
    if not isinstance(body, str):
        raise TypeError("body is neither text nor an object")
    field = _FIELDS[kind]
    if not parse_qs(body).get(field):
        raise ValueError(f"body has no field {field!r}, without which Slack sends no {kind}")
    return body
