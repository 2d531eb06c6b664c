"""Kueue's objects of either API form (v1beta1, v1beta2) reduced to one model: pure.

The forms differ in names only (`cohort` and `cohortName`, `priorityClassName` and
`priorityClassRef`), so an object is read by the names it has, whatever version it states.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from steward.cluster.accelerators import Owner
from steward.cluster.kueue import ClusterQueue, Condition, LocalQueue, QuotaRow, Workload
from steward.sources.kubernetes_fields import (
    MalformedError,
    mapping,
    objects,
    optional_text,
    optional_time,
    text,
    time,
)
from steward.sources.kubernetes_objects import read_controller
from steward.sources.kubernetes_requests import effective_requests
from steward.sources.quantity import parse

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
"""API versions that this module reads, newest first."""

_STATUS = {"True": True, "False": False}


def read_workload(item: Mapping[str, Any]) -> Workload:
    """Reduce a Workload.

    Its owner is the object that Kueue queued (a Job, not the CronJob above it): several Workloads
    may share what stands above.

    Raises
    ------
    MalformedError
        A field is not what the API promises.
    """
    metadata, spec, status = (mapping(item, key) for key in ("metadata", "spec", "status"))
    admission = mapping(status, "admission")
    namespace = text(metadata, "namespace")
    conditions = _conditions(status)
    controller = read_controller(metadata)
    finished = any(c.type == "Finished" and c.status is True for c in conditions)
    priority_class = optional_text(mapping(spec, "priorityClassRef"), "name")
    return Workload(
        namespace=namespace,
        name=text(metadata, "name"),
        uid=text(metadata, "uid"),
        created=time(metadata, "creationTimestamp"),
        queue=optional_text(spec, "queueName"),
        priority=_count(spec, "priority", default=0),
        priority_class=priority_class or optional_text(spec, "priorityClassName"),
        active=spec.get("active") is not False,
        owner=Owner(kind=controller.kind, namespace=namespace, name=controller.name)
        if controller
        else None,
        cluster_queue=optional_text(admission, "clusterQueue"),
        requests=_floats(_requests(spec, status, admission)),
        # The admission of a finished workload stays on record; its quota is free again.
        assigned={} if finished else _assigned(status, admission),
        conditions=conditions,
    )


def read_cluster_queue(item: Mapping[str, Any]) -> ClusterQueue:
    """Reduce a ClusterQueue; raises MalformedError where a field is not what the API promises."""
    spec, status = mapping(item, "spec"), mapping(item, "status")
    reserved = _usage(status, "flavorsReservation")
    used = _usage(status, "flavorsUsage")
    rows = []
    for flavor, quota in _quotas(spec):
        resource = text(quota, "name")
        nominal = _quantity(quota, "nominalQuota")
        if nominal is None:
            raise MalformedError(f"nominalQuota of {resource} in {flavor} is missing")
        held, running = reserved.get((flavor, resource), {}), used.get((flavor, resource), {})
        rows.append(
            QuotaRow(
                flavor=flavor,
                resource=resource,
                nominal=float(nominal),
                borrowing_limit=_float(_quantity(quota, "borrowingLimit")),
                lending_limit=_float(_quantity(quota, "lendingLimit")),
                reserved=_float(_quantity(held, "total")),
                used=_float(_quantity(running, "total")),
                borrowed=_float(_borrowed(held or running, nominal)),
            )
        )
    return ClusterQueue(
        name=text(mapping(item, "metadata"), "name"),
        cohort=optional_text(spec, "cohortName") or optional_text(spec, "cohort"),
        rows=tuple(rows),
        conditions=_conditions(status),
    )


def read_local_queue(item: Mapping[str, Any]) -> LocalQueue:
    """Reduce a LocalQueue; raises MalformedError where a field is not what the API promises."""
    metadata = mapping(item, "metadata")
    return LocalQueue(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        cluster_queue=text(mapping(item, "spec"), "clusterQueue"),
        conditions=_conditions(mapping(item, "status")),
    )


def _conditions(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=text(one, "type"),
            status=_STATUS.get(text(one, "status")),
            reason=optional_text(one, "reason") or "",
            message=optional_text(one, "message") or "",
            since=optional_time(one, "lastTransitionTime"),
        )
        for one in objects(status, "conditions")
    )


def _requests(
    spec: Mapping[str, Any], status: Mapping[str, Any], admission: Mapping[str, Any]
) -> dict[str, Fraction]:
    """Add up the pod sets: as admitted, else as Kueue last considered them, else as specified."""
    total: dict[str, Fraction] = {}
    for pod_set in objects(admission, "podSetAssignments"):
        _add(total, _quantities(pod_set, "resourceUsage"))
    if not total:
        for pod_set in objects(status, "resourceRequests"):
            _add(total, _quantities(pod_set, "resources"))
    if not total:
        for pod_set in objects(spec, "podSets"):
            template = mapping(mapping(pod_set, "template"), "spec")
            _add(total, effective_requests(template), _count(pod_set, "count", default=1))
    return total


def _assigned(
    status: Mapping[str, Any], admission: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """Give what an admission reserves; pods that have finished for good give theirs back.

    `resourceUsage` is the pod set's total and never shrinks: `reclaimablePods` says how many of
    its pods Kueue no longer counts.
    """
    reclaimable = {
        text(one, "name"): _count(one, "count", default=0)
        for one in objects(status, "reclaimablePods")
    }
    total: dict[str, dict[str, Fraction]] = {}
    for pod_set in objects(admission, "podSetAssignments"):
        flavors = mapping(pod_set, "flavors")
        count = _count(pod_set, "count", default=1)
        left = Fraction(max(0, count - reclaimable.get(text(pod_set, "name"), 0)), count or 1)
        for resource, amount in _quantities(pod_set, "resourceUsage").items():
            flavor = optional_text(flavors, resource)
            if flavor is not None:
                _add(total.setdefault(flavor, {}), {resource: amount * left})
    return {flavor: _floats(amounts) for flavor, amounts in total.items()}


def _quotas(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for group in objects(spec, "resourceGroups"):
        for flavor in objects(group, "flavors"):
            name = text(flavor, "name")
            for quota in objects(flavor, "resources"):
                yield name, quota


def _usage(status: Mapping[str, Any], key: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {
        (text(flavor, "name"), text(resource, "name")): resource
        for flavor in objects(status, key)
        for resource in objects(flavor, "resources")
    }


def _borrowed(usage: Mapping[str, Any], nominal: Fraction) -> Fraction | None:
    """Give what is borrowed: as stated, else by Kueue's own definition, max(0, total - nominal)."""
    stated, total = _quantity(usage, "borrowed"), _quantity(usage, "total")
    if stated is not None or total is None:
        return stated
    return max(Fraction(), total - nominal)


def _quantity(parent: Mapping[str, Any], key: str) -> Fraction | None:
    value = parent.get(key)
    if value is None:
        return None
    try:
        return parse(value)
    except ValueError as error:
        raise MalformedError(f"{key}: {error}") from error


def _quantities(parent: Mapping[str, Any], key: str) -> dict[str, Fraction]:
    amounts = mapping(parent, key)
    return {name: found for name in amounts if (found := _quantity(amounts, name)) is not None}


def _count(parent: Mapping[str, Any], key: str, *, default: int) -> int:
    value = parent.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise MalformedError(f"{key} is {value!r:.40}, not a whole number")
    return value


def _add(total: dict[str, Fraction], more: Mapping[str, Fraction], times: int = 1) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, Fraction()) + amount * times


def _float(amount: Fraction | None) -> float | None:
    return None if amount is None else float(amount)


def _floats(amounts: Mapping[str, Fraction]) -> dict[str, float]:
    return {resource: float(amount) for resource, amount in amounts.items()}
