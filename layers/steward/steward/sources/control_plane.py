"""SageMaker and EKS, read into the nouns: what the control plane says, and what it refused.

The answers and their optional members follow the service models of botocore. Members that a model
does not know pass unseen; a member that is needed and missing makes its operation unreadable.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import boto3
import msgspec

from steward.aws_errors import aws_call
from steward.cluster.policy import ClusterPolicy
from steward.cluster.snapshot import (
    ClusterNode,
    ComputeQuota,
    ControlPlane,
    InstanceGroupState,
    SchedulerConfig,
)
from steward.errors import PermanentError
from steward.ports import Clock, ControlPlaneReading
from steward.sources.assumed_role import client_limits, session_for
from steward.sources.control_plane_fields import MalformedError, each, need
from steward.sources.control_plane_nouns import (
    read_config,
    read_config_id,
    read_group,
    read_node,
    read_quota,
)
from steward.sources.control_plane_parts import Reads

if TYPE_CHECKING:
    from types_boto3_eks import EKSClient
    from types_boto3_sagemaker import SageMakerClient
    from types_boto3_sagemaker.type_defs import PaginatorConfigTypeDef

PAGE: "PaginatorConfigTypeDef" = {"PageSize": 100}
"""The most that SageMaker's lists allow."""

HEALTHY = frozenset({"Created", "Updated"})
"""The SchedulerResourceStatus values in which a cluster policy is in force."""

type Answer = Mapping[str, Any]


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
        Time that one read may take; operations it leaves no time for are unreadable.
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
        self._eks_answer: Answer | None = None

    @cached_property
    def _session(self) -> boto3.Session:
        return session_for(self._cluster, self._base)

    @cached_property
    def _sagemaker(self) -> "SageMakerClient":
        return self._session.client(
            "sagemaker", region_name=self._cluster.region, config=client_limits()
        )

    @cached_property
    def _eks(self) -> "EKSClient":
        return self._session.client("eks", region_name=self._cluster.region, config=client_limits())

    def read(self) -> ControlPlaneReading:
        """Read the control plane; every operation that was called is one part.

        Returns
        -------
        ControlPlaneReading
            `sagemaker/DescribeClusterSchedulerConfig` is a part only where the list names a
            configuration to describe.

        Notes
        -----
        Calls: five, one more for every 100 nodes, quotas or configurations, and one a
        configuration (SageMaker allows one a cluster).
        """
        reads = Reads(self._clock, self._deadline)
        described = reads.ask("sagemaker/DescribeCluster", self._describe_cluster)
        arn, status, groups = described or (None, None, ())
        nodes = reads.ask("sagemaker/ListClusterNodes", lambda: self._list_nodes(reads))
        quotas = reads.ask("sagemaker/ListComputeQuotas", lambda: self._list_quotas(reads, arn))
        configs = reads.ask(
            "sagemaker/ListClusterSchedulerConfigs", lambda: self._list_configs(reads, arn)
        )
        scheduler = None
        if configs:
            scheduler = reads.ask(
                "sagemaker/DescribeClusterSchedulerConfig", lambda: self._describe_configs(configs)
            )
        version = reads.ask("eks/DescribeCluster", self._describe_kubernetes)
        return ControlPlaneReading(
            control_plane=ControlPlane(
                status=status,
                arn=arn,
                groups=groups,
                nodes=nodes or (),
                quotas=quotas or (),
                scheduler=scheduler,
                kubernetes_version=version,
            ),
            parts=tuple(reads.parts),
        )

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

    def _describe_cluster(self) -> tuple[str, str, tuple[InstanceGroupState, ...]]:
        with self._asking("sagemaker:DescribeCluster"):
            answer = self._sagemaker.describe_cluster(ClusterName=self._cluster.name)
        groups = each(answer, "InstanceGroups", read_group)
        if "RestrictedInstanceGroups" in answer:
            groups += each(answer, "RestrictedInstanceGroups", read_group)
        return need(answer, "ClusterArn", str), need(answer, "ClusterStatus", str), groups

    def _list_nodes(self, reads: Reads) -> tuple[ClusterNode, ...]:
        key = "ClusterNodeSummaries"
        paginator = self._sagemaker.get_paginator("list_cluster_nodes")
        pages = paginator.paginate(ClusterName=self._cluster.name, PaginationConfig=PAGE)
        with self._asking("sagemaker:ListClusterNodes"):
            answer = reads.merge(pages, key)
        return each(answer, key, read_node)

    def _list_quotas(self, reads: Reads, arn: str | None) -> tuple[ComputeQuota, ...]:
        key = "ComputeQuotaSummaries"
        paginator = self._sagemaker.get_paginator("list_compute_quotas")
        pages = paginator.paginate(**_of_cluster(arn), PaginationConfig=PAGE)
        with self._asking("sagemaker:ListComputeQuotas"):
            answer = reads.merge(pages, key)
        return each(self._own(answer, key, arn), key, read_quota)

    def _list_configs(self, reads: Reads, arn: str | None) -> tuple[str, ...]:
        key = "ClusterSchedulerConfigSummaries"
        paginator = self._sagemaker.get_paginator("list_cluster_scheduler_configs")
        pages = paginator.paginate(**_of_cluster(arn), PaginationConfig=PAGE)
        with self._asking("sagemaker:ListClusterSchedulerConfigs"):
            answer = reads.merge(pages, key)
        return each(self._own(answer, key, arn), key, read_config_id)

    def _own(self, answer: Answer, key: str, arn: str | None) -> Answer:
        """Keep the summaries of this cluster where the service could not be asked to filter."""
        items = answer[key]
        arns = {item.get("ClusterArn") for item in items if isinstance(item, Mapping)}
        # With the ARN the service has filtered. Its answers may end in the name or in the id,
        # whatever the ARN ended in, so comparing again would only lose some.
        if arn is not None or len(arns) <= 1:
            return answer
        mine = {one for one in arns if str(one).rpartition("/")[2] == self._cluster.name}
        if not mine:
            raise PermanentError(
                f"the {len(items)} {key} are of {len(arns)} clusters, and which is this one is "
                "not known without sagemaker/DescribeCluster; allow sagemaker:DescribeCluster"
            )
        return {key: [i for i in items if isinstance(i, Mapping) and i.get("ClusterArn") in mine]}

    def _describe_configs(self, ids: Iterable[str]) -> SchedulerConfig:
        configs = []
        for config_id in ids:
            with self._asking("sagemaker:DescribeClusterSchedulerConfig"):
                answer = self._sagemaker.describe_cluster_scheduler_config(
                    ClusterSchedulerConfigId=config_id
                )
            configs.append(read_config(answer))
        # One that failed or is being deleted may stand beside the one in force.
        return next((config for config in configs if config.status in HEALTHY), configs[0])

    @contextmanager
    def _asking(self, action: str) -> Iterator[None]:
        """Turn what a call raises into the three ways in which something can go wrong."""
        where = f"{action} of {self._cluster.name} in {self._cluster.region}"
        try:
            with aws_call(where, denied=f"allow {action} to the steward's role"):
                yield
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # botocore's parser trusts the wire: text in place of an object ends in one of these.
            raise MalformedError(f"{where}: not in the service's form: {error}") from error

    def _describe_kubernetes(self) -> str:
        return need(self._ask_eks(), "version", str)

    def _ask_eks(self) -> Answer:
        with self._asking("eks:DescribeCluster"):
            answer = self._eks.describe_cluster(name=self._cluster.eks_name)
        self._eks_answer = need(answer, "cluster", dict)
        return self._eks_answer


def _of_cluster(arn: str | None) -> dict[str, Any]:
    return {} if arn is None else {"ClusterArn": arn}
