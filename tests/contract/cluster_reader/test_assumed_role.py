"""A cluster in another account: its role is assumed, or refuses."""

from copy import replace
from pathlib import Path
from typing import Any

import pytest
from werkzeug.wrappers import Request, Response

from local.standins.aws import AwsStandin
from tests.contract.cluster_reader.answers import CALLS, CLUSTER, NOW, WELL, world
from tests.contract.cluster_reader.readers import ReaderOf, details, record, served, statuses

ASSUMED = (
    "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASSUMED</AccessKeyId>"
    "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
    "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult>"
    "</AssumeRoleResponse>"
)
REFUSED = (
    "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not trusted</Message></Error>"
    "</ErrorResponse>"
)
MEMBER = replace(CLUSTER, role_arn="arn:aws:iam::444455556666:role/gpu-steward-member")


def test_the_clusters_role_is_assumed_once_and_signs_every_call(
    reader_of: ReaderOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    standin = AwsStandin(record(tmp_path, world()), lambda: NOW, "http://rig/kubernetes")
    assumed, keys = [], []

    def app(environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        credential = request.headers["Authorization"].partition("Credential=")[2]
        if "Action" in request.form:
            assumed.append((request.form["RoleArn"], credential.partition("/")[0]))
            return Response(ASSUMED, content_type="text/xml")(environ, start_response)
        keys.append(credential.partition("/")[0])
        return standin(environ, start_response)

    with served(app) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        reading = reader_of(MEMBER).read()
    assert reading.control_plane == WELL
    assert assumed == [(MEMBER.role_arn, "key")]
    assert keys == ["ASSUMED"] * CALLS


def test_a_role_that_may_not_be_assumed_denies_every_part(
    reader_of: ReaderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(Response(REFUSED, status=403, content_type="text/xml")) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        reading = reader_of(MEMBER).read()
    assert set(statuses(reading).values()) == {"denied"}
    expected = f"assume {MEMBER.role_arn}: AccessDenied (HTTP 403): not trusted"
    assert all(text.startswith(expected) for text in details(reading).values())


BUSY = (
    "<ErrorResponse><Error><Code>Throttling</Code><Message>Rate exceeded</Message></Error>"
    "</ErrorResponse>"
)


def test_a_role_that_cannot_be_assumed_just_now_is_no_denial(
    reader_of: ReaderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(Response(BUSY, status=400, content_type="text/xml")) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        reading = reader_of(MEMBER).read()
    assert set(statuses(reading).values()) == {"unreadable"}
    assert all("the next run tries again" in text for text in details(reading).values())


def test_a_cluster_without_a_role_is_read_with_the_functions_own(
    reader_of: ReaderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def app(environ: Any, start_response: Any) -> Any:
        asked.append(Request(environ).headers["Authorization"])
        return Response(REFUSED, status=403, content_type="text/xml")(environ, start_response)

    with served(app) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        reader_of(CLUSTER).read()
    assert asked
    assert all("Credential=key/" in text for text in asked)
    assert not any("/sts/" in text for text in asked)
