"""Nouns are values: frozen, made by naming every field."""

import importlib
import pkgutil

import msgspec
import pytest

import steward.cluster
from steward import ports
from steward.alerts import model

MODULES = [
    *(
        importlib.import_module(f"steward.cluster.{found.name}")
        for found in pkgutil.iter_modules(steward.cluster.__path__)
    ),
    model,
    ports,
]
NOUNS = sorted(
    {
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    }
    - {msgspec.Struct},
    key=lambda noun: noun.__name__,
)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_a_noun_is_frozen_and_keyword_only(noun):
    assert noun.__struct_config__.frozen
    with pytest.raises(TypeError, match=r"[Ee]xtra positional arguments|[Mm]issing"):
        noun(1)


def test_there_are_nouns():
    assert len(NOUNS) > 40
