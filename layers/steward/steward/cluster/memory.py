"""What evaluation carries from one tick to the next: small, versioned, one object a cluster."""

from datetime import datetime

import msgspec

from steward.cluster.borrowing.memory import BorrowingMemory
from steward.cluster.capacity.memory import CapacityMemory
from steward.cluster.findings import Cleared, Finding, Resolution, Unknown
from steward.cluster.pending.memory import PendingMemory
from steward.cluster.preemptions.memory import PreemptionMemory

SCHEMA = 1
"""Version of the stored memory."""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A device that telemetry has attributed to a pod: known even after its series stops."""

    node: str | None
    uuid: str
    mig: str | None
    pod_uid: str
    seen: datetime


class IdleStretch(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of one accelerator, idle or part of a suspected hang, running or ended.

    Attributes
    ----------
    since, last : datetime
        First and last sample that showed it.
    exact : bool
        False: it began at or before `since`.
    observed_seconds : float
        Time of it that samples cover.
    ended : Resolution or None
        None while it runs.
    tensor : bool
        Of a hang: whether the lack of tensor activity showed it.
    watts_max : float or None
        Of a hang: the draw at or below which power showed it; None where power did not.
    """

    key: str
    namespace: str
    pod: str
    node: str | None
    uuid: str | None
    mig: str | None
    fraction: float
    usd_per_hour: float | None
    since: datetime
    last: datetime
    exact: bool
    observed_seconds: float
    ended: Resolution | None = None
    tensor: bool = False
    watts_max: float | None = None

    @property
    def gpu_hours(self) -> float:
        """Accelerator hours of the stretch; a MIG slice counts its fraction."""
        return self.observed_seconds / 3600 * self.fraction

    @property
    def cost_usd(self) -> float | None:
        """Dollars of the stretch; None without a price."""
        return None if self.usd_per_hour is None else self.gpu_hours * self.usd_per_hour


class IdleIncident(msgspec.Struct, frozen=True, kw_only=True):
    """The stretches of one owner, from the first that made a finding to its end.

    Attributes
    ----------
    held_until : datetime
        The newest snapshot that showed it, or could not rule it out.
    cleared : datetime or None
        The snapshot that made its end final; None while it runs, or may go on.
    """

    subject: str
    stretches: tuple[IdleStretch, ...]
    held_until: datetime
    finding: Finding | None = None
    cleared: datetime | None = None

    @property
    def running(self) -> tuple[IdleStretch, ...]:
        """The stretches that have not ended."""
        return tuple(stretch for stretch in self.stretches if stretch.ended is None)

    @property
    def gpu_hours(self) -> float:
        """Accelerator hours, also of what has ended meanwhile."""
        return sum(stretch.gpu_hours for stretch in self.stretches)

    @property
    def cost_usd(self) -> float | None:
        """Dollars; None where a stretch has no price."""
        costs = [stretch.cost_usd for stretch in self.stretches]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one cluster; each detector writes its own part of it.

    Attributes
    ----------
    at : datetime or None
        The newest snapshot folded in; None before the first.
    devices, telemetry_since : tuple of Device, dict of str to datetime
        The `telemetry` detector's: devices by holder, and since when each reason has been seen.
    idle, hangs : tuple of IdleIncident
        The `idle_gpus` detector's: of idleness and of suspected hangs, each at most one a job.
    borrowing, preemptions, pending, capacity
        The parts of the detectors of these names.
    """

    schema: int = SCHEMA
    cluster: str
    at: datetime | None = None
    devices: tuple[Device, ...] = ()
    telemetry_since: dict[str, datetime] = msgspec.field(default_factory=dict)
    idle: tuple[IdleIncident, ...] = ()
    hangs: tuple[IdleIncident, ...] = ()
    borrowing: BorrowingMemory = BorrowingMemory()
    preemptions: PreemptionMemory = PreemptionMemory()
    pending: PendingMemory = PendingMemory()
    capacity: CapacityMemory = CapacityMemory()

    def running_stretches(self) -> dict[str, IdleStretch]:
        """Return the idle stretches that have not ended, by accelerator key."""
        return {s.key: s for incident in self.idle for s in incident.running}

    def running_hangs(self) -> dict[str, IdleStretch]:
        """Return the stretches of suspected hangs that have not ended, by accelerator key."""
        return {s.key: s for incident in self.hangs for s in incident.running}

    def subjects(self) -> dict[str, str]:
        """Return the job that each accelerator with a running stretch was known by, by its key."""
        return {
            stretch.key: incident.subject
            for incident in (*self.idle, *self.hangs)
            for stretch in incident.running
        }


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """What one detector says of one snapshot, and the memory it leaves."""

    memory: Memory
    findings: tuple[Finding, ...] = ()
    cleared: tuple[Cleared, ...] = ()
    unknown: tuple[Unknown, ...] = ()
