"""The HTTP side of Prometheus' query API: signing, deadlines, and errors with their remedy.

There is no retry here: what failed is read again at the next tick.
"""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import msgspec
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from steward.aws_errors import aws_call
from steward.errors import DeniedError, PermanentError, RetryableError
from steward.sources.dcgm import Labels
from steward.sources.dcgm_samples import Raw, to_ms

type CredentialsSource = Callable[[], Credentials | None]
"""Asked before each query; a session's `get_credentials` is one."""

_FORM = "application/x-www-form-urlencoded"
_DENIED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_PASSING = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}
_MALFORMED = (msgspec.DecodeError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class QueryApi:
    """Asks instant queries.

    Parameters
    ----------
    base_url : str
        What `/api/v1/query` is appended to.
    sigv4_region : str or None
        Region of the AMP workspace; None sends unsigned requests.
    credentials : callable
        Where SigV4 gets its credentials from.
    monotonic : callable
        Seconds of a clock that never goes back.

    Notes
    -----
    Every method raises DeniedError (401, 403, no credentials), RetryableError (429, 5xx, no answer
    before the deadline) or PermanentError (refused, or not an answer of this API). Warnings that
    come with an answer are passed over.
    """

    def __init__(
        self,
        base_url: str,
        sigv4_region: str | None,
        credentials: CredentialsSource,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = f"{base_url.rstrip('/')}/api/v1/query"
        self._region = sigv4_region
        self._credentials = credentials
        self._monotonic = monotonic

    @cached_property
    def _http(self) -> urllib3.PoolManager:
        return urllib3.PoolManager(retries=False)

    def close(self) -> None:
        """Close the connections kept for the next query."""
        self._http.clear()

    def deadline(self, seconds: float) -> float:
        """Tell when so many seconds from now are over, for the queries of one task."""
        return self._monotonic() + seconds

    def vector(
        self, text: str, end: datetime, deadline: float
    ) -> Iterator[tuple[str, Labels, float]]:
        """Evaluate a query for one value a series: metric name (or empty), labels, value."""
        for entry in self._query(text, end, "vector", deadline):
            try:
                metric, labels = _series(entry)
                value = float(entry["value"][1])
            except _MALFORMED as error:
                raise self._nonsense(repr(entry)) from error
            yield metric, labels, value

    def matrix(self, text: str, end: datetime, deadline: float) -> Iterator[Raw]:
        """Evaluate a query for raw samples."""
        for entry in self._query(text, end, "matrix", deadline):
            try:
                metric, labels = _series(entry)
                times = [round(float(at) * 1000) for at, _ in entry["values"]]
                values = [float(value) for _, value in entry["values"]]
            except _MALFORMED as error:
                raise self._nonsense(repr(entry)) from error
            yield Raw(metric, labels, times, values)

    def _query(self, text: str, end: datetime, kind: str, deadline: float) -> list[Any]:
        form = {"query": text, "time": f"{to_ms(end) / 1000:.3f}"}
        body = self._post(urlencode(form), deadline)
        try:
            answer = msgspec.json.decode(body)
            status, data = answer["status"], answer["data"]
            result = data["result"]
            fits = status == "success" and data["resultType"] == kind and isinstance(result, list)
        except _MALFORMED as error:
            raise self._nonsense(body.decode(errors="replace")) from error
        if not fits:
            raise self._nonsense(body.decode(errors="replace"))
        return list(result)

    def _post(self, body: str, deadline: float) -> bytes:
        left = deadline - self._monotonic()
        if left <= 0:
            raise RetryableError(f"{self._url}: no answer before the deadline; asked next tick")
        headers = {"Content-Type": _FORM} if self._region is None else self._signed(body)
        try:
            response = self._http.request(
                "POST",
                self._url,
                body=body,
                headers=headers | {"Accept-Encoding": "gzip"},
                timeout=urllib3.Timeout(total=left),
                redirect=False,
            )
        except (urllib3.exceptions.SSLError, urllib3.exceptions.LocationValueError) as error:
            raise PermanentError(
                f"{self._url}: {error}; check the metrics endpoint of the policy"
            ) from error
        except urllib3.exceptions.HTTPError as error:
            raise RetryableError(f"{self._url}: {error}; asked again next tick") from error
        if response.status != HTTPStatus.OK:
            raise self._refusal(response.status, response.data)
        return response.data

    def _signed(self, body: str) -> dict[str, str]:
        request = AWSRequest("POST", self._url, headers={"Content-Type": _FORM}, data=body)
        with aws_call(f"{self._url}: sign the query", denied="check the role of the cluster"):
            credentials = self._credentials()
            frozen = credentials.get_frozen_credentials() if credentials else None
        if frozen is None:
            raise DeniedError(f"{self._url}: no AWS credentials to sign with; check the role")
        SigV4Auth(frozen, "aps", self._region or "").add_auth(request)
        return dict(request.headers.items())

    def _refusal(self, status: int, body: bytes) -> DeniedError | RetryableError | PermanentError:
        said = f"{self._url}: HTTP {status}: {body[:300].decode(errors='replace')}"
        if status in _DENIED:
            return DeniedError(f"{said}; allow aps:QueryMetrics on the workspace")
        if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return RetryableError(f"{said}; asked again next tick")
        return PermanentError(f"{said}; check the metrics endpoint of the policy")

    def _nonsense(self, what: str) -> PermanentError:
        return PermanentError(
            f"{self._url}: not an answer of Prometheus' query API: {what[:300]}; "
            "check the metrics endpoint of the policy"
        )


def _series(entry: Any) -> tuple[str, Labels]:
    labels = dict(entry["metric"])
    metric: str = labels.pop("__name__", "")
    return metric, frozenset(labels.items())
