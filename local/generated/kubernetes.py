"""The Kubernetes API of a generated cluster: pages of lists, written while they are sent."""

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request, Response

from local.generated.listed import Listed
from local.generated.objects import Objects
from local.standins.kubernetes_resources import RESOURCES
from local.standins.kubernetes_wire import RefusedError, limit_of, status

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

GZIP_FROM = 128 * 1024
"""Bytes from which a real server compresses for a client that accepts it."""

_INSTALLED = ("kueue.x-k8s.io", "kubeflow.org", "apps", "batch", "events.k8s.io")


class GeneratedKubernetes:
    """A WSGI application; keeps nothing of an object but who it is.

    Parameters
    ----------
    objects : Objects
        What is served.
    count : callable
        Called once a request.
    """

    def __init__(self, objects: Objects, count: Callable[[], None]) -> None:
        self._objects = objects
        self._count = count
        self._chosen = cache(self._choose)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer one request."""
        self._count()
        request = Request(environ)
        try:
            code, body = 200, self._answer(request)
        except RefusedError as error:
            code, body = error.code, json.dumps(status(error.code, str(error)))
        data, headers = body.encode(), {}
        if len(data) >= GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
            data, headers = gzip.compress(data, 1), {"Content-Encoding": "gzip"}
        response = Response(data, code, headers, mimetype="application/json")
        return response(environ, start_response)

    def _answer(self, request: Request) -> str:
        match request.path.strip("/").split("/"):
            case ["apis", group] if group in _INSTALLED:
                return _group(group)
            case ["api", "v1", *rest]:
                return self._list("v1", rest, request)
            case ["apis", group, version, *rest] if group in _INSTALLED:
                return self._list(f"{group}/{version}", rest, request)
        raise RefusedError(404, f"no such path: {request.path}")

    def _list(self, stated: str, rest: Sequence[str], request: Request) -> str:
        match rest:
            case [resource] if resource in RESOURCES:
                namespace = None
            case ["namespaces", namespace, resource] if resource in RESOURCES:
                pass
            case _:
                raise RefusedError(404, f"no such path: {request.path}")
        selector = request.args.get("fieldSelector", "")
        found = self._chosen(resource, namespace, selector)
        start = int(request.args.get("continue") or 0)
        end = start + (limit_of(request.args.get("limit")) or len(found))
        metadata = {"resourceVersion": "1"} | ({"continue": str(end)} if end < len(found) else {})
        items = ",".join(one.text() for one in found[start:end])
        kind = f"{RESOURCES[resource].kind}List"
        head = json.dumps({"kind": kind, "apiVersion": stated, "metadata": metadata})
        return f'{head[:-1]},"items":[{items}]}}'

    def _choose(self, resource: str, namespace: str | None, selector: str) -> Sequence[Listed]:
        terms = [_term(term) for term in filter(None, selector.split(","))]
        return [
            one
            for one in self._objects.of(resource)
            if (namespace is None or one.namespace == namespace)
            and all((one.fields.get(name, "") == value) is wanted for name, value, wanted in terms)
        ]


def _term(term: str) -> tuple[str, str, bool]:
    name, operator, value = term.partition("!=") if "!=" in term else term.partition("=")
    return name, value.lstrip("="), operator == "="


def _group(name: str) -> str:
    version = next((one.version for one in RESOURCES.values() if one.group == name), "v1")
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return json.dumps({"name": name, "versions": [served], "preferredVersion": served})
