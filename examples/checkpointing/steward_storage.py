"""Checkpoints in a folder: one has its name when all of it is on disk, and not before."""
# ruff: noqa: INP001 - it is copied as one file, not imported as a part of a package

import hashlib
import importlib
import json
import logging
import os
import pickle
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

logger = logging.getLogger("steward.checkpoint")

LATEST = "latest"
MANIFEST = "manifest.json"
PART = ".part-"
"""Begins the name of everything that is not whole yet, or not needed any more."""

WHOLE = re.compile(r"step-[0-9]{12}")


class NoWholeCheckpointError(Exception):
    """There are checkpoints, and all of them are damaged: to start afresh is a person's decision."""


@dataclass(frozen=True, kw_only=True)
class Serializer:
    """How state becomes bytes. To load runs code: restore only what you trust like your image.

    Attributes
    ----------
    name : str
        Ends the name of the file; letters and digits.
    dump : callable
        Takes the state and an object with `write` and `flush`, which cannot seek.
    load : callable
        Takes the open file.
    """

    name: str
    dump: Callable[[Any, Any], object]
    load: Callable[[IO[bytes]], Any]

    def read(self, path: Path) -> Any:
        """Load a whole checkpoint's state.

        Raises
        ------
        ValueError
            Another serializer wrote it.
        """
        data = path / f"state.{self.name}"
        if not data.exists():
            raise ValueError(f"{path} was not written by the serializer {self.name!r}")
        with data.open("rb") as file:
            return self.load(file)


PICKLE = Serializer(name="pickle", dump=partial(pickle.dump, protocol=5), load=pickle.load)


def torch_serializer() -> Serializer:
    """Use torch.save; tensors are loaded to the CPU, load_state_dict puts them where they belong."""
    torch = importlib.import_module("torch")
    load = partial(torch.load, map_location="cpu", weights_only=False)
    return Serializer(name="pt", dump=torch.save, load=load)


class _Tally:
    """Passes bytes on to a file, and counts and sums what passes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self._bytes = 0

    def write(self, data: Any) -> int:
        self._sum.update(data)
        self._bytes += memoryview(data).nbytes
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def result(self) -> dict[str, Any]:
        return {"bytes": self._bytes, "sha256": self._sum.hexdigest()}


def write_whole(folder: Path, step: int, payload: Any, serializer: Serializer) -> Path:
    """Write a checkpoint: it has its name when all of it is on disk, and not before."""
    whole = folder / f"step-{step:012d}"
    part = folder / f"{PART}{uuid4().hex}"
    part.mkdir()
    try:
        with (part / f"state.{serializer.name}").open("xb") as file:
            tally = _Tally(file)
            serializer.dump(payload, tally)
            _to_disk(file)
        manifest = {"step": step, "serializer": serializer.name, **tally.result()}
        with (part / MANIFEST).open("xb") as file:
            file.write(json.dumps(manifest).encode())
            _to_disk(file)
        _folder_to_disk(part)
        if whole.exists():  # left by another process that still writes here
            whole.rename(folder / f"{PART}{uuid4().hex}")
        part.rename(whole)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    _folder_to_disk(folder)
    return whole


def find_whole(folder: Path) -> tuple[Path | None, list[Path]]:
    """Find the newest whole checkpoint, and the damaged ones that are newer."""
    damaged: list[Path] = []
    for path in _newest_first(folder):
        fault = fault_of(path)
        if fault is None:
            return path, damaged
        logger.warning("%s is damaged: %s", path, fault)
        damaged.append(path)
    return None, damaged


def fault_of(path: Path) -> str | None:
    """Say what is wrong with a checkpoint; None: it is whole, each byte as it was written.

    Raises
    ------
    OSError
        It cannot be read just now, which says nothing about it.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        data = path / f"state.{manifest['serializer']}"
        if path.name != f"step-{manifest['step']:012d}":
            return f"it says to be of step {manifest['step']}"
        with data.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != manifest["bytes"]:
                return f"{data.name} has {size} bytes and not {manifest['bytes']}"
            if hashlib.file_digest(file, "sha256").hexdigest() != manifest["sha256"]:
                return f"{data.name} has another checksum"
    except (FileNotFoundError, NotADirectoryError) as error:
        return f"{error.filename} is missing"
    except (KeyError, TypeError, ValueError) as error:
        return f"{MANIFEST} cannot be read: {error!r}"
    return None


def prepare(folder: Path) -> None:
    """Make the folder, remove what an ended process left, and see that it can do what is needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{PART}*"):
        _remove(left)
    first, second = (folder / f"{PART}probe-{uuid4().hex}" for _ in range(2))
    first.mkdir()
    first.rename(second)
    second.rmdir()
    _folder_to_disk(folder)


def prune(folder: Path, keep: int) -> None:
    """Remove all but the newest; each loses its name before its content."""
    for old in _newest_first(folder)[keep:]:
        part = folder / f"{PART}{uuid4().hex}"
        old.rename(part)
        _remove(part)


def point_to(path: Path) -> None:
    """Let `latest` name a checkpoint: for people and scripts, nothing here reads it."""
    folder = path.parent
    part = folder / f"{PART}{uuid4().hex}"
    with part.open("xb") as file:
        file.write(f"{path.name}\n".encode())
        _to_disk(file)
    part.replace(folder / LATEST)
    _folder_to_disk(folder)


def set_aside(damaged: list[Path]) -> None:
    """Give damaged checkpoints another name: they count no more, and a person can look at them."""
    for path in damaged:
        path.rename(path.with_name(f"damaged-{path.name}-{uuid4().hex}"))


def _newest_first(folder: Path) -> list[Path]:
    return sorted((p for p in folder.glob("step-*") if WHOLE.fullmatch(p.name)), reverse=True)


def _remove(path: Path) -> None:
    """Remove a file or a folder; what cannot be removed now is removed at the next start."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _folder_to_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
