"""The part of the document that says from when on something is worth a finding, and for whom."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from local.policy.forms import STRICT, duration, percentage, size
from local.policy.names import AnyKinds, AnyNames


class _Document(BaseModel):
    model_config = STRICT


class IdleDocument(_Document):
    """When an allocated accelerator counts as idle."""

    activity_max: Annotated[str, percentage("0%", "10%")] = "1%"
    """Highest activity that still is idle, 0% to 10%"""
    window: Annotated[str, duration("5m", "24h", "1m")] = "60m"
    """Length of the detection window, 5m to 24h"""
    startup_grace: Annotated[str, duration("0m", "24h", "1m")] = "15m"
    """A holder younger than this is not judged; at most the window, inside which it runs"""
    coverage_min: Annotated[str, percentage("50%", "100%")] = "80%"
    """Least share of the expected samples, 50% to 100%; below it the verdict is unknown"""
    held_memory: Annotated[str, size("1MiB", "1024GiB")] = "1GiB"
    """Memory held from which an idle accelerator is idle_held, 1MiB to 1024GiB"""
    severity: Literal["info", "warn", "page"] = "warn"
    """Of idle and idle_held: info goes to the digest only, page escalates"""
    page_after: Annotated[str, duration("0m", "168h", "1m")] = "4h"
    """Idle for longer than this, on page_accelerators or more, pages; 0m to 168h"""
    page_accelerators: Annotated[int, Field(ge=0, le=10_000)] = 8
    """See page_after; 0: idleness never pages; at most 10000"""


class HangDocument(_Document):
    """When a job that looks busy is suspected to hang."""

    activity_min: Annotated[str, percentage("50%", "100%")] = "95%"
    """Least activity in every sample of every GPU of the job, 50% to 100%"""
    tensor_max: Annotated[str, percentage("0%", "10%")] = "0.5%"
    """Highest tensor activity that still is none, 0% to 10%"""
    power_max: Annotated[str, percentage("0%", "60%")] = "25%"
    """Highest power draw that still is near idle, of the card's limit, 0% to 60%"""
    window: Annotated[str, duration("5m", "24h", "1m")] = "30m"
    """How long all of it must have lasted, 5m to 24h; coverage_min and startup_grace are idle's"""
    severity: Literal["info", "warn", "page"] = "warn"
    """Of suspected_hang: info goes to the digest only, page escalates"""


class TelemetryDocument(_Document):
    """How long telemetry may be wrong before its finding opens."""

    damping: Annotated[str, duration("0m", "24h", "1m")] = "10m"
    """How long telemetry must be wrong before it is a finding, 0m to 24h"""


class BorrowingDocument(_Document):
    """When a team counts as borrowing up to its limit."""

    share: Annotated[str, percentage("50%", "100%")] = "95%"
    """Share of the borrowing limit from which it counts as reached, 50% to 100%"""
    window: Annotated[str, duration("5m", "24h", "1m")] = "30m"
    """How long a condition must have lasted, 5m to 24h"""
    severity: Literal["info", "warn", "page"] = "warn"
    """Of limit_binding and reclaim_blocked; the other reasons are info"""


class PreemptionsDocument(_Document):
    """When a job counts as preempted again and again."""

    count: Annotated[int, Field(ge=2, le=1000)] = 3
    """So many preemptions in the period, 2 to 1000"""
    period: Annotated[str, duration("1d", "90d", "1h")] = "7d"
    """How far back preemptions count, 1d to 90d"""
    lost_gpu_hours: Annotated[float, Field(ge=0, le=1_000_000)] = 0
    """Accelerator hours lost in the period from which fewer preemptions count too; 0: off"""
    startup: Annotated[str, duration("0m", "24h", "1m")] = "15m"
    """What a run needs before it makes progress, 0m to 24h"""
    checkpoint_interval: Annotated[str, duration("1m", "24h", "1m")] = "30m"
    """From one checkpoint to the next, 1m to 24h; runs shorter than this and startup get nowhere"""
    severity: Literal["info", "warn", "page"] = "warn"
    """Of without_checkpoint; thrash is page and with_checkpoint is info"""


class PendingDocument(_Document):
    """When a workload that waits is worth a finding."""

    wait: Annotated[str, duration("0m", "30d", "1m")] = "2h"
    """How long one that may yet be admitted must have waited, 0m to 30d"""
    without_pods: Annotated[str, duration("0m", "24h", "1m")] = "30m"
    """How long one must have held its quota without pods, 0m to 24h"""
    severity: Literal["info", "warn", "page"] = "warn"
    """Of what can never be admitted; the other reasons are info"""


class CapacityDocument(_Document):
    """When lost capacity is worth a finding."""

    damping: Annotated[str, duration("0m", "24h", "1m")] = "10m"
    """How long it must last before it is a finding, 0m to 24h"""
    severity: Literal["info", "warn", "page"] = "warn"
    """Of node_unhealthy and quota_above_capacity; provisioning_failed is info"""


class ThresholdsDocument(_Document):
    """Thresholds of a cluster; a key left out has its default."""

    idle: IdleDocument = IdleDocument()
    """When an allocated accelerator counts as idle"""
    hang: HangDocument = HangDocument()
    """When a job that looks busy is suspected to hang"""
    telemetry: TelemetryDocument = TelemetryDocument()
    """How long telemetry may be wrong"""
    borrowing: BorrowingDocument = BorrowingDocument()
    """When a team counts as borrowing up to its limit"""
    preemptions: PreemptionsDocument = PreemptionsDocument()
    """When a job counts as preempted again and again"""
    pending: PendingDocument = PendingDocument()
    """When a workload that waits is worth a finding"""
    capacity: CapacityDocument = CapacityDocument()
    """When lost capacity is worth a finding"""


class OverrideDocument(_Document):
    """Thresholds for some holders; where several match, the later one wins, key by key."""

    teams: AnyNames = []
    """Teams it holds for; left out: any"""
    namespaces: AnyNames = []
    """Namespaces it holds for; left out: any"""
    priority_classes: AnyNames = []
    """Priority classes it holds for, as named in this policy; left out: any"""
    owner_kinds: AnyKinds = []
    """Kinds of the top owner it holds for, such as RayCluster; left out: any"""
    idle: IdleDocument | None = None
    """The idle thresholds that differ, at least one"""
    hang: HangDocument | None = None
    """The hang thresholds that differ, at least one"""
    borrowing: BorrowingDocument | None = None
    """The borrowing thresholds that differ, at least one; for teams only"""
    preemptions: PreemptionsDocument | None = None
    """The preemptions thresholds that differ, at least one"""
    pending: PendingDocument | None = None
    """The pending thresholds that differ, at least one"""


OVERRIDDEN = ("idle", "hang", "borrowing", "preemptions", "pending")
"""Groups of thresholds that an override may change."""
