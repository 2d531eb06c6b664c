"""What a backend has, against what the detectors need: judged by hand, and over real backends."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from werkzeug.wrappers import Request, Response

from local import demo_recording
from local.application import VirtualClock
from local.demo_recording.script import TO
from local.live import find
from local.metrics.openmetrics import Series, load
from local.metrics.server import RealPrometheus, available
from local.metrics_check.__main__ import as_json, check, hardware, main, show
from local.metrics_check.judging import Row, Sighting, State, judge, setting_of
from local.metrics_check.needs import NEEDS, Backend, Hardware, Need, needs_of
from local.recording import Recording
from local.replay import ROOT
from local.rig import environment, serve
from steward.cluster.control_plane import AddOn
from tests.handmade import header, metrics, series, write
from tests.serving import serving

POLICY = ROOT / "layers/policy/governance.yaml"
NOON = datetime(2026, 11, 5, 12, tzinfo=UTC)
OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"

NEED = Need(
    name="activity",
    backend=Backend.PROMETHEUS,
    detectors=("idle_gpus",),
    metrics=("best", "second"),
    on_every=(("UUID", "uuid"),),
    on_some=(("pod", "exported_pod"),),
    required=True,
    add_on=OBSERVABILITY,
    setting="acceleratedComputeMetrics",
    remedy="switch it on",
)


def verdict(**seen: Sighting) -> Row:
    return judge(NEED, seen, "")


# --- judging -------------------------------------------------------------------------------------


def test_one_of_several_metrics_is_enough() -> None:
    row = verdict(second=Sighting(series=8))
    assert (row.state, row.metric, row.failed) == (State.FOUND, "second", False)


def test_a_good_metric_is_taken_before_a_better_one_without_labels() -> None:
    row = verdict(best=Sighting(series=8, lacking={"UUID": 8}), second=Sighting(series=8))
    assert (row.state, row.metric) == (State.FOUND, "second")


def test_nothing_there_is_missing_and_says_what_to_switch_on() -> None:
    row = verdict()
    assert (row.state, row.series, row.failed) == (State.MISSING, 0, True)
    assert row.advice == "switch it on"


def test_what_was_there_within_the_day_has_stopped() -> None:
    row = verdict(second=Sighting(recently=True))
    assert (row.state, row.failed) == (State.STOPPED, True)
    assert "second" in row.detail


def test_series_without_a_label_that_each_needs() -> None:
    row = verdict(best=Sighting(series=8, lacking={"UUID": 8}))
    assert (row.state, row.failed) == (State.WITHOUT_LABELS, True)
    partly = verdict(best=Sighting(series=8, lacking={"UUID": 3}))
    assert partly.state is State.FOUND
    assert "3 lack UUID" in partly.detail


def test_a_free_card_names_no_pod_rightly_and_all_of_them_hardly() -> None:
    some = verdict(best=Sighting(series=8, lacking={"pod": 5}))
    assert (some.state, some.detail) == (State.FOUND, "3 name a pod")
    none = verdict(best=Sighting(series=8, lacking={"pod": 8}))
    assert (none.state, none.failed) == (State.UNATTRIBUTED, True)


def test_an_exporter_that_names_itself_attributes_nothing() -> None:
    row = verdict(best=Sighting(series=8, exporters=8))
    assert row.state is State.UNATTRIBUTED
    assert "exporter's own" in row.detail


def test_a_need_that_does_not_arise_is_not_a_fault() -> None:
    mig = next(need for need in NEEDS if need.when)
    seen = {mig.metrics[0]: Sighting(series=8, lacking={mig.when: 8})}
    row = judge(mig, seen, "")
    assert (row.state, row.advice) == (State.NOT_USED, "")
    partitioned = {mig.metrics[0]: Sighting(series=8, lacking={mig.when: 1})}
    assert judge(mig, partitioned, "").state is State.FOUND


def test_the_present_setting_of_an_add_on_in_words() -> None:
    levels = {
        "metricsProvider.acceleratedComputeMetrics.level": "BASIC",
        "metricsProvider.taskGovernanceMetrics.level": "DISABLED",
    }
    add_on = AddOn(name=OBSERVABILITY, version="v1.0", status="ACTIVE", settings=levels)
    assert setting_of(NEED, {OBSERVABILITY: add_on}).endswith(
        "acceleratedComputeMetrics: level BASIC"
    )
    assert setting_of(NEED, {OBSERVABILITY: "not installed"}) == "not installed"
    default = AddOn(name=OBSERVABILITY, version="v1.0", status="ACTIVE")
    assert setting_of(NEED, {OBSERVABILITY: default}).endswith("left at its default")
    unread = AddOn(name=OBSERVABILITY, version="v1", status="ACTIVE", settings_known=False)
    assert "cannot be read" in setting_of(NEED, {OBSERVABILITY: unread})


def test_what_is_required_is_what_makes_a_detector_say_unknown() -> None:
    required = {(need.backend, need.name) for need in NEEDS if need.required}
    assert required == {
        (Backend.PROMETHEUS, "activity of each GPU"),
        (Backend.PROMETHEUS, "activity of each Neuron core"),
        (Backend.CONTAINER_INSIGHTS, "activity of each GPU"),
        (Backend.CONTAINER_INSIGHTS, "activity of each Neuron core"),
    }


def test_neuron_is_asked_of_a_cluster_that_has_it() -> None:
    assert hardware(find("ml-shared-01", POLICY)) == {Hardware.GPU}
    assert not any(
        "neuron" in metric
        for need in needs_of(Backend.PROMETHEUS, [Hardware.GPU])
        for metric in need.metrics
    )


# --- over backends -------------------------------------------------------------------------------


@contextmanager
def prometheus(found: Sequence[Series], aws: Path) -> Iterator[str]:
    """A real Prometheus beside the rig's EKS."""
    recording = Recording.open(aws)
    with (
        RealPrometheus(found) as running,
        serve(recording, ("ml-shared-01",), lambda: NOON) as rig,
        environment(rig.url),
    ):
        yield running.url


def states(rows: Sequence[Row]) -> dict[str, State]:
    return {row.need.name: row.state for row in rows}


@pytest.mark.prometheus
@pytest.mark.skipif(not available(), reason="prometheus and promtool are not installed")
def test_the_demos_cluster_has_all_that_is_required(tmp_path: Path) -> None:
    folder = demo_recording.write(tmp_path / "demo")
    found = load(Recording.open(folder).metric_files(), ["ml-shared-01"])
    with prometheus(found, folder) as url:
        rows = check(find("ml-shared-01", POLICY, url), VirtualClock(TO))
    said = states(rows)
    for name in ("activity of each GPU", "memory held", "tensor activity", "power drawn"):
        assert said[name] is State.FOUND
    assert said["activity of MIG slices"] is State.NOT_USED
    assert said["power limit"] is State.MISSING
    assert not any(row.failed for row in rows)
    activity = rows[0]
    # Of the 20 GPUs that are allocated at the end of the day, two have no telemetry.
    assert (activity.metric, activity.series) == ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 18)
    assert as_json("ml-shared-01", rows)["ok"] is True


@pytest.mark.prometheus
@pytest.mark.skipif(not available(), reason="prometheus and promtool are not installed")
@pytest.mark.parametrize(
    ("labels", "state"),
    [
        ({"UUID": "GPU-1", "Hostname": "n"}, State.UNATTRIBUTED),
        (
            {
                "UUID": "GPU-1",
                "Hostname": "n",
                "namespace": "hyperpod-observability",
                "pod": "dcgm-exporter-x7k2p",
            },
            State.UNATTRIBUTED,
        ),
        ({"Hostname": "n", "namespace": "a", "pod": "b"}, State.WITHOUT_LABELS),
        (
            {
                "uuid": "GPU-1",
                "hostname": "n",
                "exported_namespace": "a",
                "exported_pod": "b",
                "namespace": "hyperpod-observability",
                "pod": "dcgm-exporter-x7k2p",
            },
            State.FOUND,
        ),
    ],
)
def test_series_are_judged_by_their_labels_in_every_spelling(
    tmp_path: Path, labels: dict[str, str], state: State
) -> None:
    folder = header(tmp_path / "r", NOON - timedelta(hours=1), NOON)
    points = [(NOON - timedelta(minutes=n), 0) for n in range(10, -1, -1)]
    metrics(folder, series("GPU-1", "p", points, labels=labels))
    found = load(Recording.open(folder).metric_files(), ["ml-shared-01"])
    with prometheus(found, folder) as url:
        rows = check(find("ml-shared-01", POLICY, url), VirtualClock(NOON))
    assert states(rows)["activity of each GPU"] is state
    assert any(row.failed for row in rows) is (state is not State.FOUND)


@pytest.mark.prometheus
@pytest.mark.skipif(not available(), reason="prometheus and promtool are not installed")
def test_series_that_ended_an_hour_ago_have_stopped(tmp_path: Path) -> None:
    folder = header(tmp_path / "r", NOON - timedelta(hours=1), NOON)
    metrics(folder, series("GPU-1", "p", [(NOON - timedelta(hours=1), 0)]))
    found = load(Recording.open(folder).metric_files(), ["ml-shared-01"])
    with prometheus(found, folder) as url:
        rows = check(find("ml-shared-01", POLICY, url), VirtualClock(NOON))
    assert states(rows)["activity of each GPU"] is State.STOPPED


def test_container_insights_are_judged_by_their_dimensions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = header(tmp_path / "r", NOON - timedelta(hours=1), NOON)
    device = {
        "ClusterName": "ml-shared-01-eks",
        "Namespace": "hyperpod-ns-research",
        "PodName": "train",
        "FullPodName": "train-0",
        "GpuDevice": "nvidia0",
    }
    sums = {"ClusterName": "ml-shared-01-eks"}
    results = [
        result("pod_gpu_utilization", device),
        result("pod_gpu_utilization", sums),
        result("pod_gpu_memory_used", sums),
    ]
    write(folder / "cloudwatch" / "gpu.json", {"MetricDataResults": results})
    policy = tmp_path / "insights.yaml"
    text = POLICY.read_text()
    before, _, after = text.partition("      backend: prometheus\n")
    kept = after[after.index("      # cluster_label") :]
    policy.write_text(f"{before}      backend: container_insights\n{kept}")
    recording = Recording.open(folder)
    with (
        serve(recording, ("ml-shared-01",), lambda: NOON) as rig,
        environment(rig.url),
    ):
        rows = check(find("ml-shared-01", policy), VirtualClock(NOON))
    said = states(rows)
    assert said["activity of each GPU"] is State.FOUND
    assert said["memory held"] is State.WITHOUT_LABELS
    assert said["power drawn"] is State.MISSING
    assert rows[0].series == 1  # the sum over the cluster is no device


def result(metric: str, dimensions: dict[str, str]) -> dict[str, Any]:
    return {
        "Id": "m",
        "Label": metric,
        "Dimensions": [{"Name": k, "Value": v} for k, v in dimensions.items()],
        "Timestamps": [(NOON - timedelta(minutes=5)).isoformat()],
        "Values": [1.0],
    }


# --- the command ---------------------------------------------------------------------------------


def answering(series_of: dict[str, int]) -> Any:
    """A backend that has so many series of each metric, complete with their labels."""

    @Request.application
    def answer(request: Request) -> Response:
        if request.path.endswith("/values"):
            return Response('{"status":"success","data":[]}', content_type="application/json")
        # Whoever asks for series without a label finds none.
        found = {} if '=~""' in request.form["query"] else series_of
        rows = [{"metric": {"__name__": k}, "value": [0, str(n)]} for k, n in found.items()]
        data = {"status": "success", "data": {"resultType": "vector", "result": rows}}
        return Response(json.dumps(data), content_type="application/json")

    return answer


@pytest.mark.parametrize(
    ("series_of", "code"), [({"DCGM_FI_DEV_GPU_UTIL": 8}, 0), ({"kueue_pending_workloads": 3}, 1)]
)
def test_the_exit_status_says_whether_what_is_required_is_there(
    series_of: dict[str, int], code: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = header(tmp_path / "r", NOON, NOON)
    with (
        serve(Recording.open(folder), ("ml-shared-01",), lambda: NOON) as rig,
        environment(rig.url),
        serving(answering(series_of)) as url,
    ):
        arguments = ["--cluster", "ml-shared-01", "--governance", str(POLICY)]
        assert main([*arguments, "--metrics-url", url, "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is (code == 0)
    named = {need["name"]: need for need in told["needs"]}
    assert named["activity of each GPU"]["required"] is True
    # A recording without DescribeAddon says that asking for it is denied.
    assert "AccessDenied" in named["activity of each GPU"]["setting"]


def test_bad_input_is_refused_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cluster", "nope", "--governance", str(POLICY)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    wrong = ["--cluster", "ml-shared-01", "--governance", str(POLICY), "--metrics-url", "nowhere"]
    assert main(wrong) == 2


def test_the_table_names_every_need_and_what_to_switch_on() -> None:
    rows = [judge(need, {}, "not installed") for need in needs_of(Backend.PROMETHEUS, Hardware)]
    console = Console(record=True, width=200, file=None, quiet=False)
    with console.capture() as captured:
        show("ml-shared-01", rows, console)
    text = captured.get()
    for row in rows:
        assert row.need.name in text
    assert "DISABLED by default" in text
    assert "(required)" in text
