"""PromQL text: the only place where a value becomes part of a query."""

import json
from collections.abc import Iterable, Mapping, Sequence

TAG = "__steward__"
"""Label that tells the parts of a union apart; no scraped series has one that begins with `__`."""

_RE2_SPECIAL = str.maketrans({character: f"\\{character}" for character in r"\.+*?()|[]{}^$"})


def one_of(values: Iterable[str], *, or_absent: bool = False) -> str:
    """Write the quoted regular expression that matches exactly these label values.

    Parameters
    ----------
    values : iterable of str
        Any text; order and repetition do not matter.
    or_absent : bool
        Whether series without the label match as well (to Prometheus an absent label is empty).

    Returns
    -------
    str
        Both escapes applied: RE2's for the pattern (Prometheus anchors it), then the string's.
        A JSON string without ASCII escapes is a PromQL string: both take theirs from Go's.
    """
    alternatives = [value.translate(_RE2_SPECIAL) for value in sorted(set(values))]
    if or_absent:
        alternatives.append("")
    return json.dumps("|".join(alternatives), ensure_ascii=False)


def selector(metrics: Sequence[str], matchers: Mapping[str, str]) -> str:
    """Select series of some metrics.

    Parameters
    ----------
    metrics : sequence of str
        Metric names; several become one `__name__` matcher.
    matchers : mapping of str to str
        Label to what :func:`one_of` wrote.
    """
    named = [] if len(metrics) == 1 else [f"__name__=~{one_of(metrics)}"]
    inner = ",".join(named + [f"{label}=~{pattern}" for label, pattern in matchers.items()])
    return f"{metrics[0] if len(metrics) == 1 else ''}{{{inner}}}"


def ranged(selected: str, span_ms: int) -> str:
    """Select the raw samples of the last `span_ms` milliseconds.

    Written 1 ms short: Prometheus 2 counts a sample on the left edge and Prometheus 3 does not.
    """
    return f"{selected}[{span_ms - 1}ms]"


def over_time(function: str, selected: str, span_ms: int) -> str:
    """Aggregate raw samples on the server; never a subquery, which fills gaps and so hides them."""
    return f"{function}({ranged(selected, span_ms)})"


def tagged_union(parts: Mapping[str, str]) -> str:
    """Ask several expressions in one query: every series of the answer says whose it is.

    Parameters
    ----------
    parts : mapping of str to str
        Tag (free of quotes, backslashes and `$`) to expression; `or` drops nothing, as no two
        series of different tags have the same labels.
    """
    return union(
        f'label_replace({expression}, "{TAG}", "{tag}", "", "")'
        for tag, expression in parts.items()
    )


def union(expressions: Iterable[str]) -> str:
    """Join expressions; of series with the same labels but for the name, only the first's stay."""
    return " or ".join(expressions)
