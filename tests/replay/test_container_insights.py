"""A cluster whose policy names Container Insights, through the real handlers."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from local.replay import ROOT, replay
from steward.errors import ConfigError
from tests.contract.cloudwatch import gpu, record
from tests.contract.cloudwatch import minutes as ending_at
from tests.recordings import RecordedPod, about_gpus, write_recording

START = datetime(2026, 11, 5, 9, 50, tzinfo=UTC)
END = START + timedelta(minutes=30)
BORN = START - timedelta(hours=4)
EKS = "ml-shared-01-eks"
SUBJECT = "Job/hyperpod-ns-research"
PART = "cloudwatch/GetMetricData"


def a_recording(folder):
    """Three pods: one works until 08:59 and idles from 09:00 on, one works, one has no points."""
    pods = [RecordedPod(name=f"{name}-0", start=BORN) for name in ("sweep", "busy", "dark")]
    write_recording(folder, pods, START, END)
    (folder / "metrics" / "dcgm.om").unlink()
    (folder / "metrics").rmdir()
    text = (ROOT / "layers/policy/governance.yaml").read_text()
    start, end = text.index("    metrics:\n"), text.index("    # What the quotas share out")
    (folder / "governance.yaml").write_text(
        f"{text[:start]}    metrics:\n      backend: container_insights\n\n{text[end:]}"
    )
    return folder


def with_points(folder):
    nine = START.replace(hour=9, minute=0)
    # The last points are of END itself: later than any virtual time sees.
    idle = ending_at(nine - timedelta(minutes=1), [80.0] * 180) + ending_at(END, [0.0] * 81)
    busy = ending_at(END, [70.0] * 240)
    held = "pod_gpu_memory_used"
    record(
        folder,
        [
            gpu(idle, cluster=EKS, pod="sweep-0"),
            gpu(ending_at(END, [2.0**28] * 81), cluster=EKS, pod="sweep-0", metric=held),
            gpu(busy, cluster=EKS, pod="busy-0"),
            gpu(ending_at(END, [0.0] * 240), cluster="another", pod="dark-0"),
        ],
    )
    return folder


def run(folder):
    told = []
    done = replay(folder, told.append)
    assert done.failures == 0
    return about_gpus(told)


def lines(told, kind, *keys):
    return [tuple(line[key] for key in keys) for line in told if line["type"] == kind]


def test_one_idles_one_works_and_one_cannot_be_judged(tmp_path):
    told = run(with_points(a_recording(tmp_path)))
    (idle,) = (f for f in told if f["type"] == "finding" and f["detector"] == "idle_gpus")
    # Windows end five minutes before a tick: the first whose whole window (t-65, t-5] lies after the
    # last busy minute, 08:59, is 10:05.
    assert (idle["at"], idle["status"]) == ("2026-11-05T10:05:00Z", "firing")
    assert (idle["subject"], idle["reason"]) == (f"{SUBJECT}/sweep-0-job", "idle")
    assert (idle["since"], idle["gpus"]) == ("2026-11-05T09:00:00Z", 1)
    # 09:00 to 10:00 is one hour of one GPU: 63.296 / 8 USD.
    assert (idle["gpu_hours"], idle["cost_usd"]) == (1.0, 7.91)
    assert idle["evidence"]["coverage"] == 1
    (accelerator,) = idle["evidence"]["accelerators"]
    assert accelerator["uuid"] == "hyperpod-ns-research/sweep-0/nvidia0"
    assert accelerator["idle_since"] == "2026-11-05T09:00:00Z"
    unknown = lines(told, "unknown", "at", "detector", "subject", "reason")
    assert unknown == [
        ("2026-11-05T09:50:00Z", "idle_gpus", f"{SUBJECT}/dark-0-job", "no_telemetry")
    ]
    (telemetry,) = (f for f in told if f["type"] == "finding" and f["detector"] == "telemetry")
    assert (telemetry["reason"], telemetry["gpus"]) == ("no_telemetry", 1)


def test_without_the_folder_there_are_no_metrics_which_is_not_a_refusal(tmp_path):
    told = run(a_recording(tmp_path))
    assert {u[1:] for u in lines(told, "unknown", "detector", "subject", "reason")} == {
        (f"{SUBJECT}/{name}-0-job", "no_telemetry") for name in ("sweep", "busy", "dark")
    }
    assert lines(told, "finding", "detector", "reason") == [("telemetry", "no_telemetry")]


def test_a_refusal_is_said_once_for_each_detector_that_needs_it_and_judges_nobody(tmp_path):
    folder = with_points(a_recording(tmp_path))
    error = {"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}
    (folder / "cloudwatch" / "ListMetrics.json").write_text(json.dumps(error))
    told = run(folder)
    refused = {u for u in lines(told, "unknown", "detector", "subject", "reason") if PART in u}
    assert refused == {("idle_gpus", PART, "denied"), ("telemetry", PART, "denied")}
    assert lines(told, "finding", "detector") == []


def test_a_malformed_file_ends_it_before_it_begins(tmp_path):
    folder = with_points(a_recording(tmp_path))
    (folder / "cloudwatch" / "more.json").write_text('{"MetricDataResults": [{"Label": "m1"}]}')
    with pytest.raises(ConfigError, match=r"more\.json: MetricDataResults\[0\]: has no Dimensions"):
        run(folder)
