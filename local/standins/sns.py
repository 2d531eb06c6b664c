"""Amazon SNS, as far as a pager needs it: every topic exists, and takes what is published."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from werkzeug.wrappers import Request, Response

from steward.cluster.figures import stamp

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_TAKEN = """<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/">
<PublishResult><MessageId>{0}</MessageId></PublishResult>
<ResponseMetadata><RequestId>{0}</RequestId></ResponseMetadata>
</PublishResponse>"""
_REFUSED = """<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/">
<Error><Type>Sender</Type><Code>InvalidAction</Code><Message>the rig publishes only</Message></Error>
</ErrorResponse>"""


def is_sns(environ: "WSGIEnvironment") -> bool:
    """Tell a request to SNS by its signature's scope: all of the Query API is posted to `/`."""
    return "/sns/aws4_request" in environ.get("HTTP_AUTHORIZATION", "")


class SnsStandin:
    """WSGI application for Publish.

    Parameters
    ----------
    now : callable
        The virtual time.
    on_page : callable
        Told of each message: `at`, `topic_arn`, `subject`, `message`.
    """

    def __init__(
        self, now: Callable[[], datetime], on_page: Callable[[dict[str, Any]], None]
    ) -> None:
        self._now = now
        self._on_page = on_page

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer one call of the Query API."""
        return self._respond(Request(environ))(environ, start_response)

    def _respond(self, request: Request) -> Response:
        form = request.form
        if form.get("Action") != "Publish":
            return Response(_REFUSED, 400, content_type="text/xml")
        page = {
            "at": stamp(self._now()),
            "topic_arn": form.get("TopicArn"),
            "subject": form.get("Subject"),
            "message": form.get("Message"),
        }
        self._on_page(page)
        # The same page has the same id in every run.
        return Response(_TAKEN.format(uuid5(NAMESPACE_URL, repr(page))), content_type="text/xml")
