"""How loudly and when people are told, and who they are in Slack: keys, forms, rules, resolution."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from local.policy.faults import Fault, key_path, suggest
from local.policy.forms import STRICT, Text, duration, minutes, seconds
from local.policy.names import CHANNEL, CLOCK, DATE, DAY, DAYS, EMAIL
from local.policy.places import Place, texts
from steward.cluster.policy import Alerting, Channel, Escalation, People, QuietHours, Severity

_NEVER = "never"

USER_ID = Text(
    r"[UW][A-Z0-9]{2,20}",
    "a Slack user id",
    "copy it from the member's profile: U or W, then capitals and digits",
)
MENTIONED = Text(
    r"[UWS][A-Z0-9]{2,20}|here|channel",
    "somebody whom a message can mention",
    "write a user id (U…, W…), the id of a user group (S…), here or channel",
)
TOPIC = Text(
    r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}",
    "the ARN of an SNS topic",
    "write one such as arn:aws:sns:us-east-1:012345678901:pager, and name it in PagerTopicArns",
)

REMINDER = Text(
    r"[0-9]+[smhd]|never",
    "a duration of 1h to 30d in whole hours, or never",
    "write one such as 24h, or never",
    lambda text: text == _NEVER or duration("1h", "30d", "1h").accepts(text),
)

_ORDER = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class _Document(BaseModel):
    model_config = STRICT


class QuietHoursDocument(_Document):
    """Hours in which a new card of severity warn waits, in the cluster's time zone."""

    days: Annotated[list[Annotated[str, DAY]], Field(min_length=1)] | None = None
    """Days on which they begin: Monday, MON or mon; left out: every day"""
    begin: Annotated[str, CLOCK, Field(alias="from")]
    """Begin, HH:MM"""
    end: Annotated[str, CLOCK, Field(alias="to")]
    """Last minute, HH:MM, which belongs to them; before the begin: the next day's"""


class EscalationDocument(_Document):
    """What happens to a page that nobody acknowledges."""

    after: Annotated[str, duration("5m", "24h", "1m")] = "30m"
    """How long after it became a page, 5m to 24h"""
    channel: Annotated[str, CHANNEL] | None = None
    """Name under slack.channels of a second channel that is told"""
    mention: Annotated[str, MENTIONED] | None = None
    """Whom its thread mentions: a user id, the id of a user group, here or channel"""
    topic_arn: Annotated[str, TOPIC] | None = None
    """SNS topic of a pager"""


class AlertingDocument(_Document):
    """How loudly and when people are told."""

    quiet_hours: list[QuietHoursDocument] = []
    """When new cards of severity warn wait; pages never do"""
    holidays: list[Annotated[str, DATE]] = []
    """Days, YYYY-MM-DD, that are quiet from begin to end"""
    daily_cap: Annotated[int, Field(ge=0, le=1000)] = 0
    """Most new cards of severity warn a team and day, 0 to 1000; 0: no cap"""
    reminder: Annotated[str, REMINDER] = "never"
    """How often a card that nobody acknowledged is brought up again, 1h to 30d, or never"""
    mention_owners: Literal["page", "warn", "never"] = "never"
    """From which severity on the owners of a team are mentioned"""
    escalation: EscalationDocument = EscalationDocument()
    """What happens to a page that nobody acknowledges"""


def alerting(document: AlertingDocument, channels: Mapping[str, Channel]) -> Alerting:
    """Resolve what a cluster's document says of alerting."""
    escalation = document.escalation
    quiet = tuple(
        QuietHours(
            days=tuple(sorted({_ORDER.index(DAYS[day.casefold()]) for day in hours.days or []})),
            begin=hours.begin,
            end=hours.end,
        )
        for hours in document.quiet_hours
    )
    least = document.mention_owners
    return Alerting(
        quiet_hours=quiet,
        holidays=tuple(sorted(set(document.holidays))),
        daily_cap=document.daily_cap,
        reminder_hours=0 if document.reminder == _NEVER else seconds(document.reminder) // 3600,
        mention_owners=None if least == _NEVER else Severity(least),
        escalation=Escalation(
            after_minutes=minutes(escalation.after),
            channel=channels[escalation.channel] if escalation.channel else None,
            mention=escalation.mention,
            topic_arn=escalation.topic_arn,
        ),
    )


def people(users: Mapping[str, str], exempters: list[str], *, lookup: bool) -> People:
    """Resolve who is who; addresses compare in lower case."""
    return People(
        users={email.lower(): user for email, user in users.items()},
        lookup=lookup,
        exempters=tuple(sorted({email.lower() for email in exempters})),
    )


def faults(cluster: Place, channels: list[str]) -> Iterator[Fault]:
    """Find what is wrong between the keys of a cluster's alerting."""
    told = cluster.get("alerting")
    for place in texts([told.get("escalation").get("channel")]):
        if place.value not in channels:
            remedy = suggest(place.value, channels, "there is")
            yield Fault(place.path, f"there is no channel {place.value}", remedy)
    for hours in told.get("quiet_hours").entries:
        begin, end = hours.get("from"), hours.get("to")
        if CLOCK.accepts(begin.value) and begin.value == end.value:
            yield Fault(
                end.path,
                f"{end.value} is the begin as well: one minute, or a day?",
                "for a whole day write from 00:00 to 23:59",
            )


def same_address(users: Place) -> Iterator[Fault]:
    """Find addresses that differ in their case alone."""
    first: dict[str, str] = {}
    for email in users.keys:
        if EMAIL.accepts(email) and (known := first.setdefault(email.lower(), email)) != email:
            message = f"{email} is {known} in another case"
            yield Fault(
                (*users.path, email), message, f"keep one of the two ({key_path(users.path)})"
            )
