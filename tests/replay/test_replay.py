"""Small recordings with right answers stated by hand, through the real handlers."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from local.metrics.server import available
from local.replay import ROOT, main, replay
from tests.recordings import RecordedPod, about_gpus, write_recording

START = datetime(2026, 11, 5, 9, 50, tzinfo=UTC)
END = START + timedelta(minutes=90)
BORN = START - timedelta(hours=4)


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


def minutes(start, stop, value):
    """A sample a minute in [start, stop)."""
    count = int((stop - start).total_seconds() // 60)
    return [(start + timedelta(minutes=n), value) for n in range(count)]


def at(text):
    hours, mins = text.split(":")
    return START.replace(hour=int(hours), minute=int(mins))


def wakes_up(name="sweep", idle=("9:00", "11:00"), stop=END):
    """Works, is idle in [idle), works again; two GPUs, of which the second never rests."""
    first = minutes(BORN, at(idle[0]), 80.0) + minutes(at(idle[0]), at(idle[1]), 0.0)
    if at(idle[1]) < stop:
        first += minutes(at(idle[1]), stop, 80.0)
    return RecordedPod(
        name=name,
        start=BORN,
        gpus=2,
        samples={
            "GPU-a": [p for p in first if p[0] < stop],
            "GPU-b": minutes(BORN, stop, 90.0),
        },
        held_mib={"GPU-a": minutes(BORN, stop, 100.0)},
    )


def run(folder):
    told = []
    done = replay(folder, told.append)
    return done, about_gpus(told)


def of(told, kind, **wanted):
    return [
        line
        for line in told
        if line["type"] == kind and all(line.get(k) == v for k, v in wanted.items())
    ]


def test_an_idle_gpu_opens_after_its_window_and_ends_with_its_last_idle_sample(tmp_path):
    done, told = run(write_recording(tmp_path, [wakes_up()], START, END))
    opened, ended = of(told, "finding")
    # Idle samples 09:00 ... 10:59. A tick's window ends two minutes before it: the first whose whole
    # window (t-62, t-2] lies after the last busy sample (08:59) is 10:05.
    assert (opened["at"], opened["status"]) == ("2026-11-05T10:05:00Z", "firing")
    assert opened["since"] == "2026-11-05T09:00:00Z"
    assert opened["subject"] == "Job/hyperpod-ns-research/sweep-job"
    assert (opened["team"], opened["reason"], opened["severity"]) == ("research", "idle", "warn")
    # 09:00 to 10:03 is 1.05 h of one GPU; 63.296 / 8 = 7.912 USD an hour.
    assert (opened["gpus"], opened["gpu_hours"], opened["cost_usd"]) == (1, 1.05, 8.31)
    # The tick 11:05 sees 11:00 ... 11:03 busy; last seen idle at 11:00, so ten minutes later it ends.
    assert (ended["at"], ended["status"]) == ("2026-11-05T11:10:00Z", "resolved")
    assert ended["resolution"] == "active_again"
    # 09:00 to 10:59 is 1 h 59 min.
    assert (ended["gpu_hours"], ended["cost_usd"]) == (round(119 / 60, 6), 15.69)
    assert done.failures == 0
    assert told[-1]["type"] == "summary"
    assert told[-1]["ticks"] == 19  # 90 minutes of five, both ends included
    assert told[-1]["open"] == []
    posts = of(told, "slack", method="chat.postMessage")
    assert len(posts) == 1
    assert len({call["response"]["ts"] for call in of(told, "slack")}) == 1  # one card, edited


def test_lines_are_in_the_order_of_their_times_and_the_summary_is_last(tmp_path):
    _, told = run(write_recording(tmp_path, [wakes_up()], START, END))
    times = [line["at"] for line in told]
    assert times == sorted(times)
    assert [line["type"] for line in told].count("summary") == 1


def test_a_job_that_ends_while_idle_is_released(tmp_path):
    pod = RecordedPod(
        name="gone",
        start=BORN,
        end=at("10:33"),
        samples={"GPU-a": minutes(BORN, at("9:00"), 80.0) + minutes(at("9:00"), at("10:33"), 0.0)},
    )
    _, told = run(write_recording(tmp_path, [pod], START, END))
    _, ended = of(told, "finding")
    assert ended["resolution"] == "released"
    assert ended["gpu_hours"] == round(92 / 60, 6)  # 09:00 to 10:32, its last sample
    assert ended["at"] == "2026-11-05T10:40:00Z"  # last seen 10:30


def test_denied_pods_say_so_and_open_and_resolve_nothing(tmp_path):
    folder = write_recording(tmp_path, [wakes_up(idle=("9:00", "12:00"))], START, END)
    for path in (folder / "kubernetes").iterdir():
        (path / "pods.json").unlink()
    done, told = run(folder)
    assert of(told, "finding") == []
    assert {(u["detector"], u["subject"], u["reason"]) for u in of(told, "unknown")} == {
        ("idle_gpus", "kubernetes/pods", "denied"),
        ("telemetry", "kubernetes/pods", "denied"),
    }
    assert done.failures == 0


def test_metrics_that_stop_half_way_neither_open_nor_resolve(tmp_path):
    # Idle since 09:00; the exporter dies after the sample of 10:29; the job is idle for ever after.
    pod = wakes_up(idle=("9:00", "12:00"), stop=at("10:30"))
    busy = RecordedPod(
        name="busy", node=1, start=BORN, samples={"GPU-c": minutes(BORN, at("10:30"), 70.0)}
    )
    done, told = run(write_recording(tmp_path, [pod, busy], START, END))
    idle = of(told, "finding", detector="idle_gpus")
    assert [(f["status"], f["subject"]) for f in idle] == [
        ("firing", "Job/hyperpod-ns-research/sweep-job")
    ]
    # 48 of 60 samples are 80 %. At 10:40 the window (09:38, 10:38] holds 09:39 ... 10:29: 51. At
    # 10:45 it holds 46, which is too few.
    lost = of(told, "unknown", detector="idle_gpus")
    assert [(u["at"], u["subject"], u["reason"]) for u in lost] == [
        ("2026-11-05T10:45:00Z", "Job/hyperpod-ns-research/busy-job", "telemetry_lost"),
        ("2026-11-05T10:45:00Z", "Job/hyperpod-ns-research/sweep-job", "telemetry_lost"),
    ]
    # One finding for the whole cluster, ten minutes after it was first seen.
    (telemetry,) = of(told, "finding", detector="telemetry")
    assert (telemetry["at"], telemetry["reason"]) == ("2026-11-05T10:55:00Z", "telemetry_lost")
    assert (telemetry["severity"], telemetry["gpus"]) == ("page", 3)
    assert telemetry["since"] == "2026-11-05T10:29:00Z"
    open_now = {line["subject"] for line in told[-1]["open"]}
    assert open_now == {"Job/hyperpod-ns-research/sweep-job", "Cluster/ml-shared-01"}
    assert done.failures == 0


def test_a_sagemaker_field_that_does_not_exist_yet_changes_nothing(tmp_path):
    plain = write_recording(tmp_path / "plain", [wakes_up()], START, END)
    newer = write_recording(tmp_path / "newer", [wakes_up()], START, END)
    path = newer / "sagemaker" / "DescribeCluster.json"
    answer = json.loads(path.read_text())
    answer["QuantumAllowance"] = {"Qubits": 12}
    answer["InstanceGroups"][0]["FutureStatus"] = "Sublimated"
    path.write_text(json.dumps(answer))
    assert run(newer)[1] == run(plain)[1]


def test_all_three_faults_at_once(tmp_path):
    folder = write_recording(
        tmp_path, [wakes_up(idle=("9:00", "12:00"), stop=at("10:00"))], START, END
    )
    for path in (folder / "kubernetes").iterdir():
        (path / "pods.json").unlink()
    cluster = folder / "sagemaker" / "DescribeCluster.json"
    cluster.write_text(json.dumps(json.loads(cluster.read_text()) | {"New": [1]}))
    done, told = run(folder)
    assert (done.failures, of(told, "finding")) == (0, [])
    assert {u["subject"] for u in of(told, "unknown")} == {"kubernetes/pods"}


def test_an_unreachable_prometheus_has_a_line_for_each_detector_and_each_job(tmp_path):
    folder = write_recording(tmp_path, [wakes_up()], START, START + timedelta(minutes=10))
    for path in (folder / "metrics").iterdir():
        path.unlink()
    (folder / "metrics").rmdir()
    done, told = run(folder)
    assert {(u["detector"], u["subject"], u["reason"]) for u in of(told, "unknown")} == {
        ("idle_gpus", "prometheus", "unreadable"),
        ("telemetry", "prometheus", "unreadable"),
        ("idle_gpus", "Job/hyperpod-ns-research/sweep-job", "unreadable"),
    }
    assert done.failures == 0


def test_everything_denied_is_no_failure(tmp_path):
    (tmp_path / "recording.yaml").write_text(
        "cluster: ml-shared-01\nfrom: 2026-11-05T08:00:00Z\nto: 2026-11-05T08:05:00Z\n"
    )
    done, told = run(tmp_path)
    assert (done.failures, of(told, "finding")) == (0, [])
    reasons = {(u["subject"], u["reason"]) for u in of(told, "unknown")}
    assert ("kubernetes/pods", "denied") in reasons
    assert ("prometheus", "unreadable") in reasons


def test_the_first_half_of_a_recording_prints_the_first_half_of_the_lines(tmp_path):
    whole = run(write_recording(tmp_path / "whole", [wakes_up()], START, END))[1]
    half = run(write_recording(tmp_path / "half", [wakes_up()], START, at("10:10")))[1]
    assert half[:-1] == whole[: len(half) - 1]
    assert len(half) > 2  # the opening lies in the first half
    assert [line["at"] for line in whole[len(half) - 1 :]] > ["2026-11-05T10:10:00Z"]


def test_two_runs_print_the_same_bytes_and_nothing_else_on_stdout(tmp_path):
    folder = write_recording(tmp_path, [wakes_up()], START, at("10:30"))
    command = [sys.executable, "-m", "local.replay", str(folder)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(["", "layers/steward"])}
    runs = [
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    lines = runs[0].stdout.decode().splitlines()
    assert [json.loads(line)["type"] for line in lines][-1] == "summary"


def test_an_event_asks_for_a_snapshot_between_two_ticks(tmp_path):
    # Idle from 09:00; the health event at 10:02:30 looks at (09:00:30, 10:00:30] ... not idle yet at
    # 09:58's tick, idle for the event's window: it opens there, not at the tick of 10:05.
    folder = write_recording(tmp_path, [wakes_up()], START, END)
    (folder / "events").mkdir()
    event = {
        "version": "0",
        "id": "e-1",
        "detail-type": "SageMaker HyperPod Cluster Node Health Event",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "time": "2026-11-05T10:02:30Z",
        "region": "us-east-1",
        "resources": [],
        "detail": {"ClusterName": "ml-shared-01", "InstanceId": "i-0", "HealthSummary": {}},
    }
    (folder / "events" / "health.json").write_text(json.dumps(event))
    _, told = run(folder)
    opened = of(told, "finding", status="firing")
    assert [line["at"] for line in opened] == ["2026-11-05T10:02:30Z"]


def test_an_event_outside_the_period_asks_for_nothing(tmp_path):
    folder = write_recording(tmp_path, [wakes_up()], START, at("10:00"))
    (folder / "events").mkdir()
    event = {
        "detail-type": "Snapshot Requested",
        "source": "gpu-steward",
        "time": "2026-11-05T10:02:30Z",
        "detail": {"cluster": "ml-shared-01"},
    }
    (folder / "events" / "late.json").write_text(json.dumps(event))
    assert of(run(folder)[1], "finding") == []


def test_a_malformed_event_is_a_failure_line_and_the_replay_goes_on(tmp_path):
    folder = write_recording(tmp_path, [wakes_up()], START, at("10:10"))
    (folder / "events").mkdir()
    event = {
        "detail-type": "Snapshot Requested",
        "source": "gpu-steward",
        "time": "2026-11-05T09:55:00Z",
        "detail": "not an object",
    }
    (folder / "events" / "bad.json").write_text(json.dumps(event))
    done, told = run(folder)
    (failure,) = of(told, "failure")
    assert (failure["function"], done.failures) == ("take_snapshot", 1)
    assert len(of(told, "finding")) == 1
    assert told[-1]["failures"] == 1


def test_a_stored_snapshot_stands_for_all_sources(tmp_path):
    live = write_recording(tmp_path / "live", [wakes_up()], START, END)
    done, told = run(live)
    stored = tmp_path / "stored"
    (stored / "snapshots").mkdir(parents=True)
    (stored / "recording.yaml").write_text((live / "recording.yaml").read_text())
    for key, data in done.app.objects.objects.items():
        if key.startswith("snapshots/"):
            (stored / "snapshots" / key.rpartition("/")[2]).write_bytes(data)
    assert of(run(stored)[1], "finding") == of(told, "finding")


def test_a_single_tick_is_a_recording_with_now(tmp_path):
    folder = write_recording(tmp_path, [wakes_up()], START, END)
    (folder / "recording.yaml").write_text("cluster: ml-shared-01\nnow: 2026-11-05T10:05:00Z\n")
    done, told = run(folder)
    assert done.ticks == 1
    assert [line["at"] for line in of(told, "finding")] == ["2026-11-05T10:05:00Z"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from: 2026-11-05T08:00:00Z\nto: 2026-11-05T09:00:00Z\n", "cluster"),
        ("cluster: nobody\nfrom: 2026-11-05T08:00:00Z\nto: 2026-11-05T09:00:00Z\n", "nobody"),
        ("cluster: ml-shared-01\nfrom: 2026-11-05T08:00:00\nto: 2026-11-05T09:00:00Z\n", "from"),
        ("cluster: ml-shared-01\nfrom: 2026-11-05T10:00:00Z\nto: 2026-11-05T09:00:00Z\n", "to"),
    ],
)
def test_a_bad_recording_is_one_line_on_stderr_and_exit_2(tmp_path, capsys, text, names):
    (tmp_path / "recording.yaml").write_text(text)
    assert main([str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert names in err
    assert "recording.yaml" in err


def test_a_missing_folder_is_exit_2(tmp_path, capsys):
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_a_bad_policy_is_exit_2_with_file_and_key(tmp_path, capsys):
    folder = write_recording(tmp_path, [wakes_up()], START, at("9:55"))
    good = (ROOT / "layers/policy/governance.yaml").read_text()
    (folder / "governance.yaml").write_text(good.replace("tick:", "tik:"))
    assert main([str(folder)]) == 2
    err = capsys.readouterr().err
    assert "governance.yaml" in err
    assert "tik" in err
    assert "tick" in err


@pytest.mark.prometheus
@pytest.mark.skipif(not available(), reason="prometheus and promtool are not installed")
def test_a_real_prometheus_and_the_reader_in_process_tell_the_same(tmp_path, monkeypatch):
    folder = write_recording(tmp_path, [wakes_up()], START, END)
    recorded = run(folder)[1]
    monkeypatch.setenv("METRICS", "prometheus")
    assert run(folder)[1] == recorded
    assert of(recorded, "finding")
