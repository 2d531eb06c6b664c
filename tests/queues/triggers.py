"""Events between two ticks, half an hour apart, and what each of them makes visible."""

from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from tests.handmade import Object, write
from tests.queues.kit import FLAVOR, GPU, K19, Job, Quota, cluster_queue
from tests.queues.scene import (
    ARN,
    Recorded,
    at,
    cluster,
    control_plane,
    instance,
    refused,
)
from tests.recordings import iso

CALL, ALARM = "AWS API Call via CloudTrail", "CloudWatch Alarm State Change"


class Trigger(NamedTuple):
    """An event, and whether it asks for a snapshot; its job is due a minute before it comes."""

    name: str
    source: str
    kind: str
    detail: Object
    asks: bool = True


def _alarm(name: str, state: str, configuration: Object) -> Object:
    return {
        "alarmName": name,
        "state": {"value": state, "reason": "Threshold Crossed", "timestamp": iso(at("10:00"))},
        "previousState": {"value": "OK" if state == "ALARM" else "ALARM"},
        "configuration": configuration,
    }


def _of_metric(eks_name: str = "ml-shared-01-eks") -> Object:
    metric = {
        "namespace": "ContainerInsights/Prometheus",
        "name": "kueue_pending_workloads",
        "dimensions": {"ClusterName": eks_name},
    }
    stat = {"metric": metric, "period": 60, "stat": "Maximum"}
    return {"metrics": [{"id": "m1", "metricStat": stat, "returnData": True}]}


def _call(name: str, *, error: str | None = None, read_only: bool = False) -> Object:
    made: Object = {
        "eventVersion": "1.10",
        "eventSource": "sagemaker.amazonaws.com",
        "eventName": name,
        "awsRegion": "us-east-1",
        "requestParameters": {"computeQuotaId": "q1w2e3r4t5y6", "targetVersion": 3},
        "responseElements": {"computeQuotaVersion": 4},
        "readOnly": read_only,
        "eventType": "AwsApiCall",
    }
    if error:
        made |= {"errorCode": error, "errorMessage": "no", "responseElements": None}
    return made


_RULE = {"alarmRule": "ALARM(gpu-steward-trigger-pending-ml-shared-01-eks)"}
_EXPORTED = {
    "reason": "Preempted",
    "message": "Preempted to accommodate a workload (UID: 1, JobUID: 2) due to Fair Sharing",
    "clusterName": "ml-shared-01",
    "involvedObject": {"kind": "Workload", "namespace": "hyperpod-ns-research", "name": "w"},
}
_FAILED_NODE = {
    "ClusterName": "ml-shared-01",
    "ClusterArn": ARN,
    "InstanceId": instance(0),
    "HealthSummary": {"HealthStatus": "Unhealthy", "RepairAction": "Replace"},
}
_IN_GROUP = {
    "EventDetails": {
        "EventId": "7f1a7f36",
        "ClusterArn": ARN,
        "ClusterName": "ml-shared-01",
        "InstanceGroupName": "gpu",
        "ResourceType": "InstanceGroup",
        "EventLevel": "Info",
        "Description": "The instance group is in service.",
    }
}
_PREFIX = "gpu-steward-trigger"

TRIGGERS = (
    Trigger(
        "metric-alarm", "aws.cloudwatch", ALARM,
        _alarm(f"{_PREFIX}-pending-ml-shared-01-eks", "ALARM", _of_metric()),
    ),
    Trigger(
        "composite-alarm", "aws.cloudwatch", ALARM, _alarm(f"{_PREFIX}-crowded", "OK", _RULE)
    ),
    Trigger("quota-change", "aws.sagemaker", CALL, _call("UpdateComputeQuota")),
    Trigger(
        "failed-call", "aws.sagemaker", CALL,
        _call("UpdateComputeQuota", error="ValidationException"),
        asks=False,
    ),
    Trigger(
        "cluster-event", "aws.sagemaker", "SageMaker HyperPod Cluster Event", _IN_GROUP
    ),
    Trigger("exported-event", "gpu-steward", "Snapshot Requested", _EXPORTED),
    Trigger(
        "other-alarm", "aws.cloudwatch", ALARM,
        _alarm("gpu-steward-dead-letters", "ALARM", _of_metric()),
        asks=False,
    ),
    Trigger(
        "alarm-without-data", "aws.cloudwatch", ALARM,
        _alarm(f"{_PREFIX}-pending-ml-shared-01-eks", "INSUFFICIENT_DATA", _of_metric()),
        asks=False,
    ),
    Trigger(
        "node-health", "aws.sagemaker", "SageMaker HyperPod Cluster Node Health Event",
        _FAILED_NODE,
    ),
    Trigger(
        "other-cluster", "aws.cloudwatch", ALARM,
        _alarm(f"{_PREFIX}-pending-ml-other-02-eks", "ALARM", _of_metric("ml-other-02-eks")),
        asks=False,
    ),
    Trigger(
        "cluster-state", "aws.sagemaker", "SageMaker HyperPod Cluster State Change",
        {"ClusterArn": ARN, "ClusterName": "ml-shared-01", "ClusterStatus": "Updating"},
    ),
    Trigger(
        "read-call", "aws.sagemaker", CALL, _call("ListComputeQuotas", read_only=True),
        asks=False,
    ),
    Trigger(
        "asked-for", "gpu-steward", "Snapshot Requested", {"cluster": "ml-shared-01"}
    ),
)  # fmt: skip
"""Four minutes apart, the first at 10:04."""

FIRST, CREATED = at("10:04"), at("08:03")
TICKS = ("10:00", "10:30", "11:00")
APART = timedelta(minutes=4)


def subject(name: str) -> str:
    return f"Job/hyperpod-ns-research/{name}"


def _record(folder: Path) -> None:
    """Each job has waited for two hours, and so is told, from a minute before its event."""
    control_plane(folder)
    text = (
        f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in flavor "
        f"{FLAVOR}, 2 more needed"
    )
    jobs = []
    for number, one in enumerate(TRIGGERS):
        created = CREATED + number * APART
        conditions = refused(created, text)
        jobs.append(
            Job(name=one.name, team="research", created=created, gpus=4, conditions=conditions)
        )
        event = {
            "version": "0",
            "id": f"0d079340-135a-c8c6-95c2-{number:012}",
            "detail-type": one.kind,
            "source": one.source,
            "account": "111122223333",
            "time": iso(FIRST + number * APART),
            "region": "us-east-1",
            "resources": [],
            "detail": one.detail,
        }
        write(folder / "events" / f"{number:02}-{one.name}.json", event)
    rows = {FLAVOR: {GPU: Quota(nominal="14", reserved="12")}}
    queue = cluster_queue(K19, "hyperpod-ns-research-clusterqueue", None, rows)
    cluster(folder, at("08:00"), K19, queues=[queue], jobs=jobs)


RECORDINGS = (
    Recorded(
        "triggers",
        at("10:00"),
        at("11:00"),
        "30m",
        "A tick every half an hour, and an event every four minutes. One job more has waited for "
        "two hours a minute before each. Right: it is told at the event's own time if the event "
        "asks for a snapshot, else at the next event that does, or at the tick.",
        _record,
    ),
)
