"""Wrong or missing GPU data: what a series says, and what it leaves out."""

from pathlib import Path

from tests.faults.kit import (
    ENGINE,
    HELD,
    MINUTE,
    POLICY,
    POWER,
    POWER_LIMIT,
    TENSOR,
    Fault,
    Job,
    at,
    cluster,
    every_minute,
    job,
    with_readings,
)
from tests.handmade import NAMESPACE, NODE, metrics, node, series

INT32_BLANK, INT64_BLANK = 2147483632, 9223372036854775792
"""What DCGM writes where it has no value."""


def _impossible_values(folder: Path) -> None:
    cluster(folder, "09:00", [job(n, "09:00") for n in ("sweep", "blank", "steady", "ratio")])
    idle = every_minute("09:01", "09:59", 80) + every_minute("10:00", "15:02", 0)
    bad = {"14:10": 31400, "14:20": INT64_BLANK}
    busy = every_minute("13:25", "15:02", 80)
    metrics(
        folder,
        series("GPU-sweep", "sweep-0", with_readings(idle, bad))
        + series("GPU-blank", "blank-0", every_minute("13:25", "15:02", INT32_BLANK))
        + series("GPU-steady", "steady-0", with_readings(busy, {"14:15": 2**64 - 1}))
        + series(
            "GPU-ratio",
            "ratio-0",
            every_minute("13:25", "13:29", 0.7)
            + with_readings(every_minute("13:30", "15:02", 0), {"14:15": 97}),
            metric=ENGINE,
        ),
    )


def _mig(folder: Path) -> None:
    slices = [("busy", "3g.40gb"), ("quiet", "3g.40gb"), ("dark", "1g.10gb")]
    # One of the node's eight cards is partitioned: seven whole ones are left.
    partitioned = node(gpus=7)
    partitioned["status"]["capacity"] |= {
        "nvidia.com/mig-3g.40gb": "2",
        "nvidia.com/mig-1g.10gb": "1",
    }
    partitioned["metadata"]["labels"]["nvidia.com/gpu.count"] = "8"
    jobs = [
        Job(name=name, born="08:00", amounts={f"nvidia.com/mig-{profile}": "1"})
        for name, profile in slices
    ]
    cluster(folder, "08:00", jobs, nodes=[partitioned])
    labels = [
        {
            "Hostname": NODE,
            "UUID": "GPU-card",
            "GPU_I_PROFILE": profile,
            "GPU_I_ID": str(number),
            "namespace": NAMESPACE,
            "pod": f"{name}-0",
        }
        for number, (name, profile) in enumerate(slices, 1)
    ]
    idle = every_minute("08:01", "08:59", 0.5) + every_minute("09:00", "12:02", 0)
    recent = ("10:25", "12:02")
    metrics(
        folder,
        series("", "", every_minute(*recent, 0.61), metric=ENGINE, labels=labels[0])
        + series("", "", every_minute(*recent, 0), labels=labels[0])
        + series("", "", idle, metric=ENGINE, labels=labels[1])
        + series("", "", every_minute(*recent, 99), labels=labels[1]),
    )


def _late_idleness(folder: Path) -> None:
    cluster(folder, "00:00", [job("train", "00:00"), job("loaded", "08:00")])
    metrics(
        folder,
        series(
            "GPU-train",
            "train-0",
            every_minute("00:00", "08:59", 88) + every_minute("09:00", "12:02", 0),
        )
        + series("GPU-train", "train-0", every_minute("08:55", "12:02", 768), metric=HELD)
        + series(
            "GPU-loaded",
            "loaded-0",
            every_minute("08:01", "08:59", 88) + every_minute("09:00", "12:02", 0),
        )
        + series("GPU-loaded", "loaded-0", every_minute("08:55", "12:02", 40960), metric=HELD),
    )


def _sparse(folder: Path) -> None:
    policy = POLICY.replace("scrape_interval: 60s", "scrape_interval: 30s")
    (folder / "governance.yaml").write_text(policy.replace("window: 60m", "window: 90m"))
    cluster(folder, "08:00", [job("sweep", "08:00")])
    # Eleven, eight and a half minutes apart; the last on the window's very end.
    points = [(at("10:35") + 8.5 * n * MINUTE, 0) for n in range(11)]
    metrics(folder, series("GPU-sweep", "sweep-0", points))


def _exporter_down(folder: Path) -> None:
    cluster(folder, "07:00", [job("sweep", "07:00"), job("steady", "07:00")])
    metrics(
        folder,
        series(
            "GPU-sweep",
            "sweep-0",
            every_minute("07:01", "07:59", 80) + every_minute("08:00", "09:50", 0),
        )
        + series("GPU-steady", "steady-0", every_minute("07:55", "09:50", 70)),
    )


def _pod_deleted(folder: Path) -> None:
    cluster(folder, "07:00", [job("sweep", "07:00")])
    cluster(folder, "09:40", [])
    idle = every_minute("07:01", "07:59", 80) + every_minute("08:00", "09:39", 0)
    metrics(folder, series("GPU-sweep", "sweep-0", idle))


def _part_of_a_job(folder: Path) -> None:
    cluster(folder, "08:00", [job("train", "08:00", 4)])
    busy = {"GPU-0": 78, "GPU-1": 80, "GPU-3": 83}
    lines = [
        line
        for uuid, value in busy.items()
        for line in series(uuid, "train-0", every_minute("08:30", "12:02", value))
    ]
    idle = every_minute("08:30", "08:59", 81) + every_minute("09:00", "12:02", 0)
    metrics(folder, lines + series("GPU-2", "train-0", idle))


def _hang(folder: Path) -> None:
    cluster(
        folder, "08:00", [job("stuck", "08:00", 4), job("works", "08:00"), job("mute", "08:00")]
    )
    lines = []
    for number in range(4):
        uuid = f"GPU-{number}"
        pinned = every_minute("09:12", "09:39", 62) + every_minute("09:40", "10:32", 100)
        lines += series(uuid, "stuck-0", pinned)
        for metric, before, then in (
            (TENSOR, 0.41, 0),
            (POWER, 310, 90 + 3 * number),
            (POWER_LIMIT, 400, 400),
        ):
            points = every_minute("09:38", "09:39", before) + every_minute("09:40", "10:32", then)
            lines += series(uuid, "stuck-0", points, metric=metric)
    # As much utilisation at as little power, but its tensor cores work.
    lines += series("GPU-works", "works-0", every_minute("09:12", "10:32", 100))
    for metric, value in ((TENSOR, 0.35), (POWER, 95), (POWER_LIMIT, 400)):
        points = every_minute("09:38", "10:32", value)
        lines += series("GPU-works", "works-0", points, metric=metric)
    # As much utilisation, and nothing else is known.
    lines += series("GPU-mute", "mute-0", every_minute("09:12", "10:32", 100))
    metrics(folder, lines)


FAULTS = (
    Fault(
        "A1-impossible-values",
        "14:32",
        "15:02",
        "Readings that cannot be: 31,400 and a blank constant at 14:10 and 14:20 on a GPU that has "
        "been at 0 since 10:00 (sweep); nothing but blanks (blank); one 64-bit maximum on a busy GPU "
        "(steady); a percentage where a ratio belongs, on a GPU idle since 13:30 (ratio). Right: "
        "sweep and ratio are idle since 10:00 and 13:30, with 2 and 1 invalid samples dropped; "
        "steady is busy; blank is unknown, invalid_samples. One telemetry finding says so, once, "
        "for the four GPUs.",
        _impossible_values,
    ),
    Fault(
        "A2-mig",
        "11:32",
        "12:02",
        "A partitioned card. Engine activity is 0.61 in the first slice and 0 in the second since "
        "09:00; the third has no series. GPU_UTIL says the opposite of the first two, as it does "
        "under MIG. Right: the first is busy at 61 %; the second is idle, 3/7 of a GPU-hour an hour; "
        "the third is unknown, no_telemetry, 1/7 of a GPU.",
        _mig,
    ),
    Fault(
        "A3-late-idleness",
        "09:57",
        "12:02",
        "Nine hours at 88 %, then three at 0: the lifetime's mean is 66 %. Right: idle since 09:00 "
        "from the first window that saw nothing else (10:02), three idle GPU-hours at 12:02, with "
        "the 768 MiB it holds (train). With 40 GiB held it is idle_held (loaded).",
        _late_idleness,
    ),
    Fault(
        "A4-gaps-sparse",
        "12:02",
        "12:02",
        "A window of 90 minutes, sampled every 30 seconds: 180 samples expected, 11 present, all 0. "
        "Right: no finding; unknown, low_coverage, with its coverage of 6 %.",
        _sparse,
    ),
    Fault(
        "A4-gaps-exporter-down",
        "09:02",
        "10:32",
        "Idle since 08:00 and told so; the exporter dies after the sample of 09:50. Right: the "
        "finding stays open, counted to 09:50. Unknown from 10:07, when fewer than 48 of 60 samples "
        "are left; its card says so 15 minutes later; one telemetry_lost finding for the cluster, a "
        "page, since 09:50.",
        _exporter_down,
    ),
    Fault(
        "A4-gaps-pod-deleted",
        "09:02",
        "10:02",
        "Idle since 08:00 and told so; the pod is deleted at 09:40, and its series ends. Right: "
        "resolved as released, counted to its last sample at 09:39; nothing is unknown.",
        _pod_deleted,
    ),
    Fault(
        "A5-part-of-a-job",
        "11:52",
        "12:02",
        "One node, four GPUs of one job: three near 80 %, one at 0 since 09:00. Right: one finding "
        "that names that GPU and its node, three idle GPU-hours at 12:02, not twelve.",
        _part_of_a_job,
    ),
    Fault(
        "A6-hang-that-looks-busy",
        "10:02",
        "10:32",
        "Four GPUs pinned at 100 % since 09:40, 50 minutes at 90 to 99 W of a limit of 400 W, tensor "
        "activity 0; tensor activity and power are recorded from 09:38 on (stuck). One at 100 % and as little power whose tensor cores work (works). One "
        "at 100 % of which nothing else is known (mute). Right: stuck is a suspected hang since "
        "09:40, from the first window of 30 minutes that saw nothing else (10:12); no word of the "
        "other two.",
        _hang,
    ),
)
