"""What is due: one snapshot in each slot of the cluster's tick, missed ones at the next."""

from datetime import timedelta

import pytest

from steward.cluster.planning import SnapshotScope
from steward.usecases.plan_ticks import plan_ticks, snapshot_due
from tests.builders import NOON, a_cluster
from tests.fakes import FixedTime, Recorder


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
    clusters = (a_cluster(), a_cluster(name="ml-eu"))
    recorder = Recorder(broken={"ml-shared-01"})
    plan = plan_ticks(clusters, plans=recorder, requests=recorder, clock=FixedTime())
    assert plan.asked == ("ml-eu",)
    assert "the queue did not answer" in plan.failed["ml-shared-01"]
    recorder.broken.clear()
    again = plan_ticks(clusters, plans=recorder, requests=recorder, clock=FixedTime())
    assert again.asked == ("ml-shared-01",)


def test_the_first_tick_of_a_cluster_and_the_first_of_each_day_are_audits():
    # NOON is 5 November; the next audit is due once it is the 6th, in UTC.
    recorder = Recorder()
    ticks = [NOON, NOON + timedelta(minutes=5), NOON + timedelta(hours=11, minutes=55)]
    ticks += [NOON + timedelta(hours=12), NOON + timedelta(hours=12, minutes=5)]
    for when in ticks:
        plan_ticks((a_cluster(),), plans=recorder, requests=recorder, clock=FixedTime(when))
    assert recorder.scopes == [
        SnapshotScope.AUDIT,
        SnapshotScope.TICK,
        SnapshotScope.TICK,
        SnapshotScope.AUDIT,
        SnapshotScope.TICK,
    ]


def test_a_missed_audit_is_due_at_the_next_tick_and_asked_for_once():
    recorder = Recorder()
    for when in (NOON, NOON + timedelta(days=3, minutes=1), NOON + timedelta(days=3, minutes=6)):
        plan_ticks((a_cluster(),), plans=recorder, requests=recorder, clock=FixedTime(when))
    assert recorder.scopes == [SnapshotScope.AUDIT, SnapshotScope.AUDIT, SnapshotScope.TICK]


def test_an_audit_that_could_not_be_asked_for_stays_due():
    recorder = Recorder(broken={"ml-shared-01"})
    clusters = (a_cluster(),)
    plan_ticks(clusters, plans=recorder, requests=recorder, clock=FixedTime())
    recorder.broken.clear()
    plan_ticks(clusters, plans=recorder, requests=recorder, clock=FixedTime())
    assert recorder.scopes == [SnapshotScope.AUDIT]
