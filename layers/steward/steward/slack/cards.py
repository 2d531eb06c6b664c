"""Cards as Block Kit: who, what, how long, what it costs, why we think so, and what to do.

Renders the facts that :mod:`steward.alerts.cards` states, and the notes and copies that belong to a
card. The first line tells the story, on a phone's notification too.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from steward.slack.buttons import buttons
from steward.slack.evidence import SHOWN, devices, lines
from steward.slack.limits import TEXT, fit, shorten
from steward.slack.notes import note_text, render_note
from steward.slack.standing import ending, standing
from steward.slack.stories import subject, title
from steward.slack.text import (
    code,
    code_block,
    dollars,
    duration,
    gpus,
    hours,
    length,
    mention,
    number,
    safe,
    utc,
    when,
)

LATE = timedelta(minutes=3)
"""From here on a card says how late it is: snapshot, evaluation and queues take a minute or two."""

type Block = dict[str, Any]


def render(content: Mapping[str, Any]) -> dict[str, Any]:
    """Render a card, a note in its thread, or the copy of it in a second channel.

    Parameters
    ----------
    content : mapping
        Facts of a message, with `delivered` (when it was first delivered), `rerouted` (why it
        stands in the platform channel, or None) and `mentions` (Slack ids of owners to mention).

    Returns
    -------
    dict
        `text` (notification and accessible fallback) and `blocks`, within Slack's limits.
    """
    if _is_note(content):
        return render_note(content)
    pro, contra = lines(content)
    is_open = content["state"] == "open"
    blocks: list[Block] = [
        {"type": "header", "text": {"type": "plain_text", "text": title(content), "emoji": True}},
        *(_section(note) for note in standing(content)),
        {
            "type": "section",
            "fields": [
                _mrkdwn(_who(content)),
                _mrkdwn(_what(content)),
                _mrkdwn(_how_long(content)),
                _mrkdwn(_cost(content)),
            ],
        },
        _section(_listed("*Why we think so*", pro)),
        _section(_listed("*Against it, or not seen*", contra)),
    ]
    if is_open:
        blocks += [
            _section(f"*Do this*\n{_who_may(content)}"),
            _section(code_block(content["action"])),
            *_then(content),
        ]
    if content["state"] != "resolved":
        blocks.append(buttons(content))
    blocks += [
        _section(_listed("*Which GPUs*", devices(content))),
        _section(_listed("*Also waiting for the same*", _members(content))),
        _section(_listed("*Also in this incident*", _others(content))),
        _section(_listed("*Not told apart, because it follows from this*", _follows(content))),
        {"type": "context", "elements": [_mrkdwn(_about(content))]},
    ]
    return fit({"text": _summary(content), "blocks": blocks})


def render_text(content: Mapping[str, Any]) -> str:
    """Render a message as text alone, where its blocks were refused."""
    if _is_note(content):
        return note_text(content)
    facts = [
        _summary(content),
        *standing(content),
        _who(content),
        _what(content),
        *devices(content),
        *_members(content),
        _how_long(content),
        _cost(content),
        _listed("*Why we think so*", lines(content)[0]),
        _about(content),
    ]
    todo = (
        f"\n*Do this*\n{code_block(content['action'], 1000)}" if content["state"] == "open" else ""
    )
    return shorten("\n".join(facts), TEXT - length(todo)) + todo


def _is_note(content: Mapping[str, Any]) -> bool:
    return bool(content["state"] == "note")


def _summary(content: Mapping[str, Any]) -> str:
    run = content["running"]
    end = [ending(content)] if content["state"] == "resolved" else []
    cost, spent = run["group_cost_usd"], run["group_gpu_hours"]
    figures = [dollars(cost)] if cost is not None else []
    figures += [hours(spent)] if spent is not None else []
    return " · ".join([title(content), *end, *figures, f"since {utc(content['since'])}"])


def _who(content: Mapping[str, Any]) -> str:
    evidence = content["evidence"]
    rows = [
        ("team", content["team"]),
        ("owner", content["owner"]),
        ("queue", evidence.get("queue")),
        ("priority", evidence.get("priority_class")),
    ]
    named = [f"{label} {code(value)}" for label, value in rows if value]
    if content["mentions"]:
        named.append(" ".join(mention(user) for user in content["mentions"][:5]))
    ours = [] if content["team"] else ["the platform team"]
    return "\n".join(["*Who*", *ours, *named])


def _what(content: Mapping[str, Any]) -> str:
    evidence = content["evidence"]
    rows = [code(content["subject"])]
    if content["subjects"] > 1:
        rows.append(
            f"and {number(content['subjects'] - 1)} more: {gpus(content['group_gpus'])} in all"
        )
    if evidence.get("workload"):
        rows.append(f"workload {code(evidence['workload'])}")
    if evidence.get("instance_type"):
        rows.append(f"instance type {code(evidence['instance_type'])}")
    return "\n".join(["*What*", *rows])


def _how_long(content: Mapping[str, Any]) -> str:
    begin, end = content["since"], content["running"]["as_of"]
    since = f"since {when(begin)} ({utc(begin)})"
    is_open = content["state"] != "resolved"
    if is_open and not _counted(content):
        # No edit follows its time, so that a span would soon be wrong.
        return f"*How long*\n{since}"
    span = duration(max(timedelta(), datetime.fromisoformat(end) - datetime.fromisoformat(begin)))
    bound = "at least " if content["evidence"].get("at_least") else ""
    return f"*How long*\n{bound}{span}, {'as of' if is_open else 'until'} {when(end)}\n{since}"


def _counted(content: Mapping[str, Any]) -> bool:
    run = content["running"]
    return run["gpu_hours"] is not None or run["cost_usd"] is not None


def _cost(content: Mapping[str, Any]) -> str:
    run = content["running"]
    if content["detector"] == "telemetry":
        return "*Cost*\nnot known while their telemetry fails"
    if not _counted(content):
        return "*Cost*\nnone is counted"
    rows = [f"{dollars(run['group_cost_usd'])} · {hours(run['group_gpu_hours'])}"]
    if price := content["evidence"].get("price"):
        rows.append(f"at {dollars(price['usd_per_gpu_hour'])} a GPU-hour")
    return "\n".join(["*Cost*", *rows])


def _who_may(content: Mapping[str, Any]) -> str:
    owners = ", ".join(safe(owner, 80) for owner in content["team_owners"][:5])
    team = f"the owners of team {code(content['team'])}" if content["team"] else ""
    named = f"{team} ({owners})" if team and owners else team
    rest = (
        " It is for the first of them; the others need the same." if content["subjects"] > 1 else ""
    )
    return f"May be run by {' or '.join(filter(None, (named, 'the platform team')))}. GPU Steward itself changes nothing.{rest}"


def _then(content: Mapping[str, Any]) -> list[Block]:
    """Show what frees the GPUs apart from what looks at them, so that no paste does both."""
    command = content["evidence"].get("release")
    if not command:
        return []
    return [_section("*Only when the stacks show that it hangs*"), _section(code_block(command))]


def _members(content: Mapping[str, Any]) -> list[str]:
    rows = []
    for one in content["members"]:
        owner = f", {safe(one['owner'], 60)}" if one["owner"] else ""
        rows.append(
            f"{code(one['subject'])}: {gpus(one['gpus'])}{owner}, since {when(one['since'])}"
        )
    return _some(rows, content["members_omitted"])


def _others(content: Mapping[str, Any]) -> list[str]:
    rows = []
    for other in content["others"]:
        apart = other["subject"] != content["subject"]
        whose = f"{subject(other['subject'])}: " if apart else ""
        text = f"{whose}{safe(other['reason'].replace('_', ' '))} since {when(other['since'])}"
        if other["resolved"]:
            text += f", ended {when(other['resolved'])} ({ending(other)})"
        if other["gpu_hours"] is not None:
            text += f": {hours(other['gpu_hours'])} · {dollars(other['cost_usd'])}"
        rows.append(text)
    return _some(rows, content["others_omitted"])


def _follows(content: Mapping[str, Any]) -> list[str]:
    rows = [
        f"{safe(one['detector'])}/{safe(one['reason'])}: {code(one['subject'])}"
        for one in content["follows"]
    ]
    return _some(rows, content["follows_omitted"])


def _some(rows: Sequence[str], omitted: int) -> list[str]:
    hidden = max(0, len(rows) - SHOWN) + omitted
    more = [f"+{number(hidden)} more: press Show evidence"] if hidden else []
    return [*rows[:SHOWN], *more]


def _about(content: Mapping[str, Any]) -> str:
    about = f"cluster {code(content['cluster'])} · {safe(content['detector'])}/{safe(content['reason'])}"
    detected, delivered = content["detected"], content["delivered"]
    parts = [f"card {code(content['card'])}", about, f"detected {when(detected)}"]
    if price := content["evidence"].get("price"):
        parts.append(f"price: {safe(price['source'])}, {safe(price['date'])}")
    late = datetime.fromisoformat(delivered) - datetime.fromisoformat(detected)
    if late >= LATE and content["held"] is None and "note" not in content:
        parts.append(f":hourglass: delivered {when(delivered)}, {duration(late)} late")
    return " · ".join(parts)


def _listed(head: str, rows: Sequence[str]) -> str:
    return "\n".join([head, *(f"• {row}" for row in rows)]) if rows else ""


def _section(text: str) -> Block:
    return {"type": "section", "text": _mrkdwn(text)}


def _mrkdwn(text: str) -> Block:
    # verbatim: Slack must not turn `@name`, `#name` or an address in a foreign name into a link.
    return {"type": "mrkdwn", "text": text, "verbatim": True}
