"""The recordings of Slack themselves, and what holds for every line that they lead to."""

import filecmp
import json
from itertools import pairwise

import pytest

from local.lines import dump
from local.recording import Recording
from local.replay import replay
from tests.alerting.every import EVERY
from tests.alerting.kit import RECORDINGS
from tests.alerting.told import Told, told
from tests.queues.scene import size, stamp

NAMES = [one.folder for one in EVERY]


@pytest.fixture(autouse=True)
def recorded_metrics(monkeypatch):
    """The in-process reader: that it equals a real Prometheus is another test's business."""
    monkeypatch.setenv("METRICS", "recorded")


def test_no_recording_is_there_that_nobody_describes():
    assert {path.name for path in RECORDINGS.iterdir()} == set(NAMES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.folder)
def test_a_recording_is_small_and_what_its_description_writes(tmp_path, one):
    """`python -m tests.alerting` writes them; nobody edits one by hand."""
    written, kept = one.record(tmp_path), RECORDINGS / one.folder
    names = sorted(str(p.relative_to(written)) for p in written.rglob("*") if p.is_file())
    assert names == sorted(str(p.relative_to(kept)) for p in kept.rglob("*") if p.is_file())
    assert filecmp.cmpfiles(written, kept, names, shallow=False) == (names, [], [])
    assert size(kept) < 300_000
    assert "Right:" in Recording.open(kept).note


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_in_order_and_the_summary_is_the_last(name):
    lines = told(name).lines
    assert [a["at"] <= b["at"] for a, b in pairwise(lines)] == [True] * (len(lines) - 1)
    assert [line["type"] for line in lines].index("summary") == len(lines) - 1


@pytest.mark.parametrize("name", NAMES)
def test_two_runs_print_the_same_bytes(name):
    first, second = told(name).lines, Told(RECORDINGS / name).lines
    assert [dump(line) for line in first] == [dump(line) for line in second]


@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_a_line_and_counted(name):
    one = told(name)
    assert [{"type": "slack", **call} for call in one.run.rig.calls] == one.of("slack")
    taken = [line["method"] for line in one.of("slack") if line["response"].get("ok")]
    posts, updates = taken.count("chat.postMessage"), taken.count("chat.update")
    assert one.lines[-1]["slack"] == {"posts": posts, "updates": updates}


@pytest.mark.parametrize("name", NAMES)
def test_no_line_holds_a_secret(name):
    text = json.dumps(told(name).lines)
    assert "xoxb" not in text
    assert "v0=" not in text


@pytest.mark.parametrize("name", NAMES)
def test_no_finding_line_is_about_the_steward_itself(name):
    one = told(name)
    assert "steward" not in {line["detector"] for line in one.of("finding")}
    assert "steward" not in {line["detector"] for line in one.lines[-1]["open"]}


def test_a_press_that_is_turned_away_is_a_failure_and_the_replay_goes_on(monkeypatch):
    # As if the app's secret had been changed in Slack and not here.
    monkeypatch.setattr("local.simulation.SLACK_SECRET", {"signing_secret": "another"})
    lines = []
    run = replay(RECORDINGS / "snooze-ends", lines.append)
    assert run.failures == 1
    (failure,) = [line for line in lines if line["type"] == "failure"]
    assert (failure["at"], failure["function"]) == (stamp("10:02"), "answer_slack")
    assert failure["error"].startswith("answered 401")
    assert (lines[-1]["type"], lines[-1]["failures"], lines[-1]["ticks"]) == ("summary", 1, 27)
