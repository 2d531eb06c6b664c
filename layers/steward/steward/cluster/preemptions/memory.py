"""What the `preemptions` detector carries from one evaluation to the next."""

from datetime import datetime
from enum import StrEnum

import msgspec

from steward.cluster.checkpoints import Written
from steward.cluster.incidents import Told


class Proof(StrEnum):
    """What is known of a checkpoint of a run, the most said first."""

    PROVEN = "proven"
    DECLARED = "declared"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What Kueue says of a preemption.

    Attributes
    ----------
    cause : str or None
        As the Preempted condition names it, such as InCohortReclamation.
    uid, job_uid : str or None
        Of the Workload that was made room for, and of the object that Kueue queued for it.
    queue : str or None
        ClusterQueue of that Workload.
    """

    cause: str | None = None
    uid: str | None = None
    job_uid: str | None = None
    queue: str | None = None


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """A preemption, or `count` of them that nobody saw apart.

    Attributes
    ----------
    uid : str
        Of the Workload that was preempted.
    at : datetime
        Its time; with `after`, the latest that it can have been.
    after : datetime or None
        It was later than this; None where `at` is its time.
    preemptor : str or None
        Job that it made room for; None where none is named, or where it is not known (yet).
    gpus : float
        Accelerators that the Workload held.
    started : datetime or None
        Beginning of the run that it ended; with `after` and `ran` its end follows.
    ran : float or None
        Seconds that the runs it ended had been admitted, all together.
    ran_most : float or None
        Seconds that any single one of them had been admitted at most.
    declared : str or None
        Where the job is said to write checkpoints.
    proof : Proof or None
        None: nothing was looked at. Of several: of any of their runs.
    written : Written or None
        The newest checkpoint not later than it, whether of this run or of an earlier one.
    settled : bool
        Whether looking again would change nothing.
    """

    uid: str
    at: datetime
    after: datetime | None = None
    count: int = 1
    words: Words = Words()
    preemptor: str | None = None
    gpus: float = 0.0
    instance_type: str | None = None
    started: datetime | None = None
    ran: float | None = None
    ran_most: float | None = None
    declared: str | None = None
    proof: Proof | None = None
    written: Written | None = None
    settled: bool = False

    def within(self, since: datetime) -> bool:
        """Whether it surely was not earlier than that."""
        return (self.after or self.at) >= since


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """What the last evaluation saw of a Workload.

    Attributes
    ----------
    counter, others : int
        Kueue's counters of it: preemptions, and evictions for any other reason.
    ahead : int
        Preemptions counted by their time, which the counter did not show yet.
    admitted : datetime or None
        Since when it had been admitted; None where it was not.
    past_seconds : int or None
        Admitted seconds of earlier rounds.
    seen : datetime
        The evaluation that last saw it.
    gap : datetime or None
        The newest moment until which it may have been preempted without being counted.
    over : bool
        Whether it had finished.
    gone : bool
        Whether a later evaluation did not see it any more.
    """

    uid: str
    subject: str
    namespace: str
    name: str
    created: datetime
    seen: datetime
    job_uid: str | None = None
    counter: int = 0
    others: int = 0
    ahead: int = 0
    admitted: datetime | None = None
    past_seconds: int | None = None
    gpus: float = 0.0
    instance_type: str | None = None
    declared: str | None = None
    gap: datetime | None = None
    over: bool = False
    gone: bool = False


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What has been looked for of checkpoints, and what has to be looked for again.

    Attributes
    ----------
    settled : frozenset of (str, datetime)
        Preemptions with a time (Workload UID, time) that need no look any more.
    counted : dict of str to (int, datetime)
        By Workload UID: its counter of preemptions, and when it was seen.
    waiting : tuple of (str, datetime)
        Preemptions without a time (Workload UID, the latest that they can have been).
    """

    settled: frozenset[tuple[str, datetime]] = frozenset()
    counted: dict[str, tuple[int, datetime]] = msgspec.field(default_factory=dict)
    waiting: tuple[tuple[str, datetime], ...] = ()


class PreemptionMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The `preemptions` detector's part of the memory.

    Attributes
    ----------
    at : datetime or None
        The last evaluation that could read the Workloads.
    whole : bool
        Whether it read every one of them.
    watched : tuple of Watched
        Workloads that reserve quota or were evicted; others had a counter of zero at `at`.
    evictions : tuple of Eviction
        Those of the period.
    """

    told: tuple[Told, ...] = ()
    at: datetime | None = None
    whole: bool = False
    watched: tuple[Watched, ...] = ()
    evictions: tuple[Eviction, ...] = ()

    def settled(self) -> Looked:
        """Tell whose checkpoints need not be looked for any more, and whose do."""
        open_ones = [one for one in self.evictions if one.after is not None and not one.settled]
        return Looked(
            settled=frozenset((one.uid, one.at) for one in self.evictions if one.settled),
            counted={one.uid: (one.counter, one.seen) for one in self.watched},
            waiting=tuple((one.uid, one.at) for one in open_ones),
        )
