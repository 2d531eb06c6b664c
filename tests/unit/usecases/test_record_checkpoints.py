"""Whose checkpoint an event tells of, and what becomes of events that tell of nobody's."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from functions.record_checkpoints.handler import handler
from local.application import LocalApp, VirtualClock
from local.envelopes import LambdaContext
from local.twins import InMemoryObjects
from steward import bootstrap
from steward.cluster.checkpoints import Written, WrittenBy
from steward.cluster.policy import CheckpointLocation, Policy
from steward.errors import ConflictError
from steward.events import QueueRecord
from steward.settings import Settings
from steward.stores.checkpoints import Checkpoints
from steward.usecases.checkpoint_places import Job, MarkedPlaces
from steward.usecases.record_checkpoints import record_checkpoints
from tests.builders import NOON, a_cluster, a_team
from tests.unit.usecases.checkpoints import NS, FakeTold

ROOT = Path(__file__).resolve().parents[3]
TRAIN = ("ml-shared-01", NS, "train")
MARKED = CheckpointLocation(uri="s3://bkt/{team}/", marker="_SUCCESS")


def a_policy(*locations, **changes):
    return Policy(
        schema=1, clusters=(a_cluster(teams=(a_team(checkpoints=locations, **changes),)),)
    )


def heartbeat(time="2026-11-05T11:58:00Z", **changes):
    detail = {"cluster": "ml-shared-01", "namespace": NS, "job": "train", "step": 500}
    detail |= {"uri": "s3://bkt/research/train/step-500/"} | changes
    return {
        "detail-type": "Checkpoint Written",
        "source": "gpu-steward.training",
        "time": time,
        "detail": {key: value for key, value in detail.items() if value is not None},
    }


def created(key, bucket="bkt", **changes):
    return {
        "detail-type": "Object Created",
        "source": "aws.s3",
        "time": "2026-11-05T11:59:00Z",
        "detail": {"bucket": {"name": bucket}, "object": {"key": key, "size": 0}},
    } | changes


def record(*events, policy=None, store=None):
    told = store or FakeTold()
    messages = [
        QueueRecord(message_id=f"m{n}", body=e if isinstance(e, str) else json.dumps(e))
        for n, e in enumerate(events)
    ]
    return record_checkpoints(messages, policy or a_policy(MARKED), told, NOON), told


def test_a_heartbeat_is_recorded_with_its_time_and_step():
    done, told = record(heartbeat())
    assert told.known == {
        TRAIN: (
            Written(
                uri="s3://bkt/research/train/step-500/",
                at=NOON - timedelta(minutes=2),
                by=WrittenBy.HEARTBEAT,
                step=500,
            ),
        )
    }
    assert (done.jobs, done.dropped, done.failed_messages) == (1, 0, ())


def test_a_heartbeats_time_is_recorded_in_utc_whatever_its_offset_and_it_needs_no_step():
    _, told = record(heartbeat("2026-11-05T12:58:00+01:00", step=None))
    (written,) = told.known[TRAIN]
    assert (written.at.isoformat(), written.step) == ("2026-11-05T11:58:00+00:00", None)


def test_a_marker_is_recorded_for_the_job_whose_folder_it_lies_in():
    _, told = record(created("research/train/step 500/_SUCCESS"))
    assert told.known == {
        TRAIN: (
            Written(
                uri="s3://bkt/research/train/step 500/_SUCCESS",
                at=NOON - timedelta(minutes=1),
                by=WrittenBy.MARKER,
            ),
        )
    }


@pytest.mark.parametrize(
    "event",
    [
        heartbeat(cluster="ml-other"),
        heartbeat(namespace="hyperpod-ns-genai"),
        created("research/train/step-500/shard"),
        created("research/train/step-500/_SUCCESS/part"),
        created("research/train/step-500/", size=0),
        created("research/_SUCCESS"),  # in no job's folder
        created("research/My_Run/_SUCCESS"),  # no job can be called so
        created("researchers/train/_SUCCESS"),
        created("research/train/_SUCCESS", bucket="another"),
    ],
)
def test_what_speaks_of_nothing_in_the_policy_is_dropped(event):
    done, told = record(event)
    assert told.known == {}
    assert (done.jobs, done.dropped, done.failed_messages) == (0, 1, ())


def test_a_heartbeat_counts_for_its_own_namespace_only():
    policy = a_policy(namespaces=(NS, "hyperpod-ns-research-2"))
    _, told = record(heartbeat(namespace="hyperpod-ns-research-2"), policy=policy)
    assert list(told.known) == [("ml-shared-01", "hyperpod-ns-research-2", "train")]


def test_a_time_further_ahead_than_clocks_are_wrong_is_dropped():
    # Sixteen of them would push out all that is true.
    done, told = record(heartbeat("2026-11-05T12:05:01Z"), heartbeat("2026-11-05T12:05:00Z"))
    assert (done.dropped, len(told.known[TRAIN])) == (1, 1)


@pytest.mark.parametrize(
    "event",
    [
        "{",
        heartbeat(job=None),
        heartbeat(job="Train"),
        heartbeat(job="../secrets"),
        heartbeat(job="x" * 254),
        heartbeat(uri=""),
        heartbeat(step=-1),
        heartbeat(step="500"),
        heartbeat("2026-11-05T11:58:00"),
        created("k", detail={"bucket": "bkt"}),
        created("research/train/_SUCCESS", source="somebody"),
        created("k", **{"detail-type": "Object Deleted"}),
    ],
)
def test_a_malformed_message_fails_alone(event):
    done, told = record(event, heartbeat())
    assert (done.failed_messages, list(told.known)) == (("m0",), [TRAIN])


def test_a_batch_is_one_write_a_job_and_what_was_told_twice_is_told_once():
    events = [
        heartbeat(),
        heartbeat(),
        created("research/train/step-500/_SUCCESS"),
        heartbeat(job="tune"),
    ]
    done, told = record(*events)
    assert told.asked == [TRAIN, ("ml-shared-01", NS, "tune")]
    assert [one.by.value for one in told.known[TRAIN]] == ["heartbeat", "marker"]
    assert done.jobs == 2


def test_what_could_not_be_recorded_fails_all_messages_of_that_job_and_no_other():
    store = FakeTold(broken=ConflictError("others keep writing"))
    events = [heartbeat(job="unlucky"), heartbeat(), heartbeat(job="unlucky", step=501)]
    done, told = record(*events, store=store)
    assert (done.failed_messages, list(told.known)) == (("m0", "m2"), [TRAIN])


# --- markers and locations -----------------------------------------------------------------------


def jobs(key, *locations, **changes):
    found = MarkedPlaces(a_policy(*locations, **changes)).jobs("bkt", key)
    return [(job.namespace.removeprefix("hyperpod-ns-"), job.name) for job in found]


def test_a_location_may_name_the_job_anywhere_in_it():
    place = CheckpointLocation(uri="s3://bkt/{namespace}/run-{job}/ckpt/", marker="*.metadata")
    assert jobs(f"{NS}/run-train/ckpt/9/.metadata", place) == [("research", "train")]
    assert jobs(f"{NS}/run-train/ckpt/.metadata", place) == [("research", "train")]
    assert jobs(f"{NS}/run-train/logs/.metadata", place) == []
    assert jobs("hyperpod-ns-genai/run-train/ckpt/.metadata", place) == []


def test_a_location_that_names_the_namespace_is_of_that_one_alone():
    place = CheckpointLocation(uri="s3://bkt/{namespace}/", marker="_SUCCESS")
    both = (NS, "hyperpod-ns-research-2")
    key = "hyperpod-ns-research-2/train/_SUCCESS"
    assert jobs(key, place, namespaces=both) == [("research-2", "train")]


def test_a_jobs_name_that_is_there_twice_is_twice_the_same():
    place = CheckpointLocation(uri="s3://bkt/{job}/of/{job}/", marker="done")
    assert jobs("train/of/train/1/done", place) == [("research", "train")]
    assert jobs("train/of/tune/1/done", place) == []


def test_without_the_namespace_in_it_a_location_is_of_all_namespaces_of_its_team():
    # The key does not tell which of them the job is in, just as listing does not.
    both = (NS, "hyperpod-ns-research-2")
    assert jobs("research/train/_SUCCESS", MARKED, namespaces=both) == [
        ("research", "train"),
        ("research-2", "train"),
    ]


def test_a_location_without_a_marker_makes_no_object_a_marker():
    assert jobs("research/train/_SUCCESS", CheckpointLocation(uri="s3://bkt/research/")) == []


def test_characters_of_a_location_mean_themselves():
    place = CheckpointLocation(uri="s3://bkt/a.b+c/", marker="_SUCCESS")
    assert jobs("a.b+c/train/_SUCCESS", place) == [("research", "train")]
    assert jobs("axb+c/train/_SUCCESS", place) == []


def test_two_clusters_with_the_same_location_both_hear_of_it():
    team = a_team(checkpoints=(MARKED,))
    policy = Policy(
        schema=1, clusters=(a_cluster(teams=(team,)), a_cluster(name="b", teams=(team,)))
    )
    assert MarkedPlaces(policy).jobs("bkt", "research/train/_SUCCESS") == (
        Job("b", NS, "train"),
        Job("ml-shared-01", NS, "train"),
    )


# --- the handler ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "kept"),
    [
        # Counted by hand in the files; the shard of the batch is no marker.
        ("heartbeat", ["heartbeat"]),
        ("marker", ["marker"]),
        ("batch", ["heartbeat", "marker", "heartbeat"]),
    ],
)
def test_the_events_of_the_repository_are_recorded(case, kept):
    location = CheckpointLocation(uri="s3://ml-shared-01-checkpoints/{team}/", marker="_SUCCESS")
    app = LocalApp(Settings(), a_policy(location), VirtualClock(NOON + timedelta(minutes=5)))
    bootstrap.use(app)
    try:
        event = json.loads((ROOT / f"events/record_checkpoints/{case}.json").read_text())
        context = LambdaContext(function_name="record_checkpoints", aws_request_id="1")
        assert handler(event, context) == {"batchItemFailures": []}
    finally:
        bootstrap.use(None)
    assert isinstance(app.objects, InMemoryObjects)
    told = Checkpoints(app.objects).told("ml-shared-01", NS, "sweep-vision")
    assert [one.by.value for one in told] == kept


def test_the_handler_names_the_messages_that_failed():
    app = LocalApp(Settings(), a_policy(MARKED), VirtualClock(NOON))
    bootstrap.use(app)
    try:
        event = {"Records": [{"messageId": "m1", "body": "{}"}]}
        context = LambdaContext(function_name="record_checkpoints", aws_request_id="1")
        assert handler(event, context) == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    finally:
        bootstrap.use(None)
