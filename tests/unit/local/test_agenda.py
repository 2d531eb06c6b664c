"""In which order a recording is played: by time, and at the same time what came before the tick."""

import json
from datetime import UTC, datetime, timedelta

from local.recording import Recording
from local.simulation import _agenda

NINE = datetime(2026, 11, 2, 9, tzinfo=UTC)
HEADER = "cluster: c\nfrom: 2026-11-02T09:00:00Z\nto: 2026-11-02T09:10:00Z\n"


def agenda(folder, *, presses=(), events=()):
    (folder / "recording.yaml").write_text(HEADER)
    for name, entries in (("slack", presses), ("events", events)):
        (folder / name).mkdir()
        (folder / name / "a.json").write_text(json.dumps(list(entries)))
    played = _agenda(Recording.open(folder))
    return [((at - NINE) // timedelta(minutes=1), kind) for at, kind, _ in played]


def press(when):
    return {"time": f"2026-11-02T{when}Z", "kind": "command", "body": "command=x"}


def event(when, **more):
    return {"time": f"2026-11-02T{when}Z", **more}


TICKS = [(0, "tick"), (5, "tick"), (10, "tick")]


def test_at_the_same_time_events_come_first_then_presses_then_the_tick(tmp_path):
    played = agenda(tmp_path, presses=[press("09:05:00")], events=[event("09:05:00")])
    assert played == [(0, "tick"), (5, "event"), (5, "press"), (5, "tick"), (10, "tick")]


def test_only_what_happened_within_the_recording_is_played(tmp_path):
    outside = [press("08:59:59"), press("09:10:01")]
    inside = [press("09:00:00"), press("09:10:00")]
    played = agenda(tmp_path, presses=outside + inside, events=[event("08:59:59")])
    assert played == [(0, "press"), *TICKS[:2], (10, "press"), TICKS[2]]


def test_an_event_that_is_delivered_later_is_played_then(tmp_path):
    late = event("08:30:00", delivered="2026-11-02T09:07:00Z")
    assert agenda(tmp_path, events=[late]) == [*TICKS[:2], (7, "event"), TICKS[2]]
