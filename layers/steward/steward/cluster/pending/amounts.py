"""Amounts in Kueue's texts: read as numbers, and written for people."""

import re

from steward.cluster.amounts import quantity

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,2})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)",
    re.ASCII,
)
_SMALL = {"n": 10**9, "u": 10**6, "m": 10**3}
_LARGE = {suffix: 10 ** (3 * i) for i, suffix in enumerate("kMGTPE", start=1)} | {
    f"{suffix}i": 2 ** (10 * i) for i, suffix in enumerate("KMGTPE", start=1)
}
_NOUNS = {"nvidia.com/gpu": "GPU", "cpu": "CPU", "aws.amazon.com/neurondevice": "Neuron device"}


def read_amount(text: str) -> float | None:
    """Read a Kubernetes quantity ("8", "1500m", "3Gi") in base units; None where it is none."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return None
    if match["exponent"] is not None:
        return float(f"{match['number']}e{match['exponent']}")
    suffix = match["suffix"] or ""
    amount: float = float(match["number"]) / _SMALL.get(suffix, 1) * _LARGE.get(suffix, 1)
    return amount


def said(resource: str, amount: float) -> str:
    """Write an amount with its noun: `8 GPUs`, `1 CPU`, `64 GiB of memory`."""
    if resource in {"memory", "ephemeral-storage"}:
        return f"{quantity(resource, amount)} of {resource}"
    noun = _NOUNS.get(resource)
    if noun is None:
        return f"{quantity(resource, amount)} {resource}"
    return f"{quantity(resource, amount)} {noun}{'' if amount == 1 else 's'}"
