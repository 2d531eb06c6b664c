"""Slack that refuses, does not answer, or is away for a day."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.alerting.crowds import channel
from tests.alerting.kit import RESEARCH, look, policy, slack, waiting
from tests.handmade import Object
from tests.queues.scene import Recorded, at
from tests.recordings import iso

POINTER = "[ERROR] must be less than 3001 characters [json-pointer:/blocks/2/text/text]"


def refuses(code: str, **metadata: object) -> Object:
    """An answer with an error code."""
    told = {"response_metadata": metadata} if metadata else {}
    return {"body": {"ok": False, "error": code, **told}}


CONTENT = {
    "blocks": refuses("invalid_blocks", messages=[POINTER]),
    "too-long": refuses("msg_blocks_too_long"),
    "attachment": refuses("invalid_attachments"),
    "text-long": refuses("msg_too_long"),
}
"""Refusals of what a card holds, by the team that they meet."""

CHANNELS = {
    "missing": refuses("channel_not_found"),
    "outside": refuses("not_in_channel"),
    "archived": refuses("is_archived"),
}
"""Refusals of the channel."""

RATE = {"limited": {"status": 429, "headers": {"Retry-After": "7"}, "body": "ratelimited"}}

CREDENTIALS = ("invalid_auth", "token_revoked", "missing_scope", "account_inactive")
"""One after the other, five minutes each."""

UNANSWERED: Mapping[str, Object] = {
    "five-hundred": {"status": 500, "body": "oops"},
    "five-o-three": {"status": 503, "body": "away"},
    "internal": refuses("internal_error"),
    # Accepted, and only the answer is lost: the history shows it at once, or the third run later.
    "lost": {"status": 504, "body": "", "listed_after": 0},
    "lost-for-long": {"status": 504, "body": "", "listed_after": 600},
}
"""Answers that do not tell whether the card was posted, by the team that they meet."""

EDITS = {
    "gone": refuses("message_not_found"),
    "not-ours": refuses("cant_update_message"),
    "too-old": refuses("edit_window_closed"),
}
"""Refusals of an edit."""


def _policy(folder: Path, teams: Sequence[str]) -> None:
    policy(folder, {team: channel(team) for team in teams})


def _answers(method: str, answers: Mapping[str, Object], times: int | None = 1) -> list[Object]:
    """Scripted answers, each in its team's channel."""
    counted = {} if times is None else {"times": times}
    return [
        {"method": method, "channel": channel(team), **counted, **answer}
        for team, answer in answers.items()
    ]


def _refused(folder: Path) -> None:
    teams = [*CONTENT, *CHANNELS, *RATE, "zebra"]
    _policy(folder, teams)
    jobs = [waiting("train", at("08:00"), team=team) for team in teams]
    look(folder, at("09:00"), jobs=jobs, teams=teams)
    slack(
        folder,
        *_answers("chat.postMessage", CONTENT | RATE),
        *_answers("chat.postMessage", CHANNELS, None),
    )


def _credentials(folder: Path) -> None:
    teams = ["alpha", "beta", "gamma"]
    _policy(folder, teams)
    jobs = [waiting("train", at("08:00"), team=team) for team in teams]
    look(folder, at("09:00"), jobs=jobs, teams=teams)
    begins = ("10:00", "10:05", "10:10", "10:15", "10:20")
    slack(
        folder,
        *(
            {"from": iso(at(begin)), "to": iso(at(end)), **refuses(code)}
            for code, begin, end in zip(CREDENTIALS, begins[:-1], begins[1:], strict=True)
        ),
    )


def _unanswered(folder: Path) -> None:
    """Each team's job comes five minutes after the one before it: a run meets one at most."""
    teams = [*UNANSWERED]
    _policy(folder, teams)
    jobs = [waiting("train", at("08:00"), team=team) for team in teams]
    for number, when in enumerate(("09:59", "10:04", "10:09", "10:14", "10:19"), 1):
        look(folder, at(when), jobs=jobs[:number], teams=teams)
    slack(folder, *_answers("chat.postMessage", UNANSWERED))


def _edits(folder: Path) -> None:
    teams = [*EDITS]
    _policy(folder, teams)
    first = [waiting("train", at("08:00"), team=team) for team in teams]
    second = [waiting("tune", at("09:30"), team=team) for team in teams]
    third = [waiting("test", at("09:40"), team=team) for team in teams]
    look(folder, at("09:00"), jobs=first, teams=teams)
    look(folder, at("10:04"), jobs=first + second, teams=teams)
    look(folder, at("10:14"), jobs=first + second + third, teams=teams)
    slack(folder, *_answers("chat.update", EDITS))


def _away(folder: Path) -> None:
    """All of Slack answers 503 from 08:30 to 08:30 of the next day."""
    policy(folder, {"research": RESEARCH})

    def job(queue: str, when: str) -> object:
        return waiting(f"waits-{queue}", at(when), queue=queue)

    early, ended = job("early", "07:00"), job("ended", "07:00")
    short, long = job("short", "08:40"), job("long", "09:40")
    for when, jobs in (
        ("07:55", [early, ended]),
        ("09:55", [early, ended, short, long]),
        ("11:55", [early, short, long]),
        ("14:55", [early, long]),
    ):
        look(folder, at(when), jobs=jobs, teams=["research"])  # type: ignore[arg-type]
    slack(
        folder, {"from": iso(at("08:30")), "to": iso(at("08:30", 1)), "status": 503, "body": "away"}
    )


RECORDINGS = (
    Recorded(
        "slack-refuses",
        at("10:00"),
        at("10:10"),
        "5m",
        "Nine teams' jobs wait for a queue that does not exist. Slack refuses the content of four "
        "cards (invalid_blocks with a pointer, msg_blocks_too_long, invalid_attachments, "
        "msg_too_long), the channel of three (channel_not_found, not_in_channel, is_archived), and "
        "limits the rate of one (429, Retry-After 7); one meets nothing. Right: the four go out as "
        "text at once, the three go to the platform channel once and say why, the one comes five "
        "minutes later, and the last is not held up.",
        _refused,
    ),
    Recorded(
        "slack-credentials",
        at("10:00"),
        at("10:25"),
        "5m",
        "Three teams' jobs wait. Slack answers invalid_auth, token_revoked, missing_scope and "
        "account_inactive, five minutes each. Right: one call a run until 10:15, three cards at "
        "10:20.",
        _credentials,
    ),
    Recorded(
        "slack-unanswered",
        at("10:00"),
        at("10:40"),
        "5m",
        "Five teams' jobs come five minutes apart; each first post gets an answer that does not "
        "tell: 500, 503, internal_error, and twice a lost answer to a post that was accepted, which "
        "the history shows at once or ten minutes later. Right: each card once at the end.",
        _unanswered,
    ),
    Recorded(
        "slack-edits",
        at("10:00"),
        at("10:20"),
        "5m",
        "Three teams' cards change at 10:05 and 10:15; Slack refuses the first edit of each "
        "(message_not_found, cant_update_message, edit_window_closed). Right: each is posted anew "
        "at 10:05, and that one is edited at 10:15.",
        _edits,
    ),
    Recorded(
        "slack-away",
        at("08:00"),
        at("09:00", 1),
        "1h",
        "Slack answers 503 from 08:30 to 08:30 of the next day. Two jobs wait from 08:00 on, one of "
        "them until 12:00; two more from 10:00 on, one of them until 15:00. Right: at the next "
        "day's 09:00 four cards, one each: two open, two resolved at 12:00 and 15:00.",
        _away,
    ),
)
