"""What is asked of a capture, and the two things that it is given: kubectl, and somebody to tell."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from local.capture.chunks import Chunk, cut
from local.capture.schedule import Period
from local.live import Live
from local.metrics_check.needs import Backend, Hardware, metric_names, needs_of
from steward.cluster.figures import stamp

type Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for.

    Attributes
    ----------
    history : timedelta
        How far before the period activity reaches, so that a look-back finds since when it idled.
    """

    live: Live
    period: Period
    out: Path
    history: timedelta
    kube_context: str = ""
    rename_jobs: bool = False

    @property
    def identity(self) -> dict[str, str]:
        """What has to be the same for a capture to go on."""
        return {
            "CLUSTER": self.live.cluster.name,
            "FROM": stamp(self.period.start),
            "TO": stamp(self.period.end),
            "TICK": str(self.period.tick),
            "HISTORY": str(self.history),
            "KUBE_CONTEXT": self.kube_context,
            "RENAME_JOBS": "1" if self.rename_jobs else "",
        }

    def chunks(self) -> tuple[Chunk, ...]:
        """Plan the metrics: activity over the history, the rest as far back as a tick reads."""
        cluster = self.live.cluster
        backend = Backend.CONTAINER_INSIGHTS if self.live.insights else Backend.PROMETHEUS
        needs = needs_of(backend, Hardware)
        back = timedelta(minutes=max(cluster.windows()), seconds=cluster.metrics.delay_seconds)
        near, end = self.period.start - back - timedelta(minutes=10), self.period.end
        far = self.period.start - max(self.history, back)
        active, rest = metric_names(needs, activity=True), metric_names(needs, activity=False)
        return (*cut("activity", active, far, end), *cut("levels", rest, near, end))


class Lists(Protocol):
    """Lists Kubernetes' resources: `kubectl` does."""

    def read_all(self) -> dict[str, Json]:
        """List every resource: the answer, or the Status of its refusal."""
        ...

    def server(self) -> str:
        """Name the API server that is asked; empty where that is not known."""
        ...


class Told(Protocol):
    """Is told how far a capture is."""

    def looked(self, at: datetime, number: int) -> None:
        """Count a look at the live cluster."""
        ...

    def fetched(self, done: int, of: int) -> None:
        """Count a piece of metrics."""
        ...

    def waiting(self, until: datetime, what: str) -> None:
        """Say what is waited for."""
        ...

    def say(self, text: str) -> None:
        """Say something that is worth a line."""
        ...
