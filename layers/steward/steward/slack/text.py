"""Text for Slack: foreign names made harmless, cutting between characters, numbers for readers.

Every value that comes from outside passes through :func:`safe` or :func:`code`; only :func:`when`,
:func:`mention` and :func:`channel` write `<`, and so no mention or link can be forged.
"""

import math
import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

ELLIPSIS = "…"

_UNPRINTABLE = re.compile(
    # Controls and line ends; direction marks, which make a name read as another; lone surrogates.
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+"
)
_ATOM = re.compile(r"&(?:amp|lt|gt);|<[^<>]*>|.", re.DOTALL)
"""What must not be cut: an entity, one of our own `<...>` sequences, a character."""

_ZERO_WIDTH_JOINER = "\u200d"
_VIRAMA = 9
"""Unicode's combining class of the sign that binds two consonants into one character."""


def length(text: str) -> int:
    """Count as Slack's own clients do, in UTF-16 units: never less than its characters."""
    return len(text) + sum(character > "\uffff" for character in text)


def escape(text: str) -> str:
    """Replace the three characters that Slack gives a meaning."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def safe(value: object, limit: int = 300) -> str:
    """Make a foreign value harmless inside a line of mrkdwn or plain text.

    Parameters
    ----------
    value : object
        None or blank reads "(none)".
    limit : int
        Longest result before escaping, in UTF-16 units; the default holds every Kubernetes name.

    Returns
    -------
    str
        One line, escaped; backticks are written as apostrophes, so that no code span ends early.
    """
    text = " ".join(_UNPRINTABLE.sub(" ", "" if value is None else str(value)).split())
    return escape(cut(text.replace("`", "'"), limit)) or "(none)"


def code(value: object, limit: int = 300) -> str:
    """Write a foreign name as a code span, where it can carry no formatting."""
    return f"`{safe(value, limit)}`"


def code_block(text: str, limit: int = 2800) -> str:
    """Write a command as a code block; its line ends stay, nothing else of it can format."""
    lines = (_UNPRINTABLE.sub(" ", line).rstrip() for line in text.strip().splitlines())
    body = cut(escape("\n".join(lines).replace("```", "'''")), limit)
    return f"```\n{body or '(none)'}\n```"


def cut(text: str, limit: int) -> str:
    """Shorten a text to at most `limit` UTF-16 units, with an ellipsis for what is left out.

    Cuts between user-perceived characters, never inside an escape or a `<...>` sequence.
    """
    if length(text) <= limit:
        return text
    kept, room = "", limit - length(ELLIPSIS)
    for cluster in _clusters(text):
        room -= length(cluster)
        if room < 0:
            break
        kept += cluster
    return kept.rstrip() + ELLIPSIS


def _clusters(text: str) -> Iterator[str]:
    cluster = ""
    for match in _ATOM.finditer(text):
        atom = match[0]
        if cluster and not _joins(cluster, atom):
            yield cluster
            cluster = ""
        cluster += atom
    yield cluster


def _joins(cluster: str, atom: str) -> bool:
    """Tell whether an atom belongs to the character before it (after Unicode's UAX #29).

    Where that needs a property table, more is kept together than has to be.
    """
    if len(atom) > 1:
        return False
    last = cluster[-1]
    if unicodedata.category(atom).startswith("M") or atom == _ZERO_WIDTH_JOINER:
        return True
    if _within(atom, "\U0001f3fb", "\U0001f3ff") or _within(atom, "\U000e0020", "\U000e007f"):
        return True  # skin tones, and the tags of a regional flag
    if last == _ZERO_WIDTH_JOINER or unicodedata.combining(last) == _VIRAMA:
        return True
    if _flag(last) and _flag(atom):
        return sum(map(_flag, cluster)) % 2 == 1
    return _hangul(last) and _within(atom, "\u1160", "\u11ff")


def _within(character: str, first: str, last: str) -> bool:
    return first <= character <= last


def _flag(character: str) -> bool:
    return _within(character, "\U0001f1e6", "\U0001f1ff")


def _hangul(character: str) -> bool:
    return _within(character, "\u1100", "\u11ff") or _within(character, "\uac00", "\ud7a3")


_MENTIONED = re.compile(r"[UW][A-Z0-9]{2,20}|S[A-Z0-9]{2,20}|here|channel")


_CHANNEL = re.compile(r"[CGD][A-Z0-9]{2,20}")


def mention(who: str) -> str:
    """Mention somebody whom the policy names: a user (U…, W…), a group (S…), `here` or `channel`.

    The only way to a mention; what is no such id is written as text.
    """
    if not _MENTIONED.fullmatch(who):
        return safe(who, 80)
    if who in {"here", "channel"}:
        return f"<!{who}>"
    return f"<!subteam^{who}>" if who.startswith("S") else f"<@{who}>"


def channel(identity: str) -> str:
    """Link a channel by its id, which is ours or Slack's own."""
    return f"<#{identity}>" if _CHANNEL.fullmatch(identity) else safe(identity, 80)


def when(stamp: str) -> str:
    """Show a time in the reader's zone, with the absolute UTC time where that is not rendered."""
    at = datetime.fromisoformat(stamp)
    return f"<!date^{int(at.timestamp())}^{{date_short_pretty}} {{time}}|{utc(stamp)}>"


def utc(stamp: str) -> str:
    """Write a time in UTC, to the minute."""
    return f"{datetime.fromisoformat(stamp).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def duration(span: timedelta) -> str:
    """Write a span for people: `45 min`, `3 h 05 min`, `2 d 4 h`."""
    minutes = int(span.total_seconds() // 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def _impossible(value: float) -> bool:
    return not math.isfinite(value) or value < 0


def number(value: float, digits: int = 2) -> str:
    """Write a number without needless zeros; one that cannot be is flagged, not printed."""
    if _impossible(value):
        return "(inconsistent data)"
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def gpus(value: float) -> str:
    """Count GPUs; a MIG slice is a fraction of one."""
    return f"{number(value)} GPU{'' if value <= 1 else 's'}"


def hours(value: float | None) -> str:
    """Write accelerator hours."""
    if value is None:
        return "GPU-hours not known"
    return "GPU-hours: inconsistent data" if _impossible(value) else f"{value:,.1f} GPU-h"


def dollars(value: float | None) -> str:
    """Write dollars; without a price there are none."""
    if value is None:
        return "no price, no dollars"
    return "dollars: inconsistent data" if _impossible(value) else f"${value:,.2f}"


def percent(share: float) -> str:
    """Write a share (0-1) in percent."""
    return f"{number(share * 100, 1)} %"
