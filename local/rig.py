"""The local rig: one HTTP server for AWS' sources, Kubernetes, Prometheus, Slack and pagers."""

import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from local.metrics.source import prometheus_app
from local.recording import Recording
from local.standins import cloudwatch, s3, sagemaker, sns
from local.standins.aws import AwsStandin
from local.standins.kubernetes import KubernetesStandin
from local.standins.slack import SlackStandin

type WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "local-rig",
    "AWS_SECRET_ACCESS_KEY": "local-rig",
    "AWS_SESSION_TOKEN": "local-rig",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
"""Dummies, and nothing that could lead to real ones: nothing local ever reaches an account. One
attempt a call: a recorded refusal answers a repeat as it answered the first, and waiting for it
would take real time."""

SLACK_SECRET = {"bot_token": "xoxb-local-rig", "signing_secret": "local-rig"}
"""What the Slack app's secret holds here: what the rig signs with, and a token that opens nothing."""

OWN = "gpu-steward-"
"""How the names of buckets begin that stand behind the rig; every other one is the recording's."""


class _QuietHandler(WSGIRequestHandler):
    """Keeps connections open and the console clean."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's name
        """Say nothing: the replay's own lines are the log."""


@dataclass(slots=True)
class Rig:
    """A recording served over HTTP at a virtual time.

    Attributes
    ----------
    url : str
        Base URL, without a slash at its end.
    calls : list of dict
        Slack calls so far, as the replay prints them.
    pages : list of dict
        What pagers' topics took so far: `at`, `topic_arn`, `subject`, `message`.
    """

    url: str
    slack: SlackStandin
    calls: list[dict[str, Any]] = field(default_factory=list)
    pages: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def serve(
    recording: Recording,
    clusters: Collection[str],
    now: Callable[[], datetime],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    otherwise: WsgiApp | None = None,
) -> Iterator[Rig]:
    """Serve a recording until the block ends.

    Parameters
    ----------
    recording : Recording
        What to serve.
    clusters : collection of str
        Names of the recorded cluster (HyperPod's and EKS's) that a series may carry.
    now : callable
        The virtual time; nothing later is shown.
    host : str
        Address to bind: loopback, or the container bridge.
    port : int
        Port to bind; 0 takes a free one.
    otherwise : callable or None
        WSGI application for the rest of AWS; without it, the rest is refused.
    """
    calls: list[dict[str, Any]] = []
    pages: list[dict[str, Any]] = []
    slack = SlackStandin(recording, now, calls.append)
    topics = sns.SnsStandin(now, pages.append)
    with prometheus_app(recording, clusters, now) as prometheus:
        mounted: dict[str, Any] = {
            "/kubernetes": KubernetesStandin(recording, now),
            "/prometheus": prometheus,
            "/slack/api": slack,
            "/slack/hooks": slack.hooks,
        }
        front = _Front(mounted, s3.S3Standin(recording, now), topics, otherwise or _secrets)
        server = make_server(host, port, front, threaded=True, request_handler=_QuietHandler)
        url = f"http://{host}:{server.server_port}"
        front.aws = AwsStandin(recording, now, f"{url}/kubernetes")
        with _running(server):
            yield Rig(url=url, slack=slack, calls=calls, pages=pages)


@contextmanager
def environment(url: str) -> Iterator[None]:
    """Point everything that reads the environment at the rig, and restore it afterwards."""
    wanted = {**CREDENTIALS, "AWS_ENDPOINT_URL": url, "LOCAL_ENDPOINT": url}
    wanted["POWERTOOLS_METRICS_DISABLED"] = "true"  # their lines would stand between a replay's own
    dropped = [name for name in os.environ if name.startswith("AWS_") and name not in wanted]
    before = dict(os.environ)
    for name in dropped:
        del os.environ[name]
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Front:
    """Passes each request to the stand-in that answers for it."""

    def __init__(
        self, mounted: dict[str, WsgiApp], storage: WsgiApp, topics: WsgiApp, otherwise: WsgiApp
    ) -> None:
        self._mounted = mounted
        self._storage = storage
        self._topics = topics
        self._otherwise = otherwise
        self.aws: Any = None

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        for prefix, app in self._mounted.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                environ["SCRIPT_NAME"] += prefix
                environ["PATH_INFO"] = path.removeprefix(prefix) or "/"
                return app(environ, start)
        targets = (sagemaker.TARGET, cloudwatch.TARGET)
        if environ.get("HTTP_X_AMZ_TARGET", "").startswith(targets) or _is_eks(environ):
            answer: Iterable[bytes] = self.aws(environ, start)
            return answer
        if sns.is_sns(environ):
            return self._topics(environ, start)
        if s3.is_listing(environ) and not s3.bucket_of(environ).startswith(OWN):
            return self._storage(environ, start)
        return self._otherwise(environ, start)


def _is_eks(environ: dict[str, Any]) -> bool:
    """EKS is REST: the signature's scope tells it from a bucket named `clusters`."""
    scope = "/eks/aws4_request"
    return scope in environ.get("HTTP_AUTHORIZATION", "") or (
        "HTTP_AUTHORIZATION" not in environ and environ["PATH_INFO"].startswith("/clusters/")
    )


@Request.application
def _secrets(request: Request) -> Response:
    """Answer the one AWS call that a replay makes beside its sources: the Slack app's secret."""
    target = request.headers.get("X-Amz-Target", "")
    if target == "secretsmanager.GetSecretValue":
        secret = {"Name": "slack", "SecretString": json.dumps(SLACK_SECRET)}
        return Response(json.dumps(secret), content_type="application/x-amz-json-1.1")
    body = {"__type": "UnrecognizedClientException", "message": f"the rig does not answer {target}"}
    return Response(json.dumps(body), status=400, content_type="application/x-amz-json-1.1")


@contextmanager
def _running(server: BaseWSGIServer) -> Iterator[None]:
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="rig", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
