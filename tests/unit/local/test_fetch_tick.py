"""A tick that production stored replays at home with the same findings."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.session import get_session
from moto.server import ThreadedMotoServer

from local import demo_recording, fetch_tick
from local.fetch_tick import Store, main, write_recording
from local.recording import Recording
from local.replay import ROOT, replay
from local.simulation import Replay
from steward.errors import ConfigError, PermanentError

POLICY = ROOT / "layers/policy/governance.yaml"
CLUSTER = "ml-shared-01"
BUCKET = "steward"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[boto3.Session]:
    """A session whose every client talks to one moto server on loopback."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    folder = tmp_path_factory.mktemp("aws")
    (folder / "config").write_text(f"[default]\nendpoint_url = http://{host}:{port}\n")
    core = get_session()
    core.set_config_variable("config_file", str(folder / "config"))
    core.set_config_variable("credentials_file", str(folder / "none"))
    made = boto3.Session(
        aws_access_key_id="local",
        aws_secret_access_key="local",
        region_name="us-east-1",
        botocore_session=core,
    )
    s3 = made.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    yield made
    server.stop()


TICK = datetime(2026, 11, 5, 9, 25, tzinfo=UTC)
"""The first tick whose window (60 min up to 2 min ago) lies behind 08:20, when a GPU of `sweep-vision`
went idle; those of `notebook-llm-eval` have been idle for a day and more."""


@pytest.fixture(scope="module")
def produced(session: boto3.Session, tmp_path_factory: pytest.TempPathFactory) -> Replay:
    """The demo's first hours; its snapshots, and the memory after some ticks, are in the bucket."""
    folder = demo_recording.write(tmp_path_factory.mktemp("demo"))
    text = (folder / "recording.yaml").read_text()
    header = text.replace("from: 2026-11-05T08:00:00Z", "from: 2026-11-05T09:00:00Z").splitlines()
    s3 = session.client("s3")
    for end in ("09:15", "09:20", "09:30"):
        lines = [f"to: 2026-11-05T{end}:00Z" if x.startswith("to:") else x for x in header]
        (folder / "recording.yaml").write_text("\n".join(lines))
        run = replay(folder, lambda _: None)
        key = f"memory/{CLUSTER}.json"
        s3.put_object(Bucket=BUCKET, Key=key, Body=run.app.objects.objects[key])
    for key, data in run.app.objects.objects.items():
        if key.startswith("snapshots/"):
            s3.put_object(Bucket=BUCKET, Key=key, Body=data)
    return run


def evaluation(run: Replay, at: datetime) -> Any:
    key = run.app.evaluations.find(CLUSTER, at)
    assert key is not None
    return run.app.evaluations.get(key)


def test_a_fetched_tick_says_what_production_said(
    session: boto3.Session, produced: Replay, tmp_path: Path
) -> None:
    out = tmp_path / "tick"
    tick = Store(session, BUCKET).fetch(CLUSTER, TICK + timedelta(minutes=3))
    assert tick.at == TICK  # the newest that is not later
    assert tick.memory is not None
    assert tick.memory[0] == TICK - timedelta(minutes=5)  # as it was before, not after
    write_recording(tick, CLUSTER, POLICY, out)
    told: list[dict[str, Any]] = []
    again = replay(out, told.append)
    assert evaluation(again, TICK) == evaluation(produced, TICK)
    firing = {line["subject"] for line in told if line["type"] == "finding"}
    assert {subject.rpartition("/")[2] for subject in firing} >= {
        "notebook-llm-eval",
        "sweep-vision",
    }
    assert told[-1]["ticks"] == 1
    assert told[-1]["failures"] == 0


def test_without_its_memory_a_tick_says_so_and_still_replays(
    session: boto3.Session, produced: Replay, tmp_path: Path
) -> None:
    first = datetime(2026, 11, 5, 9, tzinfo=UTC)
    tick = Store(session, BUCKET).fetch(CLUSTER, first)
    assert tick.memory is None  # every version that is kept knows of this tick
    write_recording(tick, CLUSTER, POLICY, tmp_path / "tick")
    recording = Recording.open(tmp_path / "tick")
    assert "memory from before it is gone" in recording.note
    assert recording.memory is None
    assert replay(tmp_path / "tick", lambda _: None).failures == 0


def test_a_time_before_everything_has_no_snapshot(session: boto3.Session, produced: Replay) -> None:
    before = datetime(2026, 11, 5, 8, 59, tzinfo=UTC)
    with pytest.raises(PermanentError, match="no snapshot within 2 days before 2026-11-05T08:59"):
        Store(session, BUCKET).fetch(CLUSTER, before)


def test_the_day_before_is_looked_through_too(session: boto3.Session, produced: Replay) -> None:
    tick = Store(session, BUCKET).fetch(CLUSTER, datetime(2026, 11, 6, 0, 2, tzinfo=UTC))
    assert tick.at == datetime(2026, 11, 5, 9, 30, tzinfo=UTC)


def test_the_command_prints_where_the_recording_is(
    session: boto3.Session,
    produced: Replay,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(boto3, "Session", lambda: session)
    out = tmp_path / "tick"
    arguments = ["--cluster", CLUSTER, "--governance", str(POLICY), "--bucket", BUCKET]
    monkeypatch.setattr(fetch_tick, "find", lambda *_: None)
    assert main([*arguments, "--at", "2026-11-05T09:22:00Z", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == str(out)
    assert "20261105T092000Z" in said.err
    assert main([*arguments, "--at", "2026-11-05T09:22:00Z", "--out", str(out)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main([*arguments, "--at", "yesterday"]) == 2
    assert main([*arguments, "--at", "2026-11-01T00:00:00Z"]) == 1
    text = (out / "governance.yaml").read_text()
    assert "research-oncall" in POLICY.read_text()
    assert "research-oncall" not in text


def test_a_memory_of_another_cluster_is_refused(
    session: boto3.Session, produced: Replay, tmp_path: Path
) -> None:
    out = tmp_path / "tick"
    write_recording(Store(session, BUCKET).fetch(CLUSTER, TICK), CLUSTER, POLICY, out)
    path = next((out / "memory").iterdir())
    memory = json.loads(path.read_text())
    path.write_text(json.dumps(memory | {"cluster": "another"}))
    with pytest.raises(ConfigError, match="memory of 'another'"):
        replay(out, lambda _: None)
    path.rename(path.with_name("last.json"))
    with pytest.raises(ConfigError, match="the name is not a time"):
        Recording.open(out)


class Stacks:
    """CloudFormation, as far as the bucket is asked for; and the session that it comes from."""

    def __init__(self, outputs: dict[str, str]) -> None:
        self._outputs = [{"OutputKey": k, "OutputValue": v} for k, v in outputs.items()]

    def client(self, service: str) -> "Stacks":
        assert service == "cloudformation"
        return self

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        return {"Stacks": [{"StackName": StackName, "Outputs": self._outputs}]}


def test_the_bucket_is_found_by_the_stacks_outputs() -> None:
    hub: Any = Stacks({"BucketName": "steward-bucket", "BusName": "bus"})
    assert fetch_tick.bucket_of(hub, "gpu-steward") == "steward-bucket"
    spoke: Any = Stacks({"TakeSnapshotRoleArn": "arn"})
    with pytest.raises(ConfigError, match="set BUCKET"):
        fetch_tick.bucket_of(spoke, "gpu-steward-spoke")
