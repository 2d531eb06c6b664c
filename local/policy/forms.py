"""Forms of text: what a key accepts, how it refuses the rest, and the quantities that it writes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from local.policy.faults import show

STRICT = ConfigDict(
    extra="forbid",
    strict=True,
    frozen=True,
    allow_inf_nan=False,
    use_attribute_docstrings=True,
)
"""Every mapping of the document: known keys only, and no value turned into another kind."""


def refusal(value: object, what: str, remedy: str) -> PydanticCustomError:
    """Word an error of pydantic's that becomes a fault as it is."""
    context = {"message": f"{show(value)} is not {what}", "remedy": remedy}
    return PydanticCustomError("refused", "{message}", context)


@dataclass(frozen=True, slots=True)
class Text:
    """Text of one form, for `Annotated`: words its own refusal and its own JSON schema.

    Attributes
    ----------
    pattern : str
        Regular expression for the whole text.
    what, remedy : str
        What it should be, and how to write it.
    check : callable of str to bool
        What no pattern can tell; a ValueError means no.
    """

    pattern: str
    what: str
    remedy: str
    check: Callable[[str], bool] = lambda _: True

    def accepts(self, value: object) -> bool:
        """Tell whether a value has this form."""
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            return False
        try:
            return self.check(value)
        except ValueError:
            return False

    def validate(self, value: object) -> object:
        """Return a value that has this form; refuse any other."""
        if not self.accepts(value):
            raise refusal(value, self.what, self.remedy)
        return value

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], CoreSchema]
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.validate, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(schema) | {"pattern": f"^(?:{self.pattern})$"}


def seconds(duration: str) -> int:
    """Read a duration: `4h` is 14400."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]


def minutes(duration: str) -> int:
    """Read a duration of whole minutes: `4h` is 240."""
    return seconds(duration) // 60


def fraction(percentage: str) -> float:
    """Read a percentage: `1%` is 0.01."""
    # Decimal, so that 1% is the float nearest to 0.01 and compares as it reads.
    return float(Decimal(percentage.removesuffix("%")) / 100)


def size_bytes(size: str) -> int:
    """Read a size: `1GiB` is 1073741824."""
    return int(size[:-3]) * {"MiB": 2**20, "GiB": 2**30}[size[-3:]]


def duration(low: str, high: str, step: str) -> Text:
    """Form of a duration, with its range (ends inside) and the step that it is a multiple of."""
    return Text(
        r"[0-9]+[smhd]",
        f"a duration of {low} to {high} in steps of {step}",
        "write a number and a unit, such as 90s, 60m or 4h",
        lambda text: (
            seconds(low) <= seconds(text) <= seconds(high) and seconds(text) % seconds(step) == 0
        ),
    )


def percentage(low: str, high: str) -> Text:
    """Form of a percentage, with its range (ends inside)."""
    return Text(
        r"[0-9]+(?:\.[0-9]+)?%",
        f"a percentage of {low} to {high}",
        f"write one such as {high}",
        lambda text: fraction(low) <= fraction(text) <= fraction(high),
    )


def size(low: str, high: str) -> Text:
    """Form of a size, with its range (ends inside)."""
    return Text(
        r"[0-9]+(?:MiB|GiB)",
        f"a size of {low} to {high}",
        "write one such as 512MiB or 1GiB",
        lambda text: size_bytes(low) <= size_bytes(text) <= size_bytes(high),
    )
