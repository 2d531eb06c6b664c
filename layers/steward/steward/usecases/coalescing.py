"""Whose turn it is to take a snapshot: many wishes for a cluster, one answer, one reader at a time.

A wish is answered by every snapshot that begins at its time or after it. So nobody begins one where
somebody else has claimed such a one, and wishes that events had are gathered: the first that comes
too soon after the last reserves the next turn and waits for it, the others rely on it. Then a
thousand events in a minute lead to three snapshots at most, the tick's own among them: one at
once, the tick's, and one a minute after the first.
"""

from __future__ import annotations

from copy import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from steward.cluster.claims import Claim
from steward.cluster.planning import SnapshotScope
from steward.errors import ConflictError, StewardError
from steward.telemetry import logger
from steward.usecases.take_snapshot import answered_since

if TYPE_CHECKING:
    from collections.abc import Callable

    from steward.ports import ClaimStore, Clock, SnapshotStore

SPACING = timedelta(seconds=60)
"""From one snapshot that events asked for to the next. With less, a minute that holds a tick could
see four of them."""

LONGEST_SECONDS = 265.0
"""What one snapshot may take where every source hangs: the deadlines of the control plane, of the
Kubernetes endpoint, of the Kubernetes API and of the metrics (30, 10, 30 and 60 s), each with a
request that outlasts it; and of the look for checkpoints (20 s, outlasted by one listing and one
read of the bucket). A claim that is older answers nobody: its owner is gone."""

_ATTEMPTS = 20
"""Writes of one claim. Each conflict is another's progress, and nobody makes so much of it."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch asks of one cluster.

    Attributes
    ----------
    asked : datetime
        When the newest request was made.
    patient : bool
        Whether only events ask, and for a tick: then its turn may come later.
    """

    cluster: str
    asked: datetime
    scope: SnapshotScope = SnapshotScope.TICK
    patient: bool = False


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of this invocation: at its start, which may be later than now, the snapshot is taken.

    Attributes
    ----------
    tag : str or None
        What the claim was written under; None where it could not be kept.
    """

    wish: Wish
    claim: Claim
    tag: str | None

    @property
    def start(self) -> datetime:
        """When the snapshot is to begin."""
        return self.claim.start


class Turns:
    """Gives and takes the turns of one invocation.

    Parameters
    ----------
    claims, snapshots, clock
        Ports.
    owner : str
        Names this invocation and no other.
    left : callable
        Seconds that it still has: a turn is never so late that the snapshot might be cut off.
    """

    def __init__(
        self,
        claims: ClaimStore,
        snapshots: SnapshotStore,
        clock: Clock,
        owner: str,
        left: Callable[[], float],
    ) -> None:
        self._claims = claims
        self._snapshots = snapshots
        self._clock = clock
        self._owner = owner
        self._left = left

    def claim(self, wish: Wish) -> Turn | None:
        """Claim the snapshot that answers a wish; None where another one answers it.

        Claims spare reads and must not prevent one: where none can be kept, the turn is now, and only
        a snapshot that another has finished answers the wish.

        Raises
        ------
        ConflictError
            Others kept claiming: the request may be repeated.
        """
        # A time that is yet to come is another clock's: no snapshot would ever answer it.
        wish = replace(wish, asked=min(wish.asked, self._clock.now()))
        try:
            return self._claim(wish)
        except ConflictError:
            raise
        except StewardError as error:
            logger.warning("no claim", cluster=wish.cluster, error=str(error))
            return self._unclaimed(wish)

    def _claim(self, wish: Wish) -> Turn | None:
        for _ in range(_ATTEMPTS):
            found, tag = self._claims.load(wish.cluster)
            now = self._clock.now()
            if found is not None and _answers(found, wish, now):
                return None
            # Who takes it now looks at the last snapshot itself; nobody shall wait for nothing.
            if wish.patient:
                answered = answered_since(self._snapshots.last(wish.cluster), wish.scope)
                if answered is not None and wish.asked <= answered:
                    return None
            made = self._next(found, wish, now)
            try:
                return Turn(wish=wish, claim=made, tag=self._claims.save(wish.cluster, made, tag))
            except ConflictError:
                # The answer to a write that was made may be lost; repeated, it meets itself.
                found, tag = self._claims.load(wish.cluster)
                if found == made and tag is not None:
                    return Turn(wish=wish, claim=made, tag=tag)
        raise ConflictError(f"claims/{wish.cluster}: others kept writing; ask again")

    def is_later(self, turn: Turn) -> bool:
        """Tell whether a turn is yet to come."""
        return turn.start > self._clock.now()

    def wait(self, turn: Turn) -> Turn | None:
        """Wait for a turn and look again; None where the wish was answered meanwhile.

        A tick does not wait behind a turn: it takes its own, and the wish may be answered by that.
        """
        while True:
            if (seconds := (turn.start - self._clock.now()).total_seconds()) > 0:
                self._clock.sleep(seconds)
            try:
                _, tag = self._claims.load(turn.wish.cluster)
            except StewardError as error:
                logger.warning("claim not read", cluster=turn.wish.cluster, error=str(error))
                return turn
            if tag == turn.tag:
                return turn
            again = self.claim(turn.wish)
            if again is None or not self.is_later(again):
                return again
            turn = again

    def give_up(self, turn: Turn) -> None:
        """Let others take the snapshot that this invocation did not; what a crash leaves expires."""
        if turn.tag is None:
            return
        try:
            self._claims.save(turn.wish.cluster, replace(turn.claim, failed=True), turn.tag)
        except StewardError as error:  # somebody else has it already, or it expires by itself
            logger.warning("claim left", cluster=turn.wish.cluster, error=str(error))

    def _unclaimed(self, wish: Wish) -> Turn:
        claim = Claim(
            start=wish.asked, scope=wish.scope, owner=self._owner, events_after=self._clock.now()
        )
        return Turn(wish=wish, claim=claim, tag=None)

    def _next(self, found: Claim | None, wish: Wish, now: datetime) -> Claim:
        start, events_after = now, _events_after(found, now)
        if wish.patient:
            latest = now + timedelta(seconds=max(0.0, self._left() - LONGEST_SECONDS))
            start = max(now, min(events_after, latest))
            events_after = start + SPACING
        return Claim(start=start, scope=wish.scope, owner=self._owner, events_after=events_after)


def _answers(claim: Claim, wish: Wish, now: datetime) -> bool:
    """Tell whether somebody takes, took or will take the snapshot that a wish is after."""
    age = now - claim.start
    if claim.failed or not -SPACING <= age < timedelta(seconds=LONGEST_SECONDS):
        return False
    covers = claim.scope is SnapshotScope.AUDIT or wish.scope is SnapshotScope.TICK
    in_time = wish.patient or age >= timedelta()
    return covers and in_time and wish.asked <= claim.start


def _events_after(claim: Claim | None, now: datetime) -> datetime:
    """Tell when events may have their next snapshot; a reservation that is overruled keeps its own."""
    if claim is None:
        return now
    then = claim.start if claim.start > now else claim.events_after
    return min(then, now + SPACING)  # whatever another's clock said
