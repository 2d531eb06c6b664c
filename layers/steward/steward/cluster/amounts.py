"""Amounts of resources: which of them are accelerators, and how many accelerators they come to."""

import re
from collections.abc import Mapping

_SEVENTHS = 7
"""A MIG slice `<n>g` is n of a GPU's seven compute slices (NVIDIA MIG user guide)."""

_PROFILE = re.compile(r"(?:(\d+)c\.)?(\d+)g\.", re.ASCII)
_MIG = "nvidia.com/mig-"
_WHOLE = frozenset({"nvidia.com/gpu", "aws.amazon.com/neurondevice", "aws.amazon.com/neuron"})
"""Resources that count whole devices; Neuron devices had another name up to Neuron 2.19."""


def mig_fraction(profile: str) -> float | None:
    """Share of a GPU that a MIG profile is, such as `3g.40gb`, or `1c.3g.40gb` with a part of it."""
    found = _PROFILE.match(profile)
    return int(found[1] or found[2]) / _SEVENTHS if found else None


def accelerators_each(resource: str) -> float:
    """Accelerators that one unit of a resource is: 0 for what is none.

    NeuronCores and shared GPUs count 0: how many make a device, their names do not say.
    """
    if resource in _WHOLE:
        return 1.0
    if resource.startswith(_MIG):
        return mig_fraction(resource.removeprefix(_MIG)) or 0.0
    return 0.0


def accelerators_in(amounts: Mapping[str, float]) -> float:
    """Add up the accelerators of some amounts by resource."""
    return sum(accelerators_each(name) * amount for name, amount in amounts.items())


def quantity(resource: str, amount: float) -> str:
    """Write an amount for people: memory in GiB, everything else as it is counted."""
    if resource in {"memory", "ephemeral-storage"}:
        return f"{amount / 2**30:,.10g} GiB"
    return f"{amount:,.10g}"
