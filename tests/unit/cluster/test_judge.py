"""Verdicts, each from the contract's table of defaults: 60 min, 1 %, 80 %, 1 GiB, 15 min grace."""

from datetime import timedelta

import pytest

from steward.cluster.accelerators import State, UnknownReason, judge
from steward.cluster.policy import IdleLimits
from tests.builders import DELAY, NOON, a_holder, a_window, an_accelerator

END = NOON - DELAY
LIMITS = IdleLimits()


def verdict_of(limits: IdleLimits = LIMITS, *, readable: bool = True, **changes):
    return judge(an_accelerator(**changes), limits, END, readable=readable)


@pytest.mark.parametrize(
    ("maximum", "state"),
    [
        (0.0, State.IDLE),
        (0.01, State.IDLE),  # "activity maximum <= 1 %": one per cent still is idle
        (0.0101, State.BUSY),
        (1.0, State.BUSY),
    ],
)
def test_one_per_cent_is_still_idle_and_more_is_not(maximum, state):
    assert verdict_of(windows=(a_window(maximum),)).state is state


@pytest.mark.parametrize(
    ("held", "state"),
    [
        (2**30, State.IDLE_HELD),  # "from 1 GiB"
        (2**30 - 1, State.IDLE),
        (None, State.IDLE),  # not measured is not taken for held
    ],
)
def test_memory_held_from_one_gibibyte_is_idle_held(held, state):
    assert verdict_of(held_bytes=held).state is state


def test_coverage_of_four_fifths_is_enough_and_a_sample_less_is_not():
    # 80 % of 60 expected samples are 48.
    assert verdict_of(windows=(a_window(0.0, present=48),)).state is State.IDLE
    short = verdict_of(windows=(a_window(0.0, present=47),))
    assert (short.state, short.reason) == (State.UNKNOWN, UnknownReason.LOW_COVERAGE)


def test_more_samples_than_expected_count_as_full_coverage():
    assert a_window(0.0, present=63).coverage == 1.0


def test_low_coverage_is_never_busy_either():
    # Unknown never resolves anything, so a busy sample in a sparse window decides nothing.
    assert verdict_of(windows=(a_window(0.9, present=5),)).state is State.UNKNOWN


def test_a_holder_that_does_not_span_the_window_is_not_judged():
    # The window is (10:58, 11:58]; a pod bound at 10:58 spans it, one bound a second later does not.
    start = END - timedelta(minutes=60)
    assert verdict_of(holder=a_holder(since=start)).state is State.IDLE
    young = verdict_of(holder=a_holder(since=start + timedelta(seconds=1)))
    assert (young.state, young.reason) == (State.YOUNG, None)


def test_the_grace_runs_inside_the_window_and_counts_where_it_is_longer():
    # A window of 5 minutes under a grace of 15: judged from the 15th minute on, not the 20th.
    limits = IdleLimits(window_minutes=5)
    windows = (a_window(0.0, present=5, minutes=5),)
    for minutes, state in ((14, State.YOUNG), (15, State.IDLE)):
        holder = a_holder(since=END - timedelta(minutes=minutes))
        assert verdict_of(limits, holder=holder, windows=windows).state is state


def test_a_series_that_stopped_is_lost_and_a_sparse_one_is_low_coverage():
    sparse = {"windows": (a_window(0.0, present=11),)}
    assert verdict_of(**sparse).reason is UnknownReason.LOW_COVERAGE
    stopped = END - timedelta(minutes=5)  # the newest sample is five minutes old: stopped
    assert verdict_of(**sparse, last_sample=stopped).reason is UnknownReason.TELEMETRY_LOST
    assert verdict_of(**sparse, last_sample=None).reason is UnknownReason.TELEMETRY_LOST


@pytest.mark.parametrize(
    ("ever_seen", "reason"),
    [
        (True, UnknownReason.TELEMETRY_LOST),
        (False, UnknownReason.NO_TELEMETRY),
        (None, UnknownReason.UNREADABLE),  # the look-up failed: neither can be claimed
    ],
)
def test_no_sample_at_all_depends_on_whether_there_ever_was_one(ever_seen, reason):
    empty = a_window(None, present=0)
    found = verdict_of(windows=(empty,), last_sample=None, ever_seen=ever_seen)
    assert (found.state, found.reason) == (State.UNKNOWN, reason)


def test_too_many_impossible_values_are_invalid_samples():
    # 40 valid and 20 dropped: without the bad ones 67 %, with them all 60 were there.
    found = verdict_of(windows=(a_window(0.0, present=40, invalid=20),))
    assert found.reason is UnknownReason.INVALID_SAMPLES


def test_two_impossible_values_among_sixty_decide_nothing():
    assert verdict_of(windows=(a_window(0.0, present=58, invalid=2),)).state is State.IDLE


def test_a_shared_device_has_no_verdict_for_one_pod():
    assert verdict_of(shared_with=("ns/other",)).reason is UnknownReason.SHARED_GPU


def test_an_unreadable_source_makes_everything_but_the_young_unknown():
    assert verdict_of(readable=False).reason is UnknownReason.UNREADABLE
    young = a_holder(since=END)
    assert verdict_of(readable=False, holder=young).state is State.YOUNG


def test_series_without_a_pod_on_the_node_are_unattributed():
    found = verdict_of(
        windows=(a_window(None, present=0),), last_sample=None, ever_seen=False, unattributed=True
    )
    assert found.reason is UnknownReason.UNATTRIBUTED
