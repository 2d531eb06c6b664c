"""The Kubernetes endpoint, over HTTP and under Stubber."""

from datetime import timedelta
from typing import Any

import pytest
from werkzeug.wrappers import Response

from steward.errors import DeniedError, PermanentError, RetryableError
from steward.sources.control_plane.reader import EksEndpoint
from tests.contract.cluster_reader.answers import error, world
from tests.contract.cluster_reader.readers import ReaderOf, Serve, StepClock, served, stub


def test_the_endpoint_is_the_rigs_and_is_asked_for_once(serve: Serve, reader_of: ReaderOf) -> None:
    serve(world())
    reader = reader_of()
    calls = []
    reader._eks.meta.events.register("before-parameter-build", lambda **_: calls.append(1))
    expected = EksEndpoint(endpoint="http://rig/kubernetes", ca_data="", name="ml-shared-01-eks")
    assert reader.kubernetes_endpoint() == expected
    assert reader.kubernetes_endpoint() == expected
    assert len(calls) == 1


def test_the_endpoint_comes_with_its_certificate_authority(reader_of: ReaderOf) -> None:
    reader = stub(reader_of(), {"eks/DescribeCluster": world()["eks/DescribeCluster"]})
    assert reader.kubernetes_endpoint() == EksEndpoint(
        endpoint="https://recorded.example", ca_data="cmVjb3JkZWQ=", name="ml-shared-01-eks"
    )


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AccessDeniedException", DeniedError),
        ("ThrottlingException", RetryableError),
        ("ServerException", PermanentError),
        ("ResourceNotFoundException", PermanentError),
    ],
)
def test_a_refused_endpoint_raises_what_it_is(
    reader_of: ReaderOf, code: str, kind: type[Exception]
) -> None:
    reader = stub(reader_of(), {"eks/DescribeCluster": error(code)})
    with pytest.raises(kind, match=code):
        reader.kubernetes_endpoint()


def test_a_cluster_that_has_no_endpoint_yet_is_named(reader_of: ReaderOf) -> None:
    reader = stub(reader_of(), {"eks/DescribeCluster": {"cluster": {"status": "CREATING"}}})
    with pytest.raises(PermanentError, match="ml-shared-01-eks: endpoint is missing"):
        reader.kubernetes_endpoint()


def test_asking_for_the_endpoint_by_itself_ends(
    monkeypatch: pytest.MonkeyPatch, reader_of: ReaderOf
) -> None:
    # Nobody has read before, as where the control plane's own deadline had passed. The ten seconds
    # begin at 0 s; at 6 s a look at the clock, the first request would leave at 6 s, in time, and
    # its repetition at 12 s.
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    asked: list[str] = []

    def throttling(environ: Any, start_response: Any) -> Any:
        asked.append(environ["PATH_INFO"])
        return Response('{"__type":"ThrottlingException"}', status=429)(environ, start_response)

    with served(throttling) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        reader = reader_of(clock=StepClock(step=timedelta(seconds=6)))
        with pytest.raises(RetryableError, match="no time left: the control plane may take 10 s"):
            reader.kubernetes_endpoint()
    assert len(asked) == 1
