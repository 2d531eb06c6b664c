"""What a replay of these recordings told, each replayed once however many tests ask."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from local import replay
from local.routing import read_routes
from tests.alerting.kit import RECORDINGS

type Line = dict[str, Any]

WRITES = {"chat.postMessage", "chat.update", "chat.delete"}


class Told:
    """A finished replay: its lines, and what Slack shows at its end."""

    def __init__(self, folder: Path) -> None:
        self.lines: list[Line] = []
        with patch.object(replay, "read_routes", _routes):
            self.run = replay.replay(folder, self.lines.append)
        assert self.run.failures == 0, [x for x in self.lines if x["type"] == "failure"]

    @property
    def messages(self) -> list[Line]:
        """Messages that stand in channels, oldest first: cards and copies."""
        return [m for m in self.run.rig.slack.messages if m["thread_ts"] is None]

    @property
    def notes(self) -> list[Line]:
        """Messages that stand in threads, oldest first."""
        return [m for m in self.run.rig.slack.messages if m["thread_ts"] is not None]

    def of(self, kind: str, **wanted: Any) -> list[Line]:
        """Lines of a kind that have some members."""
        lines = (line for line in self.lines if line["type"] == kind)
        return [x for x in lines if all(x[key] == value for key, value in wanted.items())]

    def calls(self, *methods: str) -> list[Line]:
        """Slack lines of some methods; of all that write where none is named."""
        wanted = set(methods) or WRITES
        return [line for line in self.of("slack") if line["method"] in wanted]

    def found(self, *keys: str) -> list[tuple[Any, ...]]:
        """Some members of every finding line."""
        return [tuple(line[key] for key in keys) for line in self.of("finding")]


@cache
def told(folder: str) -> Told:
    """Replay a committed recording."""
    return Told(RECORDINGS / folder)


_routes = cache(read_routes)
"""The template is a large file, and the same for every recording."""


def shown(message: Line) -> str:
    """Every word of a message as it stands now: its text, and all texts of its blocks."""
    payload = message["versions"][-1]["payload"]
    return "\n".join(words({key: payload.get(key) for key in ("text", "blocks")}))


def words(part: Any) -> Iterator[str]:
    """Texts anywhere in a payload."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for value in part.values():
            yield from words(value)
    elif isinstance(part, list):
        for value in part:
            yield from words(value)
