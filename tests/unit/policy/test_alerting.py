"""Who is told how loudly and when: what each key resolves to, and each mistake in one of them."""

from pathlib import Path

import pytest

from local.policy import load
from steward.cluster.policy import (
    Alerting,
    Channel,
    Escalation,
    People,
    QuietHours,
    Severity,
)
from tests.unit.policy.documents import EXAMPLE, ZONE, added, alerting, edited, faults, slack


def resolved(path: Path, text: str) -> Alerting:
    path.write_text(text, encoding="utf-8")
    return load(path).clusters[0].alerting


def test_the_example_tells_everything_at_once_and_escalates_after_thirty_minutes() -> None:
    policy = load(EXAMPLE)
    assert policy.clusters[0].alerting == Alerting(escalation=Escalation(after_minutes=30))
    assert policy.people == People(users={}, lookup=False, exempters=())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("{}", Alerting()),
        ("{escalation: {}}", Alerting()),
        ("{daily_cap: 0, reminder: never, mention_owners: never}", Alerting()),
        ("{escalation: {mention: here}}", Alerting(escalation=Escalation(mention="here"))),
        ("{mention_owners: warn}", Alerting(mention_owners=Severity.WARN)),
    ],
)
def test_what_a_block_leaves_out_is_as_without_the_block(
    path: Path, body: str, expected: Alerting
) -> None:
    assert resolved(path, edited(ZONE, f"{ZONE}    alerting: {body}\n")) == expected


def test_every_key_has_its_meaning(path: Path) -> None:
    text = alerting(
        """      quiet_hours:
        - {days: [FRI, wednesday, wed], from: "22:00", to: "06:29"}
        - {from: "12:00", to: "12:59"}
      holidays: [2026-12-26, 2026-12-25, 2026-12-25]
      daily_cap: 12
      reminder: 2d
      mention_owners: page
      escalation:
        after: 45m
        channel: gpu-platform
        mention: S0ONCALL12
        topic_arn: arn:aws:sns:us-east-1:012345678901:pager
"""
    )
    assert resolved(path, text) == Alerting(
        quiet_hours=(
            QuietHours(days=(2, 4), begin="22:00", end="06:29"),  # Monday is 0
            QuietHours(begin="12:00", end="12:59"),
        ),
        holidays=("2026-12-25", "2026-12-26"),
        daily_cap=12,
        reminder_hours=48,
        mention_owners=Severity.PAGE,
        escalation=Escalation(
            after_minutes=45,
            channel=Channel(id="C0GPUPLATF01", name="gpu-platform"),
            mention="S0ONCALL12",
            topic_arn="arn:aws:sns:us-east-1:012345678901:pager",
        ),
    )


@pytest.mark.parametrize("day", ["Thursday", "thursday", "THU", "thu", "Thur", "thurs"])
def test_every_usual_spelling_of_a_day_is_that_day(path: Path, day: str) -> None:
    text = alerting(f'      quiet_hours: [{{days: [{day}], from: "20:00", to: "21:00"}}]\n')
    assert resolved(path, text).quiet_hours[0].days == (3,)


def test_addresses_compare_in_lower_case(path: Path) -> None:
    text = slack(
        "  users: {Ana@Example.com: U0ANA}\n  lookup_users: true\n"
        "  may_exempt: [Bo@example.com, bo@example.com]\n"
    )
    path.write_text(text, encoding="utf-8")
    assert load(path).people == People(
        users={"ana@example.com": "U0ANA"}, lookup=True, exempters=("bo@example.com",)
    )


@pytest.mark.parametrize(
    ("text", "key", "message", "remedy"),
    [
        (
            alerting("      quiet_hour: []\n"),
            "clusters[0].alerting.quiet_hour",
            "is not a known key",
            "did you mean quiet_hours?",
        ),
        (
            alerting('      quiet_hours: [{days: [Frday], from: "20:00", to: "21:00"}]\n'),
            "clusters[0].alerting.quiet_hours[0].days[0]",
            '"Frday" is not a day of the week',
            "write Monday, MON or mon",
        ),
        (
            alerting('      quiet_hours: [{from: "20:00", to: "24:00"}]\n'),
            "clusters[0].alerting.quiet_hours[0].to",
            '"24:00" is not a time of day',
            'write "HH:MM"',
        ),
        (
            alerting('      quiet_hours: [{from: "20:00", to: "20:00"}]\n'),
            "clusters[0].alerting.quiet_hours[0].to",
            "20:00 is the begin as well",
            "for a whole day write from 00:00 to 23:59",
        ),
        (
            alerting('      quiet_hours: [{from: "20:00"}]\n'),
            "clusters[0].alerting.quiet_hours[0].to",
            "is missing",
            "add it: Last minute, HH:MM",
        ),
        (
            alerting("      holidays: [2026-02-30]\n"),
            "clusters[0].alerting.holidays[0]",
            "is not a date",
            "write YYYY-MM-DD",
        ),
        (
            alerting("      daily_cap: -1\n"),
            "clusters[0].alerting.daily_cap",
            "-1: it should be greater than or equal to 0",
            "expected: Most new cards of severity warn a team and day, 0 to 1000",
        ),
        (
            alerting("      mention_owners: info\n"),
            "clusters[0].alerting.mention_owners",
            '"info" is not allowed',
            "allowed are page, warn, never",
        ),
        (
            alerting("      escalation: {after: 1m}\n"),
            "clusters[0].alerting.escalation.after",
            '"1m" is not a duration of 5m to 24h',
            "write a number and a unit",
        ),
        (
            alerting("      escalation: {channel: gpu-platfrm}\n"),
            "clusters[0].alerting.escalation.channel",
            "there is no channel gpu-platfrm",
            "did you mean gpu-platform?",
        ),
        (
            alerting("      escalation: {chanel: gpu-platform}\n"),
            "clusters[0].alerting.escalation.chanel",
            "is not a known key",
            "did you mean channel?",
        ),
        (
            alerting("      escalation: {mention: C0GPUPLATF01}\n"),
            "clusters[0].alerting.escalation.mention",
            '"C0GPUPLATF01" is not somebody whom a message can mention',
            "write a user id",
        ),
        (
            alerting("      escalation: {mention: everyone}\n"),
            "clusters[0].alerting.escalation.mention",
            '"everyone" is not somebody whom a message can mention',
            "write a user id",
        ),
        (
            alerting("      escalation: {topic_arn: pager}\n"),
            "clusters[0].alerting.escalation.topic_arn",
            '"pager" is not the ARN of an SNS topic',
            "PagerTopicArns",
        ),
        (
            slack("  users: {ana@example.com: ana}\n"),
            "slack.users.ana@example.com",
            '"ana" is not a Slack user id',
            "copy it from the member's profile",
        ),
        (
            slack("  users: {ana: U0ANA}\n"),
            "slack.users.ana",
            '"ana" is not an address',
            "write one such as",
        ),
        (
            slack("  lookup_user: true\n"),
            "slack.lookup_user",
            "is not a known key",
            "did you mean lookup_users?",
        ),
        (
            slack("  lookup_users: yes\n"),
            "slack.lookup_users",
            '"yes": it should be a valid boolean',
            "expected: Whether addresses that users lacks are looked up",
        ),
        (
            slack("  users: {ana@example.com: U0ANA, Ana@example.com: U0ANB}\n"),
            "slack.users.Ana@example.com",
            "Ana@example.com is ana@example.com in another case",
            "keep one of the two",
        ),
        (
            slack("  may_exempt: [ana]\n"),
            "slack.may_exempt[0]",
            '"ana" is not an address',
            "write one such as",
        ),
    ],
)
def test_a_mistake_is_one_fault_at_its_line_and_key_with_its_remedy(
    path: Path, text: str, key: str, message: str, remedy: str
) -> None:
    (fault,) = faults(path, text)
    what, how = fault.split("; ", 1)
    assert what.startswith(f"{path}:{added(text)}: {key}: ")
    assert message in what
    assert remedy in how


@pytest.mark.parametrize("reminder", ["never", "1h"])
def test_a_reminder_may_be_never(path: Path, reminder: str) -> None:
    hours = {"never": 0, "1h": 1}[reminder]
    assert resolved(path, alerting(f"      reminder: {reminder}\n")).reminder_hours == hours


@pytest.mark.parametrize("reminder", ["90m", "soon", "0h"])
def test_a_reminder_is_whole_hours_or_never(path: Path, reminder: str) -> None:
    (told,) = faults(path, alerting(f"      reminder: {reminder}\n"))
    assert "clusters[0].alerting.reminder: " in told
    assert "is not a duration of 1h to 30d in whole hours, or never" in told
