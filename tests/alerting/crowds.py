"""Much at once, and names that nobody would choose."""

from pathlib import Path

from tests.alerting.kit import RESEARCH, look, policy, waiting
from tests.queues.scene import Recorded, at

TEAMS = tuple(f"team-{number:03}" for number in range(120))
FINDINGS = 60
URGENT = 6
"""Findings that page, of all of them: their names come last."""

JOBS = 200

HOSTILE = (
    "<!channel>",
    "<!here|you>",
    "<@U0ANA>",
    "<https://evil.example|log in>",
    "a&b<c",
    "&amp;lt;",
    "*bold* _it_ ~no~ `code`",
    "```",
    "line\nbreak",
    "x" * 63,
    "équipe-β",
    "チーム-研究-训练",
    "فريق-البحث",
    "👩‍👩‍👧‍👦-e\u0301",
    "\u202egnp.exe",
)
"""Names of queues and, with a number before them, of the jobs that wait for them."""


def channel(team: str) -> str:
    """The channel's id of a team."""
    return f"C0{team.replace('-', '').upper():0>9}"


def _teams(folder: Path) -> None:
    policy(folder, {team: channel(team) for team in TEAMS})
    jobs = [waiting("train", at("08:00"), team=team) for team in TEAMS]
    look(folder, at("09:00"), jobs=jobs, teams=TEAMS)


def _findings(folder: Path) -> None:
    urgent = {"priority_classes": ["production-training"], "pending": {"severity": "page"}}
    policy(folder, {"research": RESEARCH}, overrides=[urgent])
    jobs = [
        waiting(
            f"job-{number:02}",
            at("08:00"),
            queue=f"gone-{number:02}",
            priority_class="production-training-priority"
            if number >= FINDINGS - URGENT
            else "experimentation-priority",
        )
        for number in range(FINDINGS)
    ]
    look(folder, at("09:00"), jobs=jobs, teams=["research"])


def _jobs(folder: Path) -> None:
    policy(folder, {"research": RESEARCH})
    jobs = [waiting(f"sweep-{number:03}", at("08:00"), gpus=1) for number in range(JOBS)]
    look(folder, at("09:00"), jobs=jobs, teams=["research"])


def _hostile(folder: Path) -> None:
    policy(folder, {"research": RESEARCH})
    jobs = [
        waiting(f"{number}-{name}"[:63], at("08:00"), queue=name)
        for number, name in enumerate(HOSTILE)
    ]
    look(folder, at("09:00"), jobs=jobs, teams=["research"])


RECORDINGS = (
    Recorded(
        "teams-120",
        at("10:00"),
        at("10:10"),
        "5m",
        "120 teams, each with a job that waits for a queue that does not exist. Right: each team's "
        "channel has one card, of its own job, from 10:00 on, and nothing else is posted.",
        _teams,
    ),
    Recorded(
        "findings-60",
        at("10:00"),
        at("10:10"),
        "5m",
        "60 jobs of one team wait, each for another queue that does not exist; the last six are of a "
        "class whose waiting pages. Right: 60 cards at 10:00, the six first.",
        _findings,
    ),
    Recorded(
        "jobs-200",
        at("10:00"),
        at("10:10"),
        "5m",
        "200 jobs of one GPU wait for the same queue, which does not exist. Right: 200 findings and "
        "one card, which says 200 jobs and 200 GPUs.",
        _jobs,
    ),
    Recorded(
        "hostile-names",
        at("10:00"),
        at("10:10"),
        "5m",
        "Jobs and queues have names that would mention, link, format, break lines or blocks, or run "
        "from right to left. Right: a card for each, none refused, nobody mentioned, nothing linked.",
        _hostile,
    ),
)
