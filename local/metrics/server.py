"""A real Prometheus that serves the series of a recording, on a port of this machine alone."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Self

import urllib3

from local.metrics.openmetrics import Series, write
from steward.errors import ConfigError

_READY_SECONDS = 20
_STOP_SECONDS = 10
_ONE_BLOCK = "--max-block-duration=1500h"  # promtool reads the file once a block, by default of 2 h


def available() -> bool:
    """Whether `prometheus` and `promtool` are installed."""
    return all(shutil.which(program) for program in ("prometheus", "promtool"))


class RealPrometheus:
    """Loads series into storage of its own, and serves them while the context lasts.

    Parameters
    ----------
    series : sequence of Series
        What to serve; all of it, as Prometheus knows no virtual time (see `PrometheusGate`).

    Attributes
    ----------
    url : str
        Base URL of its API.

    Raises
    ------
    ConfigError
        On entering: a program is missing, refused the series or did not start.
    """

    def __init__(self, series: Sequence[Series]) -> None:
        self._series = series
        self._running = ExitStack()
        self.url = ""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prometheus-")))
            _load(self._series, folder)
            self.url = stack.enter_context(_serve(folder))
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


def _load(series: Sequence[Series], folder: Path) -> None:
    metrics = folder / "metrics.om"
    with metrics.open("w", encoding="utf-8") as file:
        write(series, file)
    promtool = [_program("promtool"), "tsdb", "create-blocks-from", _ONE_BLOCK, "openmetrics"]
    done = subprocess.run(  # noqa: S603 - a program of the rig, with paths of our own
        [*promtool, metrics, folder / "data"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ConfigError(f"promtool refused the series: {done.stderr.strip()}")


@contextmanager
def _serve(folder: Path) -> Iterator[str]:
    configuration = folder / "prometheus.yml"
    configuration.write_text("global: {}\n", encoding="utf-8")
    address = f"127.0.0.1:{_free_port()}"
    command = [
        *_ends_with_us(),
        _program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    log = folder / "log"
    with (
        log.open("wb") as file,
        subprocess.Popen(command, stdout=file, stderr=file) as process,  # noqa: S603 - as above
    ):
        try:
            if not _ready(process, f"http://{address}/-/ready"):
                raise ConfigError(f"prometheus did not start: {log.read_text(encoding='utf-8')}")
            yield f"http://{address}"
        finally:
            _stop(process)


def _ends_with_us() -> list[str]:
    """Have Linux end the server when this process is killed, where util-linux is installed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


def _ready(process: subprocess.Popen[bytes], url: str) -> bool:
    give_up = time.monotonic() + _READY_SECONDS
    with urllib3.PoolManager(retries=False) as http:
        while time.monotonic() < give_up and process.poll() is None:
            try:
                if http.request("GET", url).status == HTTPStatus.OK:
                    return True
            except urllib3.exceptions.HTTPError:
                pass  # it does not listen yet
            time.sleep(0.05)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ConfigError(f"{name}: not installed; apt-get install prometheus")
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
