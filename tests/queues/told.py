"""What a replay of a recording of queues told, each replayed once however many tests ask."""

from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from local import replay
from local.routing import read_routes
from tests.queues.scene import RECORDINGS

type Line = dict[str, Any]


@cache
def lines_of(folder: str) -> tuple[Line, ...]:
    """Replay a committed recording."""
    return lines(RECORDINGS / folder)


def lines(folder: Path) -> tuple[Line, ...]:
    """Replay a recording; no handler may fail."""
    told: list[Line] = []
    with patch.object(replay, "read_routes", _routes):
        assert replay.replay(folder, told.append).failures == 0
    return tuple(told)


_routes = cache(read_routes)
"""The template is a large file, and the same for every recording."""


class Told:
    """The lines of one detector."""

    def __init__(self, folder: str | Path, detector: str) -> None:
        every = lines_of(folder) if isinstance(folder, str) else lines(folder)
        ours = [line for line in every if line.get("detector") == detector]
        self.found = [line for line in ours if line["type"] == "finding"]
        self.dark = [line for line in ours if line["type"] == "unknown"]
        self.open = [line for line in every[-1]["open"] if line["detector"] == detector]

    def rows(self, *keys: str) -> list[tuple[Any, ...]]:
        """Some members of every finding line."""
        return [tuple(line[key] for key in keys) for line in self.found]

    def about(self, subject: str) -> Line:
        """The one line of a subject, which tells of its beginning."""
        (found,) = (line for line in self.found if line["subject"] == subject)
        assert found["status"] == "firing"
        return found

    def at_the_end(self, subject: str) -> Line:
        """The same finding, as the last tick left it."""
        (found,) = [line for line in self.open if line["subject"] == subject]
        assert found["status"] == "firing"
        return dict(found)
