"""What the capture command refuses, in one line, before anything is written."""

import os
from pathlib import Path

import pytest

from local.capture import __main__ as command
from local.capture.capture import Capture
from local.live import said
from local.replay import ROOT
from steward.errors import RetryableError

GOOD = {
    "--cluster": "ml-shared-01",
    "--from": "2026-11-05T08:00:00Z",
    "--to": "2026-11-05T09:00:00Z",
    "--governance": str(ROOT / "layers/policy/governance.yaml"),
}


@pytest.fixture(autouse=True)
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")


def run(**changes: str) -> int:
    arguments = GOOD | {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    return command.main([word for pair in arguments.items() for word in pair])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cluster": "ml-shared-1"}, "it knows ml-shared-01"),
        ({"to": "2026-11-05T07:00:00Z"}, "is not later than FROM"),
        ({"to": "2026-12-24T07:00:00Z"}, "more than 31 days"),
        ({"to": "2026-11-05T09:00"}, "lacks an offset"),
        ({"tick": "10s"}, "not between"),
        ({"tick": "5 minutes"}, "write it like 5m"),
        ({"history": "8d"}, "not between"),
        ({"metrics_url": "localhost:9090"}, "write http://"),
        ({"governance": "nowhere.yaml"}, "cannot be read"),
        ({"out": "."}, "has no name of its own"),
        ({"out": "recordings/.."}, "has no name of its own"),
    ],
)
def test_bad_input_ends_with_one_line(
    changes: dict[str, str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(**changes) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not (tmp_path / "recordings").exists()


def test_a_folder_that_holds_a_recording_is_left_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "recording"
    out.mkdir()
    (out / "recording.yaml").write_text("cluster: ml-shared-01\n")
    assert run(out=str(out)) == 2
    assert "holds a recording already" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["recording.yaml"]


def test_without_credentials_nothing_is_begun(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert run() == 2
    assert capsys.readouterr().err == "AWS: no credentials; sign in, or set AWS_PROFILE\n"
    assert not (tmp_path / "recordings").exists()


def test_what_the_steward_would_do_next_is_not_promised_to_a_person() -> None:
    late = RetryableError("http://localhost:9090: no answer; asked again next tick")
    assert said(late) == "http://localhost:9090: no answer"
    assert said(OSError("disk full")) == "disk full"


@pytest.mark.parametrize("ended", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_what_stops_a_capture_says_how_to_go_on(
    ended: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def stop(self: object) -> None:
        raise ended

    monkeypatch.setattr(Capture, "run", stop)
    assert run(out=str(tmp_path / "recording")) == 1
    said = capsys.readouterr().err
    assert "Repeat the command to go on" in said
    assert "recording.partial" in said
