"""The EKS token is a presigned GetCallerIdentity: taken apart again, and signed again by hand."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import boto3
import pytest
from botocore.credentials import CredentialResolver
from botocore.session import get_session

from steward.clock import FixedClock
from steward.errors import PermanentError
from steward.sources.kubernetes.eks_token import EksToken

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
SECRET = "secret-access-key"
CLUSTER = "ml-shared-01-eks"


def session() -> boto3.Session:
    core = get_session()
    core.set_config_variable("config_file", "/nonexistent")
    core.set_config_variable("credentials_file", "/nonexistent")
    core.set_config_variable("ignore_configured_endpoint_urls", "true")
    return boto3.Session(
        aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key=SECRET, botocore_session=core
    )


def token(clock: FixedClock | None = None, cluster: str = CLUSTER) -> EksToken:
    return EksToken(session(), "eu-west-1", cluster, clock or FixedClock(NOW))


def url_in(text: str) -> str:
    prefix, _, encoded = text.rpartition(".")
    assert prefix == "k8s-aws-v1"
    assert "=" not in encoded
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()


def test_it_is_the_presigned_call_that_eks_expects() -> None:
    url = urlsplit(url_in(token()()))
    query = {key: value for key, (value,) in parse_qs(url.query).items()}
    assert (url.scheme, url.netloc, url.path) == ("https", "sts.eu-west-1.amazonaws.com", "/")
    assert query["Action"] == "GetCallerIdentity"
    assert query["Version"] == "2011-06-15"
    assert query["X-Amz-Expires"] == "60"
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Credential"].endswith("/eu-west-1/sts/aws4_request")


def test_the_signature_covers_the_name_of_the_cluster() -> None:
    # AWS Signature Version 4 (query form), computed here from its definition: it matches only if
    # exactly this header with exactly this cluster was signed.
    url = urlsplit(url_in(token()()))
    pairs = parse_qsl(url.query)
    query = dict(pairs)
    unsigned = "&".join(
        f"{quote(key, safe='-_.~')}={quote(value, safe='-_.~')}"
        for key, value in sorted(pairs)
        if key != "X-Amz-Signature"
    )
    request = "\n".join(
        [
            "GET",
            "/",
            unsigned,
            f"host:{url.netloc}",
            f"x-k8s-aws-id:{CLUSTER}",
            "",
            "host;x-k8s-aws-id",
            hashlib.sha256(b"").hexdigest(),
        ]
    )
    when = query["X-Amz-Date"]
    scope = f"{when[:8]}/eu-west-1/sts/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{SECRET}".encode()
    for step in (when[:8], "eu-west-1", "sts", "aws4_request"):
        key = hmac.digest(key, step.encode(), "sha256")
    to_sign = f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{digest}"
    assert query["X-Amz-Signature"] == hmac.digest(key, to_sign.encode(), "sha256").hex()


def test_it_is_used_again_for_less_than_the_14_minutes_that_it_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FixedClock(NOW)
    made = token(clock)
    signed: list[datetime] = []

    def sign(*_: object, **__: object) -> str:
        signed.append(clock.now())
        return "https://sts"

    monkeypatch.setattr(made._sts, "generate_presigned_url", sign)
    for _ in range(29):
        made()
        clock.sleep(60)
    # Asked every minute from 0 to 28: signed anew at 0, 10 and 20, so none is older than 10.
    assert signed == [NOW + timedelta(minutes=minutes) for minutes in (0, 10, 20)]


def test_a_clock_that_was_set_back_signs_anew() -> None:
    clock = FixedClock(NOW)
    made = token(clock)
    made()
    clock.sleep(-3600)
    made()
    assert made._signed == NOW - timedelta(hours=1)


def test_without_credentials_it_says_so() -> None:
    core = get_session()
    core.register_component("credential_provider", CredentialResolver([]))
    made = EksToken(boto3.Session(botocore_session=core), "eu-west-1", CLUSTER, FixedClock(NOW))
    with pytest.raises(PermanentError, match="sign a token for EKS cluster ml-shared-01-eks"):
        made()
