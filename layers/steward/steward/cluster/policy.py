"""The policy in force, resolved: what detectors and alerts are told, never what a file says.

The document (`layers/policy/governance.yaml`) is validated and resolved into these classes
at build time by `local.policy`; Lambda reads the result and nothing else.
"""

from collections.abc import Iterable
from copy import replace
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

import msgspec


class Severity(StrEnum):
    """How loudly a finding speaks: digest only, a card, or a card that escalates."""

    INFO = "info"
    WARN = "warn"
    PAGE = "page"


class SharingStrategy(StrEnum):
    """SageMaker's ResourceSharingConfig.Strategy."""

    LEND = "Lend"
    DONT_LEND = "DontLend"
    LEND_AND_BORROW = "LendAndBorrow"


class IdleLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When an allocated accelerator counts as idle.

    Attributes
    ----------
    activity_max : float
        Highest activity (0-1) that still is idle.
    window_minutes : int
        Length of the detection window.
    startup_grace_minutes : int
        A holder younger than this is not judged; runs inside the window, not after it.
    coverage_min : float
        Least share (0-1) of the expected samples; below it the verdict is unknown.
    held_bytes : int
        Memory held from which an idle accelerator is idle_held.
    severity : Severity
        Of idle and idle_held.
    page_after_hours : float
        Idle for longer than this, on `page_accelerators` or more, pages. Zero accelerators: never.
    page_accelerators : int
        See `page_after_hours`.
    """

    activity_max: float = 0.01
    window_minutes: int = 60
    startup_grace_minutes: int = 15
    coverage_min: float = 0.8
    held_bytes: int = 2**30
    severity: Severity = Severity.WARN
    page_after_hours: float = 4.0
    page_accelerators: int = 8


class HangLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When accelerators that look busy are suspected to hang.

    Attributes
    ----------
    activity_min : float
        Least activity (0-1) in every sample of every GPU of the job.
    tensor_max : float
        Highest tensor activity (0-1) that still is none.
    power_max : float
        Highest power draw, as a share (0-1) of the card's limit, that still is near idle.
    window_minutes : int
        How long all of it must have lasted; coverage counts as for :class:`IdleLimits`.
    severity : Severity
        Of suspected_hang.
    """

    activity_min: float = 0.95
    tensor_max: float = 0.005
    power_max: float = 0.25
    window_minutes: int = 30
    severity: Severity = Severity.WARN


class TelemetryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long telemetry may be wrong before the `telemetry` detector's finding opens."""

    damping_minutes: int = 10


class BorrowingLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When a team counts as borrowing up to its limit.

    Attributes
    ----------
    share : float
        Share (0-1) of the borrowing limit from which it counts as reached.
    window_minutes : int
        How long a condition must have lasted.
    severity : Severity
        Of limit_binding and reclaim_blocked; the other reasons are info.
    """

    share: float = 0.95
    window_minutes: int = 30
    severity: Severity = Severity.WARN


class PreemptionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When a job counts as preempted again and again.

    Attributes
    ----------
    count, period_hours : int
        So many preemptions in so long.
    lost_gpu_hours : float
        Accelerator hours lost in the period from which fewer preemptions count too; 0: off.
    startup_minutes, checkpoint_minutes : int
        What a run needs before it makes progress, and from one checkpoint to the next: shorter
        runs than both together get nowhere.
    severity : Severity
        Of without_checkpoint; thrash is page and with_checkpoint is info.
    """

    count: int = 3
    period_hours: int = 168
    lost_gpu_hours: float = 0.0
    startup_minutes: int = 15
    checkpoint_minutes: int = 30
    severity: Severity = Severity.WARN


class PendingLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When a workload that waits is worth a finding.

    Attributes
    ----------
    wait_minutes : int
        Of what may yet be admitted; what never can be is told at once.
    without_pods_minutes : int
        Of a workload that has its quota and no pods.
    severity : Severity
        Of what can never be admitted; the other reasons are info.
    """

    wait_minutes: int = 120
    without_pods_minutes: int = 30
    severity: Severity = Severity.WARN


class CapacityLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When lost capacity is worth a finding.

    Attributes
    ----------
    damping_minutes : int
        How long it must last before it opens.
    severity : Severity
        Of node_unhealthy and quota_above_capacity; provisioning_failed is info.
    """

    damping_minutes: int = 10
    severity: Severity = Severity.WARN


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Every threshold; a scope may override those that :class:`Override` names."""

    idle: IdleLimits = IdleLimits()
    hang: HangLimits = HangLimits()
    telemetry: TelemetryLimits = TelemetryLimits()
    borrowing: BorrowingLimits = BorrowingLimits()
    preemptions: PreemptionLimits = PreemptionLimits()
    pending: PendingLimits = PendingLimits()
    capacity: CapacityLimits = CapacityLimits()


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Who a threshold is asked for; None is "not known", and matches only an open override."""

    team: str | None = None
    namespace: str | None = None
    priority_class: str | None = None
    owner_kind: str | None = None


Changes = dict[str, float | int | str]
"""Field of some limits to the value that an override gives it."""


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """Threshold values for the scopes that match; an empty tuple matches everything.

    Attributes
    ----------
    idle, hang, borrowing, preemptions, pending : dict of str to (int, float or str)
        Field of the limits of that name to its value, checked when the policy was compiled.
    """

    teams: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()
    owner_kinds: tuple[str, ...] = ()
    idle: Changes = msgspec.field(default_factory=dict)
    hang: Changes = msgspec.field(default_factory=dict)
    borrowing: Changes = msgspec.field(default_factory=dict)
    preemptions: Changes = msgspec.field(default_factory=dict)
    pending: Changes = msgspec.field(default_factory=dict)

    def matches(self, scope: Scope) -> bool:
        """Tell whether every named dimension holds the scope's value."""
        pairs = (
            (self.teams, scope.team),
            (self.namespaces, scope.namespace),
            (self.priority_classes, scope.priority_class),
            (self.owner_kinds, scope.owner_kind),
        )
        return all(not allowed or value in allowed for allowed, value in pairs)


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance hour costs, and who says so since when."""

    instance_type: str
    usd_per_hour: float
    source: str
    date: str


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """A Slack channel: the id that the API needs, the name that people read."""

    id: str
    name: str


class Exemption(msgspec.Struct, frozen=True, kw_only=True):
    """A promise not to alert about a subject, made by somebody, for a reason, until a day."""

    detector: str
    subject: str
    reason: str
    author: str
    until: datetime

    def covers(self, detector: str, subject: str, at: datetime) -> bool:
        """Tell whether this exemption speaks of the subject (glob pattern) and has not ended."""
        return (
            at < self.until
            and self.detector in {detector, "*"}
            and fnmatchcase(subject, self.subject)
        )


class QuietHours(msgspec.Struct, frozen=True, kw_only=True):
    """Hours of some days in which a new card of severity warn waits, in the cluster's time zone.

    Attributes
    ----------
    days : tuple of int
        Days of the week on which it begins, Monday is 0; empty: every day.
    begin, end : str
        `HH:MM`; the whole minute `end` belongs to it. An end before the begin is the next day's.
    """

    days: tuple[int, ...] = ()
    begin: str
    end: str


class Escalation(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a page that nobody acknowledges.

    Attributes
    ----------
    after_minutes : int
        Since it was detected.
    channel : Channel or None
        A second channel that is told.
    mention : str or None
        Id of the Slack user (U…, W…) or user group (S…) to mention, or `here` or `channel`.
    topic_arn : str or None
        SNS topic of a pager.
    """

    after_minutes: int = 30
    channel: Channel | None = None
    mention: str | None = None
    topic_arn: str | None = None


class Alerting(msgspec.Struct, frozen=True, kw_only=True):
    """How loudly and when people are told, for one cluster.

    Attributes
    ----------
    holidays : tuple of str
        Days (`YYYY-MM-DD`, in the cluster's time zone) that are quiet from begin to end.
    daily_cap : int
        Most new cards of severity warn a team and local day; 0: no cap.
    reminder_hours : int
        An open card that nobody acknowledged is brought up again this often; 0: never.
    mention_owners : Severity or None
        Owners of the team are mentioned on cards from this severity on; None: never.
    """

    quiet_hours: tuple[QuietHours, ...] = ()
    holidays: tuple[str, ...] = ()
    daily_cap: int = 0
    reminder_hours: int = 0
    mention_owners: Severity | None = None
    escalation: Escalation = Escalation()


class People(msgspec.Struct, frozen=True, kw_only=True):
    """Who is who in Slack, and who may do what.

    Attributes
    ----------
    users : dict of str to str
        E-mail address, in lower case, to Slack user id.
    lookup : bool
        Whether addresses that the map lacks are looked up in Slack (scope users:read.email).
    exempters : tuple of str
        Addresses of who may exempt anything; owners of a team may exempt what is their team's.
    """

    users: dict[str, str] = msgspec.field(default_factory=dict)
    lookup: bool = False
    exempters: tuple[str, ...] = ()


class CheckpointLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Where a team's jobs write checkpoints.

    Attributes
    ----------
    uri : str
        `s3://bucket/prefix/`, or `fsx://<file system>/path/`, which nothing here can list. May hold
        `{team}`, `{namespace}` and `{job}`; without `{job}`, what lies below it is a job's where a
        part of its path is the job's name.
    marker : str or None
        Name (glob pattern) of the object that is written last, once a checkpoint is whole; None:
        any object counts.
    """

    uri: str
    marker: str | None = None


class Team(msgspec.Struct, frozen=True, kw_only=True):
    """A team: its namespaces, its quota as written in the policy, and whom to tell.

    Attributes
    ----------
    accelerators : int
        Guaranteed quota, in accelerators.
    borrow_limit_percent : int or None
        SageMaker's BorrowLimit: percent of the team's own quota; None where it does not borrow.
    """

    name: str
    namespaces: tuple[str, ...]
    accelerators: int
    strategy: SharingStrategy
    borrow_limit_percent: int | None
    fair_share_weight: int
    owners: tuple[str, ...]
    channel: Channel | None
    checkpoints: tuple[CheckpointLocation, ...]
    exemptions: tuple[Exemption, ...] = ()


class MetricsBackend(StrEnum):
    """What accelerator metrics are read from."""

    PROMETHEUS = "prometheus"
    CONTAINER_INSIGHTS = "container_insights"


class MetricsSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where accelerator metrics come from and how they arrive.

    Attributes
    ----------
    endpoint : str
        Base URL of the Prometheus query API (AMP workspace URL without `/api/v1`); empty with
        Container Insights, which has none.
    sigv4 : bool
        Whether requests are signed (AMP) or plain (a Prometheus of your own).
    cluster_label : str or None
        Value of the `cluster_name` label in a workspace that several clusters share.
    """

    backend: MetricsBackend = MetricsBackend.PROMETHEUS
    endpoint: str
    sigv4: bool
    cluster_label: str | None = None
    scrape_interval_seconds: int = 60
    delay_seconds: int = 120


class PriorityClass(msgspec.Struct, frozen=True, kw_only=True):
    """A workload priority class and its weight."""

    name: str
    weight: int


class InstanceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Capacity that the policy counts on."""

    instance_type: str
    count: int
    accelerators_per_instance: int


class ClusterPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the policy says of one cluster.

    Attributes
    ----------
    spoke_queue_url : str or None
        Request queue of the spoke that reads the cluster; None: the stack that plans reads it.
    """

    name: str
    eks_name: str
    region: str
    account: str | None
    role_arn: str | None
    time_zone: str
    tick_minutes: int
    digest_day: str
    digest_time: str
    metrics: MetricsSource
    prices: tuple[Price, ...]
    capacity: tuple[InstanceGroup, ...]
    buffer_accelerators: int
    fair_share: bool
    priority_classes: tuple[PriorityClass, ...]
    teams: tuple[Team, ...]
    platform_channel: Channel
    thresholds: Thresholds = Thresholds()
    overrides: tuple[Override, ...] = ()
    spoke_queue_url: str | None = None
    alerting: Alerting = Alerting()

    def team_of(self, namespace: str | None) -> Team | None:
        """Find the team that owns a namespace; None for a namespace outside governance."""
        return next((team for team in self.teams if namespace in team.namespaces), None)

    def namespaces(self) -> tuple[str, ...]:
        """Namespaces that the policy governs."""
        return tuple(namespace for team in self.teams for namespace in team.namespaces)

    def team_named(self, name: str | None) -> Team | None:
        """Find a team by its name."""
        return next((team for team in self.teams if team.name == name), None)

    def limits(self, scope: Scope) -> Thresholds:
        """Resolve the thresholds for a scope: the overrides that match, in order; later ones win."""
        changes: dict[str, Changes] = {}
        for override in self.overrides:
            if override.matches(scope):
                for name in _OVERRIDDEN:
                    if found := getattr(override, name):
                        changes[name] = changes.get(name, {}) | found
        if not changes:
            return self.thresholds
        changed = {name: _changed(getattr(self.thresholds, name), c) for name, c in changes.items()}
        return replace(self.thresholds, **changed)

    def window_end(self, at: datetime) -> datetime:
        """Tell where the windows of a tick end: the metric delay before it."""
        return at - timedelta(seconds=self.metrics.delay_seconds)

    def windows(self) -> tuple[int, ...]:
        """Distinct windows (minutes) of activity that the thresholds and their overrides need."""
        return tuple(sorted({*self.idle_windows(), *self.hang_windows()}))

    def idle_windows(self) -> tuple[int, ...]:
        """Distinct windows (minutes) that idleness is judged over."""
        named = (override.idle.get("window_minutes") for override in self.overrides)
        return _distinct(self.thresholds.idle.window_minutes, named)

    def hang_windows(self) -> tuple[int, ...]:
        """Distinct windows (minutes) that suspected hangs are judged over."""
        named = (override.hang.get("window_minutes") for override in self.overrides)
        return _distinct(self.thresholds.hang.window_minutes, named)

    def price_of(self, instance_type: str | None) -> Price | None:
        """Price of an instance type; None where the policy gives none (no price, no dollars)."""
        return next((p for p in self.prices if p.instance_type == instance_type), None)

    def exemption_for(
        self, detector: str, subject: str, at: datetime, team: str | None
    ) -> Exemption | None:
        """Find the exemption in force for a subject, if any; a team promises for itself only."""
        owner = self.team_named(team)
        promises = owner.exemptions if owner else ()
        return next((e for e in promises if e.covers(detector, subject, at)), None)


_OVERRIDDEN = ("idle", "hang", "borrowing", "preemptions", "pending")
"""Groups of thresholds that an override may change."""


def _changed(limits: Any, values: Changes) -> Any:
    """Put an override's values into limits; their kinds were checked when it was compiled."""
    if "severity" in values:
        values = values | {"severity": Severity(str(values["severity"]))}
    return replace(limits, **values)


def _distinct(default: int, named: Iterable[float | str | None]) -> tuple[int, ...]:
    return tuple(sorted({default} | {int(minutes) for minutes in named if minutes is not None}))


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The whole policy as code, resolved."""

    schema: int
    clusters: tuple[ClusterPolicy, ...]
    people: People = People()

    def cluster(self, name: str) -> ClusterPolicy | None:
        """Find a cluster by its name."""
        return next((cluster for cluster in self.clusters if cluster.name == name), None)

    def read_by(self, queue_url: str, *, spoke: bool) -> tuple[ClusterPolicy, ...]:
        """Clusters that the stack behind a queue reads.

        A spoke reads those that name its queue; the stack that plans, also those that name none.
        """
        return tuple(
            c
            for c in self.clusters
            if c.spoke_queue_url == queue_url or (c.spoke_queue_url is None and not spoke)
        )
