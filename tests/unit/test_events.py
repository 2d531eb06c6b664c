"""Every file under events/ is a real payload: it parses, and the template's own rules route it."""

import json
from pathlib import Path

import pytest

from local.routing import read_routes
from steward.errors import PermanentError
from steward.events import (
    EvaluationReady,
    EventEnvelope,
    QueueEvent,
    SnapshotTaken,
    parse,
    parse_request,
)

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py"))


def events(function):
    return sorted((ROOT / "events" / function).glob("*.json"))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_has_events(function):
    assert events(function)


@pytest.mark.parametrize("path", events("take_snapshot"), ids=lambda p: p.stem)
def test_requests_name_the_example_cluster(path):
    batch = parse(QueueEvent, json.loads(path.read_text()), path.name)
    for record in batch.records:
        assert parse_request(record.body, path.name).cluster == "ml-shared-01"


@pytest.mark.parametrize("path", events("evaluate_snapshot"), ids=lambda p: p.stem)
def test_snapshot_taken_matches_the_rule_that_starts_the_function(path):
    event = json.loads(path.read_text())
    parse(SnapshotTaken, parse(EventEnvelope, event, path.name).detail, path.name)
    targets = read_routes(ROOT / "template.yaml").matching("StewardBus", event)
    assert [(t.kind, t.name) for t in targets] == [("function", "evaluate_snapshot")]
    replayed = event | {"replay-name": "july"}
    assert read_routes(ROOT / "template.yaml").matching("StewardBus", replayed) == ()


@pytest.mark.parametrize("path", events("reconcile_alerts"), ids=lambda p: p.stem)
def test_evaluations_are_ready(path):
    batch = parse(QueueEvent, json.loads(path.read_text()), path.name)
    for record in batch.records:
        assert parse(EvaluationReady, record.body, path.name).cluster == "ml-shared-01"


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        ({}, "detail-type"),
        ({"detail-type": "Snapshot Taken", "source": "x", "detail": {}}, "time"),
        (
            {"detail-type": "x", "source": "x", "time": "2026-11-05T12:00:00", "detail": {}},
            "$.time",  # a time without an offset is nobody's time
        ),
        (
            {"detail-type": "x", "source": "x", "time": "2026-11-05T12:00:00Z", "detail": "{}"},
            "detail",
        ),
    ],
)
def test_what_is_no_event_is_refused_with_its_fault(event, fault):
    with pytest.raises(PermanentError) as refused:
        parse(EventEnvelope, event, "the event")
    assert "the event" in str(refused.value)
    assert fault in str(refused.value)


def test_a_time_with_another_offset_is_the_same_time():
    body = json.dumps({"cluster": "ml", "requested_at": "2026-11-05T13:00:00+01:00"})
    assert parse_request(body, "m").at.isoformat() == "2026-11-05T13:00:00+01:00"
    assert parse_request(body, "m").at.timestamp() == 1793880000
