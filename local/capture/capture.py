"""A capture: what to fetch next, from where, and what the recording has to say of itself."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from local.capture.chunks import Chunk
from local.capture.insights import MetricData
from local.capture.looks import Looks
from local.capture.names import Pseudonyms
from local.capture.policy_copy import copy_policy
from local.capture.prometheus import RawSamples
from local.capture.request import Lists, Request, Told
from local.capture.state import (
    State,
    begin,
    resume_file,
    save,
    text_of,
    write_file,
    write_header,
)
from local.live import said
from local.metrics_check.needs import Backend, Hardware, needs_of
from steward.cluster.figures import stamp
from steward.errors import ConfigError, DeniedError, RetryableError
from steward.ports import Clock

BACK_OFF_SECONDS = (2, 8)
LONGEST_WAIT_SECONDS = 30.0
"""A machine that slept wakes up to its clock, and not to a wait that was planned before."""

_SIGNED_OUT = ("security token", "ExpiredToken", "no AWS credentials")
"""Refusals that are of the person's own session and say nothing of their rights."""


@dataclass(slots=True)
class Capture:
    """One run of a capture; a run that ends early leaves what the next one goes on from."""

    request: Request
    clock: Clock
    lists: Lists
    told: Told
    state: State = field(init=False)
    names: Pseudonyms = field(init=False)
    _chunks: list[Chunk] = field(init=False)
    _planned: int = field(init=False)
    _fetch: Callable[[Chunk], str] = field(init=False)
    _looker: Looks = field(init=False)

    def __post_init__(self) -> None:
        request = self.request
        self.state, resumed = begin(request.out, request.identity)
        self.names = Pseudonyms(
            salt=bytes.fromhex(self.state.salt),
            accounts=set(self.state.accounts),
            rename_jobs=request.rename_jobs,
            jobs=set(self.state.jobs),
        )
        cluster = request.live.cluster
        self.names.accounts |= {cluster.account} if cluster.account else set()
        # A policy that cannot be copied stops the capture before it has begun.
        copy_policy(request.live.policy_file, cluster.name, self.names)
        self._looker = Looks(request, self.lists, self.told, self.state, self.names)
        planned = request.chunks()
        self._planned = len(planned)
        self._chunks = [chunk for chunk in planned if not self._path(chunk).exists()]
        if request.live.insights:
            needs = needs_of(Backend.CONTAINER_INSIGHTS, Hardware)
            self._fetch = MetricData(request.live, needs, self.names)
        else:
            self._fetch = RawSamples(request.live, self.names)
        if resumed:
            self.told.say(f"going on with {resume_file(request.out)}")
        save(request.out, self.state, self.names)

    def run(self) -> None:
        """Capture what is left, wait for what is still to come, and write `recording.yaml`.

        Raises
        ------
        StewardError
            A source failed for good, or for too long: the next run goes on from here.
        """
        while True:
            now = self.clock.now()
            look = self.request.period.next_look(self._looks(), now)
            piece = self._ready(now)
            if look is not None and look <= now:
                self._look(now)
            elif piece is not None:
                self._piece(piece)
            elif look is None and not self._left():
                break
            else:
                self._wait(look, now)
        self._finish()

    def _looks(self) -> list[datetime]:
        return [datetime.fromisoformat(one) for one in self.state.looks]

    def _left(self) -> list[Chunk]:
        return [] if self.state.no_metrics else self._chunks

    def _complete(self, chunk: Chunk) -> datetime:
        """Tell from when on a piece has all its samples."""
        return chunk.end + timedelta(seconds=self.request.live.cluster.metrics.delay_seconds)

    def _ready(self, now: datetime) -> Chunk | None:
        return next((chunk for chunk in self._left() if self._complete(chunk) <= now), None)

    def _wait(self, look: datetime | None, now: datetime) -> None:
        wakes = [self._complete(chunk) for chunk in self._left()] + ([look] if look else [])
        until = min(wakes)
        self.told.waiting(until, "the next look" if until == look else "the last samples")
        self.clock.sleep(min((until - now).total_seconds(), LONGEST_WAIT_SECONDS))

    def _look(self, now: datetime) -> None:
        at = self._looker.look(now)
        self.state.looks.append(at.isoformat())
        save(self.request.out, self.state, self.names)
        self.told.looked(at, len(self.state.looks))

    def _piece(self, chunk: Chunk) -> None:
        try:
            text = self._patiently(chunk)
        except DeniedError as error:
            if any(sign in str(error) for sign in _SIGNED_OUT):
                raise RetryableError(f"{error}; sign in again (AWS_PROFILE)") from error
            self.state.no_metrics = True
            self.state.notes.append("The metrics backend refused: there are no more metrics.")
            if self.request.live.insights:
                # Without a file, a recording says that there was nothing to see.
                refused = {"Error": {"Code": "AccessDenied", "Message": "refused to the capture"}}
                write_file(self.request.out / "cloudwatch" / "refused.json", text_of(refused))
            self.told.say(said(error))
        else:
            write_file(self._path(chunk), text)
            self._chunks.remove(chunk)
            self.told.fetched(self._planned - len(self._chunks), self._planned)
        save(self.request.out, self.state, self.names)

    def _patiently(self, chunk: Chunk) -> str:
        for seconds in BACK_OFF_SECONDS:
            try:
                return self._fetch(chunk)
            except RetryableError as error:
                self.told.say(f"{said(error)}; trying again in {seconds} s")
                self.clock.sleep(seconds)
        return self._fetch(chunk)

    def _path(self, chunk: Chunk) -> Path:
        if self.request.live.insights:
            return self.request.out / "cloudwatch" / f"{chunk.name}.json"
        return self.request.out / "metrics" / f"{chunk.name}.om"

    def _finish(self) -> None:
        out, period, cluster = self.request.out, self.request.period, self.request.live.cluster
        if not (out / "kubernetes").is_dir():
            raise ConfigError(f"{out}: its kubernetes/ is gone; delete {resume_file(out)}")
        text = copy_policy(self.request.live.policy_file, cluster.name, self.names)
        write_file(out / "governance.yaml", text)
        notes = [
            f"Captured from a live cluster; metrics from {self._since()} on.",
            *self.state.notes,
        ]
        for begun, ended in period.gaps(self._looks()):
            notes.append(f"Nobody looked between {stamp(begun)} and {stamp(ended)}.")
        if self.request.rename_jobs:
            notes.append("Jobs and pods are renamed.")
        header = {
            "cluster": cluster.name,
            "from": stamp(period.start),
            "to": stamp(period.end),
            "tick": f"{int(period.tick.total_seconds())}s",
            "note": " ".join(notes),
        }
        write_header(out, header)
        resume_file(out).unlink()

    def _since(self) -> str:
        return stamp(min(chunk.start for chunk in self.request.chunks()))
