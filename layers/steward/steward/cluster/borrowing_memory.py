"""What the `borrowing` detector carries from one evaluation to the next."""

import msgspec

from steward.cluster.incidents import Told


class BorrowingMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The `borrowing` detector's part of the memory."""

    told: tuple[Told, ...] = ()
