"""What is due: one snapshot a slot, word of every cluster that left, and how old what is known is."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.twins import InMemoryRows
from steward.alerts.model import ReconcilerState
from steward.cluster.planning import SnapshotScope
from steward.errors import RetryableError
from steward.stores.state import Alerts, Plan
from steward.usecases.plan_ticks import plan_ticks, snapshot_due
from tests.builders import NOON, a_cluster
from tests.fakes import FixedTime, Recorder


class Cut(InMemoryRows):
    """A table that does not give some rows."""

    def __init__(self):
        super().__init__()
        self.broken = set()

    def get(self, key):
        if key.partition in self.broken:
            raise RetryableError(f"{key.partition}: the table did not answer")
        return super().get(key)


@dataclass
class Departures:
    """The queue that clusters' departures go to; for some of them it fails."""

    told: list[tuple[str, datetime]] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    def depart(self, cluster, at):
        if cluster in self.broken:
            raise RetryableError(f"{cluster}: the queue did not answer")
        self.told.append((cluster, at))


@dataclass
class Steward:
    """What lasts from tick to tick."""

    rows: Cut = field(default_factory=Cut)
    requests: Recorder = field(default_factory=Recorder)
    departures: Departures = field(default_factory=Departures)

    def tick(self, *names, when=NOON):
        return plan_ticks(
            [a_cluster(name=name) for name in names or ("ml-shared-01",)],
            plans=Plan(self.rows),
            requests=self.requests,
            departures=self.departures,
            clock=FixedTime(when),
        )

    def folded(self, cluster, when):
        """Have the reconciler fold an evaluation: the row that it writes last."""
        empty = ReconcilerState(cluster=cluster)
        Alerts(self.rows).save(empty, ReconcilerState(cluster=cluster, at=when))


# --- snapshots -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "now", "due"),
    [
        (None, "12:00:00", True),  # never asked
        ("12:00:00", "12:00:40", False),  # a repeat in the same slot
        ("12:00:10", "12:05:00", True),  # the next slot, though 290 s later
        ("12:04:59", "12:05:00", True),
        ("11:00:00", "12:00:00", True),  # eleven missed slots are one snapshot
    ],
)
def test_one_snapshot_a_slot(last, now, due):
    def when(text):
        return NOON.replace(hour=int(text[:2]), minute=int(text[3:5]), second=int(text[6:]))

    assert snapshot_due(when(now), when(last) if last else None, 5) is due


def test_a_longer_tick_has_longer_slots():
    assert snapshot_due(NOON + timedelta(minutes=10), NOON, 15) is False
    assert snapshot_due(NOON + timedelta(minutes=15), NOON, 15) is True


def test_a_queue_that_fails_for_one_cluster_holds_up_no_other_and_leaves_it_due():
    steward = Steward(requests=Recorder(broken={"ml-shared-01"}))
    plan = steward.tick("ml-shared-01", "ml-eu")
    assert plan.asked == ("ml-eu",)
    assert "the queue did not answer" in plan.failed["ml-shared-01"]
    steward.requests.broken.clear()
    assert steward.tick("ml-shared-01", "ml-eu").asked == ("ml-shared-01",)


def test_the_first_tick_of_a_cluster_and_the_first_of_each_day_are_audits():
    # NOON is 5 November; the next audit is due once it is the 6th, in UTC.
    steward = Steward()
    ticks = [NOON, NOON + timedelta(minutes=5), NOON + timedelta(hours=11, minutes=55)]
    ticks += [NOON + timedelta(hours=12), NOON + timedelta(hours=12, minutes=5)]
    for when in ticks:
        steward.tick(when=when)
    assert steward.requests.scopes == [
        SnapshotScope.AUDIT,
        SnapshotScope.TICK,
        SnapshotScope.TICK,
        SnapshotScope.AUDIT,
        SnapshotScope.TICK,
    ]


def test_a_missed_audit_is_due_at_the_next_tick_and_asked_for_once():
    steward = Steward()
    for when in (NOON, NOON + timedelta(days=3, minutes=1), NOON + timedelta(days=3, minutes=6)):
        steward.tick(when=when)
    scopes = [SnapshotScope.AUDIT, SnapshotScope.AUDIT, SnapshotScope.TICK]
    assert steward.requests.scopes == scopes


def test_an_audit_that_could_not_be_asked_for_stays_due():
    steward = Steward(requests=Recorder(broken={"ml-shared-01"}))
    steward.tick()
    steward.requests.broken.clear()
    steward.tick()
    assert steward.requests.scopes == [SnapshotScope.AUDIT]


# --- clusters that left the policy ---------------------------------------------------------------

LATER = NOON + timedelta(minutes=5)


def test_a_cluster_that_left_is_told_of_once():
    steward = Steward()
    steward.tick("ml-shared-01", "ml-eu")
    plan = steward.tick("ml-shared-01", when=LATER)
    assert (plan.left, plan.failed) == (("ml-eu",), {})
    assert steward.tick("ml-shared-01", when=LATER).left == ()
    assert steward.departures.told == [("ml-eu", LATER)]


def test_a_departure_that_was_not_taken_is_told_of_again():
    steward = Steward(departures=Departures(broken={"ml-eu"}))
    steward.tick("ml-shared-01", "ml-eu")
    plan = steward.tick("ml-shared-01", when=LATER)
    assert plan.left == ()
    assert "the queue did not answer" in plan.failed["ml-eu"]
    # The cluster that stays is asked for all the same.
    assert plan.asked == ("ml-shared-01",)
    steward.departures.broken.clear()
    assert steward.tick("ml-shared-01", when=LATER).left == ("ml-eu",)


def test_a_cluster_that_could_never_be_asked_for_is_told_of_as_well():
    # It may have cards all the same: another trigger had it read.
    steward = Steward(requests=Recorder(broken={"ml-eu"}))
    steward.tick("ml-shared-01", "ml-eu")
    assert steward.tick("ml-shared-01", when=LATER).left == ("ml-eu",)


NAMES = st.sampled_from(("a", "b", "c"))


@given(
    ticks=st.lists(st.tuples(st.sets(NAMES, min_size=1), st.sets(NAMES)), min_size=1, max_size=12)
)
def test_whoever_comes_and_goes_each_departure_is_told_of_exactly_once(ticks):
    steward = Steward()
    owed = set()  # ever in a policy, and not told of since
    for number, (policy, broken) in enumerate(ticks):
        when = NOON + number * timedelta(minutes=5)
        steward.departures.broken = broken
        steward.departures.told.clear()
        plan = steward.tick(*policy, when=when)
        due = {name for name in owed if name not in policy}
        assert steward.departures.told == [(name, when) for name in sorted(due - broken)]
        assert set(plan.failed) == due & broken
        owed = (owed - (due - broken)) | policy


# --- how old what is known is --------------------------------------------------------------------


def test_the_oldest_of_the_clusters_is_the_age():
    steward = Steward()
    steward.folded("ml-shared-01", NOON - timedelta(seconds=90))
    steward.folded("ml-eu", NOON - timedelta(seconds=400))
    assert steward.tick("ml-shared-01", "ml-eu").oldest_seconds == 400


def test_a_cluster_that_was_never_evaluated_is_as_old_as_its_first_plan():
    steward = Steward()
    steward.folded("ml-shared-01", NOON)
    assert steward.tick("ml-shared-01", "ml-eu").oldest_seconds == 0
    later = NOON + timedelta(minutes=50)
    steward.folded("ml-shared-01", later)
    # Neither absent nor new: fifty minutes without a snapshot.
    assert steward.tick("ml-shared-01", "ml-eu", when=later).oldest_seconds == 3000


def test_a_cluster_that_comes_back_counts_anew():
    steward = Steward()
    steward.tick("ml-shared-01", "ml-eu")
    steward.tick("ml-shared-01", when=LATER)
    back = NOON + timedelta(days=30)
    steward.folded("ml-shared-01", back)
    assert steward.tick("ml-shared-01", "ml-eu", when=back).oldest_seconds == 0


def test_a_cluster_that_left_makes_nothing_old():
    steward = Steward(departures=Departures(broken={"ml-eu"}))
    steward.tick("ml-shared-01", "ml-eu")
    later = NOON + timedelta(days=1)
    steward.folded("ml-shared-01", later)
    assert steward.tick("ml-shared-01", when=later).oldest_seconds == 0


def test_an_age_that_cannot_be_read_makes_the_whole_unknown():
    steward = Steward()
    steward.folded("ml-shared-01", NOON)
    steward.rows.broken = {"cluster#ml-eu"}
    plan = steward.tick("ml-shared-01", "ml-eu")
    # The other one's age alone would look like everybody's.
    assert plan.oldest_seconds is None
    assert "cluster#ml-eu: the table did not answer" in plan.failed["ml-eu"]
    assert plan.asked == ("ml-shared-01", "ml-eu")


def test_a_table_that_does_not_tell_which_clusters_there_are_fails_after_the_asking():
    steward = Steward()
    steward.rows.broken = {"plan#"}
    with pytest.raises(RetryableError):
        steward.tick()
    assert steward.requests.asked == ["ml-shared-01"]


def test_an_evaluation_from_a_clock_ahead_of_ours_is_not_younger_than_now():
    steward = Steward()
    steward.folded("ml-shared-01", NOON + timedelta(seconds=2))
    assert steward.tick().oldest_seconds == 0
