"""SageMaker and EKS, read into the nouns: what the control plane says, and what it refused.

The answers and their optional members follow the service models of botocore. Members that a model
does not know pass unseen; a member that is needed and missing makes its object unreadable.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import boto3
import msgspec

from steward.cluster.control_plane import AddOn, ControlPlane
from steward.cluster.policy import ClusterPolicy
from steward.errors import PermanentError
from steward.ports import Clock, ControlPlaneReading
from steward.sources.assumed_role import client_limits, session_for
from steward.sources.control_plane.eks import Eks, undescribed
from steward.sources.control_plane.fields import MalformedError, need
from steward.sources.control_plane.parts import Reads
from steward.sources.control_plane.sagemaker import SageMaker
from steward.sources.control_plane.wire import mend

if TYPE_CHECKING:
    from botocore.model import OperationModel
    from types_boto3_eks import EKSClient
    from types_boto3_sagemaker import SageMakerClient


ENDPOINT_DEADLINE = timedelta(seconds=10)
"""Time that asking for the Kubernetes endpoint by itself may take; a request under way outlasts it."""

_NAMED = 3
"""Faults of one answer that are told; the items that they cost are named all the same."""


class EksEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where the Kubernetes API is: URL, certificate authority (base64 of a PEM), EKS name."""

    endpoint: str
    ca_data: str
    name: str


class ControlPlaneReader:
    """SageMaker and EKS for one cluster.

    Parameters
    ----------
    session : boto3.Session
        Shared by all readers of the function. Where the cluster's policy names a role, that role
        is assumed with it (see :func:`steward.sources.assumed_role.session_for`).
    deadline_seconds : float
        Time that one read may take. No request is sent, and none repeated, after it: operations it
        leaves no time for are unreadable.
    """

    def __init__(
        self,
        cluster: ClusterPolicy,
        session: boto3.Session,
        clock: Clock,
        deadline_seconds: float = 30.0,
    ) -> None:
        self._cluster = cluster
        self._base = session
        self._clock = clock
        self._deadline = timedelta(seconds=deadline_seconds)
        self._reads: Reads | None = None
        self._eks_answer: Mapping[str, Any] | None = None

    @cached_property
    def _session(self) -> boto3.Session:
        return session_for(self._cluster, self._base)

    @cached_property
    def _sagemaker(self) -> "SageMakerClient":
        client = self._session.client(
            "sagemaker", region_name=self._cluster.region, config=client_limits()
        )
        self._watch(client.meta.events, "sagemaker")
        return client

    @cached_property
    def _eks(self) -> "EKSClient":
        client = self._session.client(
            "eks", region_name=self._cluster.region, config=client_limits()
        )
        self._watch(client.meta.events, "eks")
        return client

    def _watch(self, events: Any, service: str) -> None:
        events.register(f"before-send.{service}", self._before_send)
        events.register(f"before-parse.{service}", self._before_parse)

    def _before_send(self, **_: object) -> None:
        """Keep botocore from repeating a request for which no time is left."""
        if self._reads is not None:
            self._reads.check_time()

    def _before_parse(
        self, response_dict: dict[str, Any], operation_model: "OperationModel", **_: object
    ) -> None:
        faults = mend(response_dict, operation_model)
        if self._reads is not None:
            self._reads.note("; ".join(faults[:_NAMED]) + ("; …" if len(faults) > _NAMED else ""))

    def read(self, *, add_ons: bool = True) -> ControlPlaneReading:
        """Read the control plane; every operation that was called is one part.

        Parameters
        ----------
        add_ons : bool
            Whether EKS is asked for its add-ons, which change by the week.

        Returns
        -------
        ControlPlaneReading
            `sagemaker/DescribeClusterSchedulerConfig` and `eks/DescribeAddon` are parts only where
            the list before names something to describe.

        Notes
        -----
        Calls: six, one more for every 100 nodes, quotas, configurations or events, and one a
        configuration (SageMaker allows one a cluster). With add-ons one more, and one for each of
        those that are described (four at most).
        """
        self._reads = reads = Reads(self._clock, self._deadline)
        try:
            known = self._read_sagemaker(reads) | self._read_eks(reads, add_ons=add_ons)
        finally:
            self._reads = None
        return ControlPlaneReading(control_plane=ControlPlane(**known), parts=tuple(reads.parts))

    def _read_sagemaker(self, reads: Reads) -> dict[str, Any]:
        asked = SageMaker(self._sagemaker, self._cluster, reads)
        known = reads.ask("sagemaker/DescribeCluster", asked.cluster) or {}
        arn = known.get("arn")
        known["nodes"] = reads.ask("sagemaker/ListClusterNodes", asked.nodes) or ()
        quotas = reads.ask("sagemaker/ListComputeQuotas", lambda: asked.quotas(arn))
        known["quotas"] = quotas or ()
        ids = reads.ask("sagemaker/ListClusterSchedulerConfigs", lambda: asked.configs(arn))
        if ids:
            known["scheduler"] = reads.ask(
                "sagemaker/DescribeClusterSchedulerConfig", lambda: asked.scheduler(ids)
            )
        events = reads.ask(
            "sagemaker/ListClusterEvents",
            lambda: asked.events(self._clock.now(), known.get("provisioning_mode")),
        )
        return known | {"events": events or ()}

    def _read_eks(self, reads: Reads, *, add_ons: bool) -> dict[str, Any]:
        asked = Eks(self._eks, self._cluster)
        known: dict[str, Any] = {
            "kubernetes_version": reads.ask(
                "eks/DescribeCluster", lambda: self._read_version(asked)
            )
        }
        if add_ons:
            known["add_ons"] = _read_add_ons(asked, reads)
        return known

    def _read_version(self, asked: Eks) -> str:
        self._eks_answer = asked.cluster()
        return need(self._eks_answer, "version", str)

    def _ask_eks(self) -> Mapping[str, Any]:
        self._reads = Reads(self._clock, ENDPOINT_DEADLINE)
        try:
            self._eks_answer = Eks(self._eks, self._cluster).cluster()
        finally:
            self._reads = None
        return self._eks_answer

    def kubernetes_endpoint(self) -> EksEndpoint:
        """Return where the Kubernetes API is; EKS is asked only where no read has asked before.

        Raises
        ------
        DeniedError, RetryableError, PermanentError
            EKS refused, did not answer, or does not know the cluster or its endpoint.
        """
        answer = self._eks_answer or self._ask_eks()
        try:
            return EksEndpoint(
                endpoint=need(answer, "endpoint", str),
                ca_data=need(need(answer, "certificateAuthority", dict), "data", str),
                name=self._cluster.eks_name,
            )
        except MalformedError as error:
            raise PermanentError(
                f"eks/DescribeCluster of {self._cluster.eks_name}: {error}; is it still creating?"
            ) from error


def _read_add_ons(asked: Eks, reads: Reads) -> tuple[AddOn, ...] | None:
    """List the add-ons, then describe them; one that may not be described is listed all the same."""
    names = reads.ask("eks/ListAddons", lambda: asked.installed(reads))
    if not names:
        return None if names is None else ()
    told = reads.ask("eks/DescribeAddon", lambda: asked.add_ons(names, reads))
    return tuple(undescribed(name) for name in names) if told is None else told
