"""What became of the calls of one read: each is a part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from steward.cluster.snapshot import Part, PartStatus
from steward.errors import DeniedError, RetryableError, StewardError
from steward.sources.control_plane_fields import need

if TYPE_CHECKING:
    from steward.ports import Clock


class Reads:
    """The parts of one read: every call either answers, or leaves a part that says why not."""

    def __init__(self, clock: Clock, deadline: timedelta) -> None:
        self.parts: list[Part] = []
        self._clock = clock
        self._deadline = deadline
        self._until: datetime = clock.now() + deadline

    def ask[T](self, name: str, call: Callable[[], T]) -> T | None:
        """Make one call; None where it was refused."""
        at = self._clock.now()
        try:
            self._check_time()
            answer = call()
        except StewardError as error:
            denied = isinstance(error, DeniedError)
            status = PartStatus.DENIED if denied else PartStatus.UNREADABLE
            self.parts.append(Part(name=name, status=status, at=at, detail=str(error)))
            return None
        self.parts.append(Part(name=name, status=PartStatus.OK, at=at))
        return answer

    def merge(self, pages: Iterable[Mapping[str, Any]], key: str) -> dict[str, list[Any]]:
        """Merge the pages of a list."""
        items: list[Any] = []
        for page in pages:
            items += need(page, key, list)
            self._check_time()
        return {key: items}

    def _check_time(self) -> None:
        if self._clock.now() > self._until:
            raise RetryableError(
                f"no time left: the control plane may take {self._deadline.total_seconds():g} s; "
                "the next tick asks again"
            )
