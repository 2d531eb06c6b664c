"""Raw samples come over once and whole, from the reader in process and from a real Prometheus."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from werkzeug.wrappers import Request, Response

from local.capture.chunks import cut
from local.capture.insights import MetricData
from local.capture.names import Pseudonyms
from local.capture.prometheus import RawSamples
from local.live import Live, find
from local.metrics.openmetrics import Series, load
from local.metrics.server import RealPrometheus, available
from local.metrics_check.needs import Backend, Hardware, needs_of
from local.recording import Recording
from local.replay import ROOT
from local.rig import environment, serve
from local.standins.prometheus import PrometheusStandin
from steward.errors import DeniedError, PermanentError
from tests.handmade import header, metrics, series, write
from tests.serving import serving

NINE = datetime(2026, 11, 5, 9, tzinfo=UTC)
POLICY = ROOT / "layers/policy/governance.yaml"
METRIC = "DCGM_FI_DEV_GPU_UTIL"


def live(url: str) -> Live:
    return find("ml-shared-01", POLICY, url)


def fetch(url: str, folder: Path, start: datetime, end: datetime) -> Sequence[Series]:
    """Capture a period in hourly pieces, and read the files as a replay does."""
    read = RawSamples(live(url), Pseudonyms(salt=b"s"))
    for piece in cut("activity", (METRIC,), start, end):
        (folder / f"{piece.name}.om").write_text(read(piece))
    return load(sorted(folder.glob("*.om")), ["ml-shared-01"])


def recorded(folder: Path) -> Sequence[Series]:
    """Samples on every edge there is: of the period, of an hour, and a millisecond beside them."""
    header(folder, NINE, NINE + timedelta(hours=2))
    ms = timedelta(milliseconds=1)
    times = [NINE - ms, NINE, NINE + ms]
    times += [NINE + timedelta(minutes=n) for n in (1, 30)]
    hour = NINE + timedelta(hours=1)
    times += [hour - ms, hour, hour + ms, NINE + timedelta(hours=2), NINE + timedelta(hours=2) + ms]
    points = [(when, n) for n, when in enumerate(times)]
    metrics(folder, series("GPU-1", "train-0", points, milliseconds=True), "dcgm.prom")
    return load([folder / "metrics" / "dcgm.prom"], ["ml-shared-01"])


def check_edges(found: Sequence[Series]) -> None:
    # (09:00, 11:00]: later than the beginning, up to and including the end; each sample once.
    assert len(found) == 1
    assert list(found[0].values) == [2, 3, 4, 5, 6, 7, 8]


def test_a_period_in_pieces_has_each_sample_once(tmp_path: Path) -> None:
    app = PrometheusStandin(recorded(tmp_path / "r"), lambda: NINE + timedelta(hours=9))
    (tmp_path / "out").mkdir()
    with serving(app) as url:
        check_edges(fetch(url, tmp_path / "out", NINE, NINE + timedelta(hours=2)))


@pytest.mark.prometheus
@pytest.mark.skipif(not available(), reason="prometheus and promtool are not installed")
def test_so_it_is_with_a_real_prometheus(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with RealPrometheus(recorded(tmp_path / "r")) as real:
        check_edges(fetch(real.url, tmp_path / "out", NINE, NINE + timedelta(hours=2)))


def limited(app: Any, longest_ms: int, asked: list[int]) -> Callable[..., Any]:
    """A server that refuses a query for more than so many milliseconds of samples."""

    def answer(environ: dict[str, Any], start: Any) -> Any:
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        span = int(parse_qs(body.decode())["query"][0].rpartition("[")[2].removesuffix("ms]"))
        asked.append(span)
        if span > longest_ms:
            text = '{"status":"error","errorType":"execution","error":"too many samples"}'
            return Response(text, 422, content_type="application/json")(environ, start)
        return app(environ | {"wsgi.input": BytesIO(body)}, start)

    return answer


def test_a_piece_that_is_refused_as_too_large_is_halved(tmp_path: Path) -> None:
    app = PrometheusStandin(recorded(tmp_path / "r"), lambda: NINE + timedelta(hours=9))
    (tmp_path / "out").mkdir()
    asked: list[int] = []
    with serving(limited(app, 1_000_000, asked)) as url:
        check_edges(fetch(url, tmp_path / "out", NINE, NINE + timedelta(hours=2)))
    # Of each hour: 3600 s and 1800 s are refused, then 4 quarters answer.
    assert sorted(set(asked)) == [900_000, 1_800_000, 3_600_000]
    assert asked.count(900_000) == 8


def test_a_refusal_for_any_other_reason_ends_it() -> None:
    @Request.application
    def nobody(request: Request) -> Response:
        return Response("{}", 403)

    @Request.application
    def elsewhere(request: Request) -> Response:
        return Response("no such page", 404)

    piece = next(cut("activity", (METRIC,), NINE, NINE + timedelta(hours=1)))
    with serving(nobody) as url, pytest.raises(DeniedError):
        RawSamples(live(url), Pseudonyms(salt=b"s"))(piece)
    with serving(elsewhere) as url, pytest.raises(PermanentError, match="404"):
        RawSamples(live(url), Pseudonyms(salt=b"s"))(piece)


def test_container_insights_come_over_as_they_were_recorded(tmp_path: Path) -> None:
    folder = header(tmp_path / "r", NINE, NINE + timedelta(hours=2))
    named = {
        "ClusterName": "ml-shared-01-eks",
        "Namespace": "hyperpod-ns-research",
        "PodName": "train",
        "FullPodName": "train-0",
        "GpuDevice": "nvidia0",
    }
    times = [NINE + timedelta(minutes=n) for n in range(90)]
    result = {
        "Id": "m0",
        "Label": "pod_gpu_utilization",
        "Dimensions": [{"Name": k, "Value": v} for k, v in named.items()],
        "Timestamps": [when.isoformat() for when in times],
        "Values": [float(n % 7) for n in range(90)],
    }
    total = result | {
        "Id": "m1",
        "Dimensions": [{"Name": "ClusterName", "Value": "ml-shared-01-eks"}],
    }
    write(folder / "cloudwatch" / "gpu.json", {"MetricDataResults": [result, total]})
    recording = Recording.open(folder)
    needs = needs_of(Backend.CONTAINER_INSIGHTS, Hardware)
    out = header(tmp_path / "out", NINE, NINE + timedelta(hours=2))
    (out / "cloudwatch").mkdir()
    with (
        serve(recording, ("ml-shared-01",), lambda: NINE + timedelta(hours=2)) as rig,
        environment(rig.url),
    ):
        read = MetricData(live(""), needs, Pseudonyms(salt=b"s"))
        for piece in cut("activity", ("pod_gpu_utilization",), NINE, NINE + timedelta(hours=2)):
            (out / "cloudwatch" / f"{piece.name}.json").write_text(read(piece))
    finest = ("ContainerInsights", "pod_gpu_utilization", frozenset(named.items()))
    found = Recording.open(out).cloudwatch.points
    # The sum over the cluster is not asked for: every metric has its price.
    assert found == {finest: recording.cloudwatch.points[finest]}
