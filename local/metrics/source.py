"""Which Prometheus the rig has: a real one where it is installed, else the reader in process."""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from datetime import datetime

from local.metrics.openmetrics import load
from local.metrics.server import RealPrometheus, available
from local.recording import Recording
from local.standins.prometheus import PrometheusGate, PrometheusStandin
from steward.errors import ConfigError

CHOICE = "METRICS"
"""Environment variable: `auto` (default), `prometheus` or `recorded`."""


@contextmanager
def prometheus_app(
    recording: Recording, clusters: Collection[str], now: Callable[[], datetime]
) -> Iterator[PrometheusGate | PrometheusStandin]:
    """Serve a recording's metrics as a WSGI application.

    Parameters
    ----------
    recording : Recording
        Without a `metrics/` folder, Prometheus is unreachable.
    clusters : collection of str
        Names that the label `cluster_name` may carry; series of others are left out.
    now : callable
        The virtual time; later samples are not shown.

    Raises
    ------
    ConfigError
        A metric file is malformed, METRICS has another value, or it asks for a Prometheus that is
        not installed.
    """
    choice = os.environ.get(CHOICE, "auto")
    if choice not in {"auto", "prometheus", "recorded"}:
        raise ConfigError(f"{CHOICE}={choice}: write auto, prometheus or recorded")
    if choice == "prometheus" and not available():
        raise ConfigError(
            f"{CHOICE}={choice}: prometheus and promtool are not on PATH; install them"
        )
    if not recording.has_metrics:
        yield PrometheusStandin(None, now)
        return
    series = load(recording.metric_files(), clusters)
    if not series or choice == "recorded" or not available():
        yield PrometheusStandin(series, now)
        return
    with RealPrometheus(series) as real, closing(PrometheusGate(real.url, now)) as gate:
        yield gate
