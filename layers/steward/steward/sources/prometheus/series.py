"""The series of a tick, numbered by their labels, so that each is told apart and kept once. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from steward.sources.prometheus.labels import SeriesLabels
from steward.sources.prometheus.promql import TAG

LARGEST_LABELS = 2**18
"""Bytes: twice what Amazon Managed Prometheus accepts for a series."""

_TAG = f'"{TAG}":"'.encode()
_NAME = b'"__name__":"'

_decode = msgspec.json.Decoder(dict[str, str]).decode


class Key(NamedTuple):
    """Which series an answer is about: its tag, or else its name, and its number."""

    name: str
    series: int


class SeriesTable:
    """Numbers series; the same labels, but for name and tag, are the same number.

    Notes
    -----
    Whoever answers writes the labels of a series the same way each time: looking the text up
    spares decoding it. Labels in another order are decoded, and found all the same.
    """

    def __init__(self) -> None:
        self.labels: list[SeriesLabels] = []
        self._numbers: dict[bytes, int] = {}
        self._left_out: dict[str, set[int]] = {}

    def key(self, metric: msgspec.Raw | bytes) -> Key | None:
        """Give a series its number, by its labels as JSON; None, and counted, if they are too large.

        Raises
        ------
        msgspec.DecodeError
            They are not labels.
        """
        text = bytes(metric)
        name, rest = _cut(text)
        if name is not None and (known := self._numbers.get(rest)) is not None:
            return Key(name, known)
        if len(text) > LARGEST_LABELS:
            self._left_out.setdefault(_family(name), set()).add(hash(rest))
            return None
        labels = _decode(text)
        written = labels.pop("__name__", "")
        number = self._number(labels, labels.pop(TAG, written))
        if name is not None:
            self._numbers[rest] = number.series
        return number

    @property
    def left_out(self) -> Mapping[str, int]:
        """Series by metric whose labels are too large to be true."""
        return {metric: len(series) for metric, series in self._left_out.items()}

    def _number(self, labels: Mapping[str, str], name: str) -> Key:
        canonical = msgspec.json.encode(labels, order="sorted")
        number = self._numbers.setdefault(canonical, len(self.labels))
        if number == len(self.labels):
            self.labels.append(msgspec.convert(labels, SeriesLabels))
        return Key(name, number)


def _cut(text: bytes) -> tuple[str | None, bytes]:
    """Cut tag or name out of labels; no value can hold what is looked for: its quotes are escaped."""
    head, found, tail = text.partition(_TAG)
    if not found:
        head, found, tail = text.partition(_NAME)
    if not found:
        return None, text
    name, _, rest = tail.partition(b'"')
    return name.decode(), head + rest


def _family(name: str | None) -> str:
    return (name or "unknown").partition(" ")[0]
