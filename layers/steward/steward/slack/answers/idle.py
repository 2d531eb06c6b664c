"""`/gpu idle`: allocated and unused GPUs by job, the costliest first."""

from collections.abc import Sequence

from steward.cluster.figures import stamp
from steward.cluster.findings import Finding
from steward.slack.answers.view import ClusterView, bullets, no_team
from steward.slack.text import code, dollars, gpus, hours, number, safe, when


def idle(views: Sequence[ClusterView], team: str | None) -> list[str]:
    """List idle GPUs; of a team, or of everybody."""
    if team is not None and (unknown := no_team(views, team)):
        return unknown
    asked = [view for view in views if team is None or view.policy.team_named(team)]
    return [line for view in asked for line in _cluster(view, team)]


def _cluster(view: ClusterView, team: str | None) -> list[str]:
    if view.evaluation is None:
        return [f"*{safe(view.name)}*, {view.looked_at()}: idleness cannot be told"]
    found = [
        finding
        for finding in view.findings()
        if finding.detector == "idle_gpus" and team in {None, finding.team}
    ]
    found.sort(key=lambda finding: (-(finding.gpu_hours or 0.0), finding.subject))
    together = sum(finding.gpus for finding in found)
    spent = sum(finding.gpu_hours or 0.0 for finding in found)
    costs = [finding.cost_usd for finding in found if finding.cost_usd is not None]
    head = f"*{safe(view.name)}*, {view.looked_at()}: "
    if not found:
        return [f"{head}no GPU is known to be idle", *_unjudged(view)]
    figures = f"{gpus(together)} idle, {hours(spent)}, {dollars(sum(costs) if costs else None)}"
    return [head + figures, *bullets([_line(finding) for finding in found]), *_unjudged(view)]


def _unjudged(view: ClusterView) -> list[str]:
    """Say what else may be idle: what could not be judged is never told as busy."""
    unknown = view.evaluation.unknown if view.evaluation else ()
    subjects = {line.subject for line in unknown if line.detector == "idle_gpus"}
    if not subjects:
        return []
    return [f"Not judged, of all teams: {number(len(subjects))} subjects, `/gpu status` says more"]


def _line(finding: Finding) -> str:
    told = [
        f"{code(finding.subject)}: {gpus(finding.gpus)}",
        safe(finding.reason.replace("_", " ")),
        f"since {when(stamp(finding.since))}",
        hours(finding.gpu_hours),
        dollars(finding.cost_usd),
    ]
    owner = [f"{safe(finding.owner, 60)}"] if finding.owner else []
    return " · ".join([*told, *owner])
