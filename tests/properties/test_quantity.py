"""Kubernetes quantities against an independent definition: decimal text times a written-out unit."""

from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.cluster.quantity import parse

# Written out from the table in the Kubernetes API reference ("Quantity"), not computed.
UNITS = {
    "n": "0.000000001",
    "u": "0.000001",
    "m": "0.001",
    "": "1",
    "k": "1000",
    "M": "1000000",
    "G": "1000000000",
    "T": "1000000000000",
    "P": "1000000000000000",
    "E": "1000000000000000000",
    "Ki": "1024",
    "Mi": "1048576",
    "Gi": "1073741824",
    "Ti": "1099511627776",
    "Pi": "1125899906842624",
    "Ei": "1152921504606846976",
}
EXACT = Context(prec=200)

digits = st.text("0123456789", min_size=1, max_size=18)
signs = st.sampled_from(["", "+", "-"])
plain = st.builds(lambda sign, whole: sign + whole, signs, digits)
numbers = st.one_of(
    plain,
    st.builds(lambda sign, whole, rest: f"{sign}{whole}.{rest}", signs, digits, digits),
    st.builds(lambda sign, rest: f"{sign}.{rest}", signs, digits),
    plain.map(lambda whole: f"{whole}."),
)


@given(numbers, st.sampled_from(sorted(UNITS)))
def test_a_quantity_is_its_number_times_its_unit(number: str, unit: str) -> None:
    assert parse(number + unit) == Fraction(EXACT.multiply(Decimal(number), Decimal(UNITS[unit])))


@given(
    numbers,
    st.sampled_from("eE"),
    st.integers(-30, 30),
    st.sampled_from(["{}", "{:+}", "{:+03}", "{:03}"]),
)
def test_an_exponent_is_a_power_of_ten(number: str, letter: str, exponent: int, form: str) -> None:
    # The API's grammar lets an exponent carry a sign of either kind, and leading zeros.
    expected = EXACT.scaleb(Decimal(number), exponent)
    text = form.format(exponent)
    if len(text.lstrip("+-")) <= 2:
        assert parse(f"{number}{letter}{text}") == Fraction(expected)


@given(digits, st.sampled_from(sorted(UNITS)))
def test_the_sign_mirrors(number: str, unit: str) -> None:
    assert parse(f"-{number}{unit}") == -parse(f"{number}{unit}") == -parse(f"+{number}{unit}")


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_json_number_is_the_quantity_it_shows(number: int) -> None:
    assert parse(number) == parse(str(number)) == number


@given(st.floats(-1e15, 1e15, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-15))
def test_a_json_number_with_a_fraction_is_the_decimal_it_shows(number: float) -> None:
    # What stood in the JSON, not the binary fraction nearest to it: 0.1 is a tenth.
    assert parse(number) == Fraction(Decimal(repr(number)))


@given(st.integers(0, 10**6), st.sampled_from([("Ki", "Mi"), ("Mi", "Gi"), ("Gi", "Ti")]))
def test_1024_of_a_binary_unit_are_one_of_the_next(number: int, units: tuple[str, str]) -> None:
    smaller, larger = units
    assert parse(f"{number * 1024}{smaller}") == parse(f"{number}{larger}")


@given(
    st.one_of(
        st.builds(
            str.__add__,
            numbers,
            st.sampled_from(
                [
                    "K",
                    "g",
                    "ki",
                    "KI",
                    "i",
                    "mi",
                    "ni",
                    "kk",
                    "Gib",
                    "B",
                    "e",
                    "1e",
                    " Gi",
                    "%",
                    "e+",
                    "e1.5",
                    "E1i",
                ]
            ),
        ),
        st.sampled_from(sorted(UNITS)).filter(bool),
        st.sampled_from(
            [
                "",
                ".",
                "+",
                "-",
                "--1",
                "1..2",
                "1,5",
                "0x10",
                "1_000",
                "inf",
                "nan",
                "\N{ARABIC-INDIC DIGIT ONE}",
                "1e999",
            ]
        ),
        st.sampled_from([None, True, [], {}, float("nan"), float("inf")]),
    )
)
def test_anything_else_is_refused_by_name(value: object) -> None:
    with pytest.raises(ValueError, match="is not a Kubernetes quantity"):
        parse(value)


def test_the_examples_of_the_documentation() -> None:
    # kubernetes.io, "Resource units in Kubernetes": these five "represent roughly the same value".
    amounts = [parse(text) for text in ("128974848", "129e6", "129M", "128974848000m", "123Mi")]
    assert amounts == [128974848, 129000000, 129000000, 128974848, 128974848]


def test_a_very_long_text_is_refused_before_it_is_computed() -> None:
    with pytest.raises(ValueError, match="is not a Kubernetes quantity"):
        parse("9" * 100_000)
