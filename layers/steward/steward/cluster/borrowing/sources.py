"""What SageMaker's API and the policy say of a queue's borrowing limit, beside what Kueue has."""

from collections.abc import Iterator
from math import ceil, floor
from typing import Any

from steward.cluster.amounts import accelerators_each
from steward.cluster.borrowing.places import Place
from steward.cluster.control_plane import ComputeQuota
from steward.cluster.figures import tidy
from steward.cluster.policy import SharingStrategy, Team
from steward.cluster.snapshot import Snapshot


def quota_of(place: Place, snapshot: Snapshot) -> ComputeQuota | None:
    """Find the compute quota that a row is made from: of the team, of the instance type."""
    team = place.team.name if place.team else None
    found = [
        quota
        for quota in snapshot.control_plane.quotas
        if quota.team == team and place.row.flavor in quota.accelerators
    ]
    return min(found, key=lambda quota: (not quota.active, quota.id), default=None)


def told_by_api(place: Place, quota: ComputeQuota | None, idle: float) -> dict[str, Any] | None:
    """Give the API's figures with both readings of BorrowLimit; None without such a quota.

    Parameters
    ----------
    place : Place
        Accelerators only are compared: vCPU and memory of a quota follow by ratio.
    quota : ComputeQuota or None
        As :func:`quota_of` finds it.
    idle : float
        What others can still lend.
    """
    if quota is None:
        return None
    own, percent = _own(place, quota), quota.borrow_limit_percent
    reading = own_reading(place, quota)
    return {
        "id": quota.id,
        "strategy": quota.strategy,
        "borrow_limit_percent": percent,
        "absolute": tidy(_absolute(place, quota)),
        "quota": tidy(own),
        "reading_own_quota": tidy(reading),
        "reading_idle": None if percent is None else tidy(percent / 100 * idle),
        "agrees": _agrees(reading, place.limit),
    }


def told_by_policy(team: Team | None) -> dict[str, Any] | None:
    """Give the policy's figures; None outside governance."""
    if team is None:
        return None
    return {
        "strategy": team.strategy.value,
        "borrow_limit_percent": team.borrow_limit_percent,
        "accelerators": team.accelerators,
    }


def own_reading(place: Place, quota: ComputeQuota) -> float | None:
    """Read BorrowLimit as a percentage of the team's own quota, a limit in amounts first."""
    absolute = _absolute(place, quota)
    if absolute is not None:
        return absolute
    own, percent = _own(place, quota), quota.borrow_limit_percent
    if quota.strategy in {SharingStrategy.LEND, SharingStrategy.DONT_LEND}:
        return 0.0
    return None if own is None or percent is None else own * percent / 100


def differences(place: Place, quota: ComputeQuota | None) -> list[str]:
    """Say in sentences where Kueue, the API and the policy contradict each other."""
    return [
        *_api_and_kueue(place, quota),
        *_policy_and_api(place.team, quota),
        *_policy_and_kueue(place),
    ]


def _api_and_kueue(place: Place, quota: ComputeQuota | None) -> Iterator[str]:
    if quota is None:
        return
    own, reading = _own(place, quota), own_reading(place, quota)
    if own is not None and own != place.row.nominal:
        yield f"the quota in SageMaker says {own:g}, Kueue's nominal quota is {place.row.nominal:g}"
    if _agrees(reading, place.limit) is False:
        said = f"{reading:g}" if reading is not None else ""
        percent = quota.borrow_limit_percent
        if own is not None and percent is not None and _absolute(place, quota) is None:
            said = f"{percent} % of {own:g} = {said}"
        yield f"the quota in SageMaker says {said}, Kueue has {_limit(place)}"


def _policy_and_api(team: Team | None, quota: ComputeQuota | None) -> Iterator[str]:
    if team is None or quota is None:
        return
    if quota.strategy is not None and quota.strategy != team.strategy:
        yield f"the policy says {team.strategy.value}, the quota in SageMaker {quota.strategy}"
    theirs = quota.borrow_limit_percent
    if None not in {theirs, team.borrow_limit_percent} and theirs != team.borrow_limit_percent:
        yield (
            f"the policy lets {team.name} borrow {team.borrow_limit_percent} %, "
            f"the quota in SageMaker {theirs} %"
        )


def _policy_and_kueue(place: Place) -> Iterator[str]:
    """Compare the sum and the percentage: of which instance types it consists, no policy says."""
    team, nominal = place.team, place.row.nominal
    if team is None or not place.each:
        return
    total = round(sum(accelerators_each(r.resource) * r.nominal for r in place.queue.rows), 6)
    if total != team.accelerators:
        yield f"the policy gives {team.name} {team.accelerators}, Kueue's nominal quota is {total:g}"
    percent = team.borrow_limit_percent
    if percent is None or nominal <= 0:
        return
    if _agrees(nominal * percent / 100, place.limit) is False:
        yield (
            f"the policy lets {team.name} borrow {percent} % of {nominal:g} = "
            f"{nominal * percent / 100:g}, Kueue has {_limit(place)}"
        )


def _limit(place: Place) -> str:
    return "no limit" if place.limit is None else f"a limit of {place.limit:g}"


def _own(place: Place, quota: ComputeQuota) -> float | None:
    return quota.accelerators[place.row.flavor] if place.each == 1 else None


def _absolute(place: Place, quota: ComputeQuota) -> float | None:
    limits = [a for a in quota.absolute_borrow_limits if a.instance_type == place.row.flavor]
    return next((a.accelerators for a in limits if place.each == 1), None)


def _agrees(reading: float | None, limit: float | None) -> bool | None:
    """Compare, with a fraction rounded either way: which way it is rounded is not confirmed."""
    if reading is None:
        return None
    return limit is not None and floor(reading) <= limit <= ceil(reading)
