"""A cluster as SageMaker and EKS tell it, after their service models; its nouns written out by hand."""

import json
from copy import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from steward.cluster.control_plane import (
    AddOn,
    ClusterEvent,
    ClusterNode,
    ComputeQuota,
    ControlPlane,
    InstanceGroupState,
    QuotaResource,
    SchedulerConfig,
)
from steward.cluster.policy import Channel, ClusterPolicy, MetricsSource

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abc123def456"
CREATED = "2026-10-01T08:00:00+00:00"
MODIFIED = "2026-10-20T12:30:00+02:00"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/winter"
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"
SECRET = "hunter2"

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
    known |= {"Status": "InService", "InstanceType": "ml.p5.48xlarge", "ThreadsPerCore": 2}
    return known | {"TrainingPlanArn": PLAN} | members


def node(number: int, **members: Any) -> dict[str, Any]:
    return {
        "InstanceGroupName": "gpu-a",
        "InstanceId": f"i-{number:017x}",
        "InstanceType": "ml.p5.48xlarge",
        "LaunchTime": CREATED,
        "InstanceStatus": {"Status": "Running", "Message": ""},
    } | members


def event(number: int, at: datetime, **members: Any) -> dict[str, Any]:
    return {
        "EventId": f"e-{number}",
        "ClusterArn": ARN,
        "ClusterName": "ml-shared-01",
        "ResourceType": "Instance",
        "EventTime": at.isoformat(),
        "InstanceGroupName": "gpu-a",
        "InstanceId": "i-00000000000000001",
        "Description": "Instance creation failed",
        "EventLevel": "Error",
    } | members


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
            "ResourceSharingConfig": {
                "Strategy": "LendAndBorrow",
                "BorrowLimit": 50,
                "AbsoluteBorrowLimits": [{"InstanceType": "ml.p5.48xlarge", "Accelerators": 4}],
            },
            "PreemptTeamTasks": "LowerPriority",
        },
        "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 10},
        "ActivationState": "Enabled",
        "CreationTime": CREATED,
        "LastModifiedTime": MODIFIED,
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
        "IdleResourceSharing": "Disabled",
    }
    described = scheduler("s12345678901", "Created") | {
        "StatusDetails": {"PriorityClasses": "Created", "FairShare": "Updating"}
    }
    return {
        "sagemaker/DescribeCluster": {
            "ClusterArn": ARN,
            "ClusterName": "ml-shared-01",
            "ClusterStatus": "InService",
            "CreationTime": CREATED,
            "InstanceGroups": [group()],
            "NodeRecovery": "Automatic",
            "NodeProvisioningMode": "Continuous",
        },
        "sagemaker/ListClusterNodes": {
            "ClusterNodeSummaries": [
                node(1),
                node(2, InstanceStatus={"Status": "Failure", "Message": "XID 79 on GPU 3"}),
            ]
        },
        "sagemaker/ListComputeQuotas": {
            "ComputeQuotaSummaries": [
                quota("q12345678901", "research", [{"InstanceType": "ml.p5.48xlarge", "Count": 2}]),
                quota(
                    "q12345678902",
                    "genai",
                    [
                        {"InstanceType": "ml.p5.48xlarge", "Accelerators": 10},
                        {"InstanceType": "ml.m5.large", "VCpu": 4.5, "MemoryInGiB": 16.0},
                        {
                            "InstanceType": "ml.p4d.24xlarge",
                            "AcceleratorPartition": {"Type": "mig-3g.20gb", "Count": 2},
                        },
                    ],
                ),
            ]
        },
        "sagemaker/ListClusterSchedulerConfigs": {
            "ClusterSchedulerConfigSummaries": [scheduler("s12345678901", "Created")]
        },
        "sagemaker/DescribeClusterSchedulerConfig": described
        | {"ClusterSchedulerConfigVersion": 7, "SchedulerConfig": body},
        "sagemaker/ListClusterEvents": {"Events": [event(1, NOW - timedelta(hours=2))]},
        "eks/DescribeCluster": {
            "cluster": {
                "name": "ml-shared-01-eks",
                "version": "1.33",
                "endpoint": "https://recorded.example",
                "certificateAuthority": {"data": "cmVjb3JkZWQ="},
                "createdAt": CREATED,
            }
        },
        "eks/ListAddons": {"addons": ["vpc-cni", OBSERVABILITY, GOVERNANCE]},
        f"eks/DescribeAddon.{GOVERNANCE}": add_on("v1.6.1-eksbuild.1"),
        f"eks/DescribeAddon.{OBSERVABILITY}": add_on(
            "v1.0.4-eksbuild.1",
            configurationValues=json.dumps(
                {
                    "metricsProvider": {
                        "taskGovernanceMetrics": {"level": "DISABLED", "password": SECRET},
                        "nodeMetrics": {"level": "BASIC", "scrapeInterval": 30},
                    },
                    "ampWorkspace": {"prometheusEndpoint": "https://amp.example/ws-1"},
                    "grafana": {"adminPassword": SECRET},
                }
            ),
            health={"issues": [{"code": "InsufficientNumberOfReplicas", "message": "1 of 2"}]},
        ),
    }


def add_on(version: str, **members: Any) -> dict[str, Any]:
    return {"addon": {"addonVersion": version, "status": "ACTIVE"} | members}


RESEARCH = ComputeQuota(
    id="q12345678901",
    name="research-quota",
    team="research",
    status="Updated",
    active=True,
    strategy="LendAndBorrow",
    borrow_limit_percent=50,
    accelerators={"ml.p5.48xlarge": 16},  # two instances of eight (AWS: P5)
    fair_share_weight=10,
    version=2,
    resources=(QuotaResource(instance_type="ml.p5.48xlarge", count=2),),
    absolute_borrow_limits=(QuotaResource(instance_type="ml.p5.48xlarge", accelerators=4),),
    preempt_team_tasks="LowerPriority",
    modified=datetime(2026, 10, 20, 10, 30, tzinfo=UTC),  # 12:30 at +02:00
)
LAUNCHED = datetime(2026, 10, 1, 8, tzinfo=UTC)
HEALTHY = ClusterNode(
    instance_id="i-00000000000000001",
    group="gpu-a",
    instance_type="ml.p5.48xlarge",
    status="Running",
    message="",
    launched=LAUNCHED,
)
WELL = ControlPlane(
    status="InService",
    arn=ARN,
    node_recovery="Automatic",
    provisioning_mode="Continuous",
    groups=(
        InstanceGroupState(
            name="gpu-a",
            status="InService",
            current=3,
            target=4,
            instance_types=("ml.p5.48xlarge",),
            counts={"ml.p5.48xlarge": 3},
            threads_per_core=2,
            training_plan=PLAN,
        ),
    ),
    nodes=(
        HEALTHY,
        replace(
            HEALTHY, instance_id="i-00000000000000002", status="Failure", message="XID 79 on GPU 3"
        ),
    ),
    events=(
        ClusterEvent(
            id="e-1",
            at=datetime(2026, 11, 2, 7, tzinfo=UTC),
            level="Error",
            resource_type="Instance",
            group="gpu-a",
            instance_id="i-00000000000000001",
            description="Instance creation failed",
        ),
    ),
    quotas=(
        RESEARCH,
        replace(
            RESEARCH,
            id="q12345678902",
            name="genai-quota",
            team="genai",
            # vCPU alone means no accelerators (hyperpod reference: "Accelerators = 0"); MIG slices
            # are no whole accelerators.
            accelerators={"ml.p5.48xlarge": 10, "ml.m5.large": 0, "ml.p4d.24xlarge": None},
            resources=(
                QuotaResource(instance_type="ml.p5.48xlarge", accelerators=10),
                QuotaResource(instance_type="ml.m5.large", vcpu=4.5, memory_gib=16.0),
                QuotaResource(
                    instance_type="ml.p4d.24xlarge", partition="mig-3g.20gb", partition_count=2
                ),
            ),
        ),
    ),
    scheduler=SchedulerConfig(
        id="s12345678901",
        name="policy",
        status="Created",
        fair_share=True,
        priority_classes={"production-training": 75, "experimentation": 25},
        version=7,
        idle_sharing=False,
        details={"PriorityClasses": "Created", "FairShare": "Updating"},
    ),
    kubernetes_version="1.33",
    add_ons=(
        AddOn(name=GOVERNANCE, version="v1.6.1-eksbuild.1", status="ACTIVE"),
        AddOn(
            name=OBSERVABILITY,
            version="v1.0.4-eksbuild.1",
            status="ACTIVE",
            settings={
                "metricsProvider.taskGovernanceMetrics.level": "DISABLED",
                "metricsProvider.nodeMetrics.level": "BASIC",
                "metricsProvider.nodeMetrics.scrapeInterval": "30",
                "ampWorkspace.prometheusEndpoint": "https://amp.example/ws-1",
            },
            issues=("InsufficientNumberOfReplicas",),
        ),
    ),
)
PARTS = tuple(dict.fromkeys(name.partition(".")[0] for name in world()))
"""One a kind of call, in the order of the calls."""
CALLS = len(world())


def error(code: str, message: str = "no") -> dict[str, Any]:
    return {"Error": {"Code": code, "Message": message}}
