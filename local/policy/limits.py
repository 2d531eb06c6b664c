"""Thresholds of the document as the limits that detectors read: units, fields and kinds."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from local.policy.forms import fraction, minutes, seconds, size_bytes
from local.policy.thresholds import OVERRIDDEN, OverrideDocument, ThresholdsDocument
from steward.cluster.policy import (
    BorrowingLimits,
    CapacityLimits,
    HangLimits,
    IdleLimits,
    PendingLimits,
    PreemptionLimits,
    Severity,
    TelemetryLimits,
    Thresholds,
)

type Fields = Mapping[str, tuple[str, Callable[[Any], Any]]]
"""Key of a document to the field of its limits, and the way from its text to that unit."""

_GROUPS: Mapping[str, tuple[type[Any], Fields]] = {
    "idle": (
        IdleLimits,
        {
            "activity_max": ("activity_max", fraction),
            "window": ("window_minutes", minutes),
            "startup_grace": ("startup_grace_minutes", minutes),
            "coverage_min": ("coverage_min", fraction),
            "held_memory": ("held_bytes", size_bytes),
            "severity": ("severity", Severity),
            "page_after": ("page_after_hours", lambda text: seconds(text) / 3600),
            "page_accelerators": ("page_accelerators", int),
        },
    ),
    "hang": (
        HangLimits,
        {
            "activity_min": ("activity_min", fraction),
            "tensor_max": ("tensor_max", fraction),
            "power_max": ("power_max", fraction),
            "window": ("window_minutes", minutes),
            "severity": ("severity", Severity),
        },
    ),
    "telemetry": (TelemetryLimits, {"damping": ("damping_minutes", minutes)}),
    "borrowing": (
        BorrowingLimits,
        {
            "share": ("share", fraction),
            "window": ("window_minutes", minutes),
            "severity": ("severity", Severity),
        },
    ),
    "preemptions": (
        PreemptionLimits,
        {
            "count": ("count", int),
            "period": ("period_hours", lambda text: seconds(text) // 3600),
            "lost_gpu_hours": ("lost_gpu_hours", float),
            "startup": ("startup_minutes", minutes),
            "checkpoint_interval": ("checkpoint_minutes", minutes),
            "severity": ("severity", Severity),
        },
    ),
    "pending": (
        PendingLimits,
        {
            "wait": ("wait_minutes", minutes),
            "without_pods": ("without_pods_minutes", minutes),
            "severity": ("severity", Severity),
        },
    ),
    "capacity": (
        CapacityLimits,
        {"damping": ("damping_minutes", minutes), "severity": ("severity", Severity)},
    ),
}
"""Group of thresholds to its limits and their fields."""


def thresholds(document: ThresholdsDocument) -> Thresholds:
    """Read the thresholds of a cluster, defaults included."""
    groups = {
        name: limits(**_values(getattr(document, name), fields, fields))
        for name, (limits, fields) in _GROUPS.items()
    }
    return Thresholds(**groups)


def changes(document: OverrideDocument) -> dict[str, dict[str, Any]]:
    """Read the keys that an override writes out, by the group that they belong to."""
    found: dict[str, dict[str, Any]] = {}
    for name in OVERRIDDEN:
        group: BaseModel | None = getattr(document, name)
        if group is not None:
            found[name] = _values(group, _GROUPS[name][1], group.model_fields_set)
    return found


def _values(document: BaseModel, fields: Fields, keys: Iterable[str]) -> dict[str, Any]:
    return {
        name: read(getattr(document, key)) for key, (name, read) in fields.items() if key in keys
    }
