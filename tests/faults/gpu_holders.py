"""Wrong or missing GPU data: which card a series is of, and whose it is."""

from pathlib import Path

from tests.faults.kit import (
    Fault,
    cluster,
    every_minute,
    job,
)
from tests.handmade import NAMESPACE, NODE, metrics, node, series


def _wrong_gpu(folder: Path) -> None:
    cluster(folder, "08:00", [job("pair", "08:00", 2)])

    def card(uuid: str, index: str, device: str) -> dict[str, str]:
        return {
            "Hostname": NODE,
            "gpu": index,
            "device": device,
            "UUID": uuid,
            "namespace": NAMESPACE,
            "pod": "pair-0",
        }

    # Exporter index 1 is device minor 6, and the other way round; a restart at 10:30 renumbers.
    idle = every_minute("08:30", "08:59", 81) + every_minute("09:00", "10:29", 0)
    metrics(
        folder,
        series("", "", idle, labels=card("GPU-5f", "1", "nvidia6"))
        + series("", "", every_minute("10:30", "12:02", 0), labels=card("GPU-5f", "2", "nvidia6"))
        + series("", "", every_minute("08:30", "12:02", 80), labels=card("GPU-c2", "6", "nvidia1")),
    )


def _labels(folder: Path) -> None:
    there = "hyperpod-i-0b"
    jobs = [job("trainer", "08:00"), job("nameless", "08:00", 8, place=there)]
    cluster(folder, "08:00", jobs, nodes=[node(), node(there)])
    plain = {"Hostname": NODE, "UUID": "GPU-t", "namespace": NAMESPACE, "pod": "trainer-0"}
    exported = {
        "hostname": NODE,
        "UUID": "GPU-t",
        "namespace": "monitoring",
        "pod": "dcgm-exporter-x1",
        "exported_namespace": NAMESPACE,
        "exported_pod": "trainer-0",
    }
    idle = every_minute("08:30", "08:59", 80) + every_minute("09:00", "12:12", 0)
    lines = series("", "", idle, labels=plain) + series("", "", idle, labels=exported)
    for number in range(8):
        nobody = {"Hostname": there, "UUID": f"GPU-{number}", "namespace": "", "pod": ""}
        lines += series("", "", every_minute("10:45", "12:12", 0), labels=nobody)
    metrics(folder, lines)


def _finished_pod(folder: Path) -> None:
    cluster(folder, "07:00", [job("old", "07:00")])
    cluster(folder, "10:00:30", [job("old", "07:00", ended="10:00:20"), job("new", "10:00:30")])
    old = every_minute("07:01", "07:59", 80) + every_minute("08:00", "10:12", 0)
    metrics(
        folder,
        series("GPU-one", "old-0", old)
        + series("GPU-one", "new-0", every_minute("10:01", "11:12", 91)),
    )


def _no_series(folder: Path) -> None:
    cluster(folder, "08:00", [job("dark", "08:25", 2), job("dim", "08:25"), job("lit", "08:00")])
    metrics(folder, series("GPU-lit", "lit-0", every_minute("08:15", "10:02", 75)))


def _shared(folder: Path) -> None:
    names = ("share-a", "share-b", "share-c", "half-a", "half-b")
    sliced = node(gpus=24)
    sliced["metadata"]["labels"] |= {"nvidia.com/gpu.count": "8", "nvidia.com/gpu.replicas": "3"}
    cluster(folder, "08:00", [job(name, "08:00") for name in names], nodes=[sliced])
    lines = []
    for name in names:
        uuid, value = ("GPU-shared", 45) if name.startswith("share") else ("GPU-quiet", 0)
        lines += series(uuid, f"{name}-0", every_minute("08:30", "10:12", value))
    metrics(folder, lines)


FAULTS = (
    Fault(
        "A7-wrong-gpu",
        "11:52",
        "12:02",
        "Exporter index 1 is device minor 6, and index 6 is minor 1; a restart at 10:30 renumbers "
        "index 1 to 2. GPU-5f has been at 0 since 09:00, GPU-c2 is busy. Right: one stretch, of "
        "GPU-5f by its UUID and node; GPU-c2 is in no accusation.",
        _wrong_gpu,
    ),
    Fault(
        "A8-labels",
        "11:52",
        "12:12",
        "One GPU arrives as pod, namespace and Hostname, and again as exported_pod, "
        "exported_namespace and hostname (trainer). Eight series name no pod (nameless). Right: "
        "trainer is idle since 09:00 with one GPU, counted once; nameless is unknown, unattributed, "
        "and one telemetry finding says so for its eight GPUs, although all eight series are at 0.",
        _labels,
    ),
    Fault(
        "A9-finished-pod",
        "09:32",
        "11:12",
        "The old pod, idle since 08:00, ends at 10:00; the exporter goes on naming it, at 0, for 12 "
        "minutes. Its successor on the same GPU starts at 10:00:30 and shows 91. Right: the old one "
        "is released, two hours and not a minute more; the new one is busy, never idle, never "
        "shared.",
        _finished_pod,
    ),
    Fault(
        "A10-no-series",
        "09:22",
        "10:02",
        "Two jobs with 2 and 1 GPUs run without any series since 08:25; a third has some. Right: "
        "each has its unknown line, no_telemetry, from 09:27, when it is as old as the window; both "
        "count in the cluster's one telemetry finding, 3 GPUs since 08:25. Never idle.",
        _no_series,
    ),
    Fault(
        "A11-shared-gpus",
        "10:02",
        "10:12",
        "Three pods time-slice one card at 45 %, two pods another at 0. Right: no verdict on any of "
        "the pods, neither busy nor idle: unknown, shared_gpu.",
        _shared,
    ),
)
