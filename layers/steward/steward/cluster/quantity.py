"""Kubernetes quantities ("1500m", "3Gi", "1e3") as exact numbers in base units."""

import re
from fractions import Fraction
from functools import lru_cache

_POWERS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    **{suffix: Fraction(10 ** (3 * i)) for i, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(2 ** (10 * i)) for i, suffix in enumerate("KMGTPE", start=1)},
}

# An exponent needs digits behind its letter, so "1E" is one exa and "1E3" a thousand.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,2})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)",
)
_LONGEST = 64
"""Kubernetes caps amounts at 2^63-1; text this long still fits into a float."""


def parse(value: object) -> Fraction:
    """Read a quantity exactly.

    Parameters
    ----------
    value : str, int or float
        As the API prints it. Both JSON forms occur: `"8"` and, in hand-applied objects, `8`.

    Returns
    -------
    Fraction
        In base units: cores, bytes, devices.

    Raises
    ------
    ValueError
        The value is not a quantity.

    Notes
    -----
    Source: k8s.io/apimachinery `resource.Quantity`, which rounds up below one nano; this does not
    round at all.
    """
    text = str(value)
    found = _parse(text) if len(text) <= _LONGEST else None
    if found is None:
        raise ValueError(f"{text!r:.80} is not a Kubernetes quantity, such as 8, 1500m or 3Gi")
    return found


@lru_cache(maxsize=1024)
def _parse(text: str) -> Fraction | None:
    """Parse a text; a cluster's objects name the same few amounts over and over."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number = Fraction(match["number"])
    if match["exponent"] is not None:
        return number * Fraction(10) ** int(match["exponent"])
    return number * _POWERS[match["suffix"] or ""]
