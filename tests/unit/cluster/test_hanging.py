"""Signs of a hang, each from the table of defaults: 95 %, 0.5 %, 25 % of the limit, 30 min, 80 %."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.cluster.accelerators import State, UnknownReason
from steward.cluster.hanging import Sign, judge_hang, why_unproven
from steward.cluster.judging import judge_all
from steward.cluster.policy import HangLimits, Thresholds
from tests.builders import DELAY, NOON, a_cluster, a_holder, a_window, an_accelerator

END = NOON - DELAY
THRESHOLDS = Thresholds()


def half_an_hour(value, least=None, **changes):
    """A window of 30 minutes whose highest value is `value`, and lowest `least` or the same."""
    minimum = value if least is None else least
    return a_window(value, minutes=30, **({"present": 30, "minimum": minimum} | changes))


def an_hour(value, **changes):
    return a_window(value, minimum=value, **changes)


def stuck(uuid="GPU-1", **changes):
    """A GPU at 100 % without tensor activity, at 95 of 400 W."""
    given = {
        "windows": (half_an_hour(1.0), an_hour(1.0)),
        "tensor": (half_an_hour(0.0),),
        "power": (half_an_hour(95.0),),
        "power_limit_watts": 400.0,
    }
    return an_accelerator(uuid, **(given | changes))


def signs(accelerator, thresholds=THRESHOLDS, *, readable=True):
    return judge_hang(accelerator, thresholds, END, readable=readable)


def states(*accelerators):
    judged = judge_all(accelerators, a_cluster(), END, readable=True)
    return [one.verdict.state for one in judged]


@pytest.mark.parametrize(
    ("tensor", "power", "hangs"),
    [
        (Sign.SUPPORTS, Sign.SUPPORTS, True),
        (Sign.SUPPORTS, Sign.SILENT, True),
        (Sign.SILENT, Sign.SUPPORTS, True),
        (Sign.SILENT, Sign.SILENT, None),  # utilisation alone proves nothing
        (Sign.SUPPORTS, Sign.CONTRADICTS, False),
        (Sign.CONTRADICTS, Sign.SUPPORTS, False),
        (Sign.CONTRADICTS, Sign.SILENT, False),
        (Sign.SILENT, Sign.CONTRADICTS, False),
        (Sign.CONTRADICTS, Sign.CONTRADICTS, False),
    ],
)
def test_one_signal_must_support_and_none_may_contradict(tensor, power, hangs):
    value = {Sign.SUPPORTS: (0.0, 50.0), Sign.CONTRADICTS: (0.4, 350.0)}
    told = signs(
        stuck(
            tensor=(half_an_hour(value[tensor][0]),) if tensor in value else (),
            power=(half_an_hour(value[power][1]),) if power in value else (),
        )
    )
    assert (told.tensor, told.power, told.hangs) == (tensor, power, hangs)


@pytest.mark.parametrize(("least", "hangs"), [(0.95, True), (0.9499, False), (0.0, False)])
def test_every_sample_must_reach_the_limit_of_activity(least, hangs):
    assert signs(stuck(windows=(half_an_hour(1.0, least),))).hangs is hangs


@pytest.mark.parametrize(
    ("tensor", "watts", "limit", "hangs"),
    [
        (0.005, None, 400.0, True),  # half a per cent still is none
        (0.0051, None, 400.0, False),
        (None, 100.0, 400.0, True),  # 25 % of 400 W
        (None, 100.1, 400.0, False),
        (None, 100.0, None, None),  # no limit known: power says nothing
        (None, 100.0, 0.0, None),  # a limit of nothing is none
        (0.0, 300.0, None, True),
    ],
)
def test_the_limits_themselves_still_support(tensor, watts, limit, hangs):
    told = signs(
        stuck(
            tensor=() if tensor is None else (half_an_hour(tensor),),
            power=() if watts is None else (half_an_hour(watts),),
            power_limit_watts=limit,
        )
    )
    assert told.hangs is hangs


def test_samples_that_are_too_few_say_nothing_for_or_against():
    # 80 % of 30 samples are 24.
    few = {"present": 23}
    assert signs(stuck(windows=(half_an_hour(1.0, **few),))).hangs is None
    assert signs(stuck(windows=(half_an_hour(1.0, present=24),))).hangs is True
    assert signs(stuck(windows=(half_an_hour(0.2, **few),))).hangs is None
    told = signs(stuck(tensor=(half_an_hour(0.4, **few),), power=(half_an_hour(350.0, **few),)))
    assert (told.tensor, told.power, told.hangs) == (Sign.SILENT, Sign.SILENT, None)
    nothing = a_window(None, minutes=30, present=0)
    assert signs(stuck(windows=(nothing,))).hangs is None
    assert signs(stuck(windows=(an_hour(1.0),))).hangs is None  # never measured over 30 minutes


def test_the_draw_of_a_card_says_nothing_of_one_of_its_slices():
    mig = {"mig": "3g.40gb/1", "fraction": 3 / 7}
    assert signs(stuck(**mig, tensor=())).hangs is None
    assert signs(stuck(**mig, power=(half_an_hour(350.0),))).hangs is True


def test_what_cannot_be_asked_or_is_shared_shows_nothing():
    assert signs(stuck(), readable=False).hangs is None
    assert signs(stuck(shared_with=("ns/other",))).hangs is None


def test_a_holder_must_span_the_window_of_a_hang_and_no_more():
    # The window is (11:28, 11:58]: the idle hour need not lie inside the pod's life.
    start = END - timedelta(minutes=30)
    assert signs(stuck(holder=a_holder(since=start))).hangs is True
    assert signs(stuck(holder=a_holder(since=start + timedelta(seconds=1)))).hangs is None
    assert states(stuck(holder=a_holder(since=start))) == [State.SUSPECTED_HANG]
    # A window shorter than the start-up grace of 15 minutes waits for it.
    short = Thresholds(hang=HangLimits(window_minutes=5))
    five = a_window(1.0, minutes=5, present=5, minimum=1.0)
    none = a_window(0.0, minutes=5, present=5, minimum=0.0)
    for minutes, hangs in ((14, None), (15, True)):
        holder = a_holder(since=END - timedelta(minutes=minutes))
        young = stuck(holder=holder, windows=(five,), tensor=(none,), power=())
        assert signs(young, short).hangs is hangs


def test_a_job_hangs_only_with_all_of_its_gpus():
    both = [stuck("GPU-1"), stuck("GPU-2")]
    assert states(*both) == [State.SUSPECTED_HANG, State.SUSPECTED_HANG]
    busy = stuck("GPU-3", windows=(half_an_hour(1.0, 0.6), an_hour(1.0)))
    assert states(*both, busy) == [State.BUSY] * 3
    dark = stuck("GPU-3", windows=(), last_sample=None)
    assert states(*both, dark) == [State.BUSY, State.BUSY, State.UNKNOWN]
    mute = stuck("GPU-3", tensor=(), power=())
    assert states(*both, mute) == [State.BUSY] * 3
    young = stuck("GPU-3", holder=a_holder(pod="sweep-1", pod_uid="u", since=END))
    assert states(*both, young) == [State.BUSY, State.BUSY, State.YOUNG]
    other = stuck("GPU-3", holder=a_holder("other"), tensor=(half_an_hour(0.4),))
    assert states(*both, other) == [State.SUSPECTED_HANG, State.SUSPECTED_HANG, State.BUSY]


def test_an_idle_hour_that_is_not_covered_does_not_hide_a_hang_that_is():
    sparse = an_hour(1.0, present=30)  # telemetry came back half an hour ago
    assert states(stuck(windows=(half_an_hour(1.0), sparse))) == [State.SUSPECTED_HANG]


def test_why_a_hang_that_was_seen_is_not_proven_any_more():
    def why(**changes):
        return why_unproven(stuck(**changes), THRESHOLDS, END)

    few = (half_an_hour(1.0, present=20), an_hour(1.0))
    assert why(windows=few, last_sample=None) is UnknownReason.TELEMETRY_LOST
    assert why(windows=few) is UnknownReason.LOW_COVERAGE
    bad = (half_an_hour(1.0, present=20, invalid=10),)
    assert why(windows=bad) is UnknownReason.INVALID_SAMPLES
    # Activity is there, what showed the hang is not.
    assert why(tensor=(), power=()) is UnknownReason.TELEMETRY_LOST
    assert why(tensor=(half_an_hour(0.0, present=5),)) is UnknownReason.LOW_COVERAGE


def readings(good, bad):
    """Enough samples or too few, at a hang's level but for one at most."""
    return st.builds(
        lambda count, level, others: [level] * count + others,
        st.integers(21, 29),
        st.sampled_from(good),
        st.lists(st.sampled_from(bad), max_size=1),
    )


@given(
    activity=readings([0.95, 1.0], [0.9499, 0.0]),
    tensor=st.just([]) | readings([0.0, 0.005], [0.0051, 0.4]),
    watts=st.just([]) | readings([70.0, 100.0], [100.1, 390.0]),
    limit=st.sampled_from([None, 400.0, 400.0]),
)
def test_every_combination_is_what_the_definition_says(activity, tensor, watts, limit):
    def window(points):
        return a_window(max(points), minutes=30, present=len(points), minimum=min(points))

    told = signs(
        stuck(
            windows=(window(activity),),
            tensor=(window(tensor),) if tensor else (),
            power=(window(watts),) if watts else (),
            power_limit_watts=limit,
        )
    )
    # 24 of 30 samples are enough of a signal; fewer are as good as none. 25 % of 400 W are 100.
    cores = [value <= 0.005 for value in tensor] if len(tensor) >= 24 else []
    calm = [value <= 100 for value in watts] if len(watts) >= 24 and limit else []
    supports = (bool(cores) and all(cores)) or (bool(calm) and all(calm))
    contradicts = not all(cores) or not all(calm)
    covered = len(activity) >= 24
    pinned = all(value >= 0.95 for value in activity)
    if contradicts or (covered and not pinned):
        assert told.hangs is False
    else:
        assert told.hangs is (True if covered and supports else None)
