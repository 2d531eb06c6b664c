"""What `explain` says of people and alerting: each value, and the line that it came from."""

from pathlib import Path

import pytest

from local.policy.__main__ import main
from tests.unit.policy.documents import EXAMPLE, added, alerting, slack


def explained(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What `explain` says of people and alerting, by key."""
    assert main(["explain", str(path), "--cluster", "ml-shared-01", "--team", "research"]) == 0
    rows = (row.split(maxsplit=1) for row in capsys.readouterr().out.splitlines())
    told = {key: " ".join(rest.split()) for key, rest in rows}
    return {key: told[key] for key in told if key.startswith(("slack.", "alerting."))}


def test_explain_tells_every_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(EXAMPLE, capsys) == {
        "slack.users": "- default",
        "slack.lookup_users": "false default",
        "slack.may_exempt": "- default",
        "alerting.quiet_hours": "- default",
        "alerting.holidays": "- default",
        "alerting.daily_cap": "0 default",
        "alerting.reminder": "never default",
        "alerting.mention_owners": "never default",
        "alerting.escalation.after": "30m default",
        "alerting.escalation.channel": "- default",
        "alerting.escalation.mention": "- default",
        "alerting.escalation.topic_arn": "- default",
    }


def test_explain_tells_the_line_of_what_is_written(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hours = '{days: [FRI, wed], from: "22:00", to: "06:29"}, {from: "12:00", to: "12:59"}'
    text = alerting(f"      quiet_hours: [{hours}]\n      holidays: [2026-12-26, 2026-12-25]\n")
    path.write_text(text, encoding="utf-8")
    told, last = explained(path, capsys), added(text)
    assert told["alerting.quiet_hours"] == (
        f"FRI wed 22:00 to 06:29, every day 12:00 to 12:59 {path}:{last - 1}"
    )
    assert told["alerting.holidays"] == f"2026-12-26, 2026-12-25 {path}:{last}"
    text = slack("  users: {ana@example.com: U0ANA}\n  lookup_users: true\n")
    path.write_text(text, encoding="utf-8")
    told, last = explained(path, capsys), added(text)
    assert told["slack.users"] == f"ana@example.com U0ANA {path}:{last - 1}"
    assert told["slack.lookup_users"] == f"true {path}:{last}"
