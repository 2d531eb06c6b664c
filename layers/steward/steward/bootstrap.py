"""The sole place that names concrete adapters: builds each when it is first asked for.

Only the readers of a cluster are made elsewhere, in :mod:`steward.sources.factory`: one set a cluster.

Imports stand inside the properties on purpose: a function pays only for what it uses.
"""

from __future__ import annotations

import gc
from functools import cached_property
from typing import TYPE_CHECKING

from steward.cluster.policy import Policy
from steward.settings import Settings

if TYPE_CHECKING:
    import boto3

    from steward import ports
    from steward.sinks.queues import EvaluationSender, SqsClients
    from steward.sinks.slack_secret import SlackSecret
    from steward.stores.bucket import Objects
    from steward.stores.state import Rows


# A function's heap grows once and is thrown away: collecting it on the way up is a tenth of a cold
# start (docs/decisions/0010), and finds nothing.
gc.set_threshold(200_000, 20, 50)


class App:
    """Every port of the product, bound to AWS, Slack and the cluster's own APIs.

    Parameters
    ----------
    settings : Settings
        What the function was told by its environment.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def session(self) -> boto3.Session:
        """The one session that every client comes from."""
        import boto3  # noqa: PLC0415 - only functions that call AWS pay for it

        return boto3.Session(region_name=self.settings.region or None)

    @cached_property
    def clock(self) -> ports.Clock:
        """The system's clock; the rig's time where the rig sets it."""
        from steward.clock import FixedClock, SystemClock  # noqa: PLC0415 - as above

        now = self.settings.local_now
        return SystemClock() if now is None else FixedClock(now)

    @cached_property
    def policy(self) -> Policy:
        """The policy in force."""
        from steward.stores.policy_file import PolicyFile  # noqa: PLC0415 - as above

        return PolicyFile(self.settings.policy_path).load()

    @cached_property
    def objects(self) -> Objects:
        """The bucket."""
        from steward.stores.s3 import S3Objects  # noqa: PLC0415 - as above

        return S3Objects(self.session, self.settings.bucket)

    @cached_property
    def rows(self) -> Rows:
        """The state table."""
        from steward.stores.dynamo import DynamoRows  # noqa: PLC0415 - as above

        return DynamoRows(self.session, self.settings.state_table, self.clock)

    @cached_property
    def snapshots(self) -> ports.SnapshotStore:
        """Snapshots in the bucket."""
        from steward.stores.bucket import Snapshots  # noqa: PLC0415 - as above

        return Snapshots(self.objects)

    @cached_property
    def claims(self) -> ports.ClaimStore:
        """Who takes which snapshot, in the bucket."""
        from steward.stores.claims import Claims  # noqa: PLC0415 - as above

        return Claims(self.objects)

    @cached_property
    def memories(self) -> ports.MemoryStore:
        """Memories in the bucket."""
        from steward.stores.bucket import Memories  # noqa: PLC0415 - as above

        return Memories(self.objects)

    @cached_property
    def evaluations(self) -> ports.EvaluationStore:
        """Evaluations in the bucket."""
        from steward.stores.bucket import Evaluations  # noqa: PLC0415 - as above

        return Evaluations(self.objects)

    @cached_property
    def checkpoints(self) -> ports.CheckpointStore:
        """Checkpoints that were told of, in the bucket."""
        from steward.stores.checkpoints import Checkpoints  # noqa: PLC0415 - as above

        return Checkpoints(self.objects)

    @cached_property
    def plans(self) -> ports.PlanStore:
        """What `plan_ticks` did last."""
        from steward.stores.state import Plan  # noqa: PLC0415 - as above

        return Plan(self.rows)

    @cached_property
    def alerts(self) -> ports.AlertStore:
        """Alerts and cards."""
        from steward.stores.state import Alerts  # noqa: PLC0415 - as above

        return Alerts(self.rows)

    @cached_property
    def bus(self) -> ports.Bus:
        """The steward's bus."""
        from steward.sinks.bus import EventBridgeBus  # noqa: PLC0415 - as above

        return EventBridgeBus(self.session, self.settings.bus)

    @cached_property
    def requests(self) -> ports.SnapshotRequests:
        """The doors to `take_snapshot`: the stack's own, and those of its spokes."""
        from steward.sinks import queues  # noqa: PLC0415 - as above

        clients = self._queues
        own = self.settings.snapshot_requests_url
        spokes = {
            cluster.name: queues.SqsSender(clients, cluster.spoke_queue_url)
            for cluster in self.policy.clusters
            if cluster.spoke_queue_url is not None
        }
        return queues.SnapshotRequestSender(queues.SqsSender(clients, own) if own else None, spokes)

    @cached_property
    def _reconciling(self) -> EvaluationSender:
        from steward.sinks import queues  # noqa: PLC0415 - as above

        return queues.EvaluationSender(
            queues.SqsSender(self._queues, self.settings.evaluations_url)
        )

    @cached_property
    def _queues(self) -> SqsClients:
        from steward.sinks import queues  # noqa: PLC0415 - as above

        return queues.SqsClients(self.session)

    @property
    def queue(self) -> ports.EvaluationQueue:
        """The door to `reconcile_alerts`, for evaluations."""
        return self._reconciling

    @cached_property
    def actions(self) -> ports.ActionQueue:
        """The same door, for what people do: they wait for it."""
        from steward.sinks import queues  # noqa: PLC0415 - as above

        return queues.EvaluationSender(
            queues.SqsSender(self._hurried_queues, self.settings.evaluations_url)
        )

    @property
    def departures(self) -> ports.DepartureQueue:
        """The same door, for clusters that left the policy."""
        return self._reconciling

    @cached_property
    def commands(self) -> ports.CommandQueue:
        """The door to `run_command`."""
        from steward.sinks import queues  # noqa: PLC0415 - as above

        sender = queues.SqsSender(self._hurried_queues, self.settings.commands_url)
        return queues.CommandSender(sender)

    @cached_property
    def _hurried_queues(self) -> SqsClients:
        from steward.aws_errors import HURRIED_LIMITS  # noqa: PLC0415 - as above
        from steward.sinks import queues  # noqa: PLC0415 - as above

        return queues.SqsClients(self.session, HURRIED_LIMITS)

    @cached_property
    def sources(self) -> ports.Sources:
        """Readers of a cluster."""
        from steward.sources.factory import ClusterSources  # noqa: PLC0415 - as above

        return ClusterSources(self.session, self.clock, self.settings)

    @cached_property
    def messenger(self) -> ports.Messenger:
        """Slack, as the reconciler needs it."""
        from steward.sinks.slack import SlackMessenger  # noqa: PLC0415 - as above

        return SlackMessenger(self.session, self.settings, self.clock)

    @cached_property
    def slack_secret(self) -> SlackSecret:
        """What requests are signed with; somebody waits for it."""
        from steward.aws_errors import HURRIED_LIMITS  # noqa: PLC0415 - as above
        from steward.sinks.slack_secret import SlackSecret  # noqa: PLC0415 - as above

        name = self.settings.slack_secret
        return SlackSecret(self.session, name, self.clock, HURRIED_LIMITS)

    @cached_property
    def dialogs(self) -> ports.Dialogs:
        """Slack's dialogs."""
        from steward.sinks.slack_views import SlackDialogs  # noqa: PLC0415 - as above

        return SlackDialogs(self.slack_secret, self.settings)

    @cached_property
    def directory(self) -> ports.Directory:
        """Slack's members."""
        from steward.sinks.slack_people import SlackDirectory  # noqa: PLC0415 - as above

        return SlackDirectory(self.session, self.settings, self.clock)

    @cached_property
    def responder(self) -> ports.Responder:
        """Answers to presses and commands."""
        from steward.sinks.slack_responses import SlackResponder  # noqa: PLC0415 - as above

        return SlackResponder(self.settings)

    @cached_property
    def pager(self) -> ports.Pager:
        """SNS topics of pagers."""
        from steward.sinks.pager import SnsPager  # noqa: PLC0415 - as above

        return SnsPager(self.session)


class _Container:
    """Holds the application of this execution environment."""

    app: App | None = None


def app() -> App:
    """Return the application of this execution environment; made at the first call."""
    if _Container.app is None:
        _Container.app = App(Settings.from_environment())
    return _Container.app


def use(application: App | None) -> None:
    """Let the handlers use another application (the rig's), or forget the present one (None)."""
    _Container.app = application
