"""Metric files of a recording: `*.om` (OpenMetrics, seconds) and `*.prom` (text, milliseconds)."""

import re
from array import array
from collections.abc import Collection, Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TextIO

from steward.errors import ConfigError

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_PAIR = r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"'
_SERIES = re.compile(rf"({_NAME})\s*(?:\{{\s*((?:{_PAIR}\s*(?:,\s*|(?=\}})))*)\}})?")
_LABEL = re.compile(_PAIR)
_ESCAPE = re.compile(r"\\(.)")
_END = "# EOF"


class Series(NamedTuple):
    """One series.

    Attributes
    ----------
    labels : dict of str to str
        With `__name__`, without empty labels (to Prometheus they are absent).
    times : array of int
        Milliseconds since the epoch, ascending, each once.
    values : array of float
        As many.
    """

    labels: dict[str, str]
    times: array[int]
    values: array[float]


def load(files: Iterable[Path], clusters: Collection[str]) -> list[Series]:
    """Read and merge metric files.

    Parameters
    ----------
    files : iterable of Path
        `*.prom` has milliseconds, anything else seconds and `# EOF` as its last line.
    clusters : collection of str
        Names of the recording's cluster (its own, its EKS name): a series that carries another
        `cluster_name` is left out.

    Returns
    -------
    list of Series
        Sorted by labels; a sample present twice counts once (of two values the first read).

    Raises
    ------
    ConfigError
        A line that is not a sample with a time; names file and line.
    """
    merged: dict[frozenset[tuple[str, str]], Series] = {}
    for path in sorted(files):
        try:
            _read(path, set(clusters), merged)
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: not UTF-8: {error}; record it again") from error
    return sorted((_in_order(series) for series in merged.values()), key=_identity)


def write(series: Iterable[Series], file: TextIO) -> None:
    """Write OpenMetrics, in which no time loses its millisecond on the way through `promtool`."""
    for labels, times, values in series:
        name = labels["__name__"]
        pairs = ",".join(
            f'{label}="{_escape(value)}"' for label, value in labels.items() if label != "__name__"
        )
        head = f"{name}{{{pairs}}}" if pairs else name
        file.writelines(
            f"{head} {_number(value)} {_seconds(at)}\n"
            for at, value in zip(times, values, strict=True)
        )
    file.write(f"{_END}\n")


def _read(path: Path, clusters: set[str], merged: dict[frozenset[tuple[str, str]], Series]) -> None:
    in_ms = path.suffix == ".prom"
    known: dict[str, Series | None] = {}
    ended = False
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                head, value, stamp = line.rsplit(None, 2)
                series = known[head]
            except (KeyError, ValueError):
                if _says_nothing(line):
                    ended = ended or line.strip() == _END
                    continue
                head, value, stamp = _parts(line, path, number)
                series = known[head] = _first_seen(head, clusters, merged, path, number)
            if series is None:
                continue
            try:
                at = int(stamp) if in_ms else round(float(stamp) * 1000)
                sample = float(value)
                series.times.append(at)
            except (ValueError, OverflowError) as error:
                raise _malformed(path, number, line) from error
            series.values.append(sample)
    if not in_ms and not ended:
        raise ConfigError(f"{path}: does not end with `{_END}`; it was cut off, or add that line")


def _says_nothing(line: str) -> bool:
    """Whether a line is blank, a comment or metadata."""
    return not line.strip() or line.lstrip().startswith("#")


def _parts(line: str, path: Path, number: int) -> list[str]:
    parts = line.rsplit(None, 2)
    if len(parts) != 3:
        raise _malformed(path, number, line)
    return parts


def _first_seen(
    head: str,
    clusters: set[str],
    merged: dict[frozenset[tuple[str, str]], Series],
    path: Path,
    number: int,
) -> Series | None:
    match = _SERIES.fullmatch(head)
    if match is None:
        raise _malformed(path, number, head)
    pairs = [(k, _unescape(v)) for k, v in _LABEL.findall(match[2] or "")]
    labels = {"__name__": match[1]} | {k: v for k, v in pairs if v}
    if len({k for k, _ in pairs}) != len(pairs):
        raise _malformed(path, number, head)
    if labels.get("cluster_name") and labels["cluster_name"] not in clusters:
        return None
    return merged.setdefault(frozenset(labels.items()), Series(labels, array("q"), array("d")))


def _malformed(path: Path, number: int, text: str) -> ConfigError:
    return ConfigError(
        f'{path}:{number}: not `name{{label="value"}} value time`: {text.strip()[:120]!r}'
    )


def _in_order(series: Series) -> Series:
    """Sort by time and keep the first of samples with the same time."""
    times = series.times
    if all(a < b for a, b in pairwise(times)):
        return series
    samples = dict(zip(reversed(times), reversed(series.values), strict=True))
    ordered = sorted(samples)
    return Series(series.labels, array("q", ordered), array("d", (samples[t] for t in ordered)))


def _identity(series: Series) -> list[tuple[str, str]]:
    return sorted(series.labels.items())


def _unescape(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], value)


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(value), repr(value))


def _seconds(at_ms: int) -> str:
    """Write seconds; promtool cuts where it should round, so a fraction gets a fifth of a ms more."""
    seconds, rest = divmod(at_ms, 1000)
    return f"{seconds}.{rest:03d}2" if rest else str(seconds)
