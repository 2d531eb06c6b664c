"""A cluster as SageMaker and EKS tell it, after their service models; its nouns written out by hand."""

from copy import replace
from datetime import UTC, datetime
from typing import Any

from steward.cluster.policy import Channel, ClusterPolicy, MetricsSource
from steward.cluster.snapshot import (
    ClusterNode,
    ComputeQuota,
    ControlPlane,
    InstanceGroupState,
    SchedulerConfig,
)

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abc123def456"
CREATED = "2026-10-01T08:00:00+00:00"

CLUSTER = ClusterPolicy(
    name="ml-shared-01",
    eks_name="ml-shared-01-eks",
    region="us-east-1",
    account=None,
    role_arn=None,
    time_zone="UTC",
    tick_minutes=5,
    digest_day="monday",
    digest_time="09:00",
    metrics=MetricsSource(endpoint="http://127.0.0.1", sigv4=False),
    prices=(),
    capacity=(),
    buffer_accelerators=0,
    fair_share=True,
    priority_classes=(),
    teams=(),
    platform_channel=Channel(id="C0", name="platform"),
)


def group(**members: Any) -> dict[str, Any]:
    known = {"InstanceGroupName": "gpu-a", "CurrentCount": 3, "TargetCount": 4}
    return known | {"Status": "InService", "InstanceType": "ml.p5.48xlarge"} | members


def node(number: int) -> dict[str, Any]:
    return {
        "InstanceGroupName": "gpu-a",
        "InstanceId": f"i-{number:017x}",
        "InstanceType": "ml.p5.48xlarge",
        "LaunchTime": CREATED,
        "InstanceStatus": {"Status": "Running", "Message": ""},
    }


def quota(quota_id: str, team: str, resources: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "ComputeQuotaArn": f"arn:aws:sagemaker:us-east-1:111122223333:compute-quota/{quota_id}",
        "ComputeQuotaId": quota_id,
        "Name": f"{team}-quota",
        "ComputeQuotaVersion": 2,
        "Status": "Updated",
        "ClusterArn": ARN,
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": resources,
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
            "PreemptTeamTasks": "LowerPriority",
        },
        "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 10},
        "ActivationState": "Enabled",
        "CreationTime": CREATED,
    }


def scheduler(config_id: str, status: str) -> dict[str, Any]:
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:cluster-scheduler-config/{config_id}"
    known = {"ClusterSchedulerConfigArn": arn, "ClusterSchedulerConfigId": config_id}
    return known | {"Name": "policy", "CreationTime": CREATED, "Status": status, "ClusterArn": ARN}


def world() -> dict[str, dict[str, Any]]:
    """Make the recorded answers of a cluster where all is well, by file name without `.json`."""
    body = {
        "PriorityClasses": [
            {"Name": "production-training", "Weight": 75},
            {"Name": "experimentation", "Weight": 25},
        ],
        "FairShare": "Enabled",
    }
    described = scheduler("s12345678901", "Created")
    return {
        "sagemaker/DescribeCluster": {
            "ClusterArn": ARN,
            "ClusterName": "ml-shared-01",
            "ClusterStatus": "InService",
            "CreationTime": CREATED,
            "InstanceGroups": [group()],
        },
        "sagemaker/ListClusterNodes": {"ClusterNodeSummaries": [node(1)]},
        "sagemaker/ListComputeQuotas": {
            "ComputeQuotaSummaries": [
                quota("q12345678901", "research", [{"InstanceType": "ml.p5.48xlarge", "Count": 2}]),
                quota(
                    "q12345678902",
                    "genai",
                    [
                        {"InstanceType": "ml.p5.48xlarge", "Accelerators": 10},
                        {"InstanceType": "ml.m5.large", "VCpu": 4.0},
                    ],
                ),
            ]
        },
        "sagemaker/ListClusterSchedulerConfigs": {
            "ClusterSchedulerConfigSummaries": [scheduler("s12345678901", "Created")]
        },
        "sagemaker/DescribeClusterSchedulerConfig": described
        | {"ClusterSchedulerConfigVersion": 1, "SchedulerConfig": body},
        "eks/DescribeCluster": {
            "cluster": {
                "name": "ml-shared-01-eks",
                "version": "1.33",
                "endpoint": "https://recorded.example",
                "certificateAuthority": {"data": "cmVjb3JkZWQ="},
                "createdAt": CREATED,
            }
        },
    }


RESEARCH = ComputeQuota(
    id="q12345678901",
    name="research-quota",
    team="research",
    status="Updated",
    active=True,
    strategy="LendAndBorrow",
    borrow_limit_percent=50,
    accelerators={"ml.p5.48xlarge": None},  # only Count is given: how many follows from the type
    fair_share_weight=10,
)
WELL = ControlPlane(
    status="InService",
    arn=ARN,
    groups=(
        InstanceGroupState(
            name="gpu-a",
            status="InService",
            current=3,
            target=4,
            instance_types=("ml.p5.48xlarge",),
        ),
    ),
    nodes=(
        ClusterNode(
            instance_id="i-00000000000000001",
            group="gpu-a",
            instance_type="ml.p5.48xlarge",
            status="Running",
            message="",
        ),
    ),
    quotas=(
        RESEARCH,
        replace(
            RESEARCH,
            id="q12345678902",
            name="genai-quota",
            team="genai",
            # vCPU alone means no accelerators (hyperpod reference: "Accelerators = 0").
            accelerators={"ml.p5.48xlarge": 10, "ml.m5.large": 0},
        ),
    ),
    scheduler=SchedulerConfig(
        id="s12345678901",
        name="policy",
        status="Created",
        fair_share=True,
        priority_classes={"production-training": 75, "experimentation": 25},
    ),
    kubernetes_version="1.33",
)
OPERATIONS = tuple(world())


def error(code: str, message: str = "no") -> dict[str, Any]:
    return {"Error": {"Code": code, "Message": message}}
