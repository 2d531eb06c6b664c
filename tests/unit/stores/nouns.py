"""Any noun at all: hypothesis strategies made from the type hints of the frozen nouns."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # hypothesis wants naive bounds
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
SIMPLE: Mapping[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    NoneType: st.none(),
    bool: st.booleans(),
    datetime: TIMES,
    float: NUMBERS,
    int: st.integers(-(2**62), 2**62),
    str: WORDS,
}


@cache
def anything(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type as the nouns' hints name them; a schema number stays what it is."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return st.one_of([anything(argument) for argument in arguments])
    if origin is tuple:
        return st.lists(anything(arguments[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(anything(arguments[0]), anything(arguments[1]), max_size=2)
    if issubclass(kind, StrEnum):
        return st.sampled_from(kind)
    hints = get_type_hints(kind)
    fields = [field for field in msgspec.structs.fields(kind) if field.name != "schema"]
    made = {field.name: anything(hints[field.name]) for field in fields}
    if "schema" in hints:
        made["schema"] = st.just(1)
    return st.builds(kind, **made)
