"""What the `capacity` detector carries from one evaluation to the next."""

import msgspec

from steward.cluster.incidents import Told


class CapacityMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The `capacity` detector's part of the memory."""

    told: tuple[Told, ...] = ()
