"""What is wrong with a document: where it stands, and what to do about it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from steward.errors import ConfigError

type KeyPath = tuple[str | int, ...]
"""Where a key stands in the document: `("clusters", 0, "teams", 2, "channel")`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a document, and what to do about it."""

    path: KeyPath
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{key_path(self.path)}: {self.message}; {self.remedy}"


class PolicyError(ConfigError):
    """A document that cannot be resolved; `faults` holds all that is wrong with it."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


def key_path(path: KeyPath) -> str:
    """Write a key path as people do: `clusters[0].teams[2].channel`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".") or "the document"


def show(value: object) -> str:
    """Write a value as the document has it, at most 80 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def suggest(name: str, known: Iterable[str], what: str) -> str:
    """Word the remedy for a name that is not known: the nearest one first, then all of them."""
    spelled = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), spelled, n=1, cutoff=0.5)
    hint = f"did you mean {spelled[near[0]]}? " if near else ""
    return f"{hint}{what} {', '.join(spelled.values()) or 'none'}"
