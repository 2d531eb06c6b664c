"""Kueue's objects through the adapter, in both API forms that HyperPod's releases serve."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from local.standins.kubernetes import Fault
from steward.cluster.accelerators import Owner
from steward.cluster.kueue import (
    ClusterQueue,
    Cohort,
    Condition,
    Evictions,
    Fungibility,
    KueueEvent,
    LocalQueue,
    PodSet,
    QueueCounts,
    QuotaRow,
    ResourceFlavor,
    Topology,
    Workload,
    WorkloadPriorityClass,
)
from steward.cluster.snapshot import Part, PartStatus
from steward.ports import KubernetesReading, Wanted
from tests.contract.kubernetes_cluster import (
    NOW,
    Json,
    api,
    basic_files,
    kueue_v1beta1,
    kueue_v1beta2,
    listed,
    owned,
    pod,
    read,
    served,
    standin,
    thing,
)

RESEARCH = "hyperpod-ns-research"
STARTED = datetime(2026, 11, 2, 6, 1, 30, tzinfo=UTC)


def part(reading: KubernetesReading, resource: str) -> Part:
    (found,) = [one for one in reading.parts if one.name == f"kubernetes/{resource}"]
    return found


def owner(kind: str, namespace: str, name: str) -> Owner:
    return Owner(kind=kind, namespace=namespace, name=name)


@pytest.mark.parametrize("dialect", [kueue_v1beta1, kueue_v1beta2])
def test_both_api_dialects_give_the_same_nouns(dialect: Callable[[], dict[str, Json]]) -> None:
    reading = read(standin(basic_files() | dialect()))
    # 3 pods of 4 GPUs and 1.5 cores each, as the pod set says: nothing was admitted yet.
    waiting = Workload(
        namespace=RESEARCH,
        name="pytorchjob-next-a41c9",
        uid="uid-pytorchjob-next-a41c9",
        created=datetime(2026, 11, 2, 6, tzinfo=UTC),
        queue="hyperpod-ns-research-localqueue",
        priority=40,
        priority_class="training-priority",
        priority_class_kind="WorkloadPriorityClass",
        active=True,
        owner=owner("PyTorchJob", RESEARCH, "next"),
        owner_chain=(owner("PyTorchJob", RESEARCH, "next"),),
        job_uid="uid-next",
        pod_sets=(
            PodSet(
                name="worker",
                count=3,
                min_count=2,
                per_pod={"nvidia.com/gpu": 4.0, "cpu": 1.5},
                topology="topology.k8s.aws/network-node-layer-3",
                topology_required=True,
            ),
        ),
        evictions=(Evictions(reason="Preempted", underlying_cause="", count=2),),
        past_seconds=5400,
        cluster_queue=None,
        requests={"nvidia.com/gpu": 12.0, "cpu": 4.5},
        assigned={},
        conditions=(
            Condition(
                type="QuotaReserved",
                status=False,
                reason="Pending",
                message="couldn't assign flavors to pod set worker: insufficient unused quota for "
                "nvidia.com/gpu in flavor ml.p5.48xlarge, 4 more needed",
                since=datetime(2026, 11, 2, 8, 20, 4, tzinfo=UTC),
            ),
            Condition(type="Requeued", status=None, reason="Preempted", message="", since=None),
        ),
    )
    running = Workload(
        namespace=RESEARCH,
        name="pytorchjob-pretrain-0be12",
        uid="uid-pytorchjob-pretrain-0be12",
        created=datetime(2026, 11, 2, 6, tzinfo=UTC),
        queue="hyperpod-ns-research-localqueue",
        priority=0,
        priority_class=None,
        active=True,
        owner=owner("PyTorchJob", RESEARCH, "pretrain"),
        owner_chain=(owner("PyTorchJob", RESEARCH, "pretrain"),),
        job_uid="uid-pretrain",
        pod_sets=(
            PodSet(
                name="worker",
                count=1,
                admitted=1,
                flavors={"nvidia.com/gpu": "ml.p5.48xlarge"},
                nodes={"hyperpod-i-0a": 1},
            ),
        ),
        cluster_queue="hyperpod-ns-research-clusterqueue",
        requests={"nvidia.com/gpu": 8.0},
        assigned={"ml.p5.48xlarge": {"nvidia.com/gpu": 8.0}},
        conditions=(
            Condition(
                type="Admitted",
                status=True,
                reason="Admitted",
                message="The workload is admitted",
                since=STARTED,
            ),
        ),
    )
    active = (Condition(type="Active", status=True, reason="Ready", message="ready", since=None),)
    row = QuotaRow(
        flavor="ml.p5.48xlarge",
        resource="nvidia.com/gpu",
        nominal=14.0,
        borrowing_limit=7.0,
        lending_limit=None,
        reserved=17.0,
        used=14.0,
        borrowed=3.0,  # of the reservation, 17 - 14: that is what the borrowing limit binds
    )
    assert reading.workloads == (waiting, running)
    assert reading.cluster_queues == (
        ClusterQueue(
            name="hyperpod-ns-research-clusterqueue",
            cohort="shared-pool",
            rows=(row,),
            conditions=active,
            fungibility=Fungibility(when_can_preempt="MayStopSearch"),
            admission_checks=("capacity",),
            managed=True,
        ),
    )
    assert reading.local_queues == (
        LocalQueue(
            namespace=RESEARCH,
            name="hyperpod-ns-research-localqueue",
            cluster_queue="hyperpod-ns-research-clusterqueue",
            conditions=active,
            counts=QueueCounts(pending=1),
        ),
    )
    assert reading.cohorts == (Cohort(name="shared-pool", parent="company"),)
    assert reading.topologies == (
        Topology(name="hyperpod-default", levels=("kubernetes.io/hostname",)),
    )
    assert reading.resource_flavors == (
        ResourceFlavor(
            name="ml.p5.48xlarge",
            node_labels={"node.kubernetes.io/instance-type": "ml.p5.48xlarge"},
            topology="hyperpod-default",
        ),
    )
    assert reading.priority_classes == (WorkloadPriorityClass(name="training-priority", value=40),)


@pytest.mark.parametrize(
    ("files", "version"), [(kueue_v1beta1, "v1beta1"), (kueue_v1beta2, "v1beta2")]
)
def test_kueue_is_asked_in_the_version_that_its_group_prefers(
    files: Callable[[], dict[str, Json]], version: str
) -> None:
    server = standin(basic_files() | files())
    read(server)
    assert f"/apis/kueue.x-k8s.io/{version}/workloads" in server.paths


KUEUE = (
    "cohorts",
    "topologies",
    "clusterqueues",
    "localqueues",
    "resourceflavors",
    "workloadpriorityclasses",
    "workloads",
)


def test_a_kueue_that_serves_none_of_the_known_versions_is_unreadable_not_absent() -> None:
    files = basic_files() | kueue_v1beta2()
    for resource in KUEUE:
        for item in files[resource]["items"]:
            item["apiVersion"] = "kueue.x-k8s.io/v2"
    reading = read(standin(files))
    for resource in KUEUE:
        found = part(reading, resource)
        assert found.status is PartStatus.UNREADABLE
        assert "v2" in found.detail


# --- versions ------------------------------------------------------------------------------------


def test_a_resource_that_the_preferred_version_lacks_is_read_in_another() -> None:
    # Kueue 0.12: v1beta1 is preferred, and knows neither Cohorts nor Topologies.
    server = standin(basic_files() | kueue_v1beta1())
    reading = read(server)
    root = "/apis/kueue.x-k8s.io"
    asked = [path for path in server.paths if path.endswith("/cohorts")]
    assert asked == [f"{root}/v1beta1/cohorts", f"{root}/v1alpha1/cohorts"]
    assert part(reading, "cohorts").status is PartStatus.OK
    assert server.paths.count(root) == 1


def test_a_resource_that_no_version_serves_is_absent() -> None:
    fault = Fault(resource="cohorts", status=404, times=2)
    reading = read(standin(basic_files() | kueue_v1beta1(), fault))
    assert part(reading, "cohorts").status is PartStatus.ABSENT
    assert reading.cohorts == ()
    assert part(reading, "topologies").status is PartStatus.OK


def test_a_refusal_is_not_taken_for_another_version() -> None:
    # 403 says that the resource is there: asking elsewhere could only blur that.
    files = basic_files() | kueue_v1beta1()
    del files["cohorts"]
    server = standin(files)
    reading = read(server)
    assert part(reading, "cohorts").status is PartStatus.DENIED
    assert len([path for path in server.paths if path.endswith("/cohorts")]) == 1


# --- finished workloads --------------------------------------------------------------------------


def finished(name: str, ended: str) -> Json:
    body = thing("kueue.x-k8s.io/v1beta2", "Workload", RESEARCH, name)
    end = {"type": "Finished", "status": "True", "reason": "Succeeded", "lastTransitionTime": ended}
    body["status"] = {"conditions": [end]}
    return body


def test_workloads_that_finished_long_ago_are_dropped_on_sight() -> None:
    # A week before 2026-11-02T09:00 is 2026-10-26T09:00; what ended in that very second stays.
    files = basic_files() | kueue_v1beta2()
    reopened = finished("reopened", "2026-10-01T00:00:00Z")
    reopened["status"]["conditions"][0]["status"] = "False"
    broken = finished("broken", "2026-10-01T00:00:00Z")
    broken["spec"] = "nobody reads this any more"
    files["workloads"] = listed(
        finished("old", "2026-10-26T08:59:59Z"),
        finished("edge", "2026-10-26T09:00:00Z"),
        finished("new", "2026-11-02T08:00:00Z"),
        reopened,
        broken,
    )
    wanted = Wanted(finished_after=NOW - timedelta(days=7))
    reading = read(standin(files), wanted=wanted)
    assert [one.name for one in reading.workloads] == ["edge", "new", "reopened"]
    assert part(reading, "workloads").detail == ""
    everything = read(standin(files), wanted=Wanted())
    assert [one.name for one in everything.workloads] == ["old", "edge", "new", "reopened"]


# --- who made it ---------------------------------------------------------------------------------


def made_by(item: Json, person: str, label: str = "sagemaker.user/created-by") -> Json:
    item["metadata"]["labels"] = {label: person}
    return item


def test_a_maker_is_named_by_the_pod_else_by_the_nearest_owner_that_says() -> None:
    files = basic_files() | kueue_v1beta2()
    made_by(files["pods"]["items"][0], "pod@example.com")  # pretrain-0
    made_by(files["pytorchjobs"]["items"][0], "job@example.com")
    made_by(files["rayjobs"]["items"][0], "top@example.com")  # ray-head -> RayCluster -> RayJob
    reading = read(standin(files))
    makers = {one.name: one.created_by for one in reading.pods}
    assert makers["pretrain-0"] == "pod@example.com"
    assert makers["ray-head"] == "top@example.com"
    assert makers["notebook-0"] is None
    by_name = {one.name: one for one in reading.workloads}
    # The Workload has no label of its own; the PyTorchJob that Kueue queued has one.
    assert by_name["pytorchjob-pretrain-0be12"].created_by == "job@example.com"
    assert by_name["pytorchjob-next-a41c9"].created_by is None


def test_the_labels_that_name_makers_are_given_to_the_reader() -> None:
    files = basic_files() | kueue_v1beta2()
    made_by(files["pods"]["items"][0], "pod@example.com")
    made_by(files["pytorchjobs"]["items"][0], "cost-centre-7", "example.com/owner")
    made_by(files["workloads"]["items"][0], "cost-centre-8", "example.com/owner")
    with served(standin(files)) as url:
        reading = api(url, created_by=("example.com/owner",)).read(Wanted())
    assert reading.pods[0].created_by == "cost-centre-7"
    assert [one.created_by for one in reading.workloads] == ["cost-centre-8", "cost-centre-7"]


def test_a_workload_of_a_deployments_pod_leads_through_the_pod_to_the_deployment() -> None:
    # Kueue queues such pods one by one: ReplicaSet and Deployment are the pod's owners, not its.
    files = basic_files() | kueue_v1beta2()
    one = thing("kueue.x-k8s.io/v1beta2", "Workload", "hyperpod-ns-genai", "pod-chat")
    one["metadata"]["ownerReferences"] = owned("v1", "Pod", "chat-7d9f-x")
    files["workloads"] = listed(one)
    made_by(files["deployments"]["items"][0], "chat@example.com")
    (workload,) = read(standin(files)).workloads
    assert workload.owner == owner("Pod", "hyperpod-ns-genai", "chat-7d9f-x")
    assert [one.kind for one in workload.owner_chain] == ["Pod", "ReplicaSet", "Deployment"]
    assert workload.created_by == "chat@example.com"


def test_owners_of_waiting_workloads_are_looked_up_though_they_have_no_pods() -> None:
    files = basic_files() | kueue_v1beta2()
    files["pods"] = listed(pod("default", "notebook-0", 2))
    waiting = thing("kueue.x-k8s.io/v1beta2", "Workload", RESEARCH, "job-sweep-a")
    waiting["metadata"]["ownerReferences"] = owned("batch/v1", "Job", "sweep-a")
    files["workloads"] = listed(waiting)
    made_by(files["jobsets"]["items"][0], "sweeper@example.com")
    (workload,) = read(standin(files)).workloads
    assert [one.kind for one in workload.owner_chain] == ["Job", "JobSet"]
    assert workload.created_by == "sweeper@example.com"


# --- events --------------------------------------------------------------------------------------


def test_events_about_workloads_are_read_in_either_form() -> None:
    server = standin(basic_files() | kueue_v1beta2())
    reading = read(server)
    about = {"namespace": RESEARCH, "workload": "pytorchjob-next-a41c9"}
    about |= {"workload_uid": "uid-pytorchjob-next-a41c9"}
    old, new = reading.events
    assert old == KueueEvent(
        **about,
        reason="Preempted",
        message="Preempted to accommodate a workload",
        at=datetime(2026, 11, 2, 8, 20, tzinfo=UTC),
        count=3,
    )
    assert (new.reason, new.count) == ("Pending", 1)
    assert new.at == datetime(2026, 11, 2, 8, 20, 4, 512345, tzinfo=UTC)
    (query,) = [query for path, query in server.requests if path == "/api/v1/events"]
    assert "fieldSelector=involvedObject.kind%3DWorkload" in query
