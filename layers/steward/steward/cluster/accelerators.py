"""An accelerator as one tick saw it, and the verdict that its detection window allows."""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from steward.cluster.policy import IdleLimits


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The top owner of a pod: who would have to act, in Kubernetes' words."""

    kind: str
    namespace: str
    name: str

    @property
    def subject(self) -> str:
        """`<Kind>/<namespace>/<name>`, the identity that findings and alerts use."""
        return f"{self.kind}/{self.namespace}/{self.name}"


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The pod that an accelerator is allocated to.

    Attributes
    ----------
    since : datetime
        When the pod was bound to its node (its start time, else its creation).
    workload : str or None
        Name of the Kueue Workload that admitted it.
    created_by : str or None
        Person named by the label `sagemaker.user/created-by`.
    """

    namespace: str
    pod: str
    pod_uid: str
    since: datetime
    owner: Owner
    workload: str | None = None
    priority_class: str | None = None
    queue: str | None = None
    created_by: str | None = None


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of one signal of one accelerator over (end - minutes, end].

    Attributes
    ----------
    expected, present, invalid : int
        Samples that the scrape interval promises; valid samples seen; samples dropped because
        their value is impossible (not counted in `present`).
    minimum, maximum, mean : float or None
        Over the valid samples: activity and tensor activity 0-1, power in watts; None without any.
    """

    minutes: int
    expected: int
    present: int
    maximum: float | None
    mean: float | None
    minimum: float | None = None
    invalid: int = 0

    @property
    def coverage(self) -> float:
        """Share (0-1) of the expected samples that were seen; more than expected counts as all."""
        return min(1.0, self.present / self.expected) if self.expected else 0.0


class IdleSince(msgspec.Struct, frozen=True, kw_only=True):
    """Where a stretch (idle, or of a hang) began, as a look back over raw samples found it.

    Attributes
    ----------
    first, last : datetime
        First and last sample of the stretch.
    exact : bool
        False: the stretch is at least this long (the look-back ended or failed before it did).
    observed_seconds : float
        Time of it that samples cover: gaps longer than the coverage limit are left out.
    """

    first: datetime
    last: datetime
    exact: bool
    observed_seconds: float


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """One allocated accelerator (GPU, MIG instance or Neuron device).

    Attributes
    ----------
    uuid : str or None
        None where no series has named the device yet: then `ordinal` tells the pod's devices apart.
    mig : str or None
        `<profile>/<instance>` of a MIG slice, for example `3g.40gb/1`.
    fraction : float
        Share of a whole accelerator (3/7 for a 3g slice).
    usd_per_hour : float or None
        Price of the whole accelerator; None without a price.
    activity_metric : str or None
        The metric that the activity was read from.
    windows, tensor, power : tuple of Window
        Of its activity, tensor activity and power draw; the latter two over hang windows only, and
        empty where the metric is not exported, or is not the device's own (a MIG slice's power).
    power_limit_watts : float or None
        From its metric, else by model; None where neither says.
    ever_seen : bool or None
        Whether telemetry ever named it for this pod; None where that could not be looked up.
    shared_with : tuple of str
        Other pods that the same device is attributed to (`namespace/pod`).
    idle_since, hung_since : IdleSince or None
        What this tick's look-back found; None where it did not have to look, or could not.
    """

    node: str | None
    uuid: str | None
    holder: Holder
    ordinal: int = 0
    mig: str | None = None
    fraction: float = 1.0
    instance_type: str | None = None
    usd_per_hour: float | None = None
    activity_metric: str | None = None
    windows: tuple[Window, ...] = ()
    last_sample: datetime | None = None
    held_bytes: int | None = None
    tensor: tuple[Window, ...] = ()
    power: tuple[Window, ...] = ()
    power_limit_watts: float | None = None
    ever_seen: bool | None = None
    unattributed: bool = False
    shared_with: tuple[str, ...] = ()
    idle_since: IdleSince | None = None
    hung_since: IdleSince | None = None

    @property
    def key(self) -> str:
        """Identity that does not move: the pod (by UID) and the device it holds."""
        device = self.uuid or f"#{self.ordinal}"
        return "/".join(filter(None, (self.holder.pod_uid, device, self.mig)))

    def window(self, minutes: int) -> Window | None:
        """Window of that length, if the tick measured it."""
        return next((w for w in self.windows if w.minutes == minutes), None)


class State(StrEnum):
    """What the detection windows say of an accelerator; a hang is told of all of a job at once."""

    YOUNG = "young"
    BUSY = "busy"
    IDLE = "idle"
    IDLE_HELD = "idle_held"
    SUSPECTED_HANG = "suspected_hang"
    UNKNOWN = "unknown"


class UnknownReason(StrEnum):
    """Why something could not be judged."""

    DENIED = "denied"
    NO_TELEMETRY = "no_telemetry"
    TELEMETRY_LOST = "telemetry_lost"
    LOW_COVERAGE = "low_coverage"
    INVALID_SAMPLES = "invalid_samples"
    UNATTRIBUTED = "unattributed"
    SHARED_GPU = "shared_gpu"
    UNKNOWN_TYPE = "unknown_type"
    UNREADABLE = "unreadable"
    FAILED = "failed"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A state, and for an unknown one its reason."""

    state: State
    reason: UnknownReason | None = None

    @property
    def idle(self) -> bool:
        """Whether the accelerator is idle, memory held or not."""
        return self.state in {State.IDLE, State.IDLE_HELD}


RECENT = timedelta(minutes=5)
"""A series without a sample for this long has stopped (Prometheus' own look-back)."""


def judge(
    accelerator: Accelerator, limits: IdleLimits, window_end: datetime, *, readable: bool
) -> Verdict:
    """Judge one allocated accelerator over its detection window.

    Parameters
    ----------
    accelerator : Accelerator
        With the window of `limits.window_minutes`, if it was measured.
    limits : IdleLimits
        In force for the accelerator's holder.
    window_end : datetime
        Where the window ends: the tick less the metric delay.
    readable : bool
        Whether the metrics source answered at all.

    Returns
    -------
    Verdict
        young while the holder does not yet span the window; unknown with its reason where the
        samples do not carry a verdict (coverage below the limit is unknown, never idle and never
        busy); else busy, idle, or idle_held where memory is known to be held. Memory that was not
        measured is not taken for held.

    Notes
    -----
    Source of the defaults: docs/detectors/idle.md. Cost O(1).
    """
    span = timedelta(minutes=max(limits.window_minutes, limits.startup_grace_minutes))
    if accelerator.holder.since > window_end - span:
        return Verdict(state=State.YOUNG)
    if not readable:
        return Verdict(state=State.UNKNOWN, reason=UnknownReason.UNREADABLE)
    if accelerator.shared_with:
        return Verdict(state=State.UNKNOWN, reason=UnknownReason.SHARED_GPU)
    window = accelerator.window(limits.window_minutes)
    if window is None or window.maximum is None or window.coverage < limits.coverage_min:
        return Verdict(
            state=State.UNKNOWN, reason=why_unknown(accelerator, window, limits, window_end)
        )
    if window.maximum > limits.activity_max:
        return Verdict(state=State.BUSY)
    held = accelerator.held_bytes is not None and accelerator.held_bytes >= limits.held_bytes
    return Verdict(state=State.IDLE_HELD if held else State.IDLE)


def why_unknown(
    accelerator: Accelerator,
    window: Window | None,
    limits: IdleLimits,
    window_end: datetime,
) -> UnknownReason:
    """Tell what is wrong with a window whose samples carry no verdict."""
    present = window.present if window else 0
    invalid = window.invalid if window else 0
    expected = window.expected if window else 0
    if invalid and (present + invalid) >= limits.coverage_min * expected:
        return UnknownReason.INVALID_SAMPLES
    if accelerator.unattributed:
        return UnknownReason.UNATTRIBUTED
    if not present and not invalid:
        if accelerator.ever_seen is None:
            return UnknownReason.UNREADABLE
        return UnknownReason.TELEMETRY_LOST if accelerator.ever_seen else UnknownReason.NO_TELEMETRY
    recent = accelerator.last_sample is not None and accelerator.last_sample > window_end - RECENT
    return UnknownReason.LOW_COVERAGE if recent else UnknownReason.TELEMETRY_LOST
