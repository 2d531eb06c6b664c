"""Which values of a policy hold for a team, and which line of the file each came from."""

from collections.abc import Iterator, Sequence
from copy import replace
from typing import Any

from local.policy import pace
from local.policy.alerting import AlertingDocument, EscalationDocument
from local.policy.document import SlackDocument
from local.policy.faults import KeyPath, key_path, suggest
from local.policy.reading import Source
from local.policy.thresholds import ThresholdsDocument
from steward.cluster.policy import (
    CheckpointLocation,
    ClusterPolicy,
    MetricsBackend,
    Override,
    Scope,
)
from steward.errors import ConfigError


def explain(source: Source, cluster_name: str, scope: Scope) -> Iterator[str]:
    """Say, a line a key, which values hold for a scope, and where each came from.

    Parameters
    ----------
    source : Source
        The file as read.
    scope : Scope
        With a team; its namespace may be left out where the team has only one.

    Raises
    ------
    ConfigError
        The policy has faults, or does not know the cluster, team, namespace or priority class.
    """
    policy = source.resolve()
    number = _index(cluster_name, [cluster.name for cluster in policy.clusters], "cluster")
    cluster = policy.clusters[number]
    scope, team_number = _completed(scope, cluster)
    path: KeyPath = ("clusters", number)
    yield f"{cluster.name}: {', '.join(f'{k} {v}' for k, v in _dimensions(scope) if v)}"
    yield _tick_line(source, cluster, path)
    yield from _people_lines(source)
    yield from _alerting_lines(source, (*path, "alerting"))
    yield from _team_lines(source, cluster, team_number, (*path, "teams", team_number))
    blocks: list[KeyPath] = [("thresholds",)]
    blocks += [("overrides", n) for n, o in enumerate(cluster.overrides) if o.matches(scope)]
    for group, defaults in ThresholdsDocument().model_dump().items():
        for key, default in defaults.items():
            value, origin = default, "default"
            written = [block for block in blocks if (*path, *block, group, key) in source.lines]
            if written:
                block = written[-1]  # the later one wins
                place = (*path, *block, group, key)
                value, origin = source.value(place), f"{key_path(block)}, {source.where(place)}"
            yield _row(f"thresholds.{group}.{key}", value, origin)
    for n, override in enumerate(cluster.overrides):
        if missing := _missing(override, scope):
            where = source.where((*path, "overrides", n))
            yield f"overrides[{n}], {where}, may hold as well: it depends on {missing}"


def _index(name: str | None, known: Sequence[str], what: str) -> int:
    if name not in known:
        raise ConfigError(f"there is no {what} {name}; {suggest(str(name), known, 'there is')}")
    return known.index(name)


def _completed(scope: Scope, cluster: ClusterPolicy) -> tuple[Scope, int]:
    """Check the names of a scope; add the namespace of a team that has only one."""
    number = _index(scope.team, [team.name for team in cluster.teams], "team")
    namespaces = cluster.teams[number].namespaces
    namespace = scope.namespace or (namespaces[0] if len(namespaces) == 1 else None)
    if namespace:
        _index(namespace, namespaces, f"namespace of {scope.team}:")
    if scope.priority_class:
        classes = [each.name for each in cluster.priority_classes]
        _index(scope.priority_class, classes, "priority class")
    return replace(scope, namespace=namespace), number


def _dimensions(scope: Scope) -> tuple[tuple[str, str | None], ...]:
    return (
        ("team", scope.team),
        ("namespace", scope.namespace),
        ("priority-class", scope.priority_class),
        ("owner-kind", scope.owner_kind),
    )


def _missing(override: Override, scope: Scope) -> str:
    """Options that would have to be given to tell whether an override holds; empty if none."""
    named = (
        override.teams,
        override.namespaces,
        override.priority_classes,
        override.owner_kinds,
    )
    pairs = zip(named, _dimensions(scope), strict=True)
    unmet = [(option, value) for names, (option, value) in pairs if names and value not in names]
    known = [value for _, value in unmet if value is not None]
    return "" if known else ", ".join(f"--{option}" for option, _ in unmet)


def _tick_line(source: Source, cluster: ClusterPolicy, path: KeyPath) -> str:
    place, value, origin = (*path, "tick"), f"{cluster.tick_minutes}m", "default"
    if place in source.lines:
        value, origin = source.value(place), source.where(place)
    elif cluster.metrics.backend is MetricsBackend.CONTAINER_INSIGHTS:
        size = sum(group.count * group.accelerators_per_instance for group in cluster.capacity)
        usd = pace.usd_per_day(size, cluster.tick_minutes)
        origin = (
            f"default for {size} accelerators on CloudWatch: at most {usd:.2f} USD a day "
            f"({pace.PRICE_SOURCE}, {pace.PRICE_DATE})"
        )
    return _row("tick", value, origin)


def _people_lines(source: Source) -> Iterator[str]:
    for key in ("users", "lookup_users", "may_exempt"):
        default = SlackDocument.model_fields[key].default
        yield _told(source, f"slack.{key}", ("slack", key), default)


def _alerting_lines(source: Source, path: KeyPath) -> Iterator[str]:
    defaults = AlertingDocument().model_dump(exclude={"escalation"})
    escalation = EscalationDocument().model_dump()
    keys = [*defaults.items(), *((f"escalation.{key}", value) for key, value in escalation.items())]
    for key, default in keys:
        yield _told(source, f"alerting.{key}", (*path, *key.split(".")), default)


def _told(source: Source, key: str, place: KeyPath, default: object) -> str:
    """Say what the file has at a place, and where; the default if it has nothing there."""
    if place in source.lines:
        return _row(key, _shown(source.value(place)), source.where(place))
    return _row(key, _shown(default), "default")


def _shown(value: Any) -> Any:
    """Write a value in one line; an empty list or mapping is nothing."""
    match value:
        case bool():
            return str(value).lower()  # as YAML has it
        case {"from": begin, "to": end}:
            days = value.get("days") or ["every day"]
            return f"{' '.join(days)} {begin} to {end}"
        case dict():
            return ", ".join(f"{name} {told}" for name, told in value.items()) or None
        case list():
            return ", ".join(str(_shown(each)) for each in value) or None
        case _:
            return value


def _team_lines(
    source: Source, cluster: ClusterPolicy, number: int, path: KeyPath
) -> Iterator[str]:
    team = cluster.teams[number]
    channel = team.channel or cluster.platform_channel
    for key, value in (
        ("namespaces", ", ".join(team.namespaces)),
        ("accelerators", team.accelerators),
        ("sharing.strategy", team.strategy),
        ("sharing.borrow_limit_percent", team.borrow_limit_percent),
        ("fair_share_weight", team.fair_share_weight),
        ("owners", ", ".join(team.owners)),
        ("channel", f"{channel.name} ({channel.id})"),
        ("checkpoints", ", ".join(map(_location, team.checkpoints)) or None),
    ):
        named = key != "channel" or team.channel is not None
        place = (*path, *key.split(".")) if named else ("slack", "platform_channel")
        yield _row(key, value, source.where(place) if place in source.lines else "default")
    for n, exemption in enumerate(team.exemptions):
        what = f"{exemption.detector} {exemption.subject} until {exemption.until.isoformat()}"
        yield _row(f"exemptions[{n}]", what, source.where((*path, "exemptions", n)))


def _location(checkpoints: CheckpointLocation) -> str:
    ending = f" (marker {checkpoints.marker})" if checkpoints.marker else ""
    return checkpoints.uri + ending


def _row(key: str, value: object, origin: str) -> str:
    return f"{key:<42} {'-' if value is None else value!s:<38} {origin}"
