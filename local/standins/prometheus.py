"""Prometheus' query API over a recording's series, in process; and a gate before a real one."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import urllib3
from werkzeug.wrappers import Request, Response

from local.metrics.evaluate import Evaluator
from local.metrics.openmetrics import Series
from local.metrics.plans import QueryError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_PATH = "/api/v1/query"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PrometheusStandin:
    """Answers instant queries; samples later than now do not exist yet.

    Parameters
    ----------
    series : sequence of Series, or None
        None: Prometheus is unreachable. On a port that the whole rig shares a connection cannot be
        refused, so that is a 503, which is what a gateway before a dead Prometheus says.
    now : callable
        The virtual time.
    """

    def __init__(self, series: Sequence[Series] | None, now: Callable[[], datetime]) -> None:
        self._evaluator = None if series is None else Evaluator(series)
        self._now = now

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer one request (WSGI)."""
        return self._respond(Request(environ))(environ, start_response)

    def _respond(self, request: Request) -> Response:
        if self._evaluator is None:
            return _error(QueryError(503, "unavailable", "the recording has no metrics folder"))
        now_ms = _ms(self._now())
        try:
            text, at_ms = _asked(request, now_ms)
            data = self._evaluator.query(text, at_ms, now_ms)
        except QueryError as error:
            return _error(error)
        return _json({"status": "success", "data": data}, 200)


class PrometheusGate:
    """Hands queries to a real Prometheus, and refuses one that would see past the virtual time.

    Parameters
    ----------
    base_url : str
        Of the Prometheus, on this machine.
    now : callable
        The virtual time.
    """

    def __init__(self, base_url: str, now: Callable[[], datetime]) -> None:
        self._url = f"{base_url}{_PATH}"
        self._now = now
        self._http = urllib3.PoolManager(retries=False)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer one request (WSGI)."""
        return self._respond(Request(environ))(environ, start_response)

    def close(self) -> None:
        """Close the connections to the Prometheus."""
        self._http.clear()

    def _respond(self, request: Request) -> Response:
        now_ms = _ms(self._now())
        try:
            text, at_ms = _asked(request, now_ms)
        except QueryError as error:
            return _error(error)
        if at_ms > now_ms:
            message = f"time {at_ms / 1000:.3f} is later than the virtual {now_ms / 1000:.3f}"
            return _error(QueryError(400, "bad_data", message))
        answer = self._http.request_encode_body(
            "POST",
            self._url,
            fields={"query": text, "time": f"{at_ms / 1000:.3f}"},
            encode_multipart=False,
        )
        return Response(answer.data, answer.status, content_type="application/json")


def _asked(request: Request, now_ms: int) -> tuple[str, int]:
    if request.path != _PATH:
        raise QueryError(404, "not_found", f"{request.path}: this stand-in has {_PATH} only")
    query, time = request.values.get("query"), request.values.get("time")
    if not query:
        raise QueryError(400, "bad_data", 'invalid parameter "query": empty')
    if not time:
        return query, now_ms
    try:
        return query, round(float(time) * 1000)
    except (ValueError, OverflowError) as error:
        message = f'invalid parameter "time": {time!r} is not a number of seconds'
        raise QueryError(400, "bad_data", message) from error


def _ms(when: datetime) -> int:
    return (when - _EPOCH) // timedelta(milliseconds=1)


def _error(error: QueryError) -> Response:
    body = {"status": "error", "errorType": error.kind, "error": str(error)}
    return _json(body, error.status)


def _json(body: Any, status: int) -> Response:
    # Labels in order, as Prometheus writes them.
    text = msgspec.json.encode(body, order="deterministic")
    return Response(text, status, content_type="application/json")
