"""From a document to the policy in force: every text read, every default and name filled in."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from local.policy import alerting, limits
from local.policy.document import (
    ClusterDocument,
    ExemptionDocument,
    MetricsDocument,
    PolicyDocument,
    TeamDocument,
)
from local.policy.faults import Fault, PolicyError
from local.policy.forms import minutes, seconds
from local.policy.names import ANY, DAYS, NAMESPACE_PREFIX
from local.policy.pace import default_tick
from local.policy.rules import faults_between
from local.policy.schema import fault_of
from local.policy.thresholds import OverrideDocument
from steward.cluster.policy import (
    Channel,
    CheckpointLocation,
    ClusterPolicy,
    Exemption,
    InstanceGroup,
    MetricsBackend,
    MetricsSource,
    Override,
    Policy,
    Price,
    PriorityClass,
    SharingStrategy,
    Team,
)


def resolve(document: dict[str, Any]) -> Policy:
    """Validate a policy document and resolve it into the nouns that detectors and alerts read.

    Parameters
    ----------
    document : dict
        Plain values: text, numbers, booleans, lists, and mappings with text keys. Times and dates
        are text.

    Raises
    ------
    PolicyError
        With every fault that was found, those of single keys before those between keys.
    """
    faults: list[Fault] = []
    try:
        parsed = PolicyDocument.model_validate(document)
    except ValidationError as error:
        faults = [fault_of(detail) for detail in error.errors(include_url=False)]
    faults += faults_between(document)
    if faults:
        raise PolicyError(faults)
    channels = {name: Channel(id=id_, name=name) for name, id_ in parsed.slack.channels.items()}
    platform = channels[parsed.slack.platform_channel]
    clusters = tuple(_cluster(cluster, channels, platform) for cluster in parsed.clusters)
    slack = parsed.slack
    people = alerting.people(slack.users, slack.may_exempt, lookup=slack.lookup_users)
    return Policy(schema=parsed.schema_version, clusters=clusters, people=people)


def _cluster(
    document: ClusterDocument, channels: Mapping[str, Channel], platform: Channel
) -> ClusterPolicy:
    return ClusterPolicy(
        name=document.name,
        eks_name=document.eks_name,
        region=document.region,
        account=document.account,
        role_arn=document.role_arn,
        spoke_queue_url=document.spoke_queue_url,
        time_zone=document.time_zone,
        tick_minutes=_tick(document),
        digest_day=DAYS[document.digest.day.casefold()],
        digest_time=document.digest.time,
        metrics=_metrics(document.metrics),
        prices=tuple(Price(**price.model_dump()) for price in document.prices),
        capacity=tuple(InstanceGroup(**group.model_dump()) for group in document.capacity),
        buffer_accelerators=document.buffer_accelerators,
        fair_share=document.fair_share,
        priority_classes=tuple(PriorityClass(**c.model_dump()) for c in document.priority_classes),
        teams=tuple(_team(team, channels) for team in document.teams),
        platform_channel=platform,
        thresholds=limits.thresholds(document.thresholds),
        overrides=tuple(_override(override) for override in document.overrides),
        alerting=alerting.alerting(document.alerting, channels),
    )


def _tick(document: ClusterDocument) -> int:
    if document.tick is not None:
        return minutes(document.tick)
    accelerators = sum(group.count * group.accelerators_per_instance for group in document.capacity)
    return default_tick(MetricsBackend(document.metrics.backend), accelerators)


_DELAYS = {MetricsBackend.PROMETHEUS: 120, MetricsBackend.CONTAINER_INSIGHTS: 300}
"""Seconds that a sample may be late where the policy does not say."""


def _metrics(document: MetricsDocument) -> MetricsSource:
    backend = MetricsBackend(document.backend)
    return MetricsSource(
        backend=backend,
        endpoint=(document.endpoint or "").rstrip("/"),
        sigv4=bool(document.sigv4),
        cluster_label=document.cluster_label,
        scrape_interval_seconds=seconds(document.scrape_interval),
        delay_seconds=_DELAYS[backend] if document.delay is None else seconds(document.delay),
    )


def _team(document: TeamDocument, channels: Mapping[str, Channel]) -> Team:
    return Team(
        name=document.name,
        namespaces=tuple(document.namespaces or [NAMESPACE_PREFIX + document.name]),
        accelerators=document.accelerators,
        strategy=SharingStrategy(document.sharing.strategy),
        borrow_limit_percent=document.sharing.borrow_limit_percent,
        fair_share_weight=document.fair_share_weight,
        owners=tuple(document.owners),
        channel=channels[document.channel] if document.channel else None,
        checkpoints=tuple(
            CheckpointLocation(uri=one.location, marker=one.marker) for one in document.checkpoints
        ),
        exemptions=tuple(_exemption(exemption) for exemption in document.exemptions),
    )


def _exemption(document: ExemptionDocument) -> Exemption:
    return Exemption(
        detector="*" if document.detector in ANY else document.detector,
        subject=document.subject,
        reason=document.reason,
        author=document.author,
        until=datetime.fromisoformat(document.until).astimezone(UTC),
    )


def _override(document: OverrideDocument) -> Override:
    # Task governance names the WorkloadPriorityClass <class>-priority, and jobs by that name.
    classes = [(name, f"{name}-priority") for name in document.priority_classes]
    return Override(
        teams=tuple(document.teams),
        namespaces=tuple(document.namespaces),
        priority_classes=tuple(name for pair in classes for name in pair),
        owner_kinds=tuple(document.owner_kinds),
        **limits.changes(document),
    )
