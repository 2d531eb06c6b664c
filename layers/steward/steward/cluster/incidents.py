"""What a detector has told, so that it can tell the end of it: resolution and final numbers."""

from collections.abc import Callable, Iterable
from copy import replace
from datetime import datetime, timedelta

import msgspec

from steward.cluster.findings import Cleared, Finding, Resolution

REPEAT_CLEARED = timedelta(hours=2)
"""How long what ended is repeated in evaluations, so that a lost one loses no number."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as it was last told, and how it ended if it has."""

    finding: Finding
    cleared: datetime | None = None
    resolution: Resolution | None = None


def follow(
    told: Iterable[Told],
    findings: Iterable[Finding],
    ended: Callable[[Finding], Resolution | None],
    at: datetime,
) -> tuple[tuple[Told, ...], tuple[Cleared, ...]]:
    """Carry what was told over to this evaluation.

    Parameters
    ----------
    told : iterable of Told
        What the memory holds of one detector.
    findings : iterable of Finding
        What the detector finds now.
    ended : callable
        Asked of a finding that is no longer found: how it ended; None where that cannot be judged,
        and so is asked again at the next evaluation.
    at : datetime
        The evaluation's time.

    Returns
    -------
    tuple of Told
        For the memory.
    tuple of Cleared
        What has ended, repeated for :data:`REPEAT_CLEARED`.
    """
    now = {finding.key: finding for finding in findings}
    sole = {(f.detector, f.subject) for f in now.values() if f.one_reason}
    kept = {key: Told(finding=finding) for key, finding in now.items()}
    cleared = []
    for one in told:
        finding = one.finding
        if finding.key in now:
            continue
        resolution = one.resolution
        if (
            resolution is None
            and finding.one_reason
            and (finding.detector, finding.subject) in sole
        ):
            resolution = Resolution.REASON_CHANGED
        resolution = resolution or ended(finding)
        if resolution is None:
            kept[finding.key] = one
            continue
        since = one.cleared or at
        if at - since < REPEAT_CLEARED:
            kept[finding.key] = replace(one, cleared=since, resolution=resolution)
            cleared.append(Cleared(resolution=resolution, finding=finding))
    return tuple(kept[key] for key in sorted(kept)), tuple(cleared)
