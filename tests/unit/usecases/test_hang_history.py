"""Beginnings and ends of suspected hangs on a few samples, by hand."""

from datetime import timedelta

import pytest

from steward.cluster.memory import IdleIncident, IdleStretch, Memory
from steward.ports import DeviceName, Samples, Signal
from steward.usecases import raw_samples
from steward.usecases.hang_samples import Bounds, quiet, rest, run, trace
from steward.usecases.idle_history import find_beginnings, find_ends
from tests.builders import DELAY, NOON, a_cluster, a_holder, at
from tests.fakes import FakeMetrics
from tests.unit.cluster.test_hanging import an_hour, half_an_hour, stuck

END = NOON - DELAY
CLUSTER = a_cluster()
EMPTY = Memory(cluster="ml-shared-01")
SUBJECT = "PyTorchJob/hyperpod-ns-research/sweep"
UUIDS = ("GPU-1", "GPU-2")
BOUNDS = Bounds(activity_min=0.95, tensor_max=0.005, watts_max=100.0)
GAP = timedelta(minutes=6)  # 20 % of half an hour


def device(uuid="GPU-1"):
    return DeviceName(namespace="hyperpod-ns-research", pod="sweep-0", uuid=uuid)


def points(*each):
    return [(at(when), value) for when, value in each]


def every_minute(start, stop, value):
    """A sample a minute in [start, stop)."""
    count = int((at(stop) - at(start)).total_seconds() // 60)
    return [(at(start) + timedelta(minutes=n), value) for n in range(count)]


def traced(activity, tensor=(), power=(), bounds=BOUNDS):
    told = {Signal.ACTIVITY: activity, Signal.TENSOR: tensor, Signal.POWER: power}
    return trace(
        {
            signal: Samples(
                device=device(),
                times=tuple(t for t, _ in given),
                values=tuple(v for _, v in given),
                signal=signal,
            )
            for signal, given in told.items()
        },
        bounds,
    )


ALONG = every_minute("9:00", "11:00", 0.0)
"""Tensor activity that goes along with whatever activity shows."""


def hang_of(*activity, tensor=ALONG, power=(), bounds=BOUNDS, from_birth=False):
    return run(traced(points(*activity), tensor, power, bounds), GAP, from_birth=from_birth)


def test_a_hang_begins_after_the_newest_sample_of_work():
    found = hang_of(("9:00", 0.9), ("9:01", 1.0), ("9:02", 0.95), ("9:03", 1.0))
    assert (found.times, found.exact) == ((at("9:01"), at("9:02"), at("9:03")), True)


@pytest.mark.parametrize(
    ("signal", "sample"),
    [("tensor", ("9:02", 0.006)), ("power", ("9:02", 101.0))],
)
def test_work_of_any_believed_signal_ends_what_was_before(signal, sample):
    others = [p for p in ALONG if p[0] != at("9:02")]
    given = {"tensor": others, "power": [], signal: sorted([*others, *points(sample)])}
    found = hang_of(("9:01", 1.0), ("9:02", 1.0), ("9:03", 1.0), **given)
    assert found.times == (at("9:03"),)
    # The same sample of a signal that is not believed says nothing.
    blind = Bounds(
        activity_min=0.95,
        tensor_max=None if signal == "tensor" else 0.005,
        watts_max=None if signal == "power" else 100.0,
    )
    told = given if signal == "power" else given | {"power": [(t, 50.0) for t, _ in ALONG]}
    found = hang_of(("9:01", 1.0), ("9:02", 1.0), ("9:03", 1.0), bounds=blind, **told)
    assert found.times == (at("9:01"), at("9:02"), at("9:03"))


def test_activity_alone_is_no_beginning():
    # Tensor activity is measured from 9:20 on only: what was before, nobody knows. A gap of up to
    # six minutes may be bridged, so that 9:14 still counts and 9:13 does not.
    late = every_minute("9:20", "9:40", 0.0)
    found = hang_of(("9:00", 1.0), ("9:13", 1.0), ("9:14", 1.0), ("9:30", 1.0), tensor=late)
    assert (found.times, found.exact) == ((at("9:14"), at("9:30")), False)


def test_a_beginning_is_exact_only_where_work_or_the_holder_bounds_it():
    activity = (("9:00", 1.0), ("9:01", 1.0))
    assert hang_of(*activity).exact is False
    assert hang_of(*activity, from_birth=True).exact is True


def test_a_trace_that_ends_with_work_holds_no_hang():
    assert hang_of(("9:00", 1.0), ("9:01", 0.5)) is None


def test_what_follows_is_counted_to_the_end_of_the_job_or_of_the_pod():
    told = traced(every_minute("9:00", "9:20", 1.0), ALONG)

    def last(**bounds):
        given = {"before": None, "until": None} | bounds
        return list(rest(told, at("9:05"), GAP, **given))[-1]

    assert last() == at("9:19")
    assert last(before=at("9:10")) == at("9:09")  # that sample shows work, on some GPU
    assert last(until=at("9:10")) == at("9:10")  # that one was still the job's own


def test_quiet_is_what_the_newest_five_minutes_show():
    def told(*activity):
        return quiet(traced(points(*activity)), at("9:01"), 0.01)

    assert told(("9:00", 1.0), ("9:01", 0.0), ("9:02", 0.01)) is True
    assert told(("9:01", 0.0), ("9:02", 0.02)) is False
    # A sample that averages the last work and the first rest is soon old.
    assert told(("9:01", 0.5), ("9:06", 0.0)) is True
    assert told(("9:01", 0.5), ("9:05", 0.0)) is False


# --- through the metrics source ------------------------------------------------------------------


def both(*starts):
    """Two GPUs at 100 % since their own starts, at 80 % before; tensor activity tells the same."""
    series, tensor = {}, {}
    for uuid, start in zip(UUIDS, starts, strict=True):
        series[device(uuid)] = every_minute("9:00", start, 0.8) + every_minute(start, "11:59", 1.0)
        tensor[device(uuid)] = every_minute("9:00", start, 0.4) + every_minute(start, "11:59", 0.0)
    return FakeMetrics(series, tensor=tensor)


def begun(metrics, *accelerators, memory=EMPTY, end=END):
    return [one.hung_since for one in find_beginnings(accelerators, memory, CLUSTER, metrics, end)]


JOB = tuple(stuck(uuid, power=()) for uuid in UUIDS)


def a_stretch(uuid="GPU-1", **changes):
    given = {
        "key": f"uid-sweep/{uuid}",
        "namespace": "hyperpod-ns-research",
        "pod": "sweep-0",
        "node": None,
        "uuid": uuid,
        "mig": None,
        "fraction": 1.0,
        "usd_per_hour": None,
        "since": at("10:00"),
        "last": at("11:53"),
        "exact": True,
        "observed_seconds": 113 * 60.0,
        "tensor": True,
    }
    return IdleStretch(**(given | changes))


def remembering(*stretches, subject=SUBJECT):
    incident = IdleIncident(subject=subject, stretches=stretches, held_until=at("11:55"))
    return Memory(cluster="ml-shared-01", hangs=(incident,))


BOTH = remembering(*(a_stretch(uuid) for uuid in UUIDS))


def test_a_job_hangs_since_the_last_of_its_gpus_does():
    # GPU-1 since 10:00, GPU-2 since 10:30: 10:30 to 11:58 are 88 minutes of each.
    found = begun(both("10:00", "10:30"), *JOB)
    assert [(f.first, f.last, f.exact) for f in found] == [(at("10:30"), END, True)] * 2
    assert [f.observed_seconds for f in found] == [88 * 60.0] * 2


def test_only_a_job_whose_gpus_all_hang_is_looked_up():
    metrics = both("10:00", "10:00")
    busy = stuck("GPU-2", windows=(half_an_hour(1.0, 0.5), an_hour(1.0)))
    assert begun(metrics, JOB[0], busy) == [None, None]
    assert metrics.asked == []


def test_what_is_known_and_was_followed_is_not_asked_again():
    metrics = both("10:00", "10:00")
    assert begun(metrics, *JOB, memory=BOTH) == [None, None]
    assert metrics.asked == []
    # Not followed: there may be a gap of more than 6 minutes, which is nobody's, or it is known
    # only as "at least".
    for changes in ({"last": at("11:51")}, {"exact": False}):
        stale = remembering(*(a_stretch(uuid, **changes) for uuid in UUIDS))
        assert {f.first for f in begun(metrics, *JOB, memory=stale)} == {at("10:00")}


def test_a_gpu_that_joined_begins_by_itself_and_moves_nothing():
    found = begun(both("10:00", "11:10"), *JOB, memory=remembering(a_stretch()))
    assert [f.first for f in found] == [at("10:00"), at("11:10")]


def test_a_hang_that_was_interrupted_where_nobody_looked_begins_anew_for_all():
    # Last seen at 11:00; GPU-2 worked until 11:20.
    stale = remembering(*(a_stretch(uuid, last=at("11:00")) for uuid in UUIDS))
    found = begun(both("10:00", "11:20"), *JOB, memory=stale)
    assert [f.first for f in found] == [at("11:20")] * 2


def test_a_series_that_is_missing_leaves_the_job_to_its_windows():
    metrics = both("10:00", "10:00")
    del metrics.series[device("GPU-2")]
    assert begun(metrics, *JOB) == [None, None]


def test_the_budget_shortens_a_look_back_and_makes_other_jobs_wait(monkeypatch):
    metrics = both("9:30", "9:30")
    other = stuck("GPU-3", holder=a_holder("other"), power=())
    longer = a_stretch("GPU-3", key="uid-other/GPU-3", pod="other-0", exact=False)
    memory = remembering(longer, subject="PyTorchJob/hyperpod-ns-research/other")
    # Two GPUs and three signals over the day that the pods are old are 8,640 samples: with half of
    # them it looks back for twelve hours, which is enough. What is known as "at least" waits.
    monkeypatch.setattr(raw_samples, "SAMPLE_BUDGET", 4320)
    found = begun(metrics, other, *JOB, memory=memory)
    assert [f and (f.first, f.exact) for f in found] == [None, *[(at("9:30"), True)] * 2]
    assert metrics.asked == ["samples"]
    # Never less than the window: then the beginning is only "at least".
    monkeypatch.setattr(raw_samples, "SAMPLE_BUDGET", 6)
    found = begun(metrics, *JOB)
    assert [(f.first, f.exact) for f in found] == [(at("11:29"), False)] * 2


def over(metrics, *accelerators, memory=BOTH, workloads=(), now=NOON):
    return find_ends(accelerators, workloads, memory, CLUSTER, metrics, now)


def works(uuid, **changes):
    given = {"windows": (half_an_hour(1.0, 0.5), an_hour(1.0)), "tensor": (half_an_hour(0.4),)}
    return stuck(uuid, power=(), **(given | changes))


def test_the_job_ends_with_the_first_sample_of_work_of_any_gpu():
    metrics = both("10:00", "10:00")
    for uuid, work in (("GPU-1", "11:58"), ("GPU-2", "11:56")):
        metrics.series[device(uuid)] = [
            *every_minute("10:00", work, 1.0),
            *every_minute(work, "12:01", 0.8),
        ]
    told = over(metrics, JOB[0], works("GPU-2"))
    # Known to 11:53; GPU-2 works at 11:56, so that 11:55 is the last of both.
    assert [(e.last, e.observed_seconds, e.quiet) for e in told] == [(at("11:55"), 120, False)] * 2


def test_a_job_that_stops_and_rests_is_quiet():
    metrics = both("10:00", "10:00")
    for uuid in UUIDS:
        metrics.series[device(uuid)] = every_minute("10:00", "11:56", 1.0) + every_minute(
            "11:56", "12:01", 0.0
        )
    stopped = [
        works(uuid, windows=(half_an_hour(1.0, 0.0), an_hour(1.0)), tensor=(half_an_hour(0.0),))
        for uuid in UUIDS
    ]
    assert [(e.last, e.quiet) for e in over(metrics, *stopped)] == [(at("11:55"), True)] * 2
    metrics.series[device("GPU-1")][-1] = (NOON, 0.3)
    assert [e.quiet for e in over(metrics, *stopped)] == [False, False]


def test_power_that_showed_a_hang_ends_it_also_for_a_pod_that_is_gone():
    metrics = both("10:00", "10:00")
    metrics.power = {
        device(uuid): every_minute("10:00", "11:55", 90.0) + every_minute("11:55", "11:59", 390.0)
        for uuid in UUIDS
    }
    memory = remembering(*(a_stretch(u, tensor=False, watts_max=100.0) for u in UUIDS))
    assert [e.last for e in over(metrics, memory=memory)] == [at("11:54")] * 2


def test_what_still_hangs_or_cannot_be_judged_is_not_asked_for():
    metrics = both("10:00", "10:00")
    assert over(metrics, *JOB) == ()
    assert over(metrics, JOB[0], stuck("GPU-2", windows=(), last_sample=None)) == ()
    assert metrics.asked == []


def test_the_part_of_a_job_that_is_gone_is_asked_for_alone():
    told = over(both("10:00", "10:00"), JOB[0])
    assert [(e.key, e.last) for e in told] == [("uid-sweep/GPU-2", at("11:58"))]


def test_a_gpu_that_joined_does_not_move_a_beginning_that_was_only_at_least():
    # Known since 10:00 or before; the other one is there since 11:10 only.
    metrics = both("9:00", "11:10")
    memory = remembering(a_stretch(exact=False))
    found = begun(metrics, *JOB, memory=memory)
    # What there is of the first one begins at 9:00, and all of its pod's life was looked at.
    assert [(f.first, f.exact) for f in found] == [(at("9:00"), True), (at("11:10"), True)]
    assert [f.observed_seconds for f in found] == [178 * 60.0, 48 * 60.0]


def test_one_of_more_than_a_week_counts_on_where_it_has_to_be_looked_up_again(monkeypatch):
    # A look back of an hour: 10:58 is as far as it reaches, and 10:00 to 11:30 is counted already.
    monkeypatch.setattr(raw_samples, "LOOK_BACK", timedelta(hours=1))
    stale = {"last": at("11:30"), "observed_seconds": 90 * 60.0}
    memory = remembering(*(a_stretch(uuid, **stale) for uuid in UUIDS))
    found = begun(both("9:00", "9:00"), *JOB, memory=memory)
    assert [f.observed_seconds for f in found] == [118 * 60.0] * 2  # 10:00 to 11:58


def test_the_signal_that_shows_a_hang_may_have_been_seen_last_before_the_activity_was():
    # Tensor activity is last measured at 11:50; six minutes of that may be bridged: to 11:56.
    metrics = both("10:00", "10:00")
    for uuid in UUIDS:
        metrics.tensor[device(uuid)] = every_minute("10:00", "11:51", 0.0)
    told = over(metrics, JOB[0])
    assert [(e.key, e.last) for e in told] == [("uid-sweep/GPU-2", at("11:56"))]
