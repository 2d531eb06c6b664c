"""SageMaker's calls of one read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from steward.cluster.instance_types import accelerators_of
from steward.errors import PermanentError, StewardError
from steward.sources.control_plane.fields import get, listing, need
from steward.sources.control_plane.nouns import (
    read_config,
    read_config_id,
    read_event,
    read_group,
    read_node,
    read_quota,
    read_restricted_group,
)
from steward.sources.control_plane.parts import asking

if TYPE_CHECKING:
    from types_boto3_sagemaker import SageMakerClient
    from types_boto3_sagemaker.type_defs import PaginatorConfigTypeDef

    from steward.cluster.control_plane import (
        ClusterEvent,
        ClusterNode,
        ComputeQuota,
        SchedulerConfig,
    )
    from steward.cluster.policy import ClusterPolicy
    from steward.sources.control_plane.parts import Reads

PAGE: PaginatorConfigTypeDef = {"PageSize": 100}
"""The most that SageMaker's lists allow."""

HEALTHY = frozenset({"Created", "Updated"})
"""The SchedulerResourceStatus values in which a cluster policy is in force."""

RECENT = timedelta(hours=24)
"""How far back the cluster's events are read."""

MOST_EVENTS = 200
"""The newest events that are kept; every level counts."""

CONTINUOUS = "Continuous"
"""The NodeProvisioningMode of a cluster that has events."""

type Answer = Mapping[str, Any]


class SageMaker:
    """SageMaker's answers of one cluster.

    Parameters
    ----------
    reads : Reads
        Of this read: pages are merged within its deadline, what is left out is noted there.
    """

    def __init__(self, client: SageMakerClient, cluster: ClusterPolicy, reads: Reads) -> None:
        self._client = client
        self._cluster = cluster
        self._reads = reads

    def cluster(self) -> dict[str, Any]:
        """Describe the cluster: members of ControlPlane by their name."""
        with self._asking("DescribeCluster"):
            answer = self._client.describe_cluster(ClusterName=self._cluster.name)
        name = "InstanceGroupName"
        groups = listing(answer, "InstanceGroups", read_group, name)
        if "RestrictedInstanceGroups" in answer:
            groups = listing(
                answer, "RestrictedInstanceGroups", read_restricted_group, name, groups
            )
        return {
            "arn": need(answer, "ClusterArn", str),
            "status": need(answer, "ClusterStatus", str),
            "failure": get(answer, "FailureMessage", str) or None,
            "node_recovery": get(answer, "NodeRecovery", str),
            "provisioning_mode": get(answer, "NodeProvisioningMode", str),
            "groups": self._reads.keep(groups),
        }

    def nodes(self) -> tuple[ClusterNode, ...]:
        """List the cluster's instances."""
        key = "ClusterNodeSummaries"
        paginator = self._client.get_paginator("list_cluster_nodes")
        pages = paginator.paginate(ClusterName=self._cluster.name, PaginationConfig=PAGE)
        with self._asking("ListClusterNodes"):
            answer = self._reads.merge(pages, key)
        return self._reads.keep(listing(answer, key, read_node, "InstanceId"))

    def quotas(self, arn: str | None) -> tuple[ComputeQuota, ...]:
        """List the compute allocations of the cluster with that ARN."""
        key = "ComputeQuotaSummaries"
        paginator = self._client.get_paginator("list_compute_quotas")
        pages = paginator.paginate(**_of_cluster(arn), PaginationConfig=PAGE)
        with self._asking("ListComputeQuotas"):
            answer = self._reads.merge(pages, key)
        mine = self._own(answer, key, arn)
        return self._reads.keep(
            listing(mine, key, lambda one: read_quota(one, self._per_instance), "Name")
        )

    def configs(self, arn: str | None) -> tuple[str, ...]:
        """List the ids of the cluster policies of the cluster with that ARN."""
        key = "ClusterSchedulerConfigSummaries"
        paginator = self._client.get_paginator("list_cluster_scheduler_configs")
        pages = paginator.paginate(**_of_cluster(arn), PaginationConfig=PAGE)
        with self._asking("ListClusterSchedulerConfigs"):
            answer = self._reads.merge(pages, key)
        mine = self._own(answer, key, arn)
        return self._reads.keep(listing(mine, key, read_config_id, "Name"))

    def scheduler(self, ids: Iterable[str]) -> SchedulerConfig:
        """Describe the cluster policy in force.

        Raises
        ------
        StewardError
            None in force could be described, and one was refused.
        """
        configs: list[SchedulerConfig] = []
        refusal: StewardError | None = None
        for config_id in ids:
            try:
                configs.append(self._config(config_id))
            except StewardError as error:
                refusal = error
        # One that failed or is being deleted may stand beside the one in force.
        found = next((config for config in configs if config.status in HEALTHY), None)
        if found is None and refusal is not None:
            raise refusal  # the one in force may be the one that was refused
        self._reads.note(str(refusal or ""))
        return found or configs[0]

    def _config(self, config_id: str) -> SchedulerConfig:
        with self._asking("DescribeClusterSchedulerConfig"):
            answer = self._client.describe_cluster_scheduler_config(
                ClusterSchedulerConfigId=config_id
            )
        return read_config(answer)

    def events(self, now: datetime, mode: str | None) -> tuple[ClusterEvent, ...]:
        """List the newest events of the last day, newest first.

        Raises
        ------
        NotInstalledError
            The cluster has none: its provisioning mode (None: not known) is not continuous.
        """
        key = "Events"

        def absent(code: str) -> bool:
            return mode != CONTINUOUS and code.startswith(("Validation", "Unsupported"))

        with self._asking("ListClusterEvents", absent):
            answer = self._reads.merge(self._event_pages(now - RECENT), key, MOST_EVENTS + 1)
        if len(answer[key]) > MOST_EVENTS:
            self._reads.note(f"of the last day's events only the newest {MOST_EVENTS}")
            answer = {key: answer[key][:MOST_EVENTS]}
        events = self._reads.keep(listing(answer, key, read_event, "EventId"))
        return tuple(sorted(events, key=lambda event: event.at, reverse=True))

    def _event_pages(self, after: datetime) -> Iterator[Answer]:
        """Page by hand: botocore has no paginator for this list."""
        token: dict[str, Any] = {}
        while True:
            page = self._client.list_cluster_events(
                ClusterName=self._cluster.name,
                EventTimeAfter=after,
                SortBy="EventTime",
                SortOrder="Descending",
                MaxResults=100,
                **token,
            )
            yield page
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

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

    def _per_instance(self, instance_type: str) -> int | None:
        """Accelerators of a type, as far as they are known without the cluster's nodes."""
        return accelerators_of(instance_type, self._cluster.capacity, ())[0]

    def _asking(
        self, operation: str, absent: Callable[[str], bool] = lambda _: False
    ) -> AbstractContextManager[None]:
        where = f"{self._cluster.name} in {self._cluster.region}"
        return asking(f"sagemaker:{operation}", where, absent)


def _of_cluster(arn: str | None) -> dict[str, Any]:
    return {} if arn is None else {"ClusterArn": arn}
