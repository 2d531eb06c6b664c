"""Objects in an S3 bucket, with conditional writes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from steward.aws_errors import CLIENT_LIMITS, aws_call, error_code
from steward.errors import ConflictError
from steward.stores.bucket import StoredObject

if TYPE_CHECKING:
    from boto3 import Session
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import PutObjectRequestTypeDef

_DENIED = (
    "grant s3:GetObject on the key and s3:ListBucket on the bucket "
    "(without s3:ListBucket, S3 answers 403 also for a key that is not there)"
)


class S3Objects:
    """Objects in an S3 bucket.

    A conditional write whose answer is lost is repeated by the client and then meets its own
    result: that reads as a conflict, and the caller finds its own write when it reads again.
    """

    def __init__(self, session: Session, bucket: str) -> None:
        self._session = session
        self._bucket = bucket

    @cached_property
    def _client(self) -> S3Client:
        return self._session.client("s3", config=CLIENT_LIMITS)

    def url(self, key: str) -> str:
        """Name an object for people."""
        return f"s3://{self._bucket}/{key}"

    def get(self, key: str) -> StoredObject | None:
        """Return an object; None where there is none (404, never 403)."""
        with aws_call(f"read {self.url(key)}", denied=_DENIED):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=key)
            except self._client.exceptions.NoSuchKey:
                return None
            with answer["Body"] as body:
                return StoredObject(body.read(), answer["ETag"])

    def exists(self, key: str) -> bool:
        """Tell whether there is an object."""
        with aws_call(f"look for {self.url(key)}", denied=_DENIED):
            try:
                self._client.head_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if error_code(error) == "404":
                    return False
                raise
            return True

    def put(self, key: str, data: bytes) -> None:
        """Write, whatever stood there."""
        self._put(self._request(key, data))

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Write with If-Match, or with If-None-Match where there was nothing."""
        request = self._request(key, data)
        if tag is None:
            request["IfNoneMatch"] = "*"
        else:
            request["IfMatch"] = tag
        return self._put(request)

    def _request(self, key: str, data: bytes) -> PutObjectRequestTypeDef:
        kind = "application/gzip" if key.endswith(".gz") else "application/json"
        return {"Bucket": self._bucket, "Key": key, "Body": data, "ContentType": kind}

    def _put(self, request: PutObjectRequestTypeDef) -> str:
        doing = f"write {self.url(request['Key'])}"
        with aws_call(doing):
            try:
                return self._client.put_object(**request)["ETag"]
            except self._client.exceptions.NoSuchKey as error:  # If-Match on what is gone
                raise ConflictError(f"{doing}: deleted since it was read; read again") from error
