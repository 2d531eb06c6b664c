"""Metrics travel in the log: what a line holds, and where it goes."""

import io
import json
from datetime import datetime

import pytest

from steward.metrics import NAMESPACE, UNITS, emit
from steward.telemetry import logger


@pytest.fixture
def log(monkeypatch):
    """Where the logger writes."""
    stream = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", stream)
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "gpu-steward")
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED", raising=False)
    return stream


def test_a_line_is_what_cloudwatch_makes_metrics_of(log):
    emit(Coverage=0.75, Findings=12)
    (line,) = log.getvalue().splitlines()
    said = json.loads(line)
    (directive,) = said["_aws"]["CloudWatchMetrics"]
    assert directive == {
        "Namespace": NAMESPACE,
        "Dimensions": [["service"]],  # one: each further value of one is a metric to pay for
        "Metrics": [{"Name": "Coverage", "Unit": "None"}, {"Name": "Findings", "Unit": "Count"}],
    }
    assert (said["service"], said["Coverage"], said["Findings"]) == ("gpu-steward", [0.75], [12.0])


def test_one_line_does_not_carry_what_an_earlier_one_did(log):
    emit(Findings=1)
    emit(Lateness=2.5)
    _, second = map(json.loads, log.getvalue().splitlines())
    assert "Findings" not in second


def test_what_is_not_known_is_not_written(log):
    emit(OldestSnapshotAge=None)
    assert log.getvalue() == ""
    emit(Coverage=None, Findings=0)
    said = json.loads(log.getvalue())
    assert "Coverage" not in said
    assert said["Findings"] == [0.0]  # zero is a number


def test_a_name_that_nobody_watches_is_a_mistake(log):
    with pytest.raises(KeyError):
        emit(Finding=1)
    assert log.getvalue() == ""


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARN", "ERROR"])
def test_no_level_of_the_log_drops_the_line(log, monkeypatch, level):
    # Lambda takes a line for INFO that lacks a level or a time (RFC 3339), and drops what is below.
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", level)
    emit(OldestSnapshotAge=1)
    said = json.loads(log.getvalue())
    assert said["level"] == level
    assert datetime.fromisoformat(said["timestamp"]).tzinfo is not None


def test_nothing_goes_to_stdout_where_the_log_does_not(log, capsys):
    emit(**dict.fromkeys(UNITS, 1.0))
    assert capsys.readouterr().out == ""


def test_a_rig_can_switch_them_off(log, monkeypatch):
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    emit(Findings=1)
    assert log.getvalue() == ""
