"""What became of the calls of one read: each is a part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from steward.aws_errors import aws_call, error_code
from steward.cluster.snapshot import Part, PartStatus
from steward.errors import DeniedError, NotInstalledError, RetryableError, StewardError
from steward.sources.control_plane.fields import MalformedError, need

if TYPE_CHECKING:
    from steward.ports import Clock
    from steward.sources.control_plane.listing import Listing


class Reads:
    """The parts of one read: every call either answers, or leaves a part that says why not."""

    def __init__(self, clock: Clock, deadline: timedelta) -> None:
        self.parts: list[Part] = []
        self._clock = clock
        self._deadline = deadline
        self._until: datetime = clock.now() + deadline
        self._refusal: StewardError | None = None
        self._notes: list[str] = []
        self._left_out: list[str] = []

    def ask[T](self, name: str, call: Callable[[], T]) -> T | None:
        """Make one call; None where it was refused."""
        at = self._clock.now()
        self._refusal, self._notes, self._left_out = None, [], []
        answer = None
        try:
            self.check_time()
            answer = call()
        except StewardError as error:
            self._refusal = error
            self.note(str(error))
        self.parts.append(
            Part(
                name=name,
                status=_status(self._refusal),
                at=at,
                detail="; ".join(self._notes),
                left_out=tuple(self._left_out),
            )
        )
        return answer

    def keep[T](self, listing: Listing[T]) -> tuple[T, ...]:
        """Take what could be read of a list into the current part, which names the rest.

        Raises
        ------
        MalformedError
            Nothing of it could be read.
        """
        self._left_out += listing.faults
        if listing.status is not PartStatus.OK:
            raise MalformedError(listing.detail)
        self.note(listing.detail)
        return tuple(listing.found)

    def note(self, text: str) -> None:
        """Add to the current part's detail."""
        if text:
            self._notes.append(text)

    def lost(self, error: StewardError) -> None:
        """Say that one of several calls of the current part was refused; what was read stays."""
        if self._refusal is None or isinstance(error, DeniedError):
            self._refusal = error
        self.note(str(error))

    def merge(
        self, pages: Iterable[Mapping[str, Any]], key: str, most: int | None = None
    ) -> dict[str, list[Any]]:
        """Merge the pages of a list; with `most`, the first so many and no further page."""
        items: list[Any] = []
        for page in pages:
            items += need(page, key, list)
            if most is not None and len(items) >= most:
                return {key: items[:most]}
            self.check_time()
        return {key: items}

    def check_time(self) -> None:
        """Raise RetryableError where the deadline has passed."""
        if self._clock.now() > self._until:
            raise RetryableError(
                f"no time left: the control plane may take {self._deadline.total_seconds():g} s; "
                "the next tick asks again"
            )


def _status(refusal: StewardError | None) -> PartStatus:
    match refusal:
        case None:
            return PartStatus.OK
        case DeniedError():
            return PartStatus.DENIED
        case NotInstalledError():
            return PartStatus.ABSENT
    return PartStatus.UNREADABLE


@contextmanager
def asking(
    action: str, where: str, absent: Callable[[str], bool] = lambda _: False
) -> Iterator[None]:
    """Turn what a call raises into one of our errors.

    Parameters
    ----------
    action : str
        IAM's name of the call.
    where : str
        Cluster and region, for the message.
    absent : callable
        Tells whether an error code means "there is no such thing here".

    Raises
    ------
    StewardError
        See :func:`steward.aws_errors.aws_call`; NotInstalledError for a code that says so.
    """
    doing = f"{action} of {where}"
    try:
        with aws_call(doing, denied=f"allow {action} to the steward's role"):
            try:
                yield
            except ClientError as error:
                if absent(error_code(error)):
                    raise NotInstalledError(f"{doing}: {error}") from error
                raise
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        # botocore's parser trusts the wire: text in place of an object or of a time ends in these.
        raise MalformedError(f"{doing}: not in the service's form: {error}") from error
