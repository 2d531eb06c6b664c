"""The table of accelerators by instance type: `accelerated_types.json`, read when first asked for.

Each family names the page of AWS's documentation that its row was written after. What no page says
is not in the table, and not in it is unknown.
"""

from functools import cache
from importlib.resources import files

import msgspec


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of an accelerator model; the file also has its maker, memory and cores.

    Attributes
    ----------
    power_limit_watts : float or None
        As its maker or its driver states it; None where neither does.
    names : tuple of str
        How exporters call it, normalised (see :func:`power_limit`).
    """

    power_limit_watts: float | None = None
    names: tuple[str, ...] = ()


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """An instance family: its accelerator, and how many of them each size has."""

    accelerator: str
    sizes: dict[str, int]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The table; `without` lists families that have no accelerators, by the page that says so."""

    accelerators: dict[str, Hardware]
    families: dict[str, Family]
    without: dict[str, tuple[str, ...]]


@cache
def table() -> Table:
    """Read the table."""
    return msgspec.json.decode(
        files("steward.cluster").joinpath("accelerated_types.json").read_bytes(), type=Table
    )


def tabled_accelerators(instance_type: str) -> int | None:
    """Accelerators of one instance; 0 for a family without any, None for a type not in the table."""
    family, size = _split(instance_type)
    if (row := table().families.get(family)) is not None:
        return row.sizes.get(size)
    return 0 if size and any(family in names for names in table().without.values()) else None


def power_limit(model_name: str | None, instance_type: str | None) -> float | None:
    """Power limit of an accelerator in watts; None where neither argument tells.

    Parameters
    ----------
    model_name : str or None
        What the exporter calls it: `NVIDIA H100 80GB HBM3`, `NVIDIA A100-SXM4-40GB`, `Tesla T4`.
        Compared whole, without the maker's name: boards of one chip differ in their limits.
    instance_type : str or None
        Asked where the exporter's name is not known.
    """
    if model_name is not None:
        name = _normalised(model_name)
        for hardware in table().accelerators.values():
            if name in hardware.names:
                return hardware.power_limit_watts
    family, size = _split(instance_type or "")
    row = table().families.get(family)
    if row is None or size not in row.sizes:
        return None
    return table().accelerators[row.accelerator].power_limit_watts


def _split(instance_type: str) -> tuple[str, str]:
    """Split `ml.p5.48xlarge` or `p5.48xlarge` into family and size."""
    family, _, size = instance_type.removeprefix("ml.").partition(".")
    return family, size


def _normalised(model_name: str) -> str:
    words = model_name.casefold().replace("-", " ").split()
    return " ".join(word for word in words if word not in {"nvidia", "tesla"})
