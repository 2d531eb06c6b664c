"""What a list held: objects that could be read, those that could not, and what is odd about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from steward.cluster.snapshot import PartStatus
from steward.sources.kubernetes.fields import MalformedError, moment
from steward.sources.kubernetes.shapes import LONGEST_LABEL, Metadata, Shape

AHEAD = timedelta(minutes=1)
"""Clocks of a cluster and of the reader differ; by more than this it is worth a word."""

_NAMED = 3
_LONGEST_NAME = 320


class Reading[S, T](msgspec.Struct, frozen=True, kw_only=True):
    """How the objects of a list are read.

    Attributes
    ----------
    shape : type
        What is decoded of an object: a :class:`Shape`, or dict for all of it.
    reduce : callable
        Makes a noun of it, or None of one that does not matter; raises MalformedError.
    matters : callable or None
        Tells from an object's bytes whether it can matter at all: most are never decoded.
    labels : frozenset of str, or None
        Labels that the nouns keep; None: all.
    unique : bool
        Whether two objects with one UID are a fault: what is remembered by UID would mix them up.
    """

    shape: type[S]
    reduce: Callable[[S], T | None]
    matters: Callable[[bytes], bool] | None = None
    labels: frozenset[str] | None = frozenset()
    unique: bool = False


class Listing[S, T]:
    """The objects of one list, reduced page by page.

    Parameters
    ----------
    reading : Reading
        How each is read.
    at : datetime
        When the list was asked for.

    Attributes
    ----------
    faults : dict of str to str
        Objects that were left out, and why.
    """

    def __init__(self, reading: Reading[S, T], at: datetime) -> None:
        self._reading = reading
        self._decoder = _decoder(reading.shape)
        self._at = at
        self._found: dict[object, T] = {}
        self._uids: dict[str, str] = {}
        self._seen = 0
        self._shortened: dict[str, str] = {}
        self._ahead: dict[str, timedelta] = {}
        self.faults: dict[str, str] = {}

    def add(self, page: Iterable[msgspec.Raw]) -> None:
        """Reduce the objects of a page."""
        matters = self._reading.matters
        for item in page:
            index = self._seen
            self._seen += 1
            text = bytes(item)
            if matters is not None and text.startswith(b"{") and not matters(text):
                continue
            try:
                self._take(text, index)
            except MalformedError as error:
                self.faults[_name(text, index)] = str(error)

    def _take(self, text: bytes, index: int) -> None:
        try:
            item = self._decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = str(error) if text.startswith(b"{") else "not an object"
            raise MalformedError(reason) from error
        metadata = item.metadata if isinstance(item, Shape) else None
        shortened = self._drop_long_labels(metadata) if metadata else ""
        noun = self._reading.reduce(item)
        if noun is None:
            return
        if metadata is None:
            self._found[index] = noun
            return
        name = named(metadata.namespace, metadata.name) or f"item {index}"
        if self._reading.unique and metadata.uid:
            holder = self._uids.setdefault(metadata.uid, name)
            if holder != name:
                raise MalformedError(f"its UID is that of {holder}, which was kept")
        if shortened:
            self._shortened[name] = shortened
        self._note_age(metadata, name)
        # One object that two pages of a changing list both hold is one object.
        self._found[name if self._reading.unique else index] = noun

    def _drop_long_labels(self, metadata: Metadata) -> str:
        """Drop kept labels that Kubernetes would not have taken: whatever they are, not labels."""
        kept, labels = self._reading.labels, metadata.labels or {}
        long = [
            key
            for key in (labels if kept is None else kept & labels.keys())
            if isinstance(labels[key], str) and len(labels[key]) > LONGEST_LABEL
        ]
        for key in long:
            del labels[key]
        return ", ".join(sorted(long))[:_LONGEST_NAME]

    def _note_age(self, metadata: Metadata, name: str) -> None:
        try:
            created = moment(metadata.creation_timestamp, "creationTimestamp")
        except MalformedError:
            # Whoever needs the time has refused the object; nobody else has to.
            return
        if created is not None and created - self._at > AHEAD:
            self._ahead[name] = created - self._at

    @property
    def found(self) -> tuple[T, ...]:
        """What could be read, in the order of the list."""
        return tuple(self._found.values())

    @property
    def status(self) -> PartStatus:
        """Say what became of the list.

        What could be read is right, so one malformed object does not blind the rest: the part is
        ok and names it. Where nothing could be read, nothing was understood.
        """
        if self.faults and len(self.faults) == self._seen:
            return PartStatus.UNREADABLE
        return PartStatus.OK

    @property
    def detail(self) -> str:
        """Name the objects that were left out, and what is odd about those that were not."""
        told = []
        if self.faults:
            lost = f"left out {len(self.faults)} malformed of {self._seen} objects"
            told.append(f"{lost}: {_some(self.faults)}")
        if self._shortened:
            lost = (
                f"dropped labels over {LONGEST_LABEL} characters of {len(self._shortened)} objects"
            )
            told.append(f"{lost}: {_some(self._shortened)}")
        if self._ahead:
            most = max(self._ahead.values()).total_seconds()
            first = ", ".join(islice(self._ahead, _NAMED))
            told.append(
                f"{len(self._ahead)} objects were created up to {most:.0f} s after they were read: "
                f"{first}; the clocks of the cluster and of the steward differ"
            )
        return "; ".join(told)


def named(namespace: object, name: object) -> str:
    """Name an object by namespace and name, as far as they are text; empty where it has no name."""
    if not isinstance(name, str) or not name:
        return ""
    place = f"{namespace}/" if isinstance(namespace, str) and namespace else ""
    return f"{place}{name}"[:_LONGEST_NAME]


class _Nameable(msgspec.Struct):
    """An object of which nothing is sure: as much as its name takes."""

    metadata: Any = None


def _name(text: bytes, index: int) -> str:
    """Name an object as well as it can be named: by namespace and name, else by its position."""
    try:
        metadata = _decoder(_Nameable).decode(text).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        metadata = None
    found = metadata if isinstance(metadata, dict) else {}
    return named(found.get("namespace"), found.get("name")) or f"item {index}"


def _some(named_faults: dict[str, str]) -> str:
    told = "; ".join(f"{name}: {why}" for name, why in islice(named_faults.items(), _NAMED))
    return f"{told}; …" if len(named_faults) > _NAMED else told


_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}


def _decoder[S](shape: type[S]) -> msgspec.json.Decoder[S]:
    """Make a shape's decoder when it is first needed: a cold start pays for no other."""
    if shape not in _DECODERS:
        _DECODERS[shape] = msgspec.json.Decoder(shape)
    return _DECODERS[shape]
