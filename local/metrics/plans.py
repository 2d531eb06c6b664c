"""PromQL text, understood: what to do with which series of a recording."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import promql_parser
from promql_parser import MatchOp

from local.metrics.openmetrics import Series

PLANS = 256
"""Queries whose series are remembered."""

OF_RANGES = {
    "max_over_time",
    "min_over_time",
    "avg_over_time",
    "count_over_time",
    "last_over_time",
}
OF_INSTANTS = {"timestamp"}


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


class Leaf(NamedTuple):
    """What to do with the samples of which series."""

    function: str | None
    span_ms: int | None
    series: Sequence[Series]


class Labelled(NamedTuple):
    """A vector whose series all get one label."""

    inner: "Plan"
    label: str
    value: str


class Union(NamedTuple):
    """Vectors, of which a later one adds what the earlier ones have not."""

    inner: Sequence["Plan"]


type Plan = Leaf | Labelled | Union
"""A query that was understood."""


class Planner:
    """Understands queries over some series.

    Parameters
    ----------
    series : iterable of Series
        Everything there is.
    """

    def __init__(self, series: Iterable[Series]) -> None:
        self._by_name: dict[str, list[Series]] = defaultdict(list)
        for one in series:
            self._by_name[one.labels["__name__"]].append(one)
        # A tick asks what the tick before it asked, at another time.
        self.plan = lru_cache(PLANS)(self._understand)

    def _understand(self, text: str) -> Plan:
        try:
            tree = promql_parser.parse(text)
        except ValueError as error:
            raise QueryError(400, "bad_data", f'invalid parameter "query": {error}') from error
        return self._plan_of(tree)

    def _plan_of(self, tree: Any) -> Plan:
        if isinstance(tree, promql_parser.BinaryExpr):
            return self._union(tree)
        if isinstance(tree, promql_parser.Call) and tree.func.name == "label_replace":
            return self._labelled(tree)
        return self._leaf(tree)

    def _union(self, tree: Any) -> Plan:
        if str(tree.op) != "or" or tree.modifier.matching is not None:
            raise _unsupported(type(tree).__name__)
        left, right = self._plan_of(tree.lhs), self._plan_of(tree.rhs)
        return Union([*(left.inner if isinstance(left, Union) else [left]), right])

    def _labelled(self, tree: Any) -> Plan:
        vector, *rest = tree.args
        label, value, source, pattern = (text.val for text in rest)
        if source or pattern or "$" in value or not value:
            raise _unsupported("label_replace that looks at a label")
        return Labelled(self._plan_of(vector), label, value)

    def _leaf(self, tree: Any) -> Leaf:
        function = None
        if isinstance(tree, promql_parser.Call):
            function, arguments = tree.func.name, tree.args
            if function not in OF_RANGES | OF_INSTANTS:
                raise _unsupported(function)
            tree = arguments[0]
        if isinstance(tree, promql_parser.MatrixSelector) and function not in OF_INSTANTS:
            return Leaf(function, _ms(tree.range), self._select(tree.vector_selector))
        if isinstance(tree, promql_parser.VectorSelector) and function not in OF_RANGES:
            return Leaf(function, None, self._select(tree))
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
