from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from local.standins.aws import AwsStandin
from steward.cluster.policy import ClusterPolicy
from steward.sources.control_plane.reader import ControlPlaneReader
from tests.contract.cluster_reader.answers import CLUSTER, NOW
from tests.contract.cluster_reader.readers import ReaderOf, Serve, StepClock, record, served


@pytest.fixture(scope="session")
def session() -> boto3.Session:
    return boto3.Session(aws_access_key_id="key", aws_secret_access_key="secret")


@pytest.fixture(autouse=True)
def one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Serve answers by the stand-in on loopback, where boto3 then finds AWS."""
    running = []

    def serve(answers: Mapping[str, Any], cluster: ClusterPolicy = CLUSTER) -> str:
        recording = record(tmp_path, answers, cluster)
        standin = AwsStandin(recording, lambda: NOW, "http://rig/kubernetes")
        server = served(standin)
        running.append(server)
        url = server.__enter__()
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        return url

    yield serve
    for server in running:
        server.__exit__(None, None, None)


@pytest.fixture
def reader_of(session: boto3.Session) -> Iterator[ReaderOf]:
    readers = []

    def reader_of(cluster: ClusterPolicy = CLUSTER, **options: Any) -> ControlPlaneReader:
        reader = ControlPlaneReader(cluster, session, options.pop("clock", StepClock()), **options)
        readers.append(reader)
        return reader

    yield reader_of
    for reader in readers:
        reader._sagemaker.close()
        reader._eks.close()
