"""Lists of one read, each page reduced at once; what became of each list is its part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from steward.cluster.snapshot import Part, PartStatus
from steward.errors import DeniedError, NotInstalledError, PermanentError, StewardError
from steward.sources.kubernetes.listing import Listing, Reading
from steward.sources.kubernetes.status import ExpiredError

if TYPE_CHECKING:
    from datetime import datetime

    from steward.ports import Clock
    from steward.sources.kubernetes.session import KubernetesSession

CORE = "/api/v1"
JSON = "application/json"

type Item = Mapping[str, Any]


class Lists:
    """Lists resources, and keeps a part for each."""

    def __init__(self, session: KubernetesSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._groups: dict[str, tuple[str, ...] | StewardError] = {}
        self.parts: list[Part] = []

    def version(self, group: str, resources: Sequence[str], known: Sequence[str] = ()) -> str:
        """Find the version of an API group; empty where refused: then so are its `resources`.

        `known` are the versions that the caller reads, best first; empty: any.
        """
        return next(iter(self.versions(group, resources, known)), "")

    def versions(
        self, group: str, resources: Sequence[str], known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Find every usable version of an API group; see :meth:`version`.

        The server's preferred one comes first, then the best. Each group is asked once.
        """
        at = self._clock.now()
        try:
            return _usable(group, self._served(group), known)
        except StewardError as error:
            self.parts += [_refused(resource, error, at) for resource in resources]
            return ()

    def _served(self, group: str) -> tuple[str, ...]:
        if group not in self._groups:
            try:
                self._groups[group] = self._session.versions(group)
            except StewardError as error:
                self._groups[group] = error
        found = self._groups[group]
        if isinstance(found, StewardError):
            raise found
        return found

    def read[T](
        self,
        resource: str,
        root: str,
        reduce: Callable[[Item], T | None],
        *,
        accept: str = JSON,
    ) -> tuple[T, ...] | None:
        """List a resource whose objects are read as mappings; None where it was refused.

        `reduce` makes a noun of an object, or None of one that does not matter, and raises
        MalformedError; the rest is as in :meth:`read_as`.
        """
        return self.read_as(resource, root, Reading(shape=dict, reduce=reduce), accept=accept)

    def read_as[S, T](
        self,
        resource: str,
        roots: str | Sequence[str],
        reading: Reading[S, T],
        *,
        within: Sequence[str] | None = None,
        fields: str = "",
        accept: str = JSON,
    ) -> tuple[T, ...] | None:
        """List a resource; None where it was refused.

        Parameters
        ----------
        resource : str
            Plural name; the part is `kubernetes/<resource>`.
        roots : str or sequence of str
            :data:`CORE` or `/apis/<group>/<version>`; of several, the first that knows the
            resource: versions of a group need not all serve all of it.
        reading : Reading
            How its objects are read.
        within : sequence of str or None
            Namespaces to list, all in one part: one that is refused is the whole part refused, for
            nothing is judged on half a list. None: one list over all of them.
        fields, accept : str
            See :meth:`KubernetesSession.pages`.
        """
        at = self._clock.now()
        tried = [roots] if isinstance(roots, str) else roots
        below = [""] if within is None else [f"/namespaces/{quote(name, '')}" for name in within]
        lists = [[f"{root}{place}/{resource}" for place in below] for root in tried]
        try:
            listing = self._first_known(lists, reading, at, fields, accept)
        except StewardError as error:
            self.parts.append(_refused(resource, error, at, core=CORE in tried))
            return None
        left_out = tuple(listing.faults)
        self.parts.append(part(resource, listing.status, at, listing.detail, left_out))
        return listing.found if listing.status is PartStatus.OK else None

    def _first_known[S, T](
        self,
        lists: Sequence[Sequence[str]],
        reading: Reading[S, T],
        at: datetime,
        fields: str,
        accept: str,
    ) -> Listing[S, T]:
        for paths in lists[:-1]:
            try:
                return self._collect(paths, reading, at, fields, accept)
            except NotInstalledError:
                continue
        return self._collect(lists[-1], reading, at, fields, accept)

    def _collect[S, T](
        self, paths: Sequence[str], reading: Reading[S, T], at: datetime, fields: str, accept: str
    ) -> Listing[S, T]:
        """Read every page; a list that expired meanwhile starts again from its beginning, once."""
        try:
            return self._pages(paths, Listing(reading, at), fields, accept)
        except ExpiredError:
            return self._pages(paths, Listing(reading, at), fields, accept)

    def _pages[S, T](
        self, paths: Sequence[str], listing: Listing[S, T], fields: str, accept: str
    ) -> Listing[S, T]:
        for path in paths:
            for page in self._session.pages(path, fields=fields, accept=accept):
                listing.add(page)
        return listing


def _usable(group: str, served: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Choose among versions, of which the first is preferred; raises PermanentError without any."""
    if not known:
        return tuple(served)
    best = (one for one in known if one in served)
    found = tuple(dict.fromkeys((*(one for one in served[:1] if one in known), *best)))
    if not found:
        raise PermanentError(
            f"{group} serves {', '.join(served)}, of which this version reads none "
            f"({', '.join(known)}); update GPU Steward"
        )
    return found


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
