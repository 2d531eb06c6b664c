"""A storm of events in a replay: few snapshots, and every tick at its own time."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from local.replay import replay
from tests.recordings import write_recording

START = datetime(2026, 11, 5, 9, 50, tzinfo=UTC)
END = START + timedelta(minutes=15)


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    monkeypatch.setenv("METRICS", "recorded")


def snapshots(folder, begin, seconds):
    """Replay health events that begin at a time, each so many seconds later; times of snapshots."""
    write_recording(folder, [], START, END)
    (folder / "events").mkdir()
    events = [
        {
            "detail-type": "SageMaker HyperPod Cluster Node Health Event",
            "source": "aws.sagemaker",
            "account": "111122223333",
            "time": (begin + timedelta(seconds=after)).isoformat(),
            "region": "us-east-1",
            "detail": {"ClusterName": "ml-shared-01"},
        }
        for after in seconds
    ]
    (folder / "events" / "storm.json").write_text(json.dumps(events))
    done = replay(folder, lambda _: None)
    assert done.failures == 0
    keys = sorted(key for key in done.app.objects.objects if key.startswith("snapshots/"))
    return [key.rpartition("/")[2].removesuffix(".json.gz")[-7:-1] for key in keys]


TICKS = ["095000", "095500", "100000", "100500"]


def test_a_thousand_events_between_two_ticks_are_two_snapshots(tmp_path):
    begin = START + timedelta(minutes=1)
    found = snapshots(tmp_path, begin, [n * 0.06 for n in range(1000)])
    # The first at once; the others wait until a minute later, and one answers them all.
    assert found == sorted([*TICKS, "095100", "095200"])


def test_what_waits_when_a_tick_is_due_is_answered_by_it(tmp_path):
    begin = START + timedelta(minutes=4, seconds=30)
    found = snapshots(tmp_path, begin, [n * 0.06 for n in range(1000)])
    # The tick of 09:55 is taken at its time: nobody's wait moved the clock past it. What came after
    # it has its turn a minute later.
    assert found == sorted([*TICKS, "095430", "095600"])


def test_an_event_of_the_moment_of_a_tick_is_answered_by_one_snapshot(tmp_path):
    found = snapshots(tmp_path, START + timedelta(minutes=5), [-20, 0])
    assert found == sorted([*TICKS, "095440"])
