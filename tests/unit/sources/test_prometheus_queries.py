"""PromQL text: whatever a label value is made of, it selects itself alone."""

import re

import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.sources.prometheus.promql import TAG, one_of, over_time, selector, tagged_union

# Any text that JSON and UTF-8 can carry; lone surrogates can reach neither Kubernetes nor a query.
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def pattern_of(query: str) -> str:
    """The regular expression that a PromQL parser reads."""
    tree = promql_parser.parse(query)
    assert isinstance(tree, promql_parser.VectorSelector)
    (matcher,) = tree.matchers.matchers
    assert matcher.op == promql_parser.MatchOp.Re
    value: str = matcher.value
    return value


@given(values=st.sets(texts, min_size=1, max_size=4), other=texts)
def test_a_selector_matches_exactly_the_values_it_was_given(values: set[str], other: str) -> None:
    pattern = pattern_of(selector(["m"], {"pod": one_of(values)}))
    for value in values:
        assert re.fullmatch(pattern, value)
    assert bool(re.fullmatch(pattern, other)) == (other in values)
    assert not re.fullmatch(pattern, "")


@given(values=st.sets(texts, min_size=1, max_size=4), other=texts)
def test_a_series_without_the_label_matches_only_where_that_is_said(
    values: set[str], other: str
) -> None:
    pattern = pattern_of(selector(["m"], {"pod": one_of(values, or_absent=True)}))
    assert re.fullmatch(pattern, "")
    assert bool(re.fullmatch(pattern, other)) == (other in values)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("GPU-5a3c", '"GPU-5a3c"'),  # nothing to escape: Prometheus then compares, and quickly
        ("a.b", r'"a\\.b"'),
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\\\b"'),
        ("a\nb", r'"a\nb"'),
        ("ä|", r'"ä\\|"'),
    ],
)
def test_both_escapes_are_applied(value: str, text: str) -> None:
    assert one_of([value]) == text


def test_order_and_repetition_change_nothing() -> None:
    assert one_of(["b", "a", "b"]) == one_of(["a", "b"]) == '"a|b"'


def test_several_metrics_are_one_selector() -> None:
    text = over_time("last_over_time", selector(["m", "n"], {"pod": one_of(["p"])}), 3_600_000)
    assert text == 'last_over_time({__name__=~"m|n",pod=~"p"}[3599999ms])'
    promql_parser.parse(text)


def test_a_union_tags_every_part_with_a_label_that_no_scraped_series_has() -> None:
    text = tagged_union({"m 60": "max_over_time(m[1h])", "m 30": "max_over_time(m[30m])"})
    assert text == (
        'label_replace(max_over_time(m[1h]), "__steward__", "m 60", "", "") or '
        'label_replace(max_over_time(m[30m]), "__steward__", "m 30", "", "")'
    )
    promql_parser.parse(text)
    # Prometheus drops labels that begin so after relabelling.
    assert TAG.startswith("__")
