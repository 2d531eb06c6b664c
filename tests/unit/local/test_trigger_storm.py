"""The stage that storms are played on does as Lambda's pollers do, and the same every time."""

from datetime import timedelta

import pytest

from local import bench_triggers, trigger_storm
from local.replay import ROOT
from local.routing import load_template
from local.stage import Stage
from local.trigger_storm import BATCH, BEGIN, CONCURRENCY, TIMEOUT, WINDOW, Storm, play
from steward.usecases.serve_requests import Served
from tests.builders import a_cluster

CLUSTER = a_cluster()


def test_the_stage_is_set_as_the_template_has_it():
    function = load_template(ROOT / "template.yaml")["Resources"]["TakeSnapshot"]["Properties"]
    source = function["Events"]["SnapshotRequest"]["Properties"]
    assert function["Timeout"] == TIMEOUT
    assert source["BatchSize"] == BATCH
    assert source["MaximumBatchingWindowInSeconds"] == WINDOW.total_seconds()
    assert source["ScalingConfig"]["MaximumConcurrency"] == CONCURRENCY


def test_actors_take_turns_in_the_order_of_their_times():
    stage = Stage(BEGIN)
    seen = []

    def actor(name, *seconds):
        for each in seconds:
            stage.sleep(each)
            seen.append((name, (stage.now() - BEGIN).total_seconds()))

    stage.spawn(lambda: actor("a", 1, 2))
    stage.spawn(lambda: actor("b", 2, 2))
    stage.run()
    assert seen == [("a", 1.0), ("b", 2.0), ("a", 3.0), ("b", 4.0)]


def test_what_an_actor_raises_ends_the_run():
    stage = Stage(BEGIN)

    def fail():
        stage.sleep(1)
        raise ValueError("broken")

    stage.spawn(fail)
    with pytest.raises(ValueError, match="broken"):
        stage.run()


@pytest.fixture
def batches(monkeypatch):
    """Serve nothing, for a minute; when each batch was handed over, and of what size."""
    seen = []

    def serve(records, clusters, now, take, turns, left):
        seen.append(((now - BEGIN).total_seconds(), len(records)))
        turns._clock.sleep(60)
        return Served(outcomes=(), failed_messages=(), dropped=0, answered=0)

    monkeypatch.setattr(trigger_storm, "serve_requests", serve)
    return seen


def test_a_batch_is_handed_over_when_it_is_full_or_its_window_ends(batches, monkeypatch):
    monkeypatch.setattr(trigger_storm, "POLLERS", 1)
    play(Storm(events=(0.0,) * (BATCH + 1) + (30.0,)), CLUSTER)
    assert batches == [(0.0, BATCH), (20.0, 1), (50.0, 1)]


def test_no_more_run_at_once_than_lambda_lets(batches):
    played = play(Storm(events=tuple(n * 0.06 for n in range(1000))), CLUSTER)
    assert (played.together, played.invocations) == (CONCURRENCY, len(batches))
    assert sum(size for _, size in batches) == 1000
    # The sixth waits until one of the first five is done.
    starts = sorted(start for start, _ in batches)
    assert starts[CONCURRENCY] == starts[0] + timedelta(minutes=1).total_seconds()


def test_the_same_storm_is_played_the_same_every_time():
    storm = Storm(events=tuple(n * 0.06 for n in range(500)), ticks=(20.0,), seed=7)
    assert play(storm, CLUSTER) == play(storm, CLUSTER)


def test_the_bench_keeps_to_its_goal_and_says_so(capsys):
    assert bench_triggers.main() == 0
    assert "met at most 3 snapshots" in capsys.readouterr().out


def test_the_bench_says_what_it_missed(capsys, monkeypatch):
    monkeypatch.setattr("local.bench_triggers.MOST", 1)
    monkeypatch.setattr("local.bench_triggers.DURATIONS", (2.0,))
    assert bench_triggers.main() == 1
    assert "MISSED at most 1 snapshots" in capsys.readouterr().out
