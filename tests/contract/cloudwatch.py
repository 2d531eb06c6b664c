"""CloudWatch with metrics in it: moto's server, or a recording behind the rig's stand-in."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import batched
from pathlib import Path
from typing import Any

import urllib3
from boto3 import Session
from botocore.session import get_session
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from local.recording import Recording
from local.standins.aws_wire import RefusedError
from local.standins.cloudwatch import CloudWatchStandin
from steward.sources.container_insights.reader import ContainerInsightsMetrics
from tests.recordings import iso

DEVICES = "ContainerInsights"
KUEUE = "ContainerInsights/Prometheus"

type Point = tuple[datetime, float]


@dataclass(frozen=True)
class Series:
    """A metric and its values."""

    name: str
    dimensions: Mapping[str, str]
    points: Sequence[Point]
    namespace: str = DEVICES


@dataclass
class CloudWatch:
    """Where the metrics of a cluster are read from; `asked` has the metrics of every call."""

    session: Session
    cluster: str
    asked: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session.events.register("before-parameter-build.cloudwatch.GetMetricData", self._note)

    def reader(self, **options: Any) -> ContainerInsightsMetrics:
        return ContainerInsightsMetrics(self.cluster, "us-east-1", lambda: self.session, **options)

    def _note(self, params: Mapping[str, Any], **_: object) -> None:
        queries = params["MetricDataQueries"]
        self.asked.append([query["MetricStat"]["Metric"]["MetricName"] for query in queries])


def gpu(
    points: Sequence[Point],
    *,
    cluster: str,
    pod: str = "train-0",
    device: str = "nvidia0",
    metric: str = "pod_gpu_utilization",
    **more: str,
) -> Series:
    """Series of a GPU, with the dimensions that the agent gives it."""
    dimensions = {
        "ClusterName": cluster,
        "Namespace": "hyperpod-ns-research",
        "PodName": pod.rpartition("-")[0],
        "FullPodName": pod,
        "GpuDevice": device,
    }
    return Series(metric, dimensions | more, points)


def core(
    points: Sequence[Point],
    *,
    cluster: str,
    device: str = "device0",
    number: int = 0,
    metric: str = "pod_neuroncore_utilization",
) -> Series:
    """Series of a NeuronCore."""
    dimensions = {
        "ClusterName": cluster,
        "Namespace": "hyperpod-ns-research",
        "PodName": "train",
        "FullPodName": "train-0",
        "NeuronDevice": device,
        "NeuronCore": f"core{number}",
    }
    return Series(metric, dimensions, points)


def minutes(end: datetime, values: Sequence[float | None]) -> list[Point]:
    """A value a minute, the last at the end; None is a minute without one."""
    first = end - timedelta(minutes=len(values) - 1)
    points = ((first + timedelta(minutes=n), v) for n, v in enumerate(values))
    return [(at, value) for at, value in points if value is not None]


def put(session: Session, series: Sequence[Series]) -> None:
    """Put metric data, as the agent's log events do."""
    client = session.client("cloudwatch")
    for one in series:
        # In the order of a reader's query: moto's comparison of dimensions depends on it.
        named = [{"Name": key, "Value": value} for key, value in sorted(one.dimensions.items())]
        for batch in batched(one.points, 500, strict=False):
            client.put_metric_data(
                Namespace=one.namespace,
                MetricData=[
                    {"MetricName": one.name, "Dimensions": named, "Timestamp": at, "Value": value}
                    for at, value in batch
                ],
            )


def record(folder: Path, series: Sequence[Series], name: str = "results.json") -> None:
    """Write results as GetMetricData prints them, each with its metric."""
    path = folder / "cloudwatch" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    results = [
        {
            "Id": f"m{number}",
            "Label": one.name,
            "Namespace": one.namespace,
            "Dimensions": [{"Name": key, "Value": v} for key, v in one.dimensions.items()],
            "Timestamps": [iso(at) for at, _ in one.points],
            "Values": [value for _, value in one.points],
            "StatusCode": "Complete",
        }
        for number, one in enumerate(series)
    ]
    path.write_text(json.dumps({"MetricDataResults": results}))


@contextmanager
def standin(folder: Path, now: datetime, **options: int) -> Iterator[Session]:
    """Serve a recording's cloudwatch/ folder; a session whose clients talk to it."""
    (folder / "recording.yaml").write_text(
        f"cluster: ml-shared-01\nfrom: {iso(now)}\nto: {iso(now)}\n"
    )
    answering = CloudWatchStandin(Recording.open(folder), lambda: now, **options)

    @Request.application
    def app(request: Request) -> Response:
        try:
            return answering.respond(request)
        except RefusedError as refusal:
            return refusal.response()

    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield session(f"http://127.0.0.1:{server.server_port}", folder)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def session(url: str, folder: Path) -> Session:
    """Make a session whose clients talk to a URL, with one attempt a call."""
    config = folder / "aws-config"
    config.write_text(f"[default]\nendpoint_url = {url}\nmax_attempts = 1\n")
    core_session = get_session()
    core_session.set_config_variable("config_file", str(config))
    core_session.set_config_variable("credentials_file", str(folder / "none"))
    return Session(
        aws_access_key_id="local",
        aws_secret_access_key="local",
        region_name="us-east-1",
        botocore_session=core_session,
    )


def reset(aws: Session) -> None:
    """Empty a moto server."""
    url = aws.client("cloudwatch").meta.endpoint_url
    answer = urllib3.PoolManager().request("POST", f"{url}/moto-api/reset")
    assert answer.status == 200
