"""Who may exempt, by the dialog and by the command, and what nobody is told of for a while."""

from pathlib import Path

from tests.alerting.kit import RESEARCH, look, policy, slack, wait_card, waiting
from tests.alerting.presses import pressed, submitted, typed
from tests.queues.scene import Recorded, at

OPENED = at("10:00")
FIRST = wait_card(OPENED)
SECOND = wait_card(OPENED, queue="gone-too")

PEOPLE = {
    "users": {"research@example.com": "U0ANA", "bo@example.com": "U0BO"},
    "may_exempt": ["bo@example.com"],
}
"""Ana owns the team, Bo may exempt anything, and nobody knows Mallory."""

REASON = "rerun for <the paper> & co"


def _exempted(folder: Path) -> None:
    policy(folder, {"research": RESEARCH}, people=PEOPLE)
    first = waiting("train", at("08:00"))
    second = waiting("tune", at("08:00"), queue="gone-too")
    later = waiting("train-again", at("10:12"))
    look(folder, at("09:00"), jobs=[first, second], teams=["research"])
    look(folder, at("10:14"), jobs=[first, second, later], teams=["research"])
    slack(
        folder,
        pressed(at("10:02:00"), "exempt", FIRST, user="U0MALLORY"),
        submitted(at("10:03:00"), FIRST, span="7d", reason="mine", user="U0MALLORY"),
        typed(at("10:04:00"), f"exempt {FIRST} 7d mine", user="U0MALLORY"),
        pressed(at("10:07:00"), "exempt", FIRST),
        submitted(at("10:08:00"), FIRST, span="7d", reason=REASON),
        submitted(at("10:08:00"), FIRST, span="7d", reason=REASON, again=3),
        typed(at("10:21:00"), f"exempt {SECOND} 2w moves to another cluster", user="U0BO"),
    )


RECORDINGS = (
    Recorded(
        "exempt",
        OPENED,
        at("10:40"),
        "5m",
        "Two jobs wait, each for a queue that does not exist. Mallory, whom nobody knows, tries to "
        "exempt the first by the dialog and by the command; Ana, who owns the team, does it at 10:08 "
        "for seven days, and Slack delivers her dialog twice; another job waits for the same queue "
        "from 10:15 on. Bo, who may exempt anything, exempts the second at 10:21 by the command. "
        "Right: Mallory changes nothing and is told who may; both findings end as exempted, and the "
        "later job is none.",
        _exempted,
    ),
)
