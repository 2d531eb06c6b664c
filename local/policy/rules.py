"""What no single key can tell: rules between keys.

They read the raw document, so that a fault in one key does not hide one between others.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from local.policy import alerting
from local.policy.faults import Fault, KeyPath, key_path, show, suggest
from local.policy.forms import duration, seconds
from local.policy.names import ANY, NAMESPACE_PREFIX, OPEN, PLACEHOLDERS, QUEUE, UNLISTED
from local.policy.places import Place, texts
from local.policy.thresholds import OVERRIDDEN, IdleDocument
from steward.cluster.policy import MetricsBackend, SharingStrategy


def faults_between(document: dict[str, Any]) -> Iterator[Fault]:
    """Find what is wrong between the keys of a raw document."""
    top = Place((), document)
    slack = top.get("slack")
    channels = slack.get("channels")
    yield from _repeated([channels.get(name) for name in channels.keys], "channel id")
    yield from _unknown([slack.get("platform_channel")], channels.keys, "channel")
    yield from alerting.same_address(slack.get("users"))
    clusters = top.get("clusters")
    yield from _repeated(clusters.each("name"), "cluster")
    yield from _workspace_faults(clusters.each("metrics"))
    for source in clusters.each("metrics"):
        yield from _metrics_faults(source)
    for cluster in clusters.entries:
        yield from _spoke_faults(cluster)
        teams = cluster.get("teams")
        yield from _repeated(cluster.get("priority_classes").each("name"), "priority class")
        yield from _repeated(teams.each("name"), "team")
        yield from _namespace_faults(teams)
        yield from _sharing_faults(teams.each("sharing"))
        for listed in teams.each("checkpoints"):
            yield from _checkpoint_faults(listed)
        yield from _unknown(teams.each("channel"), channels.keys, "channel")
        yield from _price_faults(cluster)
        yield from _capacity_faults(cluster)
        yield from _override_faults(cluster)
        yield from alerting.faults(cluster, list(channels.keys))


def _repeated(named: Iterable[Place], what: str) -> Iterator[Fault]:
    first: dict[str, KeyPath] = {}
    for place in texts(named):
        if place.value in first:
            where = key_path(first[place.value])
            message = f"{what} {place.value} is already at {where}"
            yield Fault(place.path, message, "keep one of the two")
        else:
            first[place.value] = place.path


def _unknown(named: Iterable[Place], known: Iterable[str], what: str) -> Iterator[Fault]:
    names = list(dict.fromkeys(known))
    for place in texts(named):
        if place.value not in names:
            remedy = suggest(place.value, names, "there is")
            yield Fault(place.path, f"there is no {what} {place.value}", remedy)


def _names(places: Iterable[Place]) -> list[str]:
    return [place.value for place in texts(places)]


def _workspace_faults(sources: list[Place]) -> Iterator[Fault]:
    endpoints = [name.rstrip("/") for name in _names(s.get("endpoint") for s in sources)]
    for source in sources:
        shared = endpoints.count(str(source.get("endpoint").value).rstrip("/")) > 1
        label = source.get("cluster_label")
        if shared and label.value is None:
            yield Fault(
                label.path,
                "is missing, and another cluster reads the same endpoint",
                "add it: without it each cluster counts the accelerators of both",
            )


_ONLY_PROMETHEUS = {
    "endpoint": "add the base URL of the query API",
    "sigv4": "add true for Amazon's service, false for a Prometheus of your own",
    "cluster_label": "",
}
"""Keys of Prometheus, and how to add those that it cannot do without."""

_LEAST = "60s"
_WHY_LEAST = {
    "scrape_interval": "CloudWatch keeps one value a minute",
    "delay": "the minute at the end of a window must be over",
}


def _metrics_faults(source: Place) -> Iterator[Fault]:
    backend = source.get("backend").value
    for key, remedy in _ONLY_PROMETHEUS.items():
        place = source.get(key)
        if backend == MetricsBackend.PROMETHEUS and remedy and place.value is None:
            yield Fault(place.path, "is missing, and prometheus needs it", remedy)
        if backend == MetricsBackend.CONTAINER_INSIGHTS and place.value is not None:
            message = f"{show(place.value)} has no effect: container_insights has none"
            yield Fault(place.path, message, "remove it, or set backend to prometheus")
    if backend != MetricsBackend.CONTAINER_INSIGHTS:
        return
    for key, why in _WHY_LEAST.items():
        place = source.get(key)
        form = duration("0s", "30m", "1s")
        if form.accepts(place.value) and seconds(str(place.value)) < seconds(_LEAST):
            message = f"{show(place.value)} is less than {_LEAST}: {why}"
            yield Fault(place.path, message, f"write {_LEAST} or more, or leave it out")


def _spoke_faults(cluster: Place) -> Iterator[Fault]:
    queue, account = cluster.get("spoke_queue_url"), cluster.get("account").value
    if not QUEUE.accepts(queue.value) or account is None or cluster.get("role_arn").value:
        return
    owner = str(queue.value).split("/")[3]
    if owner != account:
        message = f"is a queue of account {owner}, whose spoke cannot read a cluster of {account}"
        yield Fault(queue.path, message, "name the cluster's account, or role_arn as well")


def _namespaces(teams: Place) -> list[Place]:
    """Namespaces of all teams: those that a team lists, else the one that its name gives."""
    found: list[Place] = []
    for team in teams.entries:
        derived = [Place(p.path, NAMESPACE_PREFIX + p.value) for p in texts([team.get("name")])]
        found += texts(team.get("namespaces").entries) or derived
    return found


def _namespace_faults(teams: Place) -> Iterator[Fault]:
    namespaces = _namespaces(teams)
    yield from _repeated(namespaces, "namespace")
    for place in namespaces:
        length = len(place.value)
        # A name of more than 63 characters has a fault of its own.
        if place.path[-1] == "name" and 63 < length <= len(NAMESPACE_PREFIX) + 63:
            message = f"its namespace {place.value} has {length} characters, 63 are allowed"
            yield Fault(place.path, message, "shorten the name to 51, or list its namespaces")


def _sharing_faults(sharings: list[Place]) -> Iterator[Fault]:
    for sharing in sharings:
        strategy, limit = sharing.get("strategy").value, sharing.get("borrow_limit_percent")
        if strategy == SharingStrategy.LEND_AND_BORROW and limit.value is None:
            yield Fault(
                limit.path,
                "is missing, and LendAndBorrow borrows",
                "add it, 50 to 100 caps most teams well: what SageMaker assumes is not confirmed",
            )
        borrows_not = strategy in (SharingStrategy.LEND, SharingStrategy.DONT_LEND)
        if borrows_not and limit.value is not None:
            message = f"{show(limit.value)} has no effect: {strategy} never borrows"
            yield Fault(limit.path, message, "remove it, or set strategy to LendAndBorrow")


_BRACED = re.compile(r"\{[^{}]*\}|[{}]")


def _checkpoint_faults(listed: Place) -> Iterator[Fault]:
    for entry in listed.entries:
        location = entry.get("location") if entry.keys else entry
        for place in texts([location]):
            for found in _BRACED.findall(place.value):
                if found not in PLACEHOLDERS:
                    remedy = suggest(found, PLACEHOLDERS, "known are")
                    yield Fault(place.path, f"there is no placeholder {found}", remedy)
            marker = entry.get("marker")
            if place.value.startswith(UNLISTED) and marker.value is not None:
                message = f"{show(marker.value)} has no effect: a file system cannot be listed"
                remedy = "remove it: there, only what jobs themselves report proves a checkpoint"
                yield Fault(marker.path, message, remedy)


def _price_faults(cluster: Place) -> Iterator[Fault]:
    prices = cluster.get("prices").each("instance_type")
    yield from _repeated(prices, "price of")
    types = _names(cluster.get("capacity").each("instance_type"))
    yield from _unknown(prices, types, "capacity of type")


def _capacity_faults(cluster: Place) -> Iterator[Fault]:
    groups = cluster.get("capacity")
    counts = [place.value for place in groups.each("count")]
    sizes = [place.value for place in groups.each("accelerators_per_instance")]
    buffer = cluster.get("buffer_accelerators").value
    teams = cluster.get("teams")
    quotas = [p.value for p in teams.each("accelerators") if isinstance(p.value, int)]
    if not counts or not all(isinstance(number, int) for number in (buffer, *counts, *sizes)):
        return
    capacity = sum(count * each for count, each in zip(counts, sizes, strict=True))
    excess = sum(quotas) + buffer - capacity
    if excess > 0:
        yield Fault(
            teams.path,
            f"quotas of {sum(quotas)} and a buffer of {buffer} are {sum(quotas) + buffer} "
            f"accelerators, above the capacity of {capacity}",
            f"take {excess} from a team or the buffer, or add capacity",
        )


def _override_faults(cluster: Place) -> Iterator[Fault]:
    teams, classes = cluster.get("teams"), cluster.get("priority_classes")
    known = (
        ("teams", "team", "", _names(teams.each("name"))),
        ("priority_classes", "priority class", "", _names(classes.each("name"))),
        # Any namespace may hold accelerators, but a governed one belongs to a team.
        ("namespaces", "team with the namespace", NAMESPACE_PREFIX, _names(_namespaces(teams))),
    )
    base = cluster.get("thresholds").get("idle")
    yield from _grace_faults(base, base)
    for override in cluster.get("overrides").entries:
        for key, what, prefix, names in known:
            listed = texts(override.get(key).entries)
            named = [p for p in listed if p.value not in ANY and p.value.startswith(prefix)]
            yield from _unknown(named, names, what)
        yield from _changes_nothing(override)
        yield from _never_holds(override)
        yield from _grace_faults(override.get("idle"), base)


_EITHER = f"{', '.join(OVERRIDDEN[:-1])} or {OVERRIDDEN[-1]}"


def _changes_nothing(override: Place) -> Iterator[Fault]:
    groups = [override.get(key) for key in OVERRIDDEN]
    for own in groups:
        if own.value == {}:
            yield Fault(own.path, "changes nothing", "name a threshold or drop the key")
    if override.keys and all(own.value is None for own in groups):
        yield Fault(override.path, "changes nothing", f"add {_EITHER}, or drop the entry")


_OF_WORKLOADS = ("namespaces", "priority_classes", "owner_kinds")
"""Whom an override may hold for, and what no team's quota is asked for."""


def _never_holds(override: Place) -> Iterator[Fault]:
    borrowing = override.get("borrowing")
    named = [key for key in _OF_WORKLOADS if override.get(key).value not in OPEN]
    if borrowing.value is not None and named:
        message = f"never holds with {' and '.join(named)}: a team borrows as a whole"
        yield Fault(borrowing.path, message, "move it to an entry that names teams only")


def _grace_faults(own: Place, base: Place) -> Iterator[Fault]:
    merged = IdleDocument().model_dump() | base.keys | own.keys
    window, grace = merged["window"], merged["startup_grace"]
    place = own.get("startup_grace" if "startup_grace" in own.keys else "window")
    form = duration("0m", "24h", "1m")
    readable = form.accepts(window) and form.accepts(grace)
    if place.value is not None and readable and seconds(grace) > seconds(window):
        message = f"the startup_grace of {grace} is longer than the window of {window}"
        yield Fault(place.path, message, "it runs inside the window: shorten it")
