"""Wrong ideas of "idle": what a claim is about, what it is not, and what follows from it."""

from pathlib import Path

from tests.faults.kit import (
    POLICY,
    Fault,
    at,
    cluster,
    every_minute,
    job,
)
from tests.handmade import NAMESPACE, metrics, series, write

TIMED_OUT = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": "the server was unable to return a response in the time allotted",
    "reason": "Timeout",
    "code": 504,
}


def _compile(folder: Path) -> None:
    cluster(folder, "05:58", [job("compile", "05:58"), job("set-up", "11:20")])
    seconds = [(when, 42 * n) for n, (when, _) in enumerate(every_minute("10:00", "12:02", 0))]
    metrics(
        folder,
        series("GPU-c", "compile-0", every_minute("06:00", "12:02", 0))
        + series("GPU-s", "set-up-0", every_minute("11:21", "12:02", 0))
        + series(
            "",
            "",
            seconds,
            metric="container_cpu_usage_seconds_total",
            labels={"namespace": NAMESPACE, "pod": "compile-0", "container": "main"},
        ),
    )


def _no_metrics(folder: Path) -> None:
    cluster(folder, "07:00", [job("sweep", "07:00", 2)])


def _time_out(folder: Path) -> None:
    jobs = [job("sweep", "07:00")]
    cluster(folder, "07:00", jobs)
    write(cluster(folder, "09:40", jobs, without=["pods"]) / "pods.json", TIMED_OUT)
    cluster(folder, "10:05", jobs)
    metrics(folder, _idle_since_eight("10:22"))


def _unknown_key(folder: Path) -> None:
    policy = POLICY.replace(
        "        window: 60m\n", "        idle_minuts: 45\n        windw: 45m\n"
    )
    (folder / "governance.yaml").write_text(policy)


def _notice(folder: Path) -> None:
    cluster(folder, "07:00", [job("sweep", "07:00")])
    metrics(folder, _idle_since_eight("09:22"))


def _idle_since_eight(stop: str) -> list[str]:
    idle = every_minute("07:01", "07:59", 80) + every_minute("08:00", stop, 0)
    return series("GPU-sweep", "sweep-0", idle)


def _low(folder: Path) -> None:
    cluster(folder, "07:00", [job(name, "07:00") for name in ("notebook", "loader", "drop")])
    bursts = every_minute("07:01", "12:02", 0)
    metrics(
        folder,
        series("GPU-n", "notebook-0", every_minute("07:01", "12:02", 22))
        # Three minutes of waiting for data, one of work: 22 % in the mean.
        + series(
            "GPU-l",
            "loader-0",
            [(when, 88 if (when - at("07:00")).seconds % 240 == 0 else 0) for when, _ in bursts],
        )
        + series(
            "GPU-d",
            "drop-0",
            every_minute("07:01", "09:59", 80) + every_minute("10:00", "12:02", 30),
        ),
    )


FAULTS = (
    Fault(
        "B1-cpu-busy",
        "11:32",
        "12:02",
        "A GPU at 0 for six hours while a compile keeps 70 % of a CPU busy (compile), and one that "
        "is being set up since 11:20 (set-up). Right: compile's GPU is idle since 06:00, and that "
        "is all that is claimed: what was measured stands beside it, and that the CPU was not. "
        "set-up is younger than the window: no word of it.",
        _compile,
    ),
    Fault(
        "B2-metrics-unreachable",
        "09:02",
        "09:22",
        "Prometheus does not answer at all. Right: unknown, unreadable, for the source and for the "
        "job whose GPUs it should have measured; nothing is idle.",
        _no_metrics,
    ),
    Fault(
        "B2-pods-time-out",
        "09:02",
        "10:22",
        "Idle since 08:00 and told so; from 09:40 to 10:05 the list of pods times out. Right: the "
        "finding stays open, and nothing else opens; the refused call has its unknown line from "
        "09:42 to 10:07.",
        _time_out,
    ),
    Fault(
        "B3-unknown-policy-key",
        "09:02",
        "09:02",
        "The policy says idle_minuts and windw, which are no keys. Right: nothing runs, exit status "
        "2, and each line names the key, its line and the keys that there are.",
        _unknown_key,
    ),
    Fault(
        "B4-no-kill",
        "09:02",
        "09:22",
        "One idle GPU. Right: a finding with a ready command and, on its card, who may run it. The "
        "steward itself only ever reads the cluster.",
        _notice,
    ),
    Fault(
        "B5-low-is-not-zero",
        "11:32",
        "12:02",
        "22 % for five hours (notebook), three minutes of waiting for one of work (loader), 80 % "
        "falling to 30 % at 10:00 (drop). Right: nothing at all: low is not zero, and neither is a "
        "sudden drop.",
        _low,
    ),
)
