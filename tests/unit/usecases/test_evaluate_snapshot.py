"""The fold: each snapshot once, in order, and no detector's fault is another's."""

from copy import replace

import pytest

from local.twins import InMemoryObjects
from steward.cluster.accelerators import IdleSince
from steward.cluster.findings import DetectorStatus
from steward.cluster.memory import Detection, Memory
from steward.cluster.snapshot import PartStatus
from steward.detect import DETECTORS
from steward.errors import ConflictError
from steward.stores.bucket import Evaluations, Memories, Snapshots
from steward.usecases.evaluate_snapshot import coverage, evaluate_snapshot, fold
from tests.builders import DELAY, NOON, a_cluster, a_holder, a_snapshot, an_accelerator, at
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
    assert outcome.applied
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
    assert not again.applied  # its counts are not this run's
    assert recorder.sent == [("ml-shared-01", first.key, NOON)]
    assert objects.objects == before


def test_an_older_snapshot_is_dropped():
    objects = InMemoryObjects()
    newer = Snapshots(objects).put(idle_snapshot())
    older = Snapshots(objects).put(idle_snapshot(at("11:55")))
    evaluate(objects, newer)
    outcome, recorder = evaluate(objects, older)
    assert (outcome.key, outcome.reason) == (None, "not newer than the memory")
    assert not outcome.applied
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


# --- what could be judged ------------------------------------------------------------------------


def dark(uuid, **changes):
    """An accelerator of which no sample is there, and never was."""
    return an_accelerator(uuid, windows=(), last_sample=None, ever_seen=False, **changes)


def judged(*accelerators, detectors=DETECTORS, **changes):
    snapshot = a_snapshot(*accelerators, **changes)
    evaluation, _ = fold("key", snapshot, Memory(cluster="ml-shared-01"), CLUSTER, detectors)
    return coverage(evaluation, snapshot, CLUSTER)


def test_coverage_is_the_share_of_what_governed_pods_hold_that_was_judged():
    lit = [an_accelerator(f"GPU-{n}", holder=a_holder(f"lit-{n}")) for n in range(3)]
    assert judged(*lit) == 1.0
    assert judged(*lit, dark("GPU-9", holder=a_holder("dark"))) == 0.75


def test_a_slice_counts_its_fraction():
    # Three sevenths of a GPU that nobody sees, beside four that somebody does.
    lit = an_accelerator("GPU-1", mig="4g.40gb/1", fraction=4 / 7, holder=a_holder("lit"))
    slit = dark("GPU-1", mig="3g.40gb/2", fraction=3 / 7, holder=a_holder("dark"))
    assert judged(lit, slit) == pytest.approx(4 / 7, abs=1e-6)


def test_what_no_team_holds_does_not_count():
    elsewhere = dark("GPU-9", holder=a_holder("notebook", namespace="default"))
    assert judged(an_accelerator(), elsewhere) == 1.0
    assert judged(elsewhere) is None


def test_a_young_pod_is_not_one_that_could_not_be_judged():
    young = dark("GPU-9", holder=a_holder("young", since=NOON - DELAY))
    assert judged(an_accelerator(), young) == 1.0


def test_a_share_of_nothing_is_no_number():
    assert judged() is None


@pytest.mark.parametrize("part", ["kubernetes/pods", "prometheus"])
def test_whoever_cannot_look_has_judged_nothing(part):
    # Without pods it is not even known that something is held: zero, and not nothing.
    held = () if part == "kubernetes/pods" else (an_accelerator(),)
    assert judged(*held, refused={part: PartStatus.DENIED}) == 0.0


def test_a_detector_that_failed_has_judged_nothing():
    def breaks(snapshot, memory, cluster):
        raise ZeroDivisionError

    assert judged(an_accelerator(), detectors=(("idle_gpus", breaks),)) == 0.0


def test_an_evaluation_tells_its_coverage():
    objects = InMemoryObjects()
    key = Snapshots(objects).put(
        a_snapshot(an_accelerator(), dark("GPU-9", holder=a_holder("dark")))
    )
    outcome, _ = evaluate(objects, key)
    assert outcome.coverage == 0.5
