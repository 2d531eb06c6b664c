"""What a list held: objects that could be read, and the faults of those that could not."""

from dataclasses import dataclass, field
from itertools import islice

from steward.cluster.snapshot import PartStatus

_NAMED = 3


@dataclass(slots=True)
class Listing[T]:
    """A list as it was read, object by object.

    Attributes
    ----------
    found : list
        Nouns of the objects that could be read.
    faults : dict of str to str
        What was wrong with each of the others, by its name.
    seen : int
        How many objects there were.
    """

    found: list[T] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    seen: int = 0

    @property
    def status(self) -> PartStatus:
        """Say what became of the list.

        What could be read is right, so one malformed object does not blind the rest: the part is
        ok and names it. Where nothing could be read, nothing was understood.
        """
        if self.faults and len(self.faults) == self.seen:
            return PartStatus.UNREADABLE
        return PartStatus.OK

    def leave_out(self, name: str, fault: str) -> None:
        """Note an object at fault; a name that was there before is told apart by its position."""
        known = name in self.faults
        self.faults[f"{name} (item {self.seen - 1})" if known else name] = fault

    @property
    def detail(self) -> str:
        """Name the objects that were left out."""
        if not self.faults:
            return ""
        told = (f"{name}: {fault}" for name, fault in islice(self.faults.items(), _NAMED))
        named = "; ".join(told)
        more = "; …" if len(self.faults) > _NAMED else ""
        return f"left out {len(self.faults)} malformed of {self.seen} objects: {named}{more}"
