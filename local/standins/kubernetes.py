"""A Kubernetes API server that serves a recording: discovery, paged lists, and its refusals.

What a recording does not hold is answered as docs/recordings.md says: a listed resource without a
file is forbidden, any other resource does not exist.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from local.standins.kubernetes_resources import (
    RESOURCES,
    Discovery,
    RecordedKubernetes,
    Resource,
)
from local.standins.kubernetes_wire import (
    Document,
    RefusedError,
    field_of,
    limit_of,
    not_found,
    partial,
    position,
    selected,
    status,
    token,
    without_type,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

GZIP_FROM = 128 * 1024
"""Bytes from which a real server compresses for a client that accepts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One scripted answer in place of the recorded one.

    Attributes
    ----------
    resource : str
        Whose lists it strikes: the last step of the path, so a group's name strikes its discovery.
    namespace : str or None
        Strike only lists of that namespace.
    status : int or None
        None: the recorded answer (after the stall).
    times : int
        How many requests it strikes.
    continued : bool
        Strike only requests for a page after the first.
    body : bytes or None
        None: the Status object that belongs to the status.
    stall_seconds : float
        Real time that passes before the answer.
    """

    resource: str
    namespace: str | None = None
    status: int | None = None
    times: int = 1
    continued: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    stall_seconds: float = 0.0

    def strikes(self, request: Request) -> bool:
        """Tell whether it is this request that the fault is about."""
        path, _, resource = request.path.rstrip("/").rpartition("/")
        inside = self.namespace is None or path.endswith(f"/namespaces/{self.namespace}")
        turned = "continue" in request.args or not self.continued
        return self.resource == resource and inside and turned

    def answer(self) -> Response | None:
        """Stall, then give the scripted answer; None for the recorded one."""
        time.sleep(self.stall_seconds)
        if self.status is None:
            return None
        body = self.body
        if body is None:
            body = json.dumps(status(self.status, "scripted")).encode()
        return Response(body, self.status, self.headers, mimetype="application/json")


class KubernetesStandin:
    """WSGI application; mount it at the root or below a path.

    Parameters
    ----------
    recording : RecordedKubernetes
        What is served.
    now : callable
        The time: the folder in force then is served, and no page is ever newer than its list.
    faults : sequence of Fault
        Scripted answers, used up in order.
    """

    def __init__(
        self,
        recording: RecordedKubernetes,
        now: Callable[[], datetime],
        faults: Sequence[Fault] = (),
    ) -> None:
        self._recording = recording
        self._now = now
        self._faults = [one for one in faults for _ in range(one.times)]

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        try:
            response = self._scripted(request) or _json(request, 200, self._answer(request))
        except RefusedError as error:
            response = _json(request, error.code, status(error.code, str(error)))
        return response(environ, start_response)

    def _scripted(self, request: Request) -> Response | None:
        for fault in self._faults:
            if fault.strikes(request):
                self._faults.remove(fault)
                return fault.answer()
        return None

    def _answer(self, request: Request) -> Document:
        if request.method != "GET":
            raise RefusedError(405, f"{request.method} is not served: the stand-in is read-only")
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not bearer.strip():
            raise RefusedError(401, "Unauthorized")
        at = self._now()
        if not self._recording.has_kubernetes(at):
            raise RefusedError(403, f'forbidden: User "steward" cannot get path "{request.path}"')
        match request.path.strip("/").split("/"):
            case ["version"]:
                return {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
            case ["api"]:
                return {"kind": "APIVersions", "versions": ["v1"]}
            case ["apis"]:
                return Discovery(self._recording, at).groups()
            case ["apis", group]:
                return Discovery(self._recording, at).group(group)
            case ["api", "v1", *rest]:
                return self._below("", "v1", rest, request, at)
            case ["apis", group, version, *rest]:
                return self._below(group, version, rest, request, at)
        raise not_found(request.path)

    def _below(
        self, group: str, version: str, rest: Sequence[str], request: Request, at: datetime
    ) -> Document:
        namespace = None
        match rest:
            case []:
                return Discovery(self._recording, at).resources(group, version)
            case ["namespaces", within, _, *_]:
                namespace, rest = within, rest[2:]
        start, at = position(request.args.get("continue"), at)
        known, items = self._objects(group, version, rest[0], at, namespace)
        if namespace is not None:
            items = [one for one in items if field_of(one, "metadata", "namespace") == namespace]
        match rest:
            case [_]:
                return _page((group, version, rest[0]), known, items, request, start, at)
            case [_, name]:
                found = (one for one in items if field_of(one, "metadata", "name") == name)
                document: Document | None = next(found, None)
                if document is None:
                    raise RefusedError(404, f'{rest[0]} "{name}" not found')
                return document
        raise not_found(request.path)

    def _objects(
        self, group: str, version: str, resource: str, at: datetime, namespace: str | None
    ) -> tuple[Resource, Sequence[Any]]:
        """Find a resource's recorded objects, or its recorded refusal."""
        document = self._recording.kubernetes(resource, at)
        items = [] if document is None else document.get("items") or []
        known = RESOURCES.get(resource)
        served = f"{group}/{version}".lstrip("/")
        if known is None:
            first = next(iter(items), None)
            stated = field_of(first, "apiVersion")
            known = Resource(group, version, field_of(first, "kind"), namespaced=True)
        else:
            version = Discovery(self._recording, at).version(resource)
            stated = f"{known.group}/{version}".lstrip("/")
        if stated != served:
            raise not_found(f"{served}/{resource}")
        if document is None:
            scope = (
                "at the cluster scope" if namespace is None else f'in the namespace "{namespace}"'
            )
            raise RefusedError(
                403,
                f'{resource} is forbidden: User "steward" cannot list resource "{resource}" '
                f'in API group "{group}" {scope}',
            )
        if document.get("kind") == "Status":
            raise RefusedError(int(document.get("code", 500)), str(document.get("message", "")))
        return known, items


def _page(
    listed: tuple[str, str, str],
    known: Resource,
    items: Sequence[Any],
    request: Request,
    start: int,
    at: datetime,
) -> Document:
    """Cut one page of a list, in the form that the client accepts."""
    for unsupported in ("labelSelector", "watch"):
        if request.args.get(unsupported):
            raise RefusedError(400, f"{unsupported} is not served by the stand-in")
    group, version, resource = listed
    stated = f"{group}/{version}".lstrip("/")
    selector = request.args.get("fieldSelector", "")
    chosen = [one for one in items if selected(one, selector, resource)]
    end = start + (limit_of(request.args.get("limit")) or len(chosen))
    metadata: dict[str, Any] = {"resourceVersion": str(int(at.timestamp()))}
    if end < len(chosen):
        metadata |= {"continue": token(end, at), "remainingItemCount": len(chosen) - end}
    page, kind = chosen[start:end], f"{known.kind}List"
    if "as=PartialObjectMetadataList" in request.headers.get("Accept", ""):
        page = [partial(one) for one in page]
        kind, stated = "PartialObjectMetadataList", "meta.k8s.io/v1"
    elif not known.custom:
        page = [without_type(one) for one in page]
    return {"kind": kind, "apiVersion": stated, "metadata": metadata, "items": page}


def _json(request: Request, code: int, document: Document) -> Response:
    body = json.dumps(document, separators=(",", ":")).encode()
    headers = {}
    if len(body) >= GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        body, headers = gzip.compress(body, 1), {"Content-Encoding": "gzip"}
    return Response(body, code, headers, mimetype="application/json")
