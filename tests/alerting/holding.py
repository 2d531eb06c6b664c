"""When people are told: nights, enough for one day, and nobody who answers."""

from pathlib import Path

from tests.alerting.kit import RESEARCH, incident_card, look, policy, slack, waiting
from tests.alerting.presses import pressed
from tests.queues.kit import Job
from tests.queues.scene import Recorded, at

ONCALL = "C0GPUONCALL1"
TOPIC = "arn:aws:sns:us-east-1:111122223333:pager"

PAGES = {"priority_classes": ["production-training"], "pending": {"severity": "page"}}
"""Jobs of this class page as soon as they wait for a queue that does not exist."""


def _job(name: str, when: str, *, pages: bool = False, team: str = "research", day: int = 0) -> Job:
    """A job that waits for a queue of its own name."""
    kind = "production-training" if pages else "experimentation"
    return waiting(
        name, at(when, day), queue=f"gone-{name}", team=team, priority_class=f"{kind}-priority"
    )


def _unanswered(folder: Path) -> None:
    escalation = {"after": "30m", "channel": "gpu-oncall", "mention": "here", "topic_arn": TOPIC}
    policy(
        folder,
        {"research": RESEARCH},
        channels={"gpu-oncall": ONCALL},
        overrides=[PAGES],
        cluster={"alerting": {"escalation": escalation}},
    )
    unseen, known = _job("unseen", "08:00", pages=True), _job("known", "08:00", pages=True)
    quiet = _job("quiet", "08:00")
    look(folder, at("09:00"), jobs=[unseen, known, quiet], teams=["research"])
    look(folder, at("11:04"), jobs=[known, quiet], teams=["research"])
    card = incident_card("pending|research|missing_queue|gone-known", at("10:00"))
    slack(folder, pressed(at("10:05:30"), "acknowledge", card))


def _night(folder: Path) -> None:
    hours = {"from": "23:00", "to": "07:00"}
    policy(
        folder,
        {"research": RESEARCH},
        overrides=[PAGES],
        cluster={"time_zone": "Europe/Madrid", "alerting": {"quiet_hours": [hours]}},
    )
    before, more = _job("before", "20:00"), waiting("more", at("20:30"), queue="gone-before")
    waits, passes = _job("waits", "22:30"), _job("passes", "22:30")
    pages = _job("pages", "20:00", pages=True)
    for when, day, jobs in (
        ("21:00", 0, [before]),
        ("22:55", 0, [before, waits, passes]),
        ("00:25", 1, [before, more, waits, passes]),
        ("00:55", 1, [before, more, waits, passes, pages]),
        ("01:55", 1, [before, more, waits, pages]),
    ):
        look(folder, at(when, day), jobs=jobs, teams=["research"])


def _capped(folder: Path) -> None:
    teams = {"research": RESEARCH, "other": "C0GPUOTHER01"}
    policy(folder, teams, overrides=[PAGES], cluster={"alerting": {"daily_cap": 2}})
    one, two, three, four = (_job(name, "08:00") for name in ("one", "two", "three", "four"))
    page, other = _job("page", "08:00", pages=True), _job("else", "08:00", team="other")
    for when, jobs in (
        ("09:00", [one]),
        ("10:25", [one, two]),
        ("10:55", [one, two, three]),
        ("11:25", [one, two, three, four]),
        ("11:55", [one, two, three, four, page, other]),
        ("12:55", [one, two, four, page, other]),
    ):
        look(folder, at(when), jobs=jobs, teams=[*teams])


RECORDINGS = (
    Recorded(
        "page-unanswered",
        at("10:00"),
        at("11:15"),
        "5m",
        "Two jobs page at 10:00 and one does not; one of the two is acknowledged at 10:05:30, the "
        "other is gone from 11:04 on, last seen at 11:00. Right: at 10:30 the other is escalated, "
        "once: a note that mentions, a copy in the second channel, one message to the pager; at "
        "11:10 card and copy read resolved and the thread says so.",
        _unanswered,
    ),
    Recorded(
        "quiet-night",
        at("21:50"),
        at("06:20", 1),
        "10m",
        "Quiet hours from 23:00 to 07:00 in Madrid are 22:00 to 06:00 UTC, the last minute included. "
        "A card from before them changes at 00:30; two jobs wait from 23:00 on, one of them until "
        "02:00; one pages at 01:00. Right: the change is an edit at 00:30, the page is posted at "
        "01:00, the one that still waits at 06:10, and the one that passed never.",
        _night,
    ),
    Recorded(
        "daily-cap",
        at("10:00"),
        at("00:30", 1),
        "30m",
        "Two cards a team and day. Jobs of one team wait from 10:00, 10:30, 11:00 and 11:30 on, the "
        "third until 13:00; a page of it and a job of another team come at 12:00. Right: cards at "
        "10:00 and 10:30, two more at 12:00, the third never, the fourth at 00:00.",
        _capped,
    ),
)
