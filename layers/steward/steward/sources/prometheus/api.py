"""The HTTP side of Prometheus' query API: signing, deadlines, and errors with their remedy.

There is no retry here: what failed is read again at the next tick.
"""

import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from typing import Literal
from urllib.parse import urlencode

import msgspec
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from steward.aws_errors import aws_call
from steward.errors import DeniedError, PermanentError, RetryableError
from steward.sources.prometheus.samples import Points, to_ms

type CredentialsSource = Callable[[], Credentials | None]
"""Asked before each query; a session's `get_credentials` is one."""

_FORM = "application/x-www-form-urlencoded"
_DENIED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_PASSING = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}
_MALFORMED = (msgspec.DecodeError, TypeError, ValueError, OverflowError)

LARGEST_ANSWER = 384 * 2**20
"""Bytes, unpacked: twice what 50,000 devices need (`make bench`); a function has room for it."""

_CHUNK = 2**20


class _Value(msgspec.Struct, frozen=True, gc=False):
    metric: msgspec.Raw
    value: tuple[float, str]


class _Values(msgspec.Struct, frozen=True, gc=False):
    metric: msgspec.Raw
    values: msgspec.Raw


class _Vector(msgspec.Struct, frozen=True, tag_field="resultType", tag="vector"):
    result: list[_Value]


class _Matrix(msgspec.Struct, frozen=True, tag_field="resultType", tag="matrix"):
    result: list[_Values]


class _Answer[Data](msgspec.Struct, frozen=True):
    status: Literal["success"]
    data: Data


_vector = msgspec.json.Decoder(_Answer[_Vector])
_matrix = msgspec.json.Decoder(_Answer[_Matrix])
_samples = msgspec.json.Decoder(list[tuple[float, str]])


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

    def vector[Key](
        self, text: str, end: datetime, deadline: float, key: Callable[[msgspec.Raw], Key | None]
    ) -> Iterator[tuple[Key, float]]:
        """Evaluate a query for one value a series.

        Parameters
        ----------
        key : callable
            Makes what is kept of a series' labels, from their JSON; None leaves the series out.
        """
        for entry in self._query(text, end, deadline, _vector).result:
            try:
                about = key(entry.metric)
                value = float(entry.value[1])
            except _MALFORMED as error:
                raise self._nonsense(bytes(entry.metric)) from error
            if about is not None:
                yield about, value

    def matrix[Key](
        self, text: str, end: datetime, deadline: float, key: Callable[[msgspec.Raw], Key | None]
    ) -> Iterator[tuple[Key, Points]]:
        """Evaluate a query for raw samples; `key` as in :meth:`vector`."""
        for entry in self._query(text, end, deadline, _matrix).result:
            try:
                about = key(entry.metric)
                pairs = sorted(_samples.decode(entry.values))  # they come sorted: a look, no work
                times = array("q", [round(at * 1000) for at, _ in pairs])
                values = array("d", [float(value) for _, value in pairs])
            except _MALFORMED as error:
                raise self._nonsense(bytes(entry.metric)) from error
            if about is not None:
                yield about, Points(times, values)

    def _query[Data](
        self,
        text: str,
        end: datetime,
        deadline: float,
        decoder: msgspec.json.Decoder[_Answer[Data]],
    ) -> Data:
        form = {"query": text, "time": f"{to_ms(end) / 1000:.3f}"}
        body = self._post(urlencode(form), deadline)
        try:
            return decoder.decode(body).data
        except _MALFORMED as error:
            if str(error) == "Input data was truncated":
                raise RetryableError(
                    f"{self._url}: the answer breaks off after {len(body)} bytes; asked again next tick"
                ) from error
            raise self._nonsense(body) from error

    def _post(self, body: str, deadline: float) -> bytearray:
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
                preload_content=False,
            )
            return self._read(response, deadline)
        except (urllib3.exceptions.SSLError, urllib3.exceptions.LocationValueError) as error:
            raise PermanentError(
                f"{self._url}: {error}; check the metrics endpoint of the policy"
            ) from error
        except urllib3.exceptions.HTTPError as error:
            raise RetryableError(f"{self._url}: {error}; asked again next tick") from error

    def _read(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytearray:
        body = bytearray()
        # Read to its end, the connection is free again; left unread, it must not be.
        with closing(response):
            for chunk in response.stream(_CHUNK, decode_content=True):
                body += chunk
                self._check(len(body), deadline)
        if response.status != HTTPStatus.OK:
            raise self._refusal(response.status, body)
        return body

    def _check(self, size: int, deadline: float) -> None:
        if size > LARGEST_ANSWER:
            raise PermanentError(
                f"{self._url}: answers more than {LARGEST_ANSWER} bytes; "
                "set the cluster label of the metrics source, or ask for shorter windows"
            )
        if self._monotonic() > deadline:
            raise RetryableError(
                f"{self._url}: no whole answer before the deadline; asked next tick"
            )

    def _signed(self, body: str) -> dict[str, str]:
        request = AWSRequest("POST", self._url, headers={"Content-Type": _FORM}, data=body)
        with aws_call(f"{self._url}: sign the query", denied="check the role of the cluster"):
            credentials = self._credentials()
            frozen = credentials.get_frozen_credentials() if credentials else None
        if frozen is None:
            raise DeniedError(f"{self._url}: no AWS credentials to sign with; check the role")
        SigV4Auth(frozen, "aps", self._region or "").add_auth(request)
        return dict(request.headers.items())

    def _refusal(
        self, status: int, body: bytearray
    ) -> DeniedError | RetryableError | PermanentError:
        said = f"{self._url}: HTTP {status}: {body[:300].decode(errors='replace')}"
        if status in _DENIED:
            return DeniedError(f"{said}; allow aps:QueryMetrics on the workspace")
        if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return RetryableError(f"{said}; asked again next tick")
        return PermanentError(f"{said}; check the metrics endpoint of the policy")

    def _nonsense(self, what: bytes | bytearray) -> PermanentError:
        return PermanentError(
            f"{self._url}: not an answer of Prometheus' query API: "
            f"{what[:300].decode(errors='replace')}; check the metrics endpoint of the policy"
        )
