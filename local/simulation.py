"""A recording played through the real handlers on a virtual clock, routed as AWS would."""

import gzip
import importlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import batched, groupby
from pathlib import Path
from typing import Any, Literal

from local import lines
from local.application import LocalApp, VirtualClock
from local.envelopes import LambdaContext, from_bus, from_queue, from_slack
from local.recording import Recording
from local.rig import SLACK_SECRET, Rig
from local.routing import DEFAULT_BUS, Routes, Target
from local.twins import Message
from steward import codec
from steward.cluster.figures import stamp
from steward.cluster.findings import Evaluation
from steward.cluster.memory import Memory
from steward.cluster.snapshot import Snapshot
from steward.errors import ConfigError, PermanentError
from steward.events import SNAPSHOT_TAKEN
from steward.telemetry import logger
from steward.usecases.coalescing import LONGEST_SECONDS

BUS = "StewardBus"
"""Logical id of the steward's bus in the template."""

type Emit = Callable[[lines.Line], None]


@dataclass(slots=True)
class Replay:
    """One run of a recording.

    Attributes
    ----------
    failures : int
        Handlers that failed.
    """

    recording: Recording
    routes: Routes
    app: LocalApp
    clock: VirtualClock
    rig: Rig
    emit: Emit
    failures: int = 0
    ticks: int = 0
    invocations: int = 0
    _work: deque[tuple[str, dict[str, Any]]] = field(default_factory=deque)
    _findings: lines.FindingLines = field(default_factory=lines.FindingLines)
    _unknown: lines.UnknownLines = field(default_factory=lines.UnknownLines)
    _failed: list[lines.Line] = field(default_factory=list)
    _last: Evaluation | None = None
    _calls_told: int = 0

    def run(self, progress: Callable[[datetime], None]) -> None:
        """Play every tick and every event, in the order of their times.

        Raises
        ------
        ConfigError
            A stored snapshot or memory is not one; nothing was replayed.
        """
        for _, path in self.recording.snapshots():
            _stored(Snapshot, path)
        if self.recording.memory is not None:
            self._remember(self.recording.memory)
        for at, kind, payload in _agenda(self.recording):
            self.clock.move_to(at)
            if kind == "event":
                self._deliver(_bus_of(payload), payload)
            elif kind == "press":
                self._press(payload)
            elif kind == "snapshot":
                self._store(payload)
            else:
                self.ticks += 1
                progress(at)
                if not self.recording.snapshots():
                    for function, given in self.routes.scheduled:
                        text = given.replace("<aws.scheduler.scheduled-time>", stamp(at))
                        self._work.append((function, json.loads(text)))
            self._settle()
            self._tell()
        state = self.app.alerts.load(self.recording.cluster)
        standing = self._unknown.standing
        end = max(self.clock.now(), self.recording.end)
        self.emit(
            lines.summary_line(end, self.ticks, [state], standing, self.rig.calls, self.failures)
        )

    def _remember(self, path: Path) -> None:
        """Begin with a stored memory, as the cluster had it before the first tick."""
        memory = _stored(Memory, path)
        if memory.cluster != self.recording.cluster:
            raise ConfigError(f"{path}: is the memory of {memory.cluster!r}; remove it")
        self.app.memories.save(memory, None)

    def _press(self, form: str) -> None:
        """Post what somebody pressed or typed to the function's address, as Slack does."""
        secret = SLACK_SECRET["signing_secret"]
        identifier = f"local-{self.invocations}"
        event = from_slack(form, secret, self.clock.now(), identifier)
        self._work.append((self.routes.answering, event))

    def _store(self, path: Path) -> None:
        """Take a stored snapshot in place of a fresh one."""
        snapshot = _stored(Snapshot, path)
        key = self.app.snapshots.put(snapshot)
        at = snapshot.at.isoformat()
        detail = {"cluster": snapshot.cluster, "key": key, "at": at, "scope": snapshot.scope}
        self.app.collected.publish(SNAPSHOT_TAKEN, detail)

    def _settle(self) -> None:
        """Work until nothing is left to do: invocations, what they published, what they sent."""
        while True:
            while self._work:
                self._invoke(*self._work.popleft())
            for event in _drain(self.app.collected.events):
                identifier = f"local-{self.invocations}"
                self._deliver(BUS, from_bus(event, identifier, self.clock.now()))
            for variable, sender in self.app.senders.items():
                self._poll(variable, _drain(sender.messages))
            if not self._work:
                return

    def _poll(self, variable: str, messages: Sequence[Message]) -> None:
        """Have what was sent to a queue polled; of a FIFO queue a batch holds one group."""
        queue = self.routes.queue_behind(variable) if messages else ""
        for group, sent in groupby(messages, lambda one: one.fifo and one.fifo.group):
            self._enqueue(queue, [message.body for message in sent], group)

    def _enqueue(self, queue: str, bodies: Sequence[str], group: str | None = None) -> None:
        function, size = self.routes.pollers[queue]
        messages = [(f"{queue}-{self.invocations}-{n}", body) for n, body in enumerate(bodies)]
        for batch in batched(messages, size, strict=False):
            self._work.append((function, from_queue(queue, batch, group)))

    def _deliver(self, bus: str, event: dict[str, Any]) -> None:
        for target in self.routes.matching(bus, event):
            self._hand_over(target, event)

    def _hand_over(self, target: Target, event: dict[str, Any]) -> None:
        if target.kind == "bus":
            self._deliver(target.name, event)
        elif target.kind == "queue":
            self._enqueue(target.name, [json.dumps(event)])
        else:
            self._work.append((target.name, event))

    def _invoke(self, function: str, event: dict[str, Any]) -> None:
        self.invocations += 1
        handler = importlib.import_module(f"functions.{function}.handler").handler
        context = LambdaContext(
            function_name=function, aws_request_id=str(self.invocations), seconds=self._left()
        )
        try:
            answer = handler(event, context)
        except Exception as error:  # noqa: BLE001 - as Lambda: a failing handler fails its own invocation
            logger.exception("handler failed", function=function)
            self._fail(function, f"{type(error).__name__}: {error}")
            return
        told = answer or {}
        for failed in told.get("batchItemFailures", []):
            self._fail(function, f"message {failed['itemIdentifier']} was not processed")
        if (status := told.get("statusCode", 200)) >= 300:
            self._fail(function, f"answered {status}: {told.get('body', '')}")

    def _left(self) -> float:
        """Tell how long an invocation may take: what waits for more events ends with the next tick."""
        since = (self.clock.now() - self.recording.start) % self.recording.tick
        return LONGEST_SECONDS + (-since % self.recording.tick).total_seconds()

    def _fail(self, function: str, error: str) -> None:
        self.failures += 1
        at = stamp(self.clock.now())
        self._failed.append({"type": "failure", "at": at, "function": function, "error": error})

    def _tell(self) -> None:
        """Print what changed since the last look, in the order of its times."""
        told: list[lines.Line] = []
        at = self.app.memories.load(self.recording.cluster)[0].at
        if at is not None and (self._last is None or at > self._last.at):
            key = self.app.evaluations.find(self.recording.cluster, at)
            if key is not None:
                self._last = self.app.evaluations.get(key)
                told += self._unknown.changes(self._last)
        told += self._findings.changes(self.app.alerts.load(self.recording.cluster))
        told += ({"type": "slack", **call} for call in self.rig.calls[self._calls_told :])
        told += ({"type": "page", **page} for page in _drain(self.rig.pages))
        told += _drain(self._failed)
        self._calls_told = len(self.rig.calls)
        for line in sorted(told, key=lambda line: line["at"]):
            self.emit(line)


def _stored[T](kind: type[T], path: Path) -> T:
    data = path.read_bytes()
    try:
        return codec.load(kind, gzip.decompress(data) if path.suffix == ".gz" else data, str(path))
    except PermanentError as error:
        raise ConfigError(str(error)) from error


type Entry = tuple[datetime, Literal["event", "press", "snapshot", "tick"], Any]


def _agenda(recording: Recording) -> Iterator[Entry]:
    """All that happens, by time; at the same time what happened before the tick.

    What jobs told of their checkpoints before the first tick is history, and comes before it.
    """
    entries: list[tuple[datetime, int, Entry]] = []
    for event in recording.checkpoints.events:
        at = datetime.fromisoformat(event["time"])
        if at <= recording.end:
            entries.append((at, 0, (at, "event", event)))
    happened: list[tuple[datetime, int, Entry]] = [
        *((at, 0, (at, "event", event)) for at, event in recording.events()),
        *((press.at, 1, (press.at, "press", press.body)) for press in recording.presses),
        *((at, 2, (at, "snapshot", path)) for at, path in recording.snapshots()),
    ]
    entries += (entry for entry in happened if recording.start <= entry[0] <= recording.end)
    at = recording.start
    while at <= recording.end:
        entries.append((at, 3, (at, "tick", None)))
        at += recording.tick
    entries.sort(key=lambda entry: entry[:2])
    return (entry for _, _, entry in entries)


def _bus_of(event: dict[str, Any]) -> str:
    """AWS services publish on the default bus; everybody else on the steward's."""
    return DEFAULT_BUS if str(event.get("source", "")).startswith("aws.") else BUS


def _drain[T](items: list[T]) -> list[T]:
    taken = list(items)
    items.clear()
    return taken
