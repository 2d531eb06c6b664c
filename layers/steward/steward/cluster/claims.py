"""Who takes a cluster's snapshot: what runs, and what is about to, so that nobody begins another."""

from datetime import datetime

import msgspec

from steward.cluster.planning import SnapshotScope

SCHEMA = 1
"""Version of the stored form."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The newest snapshot of a cluster that somebody began, or will begin.

    Attributes
    ----------
    start : datetime
        When it is begun. Later than now: reserved, and its owner waits for it.
    owner : str
        The invocation that takes it.
    events_after : datetime
        When the next snapshot that events ask for may begin.
    failed : bool
        Whether it was given up: then it answers nobody.
    """

    schema: int = SCHEMA
    start: datetime
    scope: SnapshotScope
    owner: str
    events_after: datetime
    failed: bool = False
