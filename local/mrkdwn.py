"""Slack's mrkdwn, short names and dates, as HTML.

Text is foreign: every piece of it is escaped here, whatever it holds.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

from markupsafe import Markup, escape

_SHORT_NAMES = (
    "alarm_clock=⏰ arrow_down=⬇️ arrow_right=➡️ arrow_up=⬆️ arrows_counterclockwise=🔄 "
    "ballot_box_with_check=☑️ bar_chart=📊 bell=🔔 bulb=💡 calendar=📆 "
    "chart_with_downwards_trend=📉 chart_with_upwards_trend=📈 clipboard=📋 clock1=🕐 "
    "construction=🚧 crescent_moon=🌙 exclamation=❗ eyes=👀 fire=🔥 gear=⚙️ ghost=👻 "
    "grey_question=❔ hammer_and_wrench=🛠️ heavy_check_mark=✔️ hourglass=⌛ "
    "hourglass_flowing_sand=⏳ information_source=ℹ️ key=🔑 large_blue_circle=🔵 "  # noqa: RUF001  # the character itself
    "large_green_circle=🟢 large_orange_circle=🟠 large_red_square=🟥 large_yellow_circle=🟡 "
    "left_right_arrow=↔️ leftwards_arrow_with_hook=↩️ link=🔗 lock=🔒 loudspeaker=📢 mag=🔍 "
    "mega=📣 memo=📝 money_with_wings=💸 moneybag=💰 moon=🌔 mute=🔇 new=🆕 no_bell=🔕 no_entry=⛔ "
    "package=📦 pause_button=⏸️ pushpin=📌 question=❓ red_circle=🔴 repeat=🔁 rocket=🚀 "
    "rotating_light=🚨 satellite=🛰️ scales=⚖️ shield=🛡️ sleeping=😴 stopwatch=⏱️ tada=🎉 "
    "thumbsup=👍 traffic_light=🚥 warning=⚠️ wave=👋 white_check_mark=✅ white_circle=⚪ wrench=🔧 "
    "x=❌ zap=⚡ zzz=💤"
)
EMOJI = dict(pair.split("=") for pair in _SHORT_NAMES.split())
"""Slack's short names for the characters that operational messages use; others stay as written."""

_CODE_BLOCK = re.compile(r"```\n?(.+?)\n?```", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_ANGLE = re.compile(r"<([^<>\n]+)>")
_URL = re.compile(r"https?://(?:(?!&[lg]t;)[^\s<>|\x00])*(?<![.,;:!?)'\"*_~])")
_SHORT_NAME = re.compile(r":([a-z0-9_+-]+):")
_STYLE = re.compile(
    r"(?<![\w*])\*(?=\S)(?P<strong>[^\n]+?)(?<=\S)\*(?![\w*])"
    r"|(?<![\w_])_(?=\S)(?P<em>[^\n]+?)(?<=\S)_(?![\w_])"
    r"|(?<![\w~])~(?=\S)(?P<s>[^\n]+?)(?<=\S)~(?![\w~])"
)
_QUOTE = re.compile(r"(?:>|&gt;) ?")
_KEPT = re.compile(r"\x00(\d+)\x00")


def mrkdwn(text: object, now: datetime, channels: Mapping[str, str]) -> Markup:
    """Turn Slack's mrkdwn into HTML; what is not mrkdwn is shown as it is written, escaped.

    Parameters
    ----------
    text : object
        As sent: `&amp;`, `&lt;` and `&gt;` escaped, `<...>` for links, mentions and dates.
    now : datetime
        When it was posted: dates read "today" or "yesterday" as seen then.
    channels : mapping of str to str
        Channel id to name, for `<#C...>`.

    Notes
    -----
    Source of the syntax: Slack, "Formatting text for app surfaces". Code, links and mentions are
    set aside first (as NUL, number, NUL), so that no other rule reads inside them.
    """
    kept: list[str] = []

    def keep(html: str) -> str:
        kept.append(html)
        return f"\0{len(kept) - 1}\0"

    def angle(match: re.Match[str]) -> str:
        shown = _angle(match[1], now, channels)
        return match[0] if shown is None else keep(shown)

    source = str(text).replace("\0", "")
    source = _CODE_BLOCK.sub(lambda m: keep(f"<pre>{escape(_unescape(m[1]))}</pre>"), source)
    source = _CODE.sub(lambda m: keep(f"<code>{escape(_unescape(m[1]))}</code>"), source)
    source = _ANGLE.sub(angle, source)
    source = _URL.sub(lambda m: keep(_link(m[0], escape(_unescape(m[0])))), source)
    html = ""
    for quoted, lines in groupby(source.split("\n"), key=lambda line: bool(_QUOTE.match(line))):
        block = "<br>".join(_styled(_QUOTE.sub("", x, count=1) if quoted else x) for x in lines)
        html += f"<blockquote>{block}</blockquote>" if quoted else f"{block}<br>"
    html = html.removesuffix("<br>")
    while _KEPT.search(html):  # a link's label may hold code: earlier pieces only, so this ends
        html = _KEPT.sub(lambda m: kept[int(m[1])], html)
    return Markup(html)  # noqa: S704  # every piece was escaped above


def _angle(body: str, now: datetime, channels: Mapping[str, str]) -> str | None:
    """Render what `<...>` holds; None for what Slack does not know."""
    target, _, label = body.partition("|")
    if target.startswith("!date^"):
        _, seconds, template, link = (*target.split("^"), "", "")[:4]
        shown = escape(slack_date(seconds, template, _unescape(label), now))
        return _link(link, shown) if link else f"<time>{shown}</time>"
    if target in {"!here", "!channel", "!everyone"}:
        return f'<span class="mention loud">@{target[1:]}</span>'
    if target.startswith(("@", "!subteam^")):
        name = label.removeprefix("@") or target.removeprefix("@").removeprefix("!subteam^")
        return f'<span class="mention">@{escape(_unescape(name))}</span>'
    if target.startswith("#"):
        name = label or channels.get(target[1:], target[1:])
        return f'<span class="mention">#{escape(_unescape(name))}</span>'
    return _link(target, _styled(label or target)) if safe_url(_unescape(target)) else None


def _link(url: str, shown: str) -> str:
    target = safe_url(_unescape(url))
    return f'<a href="{escape(target)}" rel="noreferrer">{shown}</a>' if target else shown


def safe_url(url: object) -> str:
    """Give back a URL that a page may link to, else an empty string."""
    known = re.fullmatch(r"(?:https?://|mailto:)[^\s\x00]+", str(url), re.IGNORECASE)
    return str(url) if known else ""


def _unescape(text: str) -> str:
    """Undo Slack's escaping: three entities, the ampersand last."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _styled(text: str) -> str:
    """Render bold, italic, strike and short names of one line."""
    html, position = "", 0
    for match in _STYLE.finditer(text):
        tag = str(match.lastgroup)
        html += str(emojis(_unescape(text[position : match.start()])))
        html += f"<{tag}>{_styled(match[tag])}</{tag}>"
        position = match.end()
    return html + str(emojis(_unescape(text[position:])))


def emojis(text: object) -> Markup:
    """Escape plain text and show its `:short_names:`."""
    pieces = []
    for index, piece in enumerate(_SHORT_NAME.split(str(text))):
        known = EMOJI.get(piece) if index % 2 else None
        if known:
            pieces.append(Markup('<span class="emoji">{}</span>').format(known))
        else:
            pieces.append(escape(f":{piece}:" if index % 2 else piece))
    return Markup("").join(pieces)


def day_name(day: date, *, year: bool, weekday: bool = True, short: bool = False) -> str:
    """Write a day as Slack does: Thursday, November 5th, 2026 (short: Nov 5, 2026)."""
    teens = 11 <= day.day <= 13
    ordinal = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    text = f"{day:%b} {day.day}" if short else f"{day:%B} {day.day}{ordinal}"
    return f"{day:%A}, " * weekday + text + f", {day.year}" * year


def slack_date(seconds: object, template: str, fallback: str, now: datetime) -> str:
    """Format a time as a viewer in UTC with a 24-hour clock sees it; what cannot be read falls back.

    Notes
    -----
    Source of the tokens: Slack, "Date formatting". A token that opens the text is capitalised.
    """
    try:
        at = datetime.fromtimestamp(int(str(seconds)), UTC)
    except (ValueError, OverflowError, OSError):
        return fallback
    words = {-1: "yesterday", 0: "today", 1: "tomorrow"}
    pretty = words.get((at.date() - now.date()).days)
    year = abs(at - now) > timedelta(days=183)  # Slack leaves out a year that is near
    values = {
        "date_num": f"{at:%Y-%m-%d}",
        "date": day_name(at, year=year, weekday=False),
        "date_short": day_name(at, year=year, weekday=False, short=True),
        "date_long": day_name(at, year=year),
        "time": f"{at:%H:%M}",
        "time_secs": f"{at:%H:%M:%S}",
    }
    values |= {
        f"{key}_pretty": pretty or values[key] for key in ("date", "date_short", "date_long")
    }
    shown = re.sub(r"\{(\w+)\}", lambda m: values.get(m[1], m[0]), template)
    return shown[:1].upper() + shown[1:]
