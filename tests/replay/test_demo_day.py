"""The demo's day through the real handlers: what is told when, and the numbers, worked out by hand.

The times are the script's (local/demo_recording/jobs.yaml); ticks are every five minutes. A GPU hour
costs 63.296 / 8 = 7.912 USD. What ends is told 10 minutes after it was last seen.
"""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from local import demo, demo_recording
from local.replay import replay
from local.simulation import Replay

type Line = dict[str, Any]

QUEUE = "ClusterQueue/hyperpod-ns-platform-mlops-clusterqueue/ml.p5.48xlarge/nvidia.com/gpu"
SWEEP = "Job/hyperpod-ns-platform-mlops/eval-sweep"
RERANK = "PyTorchJob/hyperpod-ns-platform-mlops/rerank-train"


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Replay, list[Line]]:
    folder: Path = demo_recording.write(tmp_path_factory.mktemp("demo"))
    told: list[Line] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METRICS", "recorded")
        run = replay(folder, told.append)
    return run, told


@pytest.fixture(scope="module")
def told(day: tuple[Replay, list[Line]]) -> list[Line]:
    return day[1]


def findings(told: list[Line], detector: str) -> list[Line]:
    return [line for line in told if line["type"] == "finding" and line["detector"] == detector]


def changes(told: list[Line], detector: str) -> list[tuple[str, str, str]]:
    """When, what became of it, and the reason, of every line of a detector."""
    return [
        (line["at"][11:16], line["resolution"] or "firing", line["reason"])
        for line in findings(told, detector)
    ]


def test_no_handler_fails_and_six_findings_stand_at_the_end(told: list[Line]) -> None:
    summary = told[-1]
    assert summary["failures"] == 0
    assert summary["ticks"] == 12 * 12 + 1
    assert {(one["detector"], one["subject"], one["reason"]) for one in summary["open"]} == {
        (
            "idle_gpus",
            "StatefulSet/hyperpod-ns-product-genai/notebook-llm-eval",
            "idle_held",
        ),
        ("idle_gpus", "PyTorchJob/hyperpod-ns-research/sweep-vision", "idle"),
        ("telemetry", "Cluster/ml-shared-01", "no_telemetry"),
        ("borrowing", QUEUE, "limit_binding"),
        ("pending", RERANK, "borrow_limit"),
        ("preemptions", SWEEP, "without_checkpoint"),
    }


def test_no_detector_tells_of_anything_else(told: list[Line]) -> None:
    told_of = {
        (line["detector"], line["subject"].rpartition("/")[2])
        for line in told
        if line["type"] == "finding"
    }
    assert told_of == {
        ("idle_gpus", "notebook-llm-eval"),
        ("idle_gpus", "sweep-vision"),
        ("idle_gpus", "checkpoint-eval"),
        ("telemetry", "ml-shared-01"),
        ("borrowing", "gpu"),
        ("pending", "rerank-train"),
        ("preemptions", "eval-sweep"),
    }
    # A probe's pods are never older than the window, and nobody else is hard to judge.
    unknown = {line["subject"] for line in told if line["type"] == "unknown"}
    assert unknown == {"Deployment/hyperpod-ns-product-genai/adapter-export"}


def test_idle_gpus_are_counted_from_their_first_idle_sample(told: list[Line]) -> None:
    standing = {one["subject"].rpartition("/")[2]: one for one in told[-1]["open"]}
    notebook, sweep = standing["notebook-llm-eval"], standing["sweep-vision"]
    # Tuesday 19:40:12 to the last sample before 19:58 on Thursday, 19:57:12: 48 h 17 min of eight.
    assert notebook["since"] == "2026-11-03T19:40:12Z"
    assert notebook["gpu_hours"] == round(8 * (48 + 17 / 60), 6)
    assert notebook["cost_usd"] == 3056.14
    # 08:20:41 to 19:57:41: 11 h 37 min of one.
    assert (sweep["since"], sweep["gpus"]) == ("2026-11-05T08:20:41Z", 1)
    assert sweep["gpu_hours"] == round(11 + 37 / 60, 6)
    assert sweep["cost_usd"] == 91.91
    opened, ended = (
        one for one in findings(told, "idle_gpus") if "checkpoint-eval" in one["subject"]
    )
    # Idle from 10:02:53 on: the first window of an hour without the sample before ends at 11:03.
    assert (opened["at"][11:16], opened["gpus"]) == ("11:05", 4)
    # The last idle sample is that of 13:30:53: 3 h 28 min of four.
    assert (ended["at"][11:16], ended["resolution"]) == ("13:40", "active_again")
    assert ended["gpu_hours"] == round(4 * (3 + 28 / 60), 6)
    assert ended["cost_usd"] == 109.71


def test_platform_mlops_is_held_by_its_limit_while_research_could_lend(told: list[Line]) -> None:
    assert changes(told, "borrowing") == [
        # At the limit since Wednesday 17:01:21, when eval-sweep was admitted.
        ("08:00", "firing", "limit_binding"),
        # Last seen at 09:30: at 09:31:21 the two are taken back.
        ("09:40", "fixed", "limit_binding"),
        # From 09:31:26 on the probe holds the rest of the pool, for more than half an hour.
        ("10:05", "firing", "cluster_full"),
        ("11:05", "fixed", "cluster_full"),  # last seen at 10:55
        # eval-sweep is back at 10:57:21, and half an hour later it is still so.
        ("11:30", "firing", "limit_binding"),
        ("14:15", "fixed", "limit_binding"),  # last seen at 14:05
        ("14:40", "firing", "cluster_full"),  # from 14:09:26 on
        ("15:35", "fixed", "cluster_full"),  # last seen at 15:25
        ("16:00", "firing", "limit_binding"),  # from 15:28:21 on
    ]
    binding = [
        line
        for line in findings(told, "borrowing")
        if (line["status"], line["reason"]) == ("firing", "limit_binding")
    ]
    assert [line["since"] for line in binding] == [
        "2026-11-04T17:01:21Z",
        "2026-11-05T10:57:21Z",
        "2026-11-05T15:28:21Z",
    ]
    for line in binding:
        evidence = line["evidence"]
        assert (line["team"], line["gpus"], line["severity"]) == ("platform-mlops", 2, "warn")
        # BorrowLimit 50 % of 4, all of it in use.
        assert (evidence["limit"], evidence["borrowed"]) == (2, 2)
        # 14, less the 4 that research uses and the 2 that are lent.
        (lender,) = evidence["lenders"]
        assert (lender["team"], lender["idle"]) == ("research", 8)
        # It needs 4 where the limit leaves 0.
        assert evidence["raise_by"] == 4
        assert [one["subject"] for one in evidence["admits"]] == [RERANK]


def test_rerank_train_waits_for_the_limit_but_while_a_probe_runs_for_quota(
    told: list[Line],
) -> None:
    assert changes(told, "pending") == [
        ("08:00", "firing", "borrow_limit"),
        ("09:35", "reason_changed", "borrow_limit"),
        ("09:35", "firing", "waiting_for_quota"),
        ("11:00", "reason_changed", "waiting_for_quota"),
        ("11:00", "firing", "borrow_limit"),
        ("14:10", "reason_changed", "borrow_limit"),
        ("14:10", "firing", "waiting_for_quota"),
        ("15:30", "reason_changed", "waiting_for_quota"),
        ("15:30", "firing", "borrow_limit"),
    ]
    for line in findings(told, "pending"):
        assert (line["subject"], line["since"]) == (RERANK, "2026-11-03T07:50:00Z")
        assert (line["team"], line["gpus"], line["severity"]) == ("platform-mlops", 4, "info")
        assert (line["evidence"]["need"], line["evidence"]["available"]) == (4, 0)
        # Kueue's own words are the same all day; only the objects tell the two apart.
        assert line["evidence"]["message"].endswith("in flavor ml.p5.48xlarge, 4 more needed")


def test_eval_sweep_loses_everything_whenever_research_wants_its_own(told: list[Line]) -> None:
    assert changes(told, "preemptions") == [("09:35", "firing", "without_checkpoint")]
    (opened,) = findings(told, "preemptions")
    # Twice before: 22 h and 28 h on two GPUs. At 09:31:21 the third: it had run since Wednesday
    # 17:01:21, 16.5 h. Together 66.5 h of two GPUs.
    assert (opened["team"], opened["gpus"], opened["severity"]) == ("platform-mlops", 2, "warn")
    assert (opened["evidence"]["count"], opened["gpu_hours"]) == (3, 133)
    assert opened["cost_usd"] == 1052.3
    (standing,) = (one for one in told[-1]["open"] if one["detector"] == "preemptions")
    evidence = standing["evidence"]
    # And 10:57:21 to 14:09:21: 3.2 h of two.
    assert (evidence["count"], evidence["lost_gpu_hours"]) == (4, 139.4)
    assert (standing["gpu_hours"], standing["cost_usd"]) == (139.4, 1102.93)
    # Its team's location can be listed, and holds nothing of it.
    assert evidence["checkpoint"] == "absent"
    assert evidence["causes"]["InCohortReclamation"] >= 2
    preemptors = {one["subject"] for one in evidence["preemptors"]}
    probes = {f"PyTorchJob/hyperpod-ns-research/layer-probe-{number}" for number in (18, 19)}
    assert preemptors >= probes


def test_the_terminal_says_why(day: tuple[Replay, list[Line]]) -> None:
    run, told = day
    page = StringIO()
    demo.show(Console(file=page, width=100), run, told, 12.5)
    text = " ".join(page.getvalue().split())
    assert "145 ticks" in text
    why = text.partition(" Why ")[2].partition(" What to type ")[0]
    (pending,) = (one for one in told[-1]["open"] if one["detector"] == "pending")
    assert f"rerank-train {pending['evidence']['sentence']}" in why
    assert (
        "nvidia.com/gpu Borrows 2 nvidia.com/gpu, and may borrow 2. Others could still lend: "
        "research 8. A limit higher by 4 would admit rerank-train." in why
    )
    assert "eval-sweep Preempted 4 times in 7 days (" in why
    assert "It lost 139.4 GPU-hours. Checkpoint: absent." in why
    # A changed reason is one row, not two.
    assert "reason_changed" not in text
    assert text.count("waiting_for_quota") == 2
