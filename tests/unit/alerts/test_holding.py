"""Quiet hours, holidays and the daily cap: what waits, and what comes of it."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from steward.alerts.holding import is_quiet
from steward.cluster.policy import Alerting, QuietHours, Severity
from tests.builders import NOON, a_cluster, a_team, at
from tests.unit.alerts.nouns import a_finding, an_evaluation
from tests.unit.alerts.timeline import Timeline, every

NIGHT = QuietHours(begin="22:00", end="06:29")


@pytest.mark.parametrize(
    ("clock", "quiet"),
    [
        ("21:59:59", False),
        ("22:00:00", True),
        ("23:59:59", True),
        ("00:00:00", True),
        ("06:29:40", True),  # the last minute belongs to it
        ("06:30:00", False),
    ],
)
def test_quiet_hours_run_over_midnight_and_include_their_last_minute(
    clock: str, *, quiet: bool
) -> None:
    local = datetime.fromisoformat(f"2026-11-05T{clock}").replace(tzinfo=ZoneInfo("Europe/Madrid"))
    assert is_quiet(Alerting(quiet_hours=(NIGHT,)), local) is quiet


@pytest.mark.parametrize(
    ("day", "clock", "quiet"),
    [
        ("2026-11-06", "23:00", True),  # Friday night
        ("2026-11-07", "05:00", True),  # is still Friday's
        ("2026-11-07", "23:00", False),  # Saturday's does not begin
        ("2026-11-08", "05:00", False),
    ],
)
def test_a_night_belongs_to_the_day_on_which_it_begins(
    day: str, clock: str, *, quiet: bool
) -> None:
    local = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=ZoneInfo("UTC"))
    friday = QuietHours(days=(4,), begin="22:00", end="06:29")
    assert is_quiet(Alerting(quiet_hours=(friday,)), local) is quiet


def test_a_holiday_is_quiet_from_begin_to_end_in_the_clusters_zone() -> None:
    christmas = Alerting(holidays=("2026-12-25",))
    zone = ZoneInfo("Asia/Tokyo")
    for stamp, quiet in (
        ("2026-12-24T14:59:00+00:00", False),
        ("2026-12-24T15:00:00+00:00", True),
        ("2026-12-25T14:59:59+00:00", True),
        ("2026-12-25T15:00:00+00:00", False),
    ):
        assert is_quiet(christmas, datetime.fromisoformat(stamp).astimezone(zone)) is quiet


def quiet_until(end: str) -> Timeline:
    hours = QuietHours(begin="11:00", end=end)
    return Timeline(cluster=a_cluster(alerting=Alerting(quiet_hours=(hours,))))


def test_a_new_warning_waits_and_is_posted_when_they_end() -> None:
    line = quiet_until("13:29")
    for now in every(5, at("12:00"), at("13:25")):
        line.play(an_evaluation(now, a_finding()))
    assert line.posts == []
    line.play(an_evaluation("13:30", a_finding()))
    assert line.posts == [line.card.key]
    assert line.card.content["held"] == {"why": "quiet_hours", "since": "2026-11-05T12:00:00Z"}


def test_a_warning_that_ends_while_it_waits_is_never_posted() -> None:
    line = quiet_until("13:29")
    line.play(an_evaluation("12:00", a_finding()), an_evaluation("12:10"))
    line.play(*(an_evaluation(t) for t in ("13:30", "14:00")))
    assert line.posts == []
    assert (line.card.closed, line.card.held) == (True, "quiet_hours")  # the digest names it


def test_a_page_never_waits_nor_does_what_becomes_one() -> None:
    page = a_finding(severity=Severity.PAGE)
    assert quiet_until("13:29").play(an_evaluation("12:00", page)).posts
    line = quiet_until("13:29").play(an_evaluation("12:00", a_finding()))
    assert line.posts == []
    assert line.play(an_evaluation("12:05", page)).posts == [line.card.key]


def test_edits_of_what_stands_there_go_on() -> None:
    line = Timeline(cluster=a_cluster(alerting=Alerting(quiet_hours=(NIGHT,))))
    line.play(an_evaluation("21:55", a_finding()), an_evaluation("22:05"))
    assert (line.card.content["state"], line.edits) == ("resolved", [line.card.key])


def capped(most: int, **changes: str) -> Timeline:
    teams = (a_team(), a_team("vision"))
    return Timeline(cluster=a_cluster(alerting=Alerting(daily_cap=most), teams=teams, **changes))


def test_a_team_gets_so_many_new_cards_a_day_the_oldest_first() -> None:
    jobs = [a_finding(subject=f"Job/ml/{n}") for n in "abc"]
    other = a_finding(subject="Job/ml/v", team="vision")
    line = capped(2).play(an_evaluation("12:00", *jobs, other))
    assert [key.split("|")[1] for key in line.posts] == ["Job/ml/a", "Job/ml/b", "Job/ml/v"]
    line.play(an_evaluation("18:00", *jobs, other))
    assert len(line.posts) == 3
    line.play(an_evaluation(NOON + timedelta(hours=12), *jobs, other))  # another day
    assert line.posts[-1].split("|")[1] == "Job/ml/c"


def test_the_day_is_the_clusters_own() -> None:
    jobs = [a_finding(subject=f"Job/ml/{n}") for n in "ab"]
    line = capped(1, time_zone="Asia/Tokyo").play(an_evaluation("12:00", *jobs))
    line.play(an_evaluation("14:55", *jobs))
    assert len(line.posts) == 1
    line.play(an_evaluation("15:00", *jobs))  # midnight in Tokyo
    assert len(line.posts) == 2


def test_pages_are_neither_capped_nor_counted() -> None:
    pages = [a_finding(subject=f"Job/ml/p{n}", severity=Severity.PAGE) for n in range(3)]
    line = capped(1).play(an_evaluation("12:00", *pages, a_finding()))
    assert len(line.posts) == 4


def test_without_a_cap_nothing_waits() -> None:
    many = [a_finding(subject=f"Job/ml/{n}") for n in range(60)]
    assert len(Timeline().play(an_evaluation("12:00", *many)).posts) == 60
