"""What a snapshot is to look at, and when one was last asked for."""

from datetime import datetime
from enum import StrEnum

import msgspec


class SnapshotScope(StrEnum):
    """What a snapshot reads: an audit adds who may do what, and what fences namespaces."""

    TICK = "tick"
    AUDIT = "audit"


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """When a cluster's last snapshot was asked for, and its last one of scope audit."""

    snapshot: datetime | None = None
    audit: datetime | None = None


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The clusters that were ever planned and have not left: `since` says when each first was."""

    since: dict[str, datetime]
