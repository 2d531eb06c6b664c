"""What Kueue's objects have in common: conditions, quantities, its API group."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

import msgspec

from steward.cluster.kueue import Condition
from steward.sources.kubernetes.fields import Time, moment, required

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
"""API versions that are read, newest first."""

OLDER_VERSIONS = (*VERSIONS, "v1alpha1")
"""Versions of what Kueue 0.12 serves apart from its other resources: Cohorts and Topologies."""

_STATUS = {"True": True, "False": False}


class ConditionShape(msgspec.Struct, rename="camel"):
    """A condition; its text is kept, as it is where Kueue explains itself."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Time = None


def read_conditions(shapes: Iterable[ConditionShape] | None) -> tuple[Condition, ...]:
    """Reduce conditions; raises MalformedError where one lacks its type or status."""
    return tuple(
        Condition(
            type=required(one.type, "condition: type"),
            status=_STATUS.get(required(one.status, "condition: status")),
            reason=one.reason or "",
            message=one.message or "",
            since=moment(one.last_transition_time, "lastTransitionTime"),
        )
        for one in shapes or ()
    )


def number(value: Fraction | None) -> float | None:
    """Give an exact amount as the float that a noun holds."""
    return None if value is None else float(value)


def numbers(values: Mapping[str, Fraction]) -> dict[str, float]:
    """Give exact amounts as floats."""
    return {name: float(value) for name, value in values.items()}
