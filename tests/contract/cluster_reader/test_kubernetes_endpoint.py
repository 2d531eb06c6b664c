"""The Kubernetes endpoint, over HTTP and under Stubber."""

import pytest

from steward.errors import DeniedError, PermanentError, RetryableError
from steward.sources.control_plane.reader import EksEndpoint
from tests.contract.cluster_reader.answers import error, world
from tests.contract.cluster_reader.readers import ReaderOf, Serve, stub


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
