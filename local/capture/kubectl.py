"""What `kubectl get <resource> -A -o json` prints, run as the person at this machine."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from local.standins.kubernetes_resources import RESOURCES
from local.standins.kubernetes_wire import status
from steward.errors import ConfigError, RetryableError

SECONDS = 180
AT_ONCE = 6
"""Lists that run side by side: the closer together, the more of one moment a look is."""

type Json = dict[str, Any]


class Kubectl:
    """Lists resources of all namespaces.

    Parameters
    ----------
    context : str
        Of the person's kubeconfig; empty: the current one.

    Raises
    ------
    ConfigError
        There is no kubectl on PATH.
    """

    def __init__(self, context: str = "") -> None:
        program = shutil.which("kubectl")
        if program is None:
            raise ConfigError("kubectl: not on PATH; install it, or add its folder to PATH")
        self._command = [program, *([f"--context={context}"] if context else [])]

    def read_all(self) -> dict[str, Json]:
        """List every resource of the recording format: the answer, or the Status of its refusal.

        Raises
        ------
        RetryableError
            The cluster did not answer, or does not know the person.
        """
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(self.read, RESOURCES))
        return dict(zip(RESOURCES, answers, strict=True))

    def server(self) -> str:
        """Name the API server of the context; empty where kubectl does not tell."""
        words = ["config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"]
        done = self._run(words, "kubectl config view")
        return "" if done.returncode else done.stdout.decode(errors="replace").strip()

    def read(self, resource: str) -> Json:
        """List one resource; raises RetryableError as :meth:`read_all` does."""
        group = RESOURCES[resource].group
        # Another API may have a resource of the same name: the group says which one is meant.
        named = f"{resource}.{group}" if group else resource
        done = self._run(["get", named, "-A", "-o", "json"], f"kubectl get {named}")
        if done.returncode:
            # Before its last line the client's own log may stand.
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
            return _refusal(named, resource, lines[-1])
        try:
            answer: object = json.loads(done.stdout)
        except ValueError as error:
            raise RetryableError(f"kubectl get {named}: not JSON: {error}") from error
        if not isinstance(answer, dict) or not isinstance(answer.get("items"), list):
            raise RetryableError(f"kubectl get {named}: not a list of objects")
        return answer

    def _run(self, words: Sequence[str], doing: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(  # noqa: S603 - no shell; every word is the project's, but the context
                [*self._command, *words],
                stdin=subprocess.DEVNULL,  # a question that nobody sees must not be waited for
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RetryableError(f"{doing}: no answer in {SECONDS} s") from error


def _refusal(named: str, resource: str, said: str) -> Json:
    """Give the Status that a recording holds: a file that is missing would say *denied*."""
    if "(Forbidden)" in said:
        return dict(status(403, said))
    absent = ("doesn't have a resource type", "could not find the requested resource")
    if any(text in said for text in absent):
        return dict(status(404, f"{resource}: not installed in this cluster"))
    raise RetryableError(f"kubectl get {named}: {said}; check KUBE_CONTEXT and your access")
