"""Whose turn it is: one snapshot for many wishes, whoever serves them, and none of them lost."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.trigger_storm import Storm, play
from local.twins import InMemoryObjects
from steward.clock import FixedClock
from steward.cluster.planning import SnapshotScope
from steward.cluster.snapshot import LastSnapshot
from steward.errors import ConflictError, PermanentError, RetryableError
from steward.stores.bucket import Snapshots
from steward.stores.claims import Claims
from steward.usecases.coalescing import LONGEST_SECONDS, SPACING, Turns, Wish
from tests.builders import NOON, a_cluster

CLUSTER = a_cluster()


class Door:
    """One cluster's claims and its pointer, for invocations that share a clock."""

    def __init__(self):
        self.objects = InMemoryObjects()
        self.clock = FixedClock(NOON)
        self.claims = Claims(self.objects)
        self.snapshots = Snapshots(self.objects)

    def run(self, owner, left=720.0):
        return Turns(self.claims, self.snapshots, self.clock, owner=owner, left=lambda: left)

    def finish(self, started):
        self.snapshots.finish(
            "ml", LastSnapshot(key="k", started=started, finished=self.clock.now())
        )


def after(seconds):
    return NOON + timedelta(seconds=seconds)


def event(seconds=0.0):
    return Wish(cluster="ml", asked=after(seconds), patient=True)


def tick(seconds=0.0, scope=SnapshotScope.TICK):
    return Wish(cluster="ml", asked=after(seconds), scope=scope)


# --- who answers whom ----------------------------------------------------------------------------


def test_the_first_wish_is_served_at_once():
    door = Door()
    turn = door.run("a").claim(event(-3))
    assert turn.start == NOON


def test_a_snapshot_that_runs_answers_what_was_asked_before_it_began_and_nothing_later():
    door = Door()
    door.run("a").claim(tick())
    door.clock.sleep(10)
    assert door.run("b").claim(event(0)) is None
    assert door.run("b").claim(tick(0)) is None
    assert door.run("b").claim(tick(1)).start == after(10)


def test_a_claim_whose_owner_is_gone_answers_nobody():
    door = Door()
    door.run("a").claim(tick())
    door.clock.sleep(LONGEST_SECONDS - 1)
    assert door.run("b").claim(tick()) is None
    door.clock.sleep(1)
    assert door.run("b").claim(tick()).start == after(LONGEST_SECONDS)


def test_a_snapshot_that_was_given_up_answers_nobody():
    door = Door()
    run = door.run("a")
    run.give_up(run.claim(tick()))
    assert door.run("b").claim(tick()) is not None


def test_who_gives_up_takes_nothing_from_who_came_after():
    door = Door()
    run = door.run("a")
    turn = run.claim(tick())
    door.clock.sleep(5)
    door.run("b").claim(tick(5))
    run.give_up(turn)
    assert door.run("c").claim(tick(5)) is None


def test_a_finished_snapshot_answers_long_after_its_claim():
    door = Door()
    door.run("a").claim(tick())
    door.finish(NOON)
    door.clock.sleep(2 * LONGEST_SECONDS)
    assert door.run("b").claim(event(0)) is None
    assert door.run("b").claim(event(1)) is not None


def test_a_tick_does_not_answer_for_an_audit_and_an_audit_does_for_a_tick():
    door = Door()
    door.run("a").claim(tick())
    assert door.run("b").claim(tick(scope=SnapshotScope.AUDIT)) is not None
    assert door.run("c").claim(tick()) is None


# --- when events have their turn -----------------------------------------------------------------


def test_events_have_one_snapshot_a_minute_and_one_invocation_waits_for_all():
    door = Door()
    door.run("a").claim(event(0))
    door.clock.sleep(10)
    waits = door.run("b").claim(event(5))
    assert waits.start == NOON + SPACING
    # Nobody else needs to: what is asked until then is answered then.
    door.clock.sleep(10)
    assert door.run("c").claim(event(20)) is None
    ready = door.run("b").wait(waits)
    assert (ready.start, door.clock.now()) == (NOON + SPACING, NOON + SPACING)


def test_an_event_after_a_tick_waits_for_nothing():
    door = Door()
    door.run("a").claim(tick(0))
    door.clock.sleep(10)
    assert door.run("b").claim(event(5)).start == after(10)


def test_a_tick_waits_behind_nobody_and_answers_who_waits():
    door = Door()
    door.run("a").claim(event(0))
    door.clock.sleep(10)
    run = door.run("b")
    waits = run.claim(event(5))
    door.clock.sleep(10)
    assert door.run("c").claim(tick(20)).start == after(20)
    assert run.wait(waits) is None


def test_a_tick_in_between_does_not_bring_the_next_turn_forward():
    door = Door()
    door.run("a").claim(event(0))
    door.clock.sleep(10)
    door.run("b").claim(event(5))
    door.clock.sleep(10)
    door.run("c").claim(tick(20))
    door.clock.sleep(10)
    # A minute after noon's: a thousand events are answered by noon's, the tick's and this one.
    assert door.run("d").claim(event(25)).start == NOON + SPACING


def test_who_waits_takes_the_turn_again_that_a_failed_tick_left():
    door = Door()
    door.run("a").claim(event(0))
    door.clock.sleep(10)
    run = door.run("b")
    waits = run.claim(event(5))
    ticking = door.run("c")
    ticking.give_up(ticking.claim(tick(10)))
    assert run.wait(waits).start == NOON + SPACING


@pytest.mark.parametrize(("spare", "start"), [(7, 17), (0, 10), (-100, 10), (400, 60)])
def test_a_wait_is_no_longer_than_the_time_that_is_left(spare, start):
    # The snapshot itself must still fit: what is left beyond its longest is there for waiting.
    door = Door()
    door.run("a").claim(event(0))
    door.clock.sleep(10)
    assert door.run("b", left=LONGEST_SECONDS + spare).claim(event(5)).start == after(start)


def test_a_wish_for_an_audit_does_not_wait():
    door = Door()
    door.run("a").claim(event(0))
    door.clock.sleep(10)
    audit = tick(5, SnapshotScope.AUDIT)
    assert door.run("b").claim(audit).start == after(10)


def test_a_clock_that_is_wrong_elsewhere_costs_a_minute_at_most():
    door = Door()
    door.clock.sleep(3600)
    door.run("ahead").claim(event(3600))
    slow = Turns(door.claims, door.snapshots, FixedClock(NOON), owner="b", left=lambda: 720.0)
    assert slow.claim(event(0)).start == NOON + SPACING


def test_a_wish_from_the_future_is_one_of_now():
    # Nothing begins that late: without it every one of them would have a snapshot of its own.
    door = Door()
    door.run("a").claim(event(3600))
    assert door.run("b").claim(event(3600)) is None


# --- a bucket that others write to ---------------------------------------------------------------


class Lost(Claims):
    """Writes, and loses the answer: the repeated write then meets itself."""

    def save(self, cluster, claim, tag):
        super().save(cluster, claim, tag)
        raise ConflictError("412")


class Crowded(Claims):
    """Somebody else always writes first."""

    def save(self, cluster, claim, tag):
        raise ConflictError("412")


def test_a_claim_whose_answer_was_lost_is_still_ones_own():
    door = Door()
    turns = Turns(Lost(door.objects), door.snapshots, door.clock, owner="a", left=lambda: 720.0)
    turn = turns.claim(event())
    assert turn.claim.owner == "a"
    assert turns.wait(turn) == turn


class Broken(Claims):
    """A store of claims that cannot be read, written, or either."""

    def __init__(self, objects, *, reads=True, writes=True):
        super().__init__(objects)
        self.reads, self.writes = reads, writes

    def load(self, cluster):
        if not self.reads:
            raise RetryableError("claims: 503")
        return super().load(cluster)

    def save(self, cluster, claim, tag):
        if not self.writes:
            raise PermanentError("claims: AccessDenied")
        return super().save(cluster, claim, tag)


@pytest.mark.parametrize("broken", [{"reads": False}, {"writes": False}])
def test_where_no_claim_can_be_kept_the_snapshot_is_taken_all_the_same(broken):
    door = Door()
    door.claims = Broken(door.objects, **broken)
    run = door.run("a")
    turn = run.claim(event(-3))
    assert not run.is_later(turn)
    # It is taken unless one has begun since the wish, and given up without a word to others.
    assert turn.start == after(-3)
    run.give_up(turn)
    assert door.claims.reads is False or door.claims.load("ml") == (None, None)


def test_a_finished_snapshot_answers_though_no_claim_can_be_written():
    door = Door()
    door.claims = Broken(door.objects, writes=False)
    door.finish(NOON)
    assert door.run("a").claim(event(0)) is None


def test_who_waits_takes_its_turn_though_claims_can_no_longer_be_read():
    door = Door()
    door.claims = Broken(door.objects)
    door.run("a").claim(event(0))
    door.clock.sleep(10)
    run = door.run("b")
    turn = run.claim(event(5))
    door.claims.reads = False
    assert run.wait(turn) == turn
    # A minute after the first began.
    assert door.clock.now() == turn.start == after(60)


def test_who_never_gets_through_says_so():
    door = Door()
    turns = Turns(Crowded(door.objects), door.snapshots, door.clock, owner="a", left=lambda: 720.0)
    with pytest.raises(ConflictError, match="others kept writing"):
        turns.claim(event())


# --- storms --------------------------------------------------------------------------------------

SECONDS = st.integers(0, 60_000).map(lambda milliseconds: milliseconds / 1000)
EVENLY = tuple(n * 0.06 for n in range(1000))
BURSTS = tuple(20.0 * (n // 334) for n in range(1000))


def check(storm, most=3):
    """Whatever happens: few snapshots, and an answer to everybody."""
    played = play(storm, CLUSTER)
    assert len(played.snapshots) <= most, played.snapshots
    for asked in (*storm.events, *storm.ticks):
        assert played.answer(asked) is not None, asked
    assert played.failed == 0
    return played


@pytest.mark.parametrize("events", [EVENLY, BURSTS, (0.0,) * 500 + (60.0,) * 500])
@pytest.mark.parametrize("seconds", [2.0, 40.0])
@pytest.mark.parametrize("ticks", [(), (10.0,), (45.0,)])
def test_a_thousand_events_in_a_minute_are_three_snapshots_at_most(events, seconds, ticks):
    played = check(Storm(events=events, ticks=ticks, durations=(seconds,)))
    # Lambda ran several at once: one after the other would prove nothing.
    assert played.together >= 3
    # Window, spacing, and the calls of the bucket: nobody waits longer for a snapshot to begin.
    assert max(played.answer(asked).start - asked for asked in events) < 20 + 60 + 1


def test_without_turns_each_batch_would_take_a_snapshot(monkeypatch):
    """Shows that the storm is one: what serves it does not see two batches of the same time."""
    monkeypatch.setattr("steward.usecases.coalescing._answers", lambda *_: False)
    monkeypatch.setattr("steward.usecases.coalescing.SPACING", timedelta())
    played = play(Storm(events=EVENLY, durations=(2.0,)), CLUSTER)
    assert len(played.snapshots) > 3


def test_a_snapshot_that_is_killed_is_taken_again():
    # Its own messages come again from the queue after an hour, too old; what happens next is
    # answered as soon as its claim has expired.
    storm = Storm(events=(0.0, 300.0), durations=(5.0,), lost=(0,))
    played = play(storm, CLUSTER)
    assert (len(played.snapshots), played.failed) == (2, 1)
    assert played.answer(300.0).end is not None


@settings(max_examples=60, deadline=None)
@given(
    events=st.lists(SECONDS, min_size=1, max_size=300),
    tick=st.one_of(st.none(), SECONDS),
    durations=st.lists(st.floats(2, 40), min_size=1, max_size=4),
    latency=st.floats(0, 0.5),
    seed=st.integers(0, 2**16),
)
def test_any_minute_of_events_is_answered_by_three_snapshots_at_most(
    events, tick, durations, latency, seed
):
    ticks = () if tick is None else (tick,)
    storm = Storm(
        events=tuple(events),
        ticks=ticks,
        durations=tuple(durations),
        latency=latency,
        seed=seed,
    )
    played = check(storm)
    for asked in ticks:
        # The batch window and a few calls: a tick waits behind no event.
        assert played.answer(asked).start - asked <= 20.001 + 6 * latency


@settings(max_examples=30, deadline=None)
@given(
    events=st.lists(SECONDS.map(lambda seconds: 10 * seconds), min_size=1, max_size=300),
    durations=st.lists(st.floats(2, 40), min_size=1, max_size=4),
    seed=st.integers(0, 2**16),
)
def test_however_long_a_storm_lasts_events_have_one_snapshot_a_minute(events, durations, seed):
    storm = Storm(events=tuple(events), ticks=(0.0, 300.0), durations=tuple(durations), seed=seed)
    played = check(storm, most=2 + 2 + 10)
    starts = [s.start for s in played.snapshots if not s.tick]
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert all(gap > 59 for gap in gaps)  # the calls of the bucket lie between claim and begin
