"""What GPU Steward hears of checkpoints, and that training never waits for it nor fails by it."""

import json
import logging
import random
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from moto.server import ThreadedMotoServer
from steward_announce import Announcer, Heartbeat, S3Mirror
from steward_checkpoint import Checkpointer
from steward_storage import PICKLE, write_whole
from werkzeug import Request, Response

from steward.checkpoint_events import Heartbeat as Heard
from steward.clock import FixedClock
from steward.cluster.checkpoints import Written, WrittenBy
from steward.cluster.policy import CheckpointLocation
from steward.events import parse
from steward.sources.checkpoints import S3Checkpoints
from tests.checkpointing.kit import PLAIN, checkpoints, is_whole, newest_step
from tests.serving import serving

PLACE = {"cluster": "ml-shared-01", "namespace": "hyperpod-ns-research", "job": "pretrain"}
ENV = {
    "STEWARD_BUS": "gpu-steward",
    "STEWARD_CLUSTER": PLACE["cluster"],
    "POD_NAMESPACE": PLACE["namespace"],
    "JOB_NAME": PLACE["job"],
}
AWS = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nowhere/config",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials",
}


class PutEvents:
    """An endpoint that speaks EventBridge's PutEvents, in the way that a test asks for."""

    def __init__(self):
        self.answer = "take"
        self.entries = []
        self.asked = threading.Semaphore(0)
        self.release = threading.Event()

    def __call__(self, environ, start_response):
        request = Request(environ)
        assert request.headers["X-Amz-Target"] == "AWSEvents.PutEvents"
        (entry,) = request.get_json(force=True)["Entries"]
        self.asked.release()
        if self.answer == "hang":
            self.release.wait(60)
        if self.answer == "fail":
            return Response("{}", status=500)(environ, start_response)
        if self.answer == "refuse":
            refusal = {"ErrorCode": "NotAuthorizedForSourceException", "ErrorMessage": "no"}
            told = {"FailedEntryCount": 1, "Entries": [refusal]}
        else:
            self.entries.append(entry)
            told = {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}
        response = Response(json.dumps(told), content_type="application/x-amz-json-1.1")
        return response(environ, start_response)

    def details(self):
        return [json.loads(entry["Detail"]) for entry in self.entries]


@pytest.fixture
def bus(monkeypatch):
    endpoint = PutEvents()
    with serving(endpoint) as url:
        for name, value in {**AWS, "AWS_ENDPOINT_URL": url, **ENV}.items():
            monkeypatch.setenv(name, value)
        yield endpoint
        endpoint.release.set()


@pytest.fixture(scope="module")
def moto():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def aws(moto, monkeypatch):
    """A session whose clients, and those of the example, talk to moto."""
    for name, value in {**AWS, "AWS_ENDPOINT_URL": moto}.items():
        monkeypatch.setenv(name, value)
    boto3 = pytest.importorskip("boto3")
    return boto3.session.Session()


def a_checkpoint(folder, step=7):
    return write_whole(folder, step, {"step": step, "state": {"n": 1}, "random": {}}, PICKLE)


# --- the event --------------------------------------------------------------------------------------


def test_a_training_tells_of_its_checkpoints_with_exactly_these_keys(start, tmp_path, bus):
    """One a checkpoint, each whole by then; the steward's own model reads it."""
    folder = tmp_path / "pretrain"
    training = start(PLAIN, folder, "--steps", 30, "--every-steps", 10, "--step-seconds", 0.05)
    assert training.ended() == 0, training.log()
    steps = [detail["step"] for detail in bus.details()]
    assert steps == sorted(set(steps))
    assert set(steps) <= {10, 20, 30}
    assert steps[-1] == 30  # the end waits for the last one
    for entry in bus.entries:
        assert entry["Source"] == "gpu-steward.training"
        assert entry["DetailType"] == "Checkpoint Written"
        assert entry["EventBusName"] == "gpu-steward"
    last = bus.details()[-1]
    assert last == {**PLACE, "step": 30, "uri": f"file://{folder}/step-000000000030"}
    assert parse(Heard, bus.entries[-1]["Detail"], "event") == Heard(**last)


def test_a_preempted_training_tells_of_the_checkpoint_that_it_ends_with(start, tmp_path, bus):
    folder = tmp_path / "pretrain"
    training = start(PLAIN, folder, "--every-steps", 10**6).reach(20)
    training.send()
    assert training.ended() == 143, training.log()
    assert [detail["step"] for detail in bus.details()] == [newest_step(folder)]


def test_the_folder_is_called_as_it_is_known_outside_the_pod(tmp_path, bus):
    announcer = Announcer(
        heartbeat=Heartbeat.from_env(), uri="fsx://fs-0123456789abcdef0/pretrain/"
    )
    announcer.written(7, a_checkpoint(tmp_path))
    announcer.close(None)
    (detail,) = bus.details()
    assert detail["uri"] == "fsx://fs-0123456789abcdef0/pretrain/step-000000000007/"


def test_it_passes_a_rule_of_eventbridge_on_source_and_detail_type(tmp_path, aws):
    """Over moto: through the bus, a rule's pattern and a queue."""
    events, sqs = aws.client("events"), aws.client("sqs")
    events.create_event_bus(Name="heard")
    url = sqs.create_queue(QueueName="heard")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    pattern = {"source": ["gpu-steward.training"], "detail-type": ["Checkpoint Written"]}
    events.put_rule(Name="heard", EventBusName="heard", EventPattern=json.dumps(pattern))
    target = {"Id": "queue", "Arn": arn["QueueArn"]}
    events.put_targets(Rule="heard", EventBusName="heard", Targets=[target])
    Heartbeat("heard", **PLACE).put(7, "s3://bucket/pretrain/step-000000000007/")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert parse(Heard, json.dumps(json.loads(message["Body"])["detail"]), "event").step == 7


def test_without_a_bus_there_is_no_heartbeat_and_half_a_setting_is_told_of(monkeypatch, caplog):
    assert Heartbeat.from_env() is None
    assert caplog.messages == []
    monkeypatch.setenv("STEWARD_BUS", "gpu-steward")
    monkeypatch.setenv("JOB_NAME", "pretrain")
    assert Heartbeat.from_env() is None
    assert caplog.messages == [
        "no heartbeat: STEWARD_BUS is set, and STEWARD_CLUSTER, POD_NAMESPACE is not"
    ]


# --- what goes wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["fail", "refuse"])
def test_failures_are_logged_once_and_counted(tmp_path, bus, caplog, answer):
    bus.answer = answer
    announcer = Announcer(heartbeat=Heartbeat.from_env())
    path = a_checkpoint(tmp_path)
    with caplog.at_level(logging.WARNING, "steward.announce"):
        for count in (1, 2, 3):
            announcer.written(7, path)
            announcer.close(20)
            assert announcer.failures == count
    assert len([one for one in caplog.records if one.name == "steward.announce"]) == 1
    bus.answer = "take"
    announcer.written(8, path)
    announcer.close(20)
    assert [detail["step"] for detail in bus.details()] == [8]
    assert announcer.failures == 3


def test_a_bus_that_hangs_stalls_no_step(tmp_path, bus):
    """The endpoint holds the first event; 20 checkpoints pass meanwhile, none waits for it."""
    bus.answer = "hang"
    announcer = Announcer(heartbeat=Heartbeat.from_env())
    checkpointer = Checkpointer(tmp_path, every_steps=1, listeners=[announcer])
    checkpointer.restore({"n": 0})
    checkpointer.step(1, {"n": 1})
    assert bus.asked.acquire(timeout=20)  # from here on it hangs
    longest = 0.0
    for done in range(2, 22):
        began = time.monotonic()
        checkpointer.step(done, {"n": done})
        longest = max(longest, time.monotonic() - began)
    assert bus.entries == []
    assert longest < 1  # its answer is waited for 3 s; a save here takes milliseconds
    began = time.monotonic()
    announcer.close(0.1)
    assert time.monotonic() - began < 1
    bus.answer = "take"
    bus.release.set()
    announcer.close(20)
    # The one that hung, and of those that came meanwhile the newest alone.
    assert [detail["step"] for detail in bus.details()][-1] == 21
    assert {detail["step"] for detail in bus.details()} <= {1, 21}


def test_a_bus_that_hangs_keeps_no_job_from_ending_within_its_grace_period(start, tmp_path, bus):
    bus.answer = "hang"
    folder = tmp_path / "pretrain"
    training = start(
        PLAIN, folder, "--steps", 10**6, "--every-steps", 10**6, STEWARD_GRACE_SECONDS="8"
    ).reach(20)
    training.send()
    told = time.monotonic()
    assert training.ended() == 143, training.log()
    assert time.monotonic() - told < 8
    assert bus.asked.acquire(timeout=1)  # it had been asked
    assert newest_step(folder) == training.steps()[-1]


@pytest.mark.parametrize("answer", ["fail", "refuse", "take"])
def test_announcing_draws_nothing_from_the_training_s_random_stream(tmp_path, bus, answer):
    """A retry that took its delay from there would change every number that training draws."""
    bus.answer = answer
    announcer = Announcer(heartbeat=Heartbeat.from_env())
    stream = random.getstate()
    announcer.written(7, a_checkpoint(tmp_path))
    announcer.close(20)
    asked = 0
    while bus.asked.acquire(blocking=False):
        asked += 1
    assert asked == (2 if answer == "fail" else 1)  # HTTP 500 is tried again, once
    assert random.getstate() == stream


def test_a_copy_that_is_tried_again_draws_nothing_from_the_training_s_random_stream(
    tmp_path, monkeypatch
):
    """The first three answers are 503, the next ones take the objects."""
    seen = []

    def busy(environ, start_response):
        seen.append(Request(environ).path)
        status = 503 if len(seen) <= 3 else 200
        return Response("", status=status)(environ, start_response)

    with serving(busy) as url:
        for name, value in {**AWS, "AWS_ENDPOINT_URL": url}.items():
            monkeypatch.setenv(name, value)
        announcer = Announcer(mirror=S3Mirror("s3://checkpoints/pretrain/"))
        stream = random.getstate()
        announcer.written(7, a_checkpoint(tmp_path))
        announcer.close(20)
    assert announcer.failures == 0
    assert [path.rpartition("/")[2] for path in seen] == [
        *["manifest.json"] * 4,
        "state.pickle",
        "_SUCCESS",
    ]
    assert random.getstate() == stream


@pytest.mark.parametrize("answer", ["fail", "refuse", "take"])
def test_whatever_the_bus_answers_the_training_ends_with_the_same_state(
    start, tmp_path, bus, answer
):
    paced = ("--steps", 60, "--every-steps", 5, "--step-seconds", 0.02)
    quiet = start(PLAIN, tmp_path / "quiet", *paced, STEWARD_BUS="")
    assert quiet.ended() == 0, quiet.log()
    bus.answer = answer
    told = start(PLAIN, tmp_path / "told", *paced)
    assert told.ended() == 0, told.log()
    assert told.lines() == quiet.lines()


def test_without_boto3_training_goes_on(tmp_path, monkeypatch, caplog):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr("steward_announce.importlib.import_module", missing)
    announcer = Announcer(heartbeat=Heartbeat("gpu-steward", **PLACE))
    announcer.written(7, a_checkpoint(tmp_path))
    announcer.close(5)
    assert announcer.failures == 1
    assert "No module named 'boto3'" in caplog.text


# --- the copy in S3 ---------------------------------------------------------------------------------


class RecordedS3:
    """Notes the order of calls; fails from the fail_at-th on."""

    def __init__(self, fail_at=99):
        self.keys = []
        self._fail_at = fail_at

    def _note(self, key):
        if len(self.keys) >= self._fail_at:
            raise ConnectionError("gone")
        self.keys.append(key)

    def upload_file(self, file, bucket, key):
        self._note(key)

    def put_object(self, *, Bucket, Key, Body):  # noqa: N803
        self._note(Key)


@pytest.mark.parametrize("fail_at", [0, 1, 2, 3])
def test_the_marker_is_written_last_and_only_when_all_else_is(tmp_path, fail_at):
    folder = "research/pretrain/step-000000000007"
    all_keys = [f"{folder}/{name}" for name in ("manifest.json", "state.pickle", "_SUCCESS")]
    mirror = S3Mirror("s3://checkpoints/research/pretrain/")
    client = RecordedS3(fail_at)
    mirror.__dict__["_client"] = client
    announcer = Announcer(mirror=mirror)
    announcer.written(7, a_checkpoint(tmp_path))
    announcer.close(5)
    assert client.keys == all_keys[:fail_at]
    assert announcer.failures == (fail_at < 3)


def test_a_copy_is_found_by_the_steward_and_restores_into_an_empty_folder(
    start, tmp_path, aws, monkeypatch
):
    """The steward lists the bucket and finds the marker; a copy of the copy is a checkpoint."""
    s3, bucket = aws.client("s3"), "ml-shared-01-checkpoints"
    s3.create_bucket(Bucket=bucket)
    root = f"s3://{bucket}/research/pretrain"
    training = start(
        PLAIN,
        tmp_path / "first",
        "--steps",
        20,
        "--every-steps",
        20,
        CHECKPOINT_MIRROR=f"{root}/",
    )
    assert training.ended() == 0, training.log()
    location = CheckpointLocation(uri=f"s3://{bucket}/research/", marker="_SUCCESS")
    now = datetime.now(UTC) + timedelta(minutes=1)
    newest = S3Checkpoints(lambda: s3, FixedClock(now)).newest(location, "pretrain", now)
    assert isinstance(newest, Written)
    assert newest.uri == f"{root}/step-000000000020/_SUCCESS"
    assert newest.by is WrittenBy.STORAGE
    folder = tmp_path / "second"
    for one in s3.list_objects_v2(Bucket=bucket)["Contents"]:
        path = folder / one["Key"].removeprefix("research/pretrain/")
        path.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file(bucket, one["Key"], str(path))
    assert all(map(is_whole, checkpoints(folder)))
    again = start(PLAIN, folder, "--steps", 21)
    assert again.ended() == 0, again.log()
    assert again.steps() == [21]


def test_with_a_copy_the_heartbeat_tells_of_the_copy_and_never_without_it(tmp_path, bus):
    mirror = S3Mirror("s3://checkpoints/pretrain/")
    mirror.__dict__["_client"] = RecordedS3(fail_at=3)
    announcer = Announcer(heartbeat=Heartbeat.from_env(), mirror=mirror)
    for step in (7, 8):
        announcer.written(step, a_checkpoint(tmp_path, step))
        announcer.close(20)
    assert announcer.failures == 1
    assert [(one["step"], one["uri"]) for one in bus.details()] == [
        (7, "s3://checkpoints/pretrain/step-000000000007/")
    ]


@pytest.mark.parametrize("uri", ["/checkpoints/", "https://bucket/prefix/", "s3:///prefix/"])
def test_a_mirror_that_is_no_bucket_is_refused_at_once(uri):
    with pytest.raises(ValueError, match="is not s3://bucket/prefix/"):
        S3Mirror(uri)
