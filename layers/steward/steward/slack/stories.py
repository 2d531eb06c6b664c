"""What happened, in a few words: the first line of every message, on a phone's notification too."""

from collections.abc import Mapping
from typing import Any

from steward.slack.text import gpus, number, safe

_ICONS = {"page": ":rotating_light:", "warn": ":warning:", "info": ":information_source:"}
_ENDED = ":white_check_mark:"
_UNJUDGED = ":grey_question:"
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
    "cluster_unreachable": "cluster cannot be read: nothing of it is judged",
    "detector_failed": "a detector fails: what it looks for is not judged",
}


def title(about: Mapping[str, Any]) -> str:
    """Tell the story in one line: what, whose, where.

    Parameters
    ----------
    about : mapping
        Facts of a card, or the part of them that a note carries.
    """
    story = _story(about)
    team = [safe(about["team"], 40)] if about["team"] else []
    return " · ".join([_head(about, story), *team, _where(about)])


def _head(about: Mapping[str, Any], story: str) -> str:
    begun = f"{story[0].upper()}{story[1:]}"
    match about["state"]:
        case "resolved":
            return f"{_ENDED} Resolved: {story}"
        case "handed_over":
            return f"{_UNJUDGED} Not judged for a day: {story}"
    return f"{_ICONS[about['severity']]} {begun}"


def _story(about: Mapping[str, Any]) -> str:
    total = about["evidence"].get("job_gpus")
    count = gpus(about["gpus"])
    if about["subjects"] > 1:
        count = gpus(about["group_gpus"])
    elif total is not None and total > about["gpus"]:
        count = f"{count.partition(' ')[0]} of {gpus(total)}"
    if story := _STORIES.get(about["reason"]):
        # About no accelerator: cores and memory are told by the subject and the evidence.
        return story.format(gpus=count) if about["gpus"] else story.partition(":")[0]
    return f"{safe(about['reason'].replace('_', ' '), 60)}: {count}"


def _where(about: Mapping[str, Any]) -> str:
    named = subject(about["subject"])
    others = about["subjects"] - 1
    return f"{named} and {number(others)} more" if others > 0 else named


def subject(name: str) -> str:
    """Name a subject for people: `Job/ml/sweep-a` is "job sweep-a"."""
    kind, *path = name.split("/")
    if kind == "ClusterQueue" and len(path) > 2:
        _, flavor, *resource = path  # the queue stands beside it, and says what the team says
        return f"{safe('/'.join(resource), 40)} on {safe(flavor, 40)}"
    if len(path) not in {1, 2}:
        return safe(name, 80)
    short = "job" if kind.endswith("Job") else kind.lower()
    return f"{safe(short, 30)} {safe(path[-1], 64)}"
