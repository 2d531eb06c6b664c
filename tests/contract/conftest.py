from collections.abc import Iterator
from pathlib import Path

import pytest
from boto3 import Session
from botocore.session import get_session
from moto.server import ThreadedMotoServer


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session whose every client talks to one moto server on a free port of 127.0.0.1."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    folder: Path = tmp_path_factory.mktemp("aws")
    (folder / "config").write_text(f"[default]\nendpoint_url = http://{host}:{port}\n")
    core = get_session()
    core.set_config_variable("config_file", str(folder / "config"))
    core.set_config_variable("credentials_file", str(folder / "none"))
    yield Session(
        aws_access_key_id="local",
        aws_secret_access_key="local",
        region_name="us-east-1",
        botocore_session=core,
    )
    server.stop()
