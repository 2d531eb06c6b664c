"""What the raw samples of a job say of a suspected hang: a second, slow and plain reading.

Belongs to `tests.replay_oracle`, and like it shares no code with the steward.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from tests.recordings import RecordedPod

WINDOW = timedelta(minutes=30)
ENOUGH = 24
"""80 % of the 30 samples that half an hour should have."""
OUTAGE = timedelta(minutes=6)
"""What that leaves: a longer gap is not counted."""
LOOK_BACK = timedelta(minutes=5)

PINNED, TENSOR_MAX, WATTS_MAX = 95.0, 0.005, 100.0
"""Of the draw 25 % of the 400 W that recordings tell."""

type Points = Sequence[tuple[datetime, float]]


@dataclass(frozen=True)
class Gpu:
    """The valid samples of one GPU since its pod began.

    `dropped` are the times of the utilisation samples that cannot be true.
    """

    util: Points
    tensor: Points
    watts: Points
    dropped: Sequence[datetime]

    @classmethod
    def of(cls, pod: RecordedPod, name: str) -> "Gpu":
        """Take a pod's samples apart; those of before it began are another's."""

        def own(points: Points, highest: float) -> Points:
            return [(t, v) for t, v in points if t >= pod.start and 0 <= v <= highest]

        valid = own(pod.samples[name], 100)
        times = {t for t, _ in valid}
        return cls(
            util=valid,
            tensor=own(pod.tensor.get(name, ()), 1),
            watts=own(pod.watts.get(name, ()), 10_000),
            dropped=[t for t, _ in pod.samples[name] if t >= pod.start and t not in times],
        )


@dataclass(frozen=True)
class Signs:
    """What half an hour says: pinned or not; of the others True speaks for a hang.

    None: there is too little of it.
    """

    pinned: bool | None
    tensor: bool | None
    watts: bool | None

    @property
    def hangs(self) -> bool | None:
        """Whether it shows a hang; None: neither that, nor the contrary."""
        if False in {self.pinned, self.tensor, self.watts}:
            return False
        return True if self.pinned and True in {self.tensor, self.watts} else None

    @property
    def supports(self) -> frozenset[str]:
        """Signals that speak for a hang."""
        told = {"tensor": self.tensor, "watts": self.watts}
        return frozenset(name for name, value in told.items() if value)

    @property
    def spoken(self) -> frozenset[str]:
        """Signals that speak for or against one."""
        told = {"tensor": self.tensor, "watts": self.watts}
        return frozenset(name for name, value in told.items() if value is not None)


def within(points: Points, end: datetime) -> list[float]:
    """Values of the half hour that ends there."""
    return [v for t, v in points if end - WINDOW < t <= end]


def signs(gpu: Gpu, end: datetime) -> Signs:
    """Read the window that ends there."""
    util, tensor, watts = (within(p, end) for p in (gpu.util, gpu.tensor, gpu.watts))
    return Signs(
        pinned=min(util) >= PINNED if len(util) >= ENOUGH else None,
        tensor=max(tensor) <= TENSOR_MAX if len(tensor) >= ENOUGH else None,
        watts=max(watts) <= WATTS_MAX if len(watts) >= ENOUGH else None,
    )


def work(gpu: Gpu, believed: frozenset[str]) -> Iterator[datetime]:
    """Times of the samples that a hang does not have; signals not believed have no say."""
    yield from (t for t, v in gpu.util if v < PINNED)
    if "tensor" in believed:
        yield from (t for t, v in gpu.tensor if v > TENSOR_MAX)
    if "watts" in believed:
        yield from (t for t, v in gpu.watts if v > WATTS_MAX)


def hours(times: Sequence[datetime]) -> float:
    """Hours between samples, without what lies in an outage."""
    spans = [b - a for a, b in pairwise(times)]
    return sum((s for s in spans if s <= OUTAGE), timedelta()).total_seconds() / 3600


@dataclass
class Hang:
    """A job's suspected hang that was told: of each GPU the samples that show it, and by what."""

    gpus: Mapping[str, Gpu]
    seen: datetime
    since: datetime
    believed: dict[str, frozenset[str]] = field(default_factory=dict)
    runs: dict[str, list[datetime]] = field(default_factory=dict)

    @property
    def spent(self) -> float:
        """GPU-hours."""
        return sum(hours(run) for run in self.runs.values())


def run_up_to(gpu: Gpu, believed: frozenset[str], end: datetime) -> list[datetime]:
    """Times of the utilisation samples after the newest one of any signal that shows work."""
    newest = max((t for t in work(gpu, believed) if t <= end), default=None)
    return [t for t, _ in gpu.util if t <= end and (newest is None or t > newest)]


def show(hang: Hang | None, gpus: Mapping[str, Gpu], now: datetime, end: datetime) -> Hang:
    """Bring a hang up to date that all GPUs of a job show; it began when the last of them did."""
    told = {name: signs(gpu, end) for name, gpu in gpus.items()}
    runs = {name: run_up_to(gpu, told[name].supports, end) for name, gpu in gpus.items()}
    begun = max(run[0] for run in runs.values())
    if hang is None or any(runs[name][0] > run[-1] for name, run in hang.runs.items()):
        hang = Hang(gpus=gpus, seen=now, since=begun)  # work that nobody saw has ended it
    hang.seen = now
    for name, run in runs.items():
        hang.believed[name] = hang.believed.get(name, frozenset()) | told[name].supports
        # What has been told of the beginning stays, whatever another signal comes to say of it.
        first = hang.runs[name][0] if name in hang.runs else max(run[0], begun)
        hang.runs[name] = [t for t, _ in gpus[name].util if first <= t <= end]
    hang.since = min(run[0] for run in hang.runs.values())
    return hang


def follow_to_the_end(
    hang: Hang, now: datetime, end: datetime, *, held: bool
) -> tuple[dict[str, list[datetime]], datetime | None]:
    """Count on to the first sample that shows work on any GPU; give what shows it, and that time."""
    found = []
    for name, gpu in hang.gpus.items():
        believed = hang.believed[name] | (signs(gpu, end).spoken if held else frozenset())
        found += [t for t in work(gpu, believed) if hang.runs[name][-1] < t <= now]
    cut = min(found, default=None)
    runs = {}
    for name, gpu in hang.gpus.items():
        last = hang.runs[name][-1]
        more = [t for t, _ in gpu.util if last < t <= now and not (cut and t >= cut)]
        runs[name] = hang.runs[name] + more
    return runs, cut


def quiet(hang: Hang, cut: datetime | None, now: datetime) -> bool:
    """Whether no GPU does anything: five minutes up to its newest sample at most at 1 %."""
    if cut is None:
        return False
    for gpu in hang.gpus.values():
        after = [(t, v) for t, v in gpu.util if cut <= t <= now]
        if after and any(v > 1 for t, v in after if t > after[-1][0] - LOOK_BACK):
            return False
    return True


def why_unknown(gpu: Gpu, end: datetime) -> str:
    """Why nothing can be said of a hang that was seen before."""
    util = within(gpu.util, end)
    if len(util) >= ENOUGH:
        others = within(gpu.tensor, end) or within(gpu.watts, end)
        return "low_coverage" if others else "telemetry_lost"
    dropped = sum(end - WINDOW < t <= end for t in gpu.dropped)
    if dropped and len(util) + dropped >= ENOUGH:
        return "invalid_samples"
    newest = max((t for t in (*dict(gpu.util), *gpu.dropped) if t <= end), default=None)
    recent = newest is not None and newest > end - LOOK_BACK
    return "low_coverage" if recent else "telemetry_lost"
