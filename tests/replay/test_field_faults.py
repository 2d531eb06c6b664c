"""What goes wrong in the field, recorded one by one under tests/recordings/faults; right by hand.

Windows are 60 minutes, a sample a minute, and end two minutes before their tick: at 10:02 a window
holds the samples of 09:01 to 10:00. Idle hours run from the first to the last idle sample that a
tick saw, and a GPU-hour costs 63.296 / 8 = 7.912 USD. Other detectors may have more to say of these
clusters: only lines of `idle_gpus` and `telemetry` are looked at.
"""

import filecmp
import json
import re

import pytest

from local import rig
from local.recording import Recording
from local.replay import main, replay
from tests.faults import gpu_holders, gpu_values, idle_claims
from tests.faults.kit import RECORDINGS, stamp, subject
from tests.handmade import NODE

FAULTS = (*gpu_values.FAULTS, *gpu_holders.FAULTS, *idle_claims.FAULTS)
CLUSTER = "Cluster/ml-shared-01"
GROUPS = {"A": 11, "B": 5}


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


class Told:
    """The lines of a replay that speak of GPUs and their telemetry."""

    def __init__(self, folder):
        lines = []
        assert replay(RECORDINGS / folder, lines.append).failures == 0
        self.summary = lines[-1]
        self.slack = [line for line in lines if line["type"] == "slack"]
        ours = [line for line in lines if line.get("detector") in {"idle_gpus", "telemetry"}]
        self.found = [line for line in ours if line["type"] == "finding"]
        self.dark = [line for line in ours if line["type"] == "unknown"]

    @property
    def findings(self):
        return [
            (f["at"], f["status"], f["subject"], f["reason"], f["since"], f["gpus"])
            for f in self.found
        ]

    @property
    def unknown(self):
        return [
            (u["at"], u["detector"], u["subject"], u["reason"], "ended" in u) for u in self.dark
        ]

    def opened(self, name):
        """The one finding that opened for a job."""
        (found,) = (f for f in self.found if f["subject"] == subject(name))
        assert found["status"] == "firing"
        return found

    def at_the_end(self, name):
        """The same finding, as the last tick left it."""
        (found,) = (f for f in self.summary["open"] if f["subject"] == subject(name))
        return found


def firing(at, name, reason, since, gpus=1):
    return (stamp(at), "firing", name if "/" in name else subject(name), reason, since, gpus)


def dark(at, name, reason, *, detector="idle_gpus", ended=False):
    return (stamp(at), detector, name if "/" in name else subject(name), reason, ended)


# --- the recordings themselves -------------------------------------------------------------------


def test_every_kind_of_fault_has_its_recording():
    kinds = {fault.folder.partition("-")[0] for fault in FAULTS}
    assert kinds == {f"{group}{n + 1}" for group, count in GROUPS.items() for n in range(count)}
    assert {path.name for path in RECORDINGS.iterdir()} == {fault.folder for fault in FAULTS}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.folder)
def test_a_recording_is_small_and_what_its_description_writes(tmp_path, fault):
    """`python -m tests.faults` writes them; nobody edits one by hand."""
    written, kept = fault.record(tmp_path), RECORDINGS / fault.folder
    names = sorted(str(p.relative_to(written)) for p in written.rglob("*") if p.is_file())
    assert names == sorted(str(p.relative_to(kept)) for p in kept.rglob("*") if p.is_file())
    assert filecmp.cmpfiles(written, kept, names, shallow=False) == (names, [], [])
    assert sum((kept / name).stat().st_size for name in names) < 200_000
    assert "Right:" in Recording.open(kept).note


# --- A: wrong or missing GPU data ----------------------------------------------------------------


def test_a1_impossible_values_decide_nothing_and_are_said_once():
    told = Told("A1-impossible-values")
    # The window of the first tick, 14:32, ends at 14:30. `ratio` has been at 0 since 13:30 (its 97
    # at 14:15 is no ratio), `sweep` since 10:00. `steady`, with one 64-bit maximum, is busy.
    (ratio, sweep, telemetry) = told.findings
    assert ratio == firing("14:32", "ratio", "idle", stamp("13:30"))
    assert sweep == firing("14:32", "sweep", "idle", stamp("10:00"))
    # Nothing but blank constants: neither idle nor busy.
    assert told.unknown == [dark("14:32", "blank", "invalid_samples")]
    # 60 samples expected and seen; two of them, 31,400 and a blank, are dropped.
    evidence = told.opened("sweep")["evidence"]
    assert evidence["samples"] == {"present": 58, "expected": 60, "invalid": 2}
    assert (evidence["coverage"], evidence["activity_max"]) == (round(58 / 60, 6), 0)
    assert told.opened("ratio")["evidence"]["samples"]["invalid"] == 1
    # 10:00 to 15:00 are five hours: the two holes of a minute are no gap.
    end = told.at_the_end("sweep")
    assert (end["gpu_hours"], end["cost_usd"]) == (5, 39.56)
    # One line for the cluster, ten minutes after it was first seen. At 14:42 the window holds two
    # dropped samples of sweep, 60 of blank and one of steady, and one of ratio: four GPUs.
    assert telemetry[:4] == (stamp("14:42"), "firing", CLUSTER, "invalid_samples")
    said = told.found[-1]
    assert said["evidence"]["dropped"] == {
        "DCGM_FI_DEV_GPU_UTIL": 63,
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1,
    }
    assert said["gpus"] == 4


def test_a2_a_mig_slice_is_a_device_and_only_engine_activity_speaks_of_it():
    told = Told("A2-mig")
    # Three of a card's seven slices; 09:00 to 11:30 is two and a half hours of them.
    fraction = round(3 / 7, 6)
    assert told.findings == [
        firing("11:32", "quiet", "idle", stamp("09:00"), fraction),
        # Ten minutes after it was first seen; since the pod is there.
        firing("11:42", CLUSTER, "no_telemetry", stamp("08:00"), round(1 / 7, 6)),
    ]
    opened = told.opened("quiet")
    assert opened["gpu_hours"] == round(2.5 * 3 / 7, 6)
    (slice_,) = opened["evidence"]["accelerators"]
    assert (slice_["node"], slice_["uuid"], slice_["mig"]) == (NODE, "GPU-card", "3g.40gb/2")
    assert opened["evidence"]["activity_metric"] == "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    # Until 12:00: 3 h x 3/7 = 1.285714 GPU-hours, at an eighth of the instance's price.
    end = told.at_the_end("quiet")
    assert (end["gpu_hours"], end["cost_usd"]) == (round(9 / 7, 6), 10.17)
    assert told.unknown == [dark("11:32", "dark", "no_telemetry")]
    assert told.dark[0]["gpus"] == round(1 / 7, 6)


def test_a3_the_recent_window_decides_and_not_the_mean_of_a_lifetime():
    told = Told("A3-late-idleness")
    # At 09:57 the window still holds 88 %; that of 10:02 is the first without.
    assert told.findings == [
        firing("10:02", "loaded", "idle_held", stamp("09:00")),
        firing("10:02", "train", "idle", stamp("09:00")),
    ]
    assert told.opened("train")["gpu_hours"] == 1
    # 09:00 to 12:00: three hours, not twelve and not none.
    end = told.at_the_end("train")
    assert (end["gpu_hours"], end["cost_usd"]) == (3, 23.74)
    held = {
        name: told.opened(name)["evidence"]["accelerators"][0]["held_bytes"]
        for name in ("train", "loaded")
    }
    assert held == {"train": 768 * 2**20, "loaded": 40 * 2**30}
    assert told.unknown == []


def test_a4_samples_that_are_too_few_are_unknown_and_the_coverage_is_printed():
    told = Told("A4-gaps-sparse")
    assert told.findings == []
    assert told.unknown == [dark("12:02", "sweep", "low_coverage")]
    # 11 of 90 min / 30 s = 180 samples.
    assert told.dark[0]["coverage"] == round(11 / 180, 6)


def test_a4_an_exporter_that_dies_neither_opens_nor_resolves():
    told = Told("A4-gaps-exporter-down")
    # The window of 10:02 holds 09:01 to 09:50, 50 of 60 samples; that of 10:07 holds 45, and 80 %
    # are 48. Two GPUs had telemetry and none has it: a page, ten minutes later.
    assert told.findings == [
        firing("09:02", "sweep", "idle", stamp("08:00")),
        firing("10:17", CLUSTER, "telemetry_lost", stamp("09:50"), 2),
    ]
    assert told.found[-1]["severity"] == "page"
    assert told.unknown == [
        dark("10:07", "steady", "telemetry_lost"),
        dark("10:07", "sweep", "telemetry_lost"),
    ]
    # 08:00 to 09:50, its last sample.
    assert told.at_the_end("sweep")["gpu_hours"] == round(110 / 60, 6)
    # Its card says so a quarter of an hour after 10:07, and not before.
    stale = [line["at"] for line in told.slack if "Could not be judged" in json.dumps(line)]
    assert stale[:1] == [stamp("10:22")]


def test_a4_a_pod_that_is_deleted_is_released_and_not_active_again():
    told = Told("A4-gaps-pod-deleted")
    opened, ended = told.found
    assert (opened["at"], opened["gpu_hours"]) == (stamp("09:02"), 1)
    # Last seen at 09:37; ten minutes later it is over. 08:00 to 09:39 are 99 minutes.
    assert (ended["at"], ended["status"]) == (stamp("09:47"), "resolved")
    assert (ended["resolution"], ended["gpu_hours"]) == ("released", 1.65)
    assert told.unknown == []
    assert told.summary["open"] == []


def test_a5_one_idle_gpu_of_four_is_one_finding_about_one_gpu():
    told = Told("A5-part-of-a-job")
    assert told.findings == [firing("11:52", "train", "idle", stamp("09:00"))]
    evidence = told.opened("train")["evidence"]
    named = [(a["node"], a["uuid"], a["idle_since"]) for a in evidence["accelerators"]]
    assert named == [(NODE, "GPU-2", stamp("09:00"))]
    assert (evidence["job_gpus"], evidence["busy"]) == (4, 3)
    assert told.at_the_end("train")["gpu_hours"] == 3  # 09:00 to 12:00, of one GPU
    assert told.unknown == []


def test_a6_a_hang_looks_busy_and_is_neither_idle_nor_healthy():
    told = Told("A6-hang-that-looks-busy")
    # The window of 30 minutes that ends at 10:10 is the first that saw nothing else. `works` is
    # contradicted by its tensor cores, and of `mute` only the utilisation is known.
    assert told.findings == [firing("10:12", "stuck", "suspected_hang", stamp("09:40"), 4)]
    assert told.opened("stuck")["severity"] == "warn"
    named = {a["uuid"] for a in told.opened("stuck")["evidence"]["accelerators"]}
    assert named == {f"GPU-{n}" for n in range(4)}
    # 09:40 to 10:30 on four GPUs.
    assert told.at_the_end("stuck")["gpu_hours"] == round(4 * 50 / 60, 6)
    assert told.unknown == []


def test_a7_a_gpu_is_its_uuid_whatever_its_index():
    told = Told("A7-wrong-gpu")
    # One stretch across the renumbering at 10:30.
    assert told.findings == [firing("11:52", "pair", "idle", stamp("09:00"))]
    evidence = told.opened("pair")["evidence"]
    assert [(a["node"], a["uuid"]) for a in evidence["accelerators"]] == [(NODE, "GPU-5f")]
    assert evidence["busy"] == 1
    assert told.at_the_end("pair")["gpu_hours"] == 3
    card = json.dumps(told.slack)
    assert "GPU-5f" in card
    assert NODE in card
    assert "GPU-c2" not in card


def test_a8_every_spelling_is_the_same_pod_and_no_name_is_nobodys():
    told = Told("A8-labels")
    assert told.findings == [
        firing("11:52", "trainer", "idle", stamp("09:00")),
        # First seen by the window that ends at 11:50, told ten minutes later.
        firing("12:02", CLUSTER, "unattributed", stamp("11:50"), 8),
    ]
    (named,) = told.opened("trainer")["evidence"]["accelerators"]
    assert (named["node"], named["uuid"], named["pod"]) == (NODE, "GPU-t", "trainer-0")
    # 09:00 to 12:10, of one GPU.
    assert told.at_the_end("trainer")["gpu_hours"] == round(190 / 60, 6)
    assert told.unknown == [dark("11:52", "nameless", "unattributed")]
    assert told.dark[0]["gpus"] == 8


def test_a9_a_finished_pod_has_no_gpu_whatever_the_exporter_says():
    told = Told("A9-finished-pod")
    opened, ended = told.found
    assert (opened["at"], opened["subject"]) == (stamp("09:32"), subject("old"))
    # Last seen at 09:57. 08:00 to 10:00: the twelve samples after its end are nobody's.
    assert (ended["at"], ended["subject"]) == (stamp("10:07"), subject("old"))
    assert (ended["resolution"], ended["gpu_hours"], ended["cost_usd"]) == ("released", 2, 15.82)
    assert told.unknown == []
    assert told.summary["open"] == []


def test_a10_a_gpu_without_any_series_is_never_dropped():
    told = Told("A10-no-series")
    # As old as the window at 09:27, whose window begins at 08:25; 3 GPUs in one finding.
    assert told.unknown == [
        dark("09:27", "dark", "no_telemetry"),
        dark("09:27", "dim", "no_telemetry"),
    ]
    assert [line["gpus"] for line in told.dark] == [2, 1]
    assert told.findings == [firing("09:37", CLUSTER, "no_telemetry", stamp("08:25"), 3)]
    assert told.found[0]["severity"] == "warn"
    assert told.found[0]["evidence"]["workloads"] == [subject("dark"), subject("dim")]


def test_a11_pods_that_share_a_gpu_have_no_verdict_of_their_own():
    told = Told("A11-shared-gpus")
    assert told.findings == []
    assert told.unknown == [
        dark("10:02", name, "shared_gpu")
        for name in ("half-a", "half-b", "share-a", "share-b", "share-c")
    ]


# --- B: wrong idea of "idle" ---------------------------------------------------------------------


def test_b1_an_idle_gpu_is_all_that_is_claimed():
    told = Told("B1-cpu-busy")
    assert told.findings == [firing("11:32", "compile", "idle", stamp("06:00"))]
    end = told.at_the_end("compile")
    assert (end["gpu_hours"], end["severity"]) == (6, "warn")  # a page is eight GPUs or more
    evidence = end["evidence"]
    assert evidence["activity_metric"] == "DCGM_FI_DEV_GPU_UTIL"
    assert (evidence["window_minutes"], evidence["activity_max"], evidence["coverage"]) == (
        60,
        0,
        1,
    )
    card = json.dumps(told.slack)
    assert "CPU work was not measured: this speaks of the GPUs alone" in card
    assert "GPU memory held was not measured" in card
    # 42 minutes old at the last tick.
    assert told.unknown == []


def test_b2_a_source_that_does_not_answer_makes_nothing_idle():
    told = Told("B2-metrics-unreachable")
    assert told.findings == []
    assert sorted(told.unknown) == sorted(
        [
            (stamp("09:02"), "idle_gpus", "prometheus", "unreadable", False),
            (stamp("09:02"), "telemetry", "prometheus", "unreadable", False),
            dark("09:02", "sweep", "unreadable"),
        ]
    )


def test_b2_a_call_that_times_out_opens_nothing_and_resolves_nothing():
    told = Told("B2-pods-time-out")
    assert told.findings == [firing("09:02", "sweep", "idle", stamp("08:00"))]
    # 08:00 to 10:20: its samples are there, also those of the time when nobody could ask whose.
    assert told.at_the_end("sweep")["gpu_hours"] == round(140 / 60, 6)
    assert told.unknown == [
        dark(at, "kubernetes/pods", "unreadable", detector=detector, ended=ended)
        for at, ended in (("09:42", False), ("10:07", True))
        for detector in ("idle_gpus", "telemetry")
    ]


def test_b3_an_unknown_key_of_the_policy_stops_with_the_right_one(capsys):
    assert main([str(RECORDINGS / "B3-unknown-policy-key")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.strip().splitlines()
    first, second = line.split(" | ")
    assert re.search(r"governance\.yaml:\d+: .*\bidle_minuts\b.*\bwindow\b", first)
    assert re.search(r"governance\.yaml:\d+: .*\bwindw\b.*did you mean window\?", second)


def test_b4_the_cluster_is_read_and_a_command_is_handed_over(monkeypatch):
    asked = []
    real = rig._Front.__call__

    def overheard(self, environ, start):
        target = environ.get("HTTP_X_AMZ_TARGET", "").removeprefix("SageMaker.")
        asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], target))
        return real(self, environ, start)

    monkeypatch.setattr(rig._Front, "__call__", overheard)
    told = Told("B4-no-kill")
    action = told.opened("sweep")["action"]
    assert action.startswith("kubectl -n hyperpod-ns-research ")
    assert "\n" not in action
    (post,) = (call for call in told.slack if call["method"] == "chat.postMessage")
    blocks = [block.get("text", {}).get("text", "") for block in post["payload"]["blocks"]]
    assert any(action in text for text in blocks)
    (who,) = (text for text in blocks if "May be run by" in text)
    assert "research-oncall@example.com" in who
    assert "GPU Steward itself changes nothing" in who
    # Five ticks: whatever went to the cluster or its control plane was a question.
    to_cluster = [method for method, path, _ in asked if path.startswith("/kubernetes/")]
    assert len(to_cluster) > 5
    assert set(to_cluster) == {"GET"}
    calls = {target for _, path, target in asked if path == "/" and target}
    assert "DescribeCluster" in calls
    assert all(re.match(r"Describe|List|secretsmanager\.Get", target) for target in calls)
    assert {method for method, path, _ in asked if path.startswith("/clusters")} == {"GET"}


def test_b5_low_is_not_zero():
    told = Told("B5-low-is-not-zero")
    assert (told.findings, told.unknown, told.slack) == ([], [], [])
