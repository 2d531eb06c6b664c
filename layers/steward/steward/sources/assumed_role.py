"""Sessions that act as a cluster's role in another account."""

import boto3
from botocore.config import Config
from botocore.credentials import (
    CredentialProvider,
    CredentialResolver,
    DeferredRefreshableCredentials,
)
from botocore.session import Session as CoreSession

from steward.aws_errors import aws_call
from steward.cluster.policy import ClusterPolicy


def session_for(cluster: ClusterPolicy, base: boto3.Session) -> boto3.Session:
    """Return a session that acts as the cluster's role; `base` itself where there is none.

    Nothing is called before the first request that needs credentials; they are renewed as they
    expire, so the session may be kept. A refused AssumeRole is raised by that request.
    """
    if cluster.role_arn is None:
        return base
    core = CoreSession()
    provider = _RoleProvider(cluster.role_arn, cluster.region, base)
    core.register_component("credential_provider", CredentialResolver([provider]))
    return boto3.Session(botocore_session=core, region_name=cluster.region)


class _RoleProvider(CredentialProvider):
    """Credentials of an assumed role, for botocore's chain."""

    METHOD = "steward-assume-role"

    def __init__(self, role_arn: str, region: str, base: boto3.Session) -> None:
        super().__init__()
        self._role_arn = role_arn
        self._region = region
        self._base = base

    def load(self) -> DeferredRefreshableCredentials:
        return DeferredRefreshableCredentials(self._assume, self.METHOD)

    def _assume(self) -> dict[str, str]:
        sts = self._base.client("sts", region_name=self._region, config=client_limits())
        with aws_call(f"assume {self._role_arn}", denied="let its trust policy name this role"):
            answer = sts.assume_role(RoleArn=self._role_arn, RoleSessionName="gpu-steward")
        credentials = answer["Credentials"]
        return {
            "access_key": credentials["AccessKeyId"],
            "secret_key": credentials["SecretAccessKey"],
            "token": credentials["SessionToken"],
            "expiry_time": credentials["Expiration"].isoformat(),
        }


def client_limits() -> Config:
    """Short time-outs; three attempts, or AWS_MAX_ATTEMPTS (1 where answers do not change).

    Made for each client, because botocore writes the attempts it settled on into the given one.
    """
    return Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard"})
