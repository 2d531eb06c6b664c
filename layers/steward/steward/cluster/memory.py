"""What evaluation carries from one tick to the next: small, versioned, one object a cluster."""

from datetime import datetime

import msgspec

from steward.cluster.findings import Cleared, Finding, Resolution, Unknown

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
    """An idle stretch of one accelerator, running or ended.

    Attributes
    ----------
    since, last : datetime
        First and last sample that showed it idle.
    exact : bool
        False: it began at or before `since`.
    observed_seconds : float
        Idle time that samples cover.
    ended : Resolution or None
        None while it runs.
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

    @property
    def gpu_hours(self) -> float:
        """Accelerator hours of the stretch; a MIG slice counts its fraction."""
        return self.observed_seconds / 3600 * self.fraction

    @property
    def cost_usd(self) -> float | None:
        """Dollars of the stretch; None without a price."""
        return None if self.usd_per_hour is None else self.gpu_hours * self.usd_per_hour


class IdleIncident(msgspec.Struct, frozen=True, kw_only=True):
    """The idle stretches of one owner, from the first that made a finding to its end.

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


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one cluster; each detector writes its own part of it.

    Attributes
    ----------
    at : datetime or None
        The newest snapshot folded in; None before the first.
    devices, telemetry_since : tuple of Device, dict of str to datetime
        The `telemetry` detector's: devices by holder, and since when each reason has been seen.
    idle : tuple of IdleIncident
        The `idle_gpus` detector's.
    """

    schema: int = SCHEMA
    cluster: str
    at: datetime | None = None
    devices: tuple[Device, ...] = ()
    telemetry_since: dict[str, datetime] = msgspec.field(default_factory=dict)
    idle: tuple[IdleIncident, ...] = ()

    def running_stretches(self) -> dict[str, IdleStretch]:
        """Return the idle stretches that have not ended, by accelerator key."""
        return {
            stretch.key: stretch
            for incident in self.idle
            for stretch in incident.stretches
            if stretch.ended is None
        }


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """What one detector says of one snapshot, and the memory it leaves."""

    memory: Memory
    findings: tuple[Finding, ...] = ()
    cleared: tuple[Cleared, ...] = ()
    unknown: tuple[Unknown, ...] = ()
