"""What a capture needs to go on after a break: one file beside the recording, never part of it."""

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from local.capture.names import Pseudonyms
from steward.errors import ConfigError


class State(msgspec.Struct, kw_only=True):
    """The resume file.

    Attributes
    ----------
    asked : dict of str to str
        What was asked for; a capture of something else does not go on from here.
    salt : str
        Key of the pseudonyms (hexadecimal); gone with this file once the recording is whole.
    notes : list of str
        What `recording.yaml` will have to say.
    """

    asked: dict[str, str]
    salt: str
    accounts: list[str] = []
    jobs: list[str] = []
    looks: list[str] = []
    notes: list[str] = []
    no_metrics: bool = False


def resume_file(out: Path) -> Path:
    """Name the resume file of a recording."""
    return out.with_name(f"{out.name}.partial")


def begin(out: Path, asked: dict[str, str]) -> tuple[State, bool]:
    """Begin a capture, or go on with one; tells which.

    Raises
    ------
    ConfigError
        `out` holds something else, or the resume file is of another capture.
    """
    path = resume_file(out)
    if (out / "recording.yaml").exists():
        path.unlink(missing_ok=True)  # all but this was done when it was stopped
        raise ConfigError(f"OUT={out}: holds a recording already; name another folder")
    if not path.exists():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ConfigError(f"OUT={out}: is not empty; name a new folder")
        return State(asked=asked, salt=secrets.token_hex(32)), False
    try:
        state = msgspec.json.decode(path.read_bytes(), type=State)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; delete it and {out}") from error
    if state.asked != asked:
        changed = [key for key in asked if state.asked.get(key) != asked[key]]
        told = ", ".join(f"{key}={state.asked.get(key, '')}" for key in changed)
        raise ConfigError(f"{path}: was begun with {told}; ask for that again, or name another OUT")
    return state, True


def save(out: Path, state: State, names: Pseudonyms) -> None:
    """Write the resume file; readable by its owner alone, for it holds the salt."""
    state.accounts, state.jobs = sorted(names.accounts), sorted(names.jobs)
    path = resume_file(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(state), indent=1))
    new.replace(path)


def write_header(out: Path, header: Mapping[str, str]) -> None:
    """Write `recording.yaml`, the last file of a recording: without it, the folder is none."""
    for left in out.rglob(".*.new"):  # of a write that was stopped
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    lines = (f"{key}: {json.dumps(text, ensure_ascii=False)}\n" for key, text in header.items())
    write_file(out / "recording.yaml", "".join(lines))


def text_of(document: object) -> str:
    """Write an answer as the text of its file."""
    return json.dumps(document, indent=1, ensure_ascii=False, default=str) + "\n"


def write_file(path: Path, text: str) -> None:
    """Write a file of the recording: it is there as a whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8", newline="\n")
    new.replace(path)


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Write a folder of the recording, likewise: of half of one, the rest would read as denied."""
    new = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    for name, text in files.items():
        write_file(new / name, text)
    shutil.rmtree(folder, ignore_errors=True)
    new.replace(folder)
