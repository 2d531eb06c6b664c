"""The lines of cards about queues: who borrows, who was preempted and lost what, who waits and why."""

from collections.abc import Iterable, Mapping
from typing import Any

from steward.cluster.amounts import quantity
from steward.slack.text import code, hours, number, safe, when

SHOWN = 4
"""Items of a list that a card shows, as for accelerators."""

type Lines = tuple[list[str], list[str]]


def borrowing(content: Mapping[str, Any]) -> Lines:
    """Say what is borrowed, whose quota lies idle, and what a higher limit would admit."""
    known = {**content["evidence"], **content["running"]}
    resource = str(content["subject"]).partition("/")[2].partition("/")[2].partition("/")[2]
    pro, contra = [], []

    def amount(value: float | None) -> str:
        return "not known" if value is None else quantity(resource, value)

    if known.get("limit") is None:
        pro.append(f"Borrows {amount(known.get('borrowed'))} {code(resource)}; no limit is set")
    else:
        pro.append(
            f"Borrows {amount(known.get('borrowed'))} of at most {amount(known['limit'])} "
            f"{code(resource)}"
        )
    if known.get("limit") is None and known.get("could_borrow"):
        pro.append(f"Could borrow {amount(known['could_borrow'])} in all")
    lenders = [_lender(one, amount) for one in known.get("lenders") or ()]
    pro += _some("Left idle by", lenders)
    borrowers = [
        f"{_team(one)} {amount(one.get('borrowed'))}" for one in known.get("borrowers") or ()
    ]
    pro += _some("Borrowed by", borrowers)
    if (more := known.get("raise_by")) is not None:
        admitted = [code(one["subject"]) for one in known.get("admits") or ()]
        pro.append(f"Raising the limit by {amount(more)} admits {', '.join(admitted[:SHOWN])}")
    if waits := known.get("waits"):
        pro.append(
            f"First in line: {code(waits['subject'])}, {amount(waits.get('missing'))} missing"
        )
    for one in known.get("cohort_limits") or ():
        pro.append(
            f"Cohort {code(one['cohort'])} has a limit too: {amount(one['limit'])}, "
            f"{amount(one['needed'])} needed"
        )
    if why := known.get("why"):
        pro.append(safe(why, 400))
    if (waiting := known.get("waiting")) is not None:
        pro.append(f"{number(waiting)} waiting workload{'' if waiting == 1 else 's'} of the team")
    contra += _some(
        "Idle and not lent",
        [f"{_team(one)} {amount(one.get('idle'))}" for one in known.get("idle_not_lent") or ()],
    )
    contra += [safe(one) for one in known.get("differs") or ()]
    contra.append("Counted are reservations (quota), as Kueue counts, not what the GPUs do")
    return pro, contra


def _lender(one: Mapping[str, Any], amount: Any) -> str:
    since = one.get("since")
    bound = "at least " if one.get("at_least") else ""
    return f"{_team(one)} {amount(one.get('idle'))}" + (
        f" ({bound}since {when(since)})" if since else ""
    )


def _team(one: Mapping[str, Any]) -> str:
    return code(one.get("team") or one.get("queue") or one.get("cohort"))


def _some(head: str, items: Iterable[str]) -> list[str]:
    named = list(items)
    if not named:
        return []
    more = f", +{len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return [f"{head}: {', '.join(named[:SHOWN])}{more}"]


def pending(content: Mapping[str, Any]) -> Lines:
    """Say why a workload waits, in Kueue's words and in ours, and who is ahead of it."""
    known = {**content["evidence"], **content["running"]}
    pro, contra = [], []
    if sentence := known.get("sentence"):
        pro.append(safe(sentence, 900))
    if message := known.get("message"):
        pro.append(f"Kueue says: {code(message, 500)}")
    elif content["reason"] != "reserved_without_pods":
        contra.append("Kueue has said nothing of it yet")
    if (position := known.get("position")) is not None:
        ahead = known.get("ahead")
        pro.append(
            f"Position {number(position)} in its queue"
            + (f", {number(ahead)} ahead" if ahead else "")
        )
    if contradiction := known.get("contradiction"):
        contra.append(f"Objects and message disagree: {safe(contradiction, 600)}")
    return pro, contra


_CHECKPOINTS = {
    "proven": "a checkpoint was written during a run that was preempted",
    "absent": "none found where the policy says that they are written",
    "declared": "declared, but no write was found",
    "unreadable": "where they are written could not be looked at",
}


def preemptions(content: Mapping[str, Any]) -> Lines:
    """Say how often, by whom, what was lost, and what is known of checkpoints."""
    known = {**content["evidence"], **content["running"]}
    bound = "at least " if known.get("at_least") else ""
    pro: list[str] = []
    contra: list[str] = []
    days = known.get("period_hours", 0) / 24
    pro.append(f"Preempted {bound}{number(known.get('count', 0))} times in {number(days)} days")
    causes = [
        f"{safe(name)} {number(count)}" for name, count in (known.get("causes") or {}).items()
    ]
    pro += _some("Rule", causes)
    pro += _some(
        "Made room for",
        [f"{code(one['subject'])} {number(one['count'])}" for one in known.get("preemptors") or ()],
    )
    if (lost := known.get("lost_gpu_hours")) is not None:
        least = "at least " if known.get("lost_at_least") else ""
        pro.append(f"Lost: {least}{hours(lost)}, from run start or last checkpoint to preemption")
    both = [one["subject"] for one in known.get("jobs") or ()]
    if both:
        pro.append(f"Each preempts the other: {' and '.join(map(code, both))}")
    checkpoint = known.get("checkpoint")
    line = f"Checkpoints: {_CHECKPOINTS.get(str(checkpoint), safe(checkpoint))}"
    (contra if checkpoint in {"declared", "unreadable"} else pro).append(line)
    pro += [safe(one, 400) for one in known.get("advice") or ()]
    if known.get("at_least"):
        contra.append("May be more: some of it nobody saw")
    return pro, contra


def capacity(content: Mapping[str, Any]) -> Lines:
    """Say which node or quota it is about, and what stands on it."""
    known = {**content["evidence"], **content["running"]}
    pro: list[str] = []
    contra: list[str] = []
    pro += [safe(one, 300) for one in known.get("why") or ()]
    if known.get("status"):
        pro.append(f"SageMaker says: {safe(known['status'], 60)}")
    if known.get("message"):
        pro.append(safe(known["message"], 600))
    if known.get("quota") is not None:
        pro.append(
            f"Quotas promise {number(known['quota'])}, usable are {number(known['usable'])} "
            f"of {number(known['capacity'])}"
        )
    pro += _some(
        "Not usable",
        [f"{code(one['node'])} ({safe(one['why'])})" for one in known.get("not_usable") or ()],
    )
    pro += [safe(one.get("description"), 400) for one in (known.get("events") or ())[:SHOWN]]
    affected = [code(one["subject"]) for one in known.get("workloads") or ()]
    contra += _some("Runs on it", affected)
    return pro, contra
