"""What somebody wants done with a card: how it travels from Slack to the reconciler."""

import re
from datetime import datetime, time, timedelta
from enum import StrEnum

import msgspec

MONDAY = "monday"
"""Span of a snooze that ends on Monday at nine in the cluster's time zone."""

LONGEST = timedelta(days=90)
"""No snooze or exemption lasts longer: what is to stay is written in the policy."""

_SPAN = re.compile(r"(\d{1,4})\s*([mhdw])", re.IGNORECASE | re.ASCII)
_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


class ActionKind(StrEnum):
    """What is to be done."""

    ACKNOWLEDGE = "acknowledge"
    SNOOZE = "snooze"
    EXEMPT = "exempt"


class CardAction(msgspec.Struct, frozen=True, kw_only=True):
    """A wish about one card.

    Attributes
    ----------
    id : str
        Identity of the press or command: a repeat has the same.
    cluster, card : str
        The card's cluster, and its short name (:func:`steward.alerts.model.card_id`).
    user, name : str
        Slack user id, and what people call them.
    at : datetime
        When it was wished.
    span : str
        How long: `45m`, `4h`, `7d`, `2w`, or `monday`; empty for an acknowledgement.
    reason : str
        Of an exemption.
    response_url : str or None
        Where Slack takes the answer, for 30 minutes and five times.
    """

    kind: ActionKind
    id: str
    cluster: str
    card: str
    user: str
    name: str
    at: datetime
    span: str = ""
    reason: str = ""
    response_url: str | None = None


class SpanError(ValueError):
    """A span that is none, or too long."""


def end_of(span: str, now: datetime, zone: str) -> datetime:
    """Tell when a span that begins now ends.

    Parameters
    ----------
    span : str
        A number and m, h, d or w; or `monday`: the next Monday, 09:00.
    zone : str
        IANA time zone in which Monday is meant.

    Raises
    ------
    SpanError
        With what can be written instead.
    """
    text = span.strip().lower()
    if text == MONDAY:
        from zoneinfo import ZoneInfo  # noqa: PLC0415 - answer_slack needs spans' form, and no zones

        local = now.astimezone(ZoneInfo(zone))
        day = local.date() + timedelta(days=-local.weekday() % 7)
        at = datetime.combine(day, time(9), local.tzinfo)
        if at <= local:
            at = datetime.combine(day + timedelta(days=7), time(9), local.tzinfo)
        return at.astimezone(now.tzinfo)
    found = _SPAN.fullmatch(text)
    length = int(found[1]) * _UNITS[found[2]] if found else timedelta()
    if not timedelta() < length <= LONGEST:
        raise SpanError(
            f"{span!r} is no time span; write 45m, 4h, 7d or 2w, at most 90d, or monday"
        )
    return now + length
