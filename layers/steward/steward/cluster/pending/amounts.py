"""Amounts in Kueue's texts: read as numbers, and written for people."""

from steward.cluster.amounts import quantity
from steward.cluster.quantity import parse

_NOUNS = {"nvidia.com/gpu": "GPU", "cpu": "CPU", "aws.amazon.com/neurondevice": "Neuron device"}


def read_amount(text: str) -> float | None:
    """Read a Kubernetes quantity ("8", "1500m", "3Gi") in base units; None where it is none."""
    try:
        return float(parse(text.strip()))
    except ValueError:
        return None


def said(resource: str, amount: float) -> str:
    """Write an amount with its noun: `8 GPUs`, `1 CPU`, `64 GiB of memory`."""
    if resource in {"memory", "ephemeral-storage"}:
        return f"{quantity(resource, amount)} of {resource}"
    noun = _NOUNS.get(resource)
    if noun is None:
        return f"{quantity(resource, amount)} {resource}"
    return f"{quantity(resource, amount)} {noun}{'' if amount == 1 else 's'}"
