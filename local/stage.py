"""Things that happen at the same time, one after the other: a virtual clock for many actors.

An actor is a thread that runs until it sleeps; then the next one that is due runs. So what several
invocations do to each other is played in the same order every time, however long they wait.
"""

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(slots=True)
class _Actor:
    """A thread, and whose turn it is."""

    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    done: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    error: Exception | None = None


class Stage:
    """Plays actions at their times; implements the product's clock.

    Parameters
    ----------
    at : datetime
        When it begins.
    """

    def __init__(self, at: datetime) -> None:
        self._at = at
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._count = 0
        self._playing: _Actor | None = None

    def now(self) -> datetime:
        """Return the virtual time."""
        return self._at

    def at(self, when: datetime, action: Callable[[], None]) -> None:
        """Have an action played at a time; of the same time, in the order of the asking."""
        self._count += 1
        heapq.heappush(self._due, (max(when, self._at), self._count, action))

    def spawn(self, body: Callable[[], None]) -> None:
        """Start an actor now; what it raises ends the run."""
        actor = _Actor()

        def perform() -> None:
            actor.go.acquire()
            try:
                body()
            except Exception as error:  # noqa: BLE001 - told where the run is
                actor.error = error
            actor.done.release()

        threading.Thread(target=perform, daemon=True).start()
        self.at(self._at, lambda: self._resume(actor))

    def sleep(self, seconds: float) -> None:
        """Let an actor wait, and others play meanwhile."""
        actor = self._playing
        assert actor is not None, "only an actor sleeps"  # noqa: S101 - the rig's own use
        self.at(self._at + timedelta(seconds=seconds), lambda: self._resume(actor))
        actor.done.release()
        actor.go.acquire()

    def run(self) -> None:
        """Play until nothing is left."""
        while self._due:
            self._at, _, action = heapq.heappop(self._due)
            action()

    def _resume(self, actor: _Actor) -> None:
        self._playing = actor
        actor.go.release()
        actor.done.acquire()
        self._playing = None
        if actor.error is not None:
            raise actor.error
