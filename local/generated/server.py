"""Serve a generated cluster over HTTP: `python -m local.generated.server GPUS`.

Prints its URL; `GET /asked` tells what has been asked for since the last time.
"""

import argparse
import gzip
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from local.generated.cluster import NOW, GeneratedCluster, uid
from local.generated.kubernetes import GeneratedKubernetes
from local.generated.objects import Objects
from local.generated.series import Series, UnansweredError
from local.recording import Recording
from local.standins.aws import AwsStandin
from steward.cluster.figures import stamp

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CLUSTER = "ml-shared-01"
_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/a1b2c3d4e5f6"


class GeneratedServer:
    """WSGI application: Kubernetes, Prometheus, SageMaker and EKS of one cluster.

    Parameters
    ----------
    folder : Path
        Empty; takes the recording that SageMaker and EKS answer from.
    """

    def __init__(self, cluster: GeneratedCluster, folder: Path) -> None:
        self.asked: Counter[str] = Counter()
        self._series = Series(cluster)
        self._kubernetes = GeneratedKubernetes(Objects(cluster), self._counting("kubernetes"))
        _record(cluster, folder)
        self._aws = AwsStandin(Recording.open(folder), lambda: NOW, "")

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Pass a request to who answers for it."""
        path = environ["PATH_INFO"]
        if path.startswith("/kubernetes/"):
            environ["PATH_INFO"] = path.removeprefix("/kubernetes")
            return self._kubernetes(environ, start_response)
        if path == "/prometheus/api/v1/query":
            return self._query(Request(environ))(environ, start_response)
        if path == "/asked":
            told = json.dumps(self.asked)
            self.asked.clear()
            return Response(told, mimetype="application/json")(environ, start_response)
        self.asked["aws"] += 1
        return self._aws(environ, start_response)

    def _counting(self, what: str) -> Callable[[], None]:
        def count() -> None:
            self.asked[what] += 1

        return count

    def _query(self, request: Request) -> Response:
        self.asked["prometheus"] += 1
        text = request.form["query"]
        try:
            body = self._series.answer(text, float(request.form["time"]))
        except UnansweredError as error:
            message = f"no canned answer: {error}"
            print(message, file=sys.stderr)
            return Response(json.dumps({"status": "error", "error": message}), 422)
        packed = gzip.compress(body, 1)
        return Response(packed, headers={"Content-Encoding": "gzip"}, mimetype="application/json")


@contextmanager
def serving(cluster: GeneratedCluster, folder: Path) -> Iterator[tuple[str, GeneratedServer]]:
    """Serve a cluster on a free port of loopback until the block ends; gives its URL."""
    app = GeneratedServer(cluster, folder)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", app
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Quiet(WSGIRequestHandler):
    """Keeps connections open and the console clean."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's name
        """Say nothing."""


def _record(cluster: GeneratedCluster, folder: Path) -> None:
    """Write what SageMaker and EKS say of the cluster, as a recording of one tick."""
    count = len(cluster.nodes)
    group = {
        "InstanceGroupName": "gpu",
        "InstanceType": "ml.p5.48xlarge",
        "CurrentCount": count,
        "TargetCount": count,
        "Status": "InService",
    }
    nodes = [
        {
            "InstanceGroupName": "gpu",
            "InstanceId": name.removeprefix("hyperpod-"),
            "InstanceType": "ml.p5.48xlarge",
            "LaunchTime": "2026-09-01T08:00:00Z",
            "InstanceStatus": {"Status": "Running"},
            "NodeLogicalId": uid(name),
        }
        for name in cluster.nodes
    ]
    quotas = [
        {
            "ComputeQuotaArn": f"arn:aws:sagemaker:us-east-1:111122223333:compute-quota/{n:012d}",
            "ComputeQuotaId": f"{n:012d}",
            "Name": team,
            "ComputeQuotaVersion": 1,
            "Status": "Created",
            "ClusterArn": _ARN,
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 1}],
                "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
            },
            "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 0},
            "ActivationState": "Enabled",
            "CreationTime": "2026-09-01T08:00:00Z",
        }
        for n, team in enumerate(cluster.teams)
    ]
    answers = {
        "sagemaker/DescribeCluster": {
            "ClusterArn": _ARN,
            "ClusterName": CLUSTER,
            "ClusterStatus": "InService",
            "InstanceGroups": [group],
        },
        "sagemaker/ListClusterNodes": {"ClusterNodeSummaries": nodes},
        "sagemaker/ListComputeQuotas": {"ComputeQuotaSummaries": quotas},
        "sagemaker/ListClusterSchedulerConfigs": {"ClusterSchedulerConfigSummaries": []},
        "sagemaker/ListClusterEvents": {"Events": []},
        "eks/DescribeCluster": {
            "cluster": {"name": f"{CLUSTER}-eks", "version": "1.33", "endpoint": "https://x"}
        },
        "eks/ListAddons": {"addons": []},
        "eks/ListPodIdentityAssociations": {"associations": []},
    }
    (folder / "recording.yaml").write_text(f"cluster: {CLUSTER}\nnow: {stamp(NOW)}\n")
    for name, answer in answers.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(answer))


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="server", description=__doc__.splitlines()[0])
    parser.add_argument("gpus", type=int, help="how many GPUs the cluster has")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(GeneratedCluster(gpus=given.gpus), Path(folder)) as (url, _),
    ):
        print(url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
