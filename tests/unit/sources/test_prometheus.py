"""The Prometheus adapter's side of the wire: what it sends, and what it makes of bad answers."""

import gzip
import hashlib
import hmac
import itertools
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import pytest
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import ClientError, CredentialRetrievalError
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wrappers import Request, Response

from steward.errors import DeniedError, PermanentError, RetryableError, StewardError
from steward.ports import DeviceName, MetricsReading, Signal
from steward.sources.prometheus import api as prometheus_api
from steward.sources.prometheus.reader import MOST_NAMED, PrometheusMetrics

END = datetime(2026, 11, 2, 12, 0, 0, 250_999, tzinfo=UTC)
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def vector(*entries: Any) -> Any:
    return {"status": "success", "data": {"resultType": "vector", "result": list(entries)}}


def matrix(*entries: Any) -> Any:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(entries)}}


EMPTY = vector()


class Source:
    """A server that keeps the requests it gets, and answers what it is told."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Any = EMPTY
        self.answers: Callable[[str], Any] | None = None
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
        answer = self.answers(self.queries()[-1]) if self.answers else self.answer
        body = answer if isinstance(answer, bytes) else json.dumps(answer)
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


def answered(devices: int, query: str) -> Any:
    """What Prometheus would say of so many devices: every value is 7, which no activity can be."""
    labels = [{"UUID": f"GPU-{n}", "pod": "p", "namespace": "n"} for n in range(devices)]
    if query.endswith("ms]"):
        named = [{"__name__": ENGINE} | one for one in labels]
        return matrix(*({"metric": one, "values": [[1793620800, "0.5"]]} for one in named))
    tags = re.findall(r'"__steward__", "(DCGM[^"]*)"', query)
    told = [one | {"__steward__": tag} for tag in tags for one in labels]
    return vector(*({"metric": one, "value": [1793620800, "7"]} for one in told))


@pytest.mark.parametrize("devices", [1, 500])
@pytest.mark.parametrize("windows", [[60], [30, 60, 90, 120, 240]])
def test_a_tick_makes_twelve_queries_whatever_the_cluster_and_the_windows(
    source: Source, reader: PrometheusMetrics, devices: int, windows: list[int]
) -> None:
    source.answers = lambda query: answered(devices, query)
    names = [DeviceName(namespace="n", pod="p", uuid=f"GPU-{n}") for n in range(devices)]
    reading = reader.read(END, windows, windows)
    # All devices are in doubt, so that the one query for raw samples is made as well.
    assert [d.windows[0].maximum for d in reading.devices] == [0.5] * devices
    assert len(source.queries()) == 6
    reader.samples(END, 3600, names)
    reader.samples(END, 3600, names)
    reader.samples(END, 7200, names, tuple(Signal))
    reader.seen(END, 3600, [("n", "p")])
    reader.kueue(END)
    assert len(source.queries()) == 12


def test_one_query_asks_one_function_of_every_metric_and_window(
    source: Source, reader: PrometheusMetrics
) -> None:
    reader.read(END, [60, 30, 60], [30])
    queries = source.queries()
    assert len(queries) == len(set(queries)) == 5
    functions = [query.partition("_over_time")[0].rpartition("(")[2] for query in queries]
    # The maximum last: a sample that arrives meanwhile may be missed by a count, not by it.
    assert functions[:4] == ["count", "avg", "min", "max"]
    maximum = queries[3].split(" or ")
    assert len(maximum) == 8  # three metrics of activity over two windows, two signals over one
    assert (
        f'label_replace(max_over_time({ENGINE}{{}}[3599999ms]), "__steward__", "{ENGINE} 60", "", "")'
        in maximum
    )
    assert any("DCGM_FI_DEV_POWER_USAGE{}[1799999ms]" in part for part in maximum)
    assert not any("DCGM_FI_DEV_POWER_USAGE{}[3599999ms]" in part for part in maximum)
    assert f"timestamp({ENGINE}{{}})" in queries[0]
    assert queries[4].startswith("last_over_time({__name__=~")
    assert queries[4].endswith("[3599999ms])")


def test_only_devices_in_doubt_are_named_and_of_very_many_none(
    source: Source, reader: PrometheusMetrics
) -> None:
    source.answers = lambda query: answered(MOST_NAMED, query)
    reader.read(END, [60])
    named = source.queries()[-1]
    assert all(f"GPU-{n}|" in named for n in range(MOST_NAMED))
    assert "neuroncore" not in named
    source.answers = lambda query: answered(MOST_NAMED + 1, query)
    assert len(reader.read(END, [60]).devices) == MOST_NAMED + 1
    assert "GPU-" not in source.queries()[-1]


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
        vector({"metric": {"UUID": "a"}, "value": [0, 1]}),
        vector({"metric": {"UUID": "a"}, "value": [0, "one"]}),
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
    [
        {"metric": {}},
        {"metric": {}, "values": [[0]]},
        {"metric": {}, "values": [[0, "x"]]},
        {"metric": {}, "values": [[1e300, "1"]]},
        {"metric": {"UUID": 7}, "values": [[0, "1"]]},
    ],
)
def test_raw_samples_of_another_form_are_permanent(
    source: Source, reader: PrometheusMetrics, entry: Any
) -> None:
    source.answer = matrix(entry)
    with pytest.raises(PermanentError, match="not an answer of Prometheus"):
        reader.samples(END, 3600, [DeviceName(namespace="n", pod="p", uuid="GPU-1")])


def test_an_answer_that_breaks_off_is_asked_for_again(
    source: Source, reader: PrometheusMetrics
) -> None:
    whole = json.dumps(vector({"metric": {"UUID": "GPU-1"}, "value": [0, "1"]})).encode()
    for length in (0, 1, 40, len(whole) - 1):
        source.answer = whole[:length]
        error = refusal(reader)
        assert type(error) is RetryableError
        assert f"breaks off after {length} bytes" in str(error)


def test_an_answer_that_is_too_large_is_refused_before_it_is_whole(
    source: Source, reader: PrometheusMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_api, "LARGEST_ANSWER", 2**20)
    # Packed it is small: what counts is what it becomes.
    source.answer = gzip.compress(json.dumps(vector() | {"warnings": ["x" * 2**22]}).encode())
    source.headers = {"Content-Encoding": "gzip"}
    error = refusal(reader)
    assert type(error) is PermanentError
    assert "more than 1048576 bytes" in str(error)
    assert "cluster label" in str(error)
    # And the next question is answered as if nothing had been.
    source.answer, source.headers = EMPTY, {}
    assert reader.read(END, [60]).devices == ()


def test_labels_in_any_order_and_spacing_are_the_same_series(
    source: Source, reader: PrometheusMetrics
) -> None:
    turns = itertools.count()

    def shuffled(query: str) -> Any:
        entries = answered(1, query)["data"]["result"]
        for entry in entries:
            entry["value"] = [0, "1"]
            if next(turns) % 2:
                entry["metric"] = dict(reversed(entry["metric"].items()))
        spaced = json.dumps(vector(*entries), indent=next(turns) % 3 or None)
        return spaced.encode()

    source.answers = shuffled
    (device,) = reader.read(END, [60]).devices
    assert (device.windows[0].present, device.windows[0].maximum) == (1, 1)
    assert len(source.queries()) == 5  # nothing was in doubt


def test_an_answer_that_trickles_in_is_given_up_at_the_deadline(source: Source) -> None:
    ticks = iter([0, 1, 100])  # begin, before the first query, after the first piece of its answer
    reader = PrometheusMetrics(source.url, deadline_seconds=30, monotonic=lambda: next(ticks))
    assert type(refusal(reader)) is RetryableError
    reader.close()


def test_samples_out_of_order_are_put_in_order(source: Source, reader: PrometheusMetrics) -> None:
    labels = {"__name__": ENGINE, "UUID": "GPU-1", "pod": "p", "namespace": "n"}
    source.answer = matrix({"metric": labels, "values": [[120, "0.3"], [0, "0.1"], [60, "0.2"]]})
    name = DeviceName(namespace="n", pod="p", uuid="GPU-1")
    (samples,) = reader.samples(END, 3600, [name])
    assert samples.values == (0.1, 0.2, 0.3)
    assert [time.timestamp() for time in samples.times] == [0, 60, 120]


def test_every_device_whose_samples_are_asked_for_is_named(
    source: Source, reader: PrometheusMetrics
) -> None:
    source.answer = matrix()
    names = [DeviceName(namespace="n", pod="p", uuid=f"GPU-{n}") for n in range(2 * MOST_NAMED)]
    assert len(reader.samples(END, 3600, names)) == 2 * MOST_NAMED
    assert f"GPU-{2 * MOST_NAMED - 1}|" in source.queries()[0]
    core = DeviceName(namespace="n", pod="p", uuid="i-0a/neuron3")
    reader.samples(END, 3600, [core])
    assert 'instance_id=~"i-0a"' in source.queries()[1]
    assert "DCGM" not in source.queries()[1]


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
    reader = PrometheusMetrics(source.url, deadline_seconds=45, monotonic=lambda: next(ticks))
    assert "deadline" in str(refusal(reader))
    # Two looks a query, before it and at its answer: at 10, 20, 30 and 40, and then it is 50.
    assert len(source.requests) == 2
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
