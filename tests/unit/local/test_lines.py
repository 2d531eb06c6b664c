"""The lines of a replay: what is a finding, and what the steward says of itself."""

from local.lines import FindingLines, finding_line, open_findings
from steward.alerts.model import AlertState
from steward.cluster.findings import DetectorStatus
from tests.unit.alerts.nouns import JUDGED, SUBJECT, a_finding, an_evaluation, fold

FAILED = {**JUDGED, "preemptions": DetectorStatus.FAILED}


def test_the_stewards_own_troubles_are_no_findings():
    # A detector that fails for 15 minutes is a card; CONTRACT: finding lines are about a cluster.
    ticks = ("10:00", "10:05", "10:10", "10:15")
    state = fold([an_evaluation(when, a_finding(), detectors=FAILED) for when in ticks])
    own = [a for a in state.alerts.values() if a.finding.detector == "steward"]
    assert [alert.state for alert in own] == [AlertState.OPEN]
    (found,) = FindingLines().changes(state)
    (left,) = open_findings(state)
    assert found == left == finding_line("ml-shared-01", state.alerts[f"idle_gpus|{SUBJECT}|idle"])


def test_what_was_told_is_not_told_again():
    state = fold([an_evaluation("10:00", a_finding())])
    lines = FindingLines()
    assert [line["status"] for line in lines.changes(state)] == ["firing"]
    assert lines.changes(state) == []
