"""SageMaker, EKS and CloudWatch over HTTP, answered from a recording in their wire form.

moto lacks the quota calls and botocore's Stubber refuses members that its model does not know, so
the local rig answers these services itself; everything else at its root goes to moto.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request

from local.recording import Recording
from local.standins.aws_wire import RefusedError
from local.standins.cloudwatch import CloudWatchStandin
from local.standins.eks import EksStandin
from local.standins.sagemaker import SageMakerStandin

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class AwsStandin:
    """A WSGI application that is SageMaker, EKS and CloudWatch.

    Parameters
    ----------
    now : callable
        The virtual time: decides which recorded folder is in force; no later event is shown.
    kubernetes_endpoint : str
        Base URL of the rig's Kubernetes API; takes the place of the recorded endpoint and of its
        certificate authority (the rig speaks plain HTTP).
    """

    def __init__(
        self, recording: Recording, now: Callable[[], datetime], kubernetes_endpoint: str
    ) -> None:
        self._sagemaker = SageMakerStandin(recording, now)
        self._cloudwatch = CloudWatchStandin(recording, now)
        self._eks = EksStandin(recording, now, kubernetes_endpoint)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        others = (self._sagemaker, self._cloudwatch)
        service = next((one for one in others if one.is_asked(request)), self._eks)
        try:
            response = service.respond(request)
        except RefusedError as refusal:
            response = refusal.response()
        return response(environ, start_response)
