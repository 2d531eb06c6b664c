"""What the use cases need from the world, named by role; adapters and in-memory twins implement it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from steward.alerts.actions import CardAction
    from steward.alerts.model import Attempt, Card, Posted, ReconcilerState
    from steward.cluster.accelerators import Window
    from steward.cluster.audit import Audit
    from steward.cluster.checkpoints import Written
    from steward.cluster.claims import Claim
    from steward.cluster.control_plane import ControlPlane
    from steward.cluster.findings import Evaluation
    from steward.cluster.kueue import (
        ClusterQueue,
        Cohort,
        KueueEvent,
        KueueMetrics,
        LocalQueue,
        ResourceFlavor,
        Topology,
        Workload,
        WorkloadPriorityClass,
    )
    from steward.cluster.memory import Memory
    from steward.cluster.planning import Planned, SnapshotScope
    from steward.cluster.pods import GpuPod
    from steward.cluster.policy import CheckpointLocation, ClusterPolicy
    from steward.cluster.snapshot import InvalidSamples, LastSnapshot, Node, Part, Snapshot
    from steward.slack.commands import Command


class Clock(Protocol):
    """Time, and waiting: a virtual clock advances instead of sleeping."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


# --- reading the world ---------------------------------------------------------------------------


class ControlPlaneReading(msgspec.Struct, frozen=True, kw_only=True):
    """What SageMaker and EKS answered, and what they refused."""

    control_plane: ControlPlane
    parts: tuple[Part, ...]


class ClusterReader(Protocol):
    """SageMaker and EKS for one cluster; never raises for a refused call: it becomes a part."""

    def read(self, *, add_ons: bool = True) -> ControlPlaneReading:
        """Read the control plane; every operation is one part. Add-ons are read where asked for."""
        ...


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What one read of the Kubernetes API is to cover.

    Attributes
    ----------
    namespaces : tuple of str
        Governed by the policy; the reader adds those that HyperPod's labels govern.
    everywhere : bool
        Whether pods of all other namespaces are listed as well (hourly, see `take_snapshot`).
    finished_after : datetime or None
        Workloads that finished before are dropped on sight; None keeps all.
    audit : bool
        Whether the resources of the audit scope are listed as well.
    """

    namespaces: tuple[str, ...] = ()
    everywhere: bool = True
    finished_after: datetime | None = None
    audit: bool = False


class KubernetesReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the Kubernetes API answered; a refused resource is empty here and named in `parts`.

    Attributes
    ----------
    namespaces : mapping of str to mapping, or None
        Name to labels; None where namespaces were refused.
    governed : frozenset of str, or None
        Namespaces whose pods were listed; None: those of every namespace were.
    """

    pods: tuple[GpuPod, ...]
    nodes: tuple[Node, ...]
    namespaces: Mapping[str, Mapping[str, str]] | None
    workloads: tuple[Workload, ...]
    cluster_queues: tuple[ClusterQueue, ...]
    local_queues: tuple[LocalQueue, ...]
    parts: tuple[Part, ...]
    cohorts: tuple[Cohort, ...] = ()
    resource_flavors: tuple[ResourceFlavor, ...] = ()
    priority_classes: tuple[WorkloadPriorityClass, ...] = ()
    topologies: tuple[Topology, ...] = ()
    events: tuple[KueueEvent, ...] = ()
    audit: Audit | None = None
    governed: frozenset[str] | None = None


class KubernetesReader(Protocol):
    """The cluster's Kubernetes API; never raises for a refused resource: it becomes a part."""

    def read(self, wanted: Wanted) -> KubernetesReading:
        """Read every resource of the tick scope, page by page, each reduced at once."""
        ...


class DeviceReading(msgspec.Struct, frozen=True, kw_only=True):
    """One device of one holder over the windows asked for, as the metrics source measured it.

    Attributes
    ----------
    node : str or None
        Node label of the series (`Hostname` or `hostname`).
    namespace, pod : str or None
        Holder that the exporter names; None where the series is not attributed to a pod.
    uuid : str
        Device identity (`UUID` label).
    mig : str or None
        `<profile>/<instance>` of a MIG slice.
    activity_metric : str
        Metric the activity was read from.
    last_sample : datetime or None
        Newest activity sample in the five minutes before the end; None without.
    held_bytes : int or None
        Newest valid memory-used sample inside the longest window.
    tensor, power : tuple of Window
        Tensor activity (0-1) and power draw (watts) over the signal windows; empty without.
    power_limit_watts : float or None
        Newest valid sample of the limit's own metric.
    model : str or None
        What the exporter calls the card, for example `NVIDIA H100 80GB HBM3`.
    """

    node: str | None
    namespace: str | None
    pod: str | None
    uuid: str
    mig: str | None
    activity_metric: str
    windows: tuple[Window, ...]
    last_sample: datetime | None
    held_bytes: int | None
    tensor: tuple[Window, ...] = ()
    power: tuple[Window, ...] = ()
    power_limit_watts: float | None = None
    model: str | None = None


class MetricsReading(msgspec.Struct, frozen=True, kw_only=True):
    """Every device that had an activity sample in the longest window."""

    devices: tuple[DeviceReading, ...]
    invalid: tuple[InvalidSamples, ...]


class DeviceName(msgspec.Struct, frozen=True, kw_only=True):
    """What selects one device of one holder in the metrics source."""

    namespace: str
    pod: str
    uuid: str
    mig: str | None = None


class Signal(StrEnum):
    """A signal of a device whose raw samples can be asked for."""

    ACTIVITY = "activity"
    TENSOR = "tensor"
    POWER = "power"


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    """Valid raw samples of one signal of one device, oldest first; units as in Window."""

    device: DeviceName
    times: tuple[datetime, ...]
    values: tuple[float, ...]
    signal: Signal = Signal.ACTIVITY


class MetricsReader(Protocol):
    """Accelerator metrics of one cluster; the number of queries does not grow with the cluster.

    Raises
    ------
    DeniedError, RetryableError, PermanentError
        The source refused, did not answer in time, or answered nonsense.
    """

    @property
    def part(self) -> str:
        """Name of the part that tells what became of this source."""
        ...

    def read(
        self, end: datetime, minutes: Sequence[int], signal_minutes: Sequence[int] = ()
    ) -> MetricsReading:
        """Read window statistics for every device, for windows that end at `end`.

        Activity over `minutes`, tensor activity and power over `signal_minutes`.
        """
        ...

    def samples(
        self,
        end: datetime,
        span_seconds: float,
        devices: Collection[DeviceName],
        signals: Sequence[Signal] = (Signal.ACTIVITY,),
    ) -> tuple[Samples, ...]:
        """Fetch raw samples in (end - span, end] for some devices, in one batched query."""
        ...

    def kueue(self, end: datetime) -> KueueMetrics:
        """Read Kueue's own metrics; empty where the cluster exports none."""
        ...

    def seen(
        self, end: datetime, span_seconds: float, pods: Collection[tuple[str, str]]
    ) -> tuple[DeviceReading, ...]:
        """Find devices that were attributed to pods (namespace, name) within the span before `end`.

        Window statistics of the answer are empty: it only tells that there once was telemetry.
        """
        ...


class CheckpointReader(Protocol):
    """The storage that jobs write their checkpoints to."""

    def newest(self, location: CheckpointLocation, job: str, before: datetime) -> Written | None:
        """Find the newest checkpoint of a job that is not later than a time.

        Parameters
        ----------
        location : CheckpointLocation
            With `{team}` and `{namespace}` filled in, and `{job}` left: only so is it told from a
            location without it, below which a job's are those with its name in their path.
        job : str
            Name of the job's top owner.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            The location cannot be listed.
        """
        ...


class Sources(Protocol):
    """Makes the readers of a cluster; each is built only when asked for."""

    def cluster(self, cluster: ClusterPolicy) -> ClusterReader:
        """Return the SageMaker and EKS reader."""
        ...

    def kubernetes(self, cluster: ClusterPolicy) -> KubernetesReader:
        """Return the Kubernetes reader."""
        ...

    def metrics(self, cluster: ClusterPolicy) -> MetricsReader:
        """Return the metrics reader."""
        ...

    def checkpoints(self, cluster: ClusterPolicy) -> CheckpointReader:
        """Return a checkpoint reader for one tick: what it listed it does not list again."""
        ...


# --- stores --------------------------------------------------------------------------------------


class SnapshotStore(Protocol):
    """Snapshots in the bucket."""

    def put(self, snapshot: Snapshot) -> str:
        """Store a snapshot and return its key."""
        ...

    def get(self, key: str) -> Snapshot:
        """Load a snapshot."""
        ...

    def last(self, cluster: str) -> LastSnapshot | None:
        """Return the pointer to the cluster's last finished snapshot, if there is one."""
        ...

    def finish(self, cluster: str, last: LastSnapshot) -> None:
        """Move the pointer."""
        ...


class ClaimStore(Protocol):
    """Who takes a cluster's snapshot, one versioned object a cluster."""

    def load(self, cluster: str) -> tuple[Claim | None, str | None]:
        """Return the claim and its version tag; no claim where there is none that can be read."""
        ...

    def save(self, cluster: str, claim: Claim, tag: str | None) -> str:
        """Write on condition that the tag still holds.

        Raises
        ------
        ConflictError
            Somebody else wrote since.
        """
        ...


class MemoryStore(Protocol):
    """The cluster's memory, one versioned object."""

    def load(self, cluster: str) -> tuple[Memory, str | None]:
        """Return the memory and its version tag; an empty memory and None where there is none."""
        ...

    def save(self, memory: Memory, tag: str | None) -> str:
        """Write on condition that the tag still holds.

        Raises
        ------
        ConflictError
            Somebody else wrote since.
        """
        ...


class EvaluationStore(Protocol):
    """Evaluations in the bucket."""

    def put(self, evaluation: Evaluation) -> str:
        """Store an evaluation and return its key (derived from cluster and time: idempotent)."""
        ...

    def get(self, key: str) -> Evaluation:
        """Load an evaluation."""
        ...

    def find(self, cluster: str, at: datetime) -> str | None:
        """Return the key of the evaluation of the snapshot at that time, if it was stored."""
        ...


class CheckpointStore(Protocol):
    """Checkpoints that markers and heartbeats have told of: the newest few of each job."""

    def told(self, cluster: str, namespace: str, job: str) -> tuple[Written, ...]:
        """Return what was told of a job, oldest first."""
        ...

    def record(self, cluster: str, namespace: str, job: str, *written: Written) -> None:
        """Add some in one write; what is known, or older than everything kept, changes nothing.

        Raises
        ------
        ConflictError
            Others kept writing at the same time: to be repeated.
        PermanentError
            Namespace or job is not a Kubernetes name.
        """
        ...


class PlanStore(Protocol):
    """When `plan_ticks` last asked for each cluster's snapshot."""

    def last(self, cluster: str) -> Planned:
        """Return when snapshots were last asked for."""
        ...

    def mark(self, cluster: str, planned: Planned) -> None:
        """Remember what was asked for."""
        ...

    def known(self) -> dict[str, datetime]:
        """Return every cluster that was ever planned and has not left, with when it first was."""
        ...

    def keep(self, since: dict[str, datetime]) -> None:
        """Remember which clusters there are."""
        ...

    def evaluated(self, cluster: str) -> datetime | None:
        """Return the time of the evaluation that was folded last; None where none ever was."""
        ...


class AlertStore(Protocol):
    """Alerts and cards of a cluster."""

    def load(self, cluster: str) -> ReconcilerState:
        """Load everything the reconciler knows of the cluster."""
        ...

    def save(self, before: ReconcilerState, after: ReconcilerState) -> None:
        """Write what differs."""
        ...

    def save_card(self, cluster: str, card: Card) -> None:
        """Write one card (its intent, or what was delivered)."""
        ...


# --- telling the world ---------------------------------------------------------------------------


class Bus(Protocol):
    """The steward's event bus."""

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Put one event; raises RetryableError when the bus did not take it."""
        ...


class SnapshotRequests(Protocol):
    """The one door to `take_snapshot`."""

    def ask(self, cluster: str, at: datetime, reason: str, scope: SnapshotScope) -> None:
        """Ask for a fresh snapshot of a cluster."""
        ...


class EvaluationQueue(Protocol):
    """The FIFO queue to `reconcile_alerts`; its message group is the cluster."""

    def send(self, cluster: str, key: str, at: datetime) -> None:
        """Hand over one evaluation."""
        ...


class ActionQueue(Protocol):
    """The same FIFO queue, for what somebody wants done with a card."""

    def act(self, action: CardAction) -> None:
        """Hand over one action; the same one again within five minutes is one message."""
        ...


class DepartureQueue(Protocol):
    """The same FIFO queue, for clusters that left the policy."""

    def depart(self, cluster: str, at: datetime) -> None:
        """Have the cards of a cluster closed."""
        ...


class CommandQueue(Protocol):
    """The door to `run_command`."""

    def send(self, command: Command) -> None:
        """Hand over a slash command, or the wish to see a card's evidence."""
        ...


class Pager(Protocol):
    """SNS topics that pagers listen to."""

    def publish(self, topic_arn: str, subject: str, message: str) -> None:
        """Publish one message.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            The topic did not take it.
        """
        ...


class Messenger(Protocol):
    """Slack, as the reconciler needs it.

    Raises
    ------
    RefusedContentError
        Slack refused the blocks; the same card may be sent as text.
    ChannelError
        The channel is missing, archived or closed to the bot.
    CredentialsError
        The token is revoked or lacks a scope.
    UnknownOutcomeError
        The request may or may not have been accepted: look the history up before posting again.
    NotAcceptedError
        Slack did not take the message (429, 5xx with a refusal): the next run tries again.
    MessageGoneError
        The message to edit or delete does not exist any more, or may not be touched.
    """

    def post(self, message: Mapping[str, Any], attempt: Attempt) -> Posted:
        """Post a message to the attempt's channel; its metadata carries the attempt."""
        ...

    def update(self, posted: Posted, message: Mapping[str, Any], attempt: Attempt) -> Posted:
        """Edit a message in place."""
        ...

    def find(self, attempt: Attempt) -> Posted | None:
        """Look an attempt up in the history of its channel."""
        ...

    def delete(self, posted: Posted) -> None:
        """Take a message of ours away."""
        ...


class Directory(Protocol):
    """Slack's members.

    Raises
    ------
    DeliveryError
        Slack did not answer, or refused: who is meant stays unknown.
    """

    def user_of(self, email: str) -> str | None:
        """Return the id of the member with an e-mail address; None: nobody has it."""
        ...

    def email_of(self, user: str) -> str | None:
        """Return a member's e-mail address; None: there is none that we may see."""
        ...


class Dialogs(Protocol):
    """Slack's dialogs."""

    def open(self, trigger_id: str, view: Mapping[str, Any]) -> None:
        """Open a view for whoever pressed.

        Raises
        ------
        DeliveryError
            Slack did not open it.
        """
        ...


class Responder(Protocol):
    """Answers to a press or a command, visible to the person alone."""

    def respond(self, response_url: str, message: Mapping[str, Any]) -> None:
        """Post an answer to a `response_url`.

        Raises
        ------
        DeliveryError
            Slack did not take it: the address has expired, or was used five times.
        """
        ...
