"""Series made by hand, each test's in hours of its own, served by a real Prometheus or the rig's."""

import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from werkzeug.serving import make_server

from local.metrics.openmetrics import Series
from local.metrics.server import RealPrometheus, available
from local.standins.prometheus import PrometheusStandin
from steward.cluster.accelerators import Window
from steward.cluster.kueue import KueueMetrics
from steward.ports import DeviceName, DeviceReading, MetricsReading, Samples, Signal
from steward.sources.prometheus.reader import PrometheusMetrics

BLANKS = (2147483632.0, 9223372036854775792.0, 140737488355328.0)
"""DCGM's "no value" for 32-bit, 64-bit and floating fields (dcgm_structs.h)."""

SERVERS = ["stand-in", pytest.param("real", marks=pytest.mark.prometheus)]

type Build = Callable[[datetime], list[Series]]


@dataclass
class Cases:
    """The series of a module's tests: each has eight hours to itself, so that one server holds all."""

    recorded: list[tuple[datetime, Build]] = field(default_factory=list)

    def __call__[F: Callable[..., None]](self, build: Build) -> Callable[[F], F]:
        """Give a test series of its own."""

        def mark(test: F) -> F:
            hours = timedelta(hours=8 * len(self.recorded))
            end = datetime(2026, 11, 1, 12, tzinfo=UTC) + hours
            self.recorded.append((end, build))
            test.end = end  # type: ignore[attr-defined]
            return test

        return mark

    @contextmanager
    def served(self, by: str) -> Iterator[str]:
        """Serve all of them by `real`, or by the stand-in; gives the base URL."""
        everything = [one for end, build in self.recorded for one in build(end)]
        if by == "real":
            if not available():
                pytest.skip("prometheus and promtool are not installed")
            with RealPrometheus(everything) as prometheus:
                yield prometheus.url
            return
        with standin(everything) as url:
            yield url


@contextmanager
def standin(everything: Sequence[Series]) -> Iterator[str]:
    """Serve series by the rig's own reader."""
    app = PrometheusStandin(everything, lambda: datetime(2027, 6, 1, tzinfo=UTC))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def series(
    metric: str,
    end: datetime,
    values: Sequence[float | None],
    *,
    newest: float = 30,
    step: float = 60,
    **labels: str,
) -> Series:
    """One series whose newest value is `newest` seconds before the end; None is a missed scrape."""
    first = end - timedelta(seconds=newest + step * (len(values) - 1))
    points = [(first + timedelta(seconds=step * n), v) for n, v in enumerate(values)]
    kept = [(round(at.timestamp() * 1000), v) for at, v in points if v is not None]
    return Series(
        {"__name__": metric} | {k: v for k, v in labels.items() if v},
        array("q", (at for at, _ in kept)),
        array("d", (v for _, v in kept)),
    )


@dataclass
class Metrics:
    """The series of one test, at the end of its hours."""

    url: str
    end: datetime

    @contextmanager
    def reader(
        self, *, scrape_interval_seconds: int = 60, cluster_label: str | None = None
    ) -> Iterator[PrometheusMetrics]:
        reader = PrometheusMetrics(
            self.url,
            scrape_interval_seconds=scrape_interval_seconds,
            cluster_label=cluster_label,
        )
        yield reader
        reader.close()

    def read(
        self, *minutes: int, signals: Sequence[int] = (), **options: int | str | None
    ) -> MetricsReading:
        with self.reader(**options) as reader:  # type: ignore[arg-type]
            return reader.read(self.end, minutes or (60,), signals)

    def device(self, *minutes: int) -> DeviceReading:
        (device,) = self.read(*minutes).devices
        return device

    def window(self, minutes: int = 60) -> Window:
        (window,) = self.device(minutes).windows
        return window

    def samples(
        self, seconds: float, *devices: DeviceName, signals: Sequence[Signal] = (Signal.ACTIVITY,)
    ) -> list[tuple[list[float], list[float]]]:
        """Seconds before the end, and values, of each device and signal, in that order."""
        with self.reader() as reader:
            answer = reader.samples(self.end, seconds, devices, signals)
        ordered = sorted(devices, key=lambda d: (d.uuid, d.mig or "", d.namespace, d.pod))
        assert [(s.device, s.signal) for s in answer] == [(d, s) for d in ordered for s in signals]
        return [self._ages(samples) for samples in answer]

    def seen(self, seconds: float, *pods: tuple[str, str]) -> tuple[DeviceReading, ...]:
        with self.reader() as reader:
            return reader.seen(self.end, seconds, pods)

    def kueue(self, cluster_label: str | None = None) -> KueueMetrics:
        with self.reader(cluster_label=cluster_label) as reader:
            return reader.kueue(self.end)

    def _ages(self, samples: Samples) -> tuple[list[float], list[float]]:
        return [(self.end - t).total_seconds() for t in samples.times], list(samples.values)
