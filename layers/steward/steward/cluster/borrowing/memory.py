"""What the `borrowing` detector carries from one evaluation to the next."""

from datetime import datetime, timedelta

import msgspec

from steward.cluster.incidents import Told

_STEPS = 16
"""Steps of a staircase that are kept: a busy queue's idle quota has as many heights."""


class Lasting(msgspec.Struct, frozen=True, kw_only=True):
    """A condition: since when it is known to have lasted, and when it was last seen."""

    since: datetime
    seen: datetime


class IdleStep(msgspec.Struct, frozen=True, kw_only=True):
    """Since when at least so much of a queue's quota has been idle.

    Attributes
    ----------
    at_least : bool
        True: it was first seen then, and may have begun before.
    """

    amount: float
    since: datetime
    at_least: bool


class QuotaSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A row's quota as it was last seen.

    Attributes
    ----------
    own, shared : str
        What decides how much its owner may hold (nominal quota, borrowing limit), and what of that
        others may use (lending limit, place in the tree).
    own_since, shared_since : datetime or None
        When each was first seen to be another than before; None: as at the first look.
    """

    own: str
    shared: str
    own_since: datetime | None = None
    shared_since: datetime | None = None


class BorrowingMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The `borrowing` detector's part of the memory.

    Attributes
    ----------
    lasting : dict of str to Lasting
        Conditions by `<condition>|<subject>`.
    idle : dict of str to tuple of IdleStep
        What lies idle by `<queue>/<flavor>/<resource>`, the lowest amount (the longest) first.
    quotas : dict of str to QuotaSeen
        By `<kind>/<name>/<flavor>/<resource>`.
    at : datetime or None
        The newest snapshot that all of these were seen in.
    """

    told: tuple[Told, ...] = ()
    lasting: dict[str, Lasting] = msgspec.field(default_factory=dict)
    idle: dict[str, tuple[IdleStep, ...]] = msgspec.field(default_factory=dict)
    quotas: dict[str, QuotaSeen] = msgspec.field(default_factory=dict)
    at: datetime | None = None


def go_on(before: Lasting | None, proven: datetime | None, at: datetime, gap: timedelta) -> Lasting:
    """Carry a condition over that is seen now.

    Parameters
    ----------
    before : Lasting or None
        As it is remembered.
    proven : datetime or None
        Since when the objects prove it; None: they do not.
    at : datetime
        The evaluation's time.
    gap : timedelta
        Longest time between two evaluations that is still one watch.
    """
    since = min(proven or at, at)
    if before and (since <= before.seen or at - before.seen <= gap):
        since = min(since, before.since)
    return Lasting(since=since, seen=at)


def see_quota(before: QuotaSeen | None, own: str, shared: str, at: datetime) -> QuotaSeen:
    """Carry over since when a row's quota is what it is now."""
    if before is None:
        return QuotaSeen(own=own, shared=shared)
    return QuotaSeen(
        own=own,
        shared=shared,
        own_since=before.own_since if before.own == own else at,
        shared_since=before.shared_since if before.shared == shared else at,
    )


def climb(
    before: tuple[IdleStep, ...], amount: float, released: datetime | None, at: datetime
) -> tuple[IdleStep, ...]:
    """Carry a staircase over to what lies idle now.

    Parameters
    ----------
    before : tuple of IdleStep
        As it is remembered; empty at first sight.
    amount : float
        What lies idle now.
    released : datetime or None
        The last release that objects show since it was last looked at (at first sight: at all).
    at : datetime
        The evaluation's time.
    """
    if amount <= 0:
        return ()
    lower = tuple(step for step in before if step.amount < amount)
    # Where more was idle before, at least as much as now has been since then.
    higher = next((step for step in before if step.amount >= amount), None)
    if higher:
        top = IdleStep(amount=amount, since=higher.since, at_least=higher.at_least)
    else:
        top = IdleStep(amount=amount, since=released or at, at_least=released is None)
    return (*lower, top)[-_STEPS:]


def idle_since(steps: tuple[IdleStep, ...], amount: float) -> IdleStep | None:
    """Find since when at least an amount has been idle."""
    return next((step for step in steps if step.amount >= amount), None)
