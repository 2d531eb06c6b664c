"""kubectl is asked as its user would ask it, and each of its refusals is recorded as what it means."""

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from local import demo_recording
from local.capture.kubectl import Kubectl
from local.demo_recording.script import TO
from local.recording import Recording
from local.standins.kubernetes import KubernetesStandin
from local.standins.kubernetes_resources import RESOURCES
from steward.errors import ConfigError, RetryableError
from tests.serving import serving

FAKE = """\
#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
{cases}
esac
"""


def fake(folder: Path, cases: dict[str, str]) -> Path:
    """An executable `kubectl`: a shell pattern for its arguments, and what it does then."""
    log = folder / "asked.log"
    script = folder / "kubectl"
    lines = "\n".join(f"  {pattern}) {does} ;;" for pattern, does in cases.items())
    script.write_text(FAKE.format(log=log, cases=lines))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return log


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_each_resource_is_asked_for_in_its_own_api_group(on_path: Path) -> None:
    listed = json.dumps({"kind": "List", "items": []})
    log = fake(on_path, {"*": f"echo '{listed}'"})
    answers = Kubectl("prod").read_all()
    assert set(answers) == set(RESOURCES)
    asked = log.read_text().splitlines()
    assert len(asked) == len(RESOURCES)
    assert "--context=prod get pods -A -o json" in asked
    assert "--context=prod get workloads.kueue.x-k8s.io -A -o json" in asked
    assert not any("secrets" in line or "configmaps" in line for line in asked)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (
            'Error from server (Forbidden): pods is forbidden: User "jane" cannot list resource',
            403,
        ),
        ("error: the server doesn'\\''t have a resource type \"pods\"", 404),
        (
            "Error from server (NotFound): Unable to list: the server could not find the requested resource",
            404,
        ),
    ],
)
def test_a_refusal_becomes_its_status(on_path: Path, said: str, code: int) -> None:
    fake(on_path, {"*": f"echo '{said}' >&2; exit 1"})
    answer = Kubectl().read("pods")
    assert (answer["kind"], answer["code"]) == ("Status", code)


@pytest.mark.parametrize(
    "does",
    [
        "echo 'Unable to connect to the server: timeout' >&2; exit 1",
        "echo 'error: You must be logged in to the server (Unauthorized)' >&2; exit 1",
        "echo 'not json'",
        'echo \'{"kind": "Pod"}\'',
    ],
)
def test_a_cluster_that_does_not_answer_says_nothing_of_a_resource(
    on_path: Path, does: str
) -> None:
    fake(on_path, {"*": does})
    with pytest.raises(RetryableError, match="kubectl get pods"):
        Kubectl().read("pods")


def test_without_kubectl_there_is_nothing_to_begin_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="not on PATH"):
        Kubectl()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_real_kubectl_prints_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording.open(demo_recording.write(tmp_path / "demo"))
    api = KubernetesStandin(recording, lambda: TO)

    def signed_in(environ: dict[str, Any], start: Any) -> Any:
        # kubectl sends no token over plain HTTP.
        return api(environ | {"HTTP_AUTHORIZATION": "Bearer t"}, start)

    with serving(signed_in) as url:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "rig",
            "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "me"}}],
            "clusters": [{"name": "rig", "cluster": {"server": url}}],
            "users": [{"name": "me", "user": {}}],
        }
        (tmp_path / "config").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        monkeypatch.setenv("HOME", str(tmp_path))  # of its discovery cache
        kubectl = Kubectl("rig")
        assert kubectl.server() == url
        answers = kubectl.read_all()
    for resource in RESOURCES:
        recorded = recording.kubernetes(resource, TO)
        assert recorded is not None
        names = [item["metadata"]["name"] for item in answers[resource]["items"]]
        assert names == [item["metadata"]["name"] for item in recorded["items"]]
    assert answers["pods"]["items"]
    assert answers["workloads"]["items"][0]["apiVersion"].startswith("kueue.x-k8s.io/")
