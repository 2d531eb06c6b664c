"""The Prometheus adapter's side of the wire: what it sends, and what it makes of bad answers."""

import hashlib
import hmac
import json
import re
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import pytest
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import ClientError, CredentialRetrievalError
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wrappers import Request, Response

from steward.errors import DeniedError, PermanentError, RetryableError, StewardError
from steward.ports import DeviceName, MetricsReading
from steward.sources.prometheus import PrometheusMetrics

END = datetime(2026, 11, 2, 12, 0, 0, 250_999, tzinfo=UTC)
EMPTY = {"status": "success", "data": {"resultType": "vector", "result": []}}
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


class Source:
    """A server that keeps the requests it gets, and answers what it is told."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Any = EMPTY
        self.status = 200
        self.headers: dict[str, str] = {}
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.url = ""

    def __call__(self, environ: Any, start: Any) -> Any:
        request = Request(environ)
        request.get_data()
        self.requests.append(request)
        self.may_answer.wait(10)
        body = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer)
        return Response(body, self.status, self.headers)(environ, start)

    def queries(self) -> list[str]:
        return [parse_qs(r.get_data(as_text=True))["query"][0] for r in self.requests]


@pytest.fixture(scope="module")
def server() -> Iterator[BaseWSGIServer]:
    made = make_server("127.0.0.1", 0, Source(), threaded=True)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def source(server: BaseWSGIServer) -> Source:
    app = Source()
    app.url = f"http://127.0.0.1:{server.server_port}/workspaces/ws-1"
    server.app = app
    return app


@pytest.fixture
def reader(source: Source) -> Iterator[PrometheusMetrics]:
    made = PrometheusMetrics(source.url)
    yield made
    made.close()


def refusal(reader: PrometheusMetrics) -> StewardError:
    with pytest.raises(StewardError) as caught:
        reader.read(END, [60])
    return caught.value


# --- what is sent --------------------------------------------------------------------------------


def test_a_query_is_a_posted_form_with_the_time_in_milliseconds(
    source: Source, reader: PrometheusMetrics
) -> None:
    assert reader.read(END, [60]) == MetricsReading(devices=(), invalid=())
    request = source.requests[0]
    assert (request.method, request.path) == ("POST", "/workspaces/ws-1/api/v1/query")
    assert request.content_type == "application/x-www-form-urlencoded"
    # 2026-11-02T12:00:00Z is 1793620800; microseconds are cut, so that nothing later is asked for.
    assert parse_qs(request.get_data(as_text=True))["time"] == ["1793620800.250"]
    assert "Authorization" not in request.headers


def test_a_tick_makes_eight_queries_a_window_and_five_more(
    source: Source, reader: PrometheusMetrics
) -> None:
    reader.read(END, [60, 30, 60])
    queries = source.queries()
    assert len(queries) == len(set(queries)) == 8 * 2 + 5
    assert "max_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE{}[3599999ms])" in queries
    assert "count_over_time(DCGM_FI_DEV_GPU_UTIL{}[1799999ms])" in queries
    assert "timestamp(DCGM_FI_DEV_GPU_UTIL{})" in queries
    assert "last_over_time(DCGM_FI_DEV_FB_USED{}[3599999ms])" in queries


def test_the_number_of_queries_does_not_grow_with_the_cluster(
    source: Source, reader: PrometheusMetrics
) -> None:
    # Every answer says 7, which is out of range for engine activity: all devices are in doubt.
    source.answer = {
        "status": "success",
        "data": {
            "resultType": "vector",
            "result": [
                {"metric": {"UUID": f"GPU-{n}", "pod": "p", "namespace": "n"}, "value": [0, "7"]}
                for n in range(500)
            ],
        },
    }
    with pytest.raises(PermanentError):  # the raw query is answered with a vector, too
        reader.read(END, [60])
    queries = source.queries()
    assert len(queries) == 8 + 5 + 1
    assert queries[-1].endswith("[3599999ms]")
    assert all(f"GPU-{n}|" in queries[-1] for n in range(500))


def test_nothing_is_asked_for_no_device_and_no_pod(
    source: Source, reader: PrometheusMetrics
) -> None:
    assert reader.samples(END, 3600, []) == ()
    assert reader.seen(END, 3600, []) == ()
    assert source.requests == []


def test_a_cluster_label_lets_series_without_it_pass(source: Source) -> None:
    reader = PrometheusMetrics(source.url, cluster_label='ml."01"')
    reader.read(END, [60])
    reader.close()
    assert all(r'cluster_name=~"ml\\.\"01\"|"' in query for query in source.queries())


def signature(request: Request, secret: str) -> str:
    """The SigV4 signature that the request should carry, from AWS's description of it."""
    scope_and_names = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=AKID/(\d{8})/eu-west-1/aps/aws4_request, "
        r"SignedHeaders=([a-z0-9;-]+), Signature=[0-9a-f]{64}",
        request.headers["Authorization"],
    )
    assert scope_and_names, request.headers["Authorization"]
    day, names = scope_and_names.groups()
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(names.split(";"))
    canonical = "\n".join(
        [
            "POST",
            request.path,
            "",
            *(f"{name}:{request.headers[name].strip()}" for name in names.split(";")),
            "",
            names,
            hashlib.sha256(request.get_data()).hexdigest(),
        ]
    )
    to_sign = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            request.headers["X-Amz-Date"],
            f"{day}/eu-west-1/aps/aws4_request",
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    key = f"AWS4{secret}".encode()
    for part in (day, "eu-west-1", "aps", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, to_sign.encode(), "sha256").hexdigest()


def test_every_query_carries_a_signature_over_its_body(source: Source) -> None:
    reader = PrometheusMetrics(
        source.url,
        sigv4_region="eu-west-1",
        credentials=lambda: Credentials("AKID", SECRET, "session-token"),
    )
    reader.read(END, [60])
    reader.close()
    for request in source.requests:
        assert request.headers["X-Amz-Security-Token"] == "session-token"
        assert request.headers["Authorization"].endswith(f"Signature={signature(request, SECRET)}")


# --- credentials ---------------------------------------------------------------------------------


def assume_role(error: Exception) -> RefreshableCredentials:
    def refresh() -> Any:
        raise error

    return RefreshableCredentials("a", "b", "c", datetime(2020, 1, 1, tzinfo=UTC), refresh, "sts")


DENIED = ClientError(
    {
        "Error": {"Code": "AccessDenied", "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": 403},  # type: ignore[typeddict-item]
    },
    "AssumeRole",
)


@pytest.mark.parametrize(
    ("credentials", "kind"),
    [
        (None, DeniedError),
        (assume_role(DENIED), DeniedError),
        (assume_role(CredentialRetrievalError(provider="x", error_msg="y")), RetryableError),
    ],
)
def test_credentials_that_cannot_be_had_are_a_named_case(
    source: Source, credentials: Credentials | None, kind: type[StewardError]
) -> None:
    reader = PrometheusMetrics(
        source.url, sigv4_region="eu-west-1", credentials=lambda: credentials
    )
    assert isinstance(refusal(reader), kind)
    assert source.requests == []


# --- answers that are none -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, DeniedError),
        (403, DeniedError),
        (429, RetryableError),
        (500, RetryableError),
        (503, RetryableError),
        (400, PermanentError),
        (404, PermanentError),
        (422, PermanentError),
        (302, PermanentError),
    ],
)
def test_a_status_becomes_the_error_that_it_is(
    source: Source, reader: PrometheusMetrics, status: int, kind: type[StewardError]
) -> None:
    source.status, source.answer = status, b"what the source said"
    source.headers = {"Location": "/elsewhere"} if status == 302 else {}
    error = refusal(reader)
    assert type(error) is kind
    assert f"HTTP {status}" in str(error)
    assert "what the source said" in str(error)
    assert source.url in str(error)
    assert len(source.requests) == 1  # neither repeated nor followed


def vector(*entries: Any) -> Any:
    return {"status": "success", "data": {"resultType": "vector", "result": list(entries)}}


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>a login page</html>",
        b"\xff\xfe",
        [],
        {"status": "success"},
        {"status": "error", "data": {"resultType": "vector", "result": []}},
        {"status": "success", "data": {"resultType": "matrix", "result": []}},
        {"status": "success", "data": {"resultType": "vector", "result": None}},
        vector("x"),
        vector({"metric": {}}),
        vector({"metric": [], "value": [0, "x"]}),
        vector({"metric": {"UUID": ["a"]}, "value": [0, "1"]}),
        vector({"metric": {"UUID": "a"}, "value": [0]}),
    ],
)
def test_an_answer_of_another_form_is_permanent(
    source: Source, reader: PrometheusMetrics, answer: Any
) -> None:
    source.answer = answer
    error = refusal(reader)
    assert type(error) is PermanentError
    assert "not an answer of Prometheus" in str(error)


@pytest.mark.parametrize(
    "entry",
    [{"metric": {}}, {"metric": {}, "values": [[0]]}, {"metric": {}, "values": [[0, "x"]]}],
)
def test_raw_samples_of_another_form_are_permanent(
    source: Source, reader: PrometheusMetrics, entry: Any
) -> None:
    source.answer = {"status": "success", "data": {"resultType": "matrix", "result": [entry]}}
    with pytest.raises(PermanentError, match="not an answer of Prometheus"):
        reader.samples(END, 3600, [DeviceName(namespace="n", pod="p", uuid="GPU-1")])


def test_warnings_beside_an_answer_are_tolerated(source: Source, reader: PrometheusMetrics) -> None:
    source.answer = EMPTY | {"warnings": ["a replica did not answer"], "infos": ["so it is"]}
    assert reader.read(END, [60]).devices == ()


def test_no_answer_before_the_deadline_is_retryable(source: Source) -> None:
    source.may_answer.clear()
    reader = PrometheusMetrics(source.url, deadline_seconds=0.2)
    error = refusal(reader)  # an answer that came after all would be none
    source.may_answer.set()
    reader.close()
    assert type(error) is RetryableError
    assert "timed out" in str(error)


def test_the_deadline_holds_for_all_queries_of_a_tick_together(source: Source) -> None:
    ticks = iter(range(0, 1000, 10))  # each look at the clock is ten seconds later
    reader = PrometheusMetrics(source.url, deadline_seconds=35, monotonic=lambda: next(ticks))
    assert "deadline" in str(refusal(reader))
    assert len(source.requests) == 3
    reader.close()


def test_a_refused_connection_is_retryable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        reader = PrometheusMetrics(f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert type(refusal(reader)) is RetryableError


def test_an_endpoint_that_is_no_url_is_permanent() -> None:
    error = refusal(PrometheusMetrics("http://"))
    assert type(error) is PermanentError
    assert "metrics endpoint" in str(error)
