"""What was found out about a job's checkpoints when it was preempted."""

from datetime import datetime
from enum import StrEnum

import msgspec


class LookStatus(StrEnum):
    """What became of listing a location; `unlistable` is one that nothing here can list (FSx)."""

    OK = "ok"
    DENIED = "denied"
    UNREADABLE = "unreadable"
    UNLISTABLE = "unlistable"


class WrittenBy(StrEnum):
    """Who says that a checkpoint was written, the most trusted first."""

    STORAGE = "storage"
    MARKER = "marker"
    HEARTBEAT = "heartbeat"


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint that was written.

    Attributes
    ----------
    step : int or None
        Training step, where a heartbeat tells it.
    """

    uri: str
    at: datetime
    by: WrittenBy
    step: int | None = None


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One location, listed for one eviction.

    Attributes
    ----------
    uri : str
        With its placeholders filled in.
    newest : Written or None
        The newest object there that is not later than the eviction; None where there is none.
    detail : str
        For people: why it could not be listed.
    """

    uri: str
    status: LookStatus
    newest: Written | None = None
    detail: str = ""


class CheckpointEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything found for one eviction of one Workload; an eviction is known by both.

    Attributes
    ----------
    looks : tuple of Look
        One a location of its team; empty where the policy names none.
    told : tuple of Written
        The newest marker and the newest heartbeat that are not later than the eviction, and that
        speak of the job's own namespace.
    """

    workload_uid: str
    evicted: datetime
    looks: tuple[Look, ...] = ()
    told: tuple[Written, ...] = ()
