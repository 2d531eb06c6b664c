"""A preempted job in a recording: what the snapshot then says of its checkpoints."""

from datetime import UTC, datetime, timedelta

import pytest

from local import application
from local.replay import replay
from local.twins import InMemoryObjects
from steward.cluster.checkpoints import LookStatus
from steward.stores.bucket import Snapshots
from steward.stores.checkpoints import Checkpoints
from tests import handmade

START = datetime(2026, 11, 5, 10, tzinfo=UTC)
EVICTED = START + timedelta(minutes=7)
JOB = "pretrain"
BUCKET = "ml-shared-01-checkpoints"


@pytest.fixture
def objects(monkeypatch):
    """The bucket of the replay, made before it."""
    monkeypatch.setenv("METRICS", "recorded")
    made = InMemoryObjects()
    monkeypatch.setattr(application, "InMemoryObjects", lambda: made)
    return made


def workload(evicted):
    conditions = [{"type": "Admitted", "status": str(not evicted), "reason": "x", "message": ""}]
    if evicted:
        conditions.append(
            {
                "type": "Evicted",
                "status": "True",
                "reason": "Preempted",
                "message": "Preempted to accommodate a workload",
                "lastTransitionTime": EVICTED.isoformat(),
            }
        )
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": f"pytorchjob-{JOB}-1a2b3",
            "namespace": handmade.NAMESPACE,
            "uid": "uid-w",
            "creationTimestamp": (START - timedelta(hours=5)).isoformat(),
            "ownerReferences": [handmade.controller("kubeflow.org/v1", "PyTorchJob", JOB)],
        },
        "spec": {"queueName": f"{handmade.NAMESPACE}-localqueue", "podSets": []},
        "status": {"conditions": conditions},
    }


def record(folder, documents):
    """Admitted at the first two ticks, preempted at 10:07 and seen so at 10:10."""
    handmade.header(folder, START, START + timedelta(minutes=15))
    handmade.kubernetes(folder, START - timedelta(hours=5), workloads=[workload(evicted=False)])
    handmade.kubernetes(folder, EVICTED, workloads=[workload(evicted=True)])
    if documents is not None:
        handmade.write(folder / "checkpoints" / "a.json", documents)
    return folder


def evidence(objects, minute):
    key = f"snapshots/ml-shared-01/2026/11/05/20261105T10{minute:02}00Z.json.gz"
    return Snapshots(objects).get(key).checkpoints


def a_file(minutes, key=f"research/{JOB}/step-1/model.pt"):
    when = START + timedelta(minutes=minutes)
    return {"bucket": BUCKET, "key": key, "last_modified": when.isoformat(), "size": 10}


def a_heartbeat(minutes, step):
    detail = {"cluster": "ml-shared-01", "namespace": handmade.NAMESPACE, "job": JOB}
    return {
        "version": "0",
        "id": f"beat-{step}",
        "detail-type": "Checkpoint Written",
        "source": "gpu-steward.training",
        "account": "111122223333",
        "region": "us-east-1",
        "time": (START + timedelta(minutes=minutes)).isoformat(),
        "resources": [],
        "detail": detail | {"step": step, "uri": f"/ckpt/{JOB}/{step}"},
    }


def test_the_newest_object_before_the_eviction_is_found_through_the_real_reader(tmp_path, objects):
    # The example policy's location is s3://ml-shared-01-checkpoints/research/, without {job}.
    documents = [a_file(-30), a_file(5, f"research/{JOB}/step-2/model.pt"), a_file(8, "research/x")]
    documents.append(a_file(8, f"research/{JOB}/step-3/model.pt"))
    done = replay(record(tmp_path, documents), lambda _: None)
    assert done.failures == 0
    assert evidence(objects, 5) == ()
    (found,) = evidence(objects, 10)
    (look,) = found.looks
    assert (found.workload_uid, found.evicted) == ("uid-w", EVICTED)
    assert look.status is LookStatus.OK
    assert look.newest.uri == f"s3://{BUCKET}/research/{JOB}/step-2/model.pt"
    assert look.newest.at == START + timedelta(minutes=5)


def test_without_a_folder_the_location_was_listed_and_is_empty(tmp_path, objects):
    replay(record(tmp_path, None), lambda _: None)
    ((look,),) = [one.looks for one in evidence(objects, 10)]
    assert (look.status, look.newest) == (LookStatus.OK, None)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("AccessDenied", LookStatus.DENIED),
        ("SlowDown", LookStatus.UNREADABLE),
        ("NoSuchBucket", LookStatus.UNREADABLE),
    ],
)
def test_a_recorded_refusal_is_the_looks_own_and_no_part_of_the_snapshot(
    tmp_path, objects, code, status
):
    error = {"Error": {"Code": code, "Message": "said so"}}
    done = replay(record(tmp_path, error), lambda _: None)
    ((look,),) = [one.looks for one in evidence(objects, 10)]
    assert (look.status, code in look.detail, done.failures) == (status, True, 0)
    key = "snapshots/ml-shared-01/2026/11/05/20261105T101000Z.json.gz"
    assert not [p for p in Snapshots(objects).get(key).parts if p.name.startswith("s3")]


def test_heartbeats_are_delivered_at_their_times_and_earlier_ones_are_history(tmp_path, objects):
    # One from an hour before the recording begins; one at 10:06, before the eviction at 10:07; one
    # after it; one after the recording has ended.
    documents = [a_heartbeat(-60, 1), a_heartbeat(6, 2), a_heartbeat(9, 3), a_heartbeat(60, 4)]
    done = replay(record(tmp_path, documents), lambda _: None)
    assert done.failures == 0
    told = Checkpoints(objects).told("ml-shared-01", handmade.NAMESPACE, JOB)
    assert [(one.step, one.at) for one in told] == [
        (1, START - timedelta(minutes=60)),
        (2, START + timedelta(minutes=6)),
        (3, START + timedelta(minutes=9)),
    ]
    (found,) = evidence(objects, 10)
    assert [(one.step, one.by.value) for one in found.told] == [(2, "heartbeat")]


def test_history_alone_is_known_at_the_first_look(tmp_path, objects):
    replay(record(tmp_path, [a_heartbeat(-60, 1)]), lambda _: None)
    (found,) = evidence(objects, 10)
    assert [one.step for one in found.told] == [1]


def counted(number, back):
    """Preempted so many times since its creation, by its counter alone; it runs since `back`."""
    made = workload(evicted=False)
    made["status"]["conditions"][0]["lastTransitionTime"] = back.isoformat()
    evictions = [{"reason": "Preempted", "underlyingCause": "", "count": number}]
    made["status"]["schedulingStats"] = {"evictions": evictions}
    return made


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        (None, ("without_checkpoint", "absent")),
        ([a_file(-200)], ("with_checkpoint", "proven")),
        # Older than the Workload, and by the run that still lasts: of no run that was ended.
        ([a_file(-400), a_file(-10)], ("without_checkpoint", "absent")),
    ],
)
def test_what_nobody_saw_is_judged_by_what_was_there_before_it_ran_again(
    tmp_path, objects, documents, told
):
    handmade.header(tmp_path, START, START + timedelta(minutes=10))
    made = counted(3, START - timedelta(hours=1))
    handmade.kubernetes(tmp_path, START - timedelta(hours=1), workloads=[made])
    if documents is not None:
        handmade.write(tmp_path / "checkpoints" / "a.json", documents)
    lines = []
    replay(tmp_path, lines.append)
    found = [one for one in lines if one.get("detector") == "preemptions" and "evidence" in one]
    assert [(one["reason"], one["evidence"]["checkpoint"]) for one in found] == [told]
    (look,) = evidence(objects, 0)
    assert look.evicted == START - timedelta(hours=1)
