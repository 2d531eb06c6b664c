"""Lists of one read, each page reduced at once; what became of each list is its part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from steward.cluster.snapshot import Part, PartStatus
from steward.errors import DeniedError, NotInstalledError, StewardError
from steward.sources.kubernetes_fields import MalformedError, mapping, optional_text
from steward.sources.kubernetes_http import KubernetesSession
from steward.sources.kubernetes_status import ExpiredError

if TYPE_CHECKING:
    from steward.ports import Clock

CORE = "/api/v1"
_NAMED = 3

type Item = Mapping[str, Any]


@dataclass(slots=True)
class _Listing[T]:
    """What a list held: objects that could be read, and the faults of those that could not."""

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

    @property
    def detail(self) -> str:
        """Name the objects that were left out."""
        if not self.faults:
            return ""
        told = (f"{name}: {fault}" for name, fault in islice(self.faults.items(), _NAMED))
        named = "; ".join(told)
        more = "; …" if len(self.faults) > _NAMED else ""
        return f"left out {len(self.faults)} malformed of {self.seen} objects: {named}{more}"


class Lists:
    """Lists resources of all namespaces, and keeps a part for each."""

    def __init__(self, session: KubernetesSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self.parts: list[Part] = []

    def version(self, group: str, resources: tuple[str, ...], known: tuple[str, ...] = ()) -> str:
        """Find the version of an API group; empty where refused: then so are its `resources`.

        `known` are the versions that the caller reads, best first; empty: any.
        """
        at = self._clock.now()
        try:
            return self._session.version(group, known)
        except StewardError as error:
            self.parts += [_refused(resource, error, at) for resource in resources]
            return ""

    def read[T](
        self,
        resource: str,
        root: str,
        reduce: Callable[[Item], T | None],
        *,
        fields: str = "",
        accept: str = "application/json",
    ) -> tuple[T, ...] | None:
        """List a resource; None where it was refused.

        Parameters
        ----------
        resource : str
            Plural name; the part is `kubernetes/<resource>`.
        root : str
            :data:`CORE` or `/apis/<group>/<version>`.
        reduce : callable
            Makes a noun of an object, or None of one that does not matter; raises MalformedError.
        fields, accept : str
            See :meth:`KubernetesSession.pages`.
        """
        at = self._clock.now()
        try:
            try:
                listing = self._collect(f"{root}/{resource}", reduce, fields, accept)
            except ExpiredError:
                listing = self._collect(f"{root}/{resource}", reduce, fields, accept)
        except StewardError as error:
            self.parts.append(_refused(resource, error, at, core=root == CORE))
            return None
        left_out = tuple(listing.faults)
        self.parts.append(part(resource, listing.status, at, listing.detail, left_out))
        return tuple(listing.found) if listing.status is PartStatus.OK else None

    def _collect[T](
        self, path: str, reduce: Callable[[Item], T | None], fields: str, accept: str
    ) -> _Listing[T]:
        listing: _Listing[T] = _Listing()
        for page in self._session.pages(path, fields=fields, accept=accept):
            for index, item in enumerate(page, start=listing.seen):
                try:
                    noun = reduce(_object(item))
                except MalformedError as error:
                    listing.faults[_name(item, index)] = str(error)
                    continue
                if noun is not None:
                    listing.found.append(noun)
            listing.seen += len(page)
        return listing


def part(
    resource: str, status: PartStatus, at: datetime, detail: str, left_out: tuple[str, ...] = ()
) -> Part:
    """Give the part of a resource."""
    name = f"kubernetes/{resource}"
    return Part(name=name, status=status, at=at, detail=detail, left_out=left_out)


def _refused(resource: str, error: StewardError, at: datetime, *, core: bool = False) -> Part:
    status = PartStatus.UNREADABLE
    if isinstance(error, DeniedError):
        status = PartStatus.DENIED
    elif isinstance(error, NotInstalledError) and not core:
        # The core API is never "not installed": whoever says so is no Kubernetes API server.
        status = PartStatus.ABSENT
    return part(resource, status, at, str(error))


def _object(item: object) -> Item:
    if not isinstance(item, dict):
        raise MalformedError("not an object")
    return item


def _name(item: object, index: int) -> str:
    """Name an object as well as it can be named: by namespace and name, else by its position."""
    try:
        metadata = mapping(_object(item), "metadata")
        namespace, name = (optional_text(metadata, key) for key in ("namespace", "name"))
    except MalformedError:
        namespace = name = None
    return "/".join(filter(None, (namespace, name))) if name else f"item {index}"
