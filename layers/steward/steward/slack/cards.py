"""Cards as Block Kit: who, what, how long, what it costs, why we think so, and what to do.

Renders the facts that :mod:`steward.alerts.cards` states. The first line tells the story, on a
phone's notification too; there are no buttons, as nothing answers them.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from steward.slack.evidence import devices, lines
from steward.slack.limits import TEXT, fit, shorten
from steward.slack.text import (
    code,
    code_block,
    dollars,
    duration,
    gpus,
    hours,
    length,
    safe,
    utc,
    when,
)

LATE = timedelta(minutes=3)
"""From here on a card says how late it is: snapshot, evaluation and queues take a minute or two."""

_ICONS = {"page": ":rotating_light:", "warn": ":warning:", "info": ":information_source:"}
_ENDED = ":white_check_mark:"
_STORIES = {
    "idle": "{gpus} idle",
    "idle_held": "{gpus} idle, memory held",
    "suspected_hang": "{gpus} look busy and do nothing: suspected hang",
    "no_telemetry": "no telemetry for {gpus}",
    "telemetry_lost": "telemetry lost for {gpus}",
    "invalid_samples": "impossible samples from {gpus}",
    "unattributed": "{gpus} that no series attributes to a pod",
    "limit_binding": "borrowing limit binds while others leave quota idle: {gpus} borrowed",
    "at_limit": "borrowing limit reached: {gpus} borrowed",
    "cluster_full": "nothing left to lend: {gpus} borrowed",
    "reclaim_blocked": "own quota is not given back: {gpus} wait",
    "unbounded": "no borrowing limit: {gpus} within reach",
    "without_checkpoint": "preempted again and again, no checkpoint proven: {gpus}",
    "with_checkpoint": "preempted again and again, with checkpoints: {gpus}",
    "thrash": "preempted in circles, no progress: {gpus}",
    "missing_queue": "never starts, its queue does not exist: {gpus}",
    "queue_inactive": "cannot start, its queue is closed: {gpus}",
    "unknown_flavor": "never starts, no quota of its kind: {gpus}",
    "exceeds_capacity": "never starts, asks for more than there is: {gpus}",
    "waiting_for_quota": "waits for quota: {gpus}",
    "borrow_limit": "waits for a borrowing limit: {gpus}",
    "waiting_for_preemption": "waits for a preemption: {gpus}",
    "fragmentation": "waits for GPUs on one node: {gpus}",
    "behind_head": "waits behind another job: {gpus}",
    "not_evaluated": "waits, not looked at yet: {gpus}",
    "no_priority_class": "waits without a priority class: {gpus}",
    "reserved_without_pods": "quota held by no pods: {gpus}",
    "node_unhealthy": "node cannot run work: {gpus}",
    "provisioning_failed": "instance failed to come up: {gpus}",
    "quota_above_capacity": "quotas promise more than there is: {gpus} missing",
}
_ENDINGS = {
    "active_again": "active again",
    "released": "released: the GPUs are no longer held",
    "admitted": "admitted",
    "finished": "finished",
    "quota_changed": "the quota changed",
    "fixed": "fixed",
    "exempted": "exempted in the policy",
    "expired": "no longer tracked",
    "reason_changed": "goes on for another reason",
}

type Block = dict[str, Any]


def render(content: Mapping[str, Any]) -> dict[str, Any]:
    """Render a card.

    Parameters
    ----------
    content : mapping
        Facts of a card, with `delivered` (when it was first delivered) and `rerouted` (why it
        stands in the platform channel, or None).

    Returns
    -------
    dict
        `text` (notification and accessible fallback) and `blocks`, within Slack's limits.
    """
    pro, contra = lines(content)
    blocks: list[Block] = [
        {"type": "header", "text": {"type": "plain_text", "text": title(content), "emoji": True}},
        *(_section(note) for note in _notes(content)),
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
    if content["state"] == "open":
        blocks += [
            _section(f"*Do this*\n{_who_may(content)}"),
            _section(code_block(content["action"])),
            *_then(content),
        ]
    blocks += [
        _section(_listed("*Which GPUs*", devices(content))),
        _section(_listed("*Also in this incident*", _others(content))),
        {"type": "context", "elements": [_mrkdwn(_about(content))]},
    ]
    return fit({"text": _summary(content), "blocks": blocks})


def render_text(content: Mapping[str, Any]) -> str:
    """Render a card as text alone, for a message whose blocks Slack has refused."""
    facts = [
        _summary(content),
        *_notes(content),
        _who(content),
        _what(content),
        *devices(content),
        _how_long(content),
        _cost(content),
        _listed("*Why we think so*", lines(content)[0]),
        _about(content),
    ]
    todo = (
        f"\n*Do this*\n{code_block(content['action'], 1000)}" if content["state"] == "open" else ""
    )
    return shorten("\n".join(facts), TEXT - length(todo)) + todo


def title(content: Mapping[str, Any]) -> str:
    """Tell the story in one line: what, whose, where."""
    story = _story(content)
    if content["state"] == "open":
        head = f"{_ICONS[content['severity']]} {story[0].upper()}{story[1:]}"
    else:
        head = f"{_ENDED} Resolved: {story}"
    team = [safe(content["team"], 40)] if content["team"] else []
    return " · ".join([head, *team, _subject(content["subject"])])


def _story(content: Mapping[str, Any]) -> str:
    total = content["evidence"].get("job_gpus")
    count = gpus(content["gpus"])
    if total is not None and total > content["gpus"]:
        count = f"{count.partition(' ')[0]} of {gpus(total)}"
    if story := _STORIES.get(content["reason"]):
        # About no accelerator: cores and memory are told by the subject and the evidence.
        return story.format(gpus=count) if content["gpus"] else story.partition(":")[0]
    return f"{safe(content['reason'].replace('_', ' '), 60)}: {count}"


def _subject(subject: str) -> str:
    """Name a subject for people: `Job/ml/sweep-a` is "job sweep-a"."""
    kind, *path = subject.split("/")
    if kind == "ClusterQueue" and len(path) > 2:
        _, flavor, *resource = path  # the queue stands beside it, and says what the team says
        return f"{safe('/'.join(resource), 40)} on {safe(flavor, 40)}"
    if len(path) not in {1, 2}:
        return safe(subject, 80)
    short = "job" if kind.endswith("Job") else kind.lower()
    return f"{safe(short, 30)} {safe(path[-1], 64)}"


def _summary(content: Mapping[str, Any]) -> str:
    run = content["running"]
    end = [_ending(content)] if content["state"] == "resolved" else []
    figures = [dollars(run["cost_usd"])] if run["cost_usd"] is not None else []
    figures += [hours(run["gpu_hours"])] if run["gpu_hours"] is not None else []
    return " · ".join([title(content), *end, *figures, f"since {utc(content['since'])}"])


def _ending(told: Mapping[str, Any]) -> str:
    return _ENDINGS.get(told["resolution"], safe(told["resolution"]))


def _notes(content: Mapping[str, Any]) -> list[str]:
    """Say first what a reader must know about the card itself."""
    notes = []
    if content["state"] == "resolved":
        notes.append(f"*Resolved* {when(content['resolved'])}: {_ending(content)}")
    if content["stale_since"]:
        notes.append(
            f":grey_question: *Could not be judged* since {when(content['stale_since'])}: it may "
            f"have ended or got worse. What stands here is as of {when(content['running']['as_of'])}."
        )
    if content["rerouted"]:
        notes.append(f":warning: {safe(content['rerouted'], 500)}")
    return notes


def _who(content: Mapping[str, Any]) -> str:
    evidence = content["evidence"]
    rows = [
        ("team", content["team"]),
        ("owner", content["owner"]),
        ("queue", evidence.get("queue")),
        ("priority", evidence.get("priority_class")),
    ]
    named = [f"{label} {code(value)}" for label, value in rows if value]
    ours = [] if content["team"] else ["the platform team"]
    return "\n".join(["*Who*", *ours, *named])


def _what(content: Mapping[str, Any]) -> str:
    evidence = content["evidence"]
    rows = [code(content["subject"])]
    if evidence.get("workload"):
        rows.append(f"workload {code(evidence['workload'])}")
    if evidence.get("instance_type"):
        rows.append(f"instance type {code(evidence['instance_type'])}")
    return "\n".join(["*What*", *rows])


def _how_long(content: Mapping[str, Any]) -> str:
    begin, end = content["since"], content["running"]["as_of"]
    since = f"since {when(begin)} ({utc(begin)})"
    is_open = content["state"] == "open"
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
    rows = [f"{dollars(run['cost_usd'])} · {hours(run['gpu_hours'])}"]
    if price := content["evidence"].get("price"):
        rows.append(f"at {dollars(price['usd_per_gpu_hour'])} a GPU-hour")
    return "\n".join(["*Cost*", *rows])


def _who_may(content: Mapping[str, Any]) -> str:
    owners = ", ".join(safe(owner, 80) for owner in content["team_owners"][:5])
    team = f"the owners of team {code(content['team'])}" if content["team"] else ""
    named = f"{team} ({owners})" if team and owners else team
    return f"May be run by {' or '.join(filter(None, (named, 'the platform team')))}. GPU Steward itself changes nothing."


def _then(content: Mapping[str, Any]) -> list[Block]:
    """Show what frees the GPUs apart from what looks at them, so that no paste does both."""
    command = content["evidence"].get("release")
    if not command:
        return []
    return [_section("*Only when the stacks show that it hangs*"), _section(code_block(command))]


def _others(content: Mapping[str, Any]) -> list[str]:
    rows = []
    for other in content["others"]:
        text = f"{safe(other['reason'].replace('_', ' '))} since {when(other['since'])}"
        if other["resolved"]:
            text += f", ended {when(other['resolved'])} ({_ending(other)})"
        if other["gpu_hours"] is not None:
            text += f": {hours(other['gpu_hours'])} · {dollars(other['cost_usd'])}"
        rows.append(text)
    return rows


def _about(content: Mapping[str, Any]) -> str:
    about = f"cluster {code(content['cluster'])} · {safe(content['detector'])}/{safe(content['reason'])}"
    detected, delivered = content["detected"], content["delivered"]
    parts = [about, f"detected {when(detected)}"]
    if price := content["evidence"].get("price"):
        parts.append(f"price: {safe(price['source'])}, {safe(price['date'])}")
    late = datetime.fromisoformat(delivered) - datetime.fromisoformat(detected)
    if late >= LATE:
        parts.append(f":hourglass: delivered {when(delivered)}, {duration(late)} late")
    return " · ".join(parts)


def _listed(head: str, rows: Sequence[str]) -> str:
    return "\n".join([head, *(f"• {row}" for row in rows)]) if rows else ""


def _section(text: str) -> Block:
    return {"type": "section", "text": _mrkdwn(text)}


def _mrkdwn(text: str) -> Block:
    # verbatim: Slack must not turn `@name`, `#name` or an address in a foreign name into a link.
    return {"type": "mrkdwn", "text": text, "verbatim": True}
