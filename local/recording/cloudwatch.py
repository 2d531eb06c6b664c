"""`cloudwatch/*.json`: what GetMetricData answered, with the metric that each result is of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from local.recording.moments import moment
from local.recording.reading import list_files, read_json
from steward.errors import ConfigError

OPERATIONS = ("GetMetricData", "ListMetrics")

_NAME = re.compile(r"\b(?:pod|container|node|kueue|hyperpod)_[a-z0-9_]+\b")
_NAMESPACES = {True: "ContainerInsights/Prometheus", False: "ContainerInsights"}

type Metric = tuple[str, str, frozenset[tuple[str, str]]]
"""Namespace, name and dimensions."""


@dataclass(slots=True)
class CloudWatchData:
    """What a recording holds of CloudWatch.

    Attributes
    ----------
    points : dict
        By metric, values by their time; a point that is there twice counts once.
    statuses : dict
        By metric, the StatusCode of the last result of it.
    errors : dict
        By operation, the answer that is an error.
    """

    points: dict[Metric, dict[datetime, float]] = field(default_factory=dict)
    statuses: dict[Metric, str] = field(default_factory=dict)
    errors: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def read_cloudwatch(folder: Path) -> CloudWatchData:
    """Read the folder; nothing where it is absent.

    Raises
    ------
    ConfigError
        One line: the file, what is wrong with it, and the remedy.
    """
    found = CloudWatchData()
    for path in list_files(folder, ".json"):
        document: Any = read_json(path)
        if isinstance(document, dict) and "Error" in document:
            named = [operation for operation in OPERATIONS if path.name.startswith(operation)]
            found.errors |= dict.fromkeys(named or OPERATIONS, document)
            continue
        results = document.get("MetricDataResults") if isinstance(document, dict) else document
        if not isinstance(results, list):
            raise ConfigError(
                f"{path}: holds no MetricDataResults; record the whole answer of GetMetricData"
            )
        for number, result in enumerate(results):
            try:
                _add(found, result)
            except (TypeError, KeyError, AttributeError, ValueError) as error:
                raise ConfigError(
                    f"{path}: MetricDataResults[{number}]: {_words(error)}; see docs/recordings.md"
                ) from error
    return found


def _add(found: CloudWatchData, result: Mapping[str, Any]) -> None:
    metric = _metric(result)
    points = found.points.setdefault(metric, {})
    times, values = result["Timestamps"], result["Values"]
    if len(times) != len(values):
        raise ValueError(f"{len(times)} Timestamps and {len(values)} Values; each has one")
    points |= {moment(at): float(value) for at, value in zip(times, values, strict=True)}
    # A merged answer has the pages of a metric one after the other, all but the last of them partial.
    found.statuses[metric] = str(result.get("StatusCode", "Complete"))


def _metric(result: Mapping[str, Any]) -> Metric:
    given = result.get("Dimensions")
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, list):
        pairs = [(pair["Name"], pair["Value"]) for pair in given]
    else:
        raise TypeError("has no Dimensions, without which nobody knows what was measured")
    name = result.get("MetricName") or _named(str(result.get("Label", "")))
    namespace = result.get("Namespace") or _NAMESPACES[name.startswith("kueue_")]
    return namespace, name, frozenset((str(key), str(value)) for key, value in pairs)


def _named(label: str) -> str:
    """Find the metric's name in a label, which may hold dimensions and statistic as well."""
    names = _NAME.findall(label)
    if len(names) != 1:
        raise ValueError(f"Label {label!r} does not name a metric; add MetricName")
    return str(names[0])


def _words(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
