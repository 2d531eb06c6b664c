"""The lines of a card that say why we think so, and what speaks against it or was not seen."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from steward.slack import queue_evidence
from steward.slack.text import code, hours, number, percent, safe, when

SHOWN = 4
"""Items of a list that a card shows: what fits a phone's screen beside the rest."""

type Lines = tuple[list[str], list[str]]
"""For, and against or not seen: mrkdwn, one fact a line."""


def lines(content: Mapping[str, Any]) -> Lines:
    """Put a card's evidence into words.

    Parameters
    ----------
    content : mapping
        Facts of :func:`steward.alerts.cards.facts`.

    Returns
    -------
    Lines
        A detector without words of its own has its single-valued evidence listed.
    """
    describe = _DETECTORS.get(content["detector"], _any)
    return describe(content)


def devices(content: Mapping[str, Any]) -> list[str]:
    """Name the accelerators, a line each: node, UUID, hours."""
    accelerators = content["evidence"].get("accelerators", [])
    each = zip(accelerators, content["running"]["device_gpu_hours"], strict=True)
    # What no series has named is told by its pod, once however many of them it holds.
    rows = Counter(_device(device, spent) for device, spent in each)
    named = [f"{row}, {count} of them" if count > 1 else row for row, count in rows.items()]
    hidden = sum(list(rows.values())[SHOWN:]) + content["omitted"].get("accelerators", 0)
    return [*named[:SHOWN], f"+{number(hidden)} more: press Show evidence"] if hidden else named


def _device(device: Mapping[str, Any], spent: float | None) -> str:
    node = code(device["node"]) if device.get("node") else "node not known"
    name = code(device["uuid"]) if device.get("uuid") else f"GPU of pod {code(device.get('pod'))}"
    mig = f" (MIG {safe(device['mig'])})" if device.get("mig") else ""
    return f"{node} {name}{mig}" + (f" · {hours(spent)}" if spent is not None else "")


def _idle(content: Mapping[str, Any]) -> Lines:
    evidence, run = content["evidence"], content["running"]
    metric = code(evidence.get("activity_metric"))
    window = evidence.get("window_minutes")
    pro, contra = [], []
    if (highest := run.get("activity_max")) is not None:
        pro.append(f"{metric} at most {percent(highest)} over {window} min, each GPU by itself")
    if (coverage := run.get("coverage")) is not None:
        samples = run.get("samples") or {}
        seen = f" ({samples['present']} of {samples['expected']} samples)" if samples else ""
        pro.append(f"Coverage of that window {percent(coverage)}{seen}")
    if (held := run.get("held_bytes")) is None:
        contra.append("GPU memory held was not measured")
    else:
        pro.append(f"GPU memory held: {number(held / 2**30, 1)} GiB")
    for key, words in (("busy", "busy"), ("unknown", "could not be judged: not counted as idle")):
        if count := evidence.get(key):
            contra.append(f"{number(count)} more of the job's GPUs: {words}")
    if content["reason"] == "idle" and (count := evidence.get("idle_held")):
        contra.append(f"{number(count)} of them hold memory: something may be loaded there")
    if evidence.get("at_least"):
        contra.append("It may have begun earlier: the look-back ended before the idleness did")
    contra.append("CPU work was not measured: this speaks of the GPUs alone")
    return pro, contra


def _hang(content: Mapping[str, Any]) -> Lines:
    evidence, run = content["evidence"], content["running"]
    metric, window = code(evidence.get("activity_metric")), evidence.get("window_minutes")
    pro = [
        f"Looks busy: {metric} at least {percent(run['activity_min'])} over {window} min, all GPUs"
    ]
    contra = []
    supports, silent = evidence.get("supports", {}), evidence.get("silent", {})
    if (tensor := run.get("tensor_max")) is not None:
        of = _of(supports.get("tensor_activity"), content["gpus"])
        pro.append(f"Does nothing: tensor activity at most {percent(tensor)}{of}")
    if (watts := run.get("power_max_watts")) is not None:
        limit = evidence.get("power_limit_watts")
        share = f" of a limit of {number(limit)} W" if limit is not None else ""
        of = _of(supports.get("power"), content["gpus"])
        pro.append(f"Does nothing: power at most {number(watts)} W{share}{of}")
    if (coverage := run.get("coverage")) is not None:
        samples = run.get("samples") or {}
        seen = f" ({samples['present']} of {samples['expected']} samples)" if samples else ""
        pro.append(f"Coverage of that window {percent(coverage)}{seen}")
    for signal, count in silent.items():
        name = safe(signal.replace("_", " "))
        contra.append(f"{name} tells nothing{_of(count, content['gpus']) or ' here'}")
    if count := evidence.get("not_judged"):
        contra.append(f"{number(count)} more of the job's GPUs: not judged yet")
    if evidence.get("at_least"):
        contra.append("It may have begun earlier: the look-back ended before the hang did")
    if (until := run.get("hung_until")) and content["state"] == "open":
        contra.append(f"Not seen since {when(until)}: the GPUs do nothing at all since then")
    contra.append("Work without tensor cores looks the same: only the stacks of the ranks tell")
    return pro, contra


def _of(count: float | None, total: float) -> str:
    """Say on how many GPUs, where it is not all of them."""
    return f" on {number(count)} of {number(total)} GPUs" if count and count < total else ""


def _telemetry(content: Mapping[str, Any]) -> Lines:
    evidence, run = content["evidence"], content["running"]
    pro = [safe(evidence.get("what_to_check"), 600)]
    if share := run.get("share"):
        total = run["judged_gpus"]
        dark = f"{number(share * total)} of the {number(total)} GPUs"
        pro.append(f"Cannot be judged: {dark} that are old enough")
    workloads = evidence.get("workloads", [])
    if workloads:
        named = [code(name) for name in workloads[:SHOWN]]
        hidden = len(workloads) - SHOWN + content["omitted"].get("workloads", 0)
        pro.append("Concerns " + ", ".join(named) + (f", +{hidden} more" if hidden > 0 else ""))
    for metric, count in sorted((run.get("dropped") or {}).items())[:SHOWN]:
        pro.append(f"{code(metric)}: {number(count)} impossible values dropped")
    return pro, ["These GPUs are called neither idle nor busy meanwhile"]


def _any(content: Mapping[str, Any]) -> Lines:
    known = {**content["evidence"], **content["running"]}
    single = {
        key: value
        for key, value in known.items()
        if isinstance(value, str | int | float) and key not in _SHOWN_ELSEWHERE
    }
    return [f"{safe(key).replace('_', ' ')}: {code(value)}" for key, value in single.items()], []


_SHOWN_ELSEWHERE = frozenset(
    {
        "as_of",
        "cost_usd",
        "created_by",
        "gpu_hours",
        "held_bytes",
        "instance_type",
        "job_gpus",
        "priority_class",
        "queue",
        "workload",
    }
)
_DETECTORS: dict[str, Callable[[Mapping[str, Any]], Lines]] = {
    "idle_gpus": lambda content: (
        _hang(content) if content["reason"] == "suspected_hang" else _idle(content)
    ),
    "telemetry": _telemetry,
    "borrowing": queue_evidence.borrowing,
    "pending": queue_evidence.pending,
    "preemptions": queue_evidence.preemptions,
    "capacity": queue_evidence.capacity,
}
