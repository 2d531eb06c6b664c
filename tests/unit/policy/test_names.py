"""Names, days, zones and endpoints: what is accepted, and what it becomes."""

import json
from pathlib import Path

import pytest

from tests.unit.policy.documents import ENDPOINT, edited, faults, resolved


@pytest.mark.parametrize(
    ("day", "becomes"),
    [
        ("mon", "Monday"),
        ("MON", "Monday"),
        ("Monday", "Monday"),
        ("Tues", "Tuesday"),
        ("wed", "Wednesday"),
        ("WED", "Wednesday"),
        ("Wednesday", "Wednesday"),
        ("thurs", "Thursday"),
        ("fri", "Friday"),
        ("SUNDAY", "Sunday"),
    ],
)
def test_every_usual_spelling_of_a_day_is_one_day(day: str, becomes: str, path: Path) -> None:
    assert resolved(path, edited("      day: Monday", f"      day: {day}")).digest_day == becomes


@pytest.mark.parametrize("day", ["m", "mo", "Mondays", "Mon.", "1", "every"])
def test_other_spellings_of_a_day_are_refused(day: str, path: Path) -> None:
    (line,) = faults(path, edited("      day: Monday", f"      day: {day}"))
    assert "is not a day of the week" in line


@pytest.mark.parametrize("zone", ["localtime", "Factory", "europe/madrid", "UTC+1", "../UTC", ""])
def test_a_zone_that_machines_read_differently_is_refused(zone: str, path: Path) -> None:
    (line,) = faults(path, edited("time_zone: UTC", f'time_zone: "{zone}"'))
    assert "is not an IANA time zone" in line


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("    tick: 5m", "    tick: 24h", "tick_minutes", 1440),
        ("    tick: 5m", "    tick: 1d", "tick_minutes", 1440),
        ("    tick: 5m", "    tick: 300s", "tick_minutes", 5),
        ("time_zone: UTC", "time_zone: Europe/Madrid", "time_zone", "Europe/Madrid"),
        ('"09:00"', "07:45", "digest_time", "07:45"),
        ('    # account: "012345678901"', '    account: "012345678901"', "account", "012345678901"),
    ],
)
def test_a_valid_value_becomes(old: str, new: str, field: str, value: object, path: Path) -> None:
    assert getattr(resolved(path, edited(old, new)), field) == value


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://localhost:9090",
        "http://127.0.0.1:1/prometheus",
        "http://[::1]:9090",
        "https://a.b/c",
    ],
)
def test_an_endpoint_is_https_or_this_machine(endpoint: str, path: Path) -> None:
    text = edited(ENDPOINT, endpoint)
    assert resolved(path, text).metrics.endpoint == endpoint
    # one form: a slash at the end is the same endpoint
    assert resolved(path, edited(ENDPOINT, f"{endpoint}/")).metrics.endpoint == endpoint


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://prometheus.example.com",
        "http://127.0.0.1.example.com",
        "http://10.0.0.1:9090",
        "ftp://localhost",
        "https://",
        "https://user:secret@example.com",
        "https://example.com/api/v1",
        "https://example.com/api/v1/",
        "https://example.com/?a=b",
        "https://example.com:port",
        "https://[::1",
    ],
)
def test_another_endpoint_is_refused(endpoint: str, path: Path) -> None:
    (line,) = faults(path, edited(ENDPOINT, json.dumps(endpoint)))
    assert "clusters[0].metrics.endpoint: " in line
