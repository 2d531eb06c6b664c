"""What the `preemptions` detector carries from one evaluation to the next."""

from datetime import datetime

import msgspec

from steward.cluster.incidents import Told


class PreemptionMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The `preemptions` detector's part of the memory."""

    told: tuple[Told, ...] = ()

    def settled(self) -> frozenset[tuple[str, datetime]]:
        """Evictions (Workload UID, time) whose checkpoints need not be looked for any more."""
        return frozenset()
