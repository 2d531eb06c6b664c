"""Suspected hangs: what a window's signals say of one accelerator that looks busy.

A collective that waits for ever spins on the GPU: utilisation near 100 %, no tensor work, little
power. Utilisation alone is what good work shows too, and proves nothing.
Page: docs/detectors/idle.md.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from steward.cluster.accelerators import Accelerator, UnknownReason, Window, why_unknown
from steward.cluster.policy import HangLimits, Thresholds


class Sign(StrEnum):
    """What one signal says of a hang; silent: not measured, or not often enough."""

    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    SILENT = "silent"


class HangSigns(msgspec.Struct, frozen=True, kw_only=True):
    """What the hang window says of one accelerator.

    Attributes
    ----------
    pinned : bool or None
        Whether every sample of its activity reaches the limit; None: too few, or not judged.
    tensor, power : Sign
        Its tensor activity and power draw.
    """

    pinned: bool | None = None
    tensor: Sign = Sign.SILENT
    power: Sign = Sign.SILENT

    @property
    def hangs(self) -> bool | None:
        """Whether it shows a hang; False: something speaks against it; None: not proven."""
        signals = {self.tensor, self.power}
        if self.pinned is False or Sign.CONTRADICTS in signals:
            return False
        return True if self.pinned and Sign.SUPPORTS in signals else None


def judge_hang(
    accelerator: Accelerator, thresholds: Thresholds, window_end: datetime, *, readable: bool
) -> HangSigns:
    """Read the signs of a hang off one accelerator.

    Parameters
    ----------
    accelerator : Accelerator
        With activity, tensor and power windows of the hang's length, where they were measured.
    thresholds : Thresholds
        In force for its holder; coverage and start-up grace are those of idleness.
    window_end : datetime
        Where the windows end.
    readable : bool
        Whether the metrics source answered at all.

    Returns
    -------
    HangSigns
        Nothing while the holder does not span the hang window, where the source did not answer,
        and of a device that several pods share. A job is suspected to hang only if all of its
        accelerators show it.
    """
    limits, idle = thresholds.hang, thresholds.idle
    span = timedelta(minutes=max(limits.window_minutes, idle.startup_grace_minutes))
    if not readable or accelerator.shared_with or accelerator.holder.since > window_end - span:
        return HangSigns()
    window = _covered(accelerator.windows, thresholds)
    least = window.minimum if window else None
    tensor = _covered(accelerator.tensor, thresholds)
    # The draw of a card tells nothing of one of its slices.
    power = _covered(accelerator.power, thresholds) if accelerator.mig is None else None
    return HangSigns(
        pinned=None if least is None else least >= limits.activity_min,
        tensor=_sign(tensor, limits.tensor_max),
        power=_sign(power, watts_max(accelerator, limits)),
    )


def watts_max(accelerator: Accelerator, limits: HangLimits) -> float | None:
    """Give the highest draw that still is near idle; None where the card's limit is not known."""
    limit = accelerator.power_limit_watts
    return round(limits.power_max * limit, 6) if limit else None


def all_hang(signs: Iterable[HangSigns]) -> bool:
    """Tell whether every accelerator of a job shows a hang; a job without any shows none."""
    told = [one.hangs for one in signs]
    return bool(told) and all(told)


def why_unproven(
    accelerator: Accelerator, thresholds: Thresholds, window_end: datetime
) -> UnknownReason:
    """Tell why nothing can be said of a hang that was seen before."""
    window = find(accelerator.windows, thresholds.hang.window_minutes)
    if window is None or _covered(accelerator.windows, thresholds) is None:
        return why_unknown(accelerator, window, thresholds.idle, window_end)
    # Activity goes on; what showed the hang does not.
    signals = (*accelerator.tensor, *accelerator.power)
    some = any(w.present for w in signals if w.minutes == thresholds.hang.window_minutes)
    return UnknownReason.LOW_COVERAGE if some else UnknownReason.TELEMETRY_LOST


def find(windows: Iterable[Window], minutes: int) -> Window | None:
    """Find the window of that length."""
    return next((window for window in windows if window.minutes == minutes), None)


def _covered(windows: Iterable[Window], thresholds: Thresholds) -> Window | None:
    """Find the hang window, if enough of its samples are there."""
    window = find(windows, thresholds.hang.window_minutes)
    return window if window and window.coverage >= thresholds.idle.coverage_min else None


def _sign(window: Window | None, highest: float | None) -> Sign:
    if window is None or window.maximum is None or highest is None:
        return Sign.SILENT
    return Sign.SUPPORTS if window.maximum <= highest else Sign.CONTRADICTS
