"""S3's ListObjectsV2, path-style, in S3's XML; answered from a recording's `checkpoints/`."""

from collections.abc import Callable, Iterable
from datetime import datetime
from hashlib import md5
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, tostring

from werkzeug.wrappers import Request, Response

from local.recording import Recording
from local.recording.checkpoints import StoredFile

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
LARGEST_PAGE = 1000

_STATUS = {
    "AccessDenied": 403,
    "InternalError": 500,
    "NoSuchBucket": 404,
    "RequestTimeTooSkewed": 403,
    "ServiceUnavailable": 503,
    "SlowDown": 503,
}
"""S3's error codes to their HTTP status; any other is a bad request."""


def is_listing(environ: "WSGIEnvironment") -> bool:
    """Tell whether a request asks S3 to list a bucket."""
    asked = environ.get("QUERY_STRING", "").split("&")
    return environ["REQUEST_METHOD"] == "GET" and "list-type=2" in asked


def bucket_of(environ: "WSGIEnvironment") -> str:
    """Name the bucket of a path-style request."""
    return str(environ["PATH_INFO"]).strip("/").partition("/")[0]


class S3Standin:
    """A WSGI application that lists buckets.

    Parameters
    ----------
    now : callable
        The virtual time; an object that was written later does not exist yet.
    """

    def __init__(self, recording: Recording, now: Callable[[], datetime]) -> None:
        self._data = recording.checkpoints
        self._now = now

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        bucket = bucket_of(environ)
        refusal = self._data.refusal(bucket)
        token = request.args.get("continuation-token", "")
        if refusal is not None:
            response = _refused(refusal["Error"], bucket)
        elif token and not token.isdecimal():
            error = {"Code": "InvalidArgument", "Message": "The continuation token is incorrect"}
            response = _refused(error, bucket)
        else:
            response = self._list(request, bucket, int(token or 0))
        return response(environ, start_response)

    def _list(self, request: Request, bucket: str, first: int) -> Response:
        prefix = request.args.get("prefix", "")
        size = min(int(request.args.get("max-keys", LARGEST_PAGE)), LARGEST_PAGE)
        found = self._data.visible(bucket, prefix, self._now())
        page = found[first : first + size]
        more = first + size < len(found)
        encoded = request.args.get("encoding-type") == "url"
        root = Element("ListBucketResult", xmlns=NAMESPACE)
        _tell(root, Name=bucket, Prefix=_written(prefix, encoded=encoded), KeyCount=len(page))
        _tell(root, MaxKeys=size, IsTruncated=str(more).lower())
        if encoded:
            _tell(root, EncodingType="url")
        if more:
            _tell(root, NextContinuationToken=first + size)
        for one in page:
            _contents(root, one, encoded=encoded)
        return _xml(root)


def _contents(root: Element, one: StoredFile, *, encoded: bool) -> None:
    tag = md5(f"{one.key} {one.last_modified}".encode(), usedforsecurity=False).hexdigest()
    _tell(
        SubElement(root, "Contents"),
        Key=_written(one.key, encoded=encoded),
        LastModified=f"{one.last_modified:%Y-%m-%dT%H:%M:%S}.000Z",
        ETag=f'"{tag}"',
        Size=one.size,
        StorageClass="STANDARD",
    )


def _refused(error: dict[str, Any], bucket: str) -> Response:
    root = Element("Error")
    _tell(root, Code=error["Code"], Message=error.get("Message", ""), BucketName=bucket)
    _tell(root, RequestId="LOCAL", HostId="local")
    return _xml(root, _STATUS.get(str(error["Code"]), 400))


def _written(text: str, *, encoded: bool) -> str:
    return quote(text, safe="/-_.~*") if encoded else text


def _tell(parent: Element, **values: object) -> None:
    for name, value in values.items():
        SubElement(parent, name).text = str(value)


def _xml(root: Element, status: int = 200) -> Response:
    body = b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root)
    return Response(body, status=status, content_type="application/xml")
