"""All recordings of queues."""

from tests.queues import borrowing, pending, preempting
from tests.queues.scene import Recorded

EVERY: tuple[Recorded, ...] = (*pending.RECORDINGS, *borrowing.RECORDINGS, *preempting.RECORDINGS)
