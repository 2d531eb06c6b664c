"""A real cluster as its people reach it: the policy's endpoints, their own AWS profile.

Only the commands for a live cluster use this; the rig never does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, urlencode

import boto3
import msgspec
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError

from local import policy as policy_tool
from local.recording import moment
from steward.aws_errors import aws_call
from steward.cluster.policy import ClusterPolicy, MetricsBackend
from steward.errors import ConfigError, DeniedError, PermanentError, RetryableError
from steward.sources.prometheus import promql
from steward.sources.prometheus.api import QueryApi

_DURATION = re.compile(r"([1-9]\d*)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TIMEOUT = 30.0
_PROMISES = ("; asked again next tick", "; asked next tick", "; the next run tries again")

type Matchers = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A cluster of a policy, and how the person at this machine reaches it.

    Attributes
    ----------
    metrics_url : str
        Base URL of the Prometheus API; empty where the policy's backend has none.
    signed : bool
        Whether queries are signed with the person's own credentials (AMP).
    """

    policy_file: Path
    cluster: ClusterPolicy
    session: boto3.Session
    metrics_url: str
    signed: bool

    @property
    def insights(self) -> bool:
        """Whether metrics come from CloudWatch Container Insights."""
        return self.cluster.metrics.backend is MetricsBackend.CONTAINER_INSIGHTS

    def queries(self) -> QueryApi:
        """Return the query API of the cluster's Prometheus."""
        region = self.cluster.region if self.signed else None
        return QueryApi(self.metrics_url, region, self.session.get_credentials)

    def matchers(self) -> Matchers:
        """Return what leaves out the series of other clusters; those without the label stay."""
        label = self.cluster.metrics.cluster_label
        return {} if label is None else {"cluster_name": promql.one_of([label], or_absent=True)}

    def label_values(self, label: str, start: datetime, end: datetime) -> list[str]:
        """List the values that a label had within a period.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            Refused (AMP: `aps:GetLabels`), not answered, or not an answer of this API.
        """
        asked = urlencode({"start": f"{start.timestamp():.0f}", "end": f"{end.timestamp():.0f}"})
        url = f"{self.metrics_url.rstrip('/')}/api/v1/label/{quote(label)}/values?{asked}"
        request = AWSRequest("GET", url)
        if self.signed:
            with aws_call(f"{url}: sign the query", denied="sign in (AWS_PROFILE)"):
                credentials = self.session.get_credentials()
                frozen = credentials.get_frozen_credentials() if credentials else None
            if frozen is None:
                raise DeniedError(f"{url}: no AWS credentials to sign with; sign in (AWS_PROFILE)")
            SigV4Auth(frozen, "aps", self.cluster.region).add_auth(request)
        with urllib3.PoolManager(retries=False) as http:
            try:
                headers = dict(request.headers.items())
                answer = http.request("GET", url, headers=headers, timeout=_TIMEOUT, redirect=False)
            except urllib3.exceptions.HTTPError as error:
                raise RetryableError(f"{url}: {error}; check METRICS_URL or the policy") from error
        if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise DeniedError(f"{url}: HTTP {answer.status}; allow aps:GetLabels on the workspace")
        return _values(url, answer.status, answer.data)


def find(cluster: str, policy_file: Path, metrics_url: str = "") -> Live:
    """Find a cluster in a policy.

    Parameters
    ----------
    metrics_url : str
        In place of the policy's endpoint, unsigned: a port that is forwarded to this machine.

    Raises
    ------
    ConfigError
        The policy is wrong or does not know the cluster, or the AWS profile does not exist.
    """
    policy = policy_tool.load(policy_file)
    found = policy.cluster(cluster)
    if found is None:
        known = ", ".join(one.name for one in policy.clusters)
        raise ConfigError(
            f"CLUSTER={cluster}: not in {policy_file} (it knows {known}); correct the name or "
            "set GOVERNANCE"
        )
    if metrics_url and not metrics_url.startswith(("http://", "https://")):
        raise ConfigError(f"METRICS_URL={metrics_url}: not a URL; write http://localhost:9090")
    try:
        session = boto3.Session(region_name=found.region)
    except BotoCoreError as error:
        raise ConfigError(f"AWS: {error}; set AWS_PROFILE to a profile that exists") from error
    return Live(
        policy_file=policy_file,
        cluster=found,
        session=session,
        metrics_url=metrics_url or found.metrics.endpoint,
        signed=found.metrics.sigv4 and not metrics_url,
    )


def signed_in(session: boto3.Session) -> None:
    """Check that there are credentials at all, before anything is asked or written.

    Raises
    ------
    ConfigError
        There are none, or what should give them failed.
    """
    try:
        found = session.get_credentials()
    except BotoCoreError as error:
        raise ConfigError(f"AWS: {error}; sign in, or set AWS_PROFILE") from error
    if found is None:
        raise ConfigError("AWS: no credentials; sign in, or set AWS_PROFILE")


def said(error: Exception) -> str:
    """Say what went wrong to a person: the readers speak of what the steward's next run does."""
    text = str(error)
    for promise in _PROMISES:
        text = text.removesuffix(promise)
    return text


def time_given(variable: str, text: str) -> datetime:
    """Read a time from the command line, to the second; ConfigError where it is none."""
    try:
        return moment(text).replace(microsecond=0)
    except ValueError as error:
        raise ConfigError(f"{variable}: {error}") from error


def folder_given(given: Path | None, default: str) -> Path:
    """Name the folder of a recording; ConfigError where nothing can lie beside it."""
    out = given or Path("recordings") / default
    if out.name in {"", ".."}:
        raise ConfigError(f"OUT={out}: has no name of its own; write one, such as recordings/mine")
    return out


def span_given(variable: str, text: str, shortest: timedelta, longest: timedelta) -> timedelta:
    """Read a duration such as 5m, 24h or 7d; ConfigError where it is none or out of range."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ConfigError(f"{variable}={text}: not a duration; write it like 5m, 24h or 7d")
    span = timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
    if not shortest <= span <= longest:
        raise ConfigError(f"{variable}={text}: not between {shortest} and {longest}")
    return span


def _values(url: str, status: int, body: bytes) -> list[str]:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PermanentError(
            f"{url}: HTTP {status}, not an answer of Prometheus' API: {error}; "
            "check METRICS_URL or the policy"
        ) from error
    if answer.status != "success":
        raise PermanentError(f"{url}: HTTP {status}: {answer.error}; check METRICS_URL")
    return list(answer.data)


class _Answer(msgspec.Struct):
    status: str
    data: Sequence[str] = ()
    error: str = ""
