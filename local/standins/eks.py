"""EKS: REST, the cluster in the path."""

from collections.abc import Callable, Mapping
from datetime import datetime

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from local.recording import Recording
from local.standins.aws_wire import Document, RefusedError, Wire, json_response, page, recorded

LISTS = {"ListAddons": "addons", "ListPodIdentityAssociations": "associations"}
"""What the CLI merged and the stand-in pages again."""

PAGE = 100
"""Items of a page where the caller names no maxResults."""

ROUTES = Map(
    [
        Rule(f"/clusters/<name>{path}", endpoint=operation, methods=["GET"])
        for path, operation in (
            ("", "DescribeCluster"),
            ("/addons", "ListAddons"),
            ("/addons/<addon>", "DescribeAddon"),
            ("/pod-identity-associations", "ListPodIdentityAssociations"),
        )
    ]
)


class EksStandin:
    """Answers EKS' calls from a recording, at the virtual time.

    Parameters
    ----------
    kubernetes_endpoint : str
        Takes the place of the recorded endpoint and of its certificate authority.
    """

    def __init__(
        self, recording: Recording, now: Callable[[], datetime], kubernetes_endpoint: str
    ) -> None:
        self._recording = recording
        self._now = now
        self._kubernetes_endpoint = kubernetes_endpoint
        self._wire = Wire("eks")

    def respond(self, request: Request) -> Response:
        """Answer one request.

        Raises
        ------
        RefusedError
            The answer is an error.
        """
        try:
            operation, names = ROUTES.bind_to_environ(request.environ).match(method=request.method)
        except HTTPException as error:
            raise RefusedError(
                "UnknownOperationException", f"{request.method} {request.path} is not recorded"
            ) from error
        answer = self._ask(operation, names, request.args)
        return json_response(self._wire.encode(operation, answer), "application/json")

    def _ask(self, operation: str, names: Mapping[str, str], query: Mapping[str, str]) -> Document:
        now = self._now()
        if operation == "DescribeAddon":
            self._check_installed(names["addon"], now)
            return recorded(self._recording.eks(operation, names["addon"], now), operation)
        if operation in LISTS:
            answer = recorded(self._recording.eks(operation, None, now), operation)
            size = query.get("maxResults", PAGE)
            return page(answer, LISTS[operation], "nextToken", size, query.get("nextToken"))
        answer = recorded(self._recording.eks(operation, names["name"], now), operation)
        if not isinstance(answer.get("cluster"), dict):
            return answer
        here = {"endpoint": self._kubernetes_endpoint, "certificateAuthority": {"data": ""}}
        return answer | {"cluster": answer["cluster"] | here}

    def _check_installed(self, addon: str, now: datetime) -> None:
        listed = self._recording.eks("ListAddons", None, now) or {}
        names = listed.get("addons")
        if isinstance(names, list) and addon not in names:
            raise RefusedError("ResourceNotFoundException", f"No addon: {addon} found in cluster")
