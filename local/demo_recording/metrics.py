"""What DCGM says of the demo's GPUs, as OpenMetrics text."""

from collections.abc import Callable, Iterator
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


def lines() -> Iterator[str]:
    """Write family by family, series by series, oldest sample first."""
    day, earlier = _minutes(HISTORY, TO), _minutes(NOTEBOOK_HISTORY, HISTORY)
    for metric, (every, text) in FAMILIES.items():
        yield f"# TYPE {metric} gauge\n"
        for job, pod, gpu in _seen_gpus():
            labels = (
                f'gpu="{gpu}",UUID="{gpu_uuid(job.node, gpu)}",modelName="NVIDIA H100 80GB HBM3",'
                f'Hostname="{NODES[job.node]}",namespace="{job.namespace}",pod="{pod}",'
                f'container="{job.container}"'
            )
            longer = job.name == "notebook-llm-eval" and metric == ACTIVITY
            for minute in [*(earlier if longer else ()), *day[::every]]:
                second = int(minute.timestamp()) + SCRAPE_SECOND[job.node]
                yield f"{metric}{{{labels}}} {text(_sample(job, gpu, minute))} {second}\n"
    yield "# EOF\n"


def _minutes(start: datetime, end: datetime) -> list[datetime]:
    return [start + timedelta(minutes=n) for n in range(int((end - start).total_seconds() // 60))]


def _seen_gpus() -> Iterator[tuple[Job, str, int]]:
    """List the GPUs that telemetry names a pod for: job, pod, index of the GPU on its node."""
    for job in JOBS:
        if job.telemetry:
            for number in range(job.pods * job.gpus):
                yield job, job.pod_name(number // job.gpus), number


def _sample(job: Job, gpu: int, minute: datetime) -> Sample:
    """Follow the script: a GPU works or is idle, and what it holds then is the job's own."""
    # Multiples of the golden ratio spread evenly over 0 to 1: variation without chance.
    noise = (0.618034 * (minute.timestamp() // 60 + 7 * gpu)) % 1
    memory, power = 528 + gpu, 74.0
    match job.name:
        case "notebook-llm-eval":
            idle, memory, power = minute >= NOTEBOOK_IDLE, 30_720 + 37 * gpu, 121.0
        case "sweep-vision":
            idle = minute >= SWEEP_IDLE and gpu == 6
        case "nightly-eval":
            idle = EVAL_IDLE <= minute < EVAL_AWAKE
        case _:
            idle = False
    if idle:
        return Sample(0, memory, 0, power + 2 * noise)
    return Sample(0.62 + 0.34 * noise, 62_410 + 113 * gpu, 0.21 + 0.2 * noise, 498 + 160 * noise)
