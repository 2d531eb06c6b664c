"""Refused reads as what they mean to a detector: unknown lines."""

from steward.cluster.accelerators import UnknownReason
from steward.cluster.findings import Unknown
from steward.cluster.snapshot import PartStatus, Snapshot

_REASON = {
    PartStatus.DENIED: UnknownReason.DENIED,
    PartStatus.UNREADABLE: UnknownReason.UNREADABLE,
}


def refusals(
    snapshot: Snapshot, detector: str, *, blind: tuple[str, ...], useful: tuple[str, ...] = ()
) -> tuple[Unknown, ...]:
    """Say which reads were refused that a detector needs.

    Parameters
    ----------
    snapshot : Snapshot
        With what became of each part.
    detector : str
        Who needs them.
    blind : tuple of str
        Parts (or families of parts) without which the detector sees nothing: its alerts are held.
    useful : tuple of str
        Parts without which it still judges, on less evidence.

    Returns
    -------
    tuple of Unknown
        One a refused call, in the order of the snapshot's parts.
    """
    blinding = {part.name for part in snapshot.refused(*blind)}
    return tuple(
        Unknown(
            detector=detector,
            subject=part.name,
            reason=_REASON[part.status],
            blind=part.name in blinding,
        )
        for part in snapshot.refused(*blind, *useful)
    )
