"""All recordings of queues."""

from tests.queues import borrowing, capacity, pending, preempting, refusals, triggers
from tests.queues.scene import Recorded

EVERY: tuple[Recorded, ...] = (
    *pending.RECORDINGS,
    *borrowing.RECORDINGS,
    *preempting.RECORDINGS,
    *capacity.RECORDINGS,
    *triggers.RECORDINGS,
    *refusals.RECORDINGS,
)
