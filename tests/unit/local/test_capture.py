"""A capture of what the rig serves replays as the original does, and holds nobody's secrets."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import replace
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import werkzeug

from local import demo_recording
from local.application import VirtualClock
from local.capture.capture import Capture
from local.capture.kubernetes_scrub import Json
from local.capture.request import Request
from local.capture.schedule import Period
from local.capture.state import resume_file
from local.live import find
from local.recording import Recording
from local.replay import ROOT, replay
from local.rig import environment, serve
from local.standins.kubernetes_resources import RESOURCES
from local.standins.kubernetes_wire import status
from steward.errors import ConfigError, RetryableError
from tests.serving import serving

FROM = datetime.fromisoformat("2026-11-05T08:00:00Z")
TO = datetime.fromisoformat("2026-11-05T11:15:00Z")
TICK = timedelta(minutes=5)
POLICY = ROOT / "layers/policy/governance.yaml"

PLANTED = (
    "hunter2",  # an environment value
    "jane.roe",  # the person who made a pod, in a label and in an address
    "s3cr3t-arg",
    "note-to-self",  # an annotation that nobody reads
    "shh-token",  # a mounted secret's name
    "111122223333",  # the account
    "research-oncall",  # whoever the policy names
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's recording, with secrets and people planted in its pods."""
    folder = demo_recording.write(tmp_path_factory.mktemp("demo"))
    for path in folder.glob("kubernetes/*/pods.json"):
        document = json.loads(path.read_text())
        for pod in document["items"]:
            pod["metadata"]["labels"]["sagemaker.user/created-by"] = "jane.roe"
            pod["metadata"]["annotations"]["team/memo"] = "note-to-self"
            container = pod["spec"]["containers"][0]
            container["env"].append({"name": "PASSWORD", "value": "hunter2"})
            container["args"].append("--password=s3cr3t-arg")
            pod["spec"]["volumes"] = [{"name": "v", "secret": {"secretName": "shh-token"}}]
            pod["status"]["message"] = "ask jane.roe@example.com"
        path.write_text(json.dumps(document))
    path = folder / "sagemaker" / "ListComputeQuotas.json"
    quotas = json.loads(path.read_text())
    quotas["ComputeQuotaSummaries"][0]["CreatedBy"] = {
        "UserProfileName": "jane.roe",
        "IamIdentity": {"Arn": "arn:aws:sts::111122223333:assumed-role/dev/jane.roe"},
    }
    path.write_text(json.dumps(quotas))
    return folder


@dataclass
class Recorded:
    """Lists what a recording holds at the virtual time, as `kubectl` would."""

    recording: Recording
    clock: VirtualClock
    missing: tuple[str, ...] = ()
    broken_at: tuple[datetime, ...] = ()
    taken: list[datetime] = field(default_factory=list)

    def read_all(self) -> dict[str, Json]:
        self.taken.append(self.clock.now())
        if self.clock.now() in self.broken_at:
            raise RetryableError("kubectl get pods: connection refused")
        return {resource: self._one(resource) for resource in RESOURCES}

    def server(self) -> str:
        return "https://tunnel.example.com:6443"

    def _one(self, resource: str) -> Json:
        if resource in self.missing:
            return dict(status(404, f"{resource}: not installed in this cluster"))
        found = self.recording.kubernetes(resource, self.clock.now())
        return dict(status(403, f"{resource} is forbidden")) if found is None else found


@dataclass
class Quiet:
    lines: list[str] = field(default_factory=list)
    stop_after: int | None = None

    def looked(self, at: datetime, number: int) -> None:
        pass

    def fetched(self, done: int, of: int) -> None:
        if done == self.stop_after:
            raise KeyboardInterrupt

    def waiting(self, until: datetime, what: str) -> None:
        pass

    def say(self, text: str) -> None:
        self.lines.append(text)


@contextmanager
def rig(folder: Path, at: datetime) -> Iterator[tuple[Recording, VirtualClock, str]]:
    """The stand-ins over a recording, at a virtual time."""
    recording, clock = Recording.open(folder), VirtualClock(at)
    names = ("ml-shared-01", "ml-shared-01-eks")
    with serve(recording, names, clock.now) as running, environment(running.url):
        yield recording, clock, f"{running.url}/prometheus"


def asked(url: str, out: Path, **changes: Any) -> Request:
    period = Period(start=FROM, end=TO, tick=TICK)
    request = Request(
        live=find("ml-shared-01", POLICY, url),
        period=period,
        out=out,
        history=timedelta(days=2),
    )
    return replace(request, **changes)


def findings(folder: Path) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    replay(folder, told.append)
    return [line for line in told if line["type"] in {"finding", "unknown"}]


def cut_off(folder: Path, to: Path) -> Path:
    """The same recording up to the end of what is captured."""
    to.mkdir()
    for path in folder.iterdir():
        if path.name != "recording.yaml":
            (to / path.name).symlink_to(path)
    header = (folder / "recording.yaml").read_text()
    (to / "recording.yaml").write_text(re.sub(r"(?m)^to: .*$", f"to: {TO.isoformat()}", header))
    return to


def texts(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture(scope="module")
def captured(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's day until a quarter past eleven, captured as it went on."""
    out = tmp_path_factory.mktemp("captured") / "recording"
    with rig(demo, FROM) as (recording, clock, url):
        Capture(asked(url, out), clock, Recorded(recording, clock), Quiet()).run()
    return out


def test_a_capture_replays_as_what_it_was_taken_of(
    demo: Path, captured: Path, tmp_path: Path
) -> None:
    original = findings(cut_off(demo, tmp_path / "original"))
    assert {line["reason"] for line in original} >= {"idle", "idle_held"}
    captured_text = re.sub(r"person-[0-9a-f]{12}", "jane.roe", json.dumps(findings(captured)))
    # The account's pseudonym.
    captured_text = re.sub(r"\b0000\d{8}\b", "111122223333", captured_text)
    assert json.loads(captured_text) == original


def test_a_capture_holds_nobodys_secrets(demo: Path, captured: Path) -> None:
    before, after = texts(demo) + POLICY.read_text(), texts(captured)
    for secret in PLANTED:
        assert secret in before
        assert secret not in after
    pods = "".join(path.read_text() for path in captured.glob("kubernetes/*/pods.json"))
    names = re.findall(r"sagemaker.user/created-by\": \"([^\"]+)", pods)
    assert len(set(names)) == 1  # one person, one pseudonym, in every folder
    assert not resume_file(captured).exists()  # the key is gone


def test_a_capture_that_was_stopped_goes_on_where_it_was(demo: Path, tmp_path: Path) -> None:
    out = tmp_path / "recording"
    short = Period(start=TO - TICK, end=TO, tick=TICK)
    with rig(demo, TO + TICK) as (recording, clock, url):
        request = asked(url, out, period=short, history=timedelta(hours=5))
        lists = Recorded(recording, clock)
        with pytest.raises(KeyboardInterrupt):
            Capture(request, clock, lists, Quiet(stop_after=2)).run()
        assert not (out / "recording.yaml").exists()  # half a capture is no recording
        assert resume_file(out).stat().st_mode & 0o077 == 0  # it holds the key
        done = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
        assert len([path for path in done if path.suffix == ".om"]) == 2
        again = Quiet()
        Capture(request, clock, lists, again).run()
        assert again.lines[0].startswith("going on")
        assert len(lists.taken) == 1  # the look that was taken is not taken again
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert Recording.open(out).cluster == "ml-shared-01"
    # The pseudonyms of both runs agree: one person made every pod of the demo.
    assert len(set(re.findall(r"person-[0-9a-f]{12}\"", texts(out / "kubernetes")))) == 7


def test_a_first_look_that_was_stopped_leaves_nothing_behind(demo: Path, tmp_path: Path) -> None:
    out = tmp_path / "recording"
    period = Period(start=TO - 2 * TICK, end=TO, tick=TICK)

    class Stopped(Quiet):
        def looked(self, at: datetime, number: int) -> None:
            if number == 1:
                # As if killed between the folder and the note of it.
                resume_file(out).write_bytes(before)
                raise KeyboardInterrupt

    with rig(demo, TO - TICK) as (recording, clock, url):
        request = asked(url, out, period=period, history=timedelta(hours=1))
        lists = Recorded(recording, clock)
        first = Capture(request, clock, lists, stopped := Stopped())
        before = resume_file(out).read_bytes()
        (out / "metrics").mkdir(parents=True)
        (out / "metrics" / ".half.om.new").write_text("half")
        with pytest.raises(KeyboardInterrupt):
            first.run()
        assert [p.name for p in (out / "kubernetes").iterdir()] == ["20261105T111000Z"]
        assert stopped.lines  # a look was taken
        clock.move_to(TO)
        Capture(request, clock, lists, Quiet()).run()
    # The note and what is in force agree: it is recorded from 11:15 on.
    assert [p.name for p in (out / "kubernetes").iterdir()] == ["20261105T111500Z"]
    assert "Kubernetes is recorded from 2026-11-05T11:15:00Z on" in Recording.open(out).note
    assert list(out.rglob(".*")) == []  # half a write is no part of it


def test_a_capture_that_was_stopped_at_its_very_end_is_whole(demo: Path, tmp_path: Path) -> None:
    out = tmp_path / "recording"
    short = Period(start=TO - TICK, end=TO, tick=TICK)
    with rig(demo, TO) as (recording, clock, url):
        request = asked(url, out, period=short, history=timedelta(minutes=1))
        Capture(request, clock, Recorded(recording, clock), Quiet()).run()
        resume_file(out).write_text("the key")
        with pytest.raises(ConfigError, match="holds a recording already"):
            Capture(request, clock, Recorded(recording, clock), Quiet())
    assert not resume_file(out).exists()  # or the key would lie beside it for ever


def test_a_session_that_ran_out_is_no_refusal_of_the_metrics(demo: Path, tmp_path: Path) -> None:
    # As Amazon's Prometheus answers; the same status as for a right that is missing.
    @werkzeug.Request.application
    def expired(request: werkzeug.Request) -> werkzeug.Response:
        said = '{"message":"The security token included in the request is expired"}'
        return werkzeug.Response(said, 403, content_type="application/json")

    out = tmp_path / "recording"
    period = Period(start=TO - TICK, end=TO, tick=TICK)
    with rig(demo, TO + TICK) as (recording, clock, url):
        request = asked(url, out, period=period, history=timedelta(minutes=1))
        with serving(expired) as unsigned:
            out_of_session = asked(unsigned, out, period=period, history=timedelta(minutes=1))
            with pytest.raises(RetryableError, match="sign in again"):
                Capture(out_of_session, clock, Recorded(recording, clock), Quiet()).run()
        Capture(request, clock, Recorded(recording, clock), Quiet()).run()
    assert list((out / "metrics").iterdir())
    assert "refused" not in Recording.open(out).note


def test_another_capture_does_not_go_on_in_the_same_folder(demo: Path, tmp_path: Path) -> None:
    out = tmp_path / "recording"
    with rig(demo, TO) as (recording, clock, url):
        short = Period(start=TO - TICK, end=TO, tick=TICK)
        Capture(asked(url, out, period=short), clock, Recorded(recording, clock), Quiet())
        with pytest.raises(ConfigError, match=r"begun with FROM=2026-11-05T11:10:00Z"):
            Capture(asked(url, out), clock, Recorded(recording, clock), Quiet())
        (other := tmp_path / "other").mkdir()
        (other / "notes.txt").write_text("mine")
        with pytest.raises(ConfigError, match="is not empty"):
            Capture(asked(url, other), clock, Recorded(recording, clock), Quiet())


def test_a_period_that_is_past_has_one_look_and_says_so(demo: Path, tmp_path: Path) -> None:
    out = tmp_path / "recording"
    with rig(demo, TO) as (recording, clock, url):
        short = Period(start=TO - 2 * TICK, end=TO - TICK, tick=TICK)
        request = asked(url, out, period=short, history=timedelta(hours=1))
        Capture(request, clock, Recorded(recording, clock), Quiet()).run()
    assert [path.name for path in (out / "kubernetes").iterdir()] == ["20261105T111000Z"]
    note = Recording.open(out).note
    assert "The period was past" in note
    assert (
        "kubectl asked another API server" in note
    )  # here through a tunnel; it might be a mistake
    assert "2026-11-05T11:15:00Z" in note
    # Today's answers of the control plane hold for the whole period.
    assert (out / "sagemaker" / "DescribeCluster.json").is_file()


def test_what_is_refused_not_installed_and_failed_are_three_things(
    demo: Path, tmp_path: Path
) -> None:
    out = tmp_path / "recording"
    begin, failing = TO - 3 * TICK, TO - 2 * TICK
    with rig(demo, begin) as (recording, clock, url):
        lists = Recorded(recording, clock, missing=("rayjobs",), broken_at=(failing,))
        period = Period(start=begin, end=TO, tick=TICK)
        Capture(asked(url, out, period=period), clock, lists, Quiet()).run()
    looks = sorted(path.name for path in (out / "kubernetes").iterdir())
    assert looks == ["20261105T110000Z", "20261105T111000Z", "20261105T111500Z"]
    absent = json.loads((out / "kubernetes" / looks[0] / "rayjobs.json").read_text())
    assert (absent["kind"], absent["code"]) == ("Status", 404)
    note = Recording.open(out).note
    assert "The look at 2026-11-05T11:05:00Z failed" in note
    assert "refused" not in note


def test_a_refused_cluster_is_recorded_as_refused(demo: Path, tmp_path: Path) -> None:
    # A recording without kubernetes/ and sagemaker/ says that all of it is denied.
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "recording.yaml").write_text(
        f"cluster: ml-shared-01\nfrom: {FROM.isoformat()}\nto: {TO.isoformat()}\n"
    )
    out = tmp_path / "recording"
    with rig(bare, TO) as (recording, clock, url):
        period = Period(start=TO - TICK, end=TO, tick=TICK)
        quiet = Quiet()
        with pytest.raises(RetryableError, match="503"):  # an unreachable Prometheus: try later
            Capture(asked(url, out, period=period), clock, Recorded(recording, clock), quiet).run()
    pods = json.loads(next(out.glob("kubernetes/*/pods.json")).read_text())
    assert (pods["kind"], pods["code"]) == ("Status", 403)
    described = json.loads((out / "sagemaker" / "DescribeCluster.json").read_text())
    assert described["Error"]["Code"] == "AccessDeniedException"
    assert any("Kubernetes refused" in line and "pods" in line for line in quiet.lines)


def test_renamed_jobs_are_renamed_alike_everywhere(demo: Path, tmp_path: Path) -> None:
    out = tmp_path / "recording"
    with rig(demo, TO) as (recording, clock, url):
        period = Period(start=TO - TICK, end=TO, tick=TICK)
        request = asked(url, out, period=period, rename_jobs=True, history=timedelta(hours=1))
        Capture(request, clock, Recorded(recording, clock), Quiet()).run()
    held = texts(out)
    for job in ("notebook-llm-eval", "sweep-vision", "pretrain-encoder"):
        assert job not in held
    pods = json.loads(next(out.glob("kubernetes/*/pods.json")).read_text())["items"]
    named = {pod["metadata"]["name"] for pod in pods}
    measured = set(re.findall(r'pod="([^"]+)"', texts(out / "metrics")))
    assert measured
    assert measured <= named  # what telemetry speaks of is found among the pods
    owners = {o["name"] for pod in pods for o in pod["metadata"]["ownerReferences"]}
    listed = texts(next((out / "kubernetes").iterdir()))
    assert all(f'"name": "{owner}"' in listed for owner in owners)
