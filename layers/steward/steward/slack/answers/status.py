"""`/gpu status`: whether anything is wrong, and what quiet can be relied on."""

from collections.abc import Sequence

from steward.slack.answers.view import ClusterView, bullets, card_line
from steward.slack.text import code, number, safe

SHOWN = 10
UNREAD_SHOWN = 8


def status(views: Sequence[ClusterView]) -> list[str]:
    """Say how each cluster stands."""
    return [line for view in views for line in _cluster(view)]


def _cluster(view: ClusterView) -> list[str]:
    cards = view.cards()
    pages = sum(card.severity == "page" for card in cards)
    told = ["no card is open"]
    if cards:
        told = [f"{number(len(cards))} open", f"{number(pages)} of them page"]
    undelivered = sum(c.desired != c.delivered and not c.waits for c in view.state.cards.values())
    told += [f"{number(undelivered)} messages not delivered yet"] if undelivered else []
    lines = [f"*{safe(view.name)}*, {view.looked_at()}: {', '.join(told)}"]
    lines += bullets([card_line(view, card) for card in cards[:SHOWN]])
    if len(cards) > SHOWN:
        lines.append(f"+{number(len(cards) - SHOWN)} more: `/gpu team <name>`")
    return lines + blind_spots(view)


def blind_spots(view: ClusterView) -> list[str]:
    """Say what could not be judged: quiet there is no health."""
    if view.evaluation is None:
        return ["Nothing of it can be told: there is no evaluation that can be read."]
    workloads = {line.subject for line in view.evaluation.unknown if not line.blind}
    lines = unread(view)
    if workloads:
        lines.append(f"Not judged: {number(len(workloads))} subjects, `/gpu why <job>` says why")
    stale = sum(alert.stale for alert in view.state.alerts.values())
    return lines + ([f"Open, and not judged now: {number(stale)} alerts"] if stale else [])


def unread(view: ClusterView) -> list[str]:
    """Name the parts that could not be read, in a line; none where everything could be."""
    refused = sorted(
        {
            f"{code(line.subject)} ({safe(line.reason)})"
            for line in (view.evaluation.unknown if view.evaluation else ())
            if "/" not in line.subject or line.blind
        }
    )
    if not refused:
        return []
    more = len(refused) - UNREAD_SHOWN
    rest = f", +{number(more)} more" if more > 0 else ""
    return [f"Could not be read: {', '.join(refused[:UNREAD_SHOWN])}{rest}"]
