"""Kueue's objects, read from either API form (v1beta1, v1beta2) into one model."""

from datetime import datetime

import msgspec

from steward.cluster.accelerators import Owner


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes condition; `status` is True, False or None (Unknown)."""

    type: str
    status: bool | None
    reason: str
    message: str
    since: datetime | None


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A Kueue Workload: a job in the eyes of the quota.

    Attributes
    ----------
    requests : dict of str to float
        Resource to amount over all pod sets, in Kubernetes base units (bytes, cores, devices).
    assigned : dict of str to dict of str to float
        Flavor to resource to amount reserved by its admission; empty while not admitted.
    """

    namespace: str
    name: str
    uid: str
    created: datetime
    queue: str | None
    priority: int
    priority_class: str | None
    active: bool
    owner: Owner | None
    cluster_queue: str | None
    requests: dict[str, float]
    assigned: dict[str, dict[str, float]]
    conditions: tuple[Condition, ...]

    def condition(self, kind: str) -> Condition | None:
        """Find a condition by its type."""
        return next((c for c in self.conditions if c.type == kind), None)

    def holds(self, kind: str) -> bool:
        """Whether a condition of that type is True."""
        found = self.condition(kind)
        return found is not None and found.status is True


class QuotaRow(msgspec.Struct, frozen=True, kw_only=True):
    """One flavor and resource of a ClusterQueue; None limits are unset, amounts in base units."""

    flavor: str
    resource: str
    nominal: float
    borrowing_limit: float | None
    lending_limit: float | None
    reserved: float | None
    used: float | None
    borrowed: float | None


class ClusterQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A ClusterQueue with its quota rows."""

    name: str
    cohort: str | None
    rows: tuple[QuotaRow, ...]
    conditions: tuple[Condition, ...]


class LocalQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A LocalQueue: the name that jobs use, and the ClusterQueue behind it."""

    namespace: str
    name: str
    cluster_queue: str
    conditions: tuple[Condition, ...]
