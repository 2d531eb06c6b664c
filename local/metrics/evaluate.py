"""PromQL as far as the product uses it, over the series of a recording.

What it knows: vector and range selectors with every matcher, `max_`, `min_`, `avg_`, `count_` and
`last_over_time`, `timestamp`, `label_replace` that gives every series of a vector one label, and
`or` between vectors. Everything else is refused by name, never answered wrongly. That it says what
Prometheus 2 says is proven against the real one.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from local.metrics.openmetrics import Series
from local.metrics.plans import Labelled, Leaf, Plan, Planner, QueryError, Union

LOOK_BACK_MS = 5 * 60 * 1000
"""How old a sample may be that an instant selector still shows (Prometheus' default)."""

type _Elements = list[tuple[dict[str, str], float]]


def _numbers(values: Sequence[float]) -> Sequence[float]:
    """Leave NaN out; a sum shows quickly whether there is any."""
    if not math.isnan(sum(values)):
        return values
    return [value for value in values if not math.isnan(value)]


def _maximum(values: Sequence[float]) -> float:
    return max(_numbers(values), default=math.nan)


def _minimum(values: Sequence[float]) -> float:
    return min(_numbers(values), default=math.nan)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _count(values: Sequence[float]) -> float:
    return float(len(values))


_AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "max_over_time": _maximum,
    "min_over_time": _minimum,
    "avg_over_time": _mean,
    "count_over_time": _count,
}


class Evaluator:
    """Evaluates instant queries.

    Parameters
    ----------
    series : iterable of Series
        Everything there is, later samples included.
    """

    def __init__(self, series: Iterable[Series]) -> None:
        self._planner = Planner(series)

    def query(self, text: str, at_ms: int, visible_to_ms: int) -> dict[str, Any]:
        """Evaluate a query.

        Parameters
        ----------
        at_ms, visible_to_ms : int
            Evaluation time, and the time that no sample shown is later than.

        Returns
        -------
        dict
            `data` of Prometheus' answer: `resultType` and `result`.

        Raises
        ------
        QueryError
            The query cannot be parsed, or is outside of what is evaluated here.
        """
        plan = self._planner.plan(text)
        until = min(at_ms, visible_to_ms)
        if isinstance(plan, Leaf) and plan.function is None and plan.span_ms is not None:
            return {"resultType": "matrix", "result": _matrix(plan, at_ms - plan.span_ms, until)}
        result = [
            {"metric": labels, "value": [at_ms / 1000, number(value)]}
            for labels, value in _vector(plan, at_ms, until)
        ]
        return {"resultType": "vector", "result": result}


def number(value: float) -> str:
    """Write a sample value as Prometheus' JSON does: a string, with names for what is no number."""
    if math.isfinite(value):
        return repr(value).removesuffix(".0")
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def _matrix(plan: Leaf, from_ms: int, until_ms: int) -> list[dict[str, Any]]:
    result = []
    for one in plan.series:
        times, values = _cut(one, from_ms, until_ms)
        if times:
            pairs = [[t / 1000, number(v)] for t, v in zip(times, values, strict=True)]
            result.append({"metric": one.labels, "values": pairs})
    return result


def _vector(plan: Plan, at_ms: int, until_ms: int) -> _Elements:
    if isinstance(plan, Union):
        found = _united([_vector(inner, at_ms, until_ms) for inner in plan.inner])
    elif isinstance(plan, Labelled):
        found = [
            (labels | {plan.label: plan.value}, value)
            for labels, value in _vector(plan.inner, at_ms, until_ms)
        ]
    else:
        found = _aggregated(plan, at_ms, until_ms)
    if len({frozenset(labels.items()) for labels, _ in found}) < len(found):
        raise QueryError(422, "execution", "vector cannot contain metrics with the same labelset")
    return found


def _united(vectors: Iterable[_Elements]) -> _Elements:
    """Leave out what an earlier vector has under the same labels; the metric's name is none."""
    found: _Elements = []
    known: set[frozenset[tuple[str, str]]] = set()
    for vector in vectors:
        named = [frozenset(_unnamed(labels).items()) for labels, _ in vector]
        found += [one for one, name in zip(vector, named, strict=True) if name not in known]
        known.update(named)
    return found


def _aggregated(plan: Leaf, at_ms: int, until_ms: int) -> _Elements:
    span = LOOK_BACK_MS if plan.span_ms is None else plan.span_ms
    found = []
    for one in plan.series:
        times, values = _cut(one, at_ms - span, until_ms)
        if not times:
            continue
        if plan.function in {None, "last_over_time"}:  # these alone keep the metric's name
            found.append((one.labels, values[-1]))
        elif plan.function == "timestamp":
            found.append((_unnamed(one.labels), times[-1] / 1000))
        else:
            found.append((_unnamed(one.labels), _AGGREGATES[plan.function](values)))
    return found


def _cut(series: Series, from_ms: int, until_ms: int) -> tuple[array[int], array[float]]:
    """Cut out the samples from one time to another; Prometheus 2 counts both edges."""
    first, last = bisect_left(series.times, from_ms), bisect_right(series.times, until_ms)
    return series.times[first:last], series.values[first:last]


def _unnamed(labels: Mapping[str, str]) -> dict[str, str]:
    return {label: value for label, value in labels.items() if label != "__name__"}
