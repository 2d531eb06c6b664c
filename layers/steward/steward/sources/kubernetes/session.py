"""GET requests to one Kubernetes API server within one deadline: TLS, token, paging, refusals."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Self
from urllib.parse import urlencode

import msgspec
import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, SSLError

from steward.errors import ConfigError, PermanentError, RetryableError
from steward.sources.kubernetes.status import Answer, read_answer

if TYPE_CHECKING:
    from steward.ports import Clock
    from steward.sources.control_plane.reader import EksEndpoint

PAGE = 500
"""Objects a page, as kubectl asks for."""

CONNECT_SECONDS = 3.0
REQUEST_SECONDS = 10.0

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
"""What makes the server send metadata alone: pod templates of owners never leave the cluster."""

LARGEST_ANSWER = 64 * 2**20
"""Bytes of one answer, uncompressed; a page of 500 objects of a real cluster has under ten."""

_CHUNK = 2**16


class _Position(msgspec.Struct, rename={"token": "continue"}):
    """A list's `metadata`: where its next page starts."""

    token: str | None = None


class _Page(Answer):
    """A page of a list; its objects stay bytes until somebody reads them, each by itself."""

    metadata: _Position | None = None
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


class _Version(msgspec.Struct):
    version: str


class _Group(Answer, rename="camel"):
    """An API group, as discovery describes it."""

    versions: list[_Version] | None = None
    preferred_version: _Version | None = None


class KubernetesSession:
    """One read of one API server; connections live as long as the session.

    Parameters
    ----------
    endpoint : EksEndpoint
        Its certificate authority is the only one that is trusted.
    token : str
        Bearer token; sent to this endpoint only, never along a redirect.
    until : datetime
        When the read has to be over.
    plain_http : bool
        Whether an endpoint without TLS is accepted: the local rig's is.

    Raises
    ------
    ConfigError
        The endpoint is plain HTTP, and that is not accepted.
    PermanentError
        The certificate authority is not base64.
    """

    def __init__(
        self,
        endpoint: EksEndpoint,
        token: str,
        clock: Clock,
        until: datetime,
        *,
        plain_http: bool = False,
    ) -> None:
        self._base = endpoint.endpoint.rstrip("/")
        self._headers = {
            "Accept-Encoding": "gzip",
            "Authorization": f"Bearer {token}",
            "User-Agent": "gpu-steward",
        }
        self._clock = clock
        self._until = until
        self._unreachable = ""
        if self._base.startswith("https://"):
            self._pool = urllib3.PoolManager(
                cert_reqs="CERT_REQUIRED", ca_cert_data=_authority(endpoint)
            )
        elif plain_http:
            self._pool = urllib3.PoolManager()
        else:
            raise ConfigError(
                f"Kubernetes API {self._base} of {endpoint.name}: not https, and a token never "
                "travels in the clear; correct the endpoint (only LOCAL_ENDPOINT may be plain)"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.clear()

    def versions(self, group: str) -> tuple[str, ...]:
        """Ask an API group for the versions that it serves, the one that it prefers first.

        Raises
        ------
        NotInstalledError
            The group does not exist.
        DeniedError, RetryableError, PermanentError
            See :meth:`get`.
        """
        answer = self.get(f"/apis/{group}", _Group)
        if answer.preferred_version is None or not answer.versions:
            raise PermanentError(f"/apis/{group} is not an API group: it names no versions")
        served = (one.version for one in answer.versions)
        return tuple(dict.fromkeys((answer.preferred_version.version, *served)))

    def pages(
        self, path: str, *, fields: str = "", accept: str = "application/json"
    ) -> Iterator[list[msgspec.Raw]]:
        """Yield the items of a list, page by page; raises as :meth:`get` does.

        Parameters
        ----------
        path : str
            Of the list.
        fields : str
            Field selector, applied by the server.
        accept : str
            Media types that are understood; see :data:`METADATA_ONLY`.
        """
        query = {"limit": str(PAGE)}
        if fields:
            query["fieldSelector"] = fields
        while True:
            page = self.get(path, _Page, query, accept)
            if page.items is msgspec.UNSET:
                raise PermanentError(f"{path}: the answer is not a list of objects")
            # The API's lists may be null where they are empty.
            yield page.items or []
            token = page.metadata.token if page.metadata else None
            if not token:
                return
            query["continue"] = token

    def get[T: Answer](
        self,
        path: str,
        document: type[T],
        query: Mapping[str, str] | None = None,
        accept: str = "application/json",
    ) -> T:
        """Get one document; a server that asks to wait is waited for, within the deadline.

        Raises
        ------
        DeniedError
            401 or 403.
        NotInstalledError
            404: the server does not know the path.
        ExpiredError
            410: the position in the list is no longer known.
        RetryableError
            No (whole) answer in time, 5xx, or asked to wait for too long (429).
        PermanentError
            Any other refusal, an answer that is not the JSON document asked for, or one larger
            than :data:`LARGEST_ANSWER`.
        """
        url = f"{self._base}{path}" + (f"?{urlencode(query)}" if query else "")
        while True:
            status, headers, body = self._exchange(path, url, accept)
            if status != 429:
                break
            self._wait(path, headers.get("Retry-After", ""))
        return read_answer(path, status, body, document)

    def _exchange(
        self, path: str, url: str, accept: str
    ) -> tuple[int, Mapping[str, str], bytearray]:
        """Send one request and read its whole answer, however slowly it trickles in."""
        if self._unreachable:
            # One vain attempt to connect tells enough: the others would only use up the deadline.
            raise RetryableError(self._unreachable)
        left = self._left(path)
        timeout = urllib3.Timeout(
            connect=min(CONNECT_SECONDS, left), read=min(REQUEST_SECONDS, left)
        )
        try:
            response = self._pool.request(
                "GET",
                url,
                headers={**self._headers, "Accept": accept},
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=False,
            )
            with response:
                body = bytearray()
                while chunk := response.read1(_CHUNK):
                    body += chunk
                    self._left(path)
                    if len(body) > LARGEST_ANSWER:
                        raise PermanentError(
                            f"{path}: the answer is larger than {LARGEST_ANSWER >> 20} MiB: "
                            f"objects too large for a page of {PAGE}; find and shrink them"
                        )
                return response.status, response.headers, body
        except (ConnectTimeoutError, SSLError) as error:
            self._unreachable = f"{self._base} is not reachable: {error}"
            raise RetryableError(self._unreachable) from error
        except HTTPError as error:
            raise RetryableError(f"{path}: no answer: {error}") from error

    def _left(self, path: str) -> float:
        left = (self._until - self._clock.now()).total_seconds()
        if left <= 0:
            raise RetryableError(f"{path}: the deadline for the Kubernetes API has passed")
        return left

    def _wait(self, path: str, retry_after: str) -> None:
        """Wait as long as the server asks, at least a second, or give up at once."""
        seconds = max(1, int(retry_after)) if retry_after.isdecimal() else 1
        if seconds >= self._left(path):
            raise RetryableError(
                f"{path}: 429, asked to wait {seconds} s, which the deadline does not allow"
            )
        self._clock.sleep(seconds)


def _authority(endpoint: EksEndpoint) -> str:
    if not endpoint.ca_data:
        # Without one, urllib3 would trust every authority that the system knows.
        raise PermanentError(
            f"EKS cluster {endpoint.name}: it names no certificate authority, and none else is "
            "trusted; is it still creating?"
        )
    try:
        return base64.b64decode(endpoint.ca_data, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise PermanentError(
            f"EKS cluster {endpoint.name}: its certificate authority is not a base64 PEM: {error}"
        ) from error
