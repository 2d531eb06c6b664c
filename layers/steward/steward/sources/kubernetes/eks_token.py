"""The bearer token that EKS accepts: a presigned GetCallerIdentity that names the cluster."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from steward.aws_errors import aws_call

if TYPE_CHECKING:
    import boto3

    from steward.ports import Clock

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
EXPIRES_SECONDS = 60
"""What EKS expects in the URL; the token itself is accepted for 14 minutes."""

REUSE = timedelta(minutes=10)
"""How long a token is used again. botocore renews credentials that have 10 minutes left before it
signs with them, so neither the token nor the credentials in it run out while it is in use."""


class EksToken:
    """Makes tokens for one cluster, with the session's credentials; signing calls nobody.

    Parameters
    ----------
    session : boto3.Session
        Credentials that an access entry of the cluster names (its role).
    region : str
        The cluster's; its own STS endpoint is named in the token.
    cluster : str
        The EKS name, which the signature covers: a token opens no other cluster.
    """

    def __init__(self, session: boto3.Session, region: str, cluster: str, clock: Clock) -> None:
        self._session = session
        self._region = region
        self._cluster = cluster
        self._clock = clock
        self._token = ""
        self._signed: datetime | None = None

    @cached_property
    def _sts(self) -> Any:
        client = self._session.client("sts", region_name=self._region)
        client.meta.events.register("before-sign.sts.GetCallerIdentity", self._name_cluster)
        return client

    def __call__(self) -> str:
        """Return a token that is valid for at least four minutes more.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            There are no credentials to sign with (the cluster's role could not be assumed).
        """
        now = self._clock.now()
        if self._signed is None or not self._signed <= now < self._signed + REUSE:
            with aws_call(f"sign a token for EKS cluster {self._cluster}"):
                url: str = self._sts.generate_presigned_url(
                    "get_caller_identity", ExpiresIn=EXPIRES_SECONDS, HttpMethod="GET"
                )
            encoded = base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode()
            self._token, self._signed = f"{PREFIX}{encoded}", now
        return self._token

    def _name_cluster(self, request: Any, **_: object) -> None:
        request.headers[CLUSTER_HEADER] = self._cluster
