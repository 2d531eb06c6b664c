"""The fold: each snapshot once, in order, and no detector's fault is another's."""

from copy import replace

import pytest

from local.twins import InMemoryObjects
from steward.cluster.accelerators import IdleSince
from steward.cluster.findings import DetectorStatus
from steward.cluster.memory import Detection, Memory
from steward.errors import ConflictError
from steward.stores.bucket import Evaluations, Memories, Snapshots
from steward.usecases.evaluate_snapshot import evaluate_snapshot, fold
from tests.builders import DELAY, NOON, a_cluster, a_snapshot, an_accelerator, at
from tests.fakes import Recorder

CLUSTER = a_cluster()


def idle_snapshot(when=NOON):
    since = IdleSince(first=at("8:58"), last=when - DELAY, exact=True, observed_seconds=10_800)
    gpu = an_accelerator(idle_since=since, last_sample=when - DELAY)
    return a_snapshot(gpu, at=when)


def evaluate(objects, key, recorder=None):
    recorder = recorder or Recorder()
    outcome = evaluate_snapshot(
        key,
        CLUSTER,
        snapshots=Snapshots(objects),
        memories=Memories(objects),
        evaluations=Evaluations(objects),
        queue=recorder,
        bus=recorder,
    )
    return outcome, recorder


def test_one_snapshot_gives_one_evaluation_that_is_stored_sent_and_announced():
    objects = InMemoryObjects()
    key = Snapshots(objects).put(idle_snapshot())
    outcome, recorder = evaluate(objects, key)
    assert (outcome.reason, outcome.findings, outcome.failed) == ("evaluated", 1, ())
    assert recorder.sent == [("ml-shared-01", outcome.key, NOON)]
    assert [detail_type for detail_type, _ in recorder.published] == ["Snapshot Evaluated"]
    stored = Evaluations(objects).get(outcome.key)
    assert (stored.snapshot, stored.at) == (key, NOON)
    names = ("idle_gpus", "borrowing", "preemptions", "pending", "telemetry", "capacity")
    assert stored.detectors == dict.fromkeys(names, DetectorStatus.EVALUATED)
    assert Memories(objects).load("ml-shared-01")[0].at == NOON


def test_the_same_snapshot_again_changes_nothing_and_is_handed_on_again():
    objects = InMemoryObjects()
    key = Snapshots(objects).put(idle_snapshot())
    first, _ = evaluate(objects, key)
    before = dict(objects.objects)
    again, recorder = evaluate(objects, key)
    assert (again.reason, again.key) == ("repeated", first.key)
    assert recorder.sent == [("ml-shared-01", first.key, NOON)]
    assert objects.objects == before


def test_an_older_snapshot_is_dropped():
    objects = InMemoryObjects()
    newer = Snapshots(objects).put(idle_snapshot())
    older = Snapshots(objects).put(idle_snapshot(at("11:55")))
    evaluate(objects, newer)
    outcome, recorder = evaluate(objects, older)
    assert (outcome.key, outcome.reason) == (None, "not newer than the memory")
    assert recorder.sent == []


class Contended(Memories):
    """A memory that somebody else changes underneath, so many times."""

    def __init__(self, objects, times):
        super().__init__(objects)
        self.left = times

    def save(self, memory, tag):
        if self.left:
            self.left -= 1
            raise ConflictError("somebody else wrote first")
        return super().save(memory, tag)


@pytest.mark.parametrize("times", [1, 2])
def test_a_contended_memory_is_read_and_folded_again(times):
    objects = InMemoryObjects()
    key = Snapshots(objects).put(idle_snapshot())
    recorder = Recorder()
    outcome = evaluate_snapshot(
        key,
        CLUSTER,
        snapshots=Snapshots(objects),
        memories=Contended(objects, times),
        evaluations=Evaluations(objects),
        queue=recorder,
        bus=recorder,
    )
    assert outcome.reason == "evaluated"
    assert len(recorder.sent) == 1


def test_a_memory_that_never_settles_fails_the_invocation_and_sends_nothing():
    objects = InMemoryObjects()
    key = Snapshots(objects).put(idle_snapshot())
    recorder = Recorder()
    with pytest.raises(ConflictError, match="changed 3 times"):
        evaluate_snapshot(
            key,
            CLUSTER,
            snapshots=Snapshots(objects),
            memories=Contended(objects, 3),
            evaluations=Evaluations(objects),
            queue=recorder,
            bus=recorder,
        )
    assert recorder.sent == []


def test_a_failing_detector_keeps_its_memory_and_stops_nobody(caplog):
    def remembers(snapshot, memory, cluster):
        return Detection(memory=replace(memory, telemetry_since={"seen": snapshot.at}))

    def breaks(snapshot, memory, cluster):
        raise ZeroDivisionError

    detectors = (("first", remembers), ("second", breaks), ("third", remembers))
    evaluation, memory = fold(
        "key", a_snapshot(), Memory(cluster="ml-shared-01"), CLUSTER, detectors
    )
    assert evaluation.detectors == {
        "first": DetectorStatus.EVALUATED,
        "second": DetectorStatus.FAILED,
        "third": DetectorStatus.EVALUATED,
    }
    assert [(u.detector, u.reason.value, u.blind) for u in evaluation.unknown] == [
        ("second", "failed", True)
    ]
    assert memory.telemetry_since == {"seen": NOON}
    assert memory.at == NOON
