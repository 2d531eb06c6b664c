"""Lives of cards: what flaps, what people press, what is told again and what is not."""

from datetime import datetime, timedelta
from pathlib import Path

from tests.alerting.kit import look, slack, wait_card, waiting
from tests.alerting.presses import pressed, typed
from tests.handmade import EKS, Object, write
from tests.queues.scene import ARN, Recorded, at, instance, machine
from tests.recordings import iso

SWING = timedelta(minutes=12)
SWINGS = 15
"""Six hours of twelve minutes away and twelve minutes back."""

OPENED = at("10:00")
"""When the jobs of these recordings are first seen, and so told of."""

CARD = wait_card(OPENED)


def _flapping(folder: Path) -> None:
    away = at("10:00")
    for _ in range(SWINGS):
        look(folder, away, nodes=[machine(0, ready=("False", away))])
        back = away + SWING
        look(folder, back, nodes=[machine(0, ready=("True", back))])
        away = back + SWING


def _health_event(identifier: str, when: str, delivered: str | None = None) -> Object:
    """An event of HyperPod's about node 0, as EventBridge delivers it."""
    detail = {
        "ClusterName": "ml-shared-01",
        "ClusterArn": ARN,
        "InstanceId": instance(0),
        "HealthSummary": {"HealthStatus": "Unhealthy", "RepairAction": "Replace"},
    }
    event = {
        "version": "0",
        "id": identifier,
        "detail-type": "SageMaker HyperPod Cluster Node Health Event",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "time": iso(at(when)),
        "region": "us-east-1",
        "resources": [ARN],
        "detail": detail,
    }
    return {**event, "delivered": iso(at(delivered))} if delivered else event


def _pair(folder: Path) -> None:
    look(folder, at("09:00"))
    look(folder, at("10:01"), nodes=[machine(0, ready=("False", at("10:01")))])
    first = ("7bf73129-0001", "10:01:00")
    events = [
        _health_event(*first),
        _health_event("7bf73129-0002", "10:01:02"),
        _health_event(*first, delivered="10:41:00"),
    ]
    write(folder / "events" / "node.json", events)


def _outlasted(folder: Path) -> None:
    look(folder, at("09:00"), jobs=[waiting("train", at("08:00"))], teams=["research"])
    look(folder, at("13:05"), teams=["research"])
    slack(folder, pressed(at("10:00:30"), "snooze", CARD, span="4h"))


def _still_true(folder: Path) -> None:
    look(folder, at("09:00"), jobs=[waiting("train", at("08:00"))], teams=["research"])
    slack(folder, pressed(at("10:02"), "snooze", CARD, span="1h"))


def _together(folder: Path) -> None:
    look(folder, at("09:00"), jobs=[waiting("train", at("08:00"))], teams=["research"])
    look(folder, at("10:28"), teams=["research"])
    slack(
        folder,
        pressed(at("10:02:00"), "acknowledge", CARD),
        pressed(at("10:02:01"), "acknowledge", CARD, user="U0BO"),
        pressed(at("10:02:00"), "acknowledge", CARD, again=4),
        # Later than a queue knows a message again.
        pressed(at("10:02:00"), "acknowledge", CARD, again=600),
        pressed(at("10:35:40"), "acknowledge", CARD, user="U0BO"),
    )


TYPED = (
    "status",
    "why train",
    "idle",
    "team research",
    "digest",
    "help",
    "",
    "frobnicate <!channel>",
    f"snooze {CARD} 4h",
    f"snooze {CARD} for ever",
    "snooze 0123456789 4h",
)
"""What is typed after `/gpu`, a minute apart from 10:01 on."""

EVIDENCE = at("10:14")
"""When the card's evidence is asked for."""


def typed_at(number: int) -> datetime:
    """When one of :data:`TYPED` is typed."""
    return at("10:01") + timedelta(minutes=number)


def _commands(folder: Path) -> None:
    look(folder, at("09:00"), jobs=[waiting("train", at("08:00"))], teams=["research"])
    slack(
        folder,
        *(typed(typed_at(number), text) for number, text in enumerate(TYPED)),
        pressed(EVIDENCE, "evidence", CARD),
    )


def _unreachable(folder: Path) -> None:
    """The control plane answers and nothing else does: no kubernetes/ is all denied."""
    write(folder / "eks" / "DescribeCluster.json", EKS)


RECORDINGS = (
    Recorded(
        "flapping",
        at("10:00"),
        at("17:00"),
        "2m",
        "A node is away for 12 minutes and back for 12, for six hours from 10:00 on. It is told ten "
        "minutes after it was first seen and ends ten minutes after it was last seen: from 10:10 to "
        "10:20, and every 24 minutes, the last time from 15:46 to 15:56. Right: one card; one note, "
        "of the second opening at 10:34, which says from 10:58 on that it flaps; at 16:56, an hour "
        "after the last change, the card reads resolved 15:56.",
        _flapping,
    ),
    Recorded(
        "pair-of-events",
        at("10:00"),
        at("10:50"),
        "5m",
        "A node fails at 10:01, in two events two seconds apart with ids of their own; at 10:41 the "
        "first of them is delivered again. Right: snapshots at 10:01 and, a minute later, 10:02; one "
        "finding and one card at 10:15, when it has been seen for ten minutes; no snapshot at 10:41, "
        "when the event is older than 15 minutes.",
        _pair,
    ),
    Recorded(
        "snooze-outlasted",
        OPENED,
        at("14:10"),
        "10m",
        "A job waits for a queue that does not exist. At 10:00:30 its card is snoozed for four "
        "hours; the job is gone from 13:05 on. Right: the card reads resolved 13:10, ten minutes "
        "after the job was last seen at 13:00, and when the snooze ends nothing is said any more.",
        _outlasted,
    ),
    Recorded(
        "snooze-ends",
        OPENED,
        at("12:10"),
        "5m",
        "A job waits for a queue that does not exist. At 10:02 its card is snoozed for an hour. "
        "Right: one note at 11:05 that the whole channel sees, and none later.",
        _still_true,
    ),
    Recorded(
        "two-acknowledge",
        OPENED,
        at("10:40"),
        "5m",
        "Ana acknowledges a card at 10:02:00, Bo a second later; Slack delivers Ana's press again "
        "after 4 seconds and after 10 minutes. The job is gone from 10:28 on, last seen at 10:25, "
        "and Bo presses again at 10:35:40. Right: one note, of Ana; Bo is told of Ana, and at last "
        "that the card is closed since 10:35; neither changes anything.",
        _together,
    ),
    Recorded(
        "commands",
        OPENED,
        at("10:20"),
        "5m",
        "From 10:01 on Ana types every command, an empty one, one that there is not, and snoozes that "
        "are none, a minute apart; at 10:14 she asks for the evidence of a card. Right: each is "
        "answered at once and to her alone, nobody is mentioned, and only the snooze changes the card.",
        _commands,
    ),
    Recorded(
        "unreachable",
        OPENED,
        at("10:25"),
        "5m",
        "Every call to the cluster is denied. Right: one card in the platform channel at 10:15, when "
        "it has lasted 15 minutes, and no finding: a line says what is seen of a cluster.",
        _unreachable,
    ),
)
