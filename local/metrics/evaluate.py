"""PromQL as far as the product uses it, over the series of a recording.

What it knows: vector and range selectors with every matcher, `max_`, `min_`, `avg_`, `count_` and
`last_over_time`, and `timestamp`. Everything else is refused by name, never answered wrongly. That
it says what Prometheus 2 says is proven against the real one.
"""

import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import promql_parser
from promql_parser import MatchOp

from local.metrics.openmetrics import Series

LOOK_BACK_MS = 5 * 60 * 1000
"""How old a sample may be that an instant selector still shows (Prometheus' default)."""

PLANS = 256
"""Queries whose series are remembered."""


class QueryError(Exception):
    """A query that is refused.

    Attributes
    ----------
    status : int
        HTTP status that Prometheus gives it.
    kind : str
        Prometheus' `errorType`.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class _Plan(NamedTuple):
    """A query that was understood: what to do with the samples of which series."""

    function: str | None
    span_ms: int | None
    series: Sequence[Series]


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
_OF_RANGES = {*_AGGREGATES, "last_over_time"}
_OF_INSTANTS = {"timestamp"}


class Evaluator:
    """Evaluates instant queries.

    Parameters
    ----------
    series : iterable of Series
        Everything there is, later samples included.
    """

    def __init__(self, series: Iterable[Series]) -> None:
        self._by_name: dict[str, list[Series]] = defaultdict(list)
        for one in series:
            self._by_name[one.labels["__name__"]].append(one)
        # A tick asks what the tick before it asked, at another time.
        self._plan = lru_cache(PLANS)(self._understand)

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
        plan = self._plan(text)
        until = min(at_ms, visible_to_ms)
        if plan.function is None and plan.span_ms is not None:
            return {"resultType": "matrix", "result": _matrix(plan, at_ms - plan.span_ms, until)}
        result = [
            {"metric": labels, "value": [at_ms / 1000, number(value)]}
            for labels, value in _vector(plan, at_ms, until)
        ]
        return {"resultType": "vector", "result": result}

    def _understand(self, text: str) -> _Plan:
        try:
            tree = promql_parser.parse(text)
        except ValueError as error:
            raise QueryError(400, "bad_data", f'invalid parameter "query": {error}') from error
        function = None
        if isinstance(tree, promql_parser.Call):
            function, arguments = tree.func.name, tree.args
            if function not in _OF_RANGES | _OF_INSTANTS:
                raise _unsupported(function)
            tree = arguments[0]
        if isinstance(tree, promql_parser.MatrixSelector) and function not in _OF_INSTANTS:
            return _Plan(function, _ms(tree.range), self._select(tree.vector_selector))
        if isinstance(tree, promql_parser.VectorSelector) and function not in _OF_RANGES:
            return _Plan(function, None, self._select(tree))
        raise _unsupported(type(tree).__name__)

    def _select(self, selector: Any) -> list[Series]:
        if selector.offset is not None or selector.at is not None:
            raise _unsupported("offset and @")
        if selector.matchers.or_matchers:
            raise _unsupported("or between matchers")
        named = [("__name__", _equals(selector.name))] if selector.name else []
        matchers = named + [(m.name, _matcher(m)) for m in selector.matchers.matchers]
        families = [
            series
            for name, series in self._by_name.items()
            if all(accepts(name) for label, accepts in matchers if label == "__name__")
        ]
        rest = [(label, accepts) for label, accepts in matchers if label != "__name__"]
        return [
            one
            for family in families
            for one in family
            if all(accepts(one.labels.get(label, "")) for label, accepts in rest)
        ]


def number(value: float) -> str:
    """Write a sample value as Prometheus' JSON does: a string, with names for what is no number."""
    if math.isfinite(value):
        return repr(value).removesuffix(".0")
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def _matrix(plan: _Plan, from_ms: int, until_ms: int) -> list[dict[str, Any]]:
    result = []
    for one in plan.series:
        times, values = _cut(one, from_ms, until_ms)
        if times:
            pairs = [[t / 1000, number(v)] for t, v in zip(times, values, strict=True)]
            result.append({"metric": one.labels, "values": pairs})
    return result


def _vector(plan: _Plan, at_ms: int, until_ms: int) -> list[tuple[dict[str, str], float]]:
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
    if len({frozenset(labels.items()) for labels, _ in found}) < len(found):
        raise QueryError(422, "execution", "vector cannot contain metrics with the same labelset")
    return found


def _cut(series: Series, from_ms: int, until_ms: int) -> tuple[array[int], array[float]]:
    """Cut out the samples from one time to another; Prometheus 2 counts both edges."""
    first, last = bisect_left(series.times, from_ms), bisect_right(series.times, until_ms)
    return series.times[first:last], series.values[first:last]


def _unnamed(labels: Mapping[str, str]) -> dict[str, str]:
    return {label: value for label, value in labels.items() if label != "__name__"}


def _matcher(matcher: Any) -> Callable[[str], bool]:
    value: str = matcher.value
    if matcher.op == MatchOp.Equal:
        return _equals(value)
    if matcher.op == MatchOp.NotEqual:
        return lambda text: text != value
    try:
        pattern = re.compile(value)
    except re.error as error:
        raise QueryError(400, "bad_data", f"regular expression {value!r}: {error}") from error
    if matcher.op == MatchOp.Re:
        return lambda text: pattern.fullmatch(text) is not None
    return lambda text: pattern.fullmatch(text) is None


def _equals(value: str) -> Callable[[str], bool]:
    return lambda text: text == value


def _unsupported(what: str) -> QueryError:
    return QueryError(400, "bad_data", f"{what}: outside of what this stand-in evaluates")


def _ms(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
