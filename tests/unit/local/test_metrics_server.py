"""A real Prometheus as the rig starts and stops it."""

import os
import shutil
import subprocess
import sys
from array import array
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import urllib3
from werkzeug.test import Client

from local.metrics import server
from local.metrics.openmetrics import Series
from local.metrics.server import RealPrometheus, available
from local.standins.prometheus import PrometheusGate
from steward.errors import ConfigError

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
NOON_MS = 1793620800_000
ONE = Series({"__name__": "m", "pod": "p"}, array("q", [NOON_MS + 1]), array("d", [0.25]))

installed = pytest.mark.skipif(not available(), reason="prometheus and promtool are not installed")


@pytest.mark.prometheus
@installed
def test_it_serves_what_it_was_given_and_is_gone_afterwards() -> None:
    with RealPrometheus([ONE]) as real:
        (child,) = psutil.Process().children()
        gate = PrometheusGate(real.url, lambda: NOON.replace(minute=1))
        answer = (
            Client(gate).post("/api/v1/query", data={"query": "m", "time": 1793620801}).get_json()
        )
        gate.close()
    assert answer["data"]["result"] == [
        {"metric": {"__name__": "m", "pod": "p"}, "value": [1793620801, "0.25"]}
    ]
    assert not child.is_running()


@pytest.mark.prometheus
@installed
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv (util-linux) is not installed")
def test_it_does_not_outlive_a_rig_that_is_killed() -> None:
    program = (
        "import time; from local.metrics.server import RealPrometheus\n"
        "with RealPrometheus([]): print('ready', flush=True); time.sleep(60)"
    )
    path = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
    ) as rig:
        assert rig.stdout is not None
        assert rig.stdout.readline() == b"ready\n"
        (prometheus,) = psutil.Process(rig.pid).children()
        folder = Path(prometheus.cmdline()[1].partition("=")[2]).parent
        rig.kill()
    prometheus.wait(timeout=10)
    assert not prometheus.is_running()
    shutil.rmtree(folder)  # the killed process could not


@pytest.mark.prometheus
@installed
def test_it_serves_nothing_where_there_is_nothing() -> None:
    with RealPrometheus([]) as real, urllib3.PoolManager() as http:
        answer = http.request("GET", f"{real.url}/api/v1/query", fields={"query": "m"}).json()
    assert answer["data"]["result"] == []


@pytest.mark.prometheus
@installed
def test_a_prometheus_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_free_port", lambda: "none")
    with pytest.raises(ConfigError, match=r"did not start: (?s:.)*none"), RealPrometheus([ONE]):
        pytest.fail("it cannot listen there")


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert not available()
    with pytest.raises(ConfigError, match="promtool: not installed"), RealPrometheus([ONE]):
        pytest.fail("there is nothing to start")
