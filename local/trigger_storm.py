"""A storm of triggers, played on a virtual clock: pollers fill batches and run side by side.

What decides is the product's own: `serve_requests`, its turns, and the stores over a bucket in
memory whose every call takes a while, so that invocations meet in the middle of each other's.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from random import Random

from local.stage import Stage
from local.twins import InMemoryObjects
from steward.cluster.planning import SnapshotScope
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import LastSnapshot
from steward.events import QueueRecord
from steward.stores.bucket import Snapshots, StoredObject
from steward.stores.claims import Claims
from steward.usecases.coalescing import Turns
from steward.usecases.serve_requests import serve_requests
from steward.usecases.take_snapshot import Outcome, answered_since

BEGIN = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)

BATCH = 100
WINDOW = timedelta(seconds=20)
CONCURRENCY = 5
POLLERS = 5
TIMEOUT = 780.0
"""As the template has them: batch size, batching window, concurrency and timeout; and the pollers
that Lambda begins a standard queue with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """What happens.

    Attributes
    ----------
    events : tuple of float
        When each trigger is made, in seconds from the beginning.
    ticks : tuple of float
        When `plan_ticks` asks.
    durations : tuple of float
        How long the snapshots take, in turn and over again.
    latency : float
        What each call of the bucket takes at most.
    lost : tuple of int
        Snapshots (by number) in which the function is killed.
    seed : int
        Decides which poller gets a message, and what each call takes.
    """

    events: tuple[float, ...]
    ticks: tuple[float, ...] = ()
    durations: tuple[float, ...] = (10.0,)
    latency: float = 0.05
    lost: tuple[int, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A snapshot: when it was begun and, unless it was lost, finished."""

    start: float
    end: float | None
    tick: bool


@dataclass(slots=True)
class Played:
    """What came of a storm; times in seconds from the beginning."""

    snapshots: list[Begun] = field(default_factory=list)
    invocations: int = 0
    together: int = 0
    failed: int = 0

    def answer(self, asked: float) -> Begun | None:
        """Find the first snapshot that answers a wish: begun at its time or after it, and finished."""
        answers = (s for s in self.snapshots if s.start >= asked and s.end is not None)
        return min(answers, key=lambda snapshot: snapshot.start, default=None)


class _Killed(Exception):  # noqa: N818 - nothing of the product may take it for an error of its own
    """Lambda ended the invocation."""


class _SlowObjects:
    """A bucket whose calls take a while, in which others get between."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self._inner = InMemoryObjects()
        self._pause = pause

    def url(self, key: str) -> str:
        """Name an object for people."""
        return self._inner.url(key)

    def exists(self, key: str) -> bool:
        """Tell whether there is an object."""
        return self._inner.exists(key)

    def get(self, key: str) -> StoredObject | None:
        """Return an object, read before the answer travels."""
        found = self._inner.get(key)
        self._pause()
        return found

    def put(self, key: str, data: bytes) -> None:
        """Write after the request has travelled."""
        self._pause()
        self._inner.put(key, data)

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Compare and write at one moment, after the request has travelled."""
        self._pause()
        return self._inner.replace(key, data, tag)


class _Play:
    """One run of a storm over one cluster."""

    def __init__(self, storm: Storm, cluster: ClusterPolicy) -> None:
        self._storm = storm
        self._cluster = cluster
        self._stage = Stage(BEGIN)
        self._chance = Random(storm.seed)  # noqa: S311 - a rehearsal
        objects = _SlowObjects(self._travel)
        self._snapshots = Snapshots(objects)
        self._claims = Claims(objects)
        self._batches: dict[int, list[QueueRecord]] = {}
        self._ready: list[list[QueueRecord]] = []
        self._running = 0
        self._names = count()
        self.played = Played()

    def run(self) -> Played:
        """Play it to its end."""
        for number, seconds in enumerate(self._storm.events):
            self._send(seconds, _event(self._cluster, seconds), number)
        for number, seconds in enumerate(self._storm.ticks):
            body = {"cluster": self._cluster.name, "requested_at": _at(seconds).isoformat()}
            self._send(seconds, body, -1 - number)
        self._stage.run()
        return self.played

    def _send(self, seconds: float, body: Mapping[str, object], number: int) -> None:
        sent = str(round(_at(seconds).timestamp() * 1000))
        record = QueueRecord(
            message_id=str(number), body=json.dumps(body), attributes={"SentTimestamp": sent}
        )
        poller = self._chance.randrange(POLLERS)
        self._stage.at(_at(seconds), lambda: self._receive(poller, record))

    def _receive(self, poller: int, record: QueueRecord) -> None:
        batch = self._batches.get(poller)
        if batch is None:
            batch = self._batches[poller] = []
            ends = self._stage.now() + WINDOW
            self._stage.at(ends, lambda: self._close(poller, batch))
        batch.append(record)
        if len(batch) == BATCH:
            self._close(poller, batch)

    def _close(self, poller: int, batch: list[QueueRecord]) -> None:
        if self._batches.get(poller) is batch:
            del self._batches[poller]
            self._ready.append(batch)
            self._invoke()

    def _invoke(self) -> None:
        while self._ready and self._running < CONCURRENCY:
            batch = self._ready.pop(0)
            self._running += 1
            self.played.invocations += 1
            self.played.together = max(self.played.together, self._running)
            self._stage.spawn(partial(self._serve, batch))

    def _serve(self, batch: Sequence[QueueRecord]) -> None:
        ends = self._stage.now() + timedelta(seconds=TIMEOUT)
        owner = f"invocation-{next(self._names)}"

        def left() -> float:
            return (ends - self._stage.now()).total_seconds()

        turns = Turns(self._claims, self._snapshots, self._stage, owner, left)
        ticks = any("requested_at" in record.body for record in batch)

        def take(cluster: ClusterPolicy, asked: datetime, scope: SnapshotScope) -> Outcome:
            return self._take(cluster, asked, scope, tick=ticks)

        try:
            served = serve_requests(batch, [self._cluster], self._stage.now(), take, turns, left)
            self.played.failed += len(served.failed_messages)
        except _Killed:
            self.played.failed += len(batch)
        self._running -= 1
        self._invoke()

    def _take(
        self, cluster: ClusterPolicy, asked: datetime, scope: SnapshotScope, *, tick: bool
    ) -> Outcome:
        """Do as `take_snapshot` does, but for the reading."""
        answered = answered_since(self._snapshots.last(cluster.name), scope)
        if answered is not None and asked <= answered:
            return Outcome(cluster=cluster.name, key=None, reason="already answered")
        started = self._stage.now()
        number = len(self.played.snapshots)
        begun = Begun(start=_seconds(started), end=None, tick=tick)
        self.played.snapshots.append(begun)
        durations = self._storm.durations
        self._stage.sleep(durations[number % len(durations)])
        if number in self._storm.lost:
            raise _Killed
        last = LastSnapshot(key="k", started=started, finished=self._stage.now())
        self._snapshots.finish(cluster.name, last)
        end = _seconds(self._stage.now())
        self.played.snapshots[number] = Begun(start=begun.start, end=end, tick=tick)
        return Outcome(cluster=cluster.name, key="k", reason="taken")

    def _travel(self) -> None:
        self._stage.sleep(self._chance.uniform(0.0, self._storm.latency))


def play(storm: Storm, cluster: ClusterPolicy) -> Played:
    """Play a storm over a cluster."""
    return _Play(storm, cluster).run()


def _event(cluster: ClusterPolicy, seconds: float) -> dict[str, object]:
    """Give an event of HyperPod's, with a time as exact as the storm's."""
    return {
        "detail-type": "SageMaker HyperPod Cluster Node Health Event",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "region": cluster.region,
        "time": _at(seconds).isoformat(),
        "detail": {"ClusterName": cluster.name},
    }


def _at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def _seconds(at: datetime) -> float:
    return (at - BEGIN).total_seconds()
