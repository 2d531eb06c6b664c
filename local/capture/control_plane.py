"""What SageMaker and EKS say of a cluster now: every page, in the form that the AWS CLI prints."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.live import Live
from steward.errors import RetryableError

_SIGN_IN = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "RequestExpired",
        "UnrecognizedClientException",
    }
)
"""Errors of the person's own session: they say nothing of the cluster, and are not recorded."""

type Json = dict[str, Any]
type Answer = tuple[str, Json]
"""File (without its ending) and what it holds: an answer or an `Error`."""


def read_control_plane(live: Live, events_from: datetime) -> Iterator[Answer]:
    """Ask every operation that a recording may hold.

    Raises
    ------
    RetryableError
        Nobody answered, or the person has to sign in again.
    """
    yield from _sagemaker(live, events_from)
    yield from _eks(live)


def _sagemaker(live: Live, events_from: datetime) -> Iterator[Answer]:
    cluster = live.cluster
    client: Any = live.session.client("sagemaker", region_name=cluster.region)
    described = _ask(client.describe_cluster, ClusterName=cluster.name)
    yield "sagemaker/DescribeCluster", described
    named = {"ClusterName": cluster.name}
    yield "sagemaker/ListClusterNodes", _list(client, "list_cluster_nodes", **named)
    owned = {"ClusterArn": described["ClusterArn"]} if "ClusterArn" in described else {}
    yield "sagemaker/ListComputeQuotas", _list(client, "list_compute_quotas", **owned)
    configs = _list(client, "list_cluster_scheduler_configs", **owned)
    yield "sagemaker/ListClusterSchedulerConfigs", configs
    for one in configs.get("ClusterSchedulerConfigSummaries", ()):
        identifier = one["ClusterSchedulerConfigId"]
        answer = _ask(client.describe_cluster_scheduler_config, ClusterSchedulerConfigId=identifier)
        yield f"sagemaker/DescribeClusterSchedulerConfig.{identifier}", answer
    since = named | {"EventTimeAfter": events_from}
    yield "sagemaker/ListClusterEvents", _list(client, "list_cluster_events", **since)


def _eks(live: Live) -> Iterator[Answer]:
    name = live.cluster.eks_name
    client: Any = live.session.client("eks", region_name=live.cluster.region)
    yield "eks/DescribeCluster", _ask(client.describe_cluster, name=name)
    add_ons = _list(client, "list_addons", clusterName=name)
    yield "eks/ListAddons", add_ons
    for one in add_ons.get("addons", ()):
        yield (
            f"eks/DescribeAddon.{one}",
            _ask(client.describe_addon, clusterName=name, addonName=one),
        )
    identities = _list(client, "list_pod_identity_associations", clusterName=name)
    yield "eks/ListPodIdentityAssociations", identities


def _list(client: Any, operation: str, **parameters: object) -> Json:
    pages = client.get_paginator(operation)
    return _ask(lambda **given: pages.paginate(**given).build_full_result(), **parameters)


def _ask(call: Any, **parameters: object) -> Json:
    try:
        answer: Json = call(**parameters)
    except ClientError as error:
        told = error.response.get("Error", {})
        code, message = str(told.get("Code", "")), str(told.get("Message", ""))
        if code in _SIGN_IN:
            raise RetryableError(
                f"AWS: {code}: {message}; sign in and repeat the command"
            ) from error
        return {"Error": {"Code": code, "Message": message}}
    except BotoCoreError as error:
        raise RetryableError(f"AWS: {error}; sign in (AWS_PROFILE) and repeat") from error
    return answer
