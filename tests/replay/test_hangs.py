"""Jobs that look busy and do nothing, through the real handlers; every number by hand.

Ticks are at 9:50, 9:55 ... 11:20 unless a case says otherwise, and windows end two minutes before.
"""

import json
from datetime import UTC, datetime, timedelta

import pytest

from local.replay import replay
from tests.recordings import RecordedPod, about_gpus, write_recording

START = datetime(2026, 11, 5, 9, 50, tzinfo=UTC)
END = START + timedelta(minutes=90)
BORN = START - timedelta(hours=4)
GPUS = ("GPU-0", "GPU-1", "GPU-2", "GPU-3")
SUBJECT = "Job/hyperpod-ns-research/stuck-job"


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    monkeypatch.setenv("METRICS", "recorded")


def at(text):
    hours, minutes = text.split(":")
    return START.replace(hour=int(hours), minute=int(minutes))


def levels(*steps, stop=END):
    """A sample a minute from the pod's start on: (from, value) steps in order, up to `stop`."""
    points, when = [], BORN
    while when < stop:
        value = [value for since, value in steps if since is None or at(since) <= when][-1]
        points.append((when, value))
        when += timedelta(minutes=1)
    return points


def hang(begin="9:40", over="10:30", after=80.0, *, percent=None, cores=0.0, draw=95.0, **changes):
    """Trains at 80 % until `begin`, is pinned at 100 % until `over`, then does `after` per cent."""
    stop = changes.pop("stop", END)
    works = after >= 10
    own = percent or {}

    def each(*steps):
        return {gpu: levels(*steps, stop=stop) for gpu in GPUS}

    given = {
        "name": "stuck",
        "start": BORN,
        "gpus": 4,
        "samples": {
            gpu: levels((None, 80.0), (begin, own.get(gpu, 100.0)), (over, after), stop=stop)
            for gpu in GPUS
        },
        "tensor": {}
        if cores is None
        else each((None, 0.4), (begin, cores), (over, 0.4 if works else 0.0)),
        "watts": {}
        if draw is None
        else each((None, 350.0), (begin, draw), (over, 350.0 if works else 70.0)),
        "watts_limit": {} if draw is None else each((None, 400.0)),
    }
    return RecordedPod(**(given | changes))


def run(folder, *pods, start=START, end=END, tick="5m"):
    told = []
    done = replay(write_recording(folder, pods, start, end, tick=tick), told.append)
    assert done.failures == 0
    return about_gpus(told)


def findings(told):
    return [line for line in told if line["type"] == "finding" and line["detector"] == "idle_gpus"]


def clock(text):
    return f"2026-11-05T{text}:00Z"


def test_a_hang_opens_after_half_an_hour_and_ends_with_the_work(tmp_path):
    told = run(tmp_path, hang())
    opened, ended = findings(told)
    # Pinned samples 9:40 ... 10:29. The first tick whose window (t-32, t-2] lies after the last
    # working sample, 9:39, is 10:15: (9:43, 10:13].
    assert (opened["at"], opened["status"], opened["reason"]) == (
        clock("10:15"),
        "firing",
        "suspected_hang",
    )
    assert (opened["subject"], opened["team"], opened["severity"]) == (SUBJECT, "research", "warn")
    assert (opened["since"], opened["gpus"]) == (clock("09:40"), 4)
    # 9:40 to 10:13 are 33 minutes on four GPUs, at 63.296 / 8 = 7.912 USD an hour.
    assert opened["gpu_hours"] == round(4 * 33 / 60, 6)
    assert opened["cost_usd"] == 17.41
    evidence = opened["evidence"]
    assert {a["uuid"] for a in evidence["accelerators"]} == set(GPUS)
    assert {a["hung_since"] for a in evidence["accelerators"]} == {clock("09:40")}
    assert {a["idle_since"] for a in evidence["accelerators"]} == {clock("09:40")}
    assert (evidence["coverage"], evidence["window_minutes"]) == (1, 30)
    assert (evidence["activity_min"], evidence["tensor_max"]) == (1, 0)
    assert (evidence["power_max_watts"], evidence["power_limit_watts"]) == (95, 400)
    assert (evidence["supports"], evidence["silent"]) == ({"tensor_activity": 4, "power": 4}, {})
    # Work is seen from 10:30 on: shown for the last time at 10:30, over ten minutes later.
    assert (ended["at"], ended["status"], ended["resolution"]) == (
        clock("10:40"),
        "resolved",
        "active_again",
    )
    # 9:40 to 10:29 are 49 minutes.
    assert ended["gpu_hours"] == round(4 * 49 / 60, 6)
    assert ended["cost_usd"] == round(4 * 49 / 60 * 63.296 / 8, 2)
    assert ended["evidence"]["hung_until"] == clock("10:29")
    assert told[-1]["open"] == []
    # One card, edited.
    posts = [c for c in told if c["type"] == "slack" and c["method"] == "chat.postMessage"]
    assert len(posts) == 1
    assert "suspected hang" in json.dumps(posts[0])


@pytest.mark.parametrize(
    "pod",
    [
        hang(cores=0.3),  # tensor cores work
        hang(draw=300.0),  # no tensor activity, yet three quarters of the limit: contradicted
        hang(percent={"GPU-2": 60.0}),  # one of the four does not look busy
        hang(cores=None, draw=None),  # utilisation alone proves nothing
        hang(cores=None, watts_limit={}, model="Some card", draw=176.0),  # see below
    ],
    ids=["tensor", "power contradicts", "one at 60 %", "utilisation alone", "above a known limit"],
)
def test_what_is_no_hang_is_busy(tmp_path, pod):
    # The last one runs on an ml.p5.48xlarge, whose H100 is limited to 700 W: 25 % are 175 W.
    told = run(tmp_path, pod)
    assert findings(told) == []
    assert [line for line in told if line["type"] == "unknown"] == []


@pytest.mark.parametrize(
    ("model", "watts"),
    [
        ("NVIDIA A100-SXM4-40GB", 100.0),  # 25 % of its 400 W
        ("Some card", 175.0),  # of the instance type's H100, 700 W
    ],
)
def test_a_limit_without_a_metric_is_looked_up_by_model(tmp_path, model, watts):
    told = run(tmp_path, hang(cores=None, watts_limit={}, model=model, draw=watts))
    opened = findings(told)[0]
    assert (opened["reason"], opened["gpus"]) == ("suspected_hang", 4)
    assert opened["evidence"]["power_limit_watts"] == watts * 4
    assert opened["evidence"]["silent"] == {"tensor_activity": 4}


def test_a_hang_that_becomes_idle_changes_its_reason(tmp_path):
    # Pinned 9:40 ... 10:29, at 0 % from 10:30 on; the idle window (t-62, t-2] is first free of the
    # hang at 11:35.
    end = at("11:50")
    told = run(tmp_path, hang(after=0.0, stop=end), end=end)
    opened, changed, idle = findings(told)
    assert (opened["at"], opened["since"]) == (clock("10:15"), clock("09:40"))
    assert (changed["at"], changed["reason"], changed["resolution"]) == (
        clock("11:35"),
        "suspected_hang",
        "reason_changed",
    )
    assert changed["gpu_hours"] == round(4 * 49 / 60, 6)  # nothing of the idle hour
    assert (idle["at"], idle["status"], idle["reason"]) == (clock("11:35"), "firing", "idle")
    assert idle["since"] == clock("10:30")  # its own first sample
    assert idle["gpu_hours"] == round(4 * 63 / 60, 6)  # 10:30 to 11:33
    posts = [c for c in told if c["type"] == "slack" and c["method"] == "chat.postMessage"]
    assert len(posts) == 1  # the same incident, on one card


def test_a_hang_that_stops_and_works_again_before_it_counts_as_idle_is_active_again(tmp_path):
    pod = hang(over="10:30", after=0.0)
    samples = {
        gpu: [(t, 80.0 if t >= at("10:50") else v) for t, v in points]
        for gpu, points in pod.samples.items()
    }
    told = run(tmp_path, hang(over="10:30", after=0.0, samples=samples))
    _, ended = findings(told)
    assert ended["resolution"] == "active_again"
    assert ended["gpu_hours"] == round(4 * 49 / 60, 6)
    # Held by the tick 10:45 for the last time: 10:50 sees the first sample of work.
    assert ended["at"] == clock("10:55")


def test_a_job_that_is_deleted_while_it_hangs_is_released(tmp_path):
    told = run(tmp_path, hang(over="11:59", stop=at("10:33"), end=at("10:33")))
    _, ended = findings(told)
    assert (ended["resolution"], ended["at"]) == ("released", clock("10:40"))  # last seen 10:30
    assert ended["gpu_hours"] == round(4 * 52 / 60, 6)  # 9:40 to 10:32


def test_telemetry_that_is_lost_holds_a_hang(tmp_path):
    # The exporter stops after 10:24. The window of 10:35 holds 10:04 ... 10:24, 21 of 30 samples;
    # 80 % are 24. That of 10:30 holds 26.
    told = run(tmp_path, hang(over="11:59", stop=at("10:25")))
    assert [line["status"] for line in findings(told)] == ["firing"]
    lost = [line for line in told if line["type"] == "unknown" and line["detector"] == "idle_gpus"]
    assert [(u["at"], u["subject"], u["reason"]) for u in lost] == [
        (clock("10:35"), SUBJECT, "telemetry_lost")
    ]
    (still,) = [line for line in told[-1]["open"] if line["detector"] == "idle_gpus"]
    assert still["reason"] == "suspected_hang"
    # Counted to what the last tick that saw it had seen: 9:40 to 10:24.
    assert still["gpu_hours"] == round(4 * 44 / 60, 6)


def test_a_gap_in_a_hang_is_not_counted_and_ends_nothing(tmp_path):
    def dark(points):
        return [(t, v) for t, v in points if not at("10:20") <= t < at("10:40")]

    whole = hang(over="11:15", stop=END)
    pod = hang(
        over="11:15",
        samples={g: dark(p) for g, p in whole.samples.items()},
        tensor={g: dark(p) for g, p in whole.tensor.items()},
        watts={g: dark(p) for g, p in whole.watts.items()},
    )
    told = run(tmp_path, pod, end=at("11:30"))
    opened, ended = findings(told)
    assert (opened["since"], ended["since"]) == (clock("09:40"), clock("09:40"))
    assert ended["resolution"] == "active_again"
    # 9:40 to 10:19 and 10:40 to 11:14: nobody saw the 21 minutes between.
    assert ended["gpu_hours"] == round(4 * (39 + 34) / 60, 6)


def test_missed_ticks_tell_the_same(tmp_path):
    told = run(tmp_path, hang(begin="9:00", over="11:00"), tick="20m", start=at("9:50"))
    opened, ended = findings(told)
    # 9:50 is the first tick: (9:18, 9:48] saw nothing else.
    assert (opened["at"], opened["since"]) == (clock("09:50"), clock("09:00"))
    assert ended["gpu_hours"] == round(4 * 119 / 60, 6)  # 9:00 to 10:59


def test_a_pod_younger_than_an_hour_can_hang(tmp_path):
    # Started 9:20, pinned from 9:30 on: too young for idleness until 10:20, not for this.
    born = at("9:20")

    def own(steps):
        return {gpu: [p for p in levels(*steps) if p[0] >= born] for gpu in GPUS}

    pod = RecordedPod(
        name="stuck",
        start=born,
        gpus=4,
        samples=own([(None, 80.0), ("9:30", 100.0)]),
        tensor=own([(None, 0.4), ("9:30", 0.0)]),
    )
    (opened,) = findings(run(tmp_path, pod))
    # (t-32, t-2] lies after 9:29 first at 10:05.
    assert (opened["at"], opened["since"]) == (clock("10:05"), clock("09:30"))


def test_the_job_hangs_from_when_all_of_it_does(tmp_path):
    # GPU-0 is stuck from 9:00 on, the rest works until 9:39.
    samples = {gpu: levels((None, 80.0), ("9:40", 100.0), ("10:30", 80.0)) for gpu in GPUS}
    samples["GPU-0"] = levels((None, 80.0), ("9:00", 100.0), ("10:30", 80.0))
    tensor = {gpu: levels((None, 0.4), ("9:40", 0.0), ("10:30", 0.4)) for gpu in GPUS}
    tensor["GPU-0"] = levels((None, 0.4), ("9:00", 0.0), ("10:30", 0.4))
    told = run(tmp_path, hang(samples=samples, tensor=tensor, draw=None))
    opened, ended = findings(told)
    assert opened["since"] == clock("09:40")
    assert {a["hung_since"] for a in opened["evidence"]["accelerators"]} == {clock("09:40")}
    assert ended["gpu_hours"] == round(4 * 49 / 60, 6)


def test_the_job_stops_hanging_with_the_first_gpu_that_works(tmp_path):
    samples = {gpu: levels((None, 80.0), ("9:40", 100.0), ("10:50", 80.0)) for gpu in GPUS}
    samples["GPU-3"] = levels((None, 80.0), ("9:40", 100.0), ("10:30", 50.0))
    told = run(tmp_path, hang(over="10:50", samples=samples))
    _, ended = findings(told)
    assert (ended["at"], ended["resolution"]) == (clock("10:40"), "active_again")
    assert ended["gpu_hours"] == round(4 * 49 / 60, 6)  # of all four, to 10:29
