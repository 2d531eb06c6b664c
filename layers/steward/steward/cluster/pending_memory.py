"""What the `pending` detector carries from one evaluation to the next."""

import msgspec

from steward.cluster.incidents import Told


class PendingMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The `pending` detector's part of the memory."""

    told: tuple[Told, ...] = ()
