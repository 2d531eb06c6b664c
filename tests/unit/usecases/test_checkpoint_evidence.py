"""Which preemptions are looked up, where, and what the answer is called."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import permutations

import pytest

from steward.cluster.accelerators import Owner
from steward.cluster.checkpoints import CheckpointEvidence, Look, LookStatus, WrittenBy
from steward.cluster.kueue import Evictions, KueueEvent
from steward.cluster.memory import Memory
from steward.cluster.policy import CheckpointLocation
from steward.cluster.preemptions.memory import Looked
from steward.errors import DeniedError, PermanentError, RetryableError
from steward.usecases.checkpoint_evidence import MOST_EVICTIONS, find_evidence
from steward.usecases.read_cluster import read_cluster
from tests.builders import NOON, a_cluster, a_team
from tests.fakes import FakeKubernetes, FakeMetrics, FakeSources, FixedTime
from tests.unit.usecases.checkpoints import (
    NS,
    FakeStorage,
    FakeTold,
    a_checkpoint,
    a_condition,
    a_workload,
    uris,
)

EVICTED = NOON - timedelta(minutes=3)
PLACE = CheckpointLocation(uri="s3://bkt/{team}/{namespace}/{job}/")
FILLED = "s3://bkt/research/hyperpod-ns-research/train/"


def a_cluster_with(*locations, **changes):
    return a_cluster(teams=(a_team(checkpoints=locations, **changes),))


def find(
    *workloads,
    events=(),
    storage=None,
    told=None,
    settled=(),
    looked=None,
    cluster=None,
    clock=None,
):
    return find_evidence(
        workloads,
        events,
        looked or Looked(settled=frozenset(settled)),
        cluster or a_cluster_with(PLACE),
        sources=storage or FakeStorage(),
        store=told,
        clock=clock or FixedTime(),
    )


def test_a_preempted_workloads_location_is_listed_up_to_its_eviction():
    newest = a_checkpoint(10)
    # The reader still sees {job}: without it a location is searched another way.
    asked = "s3://bkt/research/hyperpod-ns-research/{job}/"
    storage = FakeStorage({asked: newest})
    assert find(a_workload(), storage=storage) == (
        CheckpointEvidence(
            workload_uid="uid-train",
            evicted=EVICTED,
            looks=(Look(uri=FILLED, status=LookStatus.OK, newest=newest),),
        ),
    )
    assert storage.asked == [(asked, "train", EVICTED)]


@pytest.mark.parametrize(
    "condition",
    [
        a_condition(status=False),  # it runs again: Kueue takes the condition back
        a_condition(status=None),
        a_condition(reason="PodsReadyTimeout"),
        a_condition(reason="Deactivated"),
        a_condition(type="Admitted"),
        a_condition(since=None),  # an eviction is known by its time
    ],
)
def test_what_is_no_preemption_asks_nobody_anything(condition):
    storage, told = FakeStorage(), FakeTold()
    assert find(a_workload("train", condition), storage=storage, told=told) == ()
    assert (storage.made, told.asked) == ([], [])


def test_a_settled_eviction_is_not_looked_up_but_the_next_of_the_same_workload_is():
    storage = FakeStorage()
    assert find(a_workload(), storage=storage, settled=[("uid-train", EVICTED)]) == ()
    assert storage.made == []
    earlier = EVICTED - timedelta(hours=1)
    assert len(find(a_workload(), storage=storage, settled=[("uid-train", earlier)])) == 1


def test_a_job_is_called_as_its_top_owner():
    above = Owner(kind="RayJob", namespace=NS, name="tune")
    below = Owner(kind="RayCluster", namespace=NS, name="tune-x7k2p")
    storage = FakeStorage()
    find(a_workload("a", owner=below, owner_chain=(below, above)), storage=storage)
    find(a_workload("b", owner=None), storage=storage)
    assert [job for _, job, _ in storage.asked] == ["tune", "pytorchjob-b-1a2b3"]


def test_what_cannot_be_listed_says_so_and_the_next_location_is_listed_all_the_same():
    statuses = {
        "s3://denied/": DeniedError("not allowed"),
        "s3://slow/": RetryableError("SlowDown"),
        "s3://gone/": PermanentError("NoSuchBucket"),
        "s3://there/": a_checkpoint(5),
    }
    locations = [CheckpointLocation(uri=uri) for uri in (*statuses, "fsx://shared/{job}/")]
    (found,) = find(a_workload(), storage=FakeStorage(statuses), cluster=a_cluster_with(*locations))
    assert [(look.uri, look.status.value) for look in found.looks] == [
        ("s3://denied/", "denied"),
        ("s3://slow/", "unreadable"),
        ("s3://gone/", "unreadable"),
        ("s3://there/", "ok"),
        ("fsx://shared/train/", "unlistable"),
    ]
    assert [look.detail for look in found.looks[:3]] == ["not allowed", "SlowDown", "NoSuchBucket"]
    assert [look.newest for look in found.looks] == [None, None, None, a_checkpoint(5), None]


def test_nobody_is_asked_to_list_fsx():
    storage = FakeStorage()
    find(a_workload(), storage=storage, cluster=a_cluster_with(CheckpointLocation(uri="fsx://fs/")))
    assert storage.made == []


def test_a_location_is_listed_once_for_all_workloads_of_a_job_that_went_together():
    # A JobSet is several Workloads; and two templates may come to the same place.
    twice = (
        CheckpointLocation(uri="s3://bkt/research/"),
        CheckpointLocation(uri="s3://bkt/{team}/"),
    )
    storage = FakeStorage()
    owner = Owner(kind="JobSet", namespace=NS, name="train")
    pair = [a_workload("train", uid=uid, owner=owner) for uid in ("uid-1", "uid-2")]
    found = find(*pair, storage=storage, cluster=a_cluster_with(*twice))
    assert [len(one.looks) for one in found] == [1, 1]
    assert storage.asked == [("s3://bkt/research/", "train", EVICTED)]


def test_the_newest_marker_and_heartbeat_before_the_eviction_are_told():
    told = FakeTold(
        {
            ("ml-shared-01", NS, "train"): (
                a_checkpoint(30, WrittenBy.HEARTBEAT, uri="old beat", step=1),
                a_checkpoint(20, WrittenBy.MARKER, uri="mark"),
                a_checkpoint(3, WrittenBy.HEARTBEAT, uri="beat", step=2),
                a_checkpoint(2.9, WrittenBy.MARKER, uri="too late"),
            )
        }
    )
    (found,) = find(a_workload(), told=told)
    assert uris(found.told) == ["mark", "beat"]


def test_a_store_that_cannot_be_read_costs_what_was_told_and_says_so():
    told = FakeTold(broken=DeniedError("not allowed"))
    (found,) = find(a_workload(), told=told)
    # What storage shows still counts; but nobody can say that nothing was told.
    listed, unread = found.looks
    assert (found.told, listed.status, unread.status) == ((), LookStatus.OK, LookStatus.DENIED)
    assert (unread.uri, unread.detail) == ("markers and heartbeats", "not allowed")


def test_a_preemption_that_only_an_event_still_tells_of_is_looked_up():
    """Admitted again between two ticks: the condition is reset, and the event lives an hour."""
    again = a_workload("train", a_condition(status=False))
    event = KueueEvent(
        namespace=NS,
        workload=again.name,
        workload_uid=again.uid,
        reason="Preempted",
        message="Preempted to accommodate a workload (UID: u-1) due to prioritization in the ClusterQueue",
        at=EVICTED,
        count=1,
    )
    (found,) = find(again, events=(event,))
    assert (found.workload_uid, found.evicted) == (again.uid, EVICTED)
    assert find(again) == ()


def test_a_workload_of_no_team_has_evidence_of_nothing():
    told = FakeTold()
    (found,) = find(a_workload(namespace="sandbox"), told=told)
    assert (found.looks, found.told, told.asked) == ((), (), [])


@dataclass
class Ticking(FixedTime):
    """Half a second passes whenever it is read."""

    def now(self) -> datetime:
        self.at += timedelta(seconds=0.5)
        return self.at


def many(count):
    return [
        a_workload(f"job-{n:03}", a_condition(since=NOON - timedelta(minutes=n + 1)))
        for n in range(count)
    ]


def test_of_too_many_evictions_the_newest_are_looked_up():
    found = find(*many(MOST_EVICTIONS + 2))
    assert [one.workload_uid for one in found] == [f"uid-job-{n:03}" for n in range(49, -1, -1)]


def test_after_its_time_the_search_leaves_the_rest_to_the_next_tick():
    # From 0.5 s to 20.5 s: evictions are begun at 1.0 s, 1.5 s, ... 20.0 s, which are 39.
    assert len(find(*many(MOST_EVICTIONS), clock=Ticking())) == 39


def test_evidence_does_not_depend_on_the_order_of_the_workloads():
    workloads = many(4)
    answers = {find(*order) for order in permutations(workloads)}
    assert len(answers) == 1


def test_evidence_is_part_of_the_snapshot():
    class Sources(FakeSources):
        storage = FakeStorage()

        def checkpoints(self, cluster):
            return self.storage

    told = FakeTold({("ml-shared-01", NS, "train"): (a_checkpoint(9, WrittenBy.MARKER),)})
    kubernetes = FakeKubernetes(workloads=(a_workload(),))
    snapshot, _ = read_cluster(
        a_cluster_with(PLACE),
        Memory(cluster="ml-shared-01"),
        Sources(kubernetes, FakeMetrics()),
        FixedTime(),
        checkpoints=told,
    )
    (found,) = snapshot.checkpoints
    assert (found.workload_uid, found.looks[0].uri, len(found.told)) == ("uid-train", FILLED, 1)


# --- preemptions that nobody saw -----------------------------------------------------------------

BACK = NOON - timedelta(minutes=8)


def counted(number, **changes):
    """Admitted again at BACK; its counter alone tells of its preemptions."""
    admitted = a_condition(type="Admitted", reason="Admitted", since=BACK)
    counter = Evictions(reason="Preempted", underlying_cause="", count=number)
    return a_workload("train", admitted, evictions=(counter,), **changes)


def asked(*workloads, **changes):
    storage = FakeStorage()
    find(*workloads, storage=storage, **changes)
    return [before for _, _, before in storage.asked]


def test_what_only_the_counter_tells_of_was_over_when_the_workload_was_admitted_again():
    (found,) = find(counted(3))
    assert (found.workload_uid, found.evicted) == ("uid-train", BACK)


def test_a_counter_that_did_not_rise_asks_nobody_anything():
    same = Looked(counted={"uid-train": (3, NOON - timedelta(minutes=5))})
    assert asked(counted(3), looked=same) == []


def test_a_counter_that_rose_or_was_reset_since_is_looked_up():
    for before in (2, 12):
        known = Looked(counted={"uid-train": (before, BACK - timedelta(minutes=1))})
        assert asked(counted(3), looked=known) == [BACK]


def test_a_counter_that_rose_without_an_admission_is_looked_up_as_of_now():
    # The admission was seen before: it cannot be the one after the preemption.
    known = Looked(counted={"uid-train": (2, BACK + timedelta(minutes=1))})
    assert asked(counted(3), looked=known) == [NOON]


def test_what_waits_for_another_look_is_looked_up_at_its_own_time():
    known = Looked(counted={"uid-train": (3, NOON)}, waiting=(("uid-train", BACK),))
    assert asked(counted(3), looked=known) == [BACK]
    gone = Looked(waiting=(("uid-gone", BACK),))
    assert asked(counted(3, uid="uid-new"), looked=gone) == [BACK]


def test_without_a_counter_the_words_of_the_last_preemption_tell_of_it():
    text = "Previously: Preempted to accommodate a workload (UID: u-1) due to something"
    words = a_condition(type="Preempted", status=False, message=text, since=BACK)
    admitted = a_condition(type="Admitted", reason="Admitted", since=BACK)
    workload = a_workload("train", admitted, words)
    assert asked(workload) == [BACK]
    known = Looked(counted={"uid-train": (0, BACK + timedelta(minutes=1))})
    assert asked(workload, looked=known) == []


def test_a_preemption_with_a_time_comes_before_one_without():
    # Only so many are looked up: of one that was seen more can be said.
    found = find(*many(MOST_EVICTIONS), counted(3))
    assert "uid-train" not in {one.workload_uid for one in found}
    assert len(found) == MOST_EVICTIONS
