"""What a detector says: findings, what it could not judge, and what has ended."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from steward.cluster.accelerators import UnknownReason
from steward.cluster.policy import Severity

SCHEMA = 1
"""Version of the stored evaluation."""

UNSEEN = timedelta(minutes=10)
"""A condition ends once it has been known to be absent for this long."""


class Resolution(StrEnum):
    """Why a finding ended."""

    ACTIVE_AGAIN = "active_again"
    RELEASED = "released"
    ADMITTED = "admitted"
    FINISHED = "finished"
    QUOTA_CHANGED = "quota_changed"
    FIXED = "fixed"
    EXEMPTED = "exempted"
    EXPIRED = "expired"
    REASON_CHANGED = "reason_changed"


class DetectorStatus(StrEnum):
    """Only an evaluated detector may open or resolve anything."""

    EVALUATED = "evaluated"
    FAILED = "failed"
    OUT_OF_SCOPE = "out_of_scope"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a detector says of one subject now.

    Attributes
    ----------
    team : str or None
        The policy's name; None outside governance.
    subject : str
        Stable identity, never numbers or times.
    since : datetime
        When the condition began (not when it was seen).
    gpus : float
        Accelerators the finding is about; a MIG slice counts its fraction.
    gpu_hours, cost_usd : float or None
        Hours counted to the last sample that showed the condition; None where the detector
        has no such number, or no price.
    evidence : dict
        JSON values only; the keys of each detector are in its docs page.
    action : str
        What to type, or what to do.
    parts : tuple of str
        Identities that the finding rests on (accelerator keys): unknown ones hold it.
    damping_minutes : int
        How long it must last before it opens.
    one_reason : bool
        True: the subject carries one reason at a time, so a new reason ends the old finding.
    """

    detector: str
    subject: str
    reason: str
    severity: Severity
    team: str | None
    since: datetime
    gpus: float
    gpu_hours: float | None
    cost_usd: float | None
    action: str
    evidence: dict[str, Any] = msgspec.field(default_factory=dict)
    owner: str | None = None
    parts: tuple[str, ...] = ()
    damping_minutes: int = 0
    one_reason: bool = True

    @property
    def key(self) -> str:
        """Identity of the finding: detector, subject and reason."""
        return f"{self.detector}|{self.subject}|{self.reason}"


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """Something a detector could not judge.

    Attributes
    ----------
    subject : str
        The workload's owner, or the refused call (`kubernetes/pods`, `prometheus`).
    blind : bool
        True: without it the detector saw nothing, so it holds every alert of the detector.
    parts : tuple of str
        Identities that are unknown; empty: the subject as a whole.
    coverage : float or None
        Share (0-1) of the expected samples that were there, on average; None: not asked, or not
        about samples.
    """

    detector: str
    subject: str
    reason: UnknownReason
    team: str | None = None
    gpus: float | None = None
    blind: bool = False
    parts: tuple[str, ...] = ()
    coverage: float | None = None


class Cleared(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that ended: the reason why, and its final numbers."""

    resolution: Resolution
    finding: Finding


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """What all detectors said of one snapshot.

    Attributes
    ----------
    snapshot : str
        Storage key of the snapshot.
    cleared : tuple of Cleared
        Repeated for a while, so that a lost evaluation loses no final number.
    """

    schema: int = SCHEMA
    snapshot: str
    cluster: str
    scope: str
    at: datetime
    detectors: dict[str, DetectorStatus]
    findings: tuple[Finding, ...]
    cleared: tuple[Cleared, ...]
    unknown: tuple[Unknown, ...]
