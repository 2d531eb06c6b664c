"""A capture: what to fetch next, from where, and what the recording has to say of itself."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from local.capture import kubernetes_scrub
from local.capture.aws_scrub import scrub_aws
from local.capture.chunks import Chunk
from local.capture.control_plane import read_control_plane
from local.capture.insights import MetricData
from local.capture.names import Pseudonyms
from local.capture.policy_copy import copy_policy
from local.capture.prometheus import RawSamples
from local.capture.request import Json, Lists, Request, Told
from local.capture.state import State, begin, resume_file, save, write_file, write_folder
from local.metrics_check.needs import Backend, Hardware, needs_of
from steward.cluster.figures import stamp
from steward.errors import ConfigError, DeniedError, RetryableError
from steward.ports import Clock

BACK_OFF_SECONDS = (2, 8)
LONGEST_WAIT_SECONDS = 30.0
"""A machine that slept wakes up to its clock, and not to a wait that was planned before."""

_NAME = "%Y%m%dT%H%M%SZ"


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
    _answered: dict[str, str] = field(default_factory=dict)

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
        at = self.request.period.clamp(now)
        first = not self.state.looks
        if first:
            self._note_begin(now, at)
        try:
            self._control_plane(at, first=first)
            self._kubernetes(at)
        except RetryableError as error:
            if first:
                raise
            self.told.say(f"look at {stamp(at)} failed: {error}")
            self.state.notes.append(
                f"The look at {stamp(at)} failed: the one before it stays in force."
            )
        self.state.looks.append(at.isoformat())
        save(self.request.out, self.state, self.names)
        self.told.looked(at, len(self.state.looks))

    def _note_begin(self, now: datetime, at: datetime) -> None:
        period, notes = self.request.period, []
        if now > period.end:
            whole = f"Kubernetes, SageMaker and EKS are as they were at {stamp(now)}"
            until = f"Kubernetes stands at {stamp(at)}, the end of the period: before, it is denied"
            notes = [f"The period was past: {whole}; {until}."]
        elif at > period.start:
            notes = [f"Kubernetes is recorded from {stamp(at)} on; before, it is denied."]
        self.state.notes = notes

    def _control_plane(self, at: datetime, *, first: bool) -> None:
        since = self.request.period.start - self.request.history
        answers = dict(read_control_plane(self.request.live, since))
        for answer in answers.values():
            self.names.meet_accounts(json.dumps(answer, default=str))
        texts = {name: _text(scrub_aws(one, self.names)) for name, one in answers.items()}
        for source in ("sagemaker", "eks"):
            own = {k: v for k, v in texts.items() if k.startswith(f"{source}/")}
            if not first and all(self._answered.get(k) == v for k, v in own.items()):
                continue
            files = {f"{name.partition('/')[2]}.json": text for name, text in own.items()}
            if first:
                for name, text in files.items():
                    write_file(self.request.out / source / name, text)
            else:
                write_folder(self.request.out / source / at.strftime(_NAME), files)
        self._answered = texts
        self._note_refused({n: a for n, a in answers.items() if "Error" in a}, "AWS refused")
        if first:
            self._compare(answers.get("eks/DescribeCluster", {}))

    def _compare(self, described: Json) -> None:
        """Say so where kubectl speaks to another API server than the cluster's: a tunnel, or a mistake."""
        endpoint = str(described.get("cluster", {}).get("endpoint", ""))
        server = self.lists.server()
        if endpoint and server and urlsplit(endpoint).hostname != urlsplit(server).hostname:
            self.told.say(f"kubectl asks {server}, and EKS names {endpoint}: set KUBE_CONTEXT?")
            self.state.notes.append("kubectl asked another API server than EKS names.")

    def _kubernetes(self, at: datetime) -> None:
        answers = self.lists.read_all()
        for resource, answer in answers.items():
            if self.request.rename_jobs:
                kubernetes_scrub.meet(resource, answer, self.names)
            self.names.meet_accounts(json.dumps(answer))
        kept = {
            f"{resource}.json": _text(kubernetes_scrub.scrub(resource, answer, self.names))
            for resource, answer in answers.items()
        }
        write_folder(self.request.out / "kubernetes" / at.strftime(_NAME), kept)
        denied = {r: a for r, a in answers.items() if a.get("code") == 403}
        self._note_refused(denied, "Kubernetes refused")

    def _note_refused(self, refused: Mapping[str, object], who: str) -> None:
        names = ", ".join(sorted(name.rpartition("/")[2] for name in refused))
        note = f"{who} {names}."
        if refused and note not in self.state.notes:
            self.state.notes.append(note)
            self.told.say(note)

    def _piece(self, chunk: Chunk) -> None:
        try:
            text = self._patiently(chunk)
        except DeniedError as error:
            self.state.no_metrics = True
            self.state.notes.append("The metrics backend refused: there are no more metrics.")
            if self.request.live.insights:
                # Without a file, a recording says that there was nothing to see.
                refused = {"Error": {"Code": "AccessDenied", "Message": "refused to the capture"}}
                write_file(self.request.out / "cloudwatch" / "refused.json", _text(refused))
            self.told.say(str(error))
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
                self.told.say(f"{error}; trying again in {seconds} s")
                self.clock.sleep(seconds)
        return self._fetch(chunk)

    def _path(self, chunk: Chunk) -> Path:
        if self.request.live.insights:
            return self.request.out / "cloudwatch" / f"{chunk.name}.json"
        return self.request.out / "metrics" / f"{chunk.name}.om"

    def _finish(self) -> None:
        out, period, cluster = self.request.out, self.request.period, self.request.live.cluster
        if not (out / "kubernetes").is_dir():
            raise ConfigError(f"{out}: no look at the cluster succeeded; delete {resume_file(out)}")
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
        lines = (
            f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in header.items()
        )
        write_file(out / "recording.yaml", "".join(lines))
        resume_file(out).unlink()

    def _since(self) -> str:
        return stamp(min(chunk.start for chunk in self.request.chunks()))


def _text(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, default=str) + "\n"
