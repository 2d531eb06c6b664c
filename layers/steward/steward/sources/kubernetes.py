"""The Kubernetes API of one cluster, read page by page; what it refuses becomes a part.

Everything that is read is listed in docs/access/clusterrole.yaml, and nothing else is.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steward.cluster.kueue import ClusterQueue, LocalQueue, Workload
from steward.cluster.snapshot import PartStatus
from steward.errors import ConfigError, DeniedError, StewardError
from steward.ports import Clock, KubernetesReading
from steward.sources import kueue_objects as kueue
from steward.sources.kubernetes_http import METADATA_ONLY, KubernetesSession
from steward.sources.kubernetes_lists import CORE, Lists, part
from steward.sources.kubernetes_objects import (
    BoundPod,
    Controlled,
    Reference,
    read_controlled,
    read_namespace,
    read_node,
    read_pod,
)
from steward.sources.kubernetes_owners import OwnerKey, OwnerKind, attach, missing

if TYPE_CHECKING:
    from steward.sources.control_plane import EksEndpoint

KUEUE_RESOURCES = ("clusterqueues", "localqueues", "workloads")
RESOURCES = ("nodes", "namespaces", *KUEUE_RESOURCES, "pods")
"""Read at every tick, small ones first; owners follow, as far as GPU pods name them."""

LIVE_PODS = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Leaves unbound and finished pods on the server: they hold no accelerator."""


class KubernetesApi:
    """Reads one cluster; implements :class:`steward.ports.KubernetesReader`.

    Parameters
    ----------
    endpoint : callable
        Says where the API server is; asked at every read.
    token : callable
        Gives a bearer token that is valid now (see :mod:`steward.sources.eks_token`).
    clock : Clock
        Of the deadline, and of waiting where the server asks to.
    deadline_seconds : float
        Time that one read may take; resources that it leaves no time for are unreadable.
    plain_http : bool
        Accept an endpoint without TLS. Only where `Settings.local_endpoint` is set.
    """

    def __init__(
        self,
        endpoint: "Callable[[], EksEndpoint]",
        token: Callable[[], str],
        clock: Clock,
        deadline_seconds: float = 30.0,
        *,
        plain_http: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._token = token
        self._clock = clock
        self._deadline = timedelta(seconds=deadline_seconds)
        self._plain_http = plain_http

    def read(self) -> KubernetesReading:
        """Read every resource of the tick scope.

        Returns
        -------
        KubernetesReading
            A refused resource is empty and named in `parts`; owners are parts only where GPU pods
            lead to owners of that kind.

        Raises
        ------
        ConfigError
            The endpoint is plain HTTP, and that is not accepted.

        Notes
        -----
        Requests: one a page of 500 objects, one to find Kueue's version, and one to find that of
        each kind of owner outside apps and batch.
        """
        at = self._clock.now()
        try:
            session = KubernetesSession(
                self._endpoint(),
                self._token(),
                self._clock,
                at + self._deadline,
                plain_http=self._plain_http,
            )
        except ConfigError:
            raise
        except StewardError as error:
            return _unreached(error, at)
        with session:
            return _read(Lists(session, self._clock))


def _read(lists: Lists) -> KubernetesReading:
    nodes = lists.read("nodes", CORE, read_node)
    namespaces = lists.read("namespaces", CORE, read_namespace, accept=METADATA_ONLY)
    cluster_queues, local_queues, workloads = _read_kueue(lists)
    listed = lists.read("pods", CORE, read_pod, fields=LIVE_PODS) or ()
    # A pod that two pages of a changing list both hold is one pod.
    pods = {(one.pod.namespace, one.pod.name): one for one in listed}.values()
    controllers = _read_controllers(lists, pods)
    return KubernetesReading(
        pods=tuple(attach(pod, controllers) for pod in pods),
        nodes=nodes or (),
        namespaces=None if namespaces is None else dict(namespaces),
        workloads=workloads,
        cluster_queues=cluster_queues,
        local_queues=local_queues,
        parts=tuple(lists.parts),
    )


def _read_kueue(
    lists: Lists,
) -> tuple[tuple[ClusterQueue, ...], tuple[LocalQueue, ...], tuple[Workload, ...]]:
    version = lists.version(kueue.GROUP, KUEUE_RESOURCES, kueue.VERSIONS)
    if not version:
        return (), (), ()
    root = f"/apis/{kueue.GROUP}/{version}"
    return (
        lists.read("clusterqueues", root, kueue.read_cluster_queue) or (),
        lists.read("localqueues", root, kueue.read_local_queue) or (),
        lists.read("workloads", root, kueue.read_workload) or (),
    )


def _read_controllers(lists: Lists, pods: Iterable[BoundPod]) -> dict[OwnerKey, Reference | None]:
    """List the kinds of owners that pods lead to, and those that these lead to in turn."""
    controllers: dict[OwnerKey, Reference | None] = {}
    listed: set[OwnerKind] = set()
    while kinds := missing(pods, controllers, listed):
        for kind in kinds:
            listed.add(kind)
            for one in _read_owners(lists, kind):
                reference = Reference(kind.group, kind.kind, one.name)
                controllers[reference, one.namespace] = one.controller
    return controllers


def _read_owners(lists: Lists, kind: OwnerKind) -> tuple[Controlled, ...]:
    version = kind.version or lists.version(kind.group, (kind.resource,))
    if not version:
        return ()
    root = f"/apis/{kind.group}/{version}"
    return lists.read(kind.resource, root, read_controlled, accept=METADATA_ONLY) or ()


def _unreached(error: StewardError, at: datetime) -> KubernetesReading:
    """Give the reading where the endpoint or the token was refused: nothing is known."""
    # That the cluster itself is not found does not say that a resource is not installed.
    denied = isinstance(error, DeniedError)
    status = PartStatus.DENIED if denied else PartStatus.UNREADABLE
    return KubernetesReading(
        pods=(),
        nodes=(),
        namespaces=None,
        workloads=(),
        cluster_queues=(),
        local_queues=(),
        parts=tuple(part(resource, status, at, str(error)) for resource in RESOURCES),
    )
