"""The product as the rig runs it: real sources and Slack over HTTP, stores and queues in memory."""

from copy import replace
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from local.twins import InMemoryBus, InMemoryObjects, InMemoryPolicy, InMemoryRows, InMemorySender
from steward import ports
from steward.bootstrap import App
from steward.cluster.policy import ClusterPolicy, Policy
from steward.settings import Settings
from steward.sinks.queues import CommandSender, EvaluationSender, SnapshotRequestSender


@dataclass(slots=True)
class VirtualClock:
    """Time that moves when it is told to, and when somebody waits."""

    at: datetime

    def now(self) -> datetime:
        """Return the virtual time."""
        return self.at

    def sleep(self, seconds: float) -> None:
        """Let the time pass at once."""
        self.at += timedelta(seconds=seconds)

    def move_to(self, at: datetime) -> None:
        """Move on; time never goes back."""
        self.at = max(self.at, at)


class LocalApp(App):
    """Every port of the product, with twins in place of AWS' stores, bus and queues."""

    def __init__(self, settings: Settings, policy: Policy, clock: VirtualClock) -> None:
        super().__init__(settings)
        self._policies = InMemoryPolicy(policy)
        self._clock = clock
        self.collected = InMemoryBus()
        self.request_messages = InMemorySender(clock)
        self.evaluation_messages = InMemorySender(clock)
        self.command_messages = InMemorySender(clock)

    @cached_property
    def clock(self) -> ports.Clock:
        """The virtual clock."""
        return self._clock

    @cached_property
    def policy(self) -> Policy:
        """The recording's policy."""
        return self._policies.load()

    @cached_property
    def objects(self) -> InMemoryObjects:
        """The bucket's twin."""
        return InMemoryObjects()

    @cached_property
    def rows(self) -> InMemoryRows:
        """The state table's twin."""
        return InMemoryRows()

    @cached_property
    def bus(self) -> ports.Bus:
        """The bus' twin."""
        return self.collected

    @cached_property
    def requests(self) -> ports.SnapshotRequests:
        """The request queue's twin."""
        return SnapshotRequestSender(self.request_messages, spokes={})

    @cached_property
    def _reconciling(self) -> EvaluationSender:
        return EvaluationSender(self.evaluation_messages)

    @property
    def actions(self) -> ports.ActionQueue:
        """The evaluation queue's twin, for what people do."""
        return self._reconciling

    @cached_property
    def commands(self) -> ports.CommandQueue:
        """The command queue's twin."""
        return CommandSender(self.command_messages)

    @property
    def senders(self) -> dict[str, InMemorySender]:
        """The queues' twins, by the variable that names each of them to a function."""
        return {
            "SNAPSHOT_REQUESTS_URL": self.request_messages,
            "EVALUATIONS_URL": self.evaluation_messages,
            "COMMANDS_URL": self.command_messages,
        }


def for_recording(policy: Policy, cluster: str, tick: timedelta) -> Policy:
    """Narrow a policy to the recorded cluster, at the recording's pace and reached directly."""
    return replace(
        policy, clusters=tuple(_recorded(c, tick) for c in policy.clusters if c.name == cluster)
    )


def _recorded(cluster: ClusterPolicy, tick: timedelta) -> ClusterPolicy:
    minutes = max(1, int(tick.total_seconds() // 60))
    return replace(cluster, tick_minutes=minutes, role_arn=None, spoke_queue_url=None)
