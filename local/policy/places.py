"""Values of a raw document and where they stand, however wrong the document is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from local.policy.faults import KeyPath


@dataclass(frozen=True, slots=True)
class Place:
    """A value and its key path; of what is missing or of another kind, every part is missing."""

    path: KeyPath
    value: Any

    @property
    def keys(self) -> dict[str, Any]:
        """Keys and values of a mapping."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def entries(self) -> list["Place"]:
        """Entries of a list."""
        values = self.value if isinstance(self.value, list) else []
        return [Place((*self.path, n), value) for n, value in enumerate(values)]

    def get(self, key: str) -> "Place":
        """Value of a key; None where it is missing."""
        return Place((*self.path, key), self.keys.get(key))

    def each(self, key: str) -> list["Place"]:
        """Value of a key in every entry of a list."""
        return [entry.get(key) for entry in self.entries]


def texts(places: Iterable[Place]) -> list[Place]:
    """Keep what is text: a name of another kind is a fault of its own key."""
    return [place for place in places if isinstance(place.value, str)]
