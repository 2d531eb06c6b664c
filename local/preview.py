"""One self-contained page that shows posted Slack messages as Slack would.

Made for looking at what a replay posted: no network, no Slack account. Message text is foreign
(team, job and user names), so everything passes through autoescaping and the page's own
Content-Security-Policy admits one script: the page's own, by its hash.
"""

import base64
import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, TypedDict

from jinja2 import Environment, FileSystemLoader, Template, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from local.mrkdwn import day_name, emojis, mrkdwn, safe_url, slack_date

TEMPLATES = Path(__file__).with_name("templates")
_LINE_END = re.compile(r"<br>|</(?:blockquote|button|div|h3|li|p|pre|title|tr)>")
_COLOURS = {"good": "#2eb67d", "warning": "#ecb22e", "danger": "#e01e5a"}


class Version(TypedDict):
    """A message as one call left it.

    `at` is an ISO 8601 time; `payload` holds the arguments of chat.postMessage or chat.update.
    """

    at: str
    payload: Mapping[str, Any]


class Message(TypedDict):
    """A posted message: `posted_at` is an ISO 8601 time, `versions` are in order of time."""

    channel: str
    ts: str
    posted_at: str
    versions: list[Version]


def render(messages: Iterable[Message], channels: Mapping[str, str], title: str, out: Path) -> Path:
    """Write the page.

    Parameters
    ----------
    messages : iterable of Message
        In any order; a message whose `thread_ts` names another one of its channel is shown
        under it.
    channels : mapping of str to str
        Channel id to name; one that it lacks is shown by its id.
    title : str
        What was replayed; heads the page.
    out : Path
        File to write; its folder is made where it is missing.

    Returns
    -------
    Path
        `out`.
    """
    names = {key: name.removeprefix("#") for key, name in channels.items()}
    page = _template().render(title=title, names=names, channels=list(_channels(messages, names)))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    return out


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "changes": _changes,
        "colour": _colour,
        "emojis": emojis,
        "items": _items,
        "mrkdwn": _mrkdwn,
        "safe_url": safe_url,
        "sha256": _sha256,
        "slack_date": slack_date,
    }
    return environment.get_template("preview.html.j2")


@pass_context
def _mrkdwn(context: Context, text: object, now: datetime) -> Markup:
    return mrkdwn(text, now, context["names"])


def _channels(messages: Iterable[Message], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Lay messages out: channels by name, days in each, threads under their parents."""
    ordered = sorted(messages, key=lambda m: (m["posted_at"], m["ts"]))
    found = sorted({m["channel"] for m in ordered}, key=lambda c: (names.get(c, c), c))
    for channel in found:
        views = [_view(m) for m in ordered if m["channel"] == channel]
        parents = {view["ts"]: view for view in views if view["thread_ts"] in {None, view["ts"]}}
        top = []
        for view in views:
            parent = parents.get(view["thread_ts"] or view["ts"])
            if parent is None or parent is view:
                top.append(view)
            else:
                parent["replies"].append(view)
        days = [
            {"name": day_name(day, year=True), "messages": list(group)}
            for day, group in groupby(top, key=_day)
        ]
        yield {
            "id": channel,
            "name": names.get(channel, channel),
            "count": len(views),
            "days": days,
        }


def _view(message: Message) -> dict[str, Any]:
    versions = [
        {
            "at": datetime.fromisoformat(version["at"]).astimezone(UTC),
            "text": version["payload"].get("text") or "",
            "blocks": _items(version["payload"].get("blocks")),
            "attachments": _items(version["payload"].get("attachments")),
        }
        for version in message["versions"]
    ]
    return {
        "ts": message["ts"],
        "at": datetime.fromisoformat(message["posted_at"]).astimezone(UTC),
        "thread_ts": message["versions"][0]["payload"].get("thread_ts"),
        "broadcast": bool(message["versions"][0]["payload"].get("reply_broadcast")),
        "versions": versions,
        "replies": [],
    }


def _day(view: Mapping[str, Any]) -> date:
    at: datetime = view["at"]
    return at.date()


def _items(value: object) -> list[Mapping[str, Any]]:
    """Read a list that form-encoded calls send as JSON text; absent is an empty list."""
    loaded = json.loads(value) if isinstance(value, str) else value
    return [item for item in loaded if isinstance(item, dict)] if isinstance(loaded, list) else []


def _colour(value: object) -> str:
    """Colour of an attachment's bar; one that Slack does not know is its grey."""
    name = str(value).removeprefix("#")
    known = re.fullmatch(r"[0-9a-fA-F]{6}", name)
    return f"#{name}" if known else _COLOURS.get(name, "#8d8d8d")


def _sha256(script: str) -> str:
    """Hash of the page's script in the form that a Content-Security-Policy takes."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _seen(html: str) -> list[str]:
    """Split rendered blocks into the lines that a reader sees."""
    lines = (Markup(x).striptags() for x in _LINE_END.split(html))  # noqa: S704  # rendered
    return [line for line in lines if line]


def _changes(after: str, before: str) -> list[Markup]:
    """Say line by line what an edit changed, words marked with `del` and `ins`."""
    old, new = _seen(before), _seen(after)
    changed = []
    for kind, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        pairs = b - a if b - a == d - c else 0
        changed += [
            _words(*pair) for pair in zip(old[a : a + pairs], new[c : c + pairs], strict=True)
        ]
        changed += [Markup("<del>{}</del>").format(line) for line in old[a + pairs : b]]
        changed += [Markup("<ins>{}</ins>").format(line) for line in new[c + pairs : d]]
    return changed


def _words(before: str, after: str) -> Markup:
    old, new = before.split(" "), after.split(" ")
    parts = []
    for kind, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            same = old[a:b] if b - a <= 8 else [*old[a : a + 4], "…", *old[b - 3 : b]]
            parts.append(escape(" ".join(same)))
            continue
        if a < b:
            parts.append(Markup("<del>{}</del>").format(" ".join(old[a:b])))
        if c < d:
            parts.append(Markup("<ins>{}</ins>").format(" ".join(new[c:d])))
    return Markup(" ").join(parts)
