"""What the `pending` detector carries from one evaluation to the next."""

from datetime import datetime

import msgspec

from steward.cluster.incidents import Told


class PendingMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The `pending` detector's part of the memory.

    Attributes
    ----------
    pods_seen : dict of str to datetime
        UID of an admitted Workload to the newest snapshot that showed accelerators in its pods'
        hands; those of workloads that are no longer admitted are forgotten.
    """

    told: tuple[Told, ...] = ()
    pods_seen: dict[str, datetime] = msgspec.field(default_factory=dict)
