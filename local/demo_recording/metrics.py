"""What DCGM says of the demo's GPUs, as OpenMetrics text."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from local.demo_recording.script import (
    EVAL_AWAKE,
    EVAL_IDLE,
    HISTORY,
    JOBS,
    NODES,
    NOTEBOOK_HISTORY,
    NOTEBOOK_IDLE,
    SWEEP_IDLE,
    TO,
    Job,
    Run,
    gpu_uuid,
)

SCRAPE_SECOND = (12, 27, 41, 53)
"""Second of the minute at which each node's exporter is scraped."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What DCGM says of a GPU at one minute: 0-1, MiB, 0-1, W."""

    engine: float
    memory: int
    tensor: float
    power: float


ACTIVITY = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
FAMILIES: dict[str, tuple[int, Callable[[Sample], str]]] = {
    ACTIVITY: (1, lambda sample: f"{sample.engine:.3g}"),
    "DCGM_FI_DEV_GPU_UTIL": (1, lambda sample: f"{100 * sample.engine:.0f}"),
    "DCGM_FI_DEV_FB_USED": (1, lambda sample: str(sample.memory)),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (2, lambda sample: f"{sample.tensor:.3g}"),
    "DCGM_FI_DEV_POWER_USAGE": (2, lambda sample: f"{sample.power:.1f}"),
}
"""Metric to the minutes between its samples and how DCGM prints it (0-1, percent, MiB, 0-1, W)."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A GPU that telemetry names a pod for: whose it is, which it is, and how long."""

    job: Job
    run: Run
    pod: str
    node: int
    gpu: int

    @property
    def labels(self) -> str:
        """Labels of its series."""
        return (
            f'gpu="{self.gpu}",UUID="{gpu_uuid(self.node, self.gpu)}",'
            f'modelName="NVIDIA H100 80GB HBM3",Hostname="{NODES[self.node]}",'
            f'namespace="{self.job.namespace}",pod="{self.pod}",container="{self.job.container}"'
        )

    def scrapes(self, minutes: Iterable[datetime]) -> Iterator[tuple[datetime, datetime]]:
        """Yield the minutes in which the pod was there when the exporter was scraped, and when."""
        for minute in minutes:
            at = minute + timedelta(seconds=SCRAPE_SECOND[self.node])
            if self.run.start <= at < self.run.end:
                yield minute, at


def lines() -> Iterator[str]:
    """Write family by family, series by series, oldest sample first."""
    day, earlier = _minutes(HISTORY, TO), _minutes(NOTEBOOK_HISTORY, HISTORY)
    for metric, (every, text) in FAMILIES.items():
        yield f"# TYPE {metric} gauge\n"
        for one in _watched():
            longer = one.job.name == "notebook-llm-eval" and metric == ACTIVITY
            for minute, at in one.scrapes([*(earlier if longer else ()), *day[::every]]):
                value = text(_sample(one.job, one.gpu, minute))
                yield f"{metric}{{{one.labels}}} {value} {int(at.timestamp())}\n"
    yield "# EOF\n"


def _minutes(start: datetime, end: datetime) -> list[datetime]:
    return [start + timedelta(minutes=n) for n in range(int((end - start).total_seconds() // 60))]


def _watched() -> Iterator[Watched]:
    for job in JOBS:
        for run in job.runs if job.telemetry else ():
            if run.end < HISTORY:
                continue
            for index, (node, first) in enumerate(job.places):
                for gpu in range(first, first + job.gpus):
                    yield Watched(job, run, job.pod_name(index, run), node, gpu)


def _sample(job: Job, gpu: int, minute: datetime) -> Sample:
    """Follow the script: a GPU works or is idle, and what it holds then is the job's own."""
    # Multiples of the golden ratio spread evenly over 0 to 1: variation without chance.
    noise = (0.618034 * (minute.timestamp() // 60 + 7 * gpu)) % 1
    memory, power = 528 + gpu, 74.0
    match job.name:
        case "notebook-llm-eval":
            idle, memory, power = minute >= NOTEBOOK_IDLE, 30_720 + 37 * gpu, 121.0
        case "sweep-vision":
            idle = minute >= SWEEP_IDLE and gpu == 3
        case "checkpoint-eval":
            idle = EVAL_IDLE <= minute < EVAL_AWAKE
        case _:
            idle = False
    if idle:
        return Sample(0, memory, 0, power + 2 * noise)
    return Sample(0.62 + 0.34 * noise, 62_410 + 113 * gpu, 0.21 + 0.2 * noise, 498 + 160 * noise)
