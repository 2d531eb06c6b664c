"""The Kubernetes API of one cluster, read page by page; what it refuses becomes a part.

Everything that a tick reads is listed in docs/access/clusterrole-tick.yaml, and nothing else is.
"""

from collections.abc import Callable, Sequence
from copy import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steward.cluster.audit import Audit
from steward.cluster.snapshot import PartStatus
from steward.errors import ConfigError, DeniedError, StewardError
from steward.ports import Clock, KubernetesReading, Wanted
from steward.sources.kubernetes.lists import Lists, part
from steward.sources.kubernetes.objects import CREATED_BY
from steward.sources.kubernetes.session import KubernetesSession
from steward.sources.kubernetes.tick import RESOURCES, read_tick

if TYPE_CHECKING:
    from steward.sources.control_plane.reader import EksEndpoint

AUDIT_RESOURCES = (
    "roles",
    "clusterroles",
    "rolebindings",
    "clusterrolebindings",
    "networkpolicies",
    "serviceaccounts",
    "resourcequotas",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
)
"""Read by an audit beside those of a tick (docs/access/clusterrole-audit.yaml)."""


class KubernetesApi:
    """Reads one cluster; implements :class:`steward.ports.KubernetesReader`.

    Parameters
    ----------
    endpoint : callable
        Says where the API server is; asked at every read.
    token : callable
        Gives a bearer token that is valid now (see :mod:`steward.sources.kubernetes.eks_token`).
    clock : Clock
        Of the deadline, and of waiting where the server asks to.
    deadline_seconds : float
        Time that one read may take; resources that it leaves no time for are unreadable.
    created_by : sequence of str
        Labels that name who made an object, the most trusted first.
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
        created_by: Sequence[str] = CREATED_BY,
        plain_http: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._token = token
        self._clock = clock
        self._deadline = timedelta(seconds=deadline_seconds)
        self._created_by = tuple(created_by)
        self._plain_http = plain_http

    def read(self, wanted: Wanted) -> KubernetesReading:
        """Read every resource of the tick scope, and with `wanted.audit` of the audit scope.

        Returns
        -------
        KubernetesReading
            A refused resource is empty and named in `parts`; owners are parts only where GPU pods
            or unfinished Workloads lead to owners of that kind.

        Raises
        ------
        ConfigError
            The endpoint is plain HTTP, and that is not accepted.

        Notes
        -----
        Requests: one a page of 500 objects, and one to find the versions of each API group outside
        the core, apps and batch. Pods are listed for each governed namespace by itself, where most
        pods of a cluster are not; with `wanted.everywhere` in one list.
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
            return _unreached(error, at, wanted)
        with session:
            lists = Lists(session, self._clock)
            reading = read_tick(lists, wanted, self._created_by)
            if not wanted.audit:
                return reading
            # Once a day: its code is no part of every other cold start.
            from steward.sources.kubernetes.audit import read_audit  # noqa: PLC0415

            audit = read_audit(lists)
            return replace(reading, audit=audit, parts=tuple(lists.parts))


def _unreached(error: StewardError, at: datetime, wanted: Wanted) -> KubernetesReading:
    """Give the reading where the endpoint or the token was refused: nothing is known."""
    # That the cluster itself is not found does not say that a resource is not installed.
    denied = isinstance(error, DeniedError)
    status = PartStatus.DENIED if denied else PartStatus.UNREADABLE
    resources = (*RESOURCES, *(AUDIT_RESOURCES if wanted.audit else ()))
    return KubernetesReading(
        pods=(),
        nodes=(),
        namespaces=None,
        workloads=(),
        cluster_queues=(),
        local_queues=(),
        audit=Audit() if wanted.audit else None,
        parts=tuple(part(resource, status, at, str(error)) for resource in resources),
    )
