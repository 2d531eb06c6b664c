"""A look at the live cluster as it is now: Kubernetes, SageMaker and EKS."""

import json
import shutil
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

from local.capture import kubernetes_scrub
from local.capture.aws_scrub import scrub_aws
from local.capture.control_plane import read_control_plane
from local.capture.names import Pseudonyms
from local.capture.request import Json, Lists, Request, Told
from local.capture.state import State, text_of, write_file, write_folder
from local.live import said
from local.recording import moment_name
from local.recording.loader import SOURCES
from steward.cluster.figures import stamp
from steward.errors import RetryableError


class Looks:
    """Takes looks, and writes down what each saw; notes go into the capture's state."""

    def __init__(
        self, request: Request, lists: Lists, told: Told, state: State, names: Pseudonyms
    ) -> None:
        self._request = request
        self._lists = lists
        self._told = told
        self._state = state
        self._names = names
        self._answered: dict[str, str] = {}

    def look(self, now: datetime) -> datetime:
        """Look once, and note what went wrong; gives the time that it stands at.

        Raises
        ------
        RetryableError
            The first look failed: later ones leave what the one before saw in force.
        """
        at = self._request.period.clamp(now)
        first = not self._state.looks
        if first:
            # What a look that was stopped left would be in force, and the note would not know it.
            for source in SOURCES:
                shutil.rmtree(self._request.out / source, ignore_errors=True)
            self._note_begin(now, at)
        try:
            self._control_plane(at, first=first)
            self._kubernetes(at)
        except RetryableError as error:
            if first:
                raise
            self._told.say(f"look at {stamp(at)} failed: {said(error)}")
            self._state.notes.append(
                f"The look at {stamp(at)} failed: the one before it stays in force."
            )
        return at

    def _note_begin(self, now: datetime, at: datetime) -> None:
        period, notes = self._request.period, []
        if now > period.end:
            whole = f"Kubernetes, SageMaker and EKS are as they were at {stamp(now)}"
            until = f"Kubernetes stands at {stamp(at)}, the end of the period: before, it is denied"
            notes = [f"The period was past: {whole}; {until}."]
        elif at > period.start:
            notes = [f"Kubernetes is recorded from {stamp(at)} on; before, it is denied."]
        self._state.notes = notes

    def _control_plane(self, at: datetime, *, first: bool) -> None:
        since = self._request.period.start - self._request.history
        answers = dict(read_control_plane(self._request.live, since))
        for answer in answers.values():
            self._names.meet_accounts(json.dumps(answer, default=str))
        texts = {name: text_of(scrub_aws(one, self._names)) for name, one in answers.items()}
        for source in ("sagemaker", "eks"):
            own = {k: v for k, v in texts.items() if k.startswith(f"{source}/")}
            if not first and all(self._answered.get(k) == v for k, v in own.items()):
                continue
            files = {f"{name.partition('/')[2]}.json": text for name, text in own.items()}
            if first:
                for name, text in files.items():
                    write_file(self._request.out / source / name, text)
            else:
                write_folder(self._request.out / source / moment_name(at), files)
        self._answered = texts
        self._note_refused({n: a for n, a in answers.items() if "Error" in a}, "AWS refused")
        if first:
            self._compare(answers.get("eks/DescribeCluster", {}))

    def _compare(self, described: Json) -> None:
        """Say so where kubectl speaks to another API server than the cluster's: a tunnel, or a mistake."""
        endpoint = str(described.get("cluster", {}).get("endpoint", ""))
        server = self._lists.server()
        if endpoint and server and urlsplit(endpoint).hostname != urlsplit(server).hostname:
            self._told.say(f"kubectl asks {server}, and EKS names {endpoint}: set KUBE_CONTEXT?")
            self._state.notes.append("kubectl asked another API server than EKS names.")

    def _kubernetes(self, at: datetime) -> None:
        answers = self._lists.read_all()
        for resource, answer in answers.items():
            if self._request.rename_jobs:
                kubernetes_scrub.meet(resource, answer, self._names)
            self._names.meet_accounts(json.dumps(answer))
        kept = {
            f"{resource}.json": text_of(kubernetes_scrub.scrub(resource, answer, self._names))
            for resource, answer in answers.items()
        }
        write_folder(self._request.out / "kubernetes" / moment_name(at), kept)
        denied = {r: a for r, a in answers.items() if a.get("code") == 403}
        self._note_refused(denied, "Kubernetes refused")

    def _note_refused(self, refused: Mapping[str, object], who: str) -> None:
        names = ", ".join(sorted(name.rpartition("/")[2] for name in refused))
        note = f"{who} {names}."
        if refused and note not in self._state.notes:
            self._state.notes.append(note)
            self._told.say(note)
