"""What there is in a generated cluster: who holds which accelerators, and what stands around them.

Three quarters of the nodes train (PyTorchJobs of up to four pods, a node each), the rest serve
(Deployments of one-GPU pods, each pod a Workload of its own). Every twentieth pod is idle.
"""

from collections.abc import Iterator
from copy import replace
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import batched
from uuid import NAMESPACE_URL, uuid5

from steward.cluster.policy import ClusterPolicy

NOW = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)
"""The time of the first tick."""

NODE_GPUS = 8
JOB_NODES = 4
REPLICAS = 4
SYSTEM_PODS = 12
"""Pods a node that hold no accelerator, in namespaces outside governance."""

FINISHED = 4
"""Finished Workloads for each live one: Kueue keeps them for ever by default."""

RECENTLY = 4
"""Of so many finished Workloads one finished within the last seven days."""

SYSTEM_NAMESPACES = (
    "amazon-cloudwatch",
    "hyperpod-observability",
    "istio-system",
    "kube-system",
    "kueue-system",
    "monitoring",
)
FLAVORS = (
    "ml.p5.48xlarge",
    *(f"ml.{family}.{size}" for family in ("c5", "m5", "r5") for size in ("xlarge", "4xlarge")),
)
"""A queue lists every flavor of the cluster, most of them with a quota of 0."""

_IDLE_EVERY = 20
_IDLE_AGE = timedelta(hours=5)
_AGE = timedelta(days=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A pod that holds accelerators `first` to `first + gpus - 1` of its node."""

    name: str
    namespace: str
    node: str
    first: int
    gpus: int
    owner: str
    training: bool
    idle: bool

    @property
    def born(self) -> datetime:
        """When it started; the idle ones have not been there for long."""
        return NOW - (_IDLE_AGE if self.idle else _AGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A Workload: live, finished (some time ago) or pending."""

    name: str
    namespace: str
    owner_kind: str
    owner: str
    pods: int
    gpus_a_pod: int
    created: datetime
    finished: datetime | None = None
    pending: bool = False


@dataclass(frozen=True, kw_only=True)
class GeneratedCluster:
    """A cluster of about so many GPUs (whole nodes of eight)."""

    gpus: int

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of its nodes."""
        count = -(-self.gpus // NODE_GPUS)
        return tuple(f"hyperpod-i-{number:017x}" for number in range(count))

    @cached_property
    def teams(self) -> tuple[str, ...]:
        """Names of its teams: 15 to 200."""
        return tuple(f"team-{n:03d}" for n in range(min(200, max(15, self.gpus // 170))))

    @cached_property
    def holders(self) -> tuple[Holder, ...]:
        """Every pod that holds accelerators."""
        training = len(self.nodes) * 3 // 4
        pods = [
            *self._training(self.nodes[:training]),
            *self._serving(self.nodes[training:]),
        ]
        return tuple(pods)

    @cached_property
    def workloads(self) -> tuple[Queued, ...]:
        """Workloads: the live, four finished for each of them, and two pending a team."""
        live = list(self._live())
        finished = [
            self._finished(workload, number)
            for position, workload in enumerate(live)
            for number in range(position * FINISHED, (position + 1) * FINISHED)
        ]
        pending = [
            Queued(
                name=f"pytorchjob-wait-{team}-{number}",
                namespace=namespace_of(team),
                owner_kind="PyTorchJob",
                owner=f"wait-{team}-{number}",
                pods=2,
                gpus_a_pod=NODE_GPUS,
                created=NOW - timedelta(hours=1 + number),
                pending=True,
            )
            for team in self.teams
            for number in range(2)
        ]
        return (*live, *finished, *pending)

    def policy(self, example: ClusterPolicy) -> ClusterPolicy:
        """Give a cluster's policy the teams and the capacity of this one."""
        team, group = example.teams[0], example.capacity[0]
        return replace(
            example,
            capacity=(replace(group, count=len(self.nodes)),),
            teams=tuple(
                replace(team, name=name, namespaces=(namespace_of(name),), accelerators=1)
                for name in self.teams
            ),
        )

    def _training(self, nodes: tuple[str, ...]) -> Iterator[Holder]:
        for number, gang in enumerate(batched(nodes, JOB_NODES, strict=False)):
            for rank, node in enumerate(gang):
                yield Holder(
                    name=f"pretrain-{number}-worker-{rank}",
                    namespace=self._namespace(number),
                    node=node,
                    first=0,
                    gpus=NODE_GPUS,
                    owner=f"pretrain-{number}",
                    training=True,
                    idle=number % _IDLE_EVERY == 0,
                )

    def _serving(self, nodes: tuple[str, ...]) -> Iterator[Holder]:
        slots = [(node, first) for node in nodes for first in range(NODE_GPUS)]
        for number, replicas in enumerate(batched(slots, REPLICAS, strict=False)):
            for index, (node, first) in enumerate(replicas):
                yield Holder(
                    name=f"serve-{number}-6f7d9c8b54-{index:05x}",
                    namespace=self._namespace(number),
                    node=node,
                    first=first,
                    gpus=1,
                    owner=f"serve-{number}",
                    training=False,
                    idle=number % _IDLE_EVERY == 0,
                )

    def _live(self) -> Iterator[Queued]:
        gangs: dict[tuple[str, str], list[Holder]] = {}
        for pod in self.holders:
            gangs.setdefault((pod.namespace, pod.owner if pod.training else pod.name), []).append(
                pod
            )
        for (namespace, owner), pods in gangs.items():
            kind = "PyTorchJob" if pods[0].training else "Pod"
            yield Queued(
                name=f"{kind.lower()}-{owner}-0a1b2",
                namespace=namespace,
                owner_kind=kind,
                owner=owner,
                pods=len(pods),
                gpus_a_pod=pods[0].gpus,
                created=pods[0].born,
            )

    def _finished(self, like: Queued, number: int) -> Queued:
        days = 2 if number % RECENTLY == 0 else 8 + number % 60
        ended = NOW - timedelta(days=days, minutes=number % 1000)
        return Queued(
            name=f"{like.owner_kind.lower()}-past-{number}-0a1b2",
            namespace=like.namespace,
            owner_kind=like.owner_kind,
            owner=f"past-{number}",
            pods=like.pods,
            gpus_a_pod=like.gpus_a_pod,
            created=ended - timedelta(hours=6),
            finished=ended,
        )

    def _namespace(self, number: int) -> str:
        return namespace_of(self.teams[number % len(self.teams)])


def namespace_of(team: str) -> str:
    """Name a team's namespace as task governance does."""
    return f"hyperpod-ns-{team}"


def uid(*names: object) -> str:
    """Make a UID that is always the same for the same thing."""
    return str(uuid5(NAMESPACE_URL, "/".join(map(str, names))))


def gpu_uuid(node: str, index: int) -> str:
    """Name a card."""
    return f"GPU-{uid(node, index)}"
