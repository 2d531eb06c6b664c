"""`/gpu why <job>`: everything that is said of one job, info included."""

from collections.abc import Sequence
from difflib import get_close_matches

from steward.alerts.ranks import rank
from steward.cluster.figures import stamp
from steward.cluster.findings import Finding, Unknown
from steward.slack.answers.status import unread
from steward.slack.answers.view import ClusterView, finding_title
from steward.slack.text import code, code_block, dollars, hours, safe, when


def why(views: Sequence[ClusterView], job: str) -> list[str]:
    """Say what is known of a job.

    Parameters
    ----------
    job : str
        Its name, `<namespace>/<name>`, or the whole subject `<Kind>/<namespace>/<name>`.
    """
    lines: list[str] = []
    for view in views:
        found = [f for f in view.findings() if names(f.subject, job)]
        found.sort(key=lambda finding: -rank(finding.severity))
        unknown = [u for u in _unknown(view) if names(u.subject, job)]
        if found or unknown:
            lines.append(f"*{safe(view.name)}*, {view.looked_at()}")
            lines += [line for finding in found for line in _finding(finding)]
            lines += [f"Cannot be judged: {safe(u.detector)}, {safe(u.reason)}" for u in unknown]
    return lines or _nothing(views, job)


def names(subject: str, job: str) -> bool:
    """Tell whether a subject is the job: all of it, or its last parts."""
    return f"/{subject}".lower().endswith(f"/{job.lower()}")


def _unknown(view: ClusterView) -> tuple[Unknown, ...]:
    return view.evaluation.unknown if view.evaluation else ()


def _finding(finding: Finding) -> list[str]:
    figures = [hours(finding.gpu_hours)] if finding.gpu_hours is not None else []
    figures += [dollars(finding.cost_usd)] if finding.cost_usd is not None else []
    since = f"since {when(stamp(finding.since))}"
    lines = [" · ".join([finding_title(finding), since, *figures])]
    if sentence := finding.evidence.get("sentence"):
        lines.append(safe(sentence, 900))
    if message := finding.evidence.get("message"):
        lines.append(f"Kueue says: {code(message, 500)}")
    return [*lines, code_block(finding.action, 1000)]


def _nothing(views: Sequence[ClusterView], job: str) -> list[str]:
    known = {f.subject for v in views for f in v.findings()} | {
        u.subject for v in views for u in _unknown(v)
    }
    short = {subject.rpartition("/")[2]: subject for subject in sorted(known)}
    near = [short[name] for name in get_close_matches(job.rpartition("/")[2], short, n=3)]
    seen = any(view.evaluation for view in views)
    told = "Nothing is said of {}: no detector finds anything about it."
    untold = "Nothing can be told of {}: there is no evaluation."
    lines = [(told if seen else untold).format(code(job))]
    for view in views:
        lines += [f"{safe(view.name)}: {view.looked_at()}", *unread(view)]
    return lines + ([f"Near to it: {', '.join(map(code, near))}"] if near else [])
